"""The ledger of one dataset: every debit durable before anything is measured, none ever lowered."""

from __future__ import annotations

import hashlib
import json
import os
import re
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import ROUND_FLOOR
from fractions import Fraction
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any, final

from matrixdp.errors import PrivacyError, StorageError, reading
from matrixdp.ledger import database
from matrixdp.ledger.database import KEPT, MEASURES, SQLITE, Account, Driver, Session, file_error, session
from matrixdp.locks import whole_path
from matrixdp.noise import Cost, noise_named
from matrixdp.privacy import Budget
from matrixdp.privacy.budget import exact_budget, exact_number, exact_text, number_text
from matrixdp.privacy.conversions import float_above

# The entries of a ledger, and what a release says of its own.

#: What becomes of an entry; its cost counts in every state.
STATES = ("reserved", "measured", "released", "abandoned")

#: What the file says of an abandoned entry.
_ABANDONED = "spent by crash"
_SHA256 = re.compile("[0-9a-f]{64}", re.ASCII)
_ID = re.compile("[0-9a-f]{32}", re.ASCII)
_SUMS = ("rho", "squared_mu", "epsilon", "delta")


def check_name(dataset: object) -> None:
    """Check the name of a dataset, which statements and messages show."""
    if not (isinstance(dataset, str) and dataset.strip() and dataset.isprintable() and len(dataset) <= 1000):
        expected = "text of one line that is not empty, at most 1,000 characters"
        raise PrivacyError.at(("dataset",), "no name", expected, code="wrong-type")


def chained(previous: str, *parts: object) -> str:
    """Return the SHA-256 of what is added after a digest: no entry can be changed and leave the later ones.

    Examples
    --------
    >>> chained("", "one") == chained("", "two")
    False
    """
    return hashlib.sha256(json.dumps([previous, *parts]).encode()).hexdigest()


@final
@dataclass(frozen=True)
class Entry:
    """One debit of a ledger.

    Attributes
    ----------
    number : int
        Its place, from 1.
    id : str
        Its name: 32 hexadecimal digits.
    time : str
        When it was debited: UTC, ISO 8601.
    state : {"reserved", "measured", "released", "abandoned"}
        What became of it; its cost counts in every state.
    cost : Cost
        The exact cost of one record that moves, with its noise.
    budget : Budget
        What might have been spent.
    version : str
        The version of matrixdp that debited it.
    release : str or None
        Where the release was to go, as far as it was known.
    measurement : str or None
        The SHA-256 of the file of the measurement, once there was one.
    digest : str
        The SHA-256 of the entry and all before it, what `state` and `measurement` say aside.
    """

    number: int
    id: str
    time: str
    state: str
    cost: Cost
    budget: Budget
    version: str
    release: str | None
    measurement: str | None
    digest: str

    @staticmethod
    def read(row: tuple[Any, ...], previous: str) -> Entry:
        """Return the entry that a row holds; it must be one, and follow on what is before it.

        Raises
        ------
        PrivacyError
            If it is none.
        """
        *own, digest, state, measurement = row
        number, name, time, noise, cost, budget, version, release = own
        state = "abandoned" if state == _ABANDONED else state
        texts = (name, time, state, noise, cost, budget, version, digest)
        if not all(isinstance(text, str) for text in texts) or state not in STATES:
            raise PrivacyError("it is not in the form that it should have", code="damaged-file")
        if digest != chained(previous, *own):
            raise PrivacyError("its digest is wrong", code="damaged-file")
        if not _ID.fullmatch(name) or not (measurement is None or _SHA256.fullmatch(measurement)):
            raise PrivacyError("its name or the digest of its measurement is none", code="damaged-file")
        spent, allowed = _read_cost(cost, noise), exact_budget(json.loads(budget))
        place = None if release is None else str(json.loads(release))
        return Entry(number, name, time, state, spent, allowed, version, place, measurement, digest)

    def as_dict(self) -> dict[str, object]:
        """Return the entry as JSON has it; the exact cost is text, numerator/denominator."""
        return {
            "entry": self.id,
            "time": self.time,
            "state": self.state,
            "noise": self.cost.noise.name,
            "cost": _cost_text(self.cost),
            "budget": self.budget.as_dict(),
            "version": self.version,
            "release": self.release,
            "measurement": self.measurement,
            "digest": self.digest,
        }


