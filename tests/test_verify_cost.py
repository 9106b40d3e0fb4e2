"""The file that checks a cost without this package, against this package and against forgers."""

import ast
import hashlib
import io
import shutil
import sys
import tracemalloc
from fractions import Fraction
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from flint import arb, ctx, fmpq
from hypothesis import given, settings

import matrixdp as mdp
from matrixdp.errors import StorageError, TooLargeError, WorkloadError
from matrixdp.exact import GridTree
from matrixdp.measure.calibration import plan_cost
from matrixdp.privacy import delta_of
from matrixdp.privacy.conversions import epsilon_of_gdp
from matrixdp.selection.registry import MECHANISMS, DataDependent
from matrixdp.storage.formats import load_measurement
from tests.builders import saved
from tests.exact.test_row_trees import random_row_trees
from tests.exact.test_trees import random_tree
from tests.forging import flip, forge_measurement, forge_record, put
from tests.independent import PROGRAM, found, run, verifier
from tests.storage.archives import npy

DOMAIN = mdp.Domain({"sex": ["female", "male"], "age": {"min": 0, "max": 5}, "code": 3})
TABLE = {"sex": ["male", "female"] * 6, "age": [0, 1, 2, 3, 4, 9] * 2, "code": [0, 1, 2] * 4}
WORKLOAD = mdp.Workload(
    DOMAIN,
    mdp.marginals([0, 1, 2]),
    mdp.product({"age": "prefix", "sex": "identity"}),
    mdp.dense(np.tri(18), ["age", "code"]),
)
UNIT = mdp.Unit(records=3)
SERIES: dict[str, Any] = {
    "domain": {"month": {"from": "2025-01-01", "to": "2025-06-30", "by": "month"}, "sex": ["f", "m"]},
    "workload": [
        {"product": {"month": ["identity", "prefix"], "sex": "identity"}},
        {"marginals": [["month"]]},
    ],
    "series": {"attribute": "month"},
    "privacy": {"rho": 0.5},
}
BUDGETS: dict[str, list[dict[str, Any]]] = {
    "gaussian": [{"epsilon": 1, "delta": 1e-6}, {"rho": 0.1}, {"mu": 0.7}],
    "laplace": [{"epsilon": 1}, {"epsilon": 0.3, "delta": 1e-9}, {"rho": 0.1}, {"mu": 0.7}],
}


@pytest.fixture(scope="module")
def released(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("released") / "out"
    budget = mdp.Budget(epsilon=1, delta=1e-6, neighbours="replace", unit=UNIT)
    saved(folder, WORKLOAD, budget, TABLE, mechanism="residual", noise="gaussian")
    return folder


@pytest.fixture
def forged(released: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(released, tmp_path / "forged"))


def test_it_runs_where_nothing_is_installed(released: Path, forged: Path) -> None:
    result = run(released)
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout.endswith("The cost is what is said.\n")
    assert "not checked that the noise was random" in result.stdout
    for wrong in ([], [forged / "none"], [released, released]):
        told = run(*wrong)
        assert told.returncode == 2
        assert "python verify_cost.py RELEASE_FOLDER" in told.stderr
    for name, content, words in (
        ("answers.parquet", "other", "release.json: the SHA-256 of answers.parquet"),
        ("release.json", "{", "the files are not those of a release"),
    ):
        (forged / name).write_text(content)
        told = run(forged)
        assert told.returncode == 1
        assert f"FAILED      {words}" in told.stdout


def test_what_is_not_decided_is_counted_in_the_verdict(tmp_path: Path) -> None:
    saved(tmp_path / "out", WORKLOAD, mdp.Budget(mu=40), TABLE, mechanism="identity", noise="gaussian")
    told = run(tmp_path / "out")
    assert told.returncode == 0
    lines = told.stdout.split("\n")
    undecided = sum(line.startswith("not checked ") and "release.json" in line for line in lines)
    assert undecided > 0
    assert told.stdout.endswith(f"But {undecided} of the lines above could not be decided here.\n")


def test_it_imports_the_standard_library_alone() -> None:
    nodes = list(ast.walk(ast.parse(PROGRAM.read_text(encoding="utf-8"))))
    names = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    names |= {node.module for node in nodes if isinstance(node, ast.ImportFrom)}
    assert names <= sys.stdlib_module_names
    assert not {"numpy", "matrixdp"} & names
    floats = [node for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, float)]
    assert floats == []


