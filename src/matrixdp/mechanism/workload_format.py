"""Domains, workloads and budgets in archives: in the form of a specification, large arrays apart."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import numpy as np

from matrixdp.domain import Domain
from matrixdp.errors import MatrixDPError, StorageError
from matrixdp.mechanism.archive import ArchiveReader, ArchiveWriter
from matrixdp.privacy import Authorization, Budget
from matrixdp.specification import entry_from_spec
from matrixdp.workload import Workload

__all__ = [
    "read_authorization",
    "read_workload",
    "write_authorization",
    "write_workload",
]

_ARRAYS = ("dense", "matrix", "weights")
_REFERENCE = "$array"


def write_workload(workload: Workload, archive: ArchiveWriter) -> dict[str, object]:
    """Add a workload's arrays to an archive and return the rest for its header.

    Parameters
    ----------
    workload : Workload
        The workload.
    archive : ArchiveWriter
        Where the arrays go.
    """
    return {
        "domain": [[name, form] for name, form in workload.domain.to_spec().items()],
        "entries": [_without_arrays(entry.to_spec(), archive) for entry in workload.entries],
    }


def _without_arrays(value: Any, archive: ArchiveWriter) -> Any:
    if not isinstance(value, Mapping):
        return value
    result = {}
    for key, item in value.items():
        if key in _ARRAYS and isinstance(item, list):
            result[key] = {_REFERENCE: archive.add(np.asarray(item, dtype=np.float64))}
        else:
            result[key] = _without_arrays(item, archive)
    return result


def _with_arrays(value: Any, archive: ArchiveReader) -> Any:
    if not isinstance(value, Mapping):
        return value
    if set(value) == {_REFERENCE}:
        return archive.array(value[_REFERENCE])
    return {key: _with_arrays(item, archive) for key, item in value.items()}


def read_workload(header: Mapping[str, Any], archive: ArchiveReader) -> Workload:
    """Return the workload that `write_workload` saved, checked like one that a user writes.

    Parameters
    ----------
    header : mapping
        What `write_workload` returned, after a round trip through JSON.
    archive : ArchiveReader
        Where the arrays are.

    Raises
    ------
    StorageError
        If it is damaged.
    """
    try:
        domain = Domain(dict(header["domain"]))
        entries = [entry_from_spec(_with_arrays(entry, archive)) for entry in header["entries"]]
        return Workload(domain, *entries)
    except StorageError:
        raise
    except MatrixDPError as error:
        raise archive.damaged(f"its workload is refused ({error})") from None
    except (KeyError, TypeError, ValueError):
        raise archive.damaged("its workload is not in the form that it should have") from None


def write_authorization(authorization: Authorization) -> dict[str, object]:
    """Return an authorization for a header, every number exact.

    Parameters
    ----------
    authorization : Authorization
        The record of what was authorized.

    Examples
    --------
    >>> record = Authorization(Fraction(1, 5), Budget(rho=0.1), "2026-01-01T00:00:00+00:00")
    >>> write_authorization(record)["budget"]
    {'neighbours': 'add_remove', 'rho': '1/10'}
    """
    budget = authorization.budget
    values = {
        "rho": budget.rho,
        "mu": budget.mu if budget.kind == "mu" else None,
        "epsilon": budget.epsilon,
        "delta": budget.delta,
    }
    exact: dict[str, object] = {"neighbours": budget.neighbours}
    exact |= {name: str(value) for name, value in values.items() if value is not None}
    return {
        "cost": str(authorization.cost),
        "budget": exact,
        "time": authorization.time,
        "noise": authorization.noise,
    }


def read_authorization(header: Mapping[str, Any], archive: ArchiveReader) -> Authorization:
    """Return the authorization that `write_authorization` saved; it must still be within its budget.

    Parameters
    ----------
    header : mapping
        What `write_authorization` returned, after a round trip through JSON.
    archive : ArchiveReader
        For messages.

    Raises
    ------
    StorageError
        If it is damaged.
    """
    try:
        written = dict(header["budget"])
        neighbours = written.pop("neighbours")
        budget = Budget(neighbours=neighbours, **{key: Fraction(value) for key, value in written.items()})
        noise = header.get("noise", "gaussian")
        return Authorization(Fraction(header["cost"]), budget, str(header["time"]), noise)
    except MatrixDPError as error:
        raise archive.damaged(f"its privacy record is refused ({error})") from None
    except (KeyError, TypeError, ValueError, ZeroDivisionError):
        raise archive.damaged("its privacy record is not in the form that it should have") from None
