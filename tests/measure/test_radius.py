"""Releases with tables under one radius: costs, errors, files, what is rejected, and intervals that hold."""

import io
import itertools
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
from matrixdp.answers.intervals import Intervals
from matrixdp.errors import MatrixDPError, PrivacyError, StorageError, UnsupportedQueryError, WorkloadError
from matrixdp.exact import CenteredMatrix, IntegerMatrix, WalkMatrix
from matrixdp.measure.calibration import NoiseScale, calibrate, plan_cost
from matrixdp.measure.measurement import Periods
from matrixdp.measure.noisy_answers import noisy
from matrixdp.model.constraints import Constraints
from matrixdp.model.likelihood import Evidence
from matrixdp.noise import GAUSSIAN, LAPLACE, Cost, SeededSource, Tails
from matrixdp.plans import Block, Direct, Part, Split
from matrixdp.storage.formats import load_measurement
from matrixdp.testing.plugins import check_plan
from tests.builders import saved
from tests.forging import forge_measurement
from tests.independent import run
from tests.measure.test_integer_noise import checked

SURVEY = mdp.Workload(mdp.Domain({f"q{k}": 2 for k in range(5)} | {"s": 5}), mdp.marginals(1))
MIXED = mdp.Workload(
    mdp.Domain({"a": 2, "b": 2, "c": 3, "d": 4, "big": 90}),
    mdp.marginals(1),
    mdp.product(a="identity", b="identity", c="identity"),
    mdp.product(c="identity", d={"ranges": [[0, 1], [2, 3], [1, 3]]}),
)
WORKLOADS = {"survey": SURVEY, "mixed": MIXED}


@pytest.mark.parametrize("name", WORKLOADS)
def test_plans_are_what_a_dense_recomputation_says(name: str):
    domain, groups = WORKLOADS[name].domain, WORKLOADS[name].entries
    if name == "mixed":  # few enough cells to be written out
        domain = mdp.Domain({"a": 2, "b": 2, "c": 3, "d": 4, "big": 5})
    workload = mdp.Workload(domain, *groups)
    selection = mdp.select(workload, noise="laplace", mechanism="radius").selection
    assert len(selection.plan.under_radius) >= 7
    check_plan(selection.plan, workload)
    assert (selection.plan.cost, selection.plan.replacement_cost) == pytest.approx((1.0, 4.0))
    assert selection.certificate.loss == pytest.approx(selection.weighted_squared_error, rel=1e-9)


