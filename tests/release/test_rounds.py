"""Rounds: the second follows from noisy answers to the first, and both keep to one budget."""

import json
import math
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import matrixdp as mdp
from matrixdp.cli.app import app
from matrixdp.measure.calibration import NoiseScale
from matrixdp.measure.measurement import Measurement
from matrixdp.plans import Rounds
from matrixdp.selection.rounds import SecondRound
from matrixdp.sources.memory import ArraysSource
from matrixdp.storage.formats import load_measurement, save_measurement
from matrixdp.testing import dense_measurement
from tests.forging import forge_measurement
from tests.independent import verifier

SIZES = {"a": 12, "b": 6, "c": 3}
SPEC: dict[str, Any] = {
    "domain": {name: {"min": 0, "max": size - 1} for name, size in SIZES.items()},
    "workload": [{"marginals": [0, 1, 2]}],
    "privacy": {"rho": 0.05},
    "rounds": 2,
}
RANDOM = np.random.default_rng(4)
TABLE = {name: np.minimum(RANDOM.geometric(0.3, 3000) - 1, size - 1) for name, size in SIZES.items()}
#: The last record is out of domain.
ONE_OUT = {**TABLE, "a": np.append(TABLE["a"][1:], 99)}
BUDGETS: list[dict[str, Any]] = [
    {"rho": 0.05},
    {"mu": 0.5, "neighbours": "replace"},
    {"epsilon": 0.1, "delta": 1e-9},
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("rounds") / "out"
    mdp.release(SPEC, place, table=TABLE)
    return place


def outcome(folder: Path, subject: str) -> str:
    return {own.subject: own.outcome for own in mdp.verify_release(folder).findings}[subject]


def false_of(folder: Path) -> list[str]:
    """Return what the program that shares no code with this package finds false."""
    return [words for holds, words in verifier.checks(folder) if holds is False]


def workload() -> mdp.Workload:
    return mdp.load_specification(SPEC).workload


def test_a_release_in_rounds_holds(folder: Path) -> None:
    assert mdp.verify_release(folder).holds
    assert outcome(folder, "rounds") == "ok"
    assert false_of(folder) == []
    release = mdp.load_release(folder)
    assert "rounds" in [clause.id for clause in release.statement.covered]
    assert release.warnings == ()
    record = json.loads((folder / "release.json").read_text(encoding="utf-8"))
    # the bound is on what one round can reach, and the loss would be that of the first
    assert "loss" not in record["strategy"]["certificate"]
    assert record["strategy"]["certificate"]["gap"] is None


def test_a_file_holds_all_of_both_rounds(folder: Path, tmp_path: Path) -> None:
    measurement, asked = load_measurement(folder / "measurement.mdp")
    save_measurement(tmp_path / "again.mdp", measurement, asked)
    again, _ = load_measurement(tmp_path / "again.mdp")
    for group in asked:
        np.testing.assert_array_equal(again.estimates.answers(group), measurement.estimates.answers(group))
        np.testing.assert_array_equal(again.analysis.variances(group), measurement.analysis.variances(group))


def gram_of(plan: Rounds, scales: tuple[NoiseScale, ...], places: slice) -> tuple[Any, Fraction]:
    """Return the columns of some parts times each other, in units of the noise: integers, and their unit."""
    shares = [1 / scale.exact**2 for scale in scales[places]]
    unit = Fraction(1, math.lcm(*(share.denominator for share in shares)))
    found: Any = 0
    for part, share in zip(plan.parts[places], shares, strict=True):
        rows = np.round(dense_measurement(part, plan.domain)).astype(int)
        found = found + (rows.T @ rows).astype(object) * int(share / unit)
    return found, unit


@pytest.mark.parametrize("privacy", BUDGETS, ids=str)
@pytest.mark.parametrize("rule", [{}, {"count": True}], ids=["drop", "count"])
def test_both_rounds_keep_to_the_budget(privacy: dict[str, Any], rule: Any, tmp_path: Path) -> None:
    specification = {**SPEC, "privacy": privacy, "out_of_domain": rule}
    made = mdp.release(specification, tmp_path / "out", table=ONE_OUT, noise="gaussian")
    measurement = made.measurement
    plan, scales, budget = measurement.plan, measurement.scales, measurement.authorization.budget
    assert isinstance(plan, Rounds)
    begun = len(plan.begun)
    assert len(plan.parts) > begun > 1
    allowed = plan.noise.cost(budget).value
    assert 0.999999999 * allowed < measurement.authorization.cost.value <= allowed
    outside = Fraction(0)
    if counts := measurement.out_of_domain_counts:
        outside = len(counts.attributes) / counts.scale.exact**2
    spent = []
    for places, out in ((slice(begun), outside), (slice(begun, None), Fraction(0))):
        gram, unit = gram_of(plan, scales, places)
        alone = np.diag(gram)
        if budget.neighbours == "add_remove":
            spent.append(max(max(alone) * unit, out))
        else:
            apart = (alone[:, None] + alone - 2 * gram).max() * unit
            spent.append(max(max(alone) * unit + out, apart) / 4)
    assert all(0.4999 * allowed < own <= 0.5001 * allowed for own in spent)
    assert 0.9999 * allowed < sum(spent) <= allowed
    assert mdp.verify_release(tmp_path / "out").holds
    assert false_of(tmp_path / "out") == []


def test_a_saved_strategy_is_measured_in_its_rounds(tmp_path: Path) -> None:
    strategy = mdp.select(workload(), rounds=2)
    strategy.save(tmp_path / "strategy.mdp")
    release = mdp.release(SPEC, tmp_path / "out", table=TABLE, strategy=tmp_path / "strategy.mdp")
    assert isinstance(release.measurement.plan, Rounds)
    assert mdp.verify_release(tmp_path / "out").holds


def test_no_error_is_above_that_of_half_the_budget() -> None:
    budget = mdp.Budget(rho=0.05)
    strategy = mdp.select(workload(), budget=budget, rounds=2)
    found = strategy.measure(TABLE, budget, seed_not_private=1).measurement
    for group in workload():
        one = strategy.selection.analysis.variances(group) / 0.1
        assert (found.analysis.variances(group) <= 2.0001 * one).all()
        assert (found.analysis.variances(group) >= 0.49 * one).all()


def test_rounds_publish_more_counts_where_many_are_small() -> None:
    """What is asked of the attribute of 500 values, by others, is too fine for this budget."""
    sizes = {"a": 500, "b": 8, "c": 8, "d": 8}
    random = np.random.default_rng(2)
    table = {name: np.minimum(random.geometric(0.35, 20_000) - 1, 7) for name in sizes}
    table["a"] = random.integers(0, 500, 20_000)
    asked = mdp.Workload(mdp.Domain(sizes), mdp.marginals([1, 2]))
    budget = mdp.Budget(rho=0.02)

    def publishable(measurement: Measurement) -> int:
        count = 0
        for group in asked:
            held, shape = np.zeros(group.queries), [sizes[name] for name in group.attributes]
            np.add.at(held, np.ravel_multi_index([table[name] for name in group.attributes], shape), 1)
            count += int((3 * np.sqrt(measurement.analysis.variances(group)) < held).sum())
        return count

    one, two = (
        [publishable(strategy.measure(table, budget, seed_not_private=s).measurement) for s in range(3)]
        for strategy in (mdp.select(asked, budget=budget, rounds=rounds) for rounds in (1, 2))
    )
    assert min(two) > 1.5 * max(one)


@pytest.mark.slow
def test_intervals_cover_although_the_second_round_follows_from_the_first() -> None:
    """Over 150 runs, false alarm: five standard deviations; a tenth of a standard error is what is said."""
    runs, budget = 150, mdp.Budget(rho=0.01)
    strategy = mdp.select(workload(), budget=budget, rounds=2)
    off: list[Any] = []
    for seed in range(runs):
        found = strategy.measure(TABLE, budget, seed_not_private=seed).measurement
        row = []
        for group in workload():
            held, shape = np.zeros(group.queries), [SIZES[name] for name in group.attributes]
            places = np.ravel_multi_index([TABLE[name] for name in group.attributes], shape) if shape else 0
            np.add.at(held, places, 1 if shape else 3000)
            row.append((found.estimates.answers(group) - held) / np.sqrt(found.analysis.variances(group)))
        off.append(np.concatenate(row))
    bias = np.mean(off, axis=0)
    assert abs(bias).max() < 0.1 + 5 / math.sqrt(runs)
    assert math.sqrt(max(0.0, float((bias**2).mean()) - 1 / runs)) < 0.1
    assert 0.93 < (np.abs(off) < 1.96).mean() < 0.97


# What is forged.


@pytest.mark.parametrize("places", [slice(7), slice(7, None)], ids=["first", "second"])
def test_a_round_that_does_not_cost_half_is_found(folder: Path, tmp_path: Path, places: slice) -> None:
    """A smaller cost is within what was authorized, but the release is not what it says."""

    def cheaper(header: dict[str, Any], _: dict[str, bytes]) -> None:
        for own in range(len(header["noise"]))[places]:
            scale_of(own, Fraction(11, 10))(header, {})

    shutil.copytree(folder, tmp_path / "out")
    forge_measurement(tmp_path / "out", cheaper)
    assert outcome(tmp_path / "out", "measurement") == "ok"
    assert outcome(tmp_path / "out", "rounds") == "failed"


def scale_of(place: int, factor: Fraction) -> Callable[[dict[str, Any], dict[str, bytes]], None]:
    def change(header: dict[str, Any], _: dict[str, bytes]) -> None:
        steps, power = header["noise"][place]
        header["noise"][place] = [str(Fraction(round(Fraction(steps) * factor * 2**40), 2**40)), power]

    return change


def without_second(header: dict[str, Any], _: dict[str, bytes]) -> None:
    header["plan"]["parts"] = header["plan"]["parts"][:7]
    header["noise"] = header["noise"][:7]


def test_noise_that_does_not_follow_from_the_first_round_is_found(folder: Path, tmp_path: Path) -> None:
    """Noise that is moved from one part to another, at the same cost."""
    shutil.copytree(folder, tmp_path / "out")
    measurement, _ = load_measurement(folder / "measurement.mdp")
    parts, scales = measurement.plan.parts[-2:], measurement.scales[-2:]
    costs = [part.column_power_sum(2) / scale.exact**2 for part, scale in zip(parts, scales, strict=True)]
    other = (costs[1] + costs[0] * (1 - Fraction(100, 101) ** 2)) / costs[1]

    def moved(header: dict[str, Any], members: dict[str, bytes]) -> None:
        scale_of(-2, Fraction(101, 100))(header, members)
        scale_of(-1, Fraction(1 / math.sqrt(other)) * Fraction(10**9 + 1, 10**9))(header, members)

    forge_measurement(tmp_path / "out", moved)
    assert outcome(tmp_path / "out", "measurement") == "ok"
    assert outcome(tmp_path / "out", "cost") == "ok"
    assert outcome(tmp_path / "out", "rounds") == "failed"


@pytest.mark.parametrize("place", [0, -1])
def test_less_noise_than_was_paid_for_is_found(folder: Path, tmp_path: Path, place: int) -> None:
    shutil.copytree(folder, tmp_path / "out")
    forge_measurement(tmp_path / "out", scale_of(place, Fraction(999, 1000)))
    assert outcome(tmp_path / "out", "measurement") == "failed"
    assert any("the rounds cost" in words for words in false_of(tmp_path / "out"))


def test_a_round_that_is_cut_off_is_found(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder, tmp_path / "out")
    forge_measurement(tmp_path / "out", without_second)
    assert outcome(tmp_path / "out", "measurement") == "failed"


# What is spent when something stops between the rounds.


def test_a_ledger_is_debited_for_both_rounds_before_the_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from matrixdp.measure import measurement, noisy_answers

    path = tmp_path / "ledger"
    mdp.Ledger.create(path, "people", mdp.Budget(rho=0.06))
    order: list[str] = []
    drawn = noisy_answers.noisy_answers

    def noted(*given: Any, **more: Any) -> Any:
        left = mdp.Ledger.open(path).left
        assert left is not None
        order.append(f"drawn with {float(left.rho or 0):.3f} left")
        return drawn(*given, **more)

    monkeypatch.setattr(measurement, "noisy_answers", noted)
    mdp.release(SPEC, table=TABLE, ledger=path)
    assert order == ["drawn with 0.010 left"] * 2
    with pytest.raises(mdp.PrivacyError):
        mdp.release(SPEC, table=TABLE, ledger=path)
    assert len(order) == 2


def test_a_table_is_counted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both rounds are of the same records, whatever becomes of the table meanwhile."""
    reads: list[int] = []
    count = ArraysSource.count

    def noted(self: ArraysSource, request: Any) -> Any:
        reads.append(1)
        return count(self, request)

    monkeypatch.setattr(ArraysSource, "count", noted)
    mdp.release(SPEC, table=TABLE)
    assert len(reads) == 1


def test_a_stop_between_the_rounds_spends_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stopped(*_: object) -> None:
        raise KeyboardInterrupt

    mdp.Ledger.create(tmp_path / "ledger", "people", mdp.Budget(rho=0.06))
    monkeypatch.setattr(SecondRound, "__call__", stopped)
    with pytest.raises(KeyboardInterrupt) as caught:
        mdp.release(SPEC, tmp_path / "out", table=TABLE, ledger=tmp_path / "ledger")
    assert any("spent" in note for note in caught.value.__notes__)
    left = mdp.Ledger.open(tmp_path / "ledger").left
    assert left is not None
    assert float(left.rho or 0) == pytest.approx(0.01)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("weight", [1e160, 1e-300])
@pytest.mark.filterwarnings("error")
def test_extreme_weights_and_empty_groups_fail_nothing_after_the_first_round(
    weight: float, tmp_path: Path
) -> None:
    asked = [
        {"marginals": [1, 2]},
        {"dense": np.zeros((3, 6)).tolist(), "attributes": ["b"], "weight": weight},
        {"product": {"a": {"matrix": (np.tri(12) * 1e-45).tolist()}}},
    ]
    mdp.release({**SPEC, "workload": asked}, tmp_path / "out", table={name: [] for name in SIZES})
    assert mdp.verify_release(tmp_path / "out").holds


def test_a_range_that_a_second_round_could_leave_is_rejected_before_the_first() -> None:
    specification = {
        "domain": {"a": {"min": 0, "max": 499}, "b": {"min": 0, "max": 7}},
        "workload": [{"marginals": [1, 2]}],
        "privacy": {"mu": 65536},
        "rounds": 2,
    }
    table = {"a": np.arange(500), "b": np.arange(500) % 8}
    with pytest.raises(mdp.PrivacyError) as caught:
        mdp.release(specification, table=table, accept_weak_privacy=True)
    assert caught.value.code == "out-of-range"
    assert not caught.value.path
    assert not getattr(caught.value, "__notes__", [])


KILLED = """
import os, signal
from matrixdp.measure import measurement
measurement._measured_again = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
import matrixdp as mdp
from tests.release.test_rounds import SPEC, TABLE
mdp.release(SPEC, "out", table=TABLE, ledger="ledger")
"""


def test_a_kill_between_the_rounds_draws_nothing_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mdp.Ledger.create(tmp_path / "ledger", "people", mdp.Budget(rho=0.11))
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(Path.cwd()), *sys.path])}
    done = subprocess.run([sys.executable, "-c", KILLED], cwd=tmp_path, env=environment, check=False)
    assert done.returncode == -signal.SIGKILL
    monkeypatch.chdir(tmp_path)
    with pytest.raises(mdp.StorageError) as caught:
        mdp.release(SPEC, "out", table=TABLE, ledger="ledger")
    assert caught.value.code == "already-spent"
    [settled] = mdp.recover_ledger("ledger")
    assert settled.state == "abandoned"
    mdp.release(SPEC, "out", table=TABLE, ledger="ledger")
    left = mdp.Ledger.open("ledger").left
    assert left is not None
    assert float(left.rho or 0) == pytest.approx(0.01)


# What readers are told, and models.


def test_show_says_how_many_counts_are_reliable(folder: Path) -> None:
    told = CliRunner().invoke(app, ["show", str(folder)]).stdout
    rows = [[cell.strip() for cell in line.split("│")] for line in told.splitlines() if "│" in line]
    found = {row[1]: int(row[5]) for row in rows if row[5].isdigit()}
    answers = pq.read_table(folder / "answers.parquet").to_pandas()
    expected = answers["estimate"].abs() >= 3 * answers["stddev"]
    assert sum(found.values()) == int(expected.sum())
    assert found["c"] == 3


def test_a_model_is_fitted_to_both_rounds(folder: Path) -> None:
    release = mdp.load_release(folder)
    model = release.model()
    for name, size in SIZES.items():
        shares = np.bincount(TABLE[name], minlength=size) / 3000
        found = np.asarray(model.answer(mdp.marginals([[name]])).to_pandas()["estimate"])
        assert np.abs(found / 3000 - shares).max() < 0.1
