"""The file of a ledger: SQLite, set so that what was committed survives the loss of power.

Every statement goes through a `Driver`, so that tests run the same ones on a disk that fails. A connection
lives for one operation alone.
"""

from __future__ import annotations

import os
import re
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from decimal import Context
from fractions import Fraction
from pathlib import Path
from shlex import quote as shell_quote
from typing import Any, Protocol, final
from urllib.parse import quote

from matrixdp.errors import NumericalError, PrivacyError, StorageError
from matrixdp.locks import Lock
from matrixdp.noise import Cost, Measure, checked_cost
from matrixdp.privacy import Budget, Unit, epsilon_of
from matrixdp.privacy.budget import number_text
from matrixdp.privacy.conversions import (
    epsilon_of_gdp,
    float_below,
    gdp_of_epsilon,
    largest_mu,
    root_above,
    root_below,
)

# What entries add up to, compared with the total of a ledger: exact, every rounding upwards.
#
# Why budgets may be chosen as one goes is proved in docs/privacy.md ("Releases under one ledger").

#: What is added up towards a total; for (epsilon, delta) it is enough that one of the sums keeps to it.
MEASURES: dict[str, tuple[Measure, ...]] = {
    "rho": ("rho",),
    "mu": ("squared_mu",),
    "pure": ("epsilon",),
    "approx": ("squared_mu", "epsilon"),
}
_SMALLEST_EPSILON = Fraction(1, 10**12)
#: Less than this share of a total is what roundings of noise leave, and is called nothing.
_DUST = Fraction(1, 10**9)


def in_words(parameters: Mapping[str, object], rounding: str | None = None) -> str:
    """Say the numbers among parameters; with a rounding of the module decimal, to six digits.

    Examples
    --------
    >>> from decimal import ROUND_FLOOR
    >>> in_words({"rho": 0.10000000000000005}, ROUND_FLOOR), in_words(Budget(epsilon=1, delta=1e-6).as_dict())
    ('rho 0.1', 'epsilon 1.0, delta 1e-06')
    """
    numbers = {name: value for name, value in parameters.items() if isinstance(value, float)}
    if rounding is not None:
        six = Context(prec=6, rounding=rounding)
        numbers = {name: float(six.create_decimal(repr(value))) for name, value in numbers.items()}
    return ", ".join(f"{name} {value!r}" for name, value in numbers.items())


