"""What mechanisms that depend on the table pay: before they read it, and exactly what they say."""

import itertools
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from pathlib import Path
from threading import Barrier
from typing import Any

import numpy as np
import pytest

import matrixdp as mdp
from matrixdp.errors import PrivacyError, SourceError
from matrixdp.ledger import Ledger
from matrixdp.noise import LAPLACE
from matrixdp.papers.dawa import dawa
from matrixdp.papers.privbayes import privbayes
from matrixdp.papers.privbayes.scores import SCORES
from matrixdp.papers.spending import Spent, cost_of
from matrixdp.sources import open_source
from matrixdp.sources.base import Source

ONE = mdp.Budget(epsilon=1)
LINE = mdp.Workload(mdp.Domain({"a": range(16)}), mdp.product(a="prefix"))
MIXED = mdp.Workload(mdp.Domain({"a": 3, "b": 4, "c": 2}), mdp.marginals([1, 2]))
BINARY = mdp.Workload(mdp.Domain(dict.fromkeys("abcd", 2)), mdp.marginals(2))
TABLE: dict[str, Any] = {
    "a": np.arange(900) % 2,
    "b": np.arange(900) % 2,
    "c": np.arange(900) // 7 % 2,
    "d": [0] * 900,
}
RUNS: dict[str, Callable[..., Any]] = {
    "dawa": lambda *given, **named: dawa(LINE, *given, **named),
    "privbayes": lambda *given, **named: privbayes(MIXED, *given, **named),
}


@pytest.fixture(params=RUNS)
def run(request) -> Callable[..., Any]:
    return RUNS[request.param]


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger.create(tmp_path / "people.ledger", "people", mdp.Budget(epsilon=1.5))


@pytest.fixture(autouse=True)
def open_sources_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "matrixdp.papers.door.open_source",
        lambda table, **named: table if isinstance(table, Source) else open_source(table, **named),
    )


class Watched(Source):
    """A table that does something before it is counted."""

    def __init__(self, counted: Callable[[], object]) -> None:
        self.counted = counted

    def count(self, request) -> Iterator:
        self.counted()
        own = {name: TABLE[name] for name in request.domain.names}
        yield from open_source(own).marginals(request.domain, request.subsets, request.out_of_domain)


def gone():
    raise SourceError("the database is gone")


def test_the_whole_budget_is_debited_before_any_record_is_read(run, ledger: Ledger):
    seen: list[list[Fraction]] = []
    release = run(
        Watched(lambda: seen.append([own.cost.value for own in ledger.entries])), ONE, ledger=ledger
    )
    assert seen
    assert all(costs == [1] for costs in seen)
    (entry,) = ledger.entries
    assert (entry.state, entry.budget, entry.cost) == ("reserved", ONE, release.authorization.cost)
    assert release.authorization.ledger.entry == entry.id
    assert release.authorization.ledger.after == ledger.account.as_dict() == {"epsilon": "1"}
    assert "Debited to the ledger of people" in release.authorization.note
    assert "ledger of people" in release.privacy.text
    assert release.privacy.as_dict()["ledger"]["entry"] == entry.id


def test_a_path_names_a_ledger_and_replacement_pays_what_it_costs(run, ledger: Ledger):
    replaced = Ledger.create(
        ledger.path.with_suffix(".two"), "people", mdp.Budget(epsilon=1, neighbours="replace")
    )
    release = run(TABLE, mdp.Budget(epsilon=1, neighbours="replace"), ledger=str(replaced.path))
    assert release.authorization.ledger.entry == replaced.entries[0].id
    assert replaced.left is None
    with pytest.raises(PrivacyError, match="neighbours"):
        run(TABLE, ONE, ledger=replaced)


def test_what_fails_after_the_debit_says_so(run, ledger: Ledger):
    with pytest.raises(SourceError, match="gone") as error:
        run(Watched(gone), ONE, ledger=ledger)
    (note,) = error.value.__notes__
    assert f"debited for people: entry {ledger.entries[0].id} counts as spent" in note
    with pytest.raises(SourceError, match="gone") as error:
        run(Watched(gone), ONE)
    assert not hasattr(error.value, "__notes__")


