"""Releases with the noise of a walk: costs, files, what is rejected, and intervals that hold."""

import json
import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import matrixdp as mdp
from matrixdp.errors import (
    MatrixDPError,
    NumericalError,
    PrivacyError,
    StorageError,
    UnsupportedQueryError,
    WorkloadError,
)
from matrixdp.exact import (
    BlockWalkMatrix,
    CenteredMatrix,
    IdentityMatrix,
    IntegerMatrix,
    MergedMatrix,
    TreeWalkMatrix,
    WalkMatrix,
)
from matrixdp.exact.walks import MOST_NODES
from matrixdp.measure.calibration import NoiseScale, calibrate, plan_cost
from matrixdp.measure.measurement import Periods
from matrixdp.measure.noisy_answers import noisy
from matrixdp.model.constraints import Constraints
from matrixdp.model.likelihood import Evidence
from matrixdp.noise import GAUSSIAN, LAPLACE, Cost, SeededSource
from matrixdp.noise.walks import draw_walk
from matrixdp.plans import Block, Direct, Part
from matrixdp.selection.searches.walks import Nodes, block_walks, walk_for
from matrixdp.storage.formats import load_measurement
from tests.builders import saved
from tests.forging import forge_measurement
from tests.independent import run
from tests.measure.test_integer_noise import checked

AGES = mdp.Workload(mdp.Domain({"age": 12}), mdp.product(age="prefix"), mdp.product(age="range"))
BY_SEX = mdp.Workload(
    mdp.Domain({"sex": 2, "age": 20}),
    mdp.product(sex="identity", age={"ranges": [[0, 3], [4, 9], [0, 9], [10, 19], [4, 19]]}),
)
LONG = mdp.Workload(mdp.Domain({"age": 130}), mdp.product(age="prefix"))
LONG_BY_SEX = mdp.Workload(
    mdp.Domain({"sex": 2, "age": 130}),
    mdp.product(sex="identity", age="prefix"),
    mdp.product(age={"ranges": [[0, 17], [18, 64], [65, 129]]}),
)
HALVES = {"sets": [*([k] for k in range(12)), [0, 2, 4, 6, 8, 10], [1, 3, 5, 7, 9, 11]]}
AREAS = mdp.Workload(mdp.Domain({"area": 12}), mdp.product(area=HALVES), mdp.product(area="total"))
AREAS_BY_SEX = mdp.Workload(
    mdp.Domain({"sex": 2, "area": 13}),
    mdp.product(sex="identity", area={"sets": [*HALVES["sets"], [12]]}),
    mdp.product(area={"sets": HALVES["sets"][-2:]}, weight=9),
)
WIDTHS = (1500, 1000, 700, 0)
WALK, BLOCKS = WalkMatrix(WIDTHS), BlockWalkMatrix(4, (800, 500, 0), (1200, 0), (3, 2))
#: Two trees of four values: two leaves below one node; and three nodes that count twice, below a total.
TREES = TreeWalkMatrix(
    IntegerMatrix(
        np.array([[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 2, 0], [0, 0, 1, 0], [2, 2, 0, 3], [0, 0, 0, 0]])
    ),
    (3, 3, 5, 6, 5, 6),
    (900, 0, 1500, 400, 2000, 300),
)


def walk_plan(*others: Block, size: int = 4, groups: np.ndarray | None = None, walk: Any = WALK) -> Direct:
    matrix = walk if groups is None else MergedMatrix(walk, (groups,))
    domain = mdp.Domain({"b": 3, "a": size})
    return Direct.of(domain, [*others, Block(("a",), matrix)], LAPLACE)


TREE = Block(("b",), IntegerMatrix(np.array([[2, 2, 2], [1, 0, 0], [0, 1, 0], [0, 0, -3]])))
PLANS = {
    "alone": walk_plan(),
    "with others": walk_plan(TREE),
    "of groups": walk_plan(TREE, size=6, groups=np.array([0, 0, 1, 2, 2, 3])),
    "up trees": walk_plan(walk=TREES),
    "up trees with others": walk_plan(TREE, walk=TREES),
    "up trees of groups": walk_plan(TREE, size=6, groups=np.array([0, 0, 1, 2, 2, 3]), walk=TREES),
    "in blocks": walk_plan(walk=BLOCKS),
    "in blocks with others": walk_plan(TREE, walk=BLOCKS),
    "in blocks of groups": walk_plan(TREE, size=6, groups=np.array([0, 0, 1, 2, 2, 3]), walk=BLOCKS),
}


