"""The file of a model: its arrays, and with what they were made, checked when read."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from matrixdp.domain import Domain
from matrixdp.model.local import LocalTables
from matrixdp.model.mixture import Mixture
from matrixdp.storage.archive import ArchiveReader, ArchiveWriter

__all__ = ["MODEL_FORMAT", "MODEL_VERSION", "Tables", "read_tables", "write_tables"]

MODEL_FORMAT = "matrixdp model"
MODEL_VERSION = 1

Tables = Mixture | LocalTables
"""What a model answers from."""


def write_tables(path: Path, tables: Tables, made: Mapping[str, Any]) -> None:
    """Write the file of a model, with what is said of how it was made."""
    with ArchiveWriter(path) as archive:
        header: dict[str, object] = {"total": tables.total}
        if isinstance(tables, Mixture):
            header |= {
                "weights": archive.add(tables.weights),
                "factors": {name: archive.add(own) for name, own in tables.factors.items()},
            }
        else:
            header["tables"] = [[list(names), archive.add(own)] for names, own in tables.tables.items()]
        form = {"format": MODEL_FORMAT, "format_version": MODEL_VERSION}
        archive.close({**form, "made": dict(made), "model": header})


def read_tables(path: Path, domain: Domain) -> tuple[Tables, dict[str, Any]]:
    """Return what the file of a model holds.

    Raises
    ------
    StorageError
        If it holds none, or one that does not fit the domain, or is no table of shares.
    """
    with ArchiveReader(path, MODEL_FORMAT, MODEL_VERSION) as archive, archive.reading("its header"):
        header, made = archive.header["model"], archive.header["made"]
        if not isinstance(made, dict):
            raise archive.damaged("it does not say how it was made")
        total = header["total"]
        if isinstance(total, bool) or not isinstance(total, int | float):
            raise archive.damaged("its total is no number")
        json.dumps(made, allow_nan=False)
        if "tables" in header:
            tables = {
                tuple(map(archive.text, names)): _numbers(archive, own) for names, own in header["tables"]
            }
            return LocalTables(domain, float(total), tables), made
        factors = {name: _numbers(archive, own) for name, own in header["factors"].items()}
        return Mixture(domain, float(total), _numbers(archive, header["weights"]), factors), made


def _numbers(archive: ArchiveReader, name: object) -> np.ndarray[Any, np.dtype[np.float64]]:
    array = archive.array(name)
    if array.dtype != np.float64:
        raise archive.damaged("an array of it is not of floating-point numbers")
    return array