CASES = [
    (name, noise)
    for name, mechanism in MECHANISMS.items()
    if not isinstance(mechanism, DataDependent)
    for noise, norm in (("gaussian", 2), ("laplace", 1))
    if norm in mechanism.norms
]


SQUARE = mdp.Domain({"a": 4, "b": 4})
SMALL = {
    "marginals": mdp.Workload(SQUARE, mdp.marginals([0, 1, 2])),
    "prefixes": mdp.Workload(SQUARE, mdp.product({"a": "prefix", "b": "prefix"})),
    "levels": mdp.Workload(
        SQUARE,
        *[mdp.product({"a": own, "b": "identity"}) for own in ({"sets": [[0, 1], [2, 3]]}, "identity")],
    ),
    "few cells": mdp.Workload(mdp.Domain({"a": 2, "b": 4}), mdp.product({"a": "identity", "b": "prefix"})),
}


@pytest.mark.slow
@pytest.mark.parametrize(("mechanism", "noise"), CASES)
def test_it_agrees_on_every_mechanism(mechanism: str, noise: str, tmp_path: Path) -> None:
    between: list[dict[str, Any]] = [{}, {"neighbours": "replace"}, {"unit": UNIT}]
    kinds = [(kind, neighbours) for kind in BUDGETS[noise] for neighbours in between]
    parameters, neighbours = kinds[CASES.index((mechanism, noise)) % len(kinds)]
    budget = mdp.Budget(**parameters, **neighbours)
    few = [SMALL["few cells"]] if mechanism.startswith("min-") else SMALL.values()
    for workload in few:
        try:
            strategy = mdp.select(workload, mechanism=mechanism, noise=noise, budget=budget)
        except (WorkloadError, TooLargeError):  # it answers prefixes alone, or few cells
            continue
        break
    release = strategy.measure({"a": [0, 1], "b": [2, 3]}, budget).reconstruct()
    mdp.save_release(release, tmp_path / "out")
    holds, fails = found(tmp_path / "out")
    assert fails == []
    assert len(holds) >= 12
    cost = release.measurement.authorization.cost.value
    assert f"cost from the matrices and scales: {float(cost):.9g} = {cost}" in holds
    measured = release.measurement.plan, release.measurement.scales
    assert plan_cost(*measured, budget.neighbours).value == cost


PRODUCTS = mdp.Workload(
    mdp.Domain({"a": 6, "b": 5}),
    mdp.marginals([0, 1]),
    mdp.product({"a": "prefix", "b": "range"}),
    mdp.product({"a": "range", "b": "identity"}),
)
WEIGHED: dict[str, Any] = {"mechanism": "residual", "sub_solver": "product", "noise": "gaussian"}


def test_it_agrees_on_row_multipliers_and_merged_attributes(tmp_path: Path) -> None:
    budget = mdp.Budget(rho=0.2)
    release = saved(tmp_path / "weighed", PRODUCTS, budget, {"a": [0, 1], "b": [3, 4]}, **WEIGHED)
    assert any(part.multipliers is not None for part in release.measurement.plan.parts)
    assert found(tmp_path / "weighed")[1] == []
    for noise, mechanism in (("gaussian", "residual"), ("laplace", "opt-0")):
        release = saved(tmp_path / noise, WORKLOAD, budget, TABLE, mechanism=mechanism, noise=noise)
        blocks = [block for part in release.measurement.plan.parts for block in part.blocks]
        assert any(len(block.attributes) > 1 for block in blocks)
        assert found(tmp_path / noise)[1] == []