def answer_heights(noise: np.ndarray, widths: list[int], parents: tuple[int, ...] = ()) -> np.ndarray:
    """The exponents of the probabilities of noise, shape (draws, lines, n), from the definition of a walk."""
    total, before = np.zeros(noise.shape[:-1], dtype=np.int64), np.zeros_like(noise)
    for row, width in enumerate(widths):
        parent = parents[row] if parents else row + 1
        beyond = np.maximum(np.abs(noise[..., row] - before[..., row]) - width, 0)
        total += beyond
        if parent < len(widths):
            step = np.sign(noise[..., row] - before[..., row]) * beyond
            before[..., parent] += before[..., row] + step
    return total.sum(axis=-1)


@pytest.mark.parametrize("name", PLANS)
@pytest.mark.parametrize("neighbours", ["add_remove", "replace"])
def test_log_ratios_over_all_moves_are_at_most_the_cost(name: str, neighbours: Any):
    """Of what is released on its lattice, in noise drawn wide and narrow, between every two neighbours."""
    plan = PLANS[name]
    [part] = plan.parts
    [scale], cost = calibrate(
        plan, LAPLACE.cost(mdp.Budget(epsilon=2, neighbours=neighbours)), 100, neighbours
    )
    step = Fraction(2) ** scale.power
    assert scale.power <= 0
    assert part.walk is not None
    widths = [math.floor(own * scale.steps / 1024) for own in part.walk.widths]
    rows = part.blocks[0].matrix.written() if len(part.blocks) > 1 else np.ones((1, 1))
    columns = part.blocks[-1].matrix.written()
    cells = [
        np.outer(rows[:, i], columns[:, j]) for i in range(rows.shape[1]) for j in range(columns.shape[1])
    ]
    moves = list(cells)
    if neighbours == "replace":
        moves += [one - other for one in cells for other in cells]
    random = np.random.default_rng(3)
    shape = 2000, len(rows), len(widths)
    noise = np.concatenate(
        [np.rint(random.normal(0, size, shape) * float(scale.steps)) for size in (1, 3, 30)]
    )
    noise = noise.astype(np.int64)
    parents = part.walk.parents
    own, largest = answer_heights(noise, widths, parents), 0
    for move in moves:
        lattice = np.rint(move / float(step)).astype(np.int64)
        largest = max(largest, int(np.abs(answer_heights(noise + lattice, widths, parents) - own).max()))
    found, moved = Fraction(largest) / scale.steps, 2 if neighbours == "replace" else 1
    assert cost.value * moved * Fraction(99, 100) <= found <= cost.value * moved


@pytest.mark.parametrize("neighbours", ["add_remove", "replace"])
def test_all_records_of_a_person_cost_no_more_than_the_budget(neighbours: Any):
    """Of two records a person: every sum of two of the moves of one."""
    budget = mdp.Budget(epsilon=2, neighbours=neighbours, unit=mdp.Unit(records=2))
    [scale], _ = calibrate(PLANS["alone"], LAPLACE.cost(budget), 100, neighbours)
    widths = [math.floor(own * scale.steps / 1024) for own in WIDTHS]
    cells = [*np.tri(4).T, np.zeros(4)]
    moves = [one - other for one in cells for other in cells] if neighbours == "replace" else cells
    noise = np.random.default_rng(4).normal(0, 3 * float(scale.steps), (5000, 1, 4)).astype(np.int64)
    own, step = answer_heights(noise, widths), 2.0**scale.power
    both = [np.rint((one + other) / step).astype(np.int64) for one in moves for other in moves]
    largest = max(int(np.abs(answer_heights(noise + move, widths) - own).max()) for move in both)
    assert Fraction(199, 100) <= Fraction(largest) / scale.steps <= 2


def test_a_person_of_several_records_pays_for_each():
    budget = mdp.Budget(epsilon=2, unit=mdp.Unit(records=4))
    [scale], _ = calibrate(PLANS["with others"], LAPLACE.cost(budget), 100)
    [one], _ = calibrate(PLANS["with others"], LAPLACE.cost(mdp.Budget(epsilon=2)), 100)
    assert scale.exact == pytest.approx(4 * one.exact, rel=1e-9)


@pytest.mark.parametrize("name", PLANS)
def test_costs_are_those_of_one_record_and_of_two(name: str):
    plan = PLANS[name]
    assert (plan.cost, plan.replacement_cost) == pytest.approx((1.0, 4.0))
    together = plan.moves
    assert max(map(max, together[1])) == 2 * max(map(max, together[0]))


BUDGETS = [
    mdp.Budget(epsilon=1),
    mdp.Budget(epsilon=3, unit=mdp.Unit(records=3), neighbours="replace"),
    mdp.Budget(mu=Fraction(1, 2)),
    mdp.Budget(epsilon=50),
    mdp.Budget(epsilon=Fraction(1, 10**7)),
]


