"""That one record changes one count by one, and nothing else that a reader of the output could see."""

from __future__ import annotations

import os
import tempfile
import warnings
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from io import StringIO
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from matrixdp.domain import Domain, OutOfDomain, encode_value
from matrixdp.domain.rules import Kind
from matrixdp.errors import MatrixDPError
from matrixdp.sources import Source
from matrixdp.testing.agreement import require
from matrixdp.testing.sources import HOSTILE_DOMAIN, HOSTILE_VALUES, TYPES

__all__ = ["check_neighbours"]

arrow: Any = pa
"""PyArrow, whose own types are incomplete."""

_Counts = list[NDArray[np.int64]]


def check_neighbours(
    open_table: Callable[[Any], Source], kinds: Collection[Kind] = tuple(HOSTILE_VALUES)
) -> int:
    """Check that a table and the same table with one record more differ by that record alone.

    The record holds a hostile value in every attribute at once and stands between others. With it and without
    it the messages, warnings and output must be the same, and the counts of every attribute must differ by
    at most one in all, whether values out of domain are dropped or replaced.

    Parameters
    ----------
    open_table : callable
        Takes a `pyarrow.Table`, makes the engine's own table of it, and returns the source of that. What it
        is given first and what it is given later must have the same name, if it has one.
    kinds : collection of Kind
        What columns of the engine can hold; files of text hold nothing else.

    Returns
    -------
    int
        The number of pairs of tables that were compared.

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
        names = [attribute.name for attribute in HOSTILE_DOMAIN if attribute.rule(kind) is not None]
        domain = Domain([HOSTILE_DOMAIN[name] for name in names])
        base = [_usual(domain, name, kind) for name in names]
        fewer, told = _observe(open_table, domain, kind, [base, base])
        require(told[0] is None, f"the {kind.value}s {base!r} cannot be counted")
        for value in HOSTILE_VALUES[kind]:
            more, also_told = _observe(open_table, domain, kind, [base, [value] * len(names), base])
            what = f"one record of the {kind.value} {value!r}"
            require(told == also_told, f"{what} changes what is told, from {told!r} to {also_told!r}")
            for name, left, right in zip([*names, "all"], fewer, more, strict=True):
                moved = int(np.abs(right - left).sum())
                require(moved <= 1, f"{what} changes the counts of {name} by {moved}")
            pairs += 1
    return pairs


def _usual(domain: Domain, name: str, kind: Kind) -> object:
    """Return a value of a kind that an attribute has, if there is one."""
    values = HOSTILE_VALUES[kind]
    return next((value for value in values if encode_value(domain[name], value) is not None), values[-1])


def _observe(
    open_table: Callable[[Any], Source], domain: Domain, kind: Kind, records: Sequence[Sequence[object]]
) -> tuple[_Counts, tuple[object, ...]]:
    """Return the counts of a table, and all that is told on the way to them."""
    columns = [arrow.array(list(column), type=TYPES[kind]) for column in zip(*records, strict=True)]
    table = arrow.table(columns, names=list(domain.names))
    replaced = OutOfDomain(dict.fromkeys(domain.names, 0))
    counts: _Counts = []
    failure: tuple[str, str] | None = None
    with warnings.catch_warnings(record=True) as warned, _printed() as printed:
        warnings.simplefilter("always")
        try:
            source = open_table(table)
            found = dict(source.marginals(domain, [(name,) for name in domain.names], replaced))
            counts = [found[name,] for name in domain.names]
            counts += [total for _, total in source.marginals(domain, [()], OutOfDomain())]
        except MatrixDPError as error:
            failure = type(error).__name__, str(error)
    return counts, (failure, [str(warning.message) for warning in warned], *printed)


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