@final
@dataclass(frozen=True)
class LedgerEntry:
    """What a release says of the ledger that it was debited to.

    Attributes
    ----------
    dataset : str
        The name of the dataset.
    entry : str
        The name of the entry.
    total : Budget
        What all releases of the ledger together may spend.
    before, after : mapping of str to str or None
        What was spent before and after the debit, exact: the sum of rho, of squared mu or of pure epsilon.
    digest : str
        That of the entry: whoever holds a release can tell whether the ledger was rewritten since.

    Raises
    ------
    PrivacyError
        If it is not in this form.
    """

    dataset: str
    entry: str
    total: Budget
    before: Mapping[str, str | None]
    after: Mapping[str, str | None]
    digest: str

    def __post_init__(self) -> None:
        check_name(self.dataset)
        named = isinstance(self.entry, str) and _ID.fullmatch(self.entry)
        if not named or not isinstance(self.digest, str) or not _SHA256.fullmatch(self.digest):
            raise PrivacyError("ledger: found an entry without a proper name or digest", code="damaged-file")
        for sums in (self.before, self.after):
            if not sums or not set(sums) <= set(_SUMS):
                told = "ledger: found other sums than of rho, squared mu or epsilon"
                raise PrivacyError(told, "damaged-file")
            _exact(sums.values())

    def check(self, cost: Cost, budget: Budget) -> None:
        """Check that this is the entry of a cost within a budget, and that the total is kept.

        Raises
        ------
        PrivacyError
            If what was spent before and the cost do not come to what was spent after, or exceed the total.
        """
        names = MEASURES[self.total.kind]
        if set(self.before) - {"delta"} != set(names):
            raise PrivacyError("ledger: found sums of another kind than the total", code="damaged-file")
        spent = exact_number(self.before.get("delta", "0"))
        before = Account(self.total, _exact(self.before[name] for name in names), spent)
        after = before.plus(cost, budget)
        if after.as_dict() != self.after or not after.within:
            told = "ledger: found an entry of another cost, or one above the total"
            raise PrivacyError(told, "damaged-file")

    def as_dict(self) -> dict[str, object]:
        """Return it as JSON has it, every number exact; `read` takes it back."""
        return {
            "dataset": self.dataset,
            "entry": self.entry,
            "total": exact_text(self.total),
            "spent_before": dict(self.before),
            "spent_after": dict(self.after),
            "digest": self.digest,
        }

    @staticmethod
    def read(written: Mapping[str, Any]) -> LedgerEntry:
        """Return what `as_dict` wrote.

        Raises
        ------
        PrivacyError
            If it is not in this form.
        """
        before, after = dict(written["spent_before"]), dict(written["spent_after"])
        total = exact_budget(written["total"])
        return LedgerEntry(written["dataset"], written["entry"], total, before, after, written["digest"])


def _exact(texts: Iterable[str | None]) -> tuple[Fraction | None, ...]:
    return tuple(None if text is None else exact_number(text) for text in texts)


def _cost_text(cost: Cost) -> str:
    """Return a cost as entries have it: its value, and its delta where it has one."""
    value = number_text(cost.value)
    return f"{value} + {number_text(cost.delta)}" if cost.delta else value


def _read_cost(text: str, noise: str) -> Cost:
    value, plus, delta = text.partition(" + ")
    return Cost(exact_number(value), noise_named(noise), exact_number(delta) if plus else Fraction(0))


