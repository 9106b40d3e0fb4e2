"""Ranges of persons' values under one radius: what they cost persons, errors, files, forgeries."""

import itertools
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
from matrixdp.errors import MatrixDPError, PrivacyError
from matrixdp.exact import CenteredMatrix, IdentityMatrix, RangeMatrix
from matrixdp.measure.calibration import calibrate, plan_cost, tails_of
from matrixdp.measure.measurement import begin
from matrixdp.noise import LAPLACE
from matrixdp.plans import Block, Part, Plan, Split
from matrixdp.testing.plugins import check_plan
from tests.builders import saved
from tests.forging import forge_measurement
from tests.independent import run, verifier

MONTHS = {"month": 12}


def unit(values: int = 12, constant: Any = (), each: int = 1, **given: Any) -> mdp.Unit:
    given = {"per": "month"} | given
    return mdp.Unit(id="person", max_values=values, max_records_each=each, constant=constant, **given)


def workload(sizes: dict[str, int], *tables: str) -> mdp.Workload:
    named: list[dict[str, Any]] = [dict.fromkeys(own.split(), "identity") for own in tables]
    asked = [mdp.product(**own) for own in named]
    return mdp.Workload(mdp.Domain(sizes), *asked)


def budget(own: mdp.Unit, **given: Any) -> mdp.Budget:
    return mdp.Budget(**({"epsilon": 1} | given), unit=own)


CLOSED = math.sqrt(14 * 15 / 6)
RMSE = {
    "months": (workload(MONTHS, "month"), unit(), CLOSED),
    "three records a month": (workload(MONTHS, "month"), unit(each=3), 3 * CLOSED),
    "of one year's records at most": (workload(MONTHS, "month"), unit(each=3, records=20), 3 * CLOSED),
    "six months": (workload(MONTHS, "month"), unit(6), CLOSED),
    "four months: Laplace noise": (workload(MONTHS, "month"), unit(4), 4 * math.sqrt(2)),
    "sex": (workload(MONTHS | {"sex": 2}, "month sex"), unit(constant="sex"), CLOSED),
    "sex that changes: Laplace noise": (
        workload(MONTHS | {"sex": 2}, "month sex"),
        unit(),
        12 * math.sqrt(2),
    ),
    "regions": (workload(MONTHS | {"region": 7}, "month region"), unit(constant="region"), CLOSED),
    "months and sex": (workload(MONTHS | {"sex": 2}, "month", "month sex"), unit(constant="sex"), 6.831),
    "questions": (
        workload(MONTHS | {f"q{k}": 2 for k in range(5)}, *(f"month q{k}" for k in range(5))),
        unit(constant=[f"q{k}" for k in range(5)]),
        20.933,
    ),
    "months and regions in per": (
        workload({"month": 4, "region": 3}, "month region"),
        unit(per=["month", "region"]),
        CLOSED,
    ),
}


@pytest.mark.parametrize("neighbours", ["add_remove", "replace"])
@pytest.mark.parametrize("name", RMSE)
def test_selections_reach_the_error_of_ranges(name: str, neighbours: Any):
    asked, own, expected = RMSE[name]
    both = budget(own, neighbours=neighbours)
    strategy = mdp.select(asked, budget=both)
    assert (strategy.mechanism == "persons") == ("Laplace" not in name)
    assert strategy.rmse(both) == pytest.approx(expected * (1 if neighbours == "add_remove" else 2), abs=2e-3)
    if strategy.mechanism == "persons":
        assert strategy.selection.certificate.lower_bound is None
        assert strategy.selection.certificate.loss == pytest.approx(
            strategy.selection.weighted_squared_error, rel=1e-6
        )


def test_neither_noise_takes_it_where_the_other_is_better():
    for months, expected in ((12, "laplace"), (52, "gaussian")):
        both = budget(unit(months), delta=1e-6)
        assert str(mdp.select(workload({"month": months}, "month"), budget=both).selection.noise) == expected


def of_records(plan: Plan) -> Plan:
    """The same for single records, at cost 1."""
    share = 1.000001 / float(plan.radius_share) ** 2
    parts = tuple(replace(part, variance=part.variance * share) for part in plan.parts)
    return replace(plan, persons=None, parts=parts)


