"""Domains, workloads and budgets in archives: in the form of a specification, large arrays apart."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

import matrixdp.statements  # noqa: F401 - adds the entries that are SQL to the language
from matrixdp.domain import Domain
from matrixdp.errors import StorageError
from matrixdp.language import Entry, read_entry
from matrixdp.ledger import LedgerEntry
from matrixdp.measure import Authorization
from matrixdp.noise import Cost, noise_named
from matrixdp.privacy.exact_form import exact_budget, exact_number, exact_text, number_text
from matrixdp.queries import Workload
from matrixdp.storage.archive import ArchiveReader, ArchiveWriter

__all__ = [
    "read_authorization",
    "read_workload",
    "write_authorization",
    "write_workload",
]

_REFERENCE = "$array"
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00", re.ASCII)


def write_workload(workload: Workload, archive: ArchiveWriter) -> dict[str, object]:
    """Add a workload's arrays to an archive and return the rest for its header."""

    def kept(array: NDArray[np.float64]) -> object:
        return {_REFERENCE: archive.add(array)}

    entries = []
    for position, entry in enumerate(workload.entries):
        if not isinstance(entry, Entry):
            found = f"a {type(entry).__name__}"
            raise StorageError.at(("workload", position), found, "an entry of the query language")
        entries.append(entry.to_spec(kept))
    return {
        "domain": [[name, form] for name, form in workload.domain.to_spec().items()],
        "entries": entries,
    }


def read_workload(header: Mapping[str, Any], archive: ArchiveReader) -> Workload:
    """Return the workload that `write_workload` saved, checked like one that a user writes."""

    def given(written: object) -> object:
        if isinstance(written, Mapping) and set(written) == {_REFERENCE}:
            return archive.array(written[_REFERENCE])
        if isinstance(written, str):
            raise archive.damaged("its workload names a file in the place of an array")
        return written

    with archive.reading("its workload"):
        described = dict(header["domain"])
        for spec in described.values():
            # What was derived was written down; no expression of a stranger's is evaluated.
            if isinstance(spec, Mapping) and "sql" in spec and "codes" not in spec:
                raise archive.damaged("its domain has an expression that was not evaluated")
        domain = Domain(described)
        return Workload(domain, *(read_entry(entry, given) for entry in header["entries"]))


def write_authorization(authorization: Authorization) -> dict[str, object]:
    """Return an authorization for a header, every number exact.

    Examples
    --------
    >>> from fractions import Fraction
    >>> from matrixdp.noise import GAUSSIAN
    >>> from matrixdp.privacy import Budget
    >>> cost = Cost(Fraction(1, 5), GAUSSIAN)
    >>> record = Authorization(cost, Budget(rho=0.1), "2026-01-01T00:00:00+00:00")
    >>> write_authorization(record)["budget"]
    {'rho': '1/10', 'neighbours': 'add_remove', 'unit': {'records': 1}}
    """
    entry = authorization.ledger
    return {
        "cost": number_text(authorization.cost.value),
        "budget": exact_text(authorization.budget),
        "time": authorization.time,
        "noise": authorization.cost.noise.name,
        "ledger": None if entry is None else entry.as_dict(),
    }


def read_authorization(header: Mapping[str, Any], archive: ArchiveReader) -> Authorization:
    """Return the authorization that `write_authorization` saved; it must still be within its budget."""
    with archive.reading("its privacy record"):
        # files of before units were named have one record a person
        budget, entry = exact_budget({"unit": None, **header["budget"]}), header.get("ledger")
        cost = Cost(exact_number(header["cost"]), noise_named(header["noise"]))
        ledger = None if entry is None else LedgerEntry.read(entry)
        if _TIME.fullmatch(archive.text(header["time"])) is None:
            raise archive.damaged("the time of its authorization is none")
        return Authorization(cost, budget, header["time"], ledger)
