"""The entries of a ledger, and what a release says of its own."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import metadata
from typing import Any, final

from matrixdp.errors import PrivacyError
from matrixdp.ledger.accounting import MEASURES, Account
from matrixdp.noise import Cost, noise_named
from matrixdp.privacy import Budget
from matrixdp.privacy.exact_form import exact_budget, exact_number, exact_text, number_text

__all__ = ["STATES", "Entry", "LedgerEntry", "chained", "check_name", "now", "version"]

STATES = ("reserved", "measured", "released", "spent by crash")
"""What becomes of an entry; its cost counts in every state."""

_SHA256 = re.compile("[0-9a-f]{64}", re.ASCII)
_ID = re.compile("[0-9a-f]{32}", re.ASCII)
_SUMS = ("rho", "squared_mu", "epsilon")


def check_name(dataset: object) -> None:
    """Check the name of a dataset, which statements and messages show."""
    if (
        not isinstance(dataset, str)
        or not dataset.strip()
        or not dataset.isprintable()
        or len(dataset) > 1000
    ):
        expected = "text of one line that is not empty, at most 1,000 characters"
        raise PrivacyError.at(("dataset",), "no name", expected)


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
    state : {"reserved", "measured", "released", "spent by crash"}
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
        number, name, time, state, noise, cost, budget, version, release, measurement, digest = row
        texts = (name, time, state, noise, cost, budget, version, digest)
        if not all(isinstance(text, str) for text in texts) or state not in STATES:
            raise PrivacyError("it is not in the form that it should have")
        if digest != chained(previous, number, name, time, noise, cost, budget, version, release):
            raise PrivacyError("its digest is wrong")
        if not _ID.fullmatch(name) or not (measurement is None or _SHA256.fullmatch(measurement)):
            raise PrivacyError("its name or the digest of its measurement is none")
        return Entry(
            number=number,
            id=name,
            time=time,
            state=state,
            cost=Cost(exact_number(cost), noise_named(noise)),
            budget=exact_budget(json.loads(budget)),
            version=version,
            release=None if release is None else str(json.loads(release)),
            measurement=measurement,
            digest=digest,
        )

    def as_dict(self) -> dict[str, object]:
        """Return the entry as JSON has it; the exact cost is text, numerator/denominator."""
        return {
            "entry": self.id,
            "time": self.time,
            "state": self.state,
            "noise": self.cost.noise.name,
            "cost": number_text(self.cost.value),
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
            raise PrivacyError("ledger: found an entry without a proper name or digest")
        for sums in (self.before, self.after):
            if not sums or not set(sums) <= set(_SUMS):
                raise PrivacyError("ledger: found other sums than of rho, squared mu or epsilon")
            for text in sums.values():
                if text is not None:
                    exact_number(text)

    def check(self, cost: Cost, budget: Budget) -> None:
        """Check that this is the entry of a cost within a budget, and that the total is kept.

        Raises
        ------
        PrivacyError
            If what was spent before and the cost do not come to what was spent after, or exceed the total.
        """
        names = MEASURES[self.total.kind]
        if set(self.before) != set(names):
            raise PrivacyError("ledger: found sums of another kind than the total")
        known = (self.before[name] for name in names)
        before = Account(self.total, tuple(None if text is None else exact_number(text) for text in known))
        after = before.plus(cost, budget)
        if after.as_dict() != self.after or not after.within:
            raise PrivacyError("ledger: found an entry of another cost, or one above the total")

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


def now() -> str:
    """Return the time as entries have it."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def version() -> str:
    """Return the version of matrixdp that is running."""
    try:
        return metadata.version("matrixdp")
    except metadata.PackageNotFoundError:
        return "unknown"