@final
@dataclass(frozen=True)
class Account:
    """Sums of what was spent, beside the total that they are compared with.

    Attributes
    ----------
    total : Budget
        What all releases together may spend, and between which neighbours.
    sums : tuple of Fraction or None
        One for each measure of the total; None once something was spent that the measure does not bound.
    delta : Fraction
        The sum of what costs have of their own. Where the first entry has some, half of the total's delta is
        for that, and the sums keep to the other half; else none has.

    Examples
    --------
    >>> from matrixdp.noise import GAUSSIAN
    >>> one = Account.empty(Budget(rho=1)).plus(Cost(Fraction(1), GAUSSIAN), Budget(rho=0.5))
    >>> one.spent, one.left
    (Budget(rho=0.5, neighbours='add_remove'), Budget(rho=0.5, neighbours='add_remove'))
    """

    total: Budget
    sums: tuple[Fraction | None, ...]
    delta: Fraction = Fraction(0)

    @staticmethod
    def empty(total: Budget) -> Account:
        """Return the account of nothing."""
        return Account(total, (Fraction(0),) * len(MEASURES[total.kind]))

    @staticmethod
    def of(total: Budget, entries: Iterable[tuple[Cost, Budget]]) -> Account:
        """Return the account of costs, each with the budget that it was within."""
        account = Account.empty(total)
        for cost, budget in entries:
            account = account.plus(cost, budget)
        return account

    def plus(self, cost: Cost, budget: Budget) -> Account:
        """Return the account with one more cost.

        Raises
        ------
        PrivacyError
            If the cost is not within its budget, or the budget is for other neighbours or another unit than
            the total: what is spent cannot be compared then.
        """
        checked_cost(cost, budget)
        self.check_terms(budget)
        self._check_delta(cost.delta)
        between = cost.value * budget.moved**cost.noise.norm
        sums = zip(MEASURES[self.total.kind], self.sums, strict=True)
        added = tuple(_sum(name, one, between, cost, budget) for name, one in sums)
        return Account(self.total, added, self.delta + cost.delta)

    def _check_delta(self, delta: Fraction) -> None:
        """Reject a delta of its own where no part of the total's is kept for that, or too little is left."""
        if delta == 0:
            return
        total, found = self.total.delta, "a discovery of values, which has a delta of its own"
        if total is None:
            expected = "one whose total has a delta, such as epsilon=1,delta=1e-6; this has none"
            raise PrivacyError.at(("ledger",), found, expected, code="conflict")
        if self.delta == 0 and any(one != 0 for one in self.sums):
            expected = "a new ledger: the first entry decides whether half of its delta is for discoveries"
            raise PrivacyError.at(("ledger",), found, expected, code="conflict")
        if self.delta + delta > total / 2:
            left = total / 2 - self.delta
            most = f"at most {float_below(left):.6g}" if left > total * _DUST else "none"
            expected = f"{most}, which is left of the half of its delta that is for discoveries"
            raise PrivacyError.at(
                ("ledger",), f"a delta of {float(delta):.6g}", expected, code="budget-exceeded"
            )

    @property
    def _for_sums(self) -> Budget:
        """The total as the sums may use it."""
        half = self.total.less((self.total.delta or Fraction(0)) / 2)
        return self.total if self.delta == 0 or half is None else half

    def check_terms(self, budget: Budget) -> None:
        """Refuse a budget for other neighbours or another unit than the total's."""
        if budget.neighbours != self.total.neighbours:
            expected = f"{self.total.neighbours}, which the ledger's total is for"
            raise PrivacyError.at(("budget", "neighbours"), budget.neighbours, expected, code="conflict")
        if budget.unit != self.total.unit and not _of_fewer(budget.unit, self.total.unit):
            expected = (
                f"{self.total.unit!r}, which the ledger's total is for; one for what was found is made "
                f"by `matrixdp ledger init` with {_options(budget.unit)}"
            )
            raise PrivacyError.at(("budget", "unit"), repr(budget.unit), expected, code="conflict")

    @property
    def limits(self) -> tuple[Fraction, ...]:
        """What each sum may come to."""
        names, total = MEASURES[self.total.kind], self._for_sums
        return tuple(total.mu**2 if name == "squared_mu" else getattr(total, name) for name in names)

    @property
    def within(self) -> bool:
        """Whether the total is kept."""
        pairs = zip(self.sums, self.limits, strict=True)
        return any(one is not None and one <= limit for one, limit in pairs)

    @property
    def spent(self) -> Budget | None:
        """What the sums come to in the definition of the total, rounded up; None for nothing.

        For (epsilon, delta) the epsilon at the delta of the total.
        """
        total = self.total
        first, *more = self.sums
        if total.kind == "approx" and total.delta is not None:
            if first == 0:
                return None
            known = [one for one in more if one is not None]
            if first is not None:
                delta = self._for_sums.delta or total.delta
                known.append(max(epsilon_of(root_above(first), delta), _SMALLEST_EPSILON))
            return _budget(total, min(known))
        if first is None:
            raise PrivacyError("ledger: found an entry that its total does not bound")
        return _budget(total, root_above(first) if total.kind == "mu" else first)

    @property
    def left(self) -> Budget | None:
        """The most that one further release may spend in the definition of the total; None for nothing.

        Rounded down; less than a billionth of the total is nothing. For (epsilon, delta) the epsilon at the
        delta of the total, and with the noise that is allowed most.
        """
        total = self.total
        pairs = zip(self.sums, self.limits, strict=True)
        rest = ((limit, limit - (limit if one is None else one)) for one, limit in pairs)
        first, *more = (left if left > limit * _DUST else Fraction(0) for limit, left in rest)
        if total.kind == "approx" and total.delta is not None:
            return _budget(total, max(*more, _epsilon_below(first, total.delta)))
        return _budget(total, root_below(first) if total.kind == "mu" else first)

    def as_dict(self) -> dict[str, str | None]:
        """Return the exact sums as text, by the name of what is added up."""
        pairs = zip(MEASURES[self.total.kind], self.sums, strict=True)
        found = {name: None if one is None else number_text(one) for name, one in pairs}
        return found | ({"delta": number_text(self.delta)} if self.delta else {})


def _of_fewer(unit: Unit, total: Unit) -> bool:
    """Return whether a unit is that of a total with `per`, where fewer values are known, or none is yet.

    The neighbours of both are one person with all her records more or less.
    """
    same = bool(total.per) and unit.id is not None and unit.id == total.id
    return same and unit.records <= total.records and unit.bounded in ((), total.bounded)