def now() -> str:
    """Return the time as entries have it."""
    return datetime.now(UTC).isoformat(timespec="seconds")


@cache
def version(package: str = "matrixdp") -> str:
    """Return the version of a package that is running, as what is written says it."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "unknown"


_ADVANCES = {
    "measured": ("reserved", "measured", "abandoned"),
    "released": ("measured",),
    "abandoned": ("reserved", "measured"),
}
_ROWS = f"SELECT {', '.join(KEPT)}, state, measurement FROM entries ORDER BY number"  # noqa: S608
_DEBIT = f"INSERT INTO entries ({', '.join(KEPT)}, state) VALUES ({'?, ' * len(KEPT)}'reserved')"  # noqa: S608


@final
@dataclass(frozen=True)
class Ledger:
    """What may be spent on one dataset, and what was: a file that every release of it is debited to.

    Each operation is one transaction of its own; any number of processes may use the same file at once.
    Nothing is kept in memory but the terms, which never change.

    Attributes
    ----------
    path : Path
        The file, absolute.
    dataset : str
        The name of the dataset.
    total : Budget
        What all releases together may spend, exact, with the neighbours and the unit of every one of them.

    Notes
    -----
    That no choice of releases, each made in knowledge of those before it, exceeds the total is proved in
    docs/privacy.md ("Releases under one ledger").

    References
    ----------
    R. Rogers, A. Roth, J. Ullman and S. Vadhan, Privacy odometers and filters, NeurIPS 2016.
    V. Feldman and T. Zrnic, Individual privacy accounting via a Renyi filter, NeurIPS 2021 (zCDP).
    A. Smith and A. Thakurta, Fully adaptive composition for Gaussian differential privacy, 2022.

    Examples
    --------
    >>> import tempfile
    >>> from matrixdp.noise import GAUSSIAN
    >>> release = Budget(rho=0.75)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     ledger = Ledger.create(f"{folder}/health.ledger", "health", Budget(rho=1))
    ...     record = ledger.reserve(GAUSSIAN.cost(release), release).record
    ...     record.after, ledger.left
    ({'rho': '3/4'}, Budget(rho=0.25, neighbours='add_remove'))
    """

    path: Path
    dataset: str
    total: Budget
    _terms: str = field(repr=False)
    _driver: Driver = field(default=SQLITE, repr=False, compare=False)

    @classmethod
    def create(
        cls, path: str | os.PathLike[str], dataset: str, total: Budget, *, driver: Driver = SQLITE
    ) -> Ledger:
        """Make a ledger.

        Parameters
        ----------
        path : str or path
            The file, which must not be there yet.
        dataset : str
            The name of the dataset, which releases show.
        total : Budget
            What all releases together may spend.
        driver : Driver
            How files are opened.

        Returns
        -------
        Ledger
            On the disk when this returns.

        Raises
        ------
        PrivacyError
            If the name is no text of one line, or the total is no budget.
        StorageError
            If the file is there, or cannot be made.
        """
        check_name(dataset)
        if not isinstance(total, Budget):
            raise PrivacyError(f"total: found a {type(total).__name__}; expected a Budget", code="wrong-type")
        terms = json.dumps({"dataset": dataset, "total": exact_text(total)}, sort_keys=True)
        file = whole_path(path)
        try:
            driver.create(file)
        except FileExistsError:
            told = f"{file}: found a file; expected one that is not there yet"
            raise StorageError(told, "file-exists") from None
        except (OSError, ValueError) as error:
            raise StorageError.unwritable(file, error) from None
        try:
            with session(file, driver, write=True, new=True) as found:
                found.rows("INSERT INTO ledger VALUES (1, ?, ?, ?)", terms, now(), version())
        except BaseException:
            with suppress(OSError):
                file.unlink(missing_ok=True)
            raise
        return cls(file, dataset, total, terms, driver)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle as the file that it is."""
        return Ledger.open, (self.path,)

    @classmethod
    def open(cls, path: str | os.PathLike[str], *, driver: Driver = SQLITE) -> Ledger:
        """Return the ledger that a file holds; all of it is checked.

        Parameters
        ----------
        path : str or path
            The file; it is never made.
        driver : Driver
            How files are opened.

        Raises
        ------
        StorageError
            If there is no such file, or it is not a ledger, newer than this program, damaged or altered.
        """
        file = whole_path(path)
        with session(file, driver, write=False) as found:
            terms = _terms(file, found)[0]
            with reading(file, "its terms"):
                written = json.loads(terms)
                check_name(written["dataset"])
                ledger = cls(file, written["dataset"], exact_budget(written["total"]), terms, driver)
            ledger._account(ledger._read(found))
        return ledger

    @property
    def entries(self) -> tuple[Entry, ...]:
        """Every debit, the first one first."""
        with session(self.path, self._driver, write=False) as found:
            return self._read(found)

    def entry(self, name: str) -> Entry:
        """Return a debit by its name.

        Raises
        ------
        StorageError
            If there is none of that name.
        """
        return self._named(name, self.entries)

    def _named(self, name: str, entries: tuple[Entry, ...]) -> Entry:
        for entry in entries:
            if entry.id == name:
                return entry
        told = f"found no entry {name}; was the file replaced by an older one?"
        raise file_error(self.path, told, "unknown-name")

    @property
    def account(self) -> Account:
        """What the entries add up to."""
        return self._account(self.entries)

    @property
    def spent(self) -> Budget | None:
        """What was spent in the definition of the total, rounded up; None for nothing.

        For (epsilon, delta) the epsilon at the delta of the total.
        """
        return self.account.spent

    @property
    def left(self) -> Budget | None:
        """The most that one further release may spend in the definition of the total; None for nothing.

        Rounded down; less than a billionth of the total is nothing. For (epsilon, delta) the epsilon at the
        delta of the total, and with the noise that is allowed most.
        """
        return self.account.left

    def check(self, cost: Cost, budget: Budget) -> None:
        """Refuse a cost above what is left; nothing is written.

        Parameters
        ----------
        cost : Cost
            The exact cost of one record that moves.
        budget : Budget
            What may be spent, at least that cost.

        Raises
        ------
        PrivacyError
            If it is more than what is left, or for other neighbours or another unit than the total.
        StorageError
            If the ledger cannot be read.
        """
        self._check(self.account, cost, budget)

    def payable(self, budget: Budget, costs: Sequence[Cost]) -> tuple[Cost, ...]:
        """Return those of some costs within a budget that are left; nothing is written.

        Raises
        ------
        PrivacyError
            If there is none; that of the last.
        StorageError
            If the ledger cannot be read.
        """
        found: list[Cost] = []
        for place, cost in enumerate(costs, start=1):
            try:
                self.check(cost, budget)
                found.append(cost)
            except PrivacyError:
                if place == len(costs) and not found:
                    raise
        return tuple(found)

    def reserve(
        self, cost: Cost, budget: Budget, release: str | os.PathLike[str] | None = None
    ) -> Reservation:
        """Debit a cost, before any record is counted.

        It is checked and written in one transaction, which no other process comes between, and it counts
        from then on, whatever becomes of the release.

        Parameters
        ----------
        cost : Cost
            The exact cost of one record that moves.
        budget : Budget
            What may be spent, at least that cost.
        release : str or path, optional
            Where the release will go, for `ledger recover`.

        Returns
        -------
        Reservation
            The debit, on the disk when this returns.

        Raises
        ------
        PrivacyError
            If it is more than what is left, or for other neighbours or another unit than the total. Then
            nothing was debited.
        StorageError
            If the ledger cannot be written. Then nothing may be measured; where the commit itself failed,
            the debit may have been made all the same, and counts.
        """
        with session(self.path, self._driver, write=True) as found:
            entries = self._read(found)
            before = self._account(entries)
            after = self._check(before, cost, budget)
            spent, terms = _cost_text(cost), json.dumps(exact_text(budget), sort_keys=True)
            place = None if release is None else json.dumps(str(whole_path(release)))
            last = entries[-1].digest if entries else chained("", *_terms(self.path, found))
            # a name, not a secret: it differs from all others because what is before it does
            name = chained(last, time.time_ns(), os.getpid())[:32]
            own = (len(entries) + 1, name, now(), cost.noise.name, spent, terms, version(), place)
            digest = chained(last, *own)
            run = self._driver.run(database.running_path(self.path, name))
            found.rows(_DEBIT, *own, digest)
            record = LedgerEntry(self.dataset, name, self.total, before.as_dict(), after.as_dict(), digest)
        return Reservation(self, record, run)

    def advance(
        self, entry: str, state: str, measurement: str | None = None, *, after: str | None = None
    ) -> None:
        """Write down what became of an entry; its cost stays.

        Parameters
        ----------
        entry : str
            Its name.
        state : {"measured", "released", "abandoned"}
            From reserved to measured to released; what is lost is abandoned, and its budget counts as spent,
            until its measurement is found after all.
        measurement : str, optional
            The SHA-256 of the file of the measurement: of the last one before the release, which is kept.
        after : str, optional
            Which measurement of a series it follows: the entry must still hold that one. It is compared and
            replaced in one transaction, so that the second of two that follow the same one is rejected.

        Raises
        ------
        StorageError
            If there is no such entry, it cannot come to that state, it holds another measurement, or the
            ledger cannot be written.
        """
        with session(self.path, self._driver, write=True) as found:
            old = self._named(entry, self._read(found))
            digest = measurement if state == "measured" else measurement or old.measurement
            if (old.state, old.measurement) == (state, digest):
                return
            other = old.measurement not in (after, digest)
            if other or old.state not in _ADVANCES.get(state, ()):
                told = f"entry {entry} is {old.state} and cannot become {state}"
                told += " with that measurement: another run was faster" if other else ""
                raise StorageError(f"{self.path}: {told}", "already-spent" if other else None)
            kept = _ABANDONED if state == "abandoned" else state
            found.rows("UPDATE entries SET state = ?, measurement = ? WHERE id = ?", kept, digest, entry)

    def _account(self, entries: tuple[Entry, ...]) -> Account:
        with reading(self.path, "what its entries come to"):
            return Account.of(self.total, ((one.cost, one.budget) for one in entries))

    def _check(self, account: Account, cost: Cost, budget: Budget) -> Account:
        """Return the account after a cost; refuse it above the total."""
        after = account.plus(cost, budget)
        if not after.within:
            left, of = account.left, f"{database.in_words(self.total.as_dict())} for {self.dataset}"
            expected = f"no more release: all of {of} is spent"
            if left is not None:
                most = database.in_words(left.as_dict(), ROUND_FLOOR)
                most += " with the noise that it allows most" if self.total.kind == "approx" else ""
                expected = f"at most {most}, which is what {self.path} has left of {of}"
            bounded = any(one is not None for one in after.sums)
            given = database.in_words(budget.as_dict())
            found = f"{given} with {cost.noise} noise" if bounded else f"{cost.noise} noise"
            raise PrivacyError.at(("ledger",), found, expected, code="budget-exceeded")
        return after

    def _read(self, found: Session) -> tuple[Entry, ...]:
        """Return every entry, checked, of a ledger that must still have the same terms."""
        terms = _terms(self.path, found)
        if terms[0] != self._terms:
            raise file_error(self.path, "holds another ledger than when it was opened")
        digest = chained("", *terms)
        entries: list[Entry] = []
        for row in found.rows(_ROWS):
            with reading(self.path, f"its entry {len(entries) + 1}"):
                entry = Entry.read(row, digest)
                if entry.number != len(entries) + 1:
                    raise PrivacyError("it does not follow the one before", code="damaged-file")
            entries.append(entry)
            digest = entry.digest
        return tuple(entries)


