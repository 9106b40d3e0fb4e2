"""Answers as they are counted on records, only a part of which is in memory."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from matrixdp.answers.table import FIGURES, AnswerColumns
from matrixdp.domain import Domain
from matrixdp.errors import TooLargeError
from matrixdp.model.mixture import MAX_CELLS
from matrixdp.model.records import StratifiedRecords
from matrixdp.queries import DenseGroup, Group

__all__ = ["counted", "counted_table"]

Array = NDArray[np.float64]


def counted(groups: Sequence[Group], records: StratifiedRecords) -> list[Array]:
    """Return the answers to each group's queries on records, flat, row-major.

    Raises
    ------
    TooLargeError
        If the tables to count have more than `MAX_CELLS` cells together.
    """
    domain = records.domain
    shapes = {group.attributes: tuple(domain[name].size for name in group.attributes) for group in groups}
    cells = sum(math.prod(shape) for shape in shapes.values())
    if cells > MAX_CELLS:
        raise TooLargeError(
            f"tables of {cells} cells would be counted; at most {MAX_CELLS} are: ask for fewer attributes, "
            "or for fewer tables at once"
        )
    tables = {names: np.zeros(math.prod(shape), dtype=np.int64) for names, shape in shapes.items()}
    for codes in records.chunks():
        rows = len(next(iter(codes.values())))
        for names, shape in shapes.items():
            places = np.zeros(rows, dtype=np.int64)
            for name, size in zip(names, shape, strict=True):
                places *= size
                places += codes[name]
            tables[names] += np.bincount(places, minlength=math.prod(shape))
    return [_answers(group, tables[group.attributes].reshape(shapes[group.attributes])) for group in groups]


def _answers(group: Group, table: NDArray[np.int64]) -> Array:
    counts = table.astype(np.float64)
    if isinstance(group, DenseGroup):
        return group.answers(counts)
    for axis, name in enumerate(group.attributes):
        moved = np.moveaxis(counts, axis, 0)
        out = group.sets[name].apply(np.ascontiguousarray(moved).reshape(moved.shape[0], -1))
        counts = np.moveaxis(out.reshape(out.shape[0], *moved.shape[1:]), 0, axis)
    return np.asarray(counts.ravel())


def counted_table(domain: Domain, groups: Sequence[Group], records: StratifiedRecords) -> pa.Table:
    """Return the same as a table: the columns of answers, with ``count`` in the place of the figures.

    Counts are integers where every query of the table counts records, and are not weighted.
    """
    columns = AnswerColumns(domain, groups)
    answers = counted(groups, records)
    whole = all(bool((own == np.rint(own)).all()) for own in answers)
    kind = pa.int64() if whole else pa.float64()
    schema = pa.schema([*list(columns.schema)[: -len(FIGURES)], pa.field("count", kind)])
    batches = []
    for position, own in enumerate(answers):
        done = 0
        for batch in columns.batches(position, own, np.zeros_like(own), 0.0):
            part = own[done : done + batch.num_rows]
            done += batch.num_rows
            arrays = [*batch.columns[: -len(FIGURES)], pa.array(part).cast(kind)]
            batches.append(pa.RecordBatch.from_arrays(arrays, schema=schema))
    return pa.Table.from_batches(batches, schema=schema)