@pytest.mark.parametrize(
    ("workload", "budget"),
    [
        *((asked, budget) for asked in (AGES, BY_SEX) for budget in BUDGETS),
        (AREAS, BUDGETS[0]),
        (AREAS_BY_SEX, BUDGETS[1]),
        (LONG, BUDGETS[0]),
        (LONG_BY_SEX, BUDGETS[1]),
    ],
    ids=lambda own: getattr(own, "words", "-".join(getattr(getattr(own, "domain", None), "names", ()))),
)
def test_releases_are_verified(workload: mdp.Workload, budget: mdp.Budget, tmp_path: Path):
    release = saved(tmp_path / "out", workload, budget, mechanism="walk", noise="laplace")
    folder = tmp_path / "out"
    assert mdp.verify_release(folder).failed == ()
    checked(folder)
    record = json.loads((folder / "release.json").read_text())
    assert "walk" in {matrix["kind"] for matrix in record["strategy"]["matrices"]}
    assert "The rows of a walk" in mdp.explain_release(folder)
    again, _ = load_measurement(folder / "measurement.mdp")
    assert again.scales == release.measurement.scales
    assert np.array_equal(again.values[0], release.measurement.values[0])
    assert again.tails.walks == release.measurement.tails.walks


def test_counts_out_of_domain_and_ledgers_go_with_it(tmp_path: Path):
    strategy = mdp.select(AGES, noise="laplace")
    ledger = mdp.Ledger.create(tmp_path / "ledger", "people", mdp.Budget(epsilon=2))
    table, rules = {"age": [0, 1, 99]}, {"count": True}
    release = strategy.measure(table, mdp.Budget(epsilon=1), out_of_domain=rules, ledger=ledger).reconstruct()
    assert release.measurement.authorization.cost.value <= 1
    folder = mdp.save_release(release, tmp_path / "out")
    assert mdp.verify_release(folder).failed == ()
    checked(folder)


Change = Callable[[dict[str, Any]], object]
FORGED: dict[str, Change] = {
    "a coarse lattice": lambda header: header.update(noise=[["1048576", 1]]),
    "on multiples": lambda header: header.update(noise=[["1", 0, 1]]),
    "a negative width": lambda header: header["plan"]["matrices"][-1].update(widths=[-1] * 12),
    "a width that is none": lambda header: header["plan"]["matrices"][-1].update(widths=[0.5] * 12),
    "no widths": lambda header: header["plan"]["matrices"][-1].update(widths=[]),
    "gaussian noise": lambda header: header["plan"].update(noise="gaussian"),
    "less noise": lambda header: header.update(noise=[["524288", -20]]),
    "a series": lambda header: header.update(series={"attribute": "age", "published": [12]}),
}


def of_blocks(**changed: Any) -> Change:
    return lambda header: header["plan"]["matrices"][-1].update(changed)


def of_trees(**changed: Any) -> Change:
    return lambda header: header["plan"]["matrices"][-1].update(changed)


FORGED_TREES: dict[str, Change] = {
    "a coarse lattice": FORGED["a coarse lattice"],
    "less noise": FORGED["less noise"],
    "a series": lambda header: header.update(series={"attribute": "area", "published": [12]}),
    "gaussian noise": FORGED["gaussian noise"],
    "a parent before its node": of_trees(above=[*range(1, 14), 0, 15]),
    "a node above itself": of_trees(above=[0, *range(2, 16)]),
    "a parent that is none": of_trees(above=[True, *range(2, 16)]),
    "a parent beyond": of_trees(above=[*range(1, 15), 16]),
    "fewer parents": of_trees(above=[14] * 14),
    "a negative width": of_trees(widths=[-1] * 15),
    "a width that is none": of_trees(widths=[0.5] * 15),
    "fewer widths": of_trees(widths=[0] * 14),
    "a centred matrix": of_trees(matrix={"kind": "centered", "size": 12}),
}
FORGED_BLOCKS: dict[str, Change] = {
    "a coarse lattice": FORGED["a coarse lattice"],
    "less noise": FORGED["less noise"],
    "smaller weights": of_blocks(weights=[1, 1]),
    "a weight of 0": of_blocks(weights=[0, 1]),
    "weights that are none": of_blocks(weights=[1.5, 1]),
    "three weights": of_blocks(weights=[1, 1, 1]),
    "a negative width": of_blocks(between=[-1] * 9),
    "no widths": of_blocks(within=[]),
    "fewer blocks": of_blocks(between=[0] * 8),
    "more values": of_blocks(size=150),
    "one walk": lambda header: header["plan"]["matrices"][-1].update(kind="walk", widths=[0] * 130),
}