SMALL = {
    "months": (workload({"month": 3}, "month"), unit(3)),
    "two records": (workload({"month": 2, "sex": 2}, "month sex"), unit(2, "sex", 2)),
    "sex": (workload({"month": 2, "sex": 2, "b": 2}, "month sex", "month b"), unit(2, ["sex", "b"])),
    "copies": (workload({"sex": 3, "month": 2, "b": 2}, "month sex", "month b sex"), unit(2, ["sex", "b"])),
    "beside another": (workload({"month": 3, "x": 3}, "month", "month x"), unit(3, each=2)),
}


@pytest.mark.parametrize("name", SMALL)
def test_plans_are_what_a_dense_recomputation_says(name: str):
    asked, own = SMALL[name]
    plan = made(name)
    assert plan.under_radius
    check_plan(of_records(plan), asked)
    assert (plan.cost, plan.replacement_cost) == pytest.approx((1.0, 4.0))
    assert plan.persons == own


def made(name: str) -> Split:
    """The plan of ranges, whether or not others have less error with so few values."""
    from matrixdp.selection.persons import select_ranges

    asked, own = SMALL[name]
    found = select_ranges(asked, own, LAPLACE)
    assert found is not None
    assert isinstance(found[0], Split)
    return found[0]


def persons_of(domain: mdp.Domain, own: mdp.Unit) -> list[np.ndarray]:
    """The tables of all persons that a unit allows."""
    names, cells = domain.names, list(itertools.product(*(range(domain[name].size) for name in domain.names)))
    constant, found = [names.index(name) for name in own.constant], []
    for counts in itertools.product(range(own.max_records_each + 1), repeat=len(cells)):
        held = [cell for cell, count in zip(cells, counts, strict=True) if count]
        if sum(counts) > own.records or len({tuple(cell[at] for at in constant) for cell in held}) > 1:
            continue
        months = np.zeros(domain["month"].size, dtype=int)
        for cell, count in zip(cells, counts, strict=True):
            months[cell[names.index("month")]] += count
        if months.max() <= own.max_records_each and np.count_nonzero(months) <= own.max_values:
            found.append(np.array(counts, dtype=np.int64).reshape(domain.shape))
    return found


@pytest.mark.parametrize("neighbours", ["add_remove", "replace"])
@pytest.mark.parametrize("name", SMALL)
def test_log_ratios_over_all_persons_are_at_most_the_cost(name: str, neighbours: Any):
    """Of what is released on its lattice, in noise drawn wide and narrow, between every two neighbours."""
    (asked, own), plan = SMALL[name], made(name)
    domain, both = asked.domain, budget(own, neighbours=neighbours)
    scales, cost = calibrate(plan, LAPLACE.cost(both), 100, neighbours)
    assert cost <= LAPLACE.cost(both)
    assert plan.radius is not None
    radius, first = plan.radius, scales[plan.under_radius[0]]
    widths, step = radius.lattice_widths(first.steps), int(Fraction(2) ** -first.power)

    def logarithm(rows: list[np.ndarray]) -> Fraction:
        """Minus the logarithm of the density, of each copy's own definition, and of independent noise."""
        total, heights = Fraction(0), [Fraction(0)] * radius.copies
        for part, one, scale in zip(plan.parts, rows, scales, strict=True):
            if part.width is None:
                total += Fraction(int(np.abs(one).sum())) * Fraction(2) ** first.power / scale.exact
                continue
            width = widths[plan.under_radius.index(plan.parts.index(part))]
            kinds = [block.matrix.kind for block in part.blocks]
            tensor = np.moveaxis(one.reshape(part.shape), kinds.index("range"), -1)
            for place, kind in enumerate(one for one in kinds if one != "range"):
                tensor = tensor if kind != "centered" else np.take(tensor, [0], axis=place)
            for copy, z in enumerate(tensor.reshape(-1, part.cells)):
                spread = Fraction(int(np.ptp(z)), part.cells)
                heights[copy] = max(heights[copy], spread - width)
        return total + sum(heights) / first.steps

    def answers(table: np.ndarray) -> list[np.ndarray]:
        whole = []
        for part in plan.parts:
            others = tuple(axis for axis, one in enumerate(domain.names) if one not in part.attributes)
            marginal = np.asarray((table * step).sum(axis=others))
            whole.append(np.array(part.answers(marginal, 100 * step).values()))
        return whole

    alone = [answers(table) for table in persons_of(domain, own)]
    random = np.random.default_rng(3)
    moves = alone
    if neighbours == "replace":
        pairs = random.integers(0, len(alone), (min(len(alone) ** 2, 250), 2))
        moves = [
            [x - y for x, y in zip(alone[one], alone[other], strict=True)] for one, other in pairs.tolist()
        ]
    elif len(moves) > 250:
        moves = [moves[place] for place in random.choice(len(moves), 250, replace=False)] + moves[-1:]
    largest = Fraction(0)
    for size in (0.01, 1, 30):
        for _ in range(8):
            noise = [
                part.radius_noise(own)
                if part.width is not None
                else np.rint(random.normal(0, size * float(first.steps), part.rows)).astype(np.int64)
                for part in plan.parts
                for own in [drawn(random, size * float(first.steps), part)]
            ]
            before = logarithm(noise)
            for move in moves:
                for sign in (1, -1):
                    after = logarithm([x + sign * y for x, y in zip(noise, move, strict=True)])
                    largest = max(largest, abs(after - before))
    assert largest <= cost.value * both.moved
    if name in ("months", "two records", "sex"):
        assert largest >= cost.value * both.moved * Fraction(2, 5)


