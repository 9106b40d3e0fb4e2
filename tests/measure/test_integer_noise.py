"""Laplace noise on integers in releases: errors, exact log-ratios over all moves, and files that say so."""

import itertools
import json
import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import matrixdp as mdp
from matrixdp.answers.intervals import Intervals
from matrixdp.errors import PrivacyError, StorageError
from matrixdp.exact import IdentityMatrix, IntegerMatrix
from matrixdp.measure.calibration import NoiseScale, calibrate, plan_cost
from matrixdp.noise import GAUSSIAN, LAPLACE, Tails, integers
from matrixdp.plans import Block, Direct, Part, Plan, Union
from matrixdp.statistics.intervals import EVERY
from matrixdp.storage.formats import load_measurement
from tests.builders import saved
from tests.forging import forge_measurement
from tests.independent import run

AGES = mdp.Workload(mdp.Domain({"age": 16}), mdp.marginals(1))


def checked(folder: Path) -> str:
    """What the verifier in one file says, which has to end well."""
    told = run(folder)
    assert told.returncode == 0, told.stdout
    return told.stdout


@pytest.mark.parametrize(("epsilon", "expected"), [(1, 1.357), (2, 0.6017), (4, 0.1950)])
def test_a_histogram_has_the_error_of_geometric_noise(epsilon: int, expected: float):
    budget = mdp.Budget(epsilon=epsilon)
    strategy = mdp.select(AGES, noise="laplace")
    assert strategy.rmse(budget) == pytest.approx(expected, rel=1e-3)
    assert strategy.max_stddev(budget) == strategy.rmse(budget)
    release = strategy.measure({"age": [3] * 50}, budget).reconstruct()
    errors = release.answers.column("stddev").to_numpy()
    np.testing.assert_allclose(errors, strategy.rmse(budget), rtol=1e-12)
    assert release.measurement.authorization.cost.value == epsilon


def test_the_files_of_a_release_say_so(tmp_path: Path):
    release = saved(tmp_path / "out", AGES, mdp.Budget(epsilon=2))
    folder = tmp_path / "out"
    assert mdp.verify_release(folder).failed == ()
    checked(folder)
    record = json.loads((folder / "release.json").read_text())
    assert record["strategy"]["parts"][0]["multiples_of"] == 1
    again, _ = load_measurement(folder / "measurement.mdp")
    assert again.scales == release.measurement.scales
    assert np.array_equal(again.values[0], release.measurement.values[0])


@pytest.mark.parametrize("epsilon", [1, 4])
def test_auto_compares_what_a_budget_draws(epsilon: int):
    """Counts of single cells gain most by noise on integers: at a large epsilon they are measured alone."""
    workload = mdp.Workload(mdp.Domain({"a": 32}), mdp.product(a="range"))
    budget = mdp.Budget(epsilon=epsilon)
    plain, priced = mdp.select(workload, noise="laplace"), mdp.select(workload, budget=budget)
    assert priced.rmse(budget) <= plain.rmse(budget)
    assert (priced.mechanism, priced.rmse(budget) < 0.8 * plain.rmse(budget)) == (
        ("walk", False) if epsilon == 1 else ("opt-m", True)
    )
    chosen, compared, *_ = priced.selection.candidates
    assert (chosen.status, compared.status) == ("chosen", "compared")
    assert chosen.loss is not None
    assert compared.loss is not None
    assert chosen.loss < compared.loss
    assert (priced.priced(budget).certificate.lower_bound is None) == (priced.mechanism == "walk")


def test_the_released_errors_are_the_stated_ones():
    """2,500 counts: their variance to 8%, and 95% intervals, both at 6 deviations or more."""
    workload = mdp.Workload(mdp.Domain({"a": 50, "b": 50}), mdp.marginals([1, 2]))
    for epsilon in (1.0, 2.5):
        strategy = mdp.select(workload, budget=mdp.Budget(epsilon=epsilon))
        measured = strategy.measure({"a": [0], "b": [0]}, mdp.Budget(epsilon=epsilon), seed_not_private=3)
        answers = measured.reconstruct().answers
        truth = np.zeros((50, 50))
        truth[0, 0] = 1
        exact = np.concatenate([truth.sum(axis=1), truth.sum(axis=0), truth.ravel()])
        figures = {name: answers.column(name).to_numpy() for name in ("estimate", "stddev", "lower", "upper")}
        scores = (figures["estimate"] - exact) / figures["stddev"]
        assert abs(np.mean(scores**2) - 1) < 0.3
        inside = (figures["lower"] <= exact) & (exact <= figures["upper"])
        assert inside.mean() > 0.95 - 6 * math.sqrt(0.95 * 0.05 / len(exact))


