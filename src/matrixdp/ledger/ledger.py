"""The ledger of one dataset: every debit durable before anything is measured, none ever lowered."""

from __future__ import annotations

import json
import os
import time
from contextlib import suppress
from dataclasses import dataclass, field
from decimal import ROUND_FLOOR
from pathlib import Path
from typing import Any, final

from matrixdp.errors import PrivacyError, StorageError
from matrixdp.ledger.accounting import Account, in_words
from matrixdp.ledger.database import SQLITE, Driver, Session, make_tables, reading, session
from matrixdp.ledger.entries import Entry, LedgerEntry, chained, check_name, now, version
from matrixdp.ledger.running import Running, running_path
from matrixdp.noise import Cost
from matrixdp.privacy import Budget
from matrixdp.privacy.exact_form import exact_budget, exact_text, number_text

__all__ = ["Ledger", "Reservation"]

_ADVANCES = {
    "measured": ("reserved", "measured", "spent by crash"),
    "released": ("measured",),
    "spent by crash": ("reserved", "measured"),
}
_ROWS = (
    "SELECT number, id, time, state, noise, cost, budget, version, release, measurement, digest "
    "FROM entries ORDER BY number"
)
_DEBIT = (
    "INSERT INTO entries (number, id, time, noise, cost, budget, version, release, state, digest) "
    "VALUES (?, ?, ?, ?, ?, ?, ?, ?, 'reserved', ?)"
)


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
            raise PrivacyError(f"total: found a {type(total).__name__}; expected a Budget")
        terms = json.dumps({"dataset": dataset, "total": exact_text(total)}, sort_keys=True)
        file = Path(os.path.abspath(path))  # noqa: PTH100 - keeps symbolic links
        try:
            driver.create(file)
        except FileExistsError:
            raise StorageError(f"{file}: found a file; expected one that is not there yet") from None
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or "a name that is not a path"
            raise StorageError(f"{file}: cannot be written ({reason})") from None
        try:
            with session(file, driver, write=True, new=True) as found:
                make_tables(found)
                values = terms, now(), version()
                found.rows("INSERT INTO ledger VALUES (1, ?, ?, ?)", *values)
        except BaseException:
            with suppress(OSError):
                file.unlink(missing_ok=True)
            raise
        return cls(file, dataset, total, terms, driver)

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
        file = Path(os.path.abspath(path))  # noqa: PTH100 - keeps symbolic links
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

        Rounded down. For (epsilon, delta) the epsilon at the delta of the total, and with the noise that is
        allowed most.
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

    def reserve(
        self, cost: Cost, budget: Budget, release: str | os.PathLike[str] | None = None
    ) -> Reservation:
        """Debit a cost, before any of the data are read.

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
            spent, terms = number_text(cost.value), json.dumps(exact_text(budget), sort_keys=True)
            place = None if release is None else json.dumps(os.path.abspath(release))  # noqa: PTH100
            last = entries[-1].digest if entries else self._root(found)
            # a name, not a secret: it differs from all others because what is before it does
            name = chained(last, time.time_ns(), os.getpid())[:32]
            own = (len(entries) + 1, name, now(), cost.noise.name, spent, terms, version(), place)
            digest = chained(last, *own)
            run = self._driver.run(running_path(self.path, name))
            found.rows(_DEBIT, *own, digest)
            record = LedgerEntry(self.dataset, name, self.total, before.as_dict(), after.as_dict(), digest)
        return Reservation(self, record, run)

    def advance(self, entry: str, state: str, measurement: str | None = None) -> None:
        """Write down what became of an entry; its cost stays.

        Parameters
        ----------
        entry : str
            Its name.
        state : {"measured", "released", "spent by crash"}
            From reserved to measured to released; what is lost is spent by crash, until its measurement is
            found after all.
        measurement : str, optional
            The SHA-256 of the file of the measurement: of the last one before the release, which is kept.

        Raises
        ------
        StorageError
            If there is no such entry, it cannot come to that state, or the ledger cannot be written.
        """
        with session(self.path, self._driver, write=True) as found:
            known = {one.id: one for one in self._read(found)}
            old = known.get(entry)
            if old is None:
                raise StorageError(
                    f"{self.path}: found no entry {entry}; was the file replaced by an older one?"
                )
            digest = measurement or old.measurement
            if (old.state, old.measurement) == (state, digest):
                return
            known_by = old.measurement if state != "measured" else None
            if old.state not in _ADVANCES.get(state, ()) or (known_by or digest) != digest:
                raise StorageError(
                    f"{self.path}: entry {entry} is {old.state}; it cannot come to be {state} "
                    + ("with another measurement" if digest != old.measurement else "")
                )
            found.rows("UPDATE entries SET state = ?, measurement = ? WHERE id = ?", state, digest, entry)

    def _account(self, entries: tuple[Entry, ...]) -> Account:
        with reading(self.path, "what its entries come to"):
            return Account.of(self.total, ((one.cost, one.budget) for one in entries))

    def _check(self, account: Account, cost: Cost, budget: Budget) -> Account:
        """Return the account after a cost; refuse it above the total."""
        after = account.plus(cost, budget)
        if not after.within:
            left, of = account.left, f"{in_words(self.total.as_dict())} for {self.dataset}"
            expected = f"no more release: all of {of} is spent"
            if left is not None:
                most = in_words(left.as_dict(), ROUND_FLOOR)
                most += " with the noise that it allows most" if self.total.kind == "approx" else ""
                expected = f"at most {most}, which is what {self.path} has left of {of}"
            bounded = any(one is not None for one in after.sums)
            given = in_words(budget.as_dict())
            found = f"{given} with {cost.noise} noise" if bounded else f"{cost.noise} noise"
            raise PrivacyError.at(("ledger",), found, expected)
        return after

    def _root(self, found: Session) -> str:
        return chained("", *_terms(self.path, found))

    def _read(self, found: Session) -> tuple[Entry, ...]:
        """Return every entry, checked, of a ledger that must still have the same terms."""
        terms = _terms(self.path, found)
        if terms[0] != self._terms:
            raise StorageError(f"{self.path}: holds another ledger than when it was opened")
        digest = chained("", *terms)
        entries: list[Entry] = []
        for row in found.rows(_ROWS):
            with reading(self.path, f"its entry {len(entries) + 1}"):
                entry = Entry.read(row, digest)
                if entry.number != len(entries) + 1:
                    raise PrivacyError("it does not follow the one before")
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
    run: Running | None = field(default=None, repr=False, compare=False)

    @property
    def note(self) -> str:
        """What to say when something fails after the debit."""
        entry, ledger = self.record.entry, self.ledger
        return (
            f"The ledger {ledger.path} was debited for {self.record.dataset}: entry {entry} counts as spent"
        )

    def measured(self, sha256: str) -> None:
        """Write down that the file of the measurement is on the disk; nothing once it is released.

        Raises
        ------
        StorageError
            If the ledger cannot be written.
        """
        if not self._is_released:
            self.ledger.advance(self.record.entry, "measured", sha256)

    def released(self, sha256: str) -> None:
        """Write down that the release with that measurement is in its place; nothing if one was before.

        Raises
        ------
        StorageError
            If the ledger cannot be written.
        """
        if not self._is_released:
            self.ledger.advance(self.record.entry, "released", sha256)
        if self.run is not None:
            self.run.end()

    @property
    def _is_released(self) -> bool:
        states = {entry.id: entry.state for entry in self.ledger.entries}
        return states.get(self.record.entry) == "released"


def _terms(path: Path, found: Session) -> tuple[Any, ...]:
    rows = found.rows("SELECT terms, created, version FROM ledger")
    if len(rows) != 1 or not all(isinstance(text, str) for text in rows[0]):
        raise StorageError(f"{path}: damaged or altered: it does not have its terms once")
    return rows[0]