def _options(unit: Unit) -> str:
    """Return the options of `matrixdp ledger init` for a unit."""
    options = [("records", unit.records), *([] if unit.id is None else [("id", unit.id)])]
    if unit.per:
        options += [*(("per", name) for name in unit.per), ("max-values", unit.max_values)]
        options.append(("max-records-each", unit.max_records_each))
    options += [("constant", name) for name in unit.constant]
    return " ".join(f"--unit-{name} {shell_quote(str(value))}" for name, value in options)


def _sum(
    measure: Measure, before: Fraction | None, between: Fraction, cost: Cost, budget: Budget
) -> Fraction | None:
    added = None if before is None else cost.noise.accounted(measure, between)
    if before is None or added is None:
        return None
    if measure == "squared_mu" and budget.kind == "mu":
        # the cost is within its budget, so that mu is one that is proved
        added = min(added, budget.mu**2)
    return before + added


def _budget(total: Budget, value: Fraction) -> Budget | None:
    """Return a budget of the kind of a total."""
    if value == 0:
        return None
    name = total.kind if total.kind in ("rho", "mu") else "epsilon"
    return Budget(**total.given | {name: value}, neighbours=total.neighbours, unit=total.unit)


def _epsilon_below(squared_mu: Fraction, delta: Fraction) -> Fraction:
    """Return an epsilon that a release may have at a delta where so much is left of a squared mu."""
    if squared_mu == 0:
        return Fraction(0)
    mu, slightly_less = root_below(squared_mu), 1 - Fraction(1, 1 << 56)
    try:
        pure = epsilon_of_gdp(mu) * slightly_less
        gaussian = epsilon_of(mu, delta) * slightly_less
        # what is rounded down and then up again may end above where it began
        pure = pure if gdp_of_epsilon(pure) <= mu else Fraction(0)
    except NumericalError:
        return Fraction(0)
    fits = gaussian > 0 and largest_mu(gaussian, delta) <= mu
    return max(pure, gaussian) if fits else pure


# Which entries of a ledger have a run that still goes on: a lock beside the ledger for each.


def running_path(ledger: Path, entry: str) -> Path:
    """Return the file that the run of an entry holds a lock on.

    Examples
    --------
    >>> running_path(Path("health.ledger"), "ab12").name
    '.health.ledger.ab12.running'
    """
    ledger = ledger.resolve()  # one lock for a ledger, whichever link leads to it
    return ledger.with_name(f".{ledger.name}.{entry}.running")


def clear_ended(ledger: Path, waiting: set[str]) -> None:
    """Remove what runs that have ended left beside a ledger, but for entries that wait for a recovery."""
    ledger = ledger.resolve()
    name = re.compile(rf"\.{re.escape(ledger.name)}\.([0-9a-f]{{32}})\.running")
    for path in sorted(ledger.parent.iterdir()):
        match = name.fullmatch(path.name)
        if match is not None and match[1] not in waiting and not Lock.is_held(path):
            path.unlink(missing_ok=True)


@final
class Running:
    """The run of an entry in this process: it goes on until it is ended, or nobody refers to it.

    Parameters
    ----------
    path : Path
        The file of its lock.
    """

    def __init__(self, path: Path) -> None:
        self._process = os.getpid()
        self._lock = Lock(path)

    def writes_to(self, folder: Path) -> None:
        """Note durably in which folder what is measured will be."""
        self._lock.write(str(folder))

    def end(self) -> None:
        """Say that nothing of it is left to be recovered."""
        self._lock.remove()

    def __del__(self) -> None:
        # in a process that was forked meanwhile, the run is still that of the parent
        if hasattr(self, "_lock") and os.getpid() == self._process:
            with suppress(OSError, TypeError, AttributeError):
                self._lock.remove()


#: The bytes "mxDP": what says of an SQLite file that it is a ledger.
APPLICATION = 0x6D784450
VERSION = 1
#: How long a writer waits for another, in milliseconds.
PATIENCE = 10_000