def test_it_agrees_on_places_within_areas(tmp_path: Path) -> None:
    """Rows within groups of values, with row multipliers and without, for either kind of neighbours."""
    areas = {"sets": [list(range(first, 1_100, 7)) for first in range(7)]}
    domain = mdp.Domain({"place": 1_100, "age": range(4)})
    crossed = mdp.product(place="identity", age="prefix"), mdp.product(place=areas, age="identity")
    workload = mdp.Workload(domain, *crossed, mdp.product(place="identity"))
    table = {"place": [3, 5, 1_099], "age": [0, 1, 3]}
    for neighbours in ("add_remove", "replace"):
        folder, budget = tmp_path / neighbours, mdp.Budget(rho=0.2, neighbours=neighbours)
        release = saved(folder, workload, budget, table, mechanism="residual", noise="gaussian")
        parts = release.measurement.plan.parts
        within = [part for part in parts if any("within" in vars(block.matrix) for block in part.blocks)]
        assert {part.multipliers is None for part in within} == {True, False}
        assert found(folder)[1] == []


# ---- sensitivities and bounds against other arithmetic


def array(values: np.ndarray, dtype: str = "<i4") -> tuple[tuple[int, ...], str, bytes]:
    return values.shape, dtype, values.astype(dtype).tobytes()


@st.composite
def matrices(draw: st.DrawFn) -> tuple[Any, np.ndarray]:
    """A matrix as the program reads it, and written out."""
    kind = draw(
        st.sampled_from(["identity", "centered", "integer", "grid-tree", "merged", "tree", "row-trees"])
    )
    size = draw(st.integers(1, 4))
    if kind in ("identity", "centered"):
        eye = np.eye(size, dtype=np.int64)
        return verifier.Block({"kind": kind, "size": size}, {}), eye if kind == "identity" else size * eye - 1
    if kind == "grid-tree":
        sizes, branching = draw(st.tuples(st.integers(1, 4), st.integers(1, 4))), draw(st.integers(2, 3))
        height = next(k for k in range(9) if branching**k >= max(sizes)) + draw(st.integers(0, 1))
        weights = (*draw(st.lists(st.integers(0, 3), min_size=height, max_size=height)), 2)
        form = {"kind": kind, "sizes": list(sizes), "branching": branching, "weights": list(weights)}
        return verifier.Block(form, {}), GridTree(sizes, branching, weights).written()
    if kind == "tree":
        random = np.random.default_rng(draw(st.integers(0, 99)))
        tree = random_tree(random, told=draw(st.booleans()), families=draw(st.integers(0, 2)))
        named, keys = dict[str, Any](), ("groups", "weights", "beside", "beside_weights")
        for key in keys:
            named |= {f"{key} {place}": array(one) for place, one in enumerate(getattr(tree, key))}
        own = {key: [name for name in named if name.split()[0] == key] for key in keys}
        form = {"kind": kind, **own}
        block = verifier.Block(form, named)
        assert block.written() == tree.written().tolist()
        assert [block.column_sums(p) for p in (1, 2)] == [tree.column_sums(p).tolist() for p in (1, 2)]
        assert verifier.divisor([block], None) == tree.divisor
        return block, tree.written()
    if kind == "row-trees":
        random = np.random.default_rng(draw(st.integers(0, 99)))
        trees = random_row_trees(random, whole=draw(st.booleans()))
        named = {"entries": array(trees.entries)}
        for key in ("groups", "weights"):
            named |= {f"{key} {place}": array(one) for place, one in enumerate(getattr(trees, key))}
        form = {key: [name for name in named if name.split()[0] == key] for key in ("groups", "weights")}
        block = verifier.Block({"kind": kind, **form, "entries": "entries"}, named)
        assert block.written() == trees.written().tolist()
        assert [block.column_sums(p) for p in (1, 2)] == [trees.column_sums(p).tolist() for p in (1, 2)]
        return block, trees.written()
    rows = draw(st.lists(st.lists(st.integers(-5, 5), min_size=size, max_size=size), min_size=1, max_size=4))
    entries = np.array(rows, dtype=np.int64)
    if kind == "integer":
        return verifier.Block({"kind": kind, "entries": "x"}, {"x": array(entries, "<i8")}), entries
    groups = np.array(draw(st.permutations([*range(size), *draw(st.lists(st.integers(0, size - 1)))])))
    counts = np.bincount(groups)
    if draw(st.booleans()):
        within = np.where(counts > 1, draw(st.lists(st.integers(0, 3), min_size=size, max_size=size)), 0)
        told, alike = np.flatnonzero(within[groups]), groups[:, None] == groups
        rows = within[groups][:, None] * (np.diag(counts[groups]) - alike)
        form = {**MERGED, "groups": ["g"], "within": "w"}
        arrays = {"e": array(entries), "g": array(groups), "w": array(within)}
        return verifier.Block(form, arrays), np.vstack([entries[:, groups], rows[told]])
    arrays = {"e": array(entries), "g": array(groups), "h": array(np.zeros(2))}
    return verifier.Block(MERGED, arrays), np.repeat(entries[:, groups], 2, axis=1)