@pytest.mark.parametrize(
    ("workload", "name"),
    [
        *((AGES, name) for name in FORGED),
        *((LONG, name) for name in FORGED_BLOCKS),
        *((AREAS, name) for name in FORGED_TREES),
    ],
)
def test_forged_walks_are_found(workload: mdp.Workload, name: str, tmp_path: Path):
    saved(tmp_path / "out", workload, mdp.Budget(epsilon=1), mechanism="walk", noise="laplace")
    forged = (FORGED if workload is AGES else FORGED_TREES if workload is AREAS else FORGED_BLOCKS)[name]

    def change(header: dict[str, Any], _: dict[str, bytes]) -> None:
        forged(header)

    forge_measurement(tmp_path / "out", change)
    with pytest.raises(StorageError):
        mdp.load_release(tmp_path / "out")
    assert run(tmp_path / "out").returncode == 1


def test_an_amount_beside_a_walk_is_found(tmp_path: Path):
    """The domain of a release is changed to one whose records are divided."""
    saved(tmp_path / "out", BY_SEX, mdp.Budget(epsilon=1), noise="laplace")

    def change(header: dict[str, Any], _: dict[str, bytes]) -> None:
        header["workload"]["domain"][0][1] = {"amount": [0, 1], "step": 1}

    forge_measurement(tmp_path / "out", change)
    with pytest.raises(MatrixDPError):
        mdp.load_release(tmp_path / "out")
    assert run(tmp_path / "out").returncode == 1


def test_what_the_proof_does_not_cover_is_rejected():
    walk, domain = Block(("a",), WalkMatrix(WIDTHS)), mdp.Domain({"b": 4, "a": 4})
    part = Part(("a",), (walk,), 2.0)
    with pytest.raises(PrivacyError, match="walk"):
        Direct(domain, (replace(part, variance=99.0),), GAUSSIAN)
    with pytest.raises(PrivacyError, match="walk"):
        Part(("b", "a"), (Block(("b",), WalkMatrix(WIDTHS)), walk), 2.0)
    with pytest.raises(PrivacyError, match="walk"):
        Part(("a",), (walk,), 2.0, np.array([1, 1, 2, 1]))
    for widths in ((), (-1, 0), (1.5, 0), (2**40,)):
        with pytest.raises(NumericalError):
            WalkMatrix(widths)  # type: ignore[arg-type]
    for size, within, between, weights in (
        (4, (0, 0, 0, 0), (0,), (1, 1)),
        (4, (0, 0), (0, 0, 0), (1, 1)),
        (4, (0, -1), (0, 0), (1, 1)),
        (4, (0, 0), (0, 0), (2, 2)),
        (4, (0, 0), (0, 0), (1, 0)),
        (4, (0, 0), (0, 0), (1, 2**30)),
        (4, (0, 0), (0, 0), (1, 1, 1)),
    ):
        with pytest.raises(NumericalError):
            BlockWalkMatrix(size, within, between, weights)  # type: ignore[arg-type]
    for matrix, above, own in (
        (IntegerMatrix(np.eye(3, 2, dtype=np.int64)), (2, 2, 2), (0, 0, 0)),
        (IntegerMatrix(np.eye(3, 2, dtype=np.int64)), (2, 2, 4), (0, 0, 0)),
        (IntegerMatrix(np.eye(3, 2, dtype=np.int64)), (2, 2), (0, 0, 0)),
        (IntegerMatrix(np.eye(3, 2, dtype=np.int64)), (2, 2, 3), (0, 0)),
        (IntegerMatrix(2**21 * np.eye(3, 2, dtype=np.int64)), (2, 2, 3), (0, 0, 0)),
        (CenteredMatrix(3), (2, 2, 3), (0, 0, 0)),
        (IdentityMatrix(MOST_NODES + 1), (MOST_NODES + 1,) * (MOST_NODES + 1), (0,) * (MOST_NODES + 1)),
    ):
        with pytest.raises(NumericalError):
            TreeWalkMatrix(matrix, above, own)  # type: ignore[arg-type]
    plan = PLANS["alone"]
    for scale in (
        NoiseScale(Fraction(2**20), 1, LAPLACE),
        NoiseScale(Fraction(1), 0, LAPLACE, 1),
        NoiseScale(Fraction(2**20), -20, GAUSSIAN),
    ):
        with pytest.raises(PrivacyError):
            plan_cost(plan, (scale,))
        answers = plan.parts[0].answers(np.ones(4, dtype=np.int64), 100)
        with pytest.raises(PrivacyError):
            noisy(answers, scale, SeededSource(1), shift=1, walk=plan.parts[0].walk)
    by_period = Direct.of(domain, [Block(("b",), IdentityMatrix(4)), walk], LAPLACE)
    for attribute in ("a", "b"):
        with pytest.raises(PrivacyError, match="a walk in a series"):
            Periods(attribute).check(by_period)
    with pytest.raises(PrivacyError):
        calibrate(plan, Cost(Fraction(10**6), LAPLACE), 100)
    amounts = mdp.Domain({"b": {"amount": [0, 1], "step": 1}, "a": 4})
    with pytest.raises(PrivacyError, match="amounts"):
        calibrate(
            Direct.of(amounts, [Block(("b",), IdentityMatrix(2)), walk], LAPLACE),
            LAPLACE.cost(mdp.Budget(epsilon=1)),
            100,
        )


