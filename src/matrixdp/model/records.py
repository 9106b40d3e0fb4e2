"""Integer records of a mixture of products, tables that are counted on them, and files of them.

Records are stratified: every component and every value has its share.

The numbers of records of the components, and in each component those of the values of each attribute, are
the mixture's, rounded up or down. Within a component the columns are permuted independently, which is what a
product is. A table that is counted on such records is integer, non-negative and consistent with every other,
and nearer to the mixture than one of records that are drawn independently.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
from numpy.typing import NDArray

from matrixdp.answers.table import FIGURES, AnswerColumns, plain_schema
from matrixdp.domain import Domain
from matrixdp.errors import SpecificationError, StorageError, TooLargeError
from matrixdp.forms import describe_value
from matrixdp.model.folder import NOT_PRIVATE, Progress, promise
from matrixdp.model.record_values import RecordColumns
from matrixdp.model.tables import MAX_CELLS, Mixture, codes_of
from matrixdp.queries import Group
from matrixdp.selection.starting_points import Generator, generator
from matrixdp.storage.archive import entry, partial_folder, sync_files, sync_folder

if TYPE_CHECKING:
    from matrixdp.model.model import Model

Array = NDArray[np.float64]
Counts = NDArray[np.int64]
Codes = NDArray[Any]

SYNTHETIC = (
    "SYNTHETIC: no record is that of a person. The records are made from a model of noisy tables, so tables "
    "that are counted on them are biased, and how attributes go together that were not measured together is "
    "the model's guess."
)
"""What is said of the records of every model."""
#: Records that are made at once.
CHUNK_ROWS = 1 << 18
#: More are not made; it is the most that NumPy draws from without replacement.
MAX_ROWS = 999_999_999
_FORMAT, _VERSION = "matrixdp records", 1
_ENDINGS = (".parquet", ".csv")


def systematic(shares: Array, totals: Counts, offsets: Array) -> Counts:
    """Return whole numbers with given sums: each share of its total, rounded up or down.

    Parameters
    ----------
    shares : ndarray, shape (rows, n)
        Non-negative; those of a row sum to 1.
    totals : ndarray, shape (rows,)
        What the whole numbers of a row sum to.
    offsets : ndarray, shape (rows,)
        Where rounding begins, from 0 up to but not 1. If they are uniform, the expected numbers are the
        shares' own (systematic sampling).

    Examples
    --------
    >>> systematic(np.array([[0.5, 0.25, 0.25]]), np.array([10]), np.array([0.6]))
    array([[5, 3, 2]])
    """
    edges = np.cumsum(shares, axis=1)
    edges *= (totals / edges[:, -1])[:, None]
    np.floor(edges + offsets[:, None], out=edges)
    np.minimum(edges, totals[:, None], out=edges)
    edges[:, -1] = totals
    ends: Counts = edges.astype(np.int64)
    ends[:, 1:] -= ends[:, :-1].copy()
    return ends


@final
class StratifiedRecords:
    """Records of a mixture: their codes, in chunks, in a random order.

    Parameters
    ----------
    mixture : Mixture
    rows : int
        How many, from 0 to `MAX_ROWS`.
    seed : int
        Of the rounding and of the order: the same seed, the same records.

    Raises
    ------
    SpecificationError
        If the number of records or the seed is none.

    References
    ----------
    W. G. Madow, On the theory of systematic sampling II, Annals of Mathematical Statistics, 1949.

    Examples
    --------
    >>> domain = Domain({"sex": ["female", "male"], "smokes": ["no", "yes"]})
    >>> factors = {"sex": np.eye(2), "smokes": np.array([[0.75, 0.25], [0.5, 0.5]])}
    >>> mixture = Mixture(domain, 100.0, np.array([0.6, 0.4]), factors)
    >>> [chunk] = StratifiedRecords(mixture, 100, seed=0).chunks()
    >>> np.histogram2d(chunk["sex"], chunk["smokes"], bins=2)[0]
    array([[45., 15.],
           [20., 20.]])
    """

    def __init__(self, mixture: Mixture, rows: int, seed: int) -> None:
        if type(rows) is not int or not 0 <= rows <= MAX_ROWS:
            expected = f"a number of records, from 0 to {MAX_ROWS:,}"
            raise SpecificationError.at(("rows",), describe_value(rows), expected, code="out-of-range")
        check_seed(seed)
        self.mixture, self.rows, self.seed = mixture, rows, seed

    @property
    def domain(self) -> Domain:
        """The attributes."""
        return self.mixture.domain

    @cached_property
    def sizes(self) -> Counts:
        """The number of records of each component, shape (K,)."""
        offset = generator(self.seed).spawn(3)[0].random(1)
        return np.asarray(systematic(self.mixture.weights[None], np.array([self.rows]), offset)[0])

    @cached_property
    def values(self) -> Mapping[str, Counts]:
        """For each attribute that is free the number of records with each value, each of shape (K, size)."""
        random = generator(self.seed).spawn(3)[1]
        return {
            name: systematic(shares, self.sizes, random.random(len(shares)))
            for name, shares in self.mixture.factors.items()
        }

    def chunks(self) -> Iterator[dict[str, Codes]]:
        """Yield the records, `CHUNK_ROWS` at once: for each attribute their codes, in domain order.

        All of them together are in a uniformly random order: what a chunk gets of a component, and of its
        values, is drawn without replacement from what is left.
        """
        random, domain = generator(self.seed).spawn(3)[2], self.domain
        sizes, values = self.sizes.copy(), {name: own.copy() for name, own in self.values.items()}
        left = self.rows
        while left:
            rows = min(CHUNK_ROWS, left)
            taken = sizes.copy() if rows == left else random.multivariate_hypergeometric(sizes, rows)
            order = random.permutation(rows)
            codes = {}
            for name, own in values.items():
                part = own if rows == left else _drawn(own, taken, random)
                codes[name] = _permuted(part, taken, random)[order]
                values[name] = own - part
            sizes -= taken
            left -= rows
            yield {name: codes_of(domain, name, codes) for name in domain.names}


def check_seed(seed: object) -> None:
    """Refuse what is no seed."""
    if type(seed) is not int or not 0 <= seed < 2**63:
        raise SpecificationError.at(
            ("seed",), describe_value(seed), "an integer from 0 to 2^63 - 1", code="out-of-range"
        )


def _drawn(values: Counts, taken: Counts, random: Generator) -> Counts:
    """Return how many records of each value a chunk gets, given how many of each component."""
    found = np.zeros_like(values)
    for component in np.flatnonzero(taken):
        found[component] = random.multivariate_hypergeometric(values[component], taken[component])
    return found


def _permuted(values: Counts, taken: Counts, random: Generator) -> Codes:
    """Return codes, one component after the other, in a random order within each."""
    size = values.shape[1]
    codes = np.repeat(np.tile(np.arange(size), len(values)), values.ravel())
    end = 0
    for count in taken[taken > 0].tolist():
        random.shuffle(codes[end : end + count])
        end += count
    return codes.astype(np.int16 if size < 2**15 else np.int32)


# Answers as they are counted on records, only a part of which is in memory.


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
    counts = {names: own.reshape(shapes[names]).astype(np.float64) for names, own in tables.items()}
    return [group.answers(counts[group.attributes]).ravel() for group in groups]


def counted_table(domain: Domain, groups: Sequence[Group], records: StratifiedRecords) -> pa.Table:
    """Return the same as a table: the columns of answers, with ``count`` in the place of the figures.

    Counts are integers where every query of the table counts records, and are not weighted.
    """
    columns = AnswerColumns(domain, groups)
    answers = counted(groups, records)
    whole = all(bool((own == np.rint(own)).all()) for own in answers)
    batches = [
        batch
        for position, own in enumerate(answers)
        for batch in columns.batches(position, own, np.zeros_like(own), 0.0)
    ]
    table = pa.Table.from_batches(batches, schema=columns.schema)
    counts = table.column(FIGURES[0]).cast(pa.int64() if whole else pa.float64())
    field = pa.field("count", counts.type)
    return table.drop_columns(list(FIGURES)).append_column(field, counts)


# Records as files, and beside them what they are.


def beside(path: Path) -> Path:
    """Return the file that says what a file of records is.

    Examples
    --------
    >>> beside(Path("people.csv")).name
    'people.csv.json'
    """
    return path.with_name(f"{path.name}.json")


def write_records(
    model: Model,
    path: Path,
    records: StratifiedRecords,
    columns: RecordColumns,
    force: bool = False,
    progress: Progress | None = None,
) -> Path:
    """Write records to a file that appears whole or not at all, and what they are to another beside it.

    Parameters
    ----------
    model : Model
        What the records are of.
    path : Path
        A name that ends in ``.parquet`` or ``.csv``. Beside it, with the ending ``.json`` more, comes what
        the records are: that they are synthetic, how many, from which seed, by which model of which
        measurement, what is promised, and the file's digest.
    records : StratifiedRecords
    columns : RecordColumns
    force : bool
        Whether files of these names may be replaced.
    progress : callable, optional
        Is called with the number of records written and of all.

    Returns
    -------
    Path
        The file.

    Raises
    ------
    SpecificationError
        If the name has another ending.
    StorageError
        If a file is there already, or none can be written.
    """
    if path.suffix.lower() not in _ENDINGS:
        raise SpecificationError.at(
            ("out",), describe_value(path.name), "a name that ends in .parquet or .csv", code="unknown-name"
        )
    for name in (path, beside(path)):
        if os.path.lexists(name) and not (force and name.is_file()):
            raise StorageError(
                f"{name}: is there already; use another name, or replace it (force=True, or --force)",
                "file-exists",
            )
    with partial_folder(path, "partial") as folder:
        partial = folder / path.name
        _write(model, partial, records, columns, progress)
        record = {
            "format": _FORMAT,
            "format_version": _VERSION,
            "synthetic": SYNTHETIC,
            **promise(model),
            "rows": records.rows,
            "seed": records.seed,
            "values": columns.values,
            "columns": columns.schema.names,
            "model": {"method": model.method, "accepted": model.accepted, "made": dict(model.made)},
            "files": {path.name: entry(partial)},
        }
        text = json.dumps(record, indent=1, ensure_ascii=False, allow_nan=False)
        beside(partial).write_text(text + "\n", encoding="utf-8")
        sync_files(folder)
        partial.replace(path)
        beside(partial).replace(beside(path))
        sync_folder(path.parent)
    return path


def _write(
    model: Model, path: Path, records: StratifiedRecords, columns: RecordColumns, progress: Progress | None
) -> None:
    mark = SYNTHETIC if model.private else f"{NOT_PRIVATE}. {SYNTHETIC}"
    schema = columns.schema.with_metadata({b"matrixdp": mark.encode()})
    sink: Any
    if path.suffix.lower() == ".csv":
        schema = plain_schema(schema)
        sink = pacsv.CSVWriter(path, schema)
    else:
        sink = pq.ParquetWriter(path, schema, compression="zstd", compression_level=1)
    done = 0
    with sink:
        for codes in records.chunks():
            table = pa.Table.from_batches([columns.batch(codes)]).cast(schema)
            sink.write_table(table)
            done += table.num_rows
            if progress is not None:
                progress(done, records.rows)
