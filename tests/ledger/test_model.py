"""The ledger against a list in plain Python, by random sequences of what users and crashes do."""

import shutil
import tempfile
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, Phase, settings, stateful
from hypothesis.stateful import Bundle, initialize, invariant, rule

import matrixdp as mdp
from matrixdp.errors import PrivacyError, StorageError
from matrixdp.ledger import STATES, Ledger, Reservation
from matrixdp.noise import GAUSSIAN, LAPLACE, Cost

TOTALS = (mdp.Budget(rho=1), mdp.Budget(mu=2), mdp.Budget(epsilon=1))
AMOUNTS = tuple(Fraction(n, 64) for n in (1, 8, 16, 21, 32, 64))
SHAS = ("a" * 64, "b" * 64)
HANDLES = st.integers(0, 1)


@dataclass
class Debit:
    """One entry of the plain ledger."""

    name: str
    cost: Cost
    state: str = "reserved"
    sha: str | None = None
    held: Reservation | None = None


def units(total: mdp.Budget, cost: Cost) -> Fraction:
    """What a cost comes to under a total, from the definitions: zCDP, GDP, pure differential privacy."""
    if total.kind == "rho":
        return (cost.value if cost.noise is GAUSSIAN else cost.value**2) / 2
    return cost.value


class LedgerMachine(stateful.RuleBasedStateMachine):
    debits: Bundle = Bundle("debits")

    @initialize(total=st.sampled_from(TOTALS))
    def create(self, total: mdp.Budget) -> None:
        self.folder = Path(tempfile.mkdtemp())
        self.total = total
        self.limit = {"rho": Fraction(1), "mu": Fraction(4), "pure": Fraction(1)}[total.kind]
        path = self.folder / "a.ledger"
        self.handles = [Ledger.create(path, "people", total), Ledger.open(path)]
        self.plain: list[Debit] = []

    def teardown(self) -> None:
        if hasattr(self, "folder"):
            shutil.rmtree(self.folder)

    def spent(self) -> Fraction:
        return sum((units(self.total, debit.cost) for debit in self.plain), Fraction(0))

    @rule(target=debits, handle=st.integers(0, 1), amount=st.sampled_from(AMOUNTS), gaussian=st.booleans())
    def reserve(self, handle: int, amount: Fraction, gaussian: bool):
        kind = self.total.kind
        noise = LAPLACE if kind == "pure" or (kind == "rho" and not gaussian) else GAUSSIAN
        budget = mdp.Budget(**{"epsilon" if kind == "pure" else kind: amount})  # type: ignore[arg-type]
        cost, ledger = noise.cost(budget), self.handles[handle]
        if self.spent() + units(self.total, cost) > self.limit:
            for refused in (ledger.check, ledger.reserve):
                with pytest.raises(PrivacyError, match="ledger: found"):
                    refused(cost, budget)
            return stateful.multiple()
        ledger.check(cost, budget)
        held = ledger.reserve(cost, budget)
        debit = Debit(held.record.entry, cost, held=held)
        self.plain.append(debit)
        return debit

    @rule(
        debit=debits,
        handle=HANDLES,
        state=st.sampled_from(STATES),
        sha=st.sampled_from([None, *SHAS]),
        after=st.sampled_from([None, *SHAS]),
    )
    def advance(self, debit: Debit, handle: int, state: str, sha: str | None, after: str | None) -> None:
        """Do the same on both sides; the plain one knows what may follow on what."""
        if (sha is None) != (state == "abandoned"):
            return
        after = after if state == "measured" else None
        kept = sha or debit.sha
        same = (debit.state, debit.sha) == (state, kept)
        before = {
            "measured": ("reserved", "measured", "abandoned"),
            "released": ("measured",),
            "abandoned": ("reserved", "measured"),
        }.get(state, ())
        # until it is released a measurement may follow the one that is there, if it names that
        allowed = debit.state in before and debit.sha in (kept, after)
        if same or allowed:
            self.handles[handle].advance(debit.name, state, sha, after=after)
            debit.state, debit.sha = state, kept
        else:
            with pytest.raises(StorageError, match="cannot become"):
                self.handles[handle].advance(debit.name, state, sha, after=after)

    @rule(debit=debits)
    def crash(self, debit: Debit) -> None:
        debit.held = None  # the operating system takes its lock back

    @rule(handle=st.integers(0, 1))
    def recover(self, handle: int) -> None:
        waiting = [debit for debit in self.plain if debit.state in ("reserved", "measured")]
        done = mdp.recover_ledger(self.handles[handle])
        assert [one.entry for one in done] == [debit.name for debit in waiting]
        for one, debit in zip(done, waiting, strict=True):
            assert one.settled == (debit.held is None)
            if one.settled:
                debit.state = "abandoned"  # nothing was written anywhere
            assert one.state == debit.state
        assert all(not one.settled for one in mdp.recover_ledger(self.handles[handle]))

    @rule(handle=st.integers(0, 1))
    def reopen(self, handle: int) -> None:
        self.handles[handle] = Ledger.open(self.folder / "a.ledger")

    @rule(number=st.integers(0, 9))
    def unknown(self, number: int) -> None:
        with pytest.raises(StorageError, match="found no entry"):
            self.handles[0].advance(f"{number:032x}", "measured", SHAS[0])

    @invariant()
    def show_the_same(self) -> None:
        if not hasattr(self, "plain"):
            return
        for ledger in self.handles:
            assert [(one.id, one.state, one.measurement, one.cost) for one in ledger.entries] == [
                (debit.name, debit.state, debit.sha, debit.cost) for debit in self.plain
            ]
        account = self.handles[0].account
        assert account.within
        assert account.sums == (self.spent(),)
        assert (account.spent is None) == (self.spent() == 0)


# the file system is slow at times
TestLedger = LedgerMachine.TestCase
TestLedger.settings = settings(
    max_examples=25, stateful_step_count=20, deadline=None, suppress_health_check=list(HealthCheck)
)


def test_the_machine_can_fail(monkeypatch: pytest.MonkeyPatch):
    """A ledger that forgets half of its first debit is found out."""
    real = Ledger.reserve

    def forgetful(self: Ledger, cost: Cost, budget: mdp.Budget, release=None) -> Reservation:
        return real(self, cost if self.entries else Cost(cost.value / 2, cost.noise), budget, release)

    monkeypatch.setattr(Ledger, "reserve", forgetful)
    once = settings(max_examples=50, deadline=None, database=None, derandomize=True, phases=[Phase.generate])
    with pytest.raises((AssertionError, pytest.fail.Exception)):
        stateful.run_state_machine_as_test(LedgerMachine, settings=once)
