"""Strategies that are given: what is measured, as entries of the query language with shares, or a matrix."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

from matrixdp.errors import MatrixDPError, SpecificationError, WorkloadError, each, within
from matrixdp.forms import Form, Given, ListOf, Record, Schema, as_given, key, number, record
from matrixdp.language import dense
from matrixdp.language.array_files import ARRAY_FILE, read_array
from matrixdp.language.entry import ENTRY, Entry
from matrixdp.queries.workload import Workload
from matrixdp.specification.load import files_under, read_document, refused, schema_of
from matrixdp.specification.yaml_text import Document

__all__ = ["GivenEntry", "WrittenStrategy", "given_entries", "load_given", "strategy_schema"]

_SHARE = number("a number above 0, relative to the shares of the other parts", above=0.0)
_TEXTS = (".yaml", ".yml", ".json")


@final
@dataclass(frozen=True, eq=False)
class GivenEntry:
    """A part of a strategy: the queries that are measured, and their share of the privacy cost.

    Attributes
    ----------
    entry : Entry
        An entry of the query language; its groups share its share evenly.
    share : float
        Relative to the other parts.
    """

    entry: Entry
    share: float = 1.0


@final
class _GivenEntries(Form[GivenEntry]):
    """An entry with the key ``share`` beside its own."""

    def read(self, written: object, given: Given) -> GivenEntry:
        if isinstance(written, GivenEntry):
            return written
        share = 1.0
        if isinstance(written, Mapping) and "share" in written:
            with within("share"):
                share = _SHARE.read(written["share"], given)
            written = {name: value for name, value in written.items() if name != "share"}
        return GivenEntry(ENTRY.read(written, given), share)

    def schema(self, definitions: Schema) -> Schema:
        forms = []
        for reference in ENTRY.schema(definitions)["anyOf"]:
            name = str(reference["$ref"]).rpartition("/")[2]
            own = definitions[name]
            with_share = {**own["properties"], "share": _SHARE.schema(definitions)}
            definitions[f"{name}Part"] = {**own, "properties": with_share}
            forms.append({"$ref": f"#/$defs/{name}Part"})
        return {"anyOf": forms}


@final
@record
class WrittenStrategy(Record):
    """The file of a strategy that is given."""

    error = SpecificationError

    strategy: tuple[GivenEntry, ...] = key(
        ListOf(_GivenEntries(), "a list of entries, each with a share of the privacy cost", least=1),
        missing="the list of what is measured, each with a share: [{product: {age: prefix}, share: 1}]",
    )


def strategy_schema() -> dict[str, Any]:
    """Return the JSON Schema of files that give a strategy.

    Examples
    --------
    >>> strategy_schema()["required"]
    ['strategy']
    """
    return schema_of(WrittenStrategy)


def given_entries(parts: Sequence[object], shares: Sequence[object] | None = None) -> tuple[GivenEntry, ...]:
    """Return parts of a strategy as they are given in Python: entries or mappings, and their shares.

    Raises
    ------
    MatrixDPError
        If a part is no entry, or a share no number above 0.

    Examples
    --------
    >>> from matrixdp.language import marginals
    >>> [part.share for part in given_entries([marginals(1), {"product": {"age": "prefix"}, "share": 3}])]
    [1.0, 3.0]
    """
    if not isinstance(parts, list | tuple) or not parts:
        raise WorkloadError.at(("parts",), f"a {type(parts).__name__}", "a list of at least one entry")
    with within("parts"):
        found = ListOf(_GivenEntries(), "a list of entries").read(parts, as_given)
    if shares is None:
        return found
    if len(shares) != len(found):
        raise WorkloadError.at(("shares",), f"{len(shares)} shares", f"{len(found)}, one for each part")
    with within("shares"):
        own = ListOf(_SHARE, "a list of numbers").read(list(shares), as_given)
    return tuple(GivenEntry(part.entry, share) for part, share in zip(found, own, strict=True))


def load_given(path: str | os.PathLike[str], workload: Workload) -> tuple[GivenEntry, ...]:
    """Return the parts of the strategy that a file gives.

    Parameters
    ----------
    path : path
        YAML or JSON with the key ``strategy``; or a matrix (NumPy, SciPy sparse or CSV) over the cells of all
        attributes that the workload asks about, in domain order, row-major.
    workload : Workload
        What will be asked.

    Raises
    ------
    MatrixDPError
        If it cannot be read, or is wrong: one error that names the place, what was found and what would be
        right.
    """
    file = Path(path)
    if file.suffix.lower() in _TEXTS:
        document: Document = read_document(file)
        with refused(document.lines):
            given = WrittenStrategy.read(document.value, files_under(file.resolve().parent)).strategy
            with within("strategy"):
                each(lambda part: part.entry.expand(workload.domain), given)
            return given
    matrix = read_array(file)
    names = workload.domain.sort({name for group in workload for name in group.attributes})
    cells = workload.domain.cells(names)
    if matrix.ndim != 2 or matrix.shape[1] != cells:
        found = f"an array of shape {matrix.shape}"
        expected = (
            f"a matrix of {cells} columns, one for each cell of {', '.join(names)}, which the workload asks "
            "about; for other attributes write a YAML file: `strategy: [{dense: FILE, attributes: [...]}]`"
        )
        raise SpecificationError.at((str(file),), found, expected)
    try:
        return (GivenEntry(dense(matrix, list(names))),)
    except MatrixDPError as error:
        raise SpecificationError.at((str(file),), _found(error), f"real numbers; {ARRAY_FILE}") from None


def _found(error: MatrixDPError) -> str:
    return str(error) if error.problem is None else error.problem.found