def drawn(random: np.random.Generator, size: float, part: Part) -> np.ndarray:
    return np.rint(random.normal(0, size, (part.copies, part.cells))).astype(np.int64)


def test_units_for_which_the_range_says_nothing_pay_for_every_record():
    """A person who moves between cells, or whose sign changes, is charged as many single records."""
    asked = workload({"month": 2, "sex": 2}, "month sex")
    for constant, copies in (("sex", True), ((), True), ((), False)):
        own = unit(2, constant)
        matrix = IdentityMatrix(2) if copies else CenteredMatrix(2)
        part = Part(
            ("month", "sex"), (Block(("month",), RangeMatrix(2)), Block(("sex",), matrix)), 2.0, None, 0
        )
        weights = {name: np.zeros(2) for name in ("month", "sex")}
        plan = Split(asked.domain, (part,), LAPLACE, weights, persons=own)
        assert plan.radius_share == (Fraction(1, 2) if constant else 1)
        assert plan.cost == pytest.approx(0.25 if constant else 1.0)
    assert replace(plan, persons=None).radius_share == 1
    # a month alone holds two records of a person with one in each month by sex, or any number of one by sex
    months = replace(part, attributes=("month",), blocks=part.blocks[:1], variance=8.0 * 4)
    for per in (["month", "sex"], ["sex"]):
        own = unit(2, per=per)
        assert Split(asked.domain, (months,), LAPLACE, weights, persons=own).radius_share == 1
    assert Split(asked.domain, (months,), LAPLACE, weights, persons=unit(2)).radius_share == Fraction(1, 2)
    centred = replace(months, blocks=(Block(("month",), CenteredMatrix(2)),))
    assert Split(asked.domain, (centred,), LAPLACE, weights, persons=unit(2)).radius_share == 1


def table(sizes: dict[str, int], seed: int = 1) -> dict[str, Any]:
    random = np.random.default_rng(seed)
    found: dict[str, Any] = {name: random.integers(0, size, 300) for name, size in sizes.items()}
    return found | {"person": [f"p{k}" for k in random.integers(0, 60, 300)]}


def test_cells_with_noise_of_their_own_need_no_persons():
    """Counts of each cell and of a sign in it: of single records, with the bound of all combinations."""
    sizes = {"a": 3, "b": 2}
    asked = workload(sizes, "a", "b a")
    own = Block(("a",), IdentityMatrix(3))
    parts = (
        Part(("a",), (own,), 8.0, None, 0),
        Part(("a", "b"), (Block(("b",), CenteredMatrix(2)), own), 8.0, None, 700),
    )
    weights = {"a": np.zeros(3), "b": np.full(2, 0.5)}
    plan = Split(asked.domain, parts, LAPLACE, weights)
    check_plan(plan, asked)
    scales, _ = calibrate(plan, LAPLACE.cost(mdp.Budget(epsilon=1)), 100)
    tails = tails_of(plan, [math.inf] * len(scales))
    intervals = Intervals(plan.analysis, tails, 0.95)
    groups = list(asked)
    assert intervals.multipliers((1.0, groups[1], slice(None))) == tails.largest_quantile(0.95)


