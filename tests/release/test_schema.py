import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from jsonschema import Draft202012Validator
from typer.testing import CliRunner

import matrixdp as mdp
from matrixdp.cli.app import app
from matrixdp.releases import release_schema
from matrixdp.specification import json_schema

DOMAIN = mdp.Domain(
    {"sex": ["female", "male"], "age": {"min": 0, "max": 7}, "income": {"edges": [0, 10, 25, 50, 90]}}
)
TABLE: dict[str, Any] = {"sex": ["male", "x"], "age": [1, 2], "income": [5, 30], "person": [1, 1]}
MARGINALS = mdp.Workload(DOMAIN, mdp.marginals([0, 1, 2]))
MIXED = mdp.Workload(
    DOMAIN,
    mdp.marginals([1]),
    mdp.product(age="prefix", sex="identity"),
    mdp.product(income={"sets": [[0, 10], [50]]}, name="incomes"),
    mdp.dense(np.eye(4), attributes=["income"], weight=2),
)
LINE = mdp.Workload(DOMAIN, mdp.product(age="range"))
SCHEMA = release_schema()
VALIDATOR = Draft202012Validator(SCHEMA)
GAUSSIAN, LAPLACE = mdp.Budget(rho=0.5), mdp.Budget(epsilon=1)


def faults(written: object) -> list[str]:
    return [f"{error.json_path}: {error.message[:200]}" for error in VALIDATOR.iter_errors(written)]


def saved(release: mdp.Release, folder: Path, **options: Any) -> dict[str, Any]:
    """Save a release, and return its record, which validates."""
    out = mdp.save_release(release, folder / "out", **options)
    written: dict[str, Any] = json.loads((out / "release.json").read_text())
    assert faults(written) == []
    return written


def test_the_schema_is_one():
    Draft202012Validator.check_schema(SCHEMA)

    def objects(schema: object) -> Iterator[dict[str, Any]]:
        if isinstance(schema, dict):
            if isinstance(schema.get("properties"), dict) and schema.get("type") == "object":
                yield schema
            for inner in schema.values():
                yield from objects(inner)
        elif isinstance(schema, list):
            for inner in schema:
                yield from objects(inner)

    found = list(objects(SCHEMA))
    assert len(found) > 10
    assert all(schema["additionalProperties"] is False for schema in found if schema is not SCHEMA["$defs"])


OF_MARGINALS = ("residual", "querysmasher", "fourier", "opt-m", "datacube", "residualplanner")
OF_ALL = ("auto", "identity", "workload", "hierarchical", "opt-kron", "opt-plus")
OF_LINES = ("dense", "hb", "wavelet", "greedy-h")
MECHANISMS = [(MARGINALS, OF_MARGINALS), (MIXED, OF_ALL), (LINE, OF_LINES)]


@pytest.mark.parametrize(("workload", "name"), [(own, name) for own, names in MECHANISMS for name in names])
@pytest.mark.parametrize("budget", [GAUSSIAN, LAPLACE], ids=["gaussian", "laplace"])
def test_every_mechanism_validates(workload: mdp.Workload, name: str, budget: mdp.Budget, tmp_path: Path):
    try:
        strategy = mdp.select(workload, mechanism=name, budget=budget)
    except mdp.MatrixDPError:
        # those that are made for one norm alone
        assert (name, budget) in {
            (name, LAPLACE) for name in ("dense", "residual", "residualplanner", "fourier")
        }
        return
    saved(strategy.measure(TABLE, budget).reconstruct(), tmp_path)


BUDGETS = [
    mdp.Budget(mu=1),
    mdp.Budget(epsilon=1, delta=1e-6),
    mdp.Budget(epsilon=1, delta=1e-6, neighbours="replace"),
    mdp.Budget(rho=1e-9),
    mdp.Budget(mu=50),
    mdp.Budget(rho=0.5, unit={"records": 3}),
    mdp.Budget(epsilon=1, unit={"id": "person", "records": 2}),
]


@pytest.mark.parametrize("budget", BUDGETS, ids=repr)
@pytest.mark.parametrize("noise", ["gaussian", "laplace"])
def test_every_budget_and_unit_validates(budget: mdp.Budget, noise: str, tmp_path: Path):
    noise = "laplace" if budget.kind == "pure" else noise
    strategy = mdp.select(LINE, mechanism="identity", budget=budget, noise=noise)
    measured = strategy.measure(TABLE, budget, out_of_domain={"sex": {"other": "male"}}, max_records=100)
    written = saved(measured.reconstruct(confidence=0.5), tmp_path, csv=True)
    assert written["privacy"]["unit"] == budget.unit.as_dict()