def test_intervals_of_large_groups_are_those_of_one_count():
    workload = mdp.Workload(mdp.Domain({"a": 60, "b": 50}), mdp.marginals(2))
    strategy = mdp.select(workload, noise="laplace")
    release = strategy.measure({"a": [0], "b": [0]}, mdp.Budget(epsilon=1)).reconstruct()
    half = (release.answers.column("upper").to_numpy() - release.answers.column("lower").to_numpy()) / 2
    np.testing.assert_allclose(half, 3.0, rtol=1e-9)
    assert not release.intervals.bounded


def test_large_products_have_the_quantiles_of_small_ones():
    """Two of three counts of one attribute by many of another: the same combinations as for a single one."""
    pairs = np.array([[1.0, 1.0, 0.0], [0.0, 1.0, 1.0], [1.0, 0.0, -1.0], [2.0, 0.0, 1.0]])
    tree = IntegerMatrix(np.array([[1, 1, 1], [1, 0, 0], [0, 1, 0], [0, 0, 1]]))
    found = []
    for size in (1, 600):
        domain = mdp.Domain({"a": 3, "b": size})
        part = Part(("a", "b"), (Block(("a",), tree), Block(("b",), IdentityMatrix(size))), 1.0)
        plan = Direct(domain, (part.at_cost(LAPLACE),), LAPLACE)
        [group] = mdp.product({"a": {"matrix": pairs}, "b": "identity"}).expand(domain)
        intervals = Intervals(plan.analysis, Tails(LAPLACE, (0.5,)), 0.95)
        found.append(np.reshape(intervals.multipliers((1.0, group, EVERY)), (len(pairs), size)))
        assert not intervals.bounded
    np.testing.assert_allclose(found[1], np.broadcast_to(found[0], (4, 600)), rtol=1e-6)


def union(*matrices: Any, attributes: tuple[str, ...] = ("a",), size: int = 3) -> Plan:
    """A plan of several integer matrices on one attribute, each with an equal share of the cost."""
    parts = [Part(attributes, (Block(attributes, matrix),), 1.0) for matrix in matrices]
    shared = tuple(part.at_cost(LAPLACE, 1 / len(parts)) for part in parts)
    domain = mdp.Domain(dict.fromkeys(attributes, size))
    return Direct(domain, shared, LAPLACE) if len(parts) == 1 else Union(domain, shared, LAPLACE)


PLANS = {
    "identity": union(IdentityMatrix(3)),
    "doubled": union(IntegerMatrix(2 * np.eye(3, dtype=np.int64))),
    "a tree": union(IntegerMatrix(np.array([[2, 2, 2], [1, 0, 0], [0, 1, 0], [0, 0, 1]]))),
    "two parts": union(IdentityMatrix(3), IntegerMatrix(3 * np.array([[1, 1, 0], [0, 1, 0], [1, 0, 1]]))),
}


@pytest.mark.parametrize("name", PLANS)
@pytest.mark.parametrize("neighbours", ["add_remove", "replace"])
def test_log_ratios_over_all_moves_are_at_most_the_cost(name: str, neighbours: Any):
    """Of every result in a box, exactly, between every two neighbours; and somewhere they reach the cost."""
    plan, allowed = PLANS[name], LAPLACE.cost(mdp.Budget(epsilon=4, neighbours=neighbours))
    scales, cost = calibrate(plan, allowed, 100, neighbours)
    assert all(scale.multiple == part.divisor for part, scale in zip(plan.parts, scales, strict=True))
    moves = [np.eye(3, dtype=int)[i] for i in range(3)]
    if neighbours == "replace":
        moves += [moves[i] - moves[j] for i, j in itertools.permutations(range(3), 2)]
    largest = Fraction(0)
    for move in moves:
        ratio = Fraction(0)
        for part, scale in zip(plan.parts, scales, strict=True):
            [block] = part.blocks
            assert scale.multiple is not None
            for change in (block.matrix.written().astype(int) @ move).tolist():
                # what is released lies on the lattice of both answers, or it would tell them apart
                assert change % scale.multiple == 0
                lattice = range(-6 * scale.multiple, 7 * scale.multiple, scale.multiple)
                ratio += max(abs(Fraction(abs(y) - abs(y - change)) / scale.exact) for y in lattice)
        largest = max(largest, ratio)
    moved = 2 if neighbours == "replace" else 1
    assert cost.value * moved * Fraction(99, 100) <= largest <= cost.value * moved


