"""How many records were out of domain: measured beside the plan, and paid for by nothing more."""

import json
import math
from fractions import Fraction

import numpy as np
import pytest

import matrixdp as mdp
from matrixdp.errors import MatrixDPError
from matrixdp.exact import IdentityMatrix
from matrixdp.measure import calibration
from matrixdp.measure.calibration import NoiseScale, measured_cost, plan_cost
from matrixdp.noise import GAUSSIAN, LAPLACE, Cost
from matrixdp.plans import Block, Direct, Part
from matrixdp.sources import open_source
from matrixdp.sources.base import OUT_OF_DOMAIN
from matrixdp.verification import explain_release
from tests.forging import forge_measurement
from tests.independent import run

DOMAIN = mdp.Domain({"sex": ["f", "m"], "age": {"min": 0, "max": 3}})
TABLE = {"sex": ["f", "m", "q", None, "m", "x"] * 50, "age": [0, 1, 2, 9, 9, 9] * 50, "id": [1, 2, 3] * 100}
WORKLOAD = mdp.Workload(DOMAIN, mdp.marginals([1]))
COUNTED = {"count": True, "sex": {"count": True}, "age": {"count": True}}
BUDGETS = [
    mdp.Budget(rho=0.5),
    mdp.Budget(epsilon=1),
    mdp.Budget(mu=1, neighbours="replace"),
    mdp.Budget(epsilon=1, unit={"records": 3}),
    mdp.Budget(epsilon=1, delta=1e-6, neighbours="replace", unit={"id": "id", "records": 2}),
]


@pytest.fixture(scope="module")
def measured() -> list[mdp.MeasuredStrategy]:
    strategies = [mdp.select(WORKLOAD, budget=budget, mechanism="identity") for budget in BUDGETS]
    pairs = zip(strategies, BUDGETS, strict=True)
    found = [strategy.measure(TABLE, budget, out_of_domain=COUNTED) for strategy, budget in pairs]
    assert {one.strategy.noise for one in found} == {"gaussian", "laplace"}
    return found


@pytest.mark.parametrize("noise", [GAUSSIAN, LAPLACE], ids=str)
@pytest.mark.parametrize("allowed", [Fraction(1), Fraction(1, 3), Fraction(10**4), Fraction(1, 10**9)])
def test_counts_share_exactly_what_the_plan_costs(noise, allowed):
    for number in (1, 2, 3, 7):
        scale = calibration.count_scale(number, Cost(allowed, noise))
        # written out: so many rows, each with an entry 1 for a record that is in all of them
        exact, cost = number / scale.exact**noise.norm, calibration.counts_cost(scale, number).value
        assert allowed * Fraction(999_999, 1_000_000) < exact <= cost <= allowed
        assert scale.multiple == 1 or 2**12 <= scale.steps < 2**13 + 1


def test_the_cost_is_the_larger_of_the_two():
    part = Part(("sex",), (Block(("sex",), IdentityMatrix(2)),), 1.0)
    plan = Direct(DOMAIN, (part,), GAUSSIAN)
    scales = (NoiseScale(Fraction(4096), -12, GAUSSIAN),)
    assert plan_cost(plan, scales).value == 1 == measured_cost(plan, scales, None).value
    for steps, cost in ((8192, 1), (4096, 2), (2048, 8)):
        scale = NoiseScale(Fraction(steps), -12, GAUSSIAN)
        counts = calibration.OutOfDomainCounts((None, "sex"), scale, np.zeros(2))
        assert measured_cost(plan, scales, counts).value == cost


def test_no_record_costs_more_than_is_stated_whatever_moves(measured):
    """All pairs of neighbours over the universe of records, in the domain and out of it."""
    for one in measured:
        measurement = one.measurement
        counts = measurement.out_of_domain_counts
        norm, budget = measurement.plan.noise.norm, measurement.authorization.budget
        inside = []
        for cell in np.eye(8, dtype=np.int64).reshape(8, 2, 4):
            rows = []
            for part, scale in zip(measurement.plan.parts, measurement.scales, strict=True):
                away = tuple(i for i, name in enumerate(DOMAIN.names) if name not in part.attributes)
                answers = part.answers(cell.sum(axis=away), 1).values()
                rows += [float(answer) / float(scale.exact) for answer in answers]
            inside.append([*rows, 0.0, 0.0, 0.0])
        zeros, b = [0.0] * (len(inside[0]) - 3), float(counts.scale.exact)
        outside = [[*zeros, 1 / b, out_age / b, out_sex / b] for out_age, out_sex in ((0, 1), (1, 0), (1, 1))]
        columns = np.array(inside + outside)
        replaced = budget.neighbours == "replace"
        pairs = [columns, *(columns - other for other in columns if replaced)]
        farthest = max(float((np.abs(moves) ** norm).sum(axis=1).max()) for moves in pairs)
        between = float(measurement.authorization.cost.value) * (2**norm if replaced else 1)
        # they take what the plan leaves them
        assert between * 0.999_999 <= farthest <= between * (1 + 1e-9)
        left = between / 2 if replaced else between  # cells are a half each
        assert left * 0.999_999 < float(counts.cost.value) <= left * (1 + 1e-9)


