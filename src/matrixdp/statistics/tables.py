"""Tables of statistics: strata, what it is, figures, and in the schema how they were made."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pyarrow as pa

__all__ = ["METADATA", "said_of", "statistic_table"]

METADATA = b"matrixdp"
"""The key of the schema's metadata: a JSON object that says how the figures were made."""


def statistic_table(
    labels: Mapping[str, pa.ChunkedArray], figures: Mapping[str, pa.Array], said: Mapping[str, object]
) -> pa.Table:
    """Return a table of a statistic.

    Parameters
    ----------
    labels : mapping of str to ChunkedArray
        The columns of what is asked about; where one has the name of a figure it gets the ending
        ``_attribute``.
    figures : mapping of str to Array
        The columns of the statistic.
    said : mapping
        What goes into the metadata, under the key `METADATA`.
    """
    columns: dict[str, pa.Array | pa.ChunkedArray] = {}
    for name, column in labels.items():
        own = name
        while own in figures or (own != name and own in labels):
            own += "_attribute"
        columns[own] = column
    made = pa.table({**columns, **figures})
    return made.replace_schema_metadata({METADATA: json.dumps(dict(said)).encode()})


def said_of(table: pa.Table) -> dict[str, Any]:
    """Return what the metadata of the table of a statistic says."""
    said: dict[str, Any] = json.loads((table.schema.metadata or {}).get(METADATA, b"{}"))
    return said