RELEASED = ["three records a month", "months and sex", "questions", "regions"]


@pytest.mark.parametrize("neighbours", ["add_remove", "replace"])
@pytest.mark.parametrize("name", RELEASED)
def test_releases_are_verified_and_spend_the_whole_budget(name: str, neighbours: Any, tmp_path: Path):
    asked, own, _ = RMSE[name]
    both, sizes = budget(own, neighbours=neighbours), {one.name: one.size for one in asked.domain}
    release = saved(tmp_path / "out", asked, both, table(sizes), noise="laplace")
    assert release.measurement.plan.radius_share == Fraction(own.max_records_each, own.records)
    cost = release.measurement.authorization.cost
    assert LAPLACE.cost(both).value * (1 - Fraction(1, 10**9)) < cost.value <= LAPLACE.cost(both).value
    assert mdp.verify_release(tmp_path / "out").failed == ()
    assert not [words for holds, words in verifier.checks(tmp_path / "out") if holds is not True]
    assert "max z - min z" in str(mdp.explain_release(tmp_path / "out"))


Change = Callable[[dict[str, Any]], object]


def with_unit(**given: Any) -> Change:
    """Say another unit everywhere in the measurement."""

    def change(header: dict[str, Any]) -> None:
        for own in (header["authorization"]["budget"]["unit"], header["plan"]["persons"]):
            own.update(given)

    return change


FORGED: dict[str, Change] = {
    "constants that are none": with_unit(constant=[]),
    "other constants": with_unit(constant=["region"]),
    "another attribute": with_unit(per=["region"], constant=["sex"]),
    "fewer records": with_unit(max_records_each=1, records=12),
    "more values": with_unit(records=36, max_values=12, max_records_each=3),
    "no unit of the plan": lambda header: header["plan"].pop("persons"),
    "another unit of the plan": lambda header: header["plan"]["persons"].update(max_records_each=1),
    "copies without a range": lambda header: header["plan"]["matrices"][0].update(kind="centered"),
    "signs in place of copies": lambda header: header["plan"]["parts"][0].update(width=None),
    "less noise": lambda header: header.update(noise=[["524288", -20]] * len(header["noise"])),
}


@pytest.mark.parametrize("name", FORGED)
def test_forged_ranges_are_found(name: str, tmp_path: Path):
    sizes = {"month": 12, "region": 3, "sex": 2}
    asked = workload(sizes, "month region", "month region sex")
    own = budget(unit(12, ["region", "sex"], 2))
    release = saved(tmp_path / "out", asked, own, table(sizes), noise="laplace")
    assert release.measurement.plan.radius is not None
    assert release.measurement.plan.radius.copies > 1

    def change(header: dict[str, Any], _: dict[str, bytes]) -> None:
        FORGED[name](header)

    forge_measurement(tmp_path / "out", change)
    with pytest.raises(MatrixDPError):
        mdp.load_release(tmp_path / "out")
    assert run(tmp_path / "out").returncode == 1