def test_counts_cost_nothing(measured):
    for one, budget in zip(measured, BUDGETS, strict=True):
        alone = one.strategy.measure(TABLE, budget)
        assert alone.measurement.authorization.cost == one.measurement.authorization.cost
        assert alone.measurement.scales == one.measurement.scales
        assert alone.reconstruct().out_of_domain_counts == {}


def test_estimates_are_unbiased_and_as_far_off_as_they_say():
    """By a fixed seed; each bound is broken with a probability below one in a million."""
    names = [f"a{i}" for i in range(200)]
    strategy = mdp.select(mdp.Workload(mdp.Domain(dict.fromkeys(names, 2)), mdp.marginals(0)))
    table = {name: [0, 9, 9, *[1] * (i % 3)] + [0] * (2 - i % 3) for i, name in enumerate(names)}
    rule = {name: {"count": True} for name in names} | {"count": True}
    found = strategy.measure(table, mdp.Budget(rho=2), out_of_domain=rule, seed_not_private=1)
    counts = found.reconstruct().out_of_domain_counts
    assert list(counts) == [None, *sorted(names)]
    assert all(one.upper - one.estimate == pytest.approx(1.959964 * one.stddev) for one in counts.values())
    assert counts["a0"].stddev == pytest.approx(math.sqrt(201 / 4), rel=1e-6)
    errors = np.array([(one.estimate - 2) / one.stddev for one in counts.values()])
    assert abs(errors.mean()) < 5 / math.sqrt(201)
    assert abs(errors.var() - 1) < 5 * math.sqrt(2 / 201)
    assert abs(np.mean(errors[1:] * errors[:-1])) < 5 / math.sqrt(200)


def test_a_laplace_count_has_its_own_interval(measured):
    found = measured[1].reconstruct().out_of_domain_counts["sex"]
    # P(|X| > q b) = exp(-q); the variance is 2 b^2
    multiplier = (found.upper - found.estimate) / found.stddev
    assert multiplier == pytest.approx(-math.log(0.05) / math.sqrt(2), rel=1e-4)


def test_records_beyond_those_of_a_person_are_in_no_count():
    rule = mdp.OutOfDomain(counts=[None, "age"])
    unit = mdp.Unit(1, "id")
    table = {"sex": ["q", "q", "m", "f"], "age": [0, 0, 9, 9], "id": [1, 1, 1, 2]}
    found = dict(open_source(table).marginals(DOMAIN, [()], rule, unit))
    assert found[OUT_OF_DOMAIN].tolist() == [2, 1]
    assert found[()] == 0


def test_a_release_says_so_and_is_verified(measured, tmp_path):
    for place, one in enumerate(measured):
        release = one.reconstruct()
        folder = mdp.save_release(release, tmp_path / str(place))
        again = mdp.load_release(folder)
        assert again.out_of_domain_counts == release.out_of_domain_counts
        assert again.measurement.out_of_domain == one.measurement.out_of_domain
        assert mdp.verify_release(folder).failed == ()
        told = run(folder)
        assert told.returncode == 0, told.stdout
        assert "3 counts of records out of domain cost" in told.stdout
        written = json.loads((folder / "release.json").read_text())
        assert written["privacy"]["out_of_domain"] == COUNTED
        assert [row["attribute"] for row in written["out_of_domain_counts"]["counts"]] == [None, "age", "sex"]
        assert "their number is shown with noise" in release.statement.text
        assert "3 counts of records out of domain" in explain_release(folder)
    whole = (folder / "release.json").read_text()
    for number in ("numerator", "exponent", "age"):
        written = json.loads(whole)
        if number == "age":
            written["out_of_domain_counts"]["counts"][1]["attribute"] = "sex"
        else:
            written["out_of_domain_counts"]["scale"][number] += 1
        (folder / "release.json").write_text(json.dumps(written))
        assert run(folder).returncode == 1
    (finding,) = mdp.verify_release(folder).failed
    assert "out_of_domain_counts.counts[1].attribute says" in finding.words


FORGERIES = {
    "less noise": lambda counts: counts["noise"].__setitem__(1, counts["noise"][1] - 1),
    "one count more": lambda counts: counts["attributes"].append("sex"),
    "a count twice": lambda counts: counts.update(attributes=["age", "age", "sex"]),
    "no integers": lambda counts: counts["values"].__setitem__(0, 0.5),
    "a number too many": lambda counts: counts["values"].append(1),
}


@pytest.mark.parametrize("case", FORGERIES)
def test_altered_counts_are_refused(measured, tmp_path, case):
    folder = mdp.save_release(measured[0].reconstruct(), tmp_path / "out")
    forge_measurement(folder, lambda header, _: FORGERIES[case](header["out_of_domain_counts"]))
    with pytest.raises(MatrixDPError):
        mdp.load_release(folder)
    assert mdp.verify_release(folder).failed
    assert run(folder).returncode == 1