MERGED = {"kind": "merged", "groups": ["g", "h"], "matrix": {"kind": "integer", "entries": "e"}}


@given(st.lists(matrices(), max_size=2), st.sampled_from([1, 2]), st.data())
@settings(max_examples=150, deadline=None)
def test_sensitivities_are_those_of_the_written_out_matrix(drawn: Any, p: int, data: st.DataObject) -> None:
    whole = np.ones((1, 1), dtype=np.int64)
    for block, dense in drawn:
        entries = np.abs(dense).astype(np.int64)
        assert (block.rows, block.columns) == entries.shape
        assert block.largest_sum(p) == (entries**p).sum(axis=0).max()
        whole = np.kron(whole, entries)
    blocks = [block for block, _ in drawn]
    assert verifier.sensitivity(blocks, None, p) == (whole**p).sum(axis=0).max()
    factors = [data.draw(st.integers(1, 9)) for _ in range(min(len(whole), 60))]
    if len(factors) == len(whole):
        weighed = (whole * np.array(factors)[:, None]) ** p
        assert verifier.sensitivity(blocks, factors, p) == weighed.sum(axis=0).max()


@pytest.mark.parametrize(
    "wrong",
    [
        {"sizes": [4]},
        {"sizes": [4, -1]},
        {"weights": [1, 1, 0]},
        {"weights": [1, True, 1]},
        {"weights": []},
        {"branching": 1},
        {"weights": [1, 1]},
    ],
    ids=str,
)
def test_trees_that_are_none_are_refused(wrong: dict[str, Any]) -> None:
    form = {"kind": "grid-tree", "sizes": [4, 3], "branching": 2, "weights": [1, 0, 1]}
    assert verifier.Block(form, {}).rows == 13
    with pytest.raises(ValueError, match="tree over a grid"):
        verifier.Block({**form, **wrong}, {})


@pytest.mark.parametrize(
    ("groups", "weights"),
    [
        ([[0, 0, 0]], [[1], [1, 1]]),
        ([[0, 0, 0], [0, 1]], [[1], [1, 1]]),
        ([[0, 0, 0], [0, 1, -1]], [[1], [1, 1]]),
        ([[0, 0, 0], [0, 1, 2]], [[1], [1, 1]]),
        ([[0, 0, 0], [0, 1, 1]], [[1], [1, 1, 1]]),
        ([[0, 0, 0], [0, 1, 1]], [[-1], [1, 1]]),
        ([[0, 0, 0], [0, 1, 1]], [[1], [1, -1]]),
    ],
    ids=str,
)
def test_levels_that_are_no_tree_are_refused(groups: list[list[int]], weights: list[list[int]]) -> None:
    named = {f"{k}": array(np.array(own)) for k, own in enumerate((*groups, *weights))}
    names = list(named)
    form = {"kind": "tree", "groups": names[: len(groups)], "weights": names[len(groups) :]}
    with pytest.raises(ValueError, match="a tree of values"):
        verifier.Block(form, named)


@pytest.mark.parametrize(
    ("groups", "other", "says"),
    [
        ([2, 0, 2], [0, 0], "one is empty"),
        ([1, 0, 1], [0, 1], "not those of their matrix"),
        ([10**6, 0, 1], [0, 0], "one is empty"),
    ],
)
def test_groups_that_are_none_are_refused(groups: list[int], other: list[int], says: str) -> None:
    arrays = {"e": np.ones((3, 2)), "g": np.array(groups), "h": np.array(other)}
    tracemalloc.start()
    with pytest.raises(ValueError, match=says):
        verifier.Block(MERGED, {name: array(values) for name, values in arrays.items()})
    assert tracemalloc.get_traced_memory()[1] < 10**6  # not counted up to
    tracemalloc.stop()


