"""Domains, workloads and budgets in archives: in the form of a specification, large arrays apart."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

import numpy as np

from matrixdp.domain import Domain
from matrixdp.errors import MatrixDPError, StorageError
from matrixdp.privacy import Authorization, Budget
from matrixdp.queries import Workload
from matrixdp.specification import entry_from_spec
from matrixdp.storage.archive import ArchiveReader, ArchiveWriter

__all__ = [
    "read_authorization",
    "read_workload",
    "write_authorization",
    "write_workload",
]

_REFERENCE = "$array"
_FORMS = {"matrix", "permuted"}


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


def _each_array(entry: Mapping[str, Any], change: Callable[[Any], Any]) -> dict[str, Any]:
    """Return an entry with what stands where it may hold an array changed.

    Names of attributes are no keys: an attribute may be called ``matrix`` or ``weights``.
    """
    result: dict[str, Any] = {}
    for key, value in entry.items():
        if key in ("dense", "weights"):
            result[key] = change(value)
        elif key in ("product", "any", "by") and isinstance(value, Mapping):
            result[key] = {name: _each_matrix(form, change) for name, form in value.items()}
        elif key == "predicates" and isinstance(value, Mapping) and not _FORMS & set(value):
            result[key] = {kind: _each_matrix(form, change) for kind, form in value.items()}
        elif key == "predicates":
            result[key] = _each_matrix(value, change)
        else:
            result[key] = value
    return result


def _each_matrix(form: Any, change: Callable[[Any], Any]) -> Any:
    """Return a predicate set with its matrices changed."""
    if isinstance(form, list):
        return [_each_matrix(item, change) for item in form]
    if isinstance(form, Mapping) and "matrix" in form:
        return {**form, "matrix": change(form["matrix"])}
    if isinstance(form, Mapping) and "permuted" in form:
        return {**form, "permuted": _each_matrix(form["permuted"], change)}
    return form


def _without_arrays(entry: Mapping[str, Any], archive: ArchiveWriter) -> dict[str, Any]:
    return _each_array(entry, lambda array: {_REFERENCE: archive.add(np.asarray(array, dtype=np.float64))})


def _with_arrays(entry: Any, archive: ArchiveReader) -> Any:
    def read(value: Any) -> Any:
        if isinstance(value, Mapping) and set(value) == {_REFERENCE}:
            return archive.array(value[_REFERENCE])
        if isinstance(value, str):
            raise archive.damaged("its workload names a file in the place of an array")
        return value

    return _each_array(entry, read) if isinstance(entry, Mapping) else entry


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
