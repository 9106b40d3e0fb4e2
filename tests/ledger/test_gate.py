"""The gate with a ledger, from Python: what is refused, what is debited, and in which order."""

from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import matrixdp as mdp
from matrixdp.errors import PrivacyError, SourceError
from matrixdp.ledger import Ledger
from matrixdp.measure import measurement
from matrixdp.noise import GAUSSIAN
from matrixdp.sources import open_source
from matrixdp.sources.base import Source
from matrixdp.storage.formats import load_measurement, save_measurement

DOMAIN = mdp.Domain({"sex": ["female", "male"]})
WORKLOAD = mdp.Workload(DOMAIN, mdp.marginals(1))
TABLE = {"sex": ["female", "male"] * 50}
HALF = mdp.Budget(rho=0.5)


@pytest.fixture(scope="module")
def strategy() -> mdp.Strategy:
    return mdp.select(WORKLOAD)


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger.create(tmp_path / "people.ledger", "people", mdp.Budget(rho=1))


def states(ledger: Ledger) -> list[str]:
    return [entry.state for entry in ledger.entries]


def test_from_reserved_to_released(strategy: mdp.Strategy, ledger: Ledger, tmp_path: Path):
    measured = strategy.measure(TABLE, HALF, ledger=ledger, release=tmp_path / "out")
    assert states(ledger) == ["reserved"]
    assert ledger.entries[0].release == str(tmp_path / "out")
    authorization = measured.measurement.authorization
    assert authorization.ledger.after == ledger.account.as_dict()
    assert "Debited to the ledger of people" in authorization.note
    mdp.save_release(measured.reconstruct(), tmp_path / "out")
    assert states(ledger) == ["released"]
    again = mdp.load_release(tmp_path / "out")
    assert again.measurement.authorization == authorization
    assert again.statement == measured.reconstruct().statement
    # what is there already is post-processing, and changes nothing
    digest = ledger.entries[0].measurement
    mdp.save_release(measured.reconstruct(confidence=0.8), tmp_path / "again")
    wider = mdp.Workload(DOMAIN, mdp.marginals([0, 1]))
    mdp.save_release(measured.reconstruct(wider), tmp_path / "wider")
    mdp.save_release(again, tmp_path / "copy")
    assert ledger.entries[0].measurement == digest
    assert len(ledger.entries) == 1


def test_the_same_measurement_is_the_same_file(strategy: mdp.Strategy, ledger: Ledger, tmp_path: Path):
    measured = strategy.measure(TABLE, HALF, ledger=ledger)
    for name in ("one", "two"):
        save_measurement(tmp_path / name, measured.measurement, WORKLOAD)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()
    found = load_measurement(tmp_path / "one")[0]
    assert found.reservation is None
    assert found.authorization == measured.measurement.authorization


def test_a_second_file_before_the_release_takes_the_place_of_the_first(
    strategy: mdp.Strategy, ledger: Ledger, tmp_path: Path
):
    reservation = strategy.measure(TABLE, HALF, ledger=ledger).measurement.reservation
    reservation.measured("a" * 64)
    reservation.measured("b" * 64)
    assert ledger.entries[0].measurement == "b" * 64
    reservation.released("b" * 64)
    reservation.measured("c" * 64)
    reservation.released("c" * 64)
    assert (states(ledger), ledger.entries[0].measurement) == (["released"], "b" * 64)


def test_refused_before_the_table_is_opened(strategy: mdp.Strategy, ledger: Ledger):
    strategy.measure(TABLE, HALF, ledger=ledger)
    with pytest.raises(PrivacyError, match="ledger: found rho"):
        strategy.measure("/no/such/table.csv", mdp.Budget(rho=0.6), ledger=ledger)
    with pytest.raises(PrivacyError, match="found rho"):
        strategy.check_budget(mdp.Budget(rho=0.6), ledger)
    strategy.check_budget(HALF, ledger)
    assert states(ledger) == ["reserved"]