def enclosed(ball: arb, low: Fraction, high: Fraction) -> bool:
    below, above = (arb(fmpq(end.numerator, end.denominator)) for end in (low, high))
    return bool(below <= ball.upper()) and bool(ball.lower() <= above) and high - low < Fraction(1, 2**500)


@given(st.fractions(-29, 29, max_denominator=1000))
@settings(max_examples=30, deadline=None)
def test_bounds_enclose_what_ball_arithmetic_finds(x: Fraction) -> None:
    with ctx.workprec(4000):
        ball = arb(fmpq(x.numerator, x.denominator))
        normal = (ball / arb(2).sqrt()).erfc() / 2
        assert enclosed(normal, verifier.tail(x, up=False), verifier.tail(x, up=True))
        y = abs(x) * 8
        whole = arb(fmpq(y.numerator, y.denominator))
        assert enclosed(whole.exp(), verifier.exp(y, up=False), verifier.exp(y, up=True))
        assert enclosed(whole.sqrt(), verifier.root(y, 1500, up=False), verifier.root(y, 1500, up=True))


@pytest.mark.parametrize(("mu", "epsilon"), [(0.5, 1), (1, 0.1), (3, 20), (0.1, 0.5), (5, 2)])
def test_the_gaussian_curve_is_decided_to_many_places(mu: float, epsilon: float) -> None:
    exact_mu, exact_epsilon = Fraction(mu), Fraction(epsilon)
    delta = delta_of(exact_mu, exact_epsilon)
    assert verifier.gaussian_keeps(exact_mu**2, exact_epsilon, delta) is True
    below = delta * (1 - Fraction(1, 2**50))
    assert verifier.gaussian_keeps(exact_mu**2, exact_epsilon, below) is False
    assert verifier.within(True, exact_mu**2, epsilon=exact_epsilon, delta=delta) is True


def test_what_is_out_of_its_range_is_not_decided() -> None:
    one = Fraction(1)
    assert verifier.gaussian_keeps(one, Fraction(301), one) is None
    assert verifier.gaussian_keeps(one / 10**6, one, one) is None
    assert verifier.pure_is_gdp(one, Fraction(61)) is None


def test_budgets_are_compared_exactly() -> None:
    within, tiny = verifier.within, Fraction(1, 2**100)
    half = Fraction(1, 2)
    for gaussian, cost, budget in (
        (True, Fraction(1), {"rho": half}),
        (True, Fraction(1), {"mu": Fraction(1)}),
        (False, Fraction(1), {"rho": half}),
        (False, half, {"epsilon": half}),
        (False, half, {"epsilon": half, "delta": tiny}),
        (False, epsilon_of_gdp(half), {"mu": half}),
    ):
        assert within(gaussian, cost, **budget) is True
        assert within(gaussian, cost * (1 + Fraction(1, 2**40)), **budget) is False
    assert within(True, tiny, epsilon=half) is False  # Gaussian noise is never pure
    assert within(True, tiny) is False
    assert within(True, tiny, rho=half, mu=half) is False
    assert within(True, tiny, rho=half, delta=half) is False


# ---- forgeries whose checksums are right


def scale_of(factor: Fraction):
    def change(header: dict[str, Any], _members: object) -> None:
        steps, power = header["noise"][0]
        header["noise"][0] = [str(Fraction(steps) * factor), power]

    return change


def test_a_forged_scale_is_found(forged: Path) -> None:
    forge_measurement(forged, scale_of(Fraction(2)))  # more noise, on paper
    fails = found(forged)[1]
    assert any(words.startswith("cost from the matrices") for words in fails)
    forge_measurement(forged, scale_of(Fraction(1, 2)))
    assert found(forged)[1] == []