@final
@dataclass(frozen=True)
class Reservation:
    """A debit that was made for one release.

    Attributes
    ----------
    ledger : Ledger
        Where it was made.
    record : LedgerEntry
        What the release says of it.
    run : Running or None
        Says to `ledger recover` that this process goes on.
    """

    ledger: Ledger
    record: LedgerEntry
    run: database.Running | None = field(default=None, repr=False, compare=False)

    def __deepcopy__(self, _: object) -> Reservation:
        return self

    def __reduce__(self) -> tuple[type[None], tuple[()]]:
        """Pickle as nothing: a run is that of its process."""
        return type(None), ()

    @property
    def note(self) -> str:
        """What to say when something fails after the debit."""
        debited = f"The ledger {self.ledger.path} was debited for {self.record.dataset}"
        return f"{debited}: entry {self.record.entry} counts as spent"

    def measured(self, sha256: str) -> None:
        """Write down that the file of the measurement is on the disk; nothing once it is released.

        Raises
        ------
        StorageError
            If the ledger cannot be written.
        """
        self._advance("measured", sha256)

    def released(self, sha256: str) -> None:
        """Write down that the release with that measurement is in its place; nothing if one was before.

        Raises
        ------
        StorageError
            If the ledger cannot be written.
        """
        self._advance("released", sha256)
        if self.run is not None:
            self.run.end()

    def _advance(self, state: str, sha256: str) -> None:
        held = self.ledger.entry(self.record.entry)
        if held.state != "released":  # a second file of one measurement may take the place of the first
            self.ledger.advance(held.id, state, sha256, after=held.measurement)