class Watched(Source):
    """A table that does something when it is opened, is counted, or says what it assumes."""

    def __init__(self, opened=bool, counted=bool, assumed=tuple) -> None:
        self.opened, self.counted, self.assumed = opened, counted, assumed

    def count(self, request) -> Iterator:
        self.opened()
        return self._marginals(request)

    def _marginals(self, request) -> Iterator:
        self.counted()
        yield from open_source(TABLE).marginals(DOMAIN, request.subsets, request.out_of_domain)

    def assumptions(self, domain) -> tuple[str, ...]:
        return self.assumed()


def gone():
    raise SourceError("the database is gone")


@pytest.mark.parametrize("table", [{"other": [1]}, "/no/such/table.csv", Watched(assumed=gone)])
def test_a_table_that_is_refused_costs_nothing(strategy: mdp.Strategy, ledger: Ledger, table: Any):
    plan = strategy.selection.plan
    with pytest.raises(SourceError):
        measurement.measure(
            plan, table if isinstance(table, Source) else open_source(table), HALF, ledger=ledger
        )
    assert ledger.entries == ()


def test_nothing_is_counted_before_the_debit(strategy: mdp.Strategy, ledger: Ledger):
    seen: list[list[str]] = []
    source = Watched(lambda: seen.append(states(ledger)), lambda: seen.append(states(ledger)))
    measured = measurement.measure(strategy.selection.plan, source, HALF, ledger=ledger)
    assert seen == [[], ["reserved"]]
    assert measured.reservation.record.entry == ledger.entries[0].id


def test_what_fails_after_the_debit_says_so(strategy: mdp.Strategy, ledger: Ledger):
    def stop(done: int, total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as error:
        strategy.measure(TABLE, HALF, ledger=ledger, progress=stop)
    (note,) = error.value.__notes__
    assert f"debited for people: entry {ledger.entries[0].id} counts as spent" in note
    with pytest.raises(KeyboardInterrupt) as error:
        strategy.measure(TABLE, HALF, progress=stop)
    assert not hasattr(error.value, "__notes__")


def test_others_may_spend_what_was_left_meanwhile(strategy: mdp.Strategy, ledger: Ledger):
    other, counted = mdp.Budget(rho=0.8), []
    slow = Watched(lambda: ledger.reserve(GAUSSIAN.cost(other), other), lambda: counted.append(1))
    with pytest.raises(PrivacyError, match="ledger: found rho"):
        measurement.measure(strategy.selection.plan, slow, HALF, ledger=ledger)
    assert len(ledger.entries) == 1
    assert counted == []


def test_seeded_noise_is_not_debited(strategy: mdp.Strategy, ledger: Ledger, tmp_path: Path):
    measured = strategy.measure(TABLE, mdp.Budget(rho=5), ledger=ledger, seed_not_private=1)
    assert measured.measurement.authorization.ledger is None
    mdp.save_release(measured.reconstruct(), tmp_path / "out")
    assert ledger.entries == ()


@pytest.mark.parametrize(
    ("total", "words"),
    [
        (mdp.Budget(rho=1), "together keep to 1-zCDP."),
        (mdp.Budget(rho=0.6), "together keep to 0.6-zCDP."),
        (mdp.Budget(mu=Fraction(1, 3)), "together keep to 0.3334-GDP."),
        (mdp.Budget(epsilon=9, delta=Fraction(1, 10**6)), "keep to (9, 1e-06)-differential privacy."),
        (mdp.Budget(epsilon=1), "together keep to 1-differential privacy (pure: delta is 0)."),
    ],
)
def test_the_statement_says_what_all_releases_keep_to(total: mdp.Budget, words: str, tmp_path: Path):
    ledger = Ledger.create(tmp_path / "any", "people", total)
    budget = mdp.Budget(epsilon=0.1)
    measured = mdp.select(WORKLOAD, noise="laplace").measure(TABLE, budget, ledger=ledger)
    statement = measured.reconstruct().statement
    assert words in statement.text
    assert "no ledger" not in statement.text
    assert statement.as_dict()["covered"][-1]["text"].endswith(words)
    assert statement.as_dict()["ledger"]["entry"] == ledger.entries[0].id