@pytest.mark.parametrize("neighbours", ["add_remove", "replace"])
def test_log_ratios_over_all_moves_are_at_most_the_cost(neighbours: Any):
    """Of what is released on its lattice, in noise drawn wide and narrow, between every two neighbours."""
    domain = mdp.Domain({"a": 2, "b": 3})
    workload = mdp.Workload(domain, mdp.product(a="identity", b="identity"), mdp.marginals(1))
    plan = mdp.select(workload, noise="laplace", mechanism="radius").selection.plan
    assert len(plan.under_radius) == len(plan.parts) == 4
    budget = mdp.Budget(epsilon=2, neighbours=neighbours)
    scales, cost = calibrate(plan, LAPLACE.cost(budget), 100, neighbours)
    [scale] = set(scales)
    assert plan.radius is not None
    widths, unit = plan.radius.lattice_widths(scale.steps), int(Fraction(2) ** -scale.power)

    def height(rows: list[np.ndarray]) -> Fraction:
        found = Fraction(0)
        for part, own, width in zip(plan.parts, rows, widths, strict=True):
            # the total and signs alone are one number d, that of (d, 0); else the rows are n z - sum of z
            z = own[: part.cells] if part.cells > 2 else np.array([own[0], 0])
            divisor = part.cells if part.cells > 2 else 1
            norm = Fraction(int(np.abs(z - np.sort(z)[(len(z) - 1) // 2]).sum()), divisor)
            found = max(found, norm - width)
        return found

    def answers(cell: tuple[int, int]) -> list[np.ndarray]:
        table = np.zeros(domain.shape, dtype=np.int64)
        table[cell] = unit
        whole = []
        for part in plan.parts:
            others = tuple(axis for axis, one in enumerate(domain.names) if one not in part.attributes)
            whole.append(np.array(part.answers(np.asarray(table.sum(axis=others)), 2 * unit).values()))
        return whole

    cells = [answers(cell) for cell in itertools.product(range(2), range(3))]
    zero = [np.zeros_like(own) for own in cells[0]]
    moves = (
        cells
        if neighbours == "add_remove"
        else [[x - y for x, y in zip(one, other, strict=True)] for one in cells for other in [*cells, zero]]
    )
    largest, source = Fraction(0), np.random.default_rng(5)
    for size in (1, 10, 100):
        for _ in range(60):
            drawn = [
                np.rint(source.normal(0, size * float(scale.steps), part.cells)).astype(np.int64)
                for part in plan.parts
            ]
            noise = [part.radius_noise(own) for part, own in zip(plan.parts, drawn, strict=True)]
            before = height(noise)
            for move in moves:
                after = height([x + y for x, y in zip(noise, move, strict=True)])
                largest = max(largest, abs(Fraction(after) - before))
    found, moved = largest / scale.steps, 2 if neighbours == "replace" else 1
    assert cost.value * moved * Fraction(9, 10) <= found <= cost.value * moved


BUDGETS = [
    mdp.Budget(epsilon=1),
    mdp.Budget(epsilon=3, unit=mdp.Unit(records=3), neighbours="replace"),
    mdp.Budget(mu=Fraction(1, 2)),
    mdp.Budget(epsilon=50),
    mdp.Budget(epsilon=Fraction(1, 10**7)),
]


@pytest.mark.parametrize("budget", BUDGETS, ids=lambda budget: budget.words)
@pytest.mark.parametrize("name", WORKLOADS)
def test_releases_are_verified(name: str, budget: mdp.Budget, tmp_path: Path):
    release = saved(tmp_path / "out", WORKLOADS[name], budget, mechanism="radius", noise="laplace")
    folder = tmp_path / "out"
    assert mdp.verify_release(folder).failed == ()
    checked(folder)
    record = json.loads((folder / "release.json").read_text())
    assert any("radius_width" in part for part in record["strategy"]["parts"])
    told = mdp.explain_release(folder)
    assert "one radius" in told
    alone = len(release.measurement.plan.parts) - len(release.measurement.plan.under_radius)
    assert ("independent laplace noise" in told) == (alone > 0)
    again, _ = load_measurement(folder / "measurement.mdp")
    assert again.scales == release.measurement.scales
    assert again.plan.radius == release.measurement.plan.radius is not None
    for own, other in zip(again.values, release.measurement.values, strict=True):
        assert np.array_equal(own, other)


@pytest.mark.parametrize("neighbours", ["add_remove", "replace"])
def test_counts_out_of_domain_and_ledgers_go_with_it(neighbours: Any, tmp_path: Path):
    strategy = mdp.select(SURVEY, noise="laplace", neighbours=neighbours)
    budget = mdp.Budget(epsilon=1, neighbours=neighbours)
    ledger = mdp.Ledger.create(tmp_path / "ledger", "people", mdp.Budget(epsilon=2, neighbours=neighbours))
    table = {name: [0, 1, 7] for name in SURVEY.domain.names}
    release = strategy.measure(table, budget, out_of_domain={"count": True}, ledger=ledger).reconstruct()
    folder = mdp.save_release(release, tmp_path / "out")
    assert mdp.verify_release(folder).failed == ()
    checked(folder)


Change = Callable[[dict[str, Any]], object]


def every(header: dict[str, Any], **fields: Any) -> None:
    for part in header["plan"]["parts"]:
        part.update(fields)


FORGED: dict[str, Change] = {
    "a coarse lattice": lambda header: header.update(noise=[["1048576", 1]] * len(header["noise"])),
    "on multiples": lambda header: header.update(noise=[["1", 0, 1]] * len(header["noise"])),
    "several scales": lambda header: header["noise"].__setitem__(0, ["9999999", -20]),
    "less noise": lambda header: header.update(noise=[["524288", -20]] * len(header["noise"])),
    "a negative width": lambda header: every(header, width=-1),
    "a width that is none": lambda header: every(header, width=0.5),
    "one without a width": lambda header: header["plan"]["parts"][1].pop("width"),
    "a plan of another kind": lambda header: header["plan"].update(kind="union"),
    "gaussian noise": lambda header: header["plan"].update(noise="gaussian"),
    "tables that are not centred": lambda header: header["plan"]["matrices"][0].update(kind="identity"),
    "a series": lambda header: header.update(series={"attribute": "q0", "published": [2]}),
}


@pytest.mark.parametrize("name", FORGED)
def test_forged_radii_are_found(name: str, tmp_path: Path):
    saved(tmp_path / "out", SURVEY, mdp.Budget(epsilon=1), noise="laplace")

    def change(header: dict[str, Any], _: dict[str, bytes]) -> None:
        FORGED[name](header)

    forge_measurement(tmp_path / "out", change)
    with pytest.raises(StorageError):
        mdp.load_release(tmp_path / "out")
    assert run(tmp_path / "out").returncode == 1


def moved(header: dict[str, Any], members: dict[str, bytes]) -> None:
    """Move one row of a centred table by one step, as noise of its own would."""
    values = np.load(io.BytesIO(members[header["values"]]))
    values[1] += 1
    members[header["values"]] = as_npy(values)


def measured_twice(header: dict[str, Any], members: dict[str, bytes]) -> None:
    """List the last part, of five rows, a second time."""
    header["plan"]["parts"].append(header["plan"]["parts"][-1])
    header["noise"].append(header["noise"][-1])
    values = np.load(io.BytesIO(members[header["values"]]))
    members[header["values"]] = as_npy(np.concatenate([values, values[-5:]]))


def as_npy(values: np.ndarray) -> bytes:
    written = io.BytesIO()
    np.save(written, values)
    return written.getvalue()


@pytest.mark.parametrize("change", [moved, measured_twice])
def test_answers_that_joint_noise_does_not_leave_are_found(change: Any, tmp_path: Path):
    saved(tmp_path / "out", SURVEY, mdp.Budget(epsilon=1), noise="laplace")
    forge_measurement(tmp_path / "out", change)
    with pytest.raises(MatrixDPError):
        mdp.load_release(tmp_path / "out")
    assert run(tmp_path / "out").returncode == 1


def test_widths_that_are_not_those_of_the_record_are_found(tmp_path: Path):
    saved(tmp_path / "out", SURVEY, mdp.Budget(epsilon=1), noise="laplace")
    forge_measurement(tmp_path / "out", lambda header, _: every(header, width=0))
    assert mdp.verify_release(tmp_path / "out").failed
    assert run(tmp_path / "out").returncode == 1


def test_an_amount_under_the_radius_is_found(tmp_path: Path):
    saved(tmp_path / "out", SURVEY, mdp.Budget(epsilon=1), noise="laplace")

    def change(header: dict[str, Any], _: dict[str, bytes]) -> None:
        header["workload"]["domain"][0][1] = {"amount": [0, 1], "step": 1}

    forge_measurement(tmp_path / "out", change)
    with pytest.raises(MatrixDPError):
        mdp.load_release(tmp_path / "out")
    assert run(tmp_path / "out").returncode == 1


def test_what_the_proof_does_not_cover_is_rejected():
    plan = mdp.select(SURVEY, noise="laplace").selection.plan
    assert isinstance(plan, Split)
    total, first = plan.parts[:2]
    with pytest.raises(PrivacyError):
        replace(plan, noise=GAUSSIAN)
    with pytest.raises(PrivacyError):
        replace(plan, parts=(replace(total, variance=2.5), *plan.parts[1:]))
    with pytest.raises(PrivacyError):
        Direct(plan.domain, (first,), LAPLACE)
    with pytest.raises(PrivacyError):
        replace(first, multipliers=np.ones(2, dtype=np.int64))
    with pytest.raises(PrivacyError):
        Part(("q0",), (Block(("q0",), IntegerMatrix(np.eye(2, dtype=np.int64))),), 2.0, None, 0)
    names = ("s", "t")
    with pytest.raises(PrivacyError):
        Part(names, tuple(Block((name,), CenteredMatrix(3)) for name in names), 2.0, None, 0)
    good = NoiseScale.joint(1.0, 5, LAPLACE)
    assert plan_cost(plan, (good,) * len(plan.parts)).value == pytest.approx(1.0)
    for scale in (
        NoiseScale(Fraction(2**20), 1, LAPLACE),
        NoiseScale(Fraction(1), 0, LAPLACE, 1),
        NoiseScale(Fraction(2**20), -20, GAUSSIAN),
    ):
        with pytest.raises(PrivacyError):
            plan_cost(plan, (scale,) * len(plan.parts))
        answers = first.answers(np.ones(2, dtype=np.int64), 100)
        with pytest.raises(PrivacyError):
            noisy(answers, scale, SeededSource(1), shift=1, joint=np.zeros(2, dtype=np.int64))
    with pytest.raises(PrivacyError):
        plan_cost(plan, (replace(good, steps=good.steps + 1), *[good] * (len(plan.parts) - 1)))
    with pytest.raises(PrivacyError):
        Periods("q0").check(plan)
    with pytest.raises(PrivacyError):
        calibrate(plan, Cost(Fraction(10**6), LAPLACE), 100)


def test_selections_without_a_radius_and_other_programs_say_so():
    long = mdp.Workload(mdp.Domain({"a": 500}), mdp.product(a="prefix"))
    for workload, noise in ((long, "laplace"), (SURVEY, "gaussian")):
        with pytest.raises((WorkloadError, PrivacyError), match="radius"):
            mdp.select(workload, mechanism="radius", noise=noise)
    ranges = mdp.product(a="range", b="range")
    many = mdp.Workload(mdp.Domain({"a": 90, "b": 90, "c": 2, "d": 2}), ranges, mdp.marginals(1))
    with pytest.raises(WorkloadError, match="radius"):
        mdp.select(many, mechanism="radius", noise="laplace")
    pay = mdp.Domain({"pay": {"amount": [0, 10], "step": 5}, "a": 2, "b": 2})
    asked = mdp.Workload(pay, mdp.product(a="identity"), mdp.product(b="identity"), mdp.ask.sum("pay"))
    assert mdp.select(asked, budget=mdp.Budget(epsilon=1)).mechanism != "radius"
    table = {name: [1] for name in SURVEY.domain.names}
    release = mdp.select(SURVEY, noise="laplace").measure(table, mdp.Budget(epsilon=1)).reconstruct()
    with pytest.raises(UnsupportedQueryError):
        release.to_mbi()


def test_sums_of_a_walk_and_of_one_radius_have_the_bound_of_all_combinations():
    domain = mdp.Domain({"a": 2, "b": 2})
    blocks = ((), (Block(("a",), CenteredMatrix(2)),), (Block(("b",), WalkMatrix((0, 0))),))
    parts = [
        Part(tuple(name for block in few for name in block.attributes), few, 8.0, None, width)
        for few, width in zip(blocks, (0, 500, None), strict=True)
    ]
    weights = {"a": np.full(2, 0.5), "b": np.zeros(2)}
    plan = Split(domain, tuple(parts), LAPLACE, weights)
    walks = {place: part.walk for place, part in enumerate(plan.parts) if part.walk is not None}
    tails = Tails(LAPLACE, (math.inf,) * 3, walks, plan.radius, plan.under_radius)
    intervals = Intervals(plan.analysis, tails, 0.95)
    one, other = (entry.expand(domain)[0] for entry in (mdp.product(a="identity"), mdp.product(b="identity")))
    every = slice(None)
    bound = tails.largest_quantile(0.95)
    assert intervals.multipliers((1.0, one, every), (-1.0, other, every)) == bound
    assert np.max(intervals.multipliers((1.0, one, every))) < bound
    assert np.max(intervals.multipliers((1.0, other, every))) < bound


RMSE = {
    "10 questions": ([2] * 10, [mdp.marginals(1)], 4.524),
    "20 questions": ([2] * 20, [mdp.marginals(1)], 7.673),
    "40 questions": ([2] * 40, [mdp.marginals(1)], 13.776),
    "eight attributes": ([2, 5, 4, 7, 3, 2, 6, 2], [mdp.marginals(1)], 6.307),
    "pairs of questions": ([2] * 10, [mdp.marginals([1, 2])], 12.797),
}


@pytest.mark.parametrize("name", RMSE)
def test_auto_takes_the_radius_and_states_its_error(name: str):
    sizes, asked, expected = RMSE[name]
    workload = mdp.Workload(mdp.Domain({f"q{k}": size for k, size in enumerate(sizes)}), *asked)
    # beside pairs the search of others takes seconds
    mechanism = "radius" if "pairs" in name else "auto"
    strategy = mdp.select(workload, noise="laplace", mechanism=mechanism)
    assert strategy.mechanism == "radius"
    assert strategy.rmse(mdp.Budget(epsilon=1)) == pytest.approx(expected, abs=2e-3)
    certificate = strategy.selection.certificate
    assert certificate.lower_bound is None
    assert "radius" in certificate.scope


def test_widths_are_the_least_error_of_any_widths():
    best = mdp.select(MIXED, mechanism="radius", noise="laplace").selection
    random = np.random.default_rng(5)
    for _ in range(20):
        moved = tuple(
            part if part.width is None else replace(part, width=max(0, part.width + int(step)))
            for part, step in zip(best.plan.parts, random.integers(-900, 901, 20), strict=False)
        )
        other = replace(best.plan, parts=moved)
        loss = math.fsum(other.analysis.group(group).weighted for group in MIXED)
        assert loss >= best.weighted_squared_error * (1 - 1e-6)


def test_neither_noise_takes_it_where_the_other_is_better():
    budget = mdp.Budget(epsilon=1, delta=1e-6)
    for count, expected in ((20, "laplace"), (80, "gaussian")):
        workload = mdp.Workload(mdp.Domain({f"q{k}": 2 for k in range(count)}), mdp.marginals(1))
        assert str(mdp.select(workload, budget=budget).selection.plan.noise) == expected


@pytest.mark.parametrize("name", WORKLOADS)
def test_errors_and_intervals_of_releases_are_the_stated_ones(name: str):
    """Of 300 measurements, with the intervals that a release states: at 6 deviations."""
    workload, random, count = WORKLOADS[name], np.random.default_rng(3), 300
    table = {one: random.integers(0, workload.domain[one].size, 500) for one in workload.domain.names}
    strategy = mdp.select(workload, noise="laplace", mechanism="radius")
    exact = np.concatenate(
        [
            group.answers(
                np.histogramdd(
                    np.array([table[one] for one in group.attributes]).T,
                    [np.arange(size + 1) - 0.5 for size in group.sizes],
                )[0]
            ).ravel()
            for group in workload
        ]
    )
    answers = strategy.measure(table, mdp.Budget(epsilon=1)).reconstruct().answers
    far = answers.column("upper").to_numpy() - answers.column("estimate").to_numpy()
    deviations = answers.column("stddev").to_numpy()
    errors = []
    for seed in range(count):
        measured = strategy.measure(table, mdp.Budget(epsilon=1), seed_not_private=seed).measurement
        errors.append(np.concatenate([measured.estimates.answers(group) for group in workload]) - exact)
    inside = (np.abs(errors) <= far).mean(axis=0)
    assert (inside > 0.95 - 6 * math.sqrt(0.95 * 0.05 / count)).all()
    assert inside.mean() < 0.985
    assert abs(np.mean((np.array(errors) / deviations) ** 2) - 1) < 0.1
    assert (far / deviations < 2.3).all()


def test_models_are_fitted_to_it():
    """The loss of the true table has half a chi-square variable's mean, and spreads as is allowed for."""
    random, strategy = np.random.default_rng(9), mdp.select(SURVEY, noise="laplace")
    names = SURVEY.domain.names
    table = {name: random.integers(0, SURVEY.domain[name].size, 3000) for name in names}
    losses = []
    for seed in range(60):
        measured = strategy.measure(table, mdp.Budget(epsilon=1), seed_not_private=seed)
        evidence = Evidence.of(measured.measurement, Constraints.of(SURVEY.domain))
        total = 0.0
        for part in evidence.parts:
            own = np.bincount(table[part.attributes[0]], minlength=SURVEY.domain[part.attributes[0]].size)
            total += part.loss(own.astype(np.float64))
        losses.append(total)
    assert 2.0 * np.mean(losses) / evidence.degrees == pytest.approx(1.0, abs=0.25)
    assert np.std(losses) < 1.3 * evidence.spread
    assert measured.reconstruct().model().accepted


def test_strategies_are_saved(tmp_path: Path):
    strategy = mdp.select(SURVEY, noise="laplace")
    strategy.save(tmp_path / "survey.mdp")
    again = mdp.Strategy.load(tmp_path / "survey.mdp")
    assert again.selection.plan.radius == strategy.selection.plan.radius
    assert again.rmse(mdp.Budget(epsilon=1)) == strategy.rmse(mdp.Budget(epsilon=1))