@pytest.mark.parametrize(
    "budget",
    [
        mdp.Budget(epsilon=9, unit=mdp.Unit(records=3), neighbours="replace"),
        mdp.Budget(mu=6),
    ],
    ids=lambda budget: budget.words,
)
def test_releases_of_every_kind_of_budget_are_verified(budget: mdp.Budget, tmp_path: Path):
    workload = mdp.Workload(mdp.Domain({"a": 3, "b": 4}), mdp.marginals([0, 1, 2]))
    release = saved(tmp_path / "out", workload, budget, noise="laplace")
    assert any(scale.multiple for scale in release.measurement.scales)
    assert mdp.verify_release(tmp_path / "out").failed == ()
    checked(tmp_path / "out")
    assert "multiples of g alone" in mdp.explain_release(tmp_path / "out")


def test_a_person_of_three_records_pays_three_times():
    one, three = (NoiseScale.least(own, 1, LAPLACE) for own in (0.5, 1.5))
    plan = PLANS["identity"]
    scales, _ = calibrate(plan, LAPLACE.cost(mdp.Budget(epsilon=2, unit=mdp.Unit(records=3))), 100)
    assert scales[0].exact == pytest.approx(three.exact, rel=1e-11)
    assert one.variance < three.variance / 9


def test_counts_out_of_domain_are_integers_too(tmp_path: Path):
    workload = mdp.Workload(mdp.Domain({"a": 3}), mdp.marginals(1))
    strategy = mdp.select(workload, budget=mdp.Budget(epsilon=2))
    table, rules = {"a": [0, 1, 9, 9]}, {"count": True}
    release = strategy.measure(table, mdp.Budget(epsilon=2), out_of_domain=rules).reconstruct()
    counts = release.measurement.out_of_domain_counts
    assert counts is not None
    assert counts.scale == NoiseScale(Fraction(1, 2), 0, LAPLACE, 1)
    [found] = release.out_of_domain_counts.values()
    assert found.upper - found.estimate == pytest.approx(1.0)
    folder = mdp.save_release(release, tmp_path / "out")
    assert mdp.verify_release(folder).failed == ()
    checked(folder)


def test_amounts_and_noise_of_other_kinds_stay_continuous():
    domain = mdp.Domain({"pay": {"amount": [0, 10], "step": 5}, "a": 2})
    workload = mdp.Workload(domain, mdp.marginals([["a"]]), mdp.ask.sum("pay"))
    strategy = mdp.select(workload, budget=mdp.Budget(epsilon=8))
    measured = strategy.measure({"pay": [3], "a": [1]}, mdp.Budget(epsilon=8)).measurement
    for part, scale in zip(measured.plan.parts, measured.scales, strict=True):
        assert (scale.multiple is None) == ("pay" in part.attributes or scale.exact > 2 * part.divisor)
    assert NoiseScale.least(1.0, 1, GAUSSIAN).multiple is None
    for own in (2.01, 0.03, 1e-3):
        assert NoiseScale.least(own, 1, LAPLACE).multiple is None
    assert NoiseScale.least(2.01, None, LAPLACE) == NoiseScale.least(2.01, 1, LAPLACE)


def test_noise_on_multiples_that_do_not_divide_the_answers_is_rejected():
    with pytest.raises(PrivacyError):
        NoiseScale(Fraction(1), 0, GAUSSIAN, 1)
    for steps, power, multiple in ((1, 1, 1), (1, 0, 0), (5, 0, 1), (1, 0, 100)):
        with pytest.raises(PrivacyError):
            NoiseScale(Fraction(steps), power, LAPLACE, multiple)
    with pytest.raises(PrivacyError, match="multiples of 2"):
        plan_cost(PLANS["identity"], (NoiseScale(Fraction(2), 0, LAPLACE, 2),))
    assert plan_cost(PLANS["doubled"], (NoiseScale(Fraction(2), 0, LAPLACE, 2),)).value == 1


@pytest.mark.parametrize("noise", [["1", 0, 2], ["1", 0, 1, 1], ["1", 0, True], ["1", 0, 0], ["1/2", 1, 1]])
def test_forged_multiples_are_found(noise: list[Any], tmp_path: Path):
    release = saved(tmp_path / "out", AGES, mdp.Budget(epsilon=1))
    assert release.measurement.scales[0].multiple == 1

    def change(header: dict[str, Any], _: dict[str, bytes]) -> None:
        header["noise"] = [noise]

    forge_measurement(tmp_path / "out", change)
    with pytest.raises(StorageError):
        mdp.load_release(tmp_path / "out")
    assert run(tmp_path / "out").returncode == 1


def test_rows_of_several_weights_have_a_common_divisor():
    multipliers = np.array([[4], [6], [8]])
    blocks = (Block(("a",), IdentityMatrix(3)), Block((), IntegerMatrix(np.array([[3]]))))
    part = Part(("a",), blocks, 1.0, multipliers)
    assert part.divisor == 6
    scale = NoiseScale.least(6.0, part.divisor, LAPLACE)
    assert scale.multiple == 6
    assert scale.variance == pytest.approx(36 * integers.variance(1.0))
