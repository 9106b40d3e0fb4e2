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


def record(folder: Path) -> dict[str, Any]:
    return json.loads((folder / "release.json").read_text())


def faults(written: object) -> list[str]:
    return [f"{error.json_path}: {error.message[:200]}" for error in VALIDATOR.iter_errors(written)]


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


@pytest.mark.parametrize(
    ("workload", "mechanism"),
    [
        *((MARGINALS, name) for name in OF_MARGINALS),
        *((MIXED, name) for name in OF_ALL),
        *((LINE, name) for name in OF_LINES),
    ],
)
@pytest.mark.parametrize("budget", [GAUSSIAN, LAPLACE], ids=["gaussian", "laplace"])
def test_every_mechanism_validates(
    workload: mdp.Workload, mechanism: str, budget: mdp.Budget, tmp_path: Path
):
    try:
        strategy = mdp.select(workload, mechanism=mechanism, budget=budget)
    except mdp.MatrixDPError:
        # those that are made for one norm alone
        assert (mechanism, budget) in {(name, LAPLACE) for name in ("dense", "residualplanner", "fourier")}
        return
    out = mdp.save_release(strategy.measure(TABLE, budget).reconstruct(), tmp_path / "out")
    assert faults(record(out)) == []


@pytest.mark.parametrize(
    "budget",
    [
        mdp.Budget(mu=1),
        mdp.Budget(epsilon=1, delta=1e-6),
        mdp.Budget(epsilon=1, delta=1e-6, neighbours="replace"),
        mdp.Budget(rho=1e-9),
        mdp.Budget(mu=50),
        mdp.Budget(rho=0.5, unit={"records": 3}),
        mdp.Budget(epsilon=1, unit={"id": "person", "records": 2}),
    ],
    ids=repr,
)
@pytest.mark.parametrize("noise", ["gaussian", "laplace"])
def test_every_budget_and_unit_validates(budget: mdp.Budget, noise: str, tmp_path: Path):
    if budget.kind == "pure":
        noise = "laplace"
    strategy = mdp.select(LINE, mechanism="identity", budget=budget, noise=noise)
    measured = strategy.measure(TABLE, budget, out_of_domain={"sex": {"other": "male"}}, max_records=100)
    out = mdp.save_release(measured.reconstruct(confidence=0.5), tmp_path / "out", csv=True)
    written = record(out)
    assert faults(written) == []
    assert written["privacy"]["unit"] == budget.unit.as_dict()


def test_other_ways_to_a_release_validate(tmp_path: Path):
    budget = mdp.Budget(rho=0.5)
    strategy = mdp.select(MARGINALS, targets={"sex": 5.0})
    seeded = strategy.measure(TABLE, budget, seed_not_private=1).reconstruct()
    assert faults(record(mdp.save_release(seeded, tmp_path / "seeded"))) == []
    alone = strategy.measure(TABLE, strategy.least_budget()).reconstruct()
    assert faults(record(mdp.save_release(alone, tmp_path / "alone", max_answers=0))) == []
    ledger = mdp.Ledger.create(tmp_path / "people.ledger", "people", mdp.Budget(rho=2))
    debited = strategy.measure(TABLE, budget, ledger=ledger).reconstruct()
    written = record(mdp.save_release(debited, tmp_path / "debited"))
    assert written["privacy"]["ledger"]["dataset"] == "people"
    assert faults(written) == []
    bare = mdp.Release(debited.measurement, debited.workload)
    assert faults(record(mdp.save_release(mdp.load_release(tmp_path / "debited"), tmp_path / "again"))) == []
    assert bare.origin == {}
    empty = mdp.Release(alone.measurement, alone.workload)
    assert faults(record(mdp.save_release(empty, tmp_path / "bare"))) == []
    (tmp_path / "t.csv").write_text("sex,age,income\nmale,1,5\n")
    quoted = strategy.measure(tmp_path / "t.csv", budget, quoted_newlines=True).reconstruct()
    assert faults(record(mdp.save_release(quoted, tmp_path / "quoted"))) == []


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    budget = mdp.Budget(epsilon=1, delta=1e-6)
    release = mdp.select(MIXED, budget=budget, noise="gaussian").measure(TABLE, budget).reconstruct()
    return record(mdp.save_release(release, tmp_path_factory.mktemp("written") / "out", csv=True))


