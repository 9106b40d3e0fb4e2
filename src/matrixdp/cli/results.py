"""Answers to questions as texts and files: JSON, CSV and Parquet."""

from __future__ import annotations

import json
import math
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matrixdp.release import Release

__all__ = ["check_out", "printed_csv", "printed_json", "title_of", "write_out"]

_ENDINGS = (".csv", ".parquet", ".json")
Answered = Sequence[tuple[Any, Any]]
"""Entries, None for a SQL statement, each with the table of its answers."""


def title_of(entry: Any) -> str:
    """Return what a question is called."""
    from matrixdp.language import StatisticEntry, in_words

    return entry.title if isinstance(entry, StatisticEntry) else in_words(entry)


def check_out(out: Path | None, force: bool) -> None:
    """Check that a file can be written, by its ending, and is not there yet."""
    from matrixdp.errors import SpecificationError

    if out is None:
        return
    if out.suffix.lower() not in _ENDINGS:
        raise SpecificationError.at(
            ("--out",), f"{out.name!r}", "a file that ends in .csv, .parquet or .json"
        )
    if not out.parent.is_dir():
        raise SpecificationError.at(
            ("--out",), f"{str(out.parent)!r}, which is no folder", "a folder that is"
        )
    if os.path.lexists(out) and not force:
        raise SpecificationError.at(("--out",), f"{str(out)!r}, which is there", "a new file, or --force")
    if os.path.lexists(out) and not out.is_file():
        raise SpecificationError.at(("--out",), f"{str(out)!r}, which is no file", "a new file")


def write_out(out: Path, result: Release, tables: Answered) -> None:
    """Write answers to a file, which appears whole or not at all."""
    import pyarrow.parquet as pq

    from matrixdp.release.writing import privacy_mark

    kind = out.suffix.lower()
    with tempfile.TemporaryDirectory(dir=out.parent, prefix=f".{out.name}.") as folder:
        made = Path(folder) / "answers"
        if kind == ".parquet":
            table = _one(tables)
            known = table.schema.metadata or {}
            said = {b"matrixdp": privacy_mark(result.private)}
            if b"matrixdp" in known:
                said[b"statistic"] = known[b"matrixdp"]
            pq.write_table(table.replace_schema_metadata(said), made, compression="zstd")
        elif kind == ".json":
            made.write_text(printed_json(result, tables) + "\n", encoding="utf-8")
        else:
            made.write_text(printed_csv(tables), encoding="utf-8", newline="")
        made.replace(out)


def printed_json(result: Release, tables: Answered) -> str:
    """Return answers as one JSON object: under ``answers``, or under ``tables`` where there are several."""
    written: dict[str, object] = {"private": result.private, "confidence": result.confidence}
    if len(tables) == 1:
        written |= _described(tables[0][1])
    else:
        written["tables"] = [{"name": title_of(entry), **_described(table)} for entry, table in tables]
    return json.dumps(written, ensure_ascii=False, default=str, allow_nan=False)


def _described(table: Any) -> dict[str, object]:
    """Return the rows of a table, and how those of a statistic were made."""
    said = (table.schema.metadata or {}).get(b"matrixdp")
    made = {} if said is None else {"made": json.loads(said)}
    rows = [{name: _plain(value) for name, value in row.items()} for row in table.to_pylist()]
    return made | {"answers": rows}


def _plain(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value


def printed_csv(tables: Answered) -> str:
    """Return answers as CSV; several tables below one another, with their names in a first column."""
    import pyarrow as pa
    import pyarrow.csv as pacsv

    from matrixdp.answers import plain_schema

    table = _one(tables)
    sink = pa.BufferOutputStream()
    pacsv.write_csv(table.cast(plain_schema(table.schema)), sink)
    text: str = sink.getvalue().to_pybytes().decode()
    return text


def _one(tables: Answered) -> Any:
    from matrixdp.answers.joined import joined

    if len(tables) == 1:
        return tables[0][1]
    return joined([(title_of(entry), table) for entry, table in tables], "table")