def test_other_ways_to_a_release_validate(tmp_path: Path):
    strategy = mdp.select(MARGINALS, targets={"sex": 5.0})
    ledger = mdp.Ledger.create(tmp_path / "people.ledger", "people", mdp.Budget(rho=2))
    (tmp_path / "t.csv").write_text("sex,age,income\nmale,1,5\n")
    saved(strategy.measure(TABLE, GAUSSIAN, seed_not_private=1).reconstruct(), tmp_path / "seeded")
    saved(strategy.measure(TABLE, strategy.least_budget()).reconstruct(), tmp_path / "alone", max_answers=0)
    debited = strategy.measure(TABLE, GAUSSIAN, ledger=ledger).reconstruct()
    assert saved(debited, tmp_path / "debited")["privacy"]["ledger"]["dataset"] == "people"
    saved(mdp.load_release(tmp_path / "debited" / "out"), tmp_path / "again")
    saved(mdp.Release(debited.measurement, debited.workload), tmp_path / "bare")
    quoted = strategy.measure(tmp_path / "t.csv", GAUSSIAN, quoted_newlines=True)
    saved(quoted.reconstruct(), tmp_path / "quoted")


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    budget = mdp.Budget(epsilon=1, delta=1e-6)
    release = mdp.select(MIXED, budget=budget, noise="gaussian").measure(TABLE, budget).reconstruct()
    return saved(release, tmp_path_factory.mktemp("written"), csv=True)


def places(written: object, place: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Every place in a record but what users write: domain, workload, names, words."""
    if place and place[0] in ("domain", "workload"):
        return
    if place:
        yield place
    inner: Any = enumerate(written) if isinstance(written, list) else getattr(written, "items", tuple)()
    for key, value in inner:
        yield from places(value, (*place, key))


def changed(written: object, place: tuple[str | int, ...], value: object) -> tuple[Any, Any]:
    """Return a copy of a record with another value at a place, and what holds the value."""
    whole: Any = copy.deepcopy(written)
    inner = whole
    for step in place[:-1]:
        inner = inner[step]
    inner[place[-1]] = value
    return whole, inner


#: What may be missing, and whose keys are not all needed, or are names of what there is.
OPTIONAL = {("strategy", name) for name in ("mechanism", "reason", "objective", "certificate")} | {
    ("files", "answers.csv"),
    ("files", "answers.parquet"),
}
FREE = {
    ("strategy", "certificate"),
    ("privacy", "versions"),
    ("answers", "attributes"),
    ("answers", "bounds"),
}


def test_every_place_has_a_type_and_is_needed(written: dict[str, Any]):
    tried = missing = 0
    for place in places(written):
        whole, inner = changed(written, place, [[None]] if place[-1] != "attributes" else "sex")
        if place[:2] != ("privacy", "out_of_domain"):
            assert faults(whole), place
            tried += 1
        # a budget in epsilon is one without delta too; the parameters of a sentence depend on its identifier
        free = place in OPTIONAL or place[:2] in FREE or "parameters" in place[:4]
        if isinstance(inner, dict) and not free and not ("budget" in place and place[-1] == "delta"):
            del inner[place[-1]]
            assert faults(whole), place
            missing += 1
    assert tried > 200
    assert missing > 150


#: Places, and what cannot stand there.
WRONG: dict[str, tuple[object, ...]] = {
    "format": ("other",),
    "format_version": (1,),
    "private": (False,),
    "warning": ("NOT PRIVATE",),
    "more": (1,),
    "privacy/more": (1,),
    "privacy/private": (False,),
    "privacy/cost": (0.5, "-1", "1/0", "1e9"),
    "privacy/neighbours": ("anyone",),
    "privacy/unit": ({"records": 0}, {"id": "person"}),
    "privacy/guarantees/0/definition": ("pure DP",),
    "privacy/guarantees/0/parameters": ({"mu": 1, "rho": 1},),
    "privacy/guarantees/0/exact": ({"rho": "1"},),
    "privacy/budget/rho": (0.5,),
    "privacy/budget/epsilon": (-1,),
    "privacy/assumed/0/id": ("Two Words",),
    "privacy/ledger": ({"dataset": "people"},),
    "privacy/time": ("yesterday",),
    "privacy/measurement/sha256": ("0" * 63,),
    "confidence": (1,),
    "queries": (0,),
    "rmse": (-1,),
    "strategy/objective": ("least",),
    "strategy/parts/0/sensitivity": ("1",),
    "strategy/parts/0/scale/numerator": (0,),
    "strategy/parts/0/noise_stddev": (0,),
    "strategy/matrices/0/kind": ("unheard",),
    "strategy/matrices/0/shape": ([1],),
    "files/other.txt": ({"bytes": 1, "sha256": "0" * 64},),
    "answers/rows": (0,),
}


@pytest.mark.parametrize("place", WRONG)
def test_what_is_no_record_does_not_validate(written: dict[str, Any], place: str):
    steps = tuple(int(step) if step.isdigit() else step for step in place.split("/"))
    for value in WRONG[place]:
        assert faults(changed(written, steps, value)[0]), value


def test_the_command_prints_what_is_published():
    told = CliRunner().invoke(app, ["schema", "release"])
    assert told.exit_code == 0
    assert json.loads(told.stdout) == SCHEMA
    assert json.loads(CliRunner().invoke(app, ["schema", "specification"]).stdout) == json_schema()
    assert CliRunner().invoke(app, ["schema", "other"]).exit_code == 2
