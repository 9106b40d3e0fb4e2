"""That one record changes one count by one, and nothing else that a reader of the output could see."""

from __future__ import annotations

import os
import tempfile
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from functools import partial
from io import StringIO
from typing import Any

import numpy as np
import pyarrow as pa

from matrixdp.domain import Domain, OutOfDomain, encode_value
from matrixdp.domain.rules import Kind
from matrixdp.errors import MatrixDPError
from matrixdp.sources import Source
from matrixdp.sources.source import OUT_OF_DOMAIN
from matrixdp.testing.agreement import require
from matrixdp.testing.hostile import HOSTILE_OBJECTS, HOSTILE_TEXTS, NEIGHBOURS_DOMAIN
from matrixdp.testing.sources import HOSTILE_VALUES, TYPES

__all__ = ["check_neighbours"]

arrow: Any = pa
"""PyArrow, whose own types are incomplete."""

_OTHERS = 29
"""How many records follow those beside the one that is added."""


def check_neighbours(
    open_table: Callable[[Any], Source],
    kinds: Collection[Kind] = tuple(HOSTILE_VALUES),
    *,
    objects: bool = False,
    domain: Domain = NEIGHBOURS_DOMAIN,
    together: int = 1,
) -> int:
    """Check that a table and the same table with one record more differ by that record alone.

    The record holds a hostile value in every attribute at once and stands between others. With it and without
    it the messages, warnings and output must be the same, and the counts of all attributes together must
    differ by at most one in all. Values out of domain are replaced, but for one attribute, in turn another,
    which drops the record.

    Parameters
    ----------
    open_table : callable
        Takes a `pyarrow.Table`, makes the engine's own table of it, and returns the source of that. What it
        is given first and what it is given later must have the same name, if it has one.
    kinds : collection of Kind
        What columns of the engine can hold; files of text hold nothing else.
    objects : bool
        Whether the engine's columns can hold any Python object. Then `open_table` is also given mappings of
        names to lists of objects.
    domain : Domain
        The attributes; few enough that all of their cells can be counted.
    together : int
        How many records, each with another value, are added at once: the counts may then differ by as many.
        At most 30, which is below the number of records that are there already. More than one is a weaker
        check that takes less time.

    Returns
    -------
    int
        The number of hostile records that were added: one for each pair of tables that were compared, unless
        several were added together.

    Raises
    ------
    AssertionError
        Names the value that changes more than its own record.

    Examples
    --------
    >>> from matrixdp.sources import open_source
    >>> check_neighbours(open_source, [Kind.BOOLEAN])
    3
    """
    pairs = 0
    for kind in kinds:
        read = Domain([attribute for attribute in domain if attribute.rule(kind) is not None])
        values = HOSTILE_VALUES[kind] + (HOSTILE_TEXTS if kind is Kind.TEXT else ())
        pairs += _compare(open_table, partial(_arrow_table, kind), read, kind.value, values, together)
    if objects:
        pairs += _compare(open_table, _lists, domain, "object", HOSTILE_OBJECTS, together)
    return pairs


def _arrow_table(kind: Kind, columns: Mapping[str, list[object]]) -> Any:
    return arrow.table({name: arrow.array(values, type=TYPES[kind]) for name, values in columns.items()})


def _lists(columns: Mapping[str, list[object]]) -> Any:
    return dict(columns)


def _compare(
    open_table: Callable[[Any], Source],
    make: Callable[[Mapping[str, list[object]]], Any],
    domain: Domain,
    kind: str,
    values: Sequence[object],
    together: int,
) -> int:
    """Compare a table with those that have one record more, or a few, each with one of the values."""
    usual = [_usual(domain, name, values) for name in domain.names]
    # A record that is in the domain by all that its values are stays, whichever attribute drops records.
    droppers = [n for n, v in zip(domain.names, usual, strict=True) if encode_value(domain[n], v) is not None]

    def observe(dropper: str, *more: object) -> tuple[Any, Any, tuple[object, ...]]:
        columns = [[value, *more, value, *[value] * _OTHERS] for value in usual]
        return _observe(open_table, make(dict(zip(domain.names, columns, strict=True))), domain, dropper)

    fewer, _, told = observe(droppers[0])
    turns = range(0, len(values), together)
    outside = {name: observe(name)[1] for name in droppers[: len(turns)]}
    require(
        fewer is not None and fewer.sum() == 2 + _OTHERS,
        f"the {kind}s {usual!r} cannot be counted: {told[0]}",
    )
    for turn, start in enumerate(turns):
        added = values[start : start + together]
        dropper = droppers[turn % len(droppers)]
        more, out, also_told = observe(dropper, *added)
        what = f"one record of the {kind} {added[0]!r:.100}"
        if len(added) > 1:
            what = f"{len(added)} records of {kind}s, the first {added[0]!r:.100}: that"
        require(told == also_told, f"{what} changes what is told, from {told!r} to {also_told!r}")
        for axis, name in enumerate(domain.names):
            away = tuple(other for other in range(len(domain)) if other != axis)
            moved = int(np.abs(more.sum(axis=away) - fewer.sum(axis=away)).sum())
            require(moved <= len(added), f"{what} changes the counts of {name} by {moved}")
        moved = int(np.abs(more - fewer).sum())
        require(moved <= len(added), f"{what} changes the counts of all attributes together by {moved}")
        moved += int(np.abs(out - outside[dropper]).max())
        require(moved <= len(added), f"{what} is counted in the domain and out of it, {moved} times in all")
    return len(values)


def _usual(domain: Domain, name: str, values: Sequence[object]) -> object:
    """Return one of some values that an attribute has, if there is one."""
    return next((value for value in values if encode_value(domain[name], value) is not None), values[-1])


def _observe(
    open_table: Callable[[Any], Source], table: Any, domain: Domain, dropper: str
) -> tuple[Any, Any, tuple[object, ...]]:
    """Return the counts of a table, those of records out of domain, and all that is told on the way."""
    counts: Any = None
    outside: Any = np.zeros(2, dtype=np.int64)
    failure: tuple[str, str] | None = None
    with warnings.catch_warnings(record=True) as warned, _printed() as printed:
        warnings.simplefilter("always")
        try:
            source = open_table(table)
            asked = (None, dropper) if source.counts_out_of_domain else ()
            rule = OutOfDomain({name: 0 for name in domain.names if name != dropper}, asked)
            found = dict(source.marginals(domain, [domain.names], rule))
            counts, outside = found.pop(domain.names), found.pop(OUT_OF_DOMAIN, outside)
            require(not found, "marginals that nobody asked for")
        except MatrixDPError as error:
            failure = type(error).__name__, str(error)
    return counts, outside, (failure, [str(warning.message) for warning in warned], *printed)


@contextmanager
def _printed() -> Iterator[list[str]]:
    """Collect what is written to standard output and standard error, by engines that are no Python too."""
    written: list[str] = []
    texts = StringIO(), StringIO()
    own = [os.dup(stream) for stream in (1, 2)]
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        os.dup2(out.fileno(), 1)
        os.dup2(err.fileno(), 2)
        try:
            with redirect_stdout(texts[0]), redirect_stderr(texts[1]):
                yield written
        finally:
            for stream, kept in zip((1, 2), own, strict=True):
                os.dup2(kept, stream)
                os.close(kept)
            for file, text in zip((out, err), texts, strict=True):
                file.seek(0)
                written.append(text.getvalue() + file.read().decode(errors="replace"))