def test_selections_without_a_walk_and_other_programs_say_so():
    with pytest.raises(WorkloadError, match="walk"):
        mdp.select(mdp.Workload(mdp.Domain({"a": 8}), mdp.marginals(1)), mechanism="walk", noise="laplace")
    with pytest.raises(PrivacyError, match="walk"):
        mdp.select(AGES, mechanism="walk", noise="gaussian")
    pay = mdp.Domain({"pay": {"amount": [0, 10], "step": 5}, "a": 8})
    asked = mdp.Workload(pay, mdp.product(a="prefix"), mdp.ask.sum("pay"))
    assert mdp.select(asked, budget=mdp.Budget(epsilon=1)).mechanism != "walk"
    release = mdp.select(AGES, noise="laplace").measure({"age": [1]}, mdp.Budget(epsilon=1)).reconstruct()
    with pytest.raises(UnsupportedQueryError):
        release.to_mbi()


@pytest.mark.parametrize("workload", [AGES, BY_SEX, LONG, AREAS], ids=["ages", "by sex", "long", "areas"])
def test_models_are_fitted_to_walks(workload: mdp.Workload):
    """The loss of the true table is half a chi-square variable's mean: a walk's rows are combined for it."""
    random, strategy = np.random.default_rng(9), mdp.select(workload, mechanism="walk", noise="laplace")
    names = workload.domain.names
    table = {name: random.integers(0, workload.domain[name].size, 3000) for name in names}
    truth = np.zeros(workload.domain.shape)
    np.add.at(truth, tuple(table[name] for name in names), 1.0)
    losses = []
    for seed in range(60):
        measured = strategy.measure(table, mdp.Budget(epsilon=1), seed_not_private=seed)
        evidence = Evidence.of(measured.measurement, Constraints.of(workload.domain))
        [part] = evidence.parts
        order = [names.index(name) for name in part.free]
        losses.append(2.0 * part.loss(np.transpose(truth, order).ravel()) / part.degrees)
    assert np.mean(losses) == pytest.approx(1.0, abs=0.15)
    assert measured.reconstruct().model().accepted


RMSE = {
    "prefix 8": (mdp.Domain({"x": 8}), [mdp.product(x="prefix")], 2.4153),
    "prefix 64": (mdp.Domain({"x": 64}), [mdp.product(x="prefix")], 4.5699),
    "prefix 256": (mdp.Domain({"x": 256}), [mdp.product(x="prefix")], 6.4265),
    "range 64": (mdp.Domain({"x": 64}), [mdp.product(x="range")], 4.4387),
    "by sex": (mdp.Domain({"s": 2, "x": 64}), [mdp.product(s="identity", x="prefix")], 4.5699),
    "two groups": (
        mdp.Domain({"s": 2, "x": 64}),
        [mdp.product(s="identity", x="prefix"), mdp.product(x="prefix")],
        5.2769,
    ),
}


@pytest.mark.parametrize("name", RMSE)
def test_auto_takes_the_walk_and_states_its_error(name: str):
    domain, asked, expected = RMSE[name]
    workload = mdp.Workload(domain, *asked)
    strategy = mdp.select(workload, noise="laplace")
    assert strategy.mechanism == "walk"
    assert strategy.rmse(mdp.Budget(epsilon=1)) == pytest.approx(expected, abs=1e-3)
    certificate = strategy.selection.certificate
    assert certificate.lower_bound is None
    assert "walk" in certificate.scope
    assert certificate.loss == pytest.approx(strategy.selection.total_squared_error, rel=1e-6)