def places(written: object, place: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Every place in a record but what users write: domain, workload, names, words."""
    if place and place[0] in ("domain", "workload"):
        return
    if place:
        yield place
    if isinstance(written, dict):
        for key, value in written.items():
            yield from places(value, (*place, key))
    elif isinstance(written, list):
        for position, value in enumerate(written):
            yield from places(value, (*place, position))


OPTIONAL = {("strategy", name) for name in ("mechanism", "reason", "objective", "certificate")} | {
    ("files", "answers.csv"),
    ("files", "answers.parquet"),
}


#: Whose keys are not all needed, or are names of what there is.
FREE = {("strategy", "certificate"), ("privacy", "versions"), ("answers", "attributes")}


def test_every_place_has_a_type_and_is_needed(written: dict[str, Any]):
    assert faults(written) == []
    tried = missing = 0
    for place in places(written):
        changed = copy.deepcopy(written)
        inner: Any = changed
        for step in place[:-1]:
            inner = inner[step]
        inner[place[-1]] = [[None]] if place[-1] != "attributes" else "sex"
        if place[:2] != ("privacy", "out_of_domain"):
            assert faults(changed), place
            tried += 1
        # a budget in epsilon is one without a delta too
        named = (
            isinstance(inner, dict)
            and place not in OPTIONAL
            and "parameters" not in place[:4]  # which a sentence has depends on its identifier
            and not ("budget" in place and place[-1] == "delta")
        )
        if named and place[:2] not in {
            ("strategy", "certificate"),
            ("privacy", "versions"),
            ("answers", "attributes"),
            ("answers", "bounds"),
        }:
            del inner[place[-1]]
            assert faults(changed), place
            missing += 1
    assert tried > 200
    assert missing > 150


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (("format",), "other"),
        (("format_version",), 1),
        (("private",), False),
        (("warning",), "NOT PRIVATE"),
        (("more",), 1),
        (("privacy", "more"), 1),
        (("privacy", "private"), False),
        (("privacy", "cost"), 0.5),
        (("privacy", "cost"), "-1"),
        (("privacy", "cost"), "1/0"),
        (("privacy", "cost"), "1e9"),
        (("privacy", "neighbours"), "anyone"),
        (("privacy", "unit"), {"records": 0}),
        (("privacy", "unit"), {"id": "person"}),
        (("privacy", "guarantees", 0, "definition"), "pure DP"),
        (("privacy", "guarantees", 0, "parameters"), {"mu": 1, "rho": 1}),
        (("privacy", "guarantees", 0, "exact"), {"rho": "1"}),
        (("privacy", "budget", "rho"), 0.5),
        (("privacy", "budget", "epsilon"), -1),
        (("privacy", "assumed", 0, "id"), "Two Words"),
        (("privacy", "ledger"), {"dataset": "people"}),
        (("privacy", "time"), "yesterday"),
        (("privacy", "measurement", "sha256"), "0" * 63),
        (("confidence",), 1),
        (("queries",), 0),
        (("rmse",), -1),
        (("strategy", "objective"), "least"),
        (("strategy", "parts", 0, "sensitivity"), "1"),
        (("strategy", "parts", 0, "scale", "numerator"), 0),
        (("strategy", "parts", 0, "noise_stddev"), 0),
        (("strategy", "matrices", 0, "kind"), "unheard"),
        (("strategy", "matrices", 0, "shape"), [1]),
        (("files", "other.txt"), {"bytes": 1, "sha256": "0" * 64}),
        (("answers", "rows"), 0),
    ],
)  # fmt: skip
def test_what_is_no_record_does_not_validate(
    written: dict[str, Any], place: tuple[str | int, ...], value: object
):
    changed = copy.deepcopy(written)
    inner: Any = changed
    for step in place[:-1]:
        inner = inner[step]
    inner[place[-1]] = value
    assert faults(changed)


def test_the_command_prints_what_is_published():
    told = CliRunner().invoke(app, ["schema", "release"])
    assert told.exit_code == 0
    assert json.loads(told.stdout) == SCHEMA
    assert json.loads(CliRunner().invoke(app, ["schema", "specification"]).stdout) == json_schema()
    assert CliRunner().invoke(app, ["schema", "other"]).exit_code == 2
