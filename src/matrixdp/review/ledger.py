"""Whether a ledger holds the debit of a release."""

from __future__ import annotations

import os
from collections.abc import Iterator

from matrixdp.errors import MatrixDPError
from matrixdp.ledger import Entry, Ledger, LedgerEntry
from matrixdp.measure import Authorization
from matrixdp.review.finding import Finding, settled

__all__ = ["check_ledger"]

_DURABLE = ("measured", "released")


def check_ledger(
    authorization: Authorization, sha256: object, path: str | os.PathLike[str] | None
) -> Iterator[Finding]:
    """Check that a ledger holds the debit of a measurement, given by the digest of its file."""
    named: LedgerEntry | None = authorization.ledger
    if path is None:
        words = "no ledger was used, so other releases about the same people add to the cost"
        if named is not None:
            words = f"debited to that of {named.dataset}, entry {named.entry}, which was not given (--ledger)"
        yield Finding("ledger", "not checked", words)
        return
    if named is None:
        yield Finding("ledger", "failed", "the release says that it was debited to none")
        return
    try:
        ledger = Ledger.open(path)
        entries = {entry.id: entry for entry in ledger.entries}
    except MatrixDPError as error:
        yield Finding("ledger", "failed", str(error))
        return
    entry = entries.get(named.entry)
    if entry is None:
        yield Finding("ledger", "failed", f"it has no entry {named.entry}")
        return
    words = f"{ledger.dataset} holds the debit, entry {entry.number} of {len(entries)}: {entry.state}"
    yield from settled("ledger", words, _differences(ledger, entry, named, authorization, sha256))


def _differences(
    ledger: Ledger, entry: Entry, named: LedgerEntry, authorization: Authorization, sha256: object
) -> Iterator[str]:
    pairs = (
        ("dataset", named.dataset, ledger.dataset),
        ("total", named.total, ledger.total),
        ("digest of the entry", named.digest, entry.digest),
        ("cost", authorization.cost, entry.cost),
        ("budget", authorization.budget, entry.budget),
        ("measurement", sha256, entry.measurement),
    )
    for name, said, held in pairs:
        if said != held:
            yield f"the {name} is another than that of the release"
    if entry.state not in _DURABLE:
        yield f"its entry is {entry.state}; expected {' or '.join(_DURABLE)}"