#: What an entry keeps for good.
KEPT = ("number", "id", "time", "noise", "cost", "budget", "version", "release", "digest")
_MOVED = " OR ".join(f"NEW.{column} IS NOT OLD.{column}" for column in KEPT)
TABLES = (
    "CREATE TABLE ledger (only INTEGER PRIMARY KEY CHECK (only = 1), terms TEXT NOT NULL, "
    "created TEXT NOT NULL, version TEXT NOT NULL)",
    "CREATE TABLE entries (number INTEGER PRIMARY KEY CHECK (number > 0), id TEXT NOT NULL UNIQUE, "
    "time TEXT NOT NULL, "
    "state TEXT NOT NULL CHECK (state IN ('reserved', 'measured', 'released', 'spent by crash')), "
    "noise TEXT NOT NULL, cost TEXT NOT NULL, budget TEXT NOT NULL, version TEXT NOT NULL, release TEXT, "
    "measurement TEXT CHECK (measurement IS NULL OR length(measurement) = 64), digest TEXT NOT NULL, "
    "CHECK (measurement IS NOT NULL OR state IN ('reserved', 'spent by crash')))",
    "CREATE TRIGGER ledger_stays BEFORE DELETE ON ledger "
    "BEGIN SELECT RAISE(ABORT, 'the terms of a ledger stay'); END",
    "CREATE TRIGGER ledger_is_fixed BEFORE UPDATE ON ledger "
    "BEGIN SELECT RAISE(ABORT, 'the terms of a ledger stay'); END",
    "CREATE TRIGGER entries_stay BEFORE DELETE ON entries "
    "BEGIN SELECT RAISE(ABORT, 'entries are never deleted'); END",
    "CREATE TRIGGER entries_begin BEFORE INSERT ON entries WHEN NEW.state IS NOT 'reserved' "
    "OR NEW.measurement IS NOT NULL "
    "OR NEW.number IS NOT (SELECT count(*) + 1 FROM entries) "
    "OR EXISTS (SELECT 1 FROM entries WHERE id = NEW.id) "
    "BEGIN SELECT RAISE(ABORT, 'entries begin reserved, each after the last'); END",
    f"CREATE TRIGGER entries_advance BEFORE UPDATE ON entries WHEN {_MOVED} "
    "OR (OLD.measurement IS NOT NULL AND NEW.measurement IS NOT OLD.measurement "
    "AND NEW.state IS NOT 'measured') "
    "OR (OLD.state || ' to ' || NEW.state) NOT IN ('reserved to measured', 'reserved to spent by crash', "
    "'measured to measured', 'measured to released', 'measured to spent by crash', "
    "'spent by crash to measured') "
    "BEGIN SELECT RAISE(ABORT, 'entries only advance'); END",
)

#: Ends a rollback journal that names a super-journal, as SQLite's file format has it.
_NAMES_ANOTHER = bytes.fromhex("d9d505f920a163d7")

_HELD = "another process writes to it; waited 10 s: try again"
_REASONS = {
    5: _HELD,
    6: _HELD,
    8: "it cannot be written: the file or its folder is read-only",
    10: "its disk failed to read or write",
    11: "damaged: not the pages of a ledger",
    13: "the disk is full",
    14: "it, or a file beside it, cannot be opened",
    26: "not a ledger",
}


def file_error(path: Path, what: str, code: str = "damaged-file") -> StorageError:
    """Return the error of the file of a ledger: damaged, unless a code says otherwise."""
    return StorageError(f"{path}: {what}", code)


class Connection(Protocol):
    """What is asked of a connection: that of ``sqlite3`` in autocommit mode has it, and that of apsw."""

    def execute(self, sql: str, parameters: Sequence[Any] = ..., /) -> Iterable[Any]:
        """Run one statement and return its rows."""

    def close(self) -> None:
        """Let go of the file; what was not committed is undone."""


@final
@dataclass(frozen=True)
class Driver:
    """How the file of a ledger is opened.

    Attributes
    ----------
    create : callable
        Makes an empty file that must not be there yet.
    open : callable
        Opens a connection to a file that must be there, in autocommit mode.
    error : type
        What the connection raises.
    code : callable
        From such an error to SQLite's result code.
    run : callable
        Says by a lock beside the ledger that the run of an entry goes on.
    """

    create: Callable[[Path], None]
    open: Callable[[Path], Connection]
    error: type[Exception]
    code: Callable[[Any], int]
    run: Callable[[Path], Running | None] = Running


def _open(path: Path) -> Connection:
    if not os.path.isfile(path):  # noqa: PTH113 - no error where the path is none
        told = "no such file; expected a ledger, which `matrixdp ledger init` makes"
        raise file_error(path, told, "file-missing")
    address = f"file:{quote(os.fsencode(path))}?mode=rw"
    return sqlite3.connect(address, timeout=0, isolation_level=None, uri=True)


#: The SQLite of Python's standard library.
SQLITE = Driver(
    lambda path: path.touch(exist_ok=False),
    _open,
    sqlite3.Error,
    lambda error: getattr(error, "sqlite_errorcode", 1),
)