def test_a_cost_above_the_budget_is_found_though_it_is_said_everywhere(forged: Path) -> None:
    forge_measurement(forged, scale_of(Fraction(1, 3)))
    [words] = [words for words in found(forged)[1] if words.startswith("cost from")]
    cost = words.rpartition(" = ")[2]
    forge_measurement(forged, lambda header, _: header["authorization"].update(cost=cost))
    forge_record(
        forged, lambda record: [record[own].update(cost=cost) for own in ("privacy", "authorization")]
    )
    fails = found(forged)[1]
    assert any("records that move cost" in words for words in fails)
    assert any("zero-concentrated DP" in words for words in fails)
    assert not any(words.startswith("cost from") for words in fails)


def entered(header: dict[str, Any]) -> dict[str, Any]:
    """Return the form of a matrix that has entries."""
    return next(form for form in header["plan"]["matrices"] if "entries" in form)


def matrix_entry(header: dict[str, Any], members: dict[str, bytes]) -> None:
    flip(members, entered(header)["entries"], -2, 0x40)  # a larger last entry


def fewer_parts(header: dict[str, Any], members: dict[str, bytes]) -> None:
    del header["plan"]["parts"][-1], header["noise"][-1]


def unit_of(records: Any) -> Any:
    return lambda header, _: header["authorization"]["budget"]["unit"].update(records=records)


def noise_of(*scale: Any) -> Any:
    return lambda header, _: header.update(noise=[scale] * len(header["noise"]))


@pytest.mark.parametrize(
    "change",
    [
        matrix_entry,
        fewer_parts,
        lambda header, _: header.update(values=entered(header)["entries"]),
        lambda header, _: header["plan"]["matrices"].extend([entered(header)] * 100),
        lambda header, _: header["plan"]["matrices"].append({"kind": "identity", "size": 2}),
        lambda header, _: entered(header).update(unsupported=entered(header)["entries"]),
        *(unit_of(records) for records in (0, -1, True, "3", 3.0)),
        *(noise_of(*scale) for scale in (("0", 0), ("1", 10**9), ("1", 0.5))),
        lambda header, _: header["noise"].pop(),
        lambda header, _: header.update(format_version=99),
        lambda header, _: header["plan"]["matrices"][0].update(kind="sparse"),
        lambda header, _: header["plan"].update(noise="none"),
        lambda header, _: header["plan"]["parts"][0].update(blocks=[[[0], -1]]),
        lambda header, members: members.update({header["values"]: members[header["values"]] + b"1"}),
    ],
)
def test_forged_measurements_are_found(forged: Path, change: Any, capsys: Any) -> None:
    forge_measurement(forged, change)
    assert verifier.main([str(forged)]) == 1
    assert "FAILED" in capsys.readouterr().out
    with pytest.raises(StorageError):
        mdp.load_release(forged)


def over_month(header: dict[str, Any]) -> dict[str, Any]:
    """Return the form of the matrix over the periods, which are the first attribute, of the first part."""
    (place,) = [place for positions, place in header["plan"]["parts"][0]["blocks"] if positions == [0]]
    return header["plan"]["matrices"][place]


def later_in_earlier(header: dict[str, Any], members: dict[str, bytes]) -> None:
    name = over_month(header)["entries"]
    members[name] = npy(np.load(io.BytesIO(members[name]))[::-1].copy())


def tied_to_another(header: dict[str, Any], members: dict[str, bytes]) -> None:
    header["plan"]["parts"][0]["blocks"][0][0] = [1]


def tied_twice(header: dict[str, Any], members: dict[str, bytes]) -> None:
    """Let a part have a block over months alone, and one more over months and sexes."""
    next(block for part in header["plan"]["parts"] for block in part["blocks"] if block[0] == [1])[0] = [0, 1]


def factors_over_time(header: dict[str, Any], members: dict[str, bytes]) -> None:
    rows = len(np.load(io.BytesIO(members[over_month(header)["entries"]])))
    header["plan"]["parts"][0]["multipliers"] = "factors.npy"
    members["factors.npy"] = npy(np.arange(1, rows + 1, dtype="<i8"))