def test_what_the_proof_does_not_cover_is_rejected():
    asked, own, _ = RMSE["sex"]
    both = budget(own)
    strategy = mdp.select(asked, budget=both)
    plan = strategy.selection.plan
    held = table({"month": 12, "sex": 2})
    for other in (unit(), unit(constant="sex", each=2), mdp.Unit(records=12), mdp.Unit()):
        with pytest.raises(PrivacyError) as told:
            strategy.measure(held, budget(other))
        assert told.value.problem is not None
        assert told.value.problem.path == ("budget", "unit")
    with pytest.raises(MatrixDPError):
        strategy.measure(held, both, out_of_domain={"count": True})
    with pytest.raises(PrivacyError):
        begin(plan, "month", both)
    first = plan.parts[0]
    assert first.copied == ((("sex",), "identity 2"),)
    signs = replace(first, blocks=(first.blocks[0], Block(("sex",), CenteredMatrix(2))))
    months = replace(first, attributes=("month",), blocks=first.blocks[:1])
    with pytest.raises(PrivacyError):  # one part has noise of its own for each sex, the other has not
        replace(plan, parts=(months, first))
    assert replace(plan, parts=(months, signs)).radius_share == Fraction(1, 12)
    two = (first.blocks[0], Block(("sex",), RangeMatrix(2)))
    with pytest.raises(PrivacyError):
        replace(first, blocks=two)
    scales, cost = calibrate(plan, LAPLACE.cost(both), 100)
    assert plan_cost(replace(plan, persons=None, parts=of_records(plan).parts), scales).value == (
        pytest.approx(12 * float(cost.value))
    )


def test_rounds_series_and_targets_do_not_take_it():
    asked, own, _ = RMSE["months"]
    both = budget(own)
    with pytest.raises(MatrixDPError):
        mdp.select(asked, budget=both, rounds=2)
    with pytest.raises(MatrixDPError):
        mdp.select(asked, budget=both, series="month")
    assert mdp.select(asked, budget=both, objective="max").mechanism != "persons"


@pytest.mark.parametrize("name", ["months", "months and sex"])
def test_errors_and_intervals_of_releases_are_the_stated_ones(name: str):
    """Of 300 measurements, with the intervals that a release states: at 6 deviations."""
    (asked, own, _), count = RMSE[name], 300
    both = budget(own)
    sizes = {one.name: one.size for one in asked.domain}
    held, strategy = table(sizes), mdp.select(asked, budget=both)
    answers = strategy.measure(held, both, seed_not_private=0).reconstruct().answers
    far = answers.column("upper").to_numpy() - answers.column("estimate").to_numpy()
    deviations = answers.column("stddev").to_numpy()
    drawn = []
    for seed in range(count):
        measured = strategy.measure(held, both, seed_not_private=seed).measurement
        drawn.append(np.concatenate([measured.estimates.answers(group) for group in asked]))
    errors = np.array(drawn) - np.mean(drawn, axis=0)
    inside = (np.abs(errors) <= far).mean(axis=0)
    assert (inside > 0.95 - 6 * math.sqrt(0.95 * 0.05 / count)).all()
    assert inside.mean() < 0.99
    assert abs(np.mean((errors / deviations) ** 2) - 1) < 0.1
    assert (
        np.abs(np.mean(drawn, axis=0) - exact_of(asked, held, own)).max() < 6 * deviations.max() / count**0.5
    )


def exact_of(asked: mdp.Workload, held: dict[str, Any], own: mdp.Unit) -> np.ndarray:
    """The answers of the records that the unit keeps, one after another, by their definition."""
    kept, first = [], dict[str, tuple[int, ...]]()
    seen: dict[tuple[str, int], int] = {}
    for row, person in enumerate(held["person"]):
        same = tuple(int(held[name][row]) for name in own.constant)
        month = int(held["month"][row])
        values = {value for one, value in seen if one == person}
        if first.setdefault(person, same) != same or (month not in values and len(values) == own.max_values):
            continue
        if seen.get((person, month), 0) < own.max_records_each:
            seen[person, month] = seen.get((person, month), 0) + 1
            kept.append(row)
    found = []
    for group in asked:
        rows = np.array([held[name] for name in group.attributes])[:, kept]
        counts = np.zeros(group.sizes)
        np.add.at(counts, tuple(rows), 1)
        found.append(group.answers(counts).ravel())
    return np.concatenate(found)


def test_models_are_fitted_and_strategies_are_saved(tmp_path: Path):
    asked, own, _ = RMSE["regions"]
    both = budget(own)
    strategy = mdp.select(asked, budget=both)
    assert strategy.measure(table({"month": 12, "region": 7}), both).reconstruct().model().accepted
    strategy.save(tmp_path / "months.mdp")
    again = mdp.Strategy.load(tmp_path / "months.mdp")
    assert again.selection.plan.radius == strategy.selection.plan.radius
    assert again.rmse(both) == strategy.rmse(both)