@pytest.mark.parametrize(
    ("asked", "expected"),
    [("prefix", 8.1306), ("range", 9.3089), ([[k, k + 31] for k in range(993)], 5.1176)],
)
def test_long_attributes_have_walks_in_blocks_where_they_err_less(asked: Any, expected: float):
    queries = {"ranges": asked} if isinstance(asked, list) else asked
    workload = mdp.Workload(mdp.Domain({"x": 1024}), mdp.product(x=queries))
    strategy = mdp.select(workload, mechanism="walk", noise="laplace")
    assert strategy.rmse(mdp.Budget(epsilon=1)) == pytest.approx(expected, abs=1e-3)
    [block] = strategy.selection.plan.parts[0].blocks
    assert block.matrix.kind == ("walk" if isinstance(asked, list) else "block-walk")


@pytest.mark.parametrize("size", [9, 10, 7])
def test_walks_in_blocks_are_answered_by_least_squares(size: int):
    """Against the normal equations of the rows and of the covariance of their noise, written out."""
    random, blocks = np.random.default_rng(size), -(-size // 3)
    matrix = BlockWalkMatrix(size, (900, 300, 50), tuple(range(0, 700 * blocks, 700)), (5, 3))
    rows = np.vstack(
        [5 * np.kron(np.eye(blocks), np.tri(3))[:size, :size], 3 * np.tri(blocks).repeat(3, 1)[:, :size]]
    )
    assert (matrix.written() == rows).all()
    noise = np.zeros((len(rows),) * 2)
    for start in range(0, size, 3):
        end = min(start + 3, size)
        noise[start:end, start:end] = WalkMatrix(matrix.within[: end - start]).noise_covariance
    noise[size:, size:] = WalkMatrix(matrix.between).noise_covariance
    part = Part(("x",), (Block(("x",), matrix),), 128.0)
    assert part.walk is not None
    np.testing.assert_allclose(part.walk.covariance(), noise)
    covariance = np.linalg.inv(rows.T @ np.linalg.solve(noise, rows))
    weights = covariance @ np.linalg.solve(noise, rows).T
    answers, queries = random.normal(size=(len(rows), 2)), random.normal(size=(size, 2))
    np.testing.assert_allclose(matrix.solve(answers), weights @ answers, atol=1e-12)
    np.testing.assert_allclose(matrix.coefficients(queries), weights.T @ queries, atol=1e-12)
    np.testing.assert_allclose(matrix.covariance(), covariance, atol=1e-12)
    np.testing.assert_allclose(matrix.covariance_times(queries), covariance @ queries, atol=1e-12)
    workload = mdp.Workload(mdp.Domain({"x": size}), mdp.dense(queries.T, attributes=["x"]))
    plan = Direct.of(workload.domain, part.blocks, LAPLACE)
    [group] = workload
    expected = plan.parts[0].variance * np.einsum("iq,ij,jq->q", queries, covariance, queries)
    np.testing.assert_allclose(plan.analysis.variances(group), expected, rtol=1e-9)
    assert plan.parts[0].variance == pytest.approx(2 * 8**2)


def test_what_a_replacement_costs_is_compared_where_it_counts():
    """A walk pays twice for it; parts of which the total does not move pay less."""
    line = mdp.Domain({"x": 12})
    for weight in (1.0, 1e4):
        asked = mdp.Workload(line, mdp.product(x="prefix"), mdp.product(x="total", weight=weight))
        found = {
            name: mdp.select(asked, noise="laplace", mechanism=name, neighbours="replace").selection
            for name in ("auto", "walk", "opt-m", "opt-kron")
        }
        errors = {name: own.weighted_squared_error for name, own in found.items()}
        assert errors["auto"] <= min(errors.values()) * (1 + 1e-6)


def test_strategies_are_saved(tmp_path: Path):
    strategy = mdp.select(AGES, noise="laplace")
    strategy.save(tmp_path / "ages.mdp")
    again = mdp.Strategy.load(tmp_path / "ages.mdp")
    assert again.selection.plan.parts[0].walk == strategy.selection.plan.parts[0].walk
    assert again.rmse(mdp.Budget(epsilon=1)) == strategy.rmse(mdp.Budget(epsilon=1))


def test_widths_are_the_least_error_of_any_widths():
    """Against widths that are moved, for a workload of weights and signs."""
    random = np.random.default_rng(5)
    rows = random.integers(-1, 3, (30, 7)).astype(float)
    workload = mdp.Workload(mdp.Domain({"x": 7}), mdp.dense(rows, attributes=["x"]))
    best = mdp.select(workload, mechanism="walk", noise="laplace").selection
    widths = best.plan.parts[0].walk.widths
    for _ in range(20):
        moved = tuple(
            int(max(0, own + step)) for own, step in zip(widths, random.integers(-60, 61, 7), strict=True)
        )
        other = Direct.of(workload.domain, [Block(("x",), WalkMatrix(moved))], LAPLACE)
        loss = math.fsum(other.analysis.group(group).total for group in workload)
        assert loss >= best.total_squared_error * (1 - 1e-9)


def test_widths_and_weights_in_blocks_are_at_a_least_error():
    """Against widths and weights that are moved, for prefixes of random weights."""
    random = np.random.default_rng(6)
    gram = np.tri(40).T @ (random.random((40, 1)) * np.tri(40))
    best = block_walks(gram, 7, 300)
    found = best.strategy
    assert isinstance(found, BlockWalkMatrix)

    def loss(within: Any, between: Any, weight: int) -> float:
        common = math.gcd(weight, 256)
        weights = weight // common, (256 - weight) // common
        one = BlockWalkMatrix(40, tuple(map(int, within)), tuple(map(int, between)), weights)
        return one.sensitivity**2 * float(np.vdot(gram, one.covariance()))

    weight = found.weights[0] * (256 // sum(found.weights))
    assert loss(found.within, found.between, weight) == pytest.approx(best.loss)
    for _ in range(30):
        within, between = (
            np.maximum(np.add(own, random.integers(-200, 201, len(own))), 0)
            for own in (found.within, found.between)
        )
        assert loss(within, between, weight + int(random.integers(-2, 3))) >= best.loss * (1 - 1e-7)


def levels(*fans: int, weights: tuple[float, ...] = (1.0, 1.0, 1.0, 1.0)) -> np.ndarray:
    """Queries for the nodes of a tree, by levels from single values to the total, each with a weight."""
    rows = np.eye(math.prod(fans))
    found = [weights[0] * rows]
    for fan, weight in zip(fans, weights[1:], strict=False):
        rows = rows.reshape(-1, fan, rows.shape[1]).sum(axis=1)
        found.append(weight * rows)
    return np.vstack(found)


@pytest.mark.parametrize(
    ("asked", "rmse"),
    [
        (levels(8), 1.7922),
        (levels(8, weights=(1, 5)), 4.5371),
        (levels(16, 4), 2.0265),
        (levels(8, 8), 2.0405),
        (levels(4, 4, 4), 2.2110),
        (levels(16, 4, weights=(1, 2, 4)), 3.7351),
        (levels(2, 2, 2)[:, [0, 4, 2, 6, 1, 5, 3, 7]], 1.9240),  # a path in another order
    ],
    ids=lambda own: None if isinstance(own, float) else "x".join(map(str, own.shape)),
)
def test_trees_have_the_least_error_that_widths_and_shares_give(asked: np.ndarray, rmse: float):
    """Figures of an independent search, and no better neighbour; the error is that of measured noise."""
    best = walk_for(asked.T @ asked, nodes=Nodes.of(asked))
    assert math.sqrt(2 * best.loss / len(asked)) == pytest.approx(rmse, abs=2e-4)
    found, random = best.strategy, np.random.default_rng(3)
    assert isinstance(found, TreeWalkMatrix)
    for _ in range(10):
        moved = np.maximum(np.add(found.widths, random.integers(-99, 100, found.rows)), 0)
        other = replace(found, widths=tuple(moved.tolist()))
        loss = other.sensitivity**2 * np.vdot(asked.T @ asked, other.covariance())
        assert loss >= best.loss * (1 - 1e-6)


def test_least_squares_of_trees_are_those_of_the_noise_that_is_drawn():
    drawn = draw_walk(TREES.widths, Fraction(1 << 20), 20_000, SeededSource(4), TREES.above) / 2.0**20
    np.testing.assert_allclose(TREES.solve(TREES.written()), np.eye(4), atol=1e-12)
    np.testing.assert_allclose(TREES.coefficients(np.eye(4)), TREES.solve(np.eye(6)).T)
    found = np.cov(TREES.solve(drawn.T)) / 2
    np.testing.assert_allclose(found, TREES.covariance(), atol=0.1 * TREES.covariance().max())
    np.testing.assert_allclose(np.linalg.inv(TREES.gram()), TREES.covariance(), atol=1e-12)


@pytest.mark.parametrize(
    "rows",
    [
        [[1, 1, 0], [0, 1, 1], [0, 0, 1]],  # they overlap
        [[1, 0, 0], [0, 1, 0], [0, 0, 1]],  # one level
        [[1, 1, 1], [1, 0, 0]],  # two values that nothing tells apart
        [[1, 1, 0], [1, 0, 0]],  # a value that is not asked about
        [[1, 2, 0], [1, 0, 0], [0, 0, 1]],
        [[1, -1, 0], [1, 0, 0], [0, 0, 1]],
        np.tri(12),  # too many levels
    ],
    ids=str,
)
def test_what_are_no_trees(rows: Any):
    assert Nodes.of(np.array(rows, dtype=np.float64)) is None


@pytest.mark.parametrize("workload", [AREAS, AREAS_BY_SEX], ids=["areas", "by sex"])
def test_auto_takes_trees_in_any_form(workload: mdp.Workload):
    strategy = mdp.select(workload, budget=mdp.Budget(epsilon=1))
    assert strategy.mechanism == "walk"
    assert TreeWalkMatrix in {type(block.matrix) for block in strategy.selection.plan.parts[0].blocks}
    if workload is AREAS:
        cells = np.eye(12)
        rows = np.vstack([*(cells[own].sum(axis=0) for own in HALVES["sets"]), np.ones(12)])
        again = mdp.Workload(workload.domain, mdp.dense(rows, ["area"]))
        least = mdp.select(again, budget=mdp.Budget(epsilon=1)).selection.total_squared_error
        assert least == pytest.approx(strategy.selection.total_squared_error)


@pytest.mark.parametrize("workload", [AREAS, AGES, LONG], ids=["areas", "ages", "long"])
def test_errors_and_intervals_of_releases_are_the_stated_ones(workload: mdp.Workload):
    """Of 400 measurements, with the intervals that a release states: at 6 deviations."""
    [name] = workload.domain.names
    table = {name: [0] * 300 + [5] * 500 + [9] * 200}
    strategy, count = mdp.select(workload, mechanism="walk", noise="laplace"), 400
    counts = np.bincount(table[name], minlength=workload.domain[name].size)
    pairs = [(i, j) for i in range(12) for j in range(i, 12)] if workload is AGES else []
    exact = np.concatenate([np.cumsum(counts), [counts[i : j + 1].sum() for i, j in pairs]])
    if workload is AREAS:
        exact = np.array([counts[own].sum() for own in HALVES["sets"]] + [counts.sum()])
    answers = strategy.measure(table, mdp.Budget(epsilon=1)).reconstruct().answers
    far, deviations = (
        answers.column("upper").to_numpy() - answers.column("estimate").to_numpy(),
        answers.column("stddev").to_numpy(),
    )
    errors = []
    for seed in range(count):
        measured = strategy.measure(table, mdp.Budget(epsilon=1), seed_not_private=seed).measurement
        own = [measured.estimates.answers(group) for group in workload]
        errors.append(np.concatenate(own) - exact)
    inside = (np.abs(errors) <= far).mean(axis=0)
    assert (np.abs(inside - 0.95) < 6 * math.sqrt(0.95 * 0.05 / count)).all()
    assert abs(np.mean((np.array(errors) / deviations) ** 2) - 1) < 0.1
    assert (far / deviations < 2.1).all()  # Laplace noise has 2.118 for one count


def statistics_inside(release: mdp.Release, counts: np.ndarray) -> list[bool]:
    """Whether intervals of the median, of a share and of all cumulative counts together hold the truth."""
    low, high = (mdp.product(age={"ranges": [own]}) for own in ([0, 4], [0, 11]))
    [share] = release.ratio(low, high).to_pylist()
    [median] = release.quantile("age", 0.5).to_pylist()
    together = release.simultaneous(mdp.product(age="prefix")).to_pylist()
    exact = np.cumsum(counts)
    return [
        median["lower"] <= int(np.searchsorted(exact, exact[-1] / 2)) <= median["upper"],
        share["lower"] <= exact[4] / exact[-1] <= share["upper"],
        all(row["lower"] <= own <= row["upper"] for row, own in zip(together, exact, strict=True)),
    ]


def test_statistics_have_intervals_of_their_own_noise():
    """Of 60 releases of one small table: at 5 deviations."""
    counts = np.array([3, 4, 5, 3, 6, 2, 4, 3, 5, 4, 2, 3])
    table = {"age": np.repeat(np.arange(12), counts)}
    strategy, count = mdp.select(AGES, noise="laplace"), 60
    found = [
        statistics_inside(
            strategy.measure(table, mdp.Budget(epsilon=1), seed_not_private=seed).reconstruct(), counts
        )
        for seed in range(count)
    ]
    assert (np.mean(found, axis=0) > 0.95 - 5 * math.sqrt(0.95 * 0.05 / count)).all()


@pytest.mark.parametrize("statistic", ["quantile", "cdf"])
def test_auto_takes_walks_for_statistics_too(statistic: str):
    domain = mdp.Domain({"age": {"min": 0, "max": 31}})
    strategy = mdp.select(
        mdp.Workload(domain, getattr(mdp.ask, statistic)("age")), budget=mdp.Budget(epsilon=1)
    )
    assert strategy.origin["mechanism"] == "walk"