def measured_too_early(header: dict[str, Any], members: dict[str, bytes]) -> None:
    values = np.load(io.BytesIO(members[header["values"]]))
    values[-1] = 1
    members[header["values"]] = npy(values)


def replaced(header: dict[str, Any], members: dict[str, bytes]) -> None:
    header["authorization"]["budget"].update(neighbours="replace", rho="2")  # twice as far


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (later_in_earlier, "lower triangular"),
        (tied_to_another, "one block over month alone"),
        (tied_twice, "one block over month alone"),
        (factors_over_time, "no row factor changes"),
        (measured_too_early, "1 rows hold what is not measured yet"),
        (replaced, "add or remove"),
    ],
)
def test_a_forged_series_is_found(tmp_path: Path, change: Any, says: str) -> None:
    series = mdp.Series.start(SERIES, tmp_path / "series")
    series.publish({"month": ["2025-01-04"] * 9, "sex": ["f"] * 9}, "2025-01")
    assert len([words for words in found(series.folder)[0] if words.startswith("a series")]) == 5
    assert verifier.main([str(series.folder)]) == 0
    forge_measurement(series.folder, change)
    assert [says in words for words in found(series.folder)[1] if words.startswith("a series")] == [True]
    assert verifier.main([str(series.folder)]) == 1
    with pytest.raises(StorageError):
        load_measurement(series.folder / "measurement.mdp")


def charged_at_once(header: dict[str, Any], members: dict[str, bytes]) -> None:
    del header["plan"]["by_period"]


def of_other_values(header: dict[str, Any], members: dict[str, bytes]) -> None:
    for unit in (header["plan"]["persons"], header["authorization"]["budget"]["unit"]):
        unit["per"] = ["sex"]


def with_records_each(header: dict[str, Any], members: dict[str, bytes]) -> None:
    for unit in (header["plan"]["persons"], header["authorization"]["budget"]["unit"]):
        unit.update(max_records_each=2)


def uneven(header: dict[str, Any], members: dict[str, bytes]) -> None:
    part = next(part for part in header["plan"]["parts"] if [own for own, _ in part["blocks"]] == [[0]])
    part["multipliers"] = "factors.npy"
    members["factors.npy"] = npy(np.arange(1, 7, dtype="<i8"))


@pytest.mark.parametrize("change", [charged_at_once, of_other_values, with_records_each, uneven])
def test_a_forged_series_of_persons_is_found(tmp_path: Path, change: Any) -> None:
    unit = {"id": "p", "per": "month", "max_values": 3, "max_records": 6, "max_records_each": 3}
    series = mdp.Series.start({**SERIES, "unit": unit}, tmp_path / "series")
    series.publish({"month": ["2025-01-04"] * 9, "sex": ["f"] * 9, "p": list("aaabbbcde")}, "2025-01")
    assert verifier.main([str(series.folder)]) == 0
    forge_measurement(series.folder, change)
    assert verifier.main([str(series.folder)]) == 1
    with pytest.raises(StorageError):
        load_measurement(series.folder / "measurement.mdp")


def test_an_array_that_nothing_names_is_found(forged: Path) -> None:
    forge_measurement(forged, lambda _, members: members.update(other=b"\x93NUMPY\x01\x00"))
    assert verifier.main([str(forged)]) == 1


def test_row_multipliers_that_are_narrow_are_found(tmp_path: Path) -> None:
    """They would be widened anew for every part that names them."""
    saved(tmp_path / "out", PRODUCTS, mdp.Budget(rho=0.2), {"a": [0, 1], "b": [3, 4]}, **WEIGHED)

    def narrow(header: dict[str, Any], members: dict[str, bytes]) -> None:
        name = next(part["multipliers"] for part in header["plan"]["parts"] if "multipliers" in part)
        members[name] = npy(np.load(io.BytesIO(members[name])).astype(np.int32))

    forge_measurement(tmp_path / "out", narrow)
    assert verifier.main([str(tmp_path / "out")]) == 1
    with pytest.raises(StorageError, match="multipliers are not integers"):
        mdp.load_release(tmp_path / "out")