def _terms(path: Path, found: Session) -> tuple[Any, ...]:
    rows = found.rows("SELECT terms, created, version FROM ledger")
    if len(rows) != 1 or not all(isinstance(text, str) for text in rows[0]):
        raise file_error(path, "damaged or altered: it does not have its terms once")
    return rows[0]


# What a ledger says to its readers, as plain values: no figure claims more than is so.


def parameters(value: Budget | None, total: Budget, *, above: bool) -> dict[str, float]:
    """Return the parameters of a part of a total; of what was spent rounded up, of what is left down.

    What is not rounded up is written as budgets write themselves, and so can be given again.

    Examples
    --------
    >>> parameters(None, Budget(rho=0.1), above=True), parameters(Budget(rho=0.1), Budget(rho=1), above=False)
    ({'rho': 0.0}, {'rho': 0.1})
    """
    written = (value or total).as_dict()
    numbers: dict[str, float] = {name: written[name] for name in total.given}
    for name in numbers.keys() - {"delta"} if above or value is None else ():
        numbers[name] = 0.0 if value is None else float_above(value.given[name])
    return numbers


def report(ledger: Ledger) -> dict[str, Any]:
    """Return what a ledger holds as JSON has it, all of it read at once.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     shown = report(Ledger.create(f"{folder}/ledger", "health", Budget(rho=1)))
    >>> shown["dataset"], shown["spent"], shown["left"], shown["entries"]
    ('health', {'rho': 0.0}, {'rho': 1.0}, [])
    """
    entries, total = ledger.entries, ledger.total
    account = ledger._account(entries)
    return {
        "dataset": ledger.dataset,
        "definition": {"rho": "zCDP", "mu": "GDP", "approx": "approximate DP", "pure": "pure DP"}[total.kind],
        "neighbours": total.neighbours,
        "unit": total.unit.as_dict(),
        "total": parameters(total, total, above=False),
        "spent": parameters(account.spent, total, above=True),
        "left": parameters(account.left, total, above=False),
        "exact": {"total": exact_text(total), "spent": account.as_dict()},
        "entries": [entry.as_dict() for entry in entries],
    }