@final
class Session:
    """The statements of one operation."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def rows(self, sql: str, *parameters: object) -> list[tuple[Any, ...]]:
        """Run one statement and return all of its rows."""
        return [tuple(row) for row in self._connection.execute(sql, parameters)]

    def value(self, pragma: str) -> Any:
        """Return what a PRAGMA says."""
        (row,) = self.rows(f"PRAGMA {pragma}")
        return row[0]

    @contextmanager
    def transaction(self, begin: str) -> Iterator[None]:
        """Commit what is done inside, durably and as a whole, or do nothing."""
        self.rows(begin)
        try:
            yield
            self.rows("COMMIT")
        except BaseException:
            with suppress(Exception):  # SQLite may have rolled back by itself
                self.rows("ROLLBACK")
            raise


@contextmanager
def session(path: Path, driver: Driver, *, write: bool, new: bool = False) -> Iterator[Session]:
    """Give a transaction on the file of a ledger, checked to be one; whatever goes wrong is a StorageError.

    With `write` no other process writes meanwhile, and what was done is durable when this ends without an
    error; an error undoes it, or leaves open whether it was done where the commit itself failed.
    """
    _check_journal(path)
    connection: Connection | None = None
    try:
        connection = driver.open(path)
        found = Session(connection)
        # trust nothing that the file defines; wait for others
        for pragma in (f"busy_timeout = {PATIENCE}", "trusted_schema = OFF", "cell_size_check = ON"):
            found.rows(f"PRAGMA {pragma}")
        if not new:
            _check_kind(path, found)
        _make_durable(path, found)
        with found.transaction("BEGIN IMMEDIATE" if write else "BEGIN"):
            if new:
                kind = f"PRAGMA application_id = {APPLICATION}", f"PRAGMA user_version = {VERSION}"
                for statement in (*TABLES, *kind):
                    found.rows(statement)
            else:
                _check_tables(path, found)
            yield found
    except driver.error as error:
        reason = _REASONS.get(driver.code(error) & 0xFF) or f"refused by SQLite ({error})"
        raise StorageError(f"{path}: {reason}") from None
    except UnicodeError:
        raise file_error(path, "damaged: holds text that is not UTF-8") from None
    finally:
        if connection is not None:
            with suppress(driver.error):
                connection.close()


def _check_journal(path: Path) -> None:
    """Refuse a journal that names another file: SQLite would remove that file, wherever it is.

    Only transactions over several databases write such a journal, and a ledger is one.
    """
    with suppress(OSError, ValueError):
        # SQLite puts it beside the file that a link leads to
        journal = Path(f"{os.path.realpath(path)}-journal")
        if journal.is_file() and _ending(journal) == _NAMES_ANOTHER:
            raise file_error(journal, "names another file, which no journal of a ledger does; remove it")


def _ending(journal: Path) -> bytes:
    with journal.open("rb") as stream:
        stream.seek(-len(_NAMES_ANOTHER), os.SEEK_END)
        return stream.read()


def _check_kind(path: Path, found: Session) -> None:
    if found.value("application_id") != APPLICATION:
        raise file_error(path, "not a ledger; `matrixdp ledger init` makes one")
    version = found.value("user_version")
    if version != VERSION:
        needed = "a newer matrixdp is needed" if version > VERSION else "damaged or altered"
        told = f"a ledger of format version {version}; this matrixdp reads version {VERSION}: {needed}"
        raise file_error(path, told, "other-version")


def _make_durable(path: Path, found: Session) -> None:
    """Let a commit return only when it survives the loss of power, its journal's name in the folder too."""
    for pragma in ("synchronous = EXTRA", "fullfsync = ON"):
        found.rows(f"PRAGMA {pragma}")
    if found.value("journal_mode = DELETE") != "delete" or found.value("synchronous") != 3:
        raise StorageError(f"{path}: cannot be kept durably by this SQLite")


def _check_tables(path: Path, found: Session) -> None:
    """Refuse other tables or triggers than ours before anything is read from them."""
    sql = "SELECT sql FROM sqlite_master WHERE sql IS NOT NULL"
    if sorted(row[0] for row in found.rows(sql)) != sorted(TABLES):
        raise file_error(path, "damaged or altered: its tables are not those of a ledger")
    if found.value("integrity_check(1)") != "ok":
        raise file_error(path, "damaged: SQLite finds its pages inconsistent")