PURE = {"definition": "pure DP", "exact": {"epsilon": "9"}, "parameters": {"epsilon": 9}}


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (("privacy", "cost"), "1/3"),
        (("privacy", "guarantees", 0, "exact", "mu"), "1/1000"),
        (("privacy", "guarantees", 0, "parameters", "mu"), 0.001),
        (("privacy", "guarantees", 0, "definition"), "pure DP"),
        (("privacy", "guarantees", 0), PURE),
        (("privacy", "guarantees", 1, "exact", "rho"), "1/1000"),
        (("privacy", "guarantees", 2, "exact", "epsilon"), "1/2"),
        (("privacy", "guarantees", 2, "exact", "delta"), "1/10000000"),
        (("privacy", "guarantees", 3, "parameters", "delta"), 9e-7),
        (("privacy", "noise"), "laplace"),
        (("privacy", "neighbours"), "add_remove"),
        (("privacy", "unit", "records"), 1),
        (("privacy", "private"), False),
        (("privacy", "budget", "epsilon"), 0.9),
        (("privacy", "budget", "exact", "delta"), "1/10000000"),
        (("privacy", "budget", "neighbours"), "add_remove"),
        (("privacy", "budget", "unit", "records"), 1),
        (("privacy", "measurement", "sha256"), "0" * 64),
        (("authorization", "cost"), "1"),
        (("authorization", "noise"), "laplace"),
        (("authorization", "budget", "epsilon"), 2.0),
        (("authorization", "budget", "unit"), {"id": "person", "records": 3}),
        (("strategy", "parts", 1, "scale", "numerator"), 3),
        (("strategy", "parts", 1, "scale", "text"), "3/7"),
        (("strategy", "parts", 1, "squared_sensitivity"), "1"),
        (("strategy", "parts", 1, "attributes"), []),
        (("private",), False),
        (("warning",), "NOT PRIVATE"),
        (("files", "measurement.mdp", "sha256"), "0" * 64),
        (("files", "more.csv"), {"sha256": False}),
        (("privacy", "guarantees", 0, "parameters", "epsilon"), 0.01),
    ],
)
def test_forged_figures_of_the_statement_are_found(forged: Path, place: tuple[str, ...], value: Any) -> None:
    forge_record(forged, lambda record: put(record, place, lambda _: value))
    assert found(forged)[1] != []


def test_names_in_a_release_write_no_lines_of_their_own(forged: Path, capsys: pytest.CaptureFixture) -> None:
    name = "x\nThe cost is what is said.\x1b[2J"
    (forged / name).write_bytes(b"")
    listed = {"sha256": hashlib.sha256(b"").hexdigest()}
    forge_record(forged, lambda record: record["files"].update({name: listed, "none": listed}))
    assert verifier.main([str(forged)]) == 1
    told = capsys.readouterr().out
    assert "The cost is what is said.\n" not in told
    assert "\x1b" not in told


def test_files_in_disorder_are_told_in_one_line(forged: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, change in (
        ("measurement.mdp", lambda old: old[: len(old) // 2]),
        ("measurement.mdp", lambda old: b""),
        ("measurement.mdp", lambda old: old[:-200] + b"?" + old[-199:]),
        ("release.json", lambda old: old.replace(b'"private"', b'"private": true, "private"', 1)),
        ("release.json", lambda old: b"[]"),
        ("release.json", lambda old: old.replace(b'"rmse": ', b'"rmse": 1e999, "other": ', 1)),
    ):
        original = (forged / name).read_bytes()
        (forged / name).write_bytes(change(original))
        assert verifier.main([str(forged)]) == 1
        assert "FAILED      the files are not those of a release" in capsys.readouterr().out
        (forged / name).write_bytes(original)


def test_it_says_where_a_part_is_too_large(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    saved(tmp_path / "out", PRODUCTS, mdp.Budget(rho=0.2), {"a": [0], "b": [1]}, **WEIGHED)
    assert verifier.main([str(tmp_path / "out")]) == 0
    monkeypatch.setattr(verifier, "MOST_WORK", 10)
    assert verifier.main([str(tmp_path / "out")]) == 1
    assert "too large for this program" in capsys.readouterr().out