def test_an_interrupted_debit_says_where_to_look(run, ledger: Ledger, monkeypatch: pytest.MonkeyPatch):
    def stopped(*given: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("matrixdp.papers.door.debit", stopped)
    with pytest.raises(KeyboardInterrupt) as error:
        run(TABLE, ONE, ledger=ledger)
    assert "may have been debited" in error.value.__notes__[0]


def test_too_little_left_is_rejected_before_the_table_is_opened(run, ledger: Ledger):
    run(TABLE, ONE, ledger=ledger)
    with pytest.raises(PrivacyError, match="ledger: found epsilon") as error:
        run("/no/such/table.csv", ONE, ledger=ledger)
    assert error.value.code == "budget-exceeded"
    assert len(ledger.entries) == 1
    run(TABLE, mdp.Budget(epsilon=0.5), ledger=ledger)
    assert ledger.left is None
    with pytest.raises(PrivacyError, match="expected a Ledger"):
        run("/no/such/table.csv", ONE, ledger=7)


@pytest.mark.parametrize("table", [{"other": [1]}, "/no/such/table.csv"], ids=["column", "path"])
def test_a_table_that_is_rejected_costs_nothing(run, ledger: Ledger, table: Any):
    with pytest.raises(SourceError):
        run(table, ONE, ledger=ledger)
    assert ledger.entries == ()


def test_a_seeded_run_debits_nothing(run, ledger: Ledger):
    for _ in range(3):
        release = run(TABLE, ONE, ledger=ledger, seed_not_private=1)
    assert release.authorization.ledger is None
    assert ledger.entries == ()
    run(TABLE, ONE, ledger="/no/such.ledger", seed_not_private=1)


def test_of_two_runs_at_once_one_is_rejected_and_reads_nothing(run, ledger: Ledger):
    """Both pass the first check, as the ledger still has enough for either."""
    together, read = Barrier(2), []

    class Slow(Watched):
        def assumptions(self, domain) -> tuple[str, ...]:
            together.wait(timeout=600)
            return ()

    def attempt(name: str) -> str:
        try:
            run(Slow(lambda: read.append(name)), ONE, ledger=ledger)
        except PrivacyError as error:
            return error.code
        return "released"

    with ThreadPoolExecutor(2) as threads:
        ended = dict(zip("ab", threads.map(attempt, "ab"), strict=True))
    assert sorted(ended.values()) == ["budget-exceeded", "released"]
    assert {ended[name] for name in read} == {"released"}
    assert len(ledger.entries) == 1


# The cost again, from a release alone.

BUDGETS = [ONE, mdp.Budget(rho=2), mdp.Budget(epsilon=Fraction(7, 3), neighbours="replace")]


def check(spent: Fraction, release: Any) -> None:
    cost = release.authorization.cost.value
    assert cost == LAPLACE.cost(release.authorization.budget).value
    assert spent == cost_of(release.spent)
    assert cost * (1 - Fraction(1, 10**6)) < spent <= cost  # scales are rounded up


@pytest.mark.parametrize("budget", BUDGETS)
@pytest.mark.parametrize("records", [9, 900])
@pytest.mark.parametrize(("workload", "score"), [(MIXED, None), (MIXED, "I"), (BINARY, None), (LINE, None)])
def test_the_cost_of_privbayes_follows_from_its_release(
    workload: mdp.Workload, score: str | None, records: int, budget: mdp.Budget
):
    table = {name: TABLE[name][:records] for name in workload.domain.names}
    release = privbayes(workload, table, budget, score=score)
    families = release.network.families
    total, *choices, marginals = release.spent
    # one record moves the number of records by one, and one cell of each table by one
    assert total.step == "records"
    assert total.sensitivity == 1
    sets = {frozenset((child, *parents)) for child, parents in families}
    measured = [own for own in sets if not any(own < other for other in sets)]
    assert marginals.step == "marginals"
    assert marginals.sensitivity == len(measured)
    if workload is MIXED and release.network.records < 60:  # noise may make more of nine
        assert len(measured) == 3  # too few records for a parent
    # the first child is drawn without the data; every other one is chosen, with its parents
    assert [own.step for own in choices] == [f"choice of {child}" for child, _ in families[1:]]
    letter = score or ("F" if workload is BINARY else "R")
    for own, (child, parents) in zip(choices, families[1:], strict=True):
        cells = np.prod([workload.domain[name].size for name in (child, *parents)])
        assert SCORES[letter].sensitivity(int(cells)) <= own.sensitivity
    epsilons = {own.sensitivity / own.scale for own in choices}
    assert len(epsilons) == min(len(choices), 1)
    chosen = len(choices) * sum(epsilons)
    check(1 / total.scale + chosen + len(measured) / marginals.scale, release)


@pytest.mark.parametrize("budget", BUDGETS)
@pytest.mark.parametrize("share", [Fraction(1, 4), Fraction(2, 3)])
def test_the_cost_of_dawa_follows_from_its_release(share: Fraction, budget: mdp.Budget):
    release = dawa(LINE, TABLE, budget, share=share)
    *intervals, tree = release.spent
    # a record lies in one bucket of every partition: of its intervals the dearest counts
    lengths = [1, 2, 4, 8, 16]
    changes = [2 - Fraction(2, length) if length <= 8 else Fraction(2) for length in lengths]
    assert [own.step for own in intervals] == ["partition"] * len(lengths)
    assert [own.sensitivity for own in intervals] == [change + 2 for change in changes]
    first = max((change + 2) / own.scale for change, own in zip(changes, intervals, strict=True))
    # a record moves every node of the tree above its bucket by the weight of the node
    nodes = [range(*own) for own in zip(release.tree.starts, release.tree.stops, strict=True)]
    assert release.tree.stops[0] == release.partition.buckets
    moved = [
        sum(int(weight) for weight, node in zip(release.tree.weights, nodes, strict=True) if bucket in node)
        for bucket in range(release.partition.buckets)
    ]
    assert tree.step == "tree"
    assert tree.sensitivity == max(moved)
    check(first + max(moved) / tree.scale, release)
    assert first <= share * release.authorization.cost.value


def test_steps_add_up_and_the_dearest_draw_of_a_step_counts():
    draws = [Spent("one", Fraction(2), Fraction(3)), Spent("one", Fraction(1), Fraction(1))]
    draws.append(Spent("two", Fraction(5), Fraction(10)))
    assert {cost_of(own) for own in itertools.permutations(draws)} == {Fraction(3, 2)}
