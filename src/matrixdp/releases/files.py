"""The tables of a release as files that people publish: one for each group, and what describes them."""

from __future__ import annotations

import json
import logging
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from fractions import Fraction
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from matrixdp.answers.inference import METADATA, statistics_table
from matrixdp.answers.intervals import decimals_by_subject, decimals_of, for_people
from matrixdp.answers.publication import PublishedTable
from matrixdp.answers.table import (
    PUBLISHED,
    AnswerColumns,
    heading,
    plain_schema,
    quoted,
    row_groups,
    without_formulas,
)
from matrixdp.answers.titles import file_name, unique
from matrixdp.errors import Path as Place
from matrixdp.errors import SpecificationError, StorageError, TooLargeError
from matrixdp.exact.resources import one_blas_thread
from matrixdp.forms import describe_value
from matrixdp.locks import whole_path
from matrixdp.measure.measurement import Measurement
from matrixdp.queries import Group, Workload
from matrixdp.releases import record as records
from matrixdp.releases.ddi import FILE as CODEBOOK
from matrixdp.releases.ddi import write_codebook
from matrixdp.releases.schema import Request
from matrixdp.releases.sdmx import write_sdmx
from matrixdp.releases.signatures import SigningKey, write_signature
from matrixdp.releases.workbook import FILE as WORKBOOK
from matrixdp.releases.workbook import write_workbook
from matrixdp.storage.archive import arrow_file, arrow_writer, differences, entry, partial_folder, sync_folder
from matrixdp.storage.formats import load_measurement

if TYPE_CHECKING:
    from matrixdp.releases.release import Release

DATA_PACKAGE, CROISSANT = "datapackage.json", "croissant.json"
FORMATS = {"csv": records.CSV, "parquet": records.PARQUET}
"""What each table can be written as in a file of its own, with the media types."""
EXCEL, SDMX, DDI = "xlsx", "sdmx", "ddi"
"""All tables as one workbook; as observations with their structure; the code book alone."""
_TOGETHER = (EXCEL, SDMX, DDI)
#: A folder gets at most so many tables.
_MOST_TABLES = 10_000


def write_tables(
    release: Release,
    out: str | os.PathLike[str],
    format: str,  # noqa: A002
    helpers: bool,
) -> Path:
    """Write every table of a release into a new folder; see `matrixdp.Release.save_tables`."""
    if format not in (*FORMATS, *_TOGETHER):
        raise SpecificationError.at(("format",), describe_value(format), ", ".join((*FORMATS, *_TOGETHER)))
    published = (*release.tables, *(release.helpers if helpers else ()))
    if len(published) > _MOST_TABLES:
        expected = f"at most {_MOST_TABLES:,} as files of their own; answers.parquet has all of them"
        raise TooLargeError.at(("tables",), f"{len(published):,} tables", expected)
    target = whole_path(out)
    try:
        if target.exists() and (not target.is_dir() or any(target.iterdir())):
            found = f"{target}: found something there; expected a folder that is new or empty"
            raise StorageError(found, "file-exists")
    except (OSError, ValueError) as error:
        raise StorageError.unwritable(target, error) from None
    with partial_folder(target, "tables") as partial:
        if format == EXCEL:
            mark = "" if release.private else "NOT-PRIVATE-"
            write_workbook(release, published, partial / f"{mark}{WORKBOOK}")
        elif format == SDMX:
            write_sdmx(release, published, partial)
        elif format == DDI:
            write_codebook(release, published, partial / CODEBOOK)
        else:
            _write_files(release, published, partial, format)
        partial.replace(target)
        sync_folder(target.parent)
    return Path(out)


def _write_files(
    release: Release,
    published: Sequence[PublishedTable],
    folder: Path,
    format: str,  # noqa: A002
) -> None:
    with one_blas_thread():
        files = list(_written(release, published, folder, format))
    for name, described in ((DATA_PACKAGE, records.data_package), (CROISSANT, records.croissant)):
        (folder / name).write_text(records.as_text(described(release, files)) + "\n", encoding="utf-8")


def _written(
    release: Release,
    published: Sequence[PublishedTable],
    folder: Path,
    format: str,  # noqa: A002
) -> Iterator[records.TableFile]:
    taken: set[str] = set()
    for one in published:
        group, statistic = one.group, one.statistic
        if statistic is not None and statistic.table is None:
            continue  # the record says why it could not be computed
        name = file_name(one.name, taken)
        path = folder / f"{'' if release.private else 'NOT-PRIVATE-'}{name}.{format}"
        categories: dict[str, list[str]] = {}
        if group is None:
            assert statistic is not None
            tables = iter([_statistic(statistic.published, format)])
        else:
            columns = AnswerColumns(release.domain, (group,), levels=True)
            tables = _tables(release, group, columns, format)
        rows, schema, headers = _write(path, tables, one, release)
        if group is not None:
            categories = _categories(columns, schema)
        said = entry(path)
        yield records.TableFile(
            path.name, name, one, rows, schema, headers, categories,
            said["bytes"], said["sha256"], FORMATS[format],
        )  # fmt: skip


def _statistic(table: pa.Table, format: str) -> pa.Table:  # noqa: A002
    """Return a statistic as a file has it: in CSV with the digits that its errors justify."""
    return for_people(table, decimals_by_subject(table)) if format == "csv" else table


def _tables(
    release: Release,
    group: Group,
    columns: AnswerColumns,
    format: str,  # noqa: A002
) -> Iterator[pa.Table]:
    """Yield the table of a group in pieces."""
    least: list[float] = []

    def seen(variances: NDArray[np.float64]) -> None:
        least.append(float(np.sqrt(variances[variances > 0].min(initial=np.inf))))

    for batch in release.batches((group,), columns, seen):
        table = pa.Table.from_batches([batch]).drop_columns(["group"])
        yield for_people(table, decimals_of(least[0])) if format == "csv" else table


def _write(
    path: Path, tables: Iterator[pa.Table], one: PublishedTable, release: Release
) -> tuple[int, pa.Schema, tuple[str, ...]]:
    """Write the pieces of a table; return the number of rows, the columns, and what the file calls them."""
    first = next(tables)
    schema, rows, plain = first.schema, 0, path.suffix == ".csv"
    if not plain:
        described = [
            field.with_metadata({**(field.metadata or {}), b"description": records.field_description(field)})
            for field in schema
        ]
        told = {"unit": one.unit, "note": one.note, "source": one.source}
        said = {
            "title": one.title,
            **{key: text for key, text in told.items() if text},
            "confidence": release.confidence,
            "presentation": release.presentation.rules(one.measures),
            "privacy": release.statement.as_dict(),
        }
        if METADATA in (schema.metadata or {}):
            said["statistic"] = json.loads(schema.metadata[METADATA])
        schema = pa.schema(described, metadata={"matrixdp": json.dumps(said, ensure_ascii=False)})
    headers, spoken = tuple(schema.names), plain and release.domain.language is not None
    if spoken:
        headers = unique(quoted(heading(field, release.presentation.say)) for field in schema)
    plain_form = pa.schema([field.with_name(name) for field, name in zip(schema, headers, strict=True)])
    plain_form = plain_schema(plain_form) if spoken else plain_form
    with arrow_writer(path, plain_form if plain else schema, compression="zstd") as writer:
        for table in chain([first], tables):
            named = table.rename_columns(list(headers)).replace_schema_metadata()
            named = without_formulas(named) if spoken else named
            writer.write_table(named if plain else table.cast(schema))
            rows += table.num_rows
    return rows, schema, headers


def _categories(columns: AnswerColumns, schema: pa.Schema) -> dict[str, list[str]]:
    """Return the texts of the columns of attributes, in order."""
    return {own: columns.texts(name) for name, own in columns.columns.items() if own in schema.names}


# Releases from their folders: what the record says is held against what the measurement is.

#: What stands in the statement and follows from the measurement without any rounding.
_STATED = ("private", "neighbours", "unit", "noise", "cost", "budget", "ledger", "out_of_domain",
           "max_records", "time")  # fmt: skip
_EXACT = re.compile(r"\d{1,3000}(/[1-9]\d{0,2999})?")


def read_folder(folder: Path) -> tuple[dict[str, Any], Measurement, Workload]:
    """Return the record that a folder holds, with the measurement and the workload that belong to it.

    `check_record` says whether the rest of the record follows from the measurement.
    """
    record = folder / records.RECORD
    if not os.path.isfile(record):  # noqa: PTH113 - no error where the path is none
        found = f"{folder}: found no {records.RECORD}; expected the folder of a release"
        raise StorageError(found, "file-missing")
    written = records.read_record(record.read_bytes(), record)
    listed = _listed_measurement(written, record)
    path = folder / records.MEASUREMENT
    if path.is_file() and entry(path) != listed:
        found = f"{path}: does not belong to {records.RECORD}: its checksum is another"
        raise StorageError(found, "damaged-file")
    return written, *load_measurement(path)


def check_record(folder: Path, written: Mapping[str, Any], release: Release) -> None:
    """Check that what a record says of a measurement follows from it."""
    for problem in _differences(written, release):
        found = f"{folder / records.RECORD}: damaged or altered: {problem} from {records.MEASUREMENT}"
        raise StorageError(found, "damaged-file")


def expected_in(written: Mapping[str, Any]) -> Any:
    """Return how many records a record says were expected."""
    size = written.get("size")
    return size.get("expect") if isinstance(size, dict) else None


def _listed_measurement(written: Mapping[str, Any], record: Path) -> object:
    """Return what a record says of the file of its measurement."""
    if written.get("format_version") != records.RELEASE_VERSION:
        raise StorageError(
            f"{record}: found format version {written.get('format_version')!r:.80}; expected "
            f"{records.RELEASE_VERSION}, which this matrixdp reads. What "
            f"{records.MEASUREMENT} holds can be written as a release anew at no further cost: see "
            "`load_measurement` in the documentation",
            code="other-version",
        )
    try:
        listed = written["files"][records.MEASUREMENT]
        named = written["privacy"]["measurement"]
        stated = written["confidence"]
        if named != {"file": records.MEASUREMENT, "sha256": listed["sha256"]}:
            raise ValueError("two digests")
        if isinstance(stated, bool) or not isinstance(stated, int | float):
            raise TypeError("confidence")
        float(stated), written["strategy"]
        return listed
    except (ValueError, KeyError, TypeError, OverflowError):
        raise StorageError(f"{record}: damaged: not the record of a release", "damaged-file") from None


def _differences(written: Mapping[str, Any], release: Release) -> Iterator[str]:
    """Yield where a record says something else than the measurement."""
    measurement = release.measurement
    authorization = measurement.authorization.as_dict()
    statement, parts = records.promise(release), records.measured(measurement)
    follows: dict[Place, object] = {
        ("private",): release.private,
        ("domain",): release.domain.to_spec(),
        ("queries",): release.workload.queries,
        **{("privacy", name): statement[name] for name in _STATED},
        **{("authorization", name): value for name, value in authorization.items() if name != "note"},
        **{("strategy", name): value for name, value in parts.items() if name != "split"},
    }
    for place, value in follows.items():
        found = _at(written, place)
        yield from differences(found, json.loads(records.as_text({place[-1]: value})), place[:-1], exact=True)
    found = _rounded(_at(written, ("privacy", "guarantees")))
    yield from differences(found, {"guarantees": _rounded(release.statement.guarantees)}, ("privacy",))


def _at(written: Any, place: Place) -> dict[str | int, Any]:
    """Return what stands at a place, by the last key of it alone; nothing where there is no such place."""
    *outer, last = place
    for key in outer:
        written = written.get(key) if isinstance(written, dict) else None
    return {last: written[last]} if isinstance(written, dict) and last in written else {}


def _rounded(value: Any) -> Any:
    """Return guarantees with exact bounds as floats: how a bound was rounded is no difference."""
    if isinstance(value, dict):
        return {key: _rounded(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_rounded(item) for item in value]
    if isinstance(value, str) and _EXACT.fullmatch(value):
        with suppress(OverflowError):
            return float(Fraction(value))
    return value


# Releases as folders: answers in Parquet, the record in JSON, and the measurement for later queries.
#
# Answers are made and written one query group at a time, so that memory is bounded by the largest group and
# not by the release.

Progress = Callable[[int, int], None]
"""Is called with the number of answers written and of all."""

#: Above so many queries only the measurement is written, unless the caller says otherwise.
MAX_ANSWERS = 50_000_000

#: Rows that the writer encodes in one go, and how hard it compresses: most figures are noise, which does not
#: become smaller however long it is tried.
_ENCODED_ROWS, _COMPRESSION_LEVEL = 1 << 16, -5
#: The column that row groups are told apart by; least and largest values of others would help no reader.
_SORTED = "group"
_LOG = logging.getLogger(__name__)


def complete_release(
    release: Release, folder: Path, asked: Request, key: SigningKey | None, progress: Progress | None
) -> None:
    """Write the files of a release beside its measurement."""
    workload = release.workload
    columns: AnswerColumns | None = None
    if workload.queries <= asked.max_answers:
        columns = AnswerColumns(workload.domain, workload.groups, series=release.series)
        errors = _write_answers(release, columns, folder, asked.csv, progress)
        if release.series is not None:
            _write_new_answers(release, columns, folder)
    else:
        groups = [release.analysis.group(group) for group in workload]
        errors = [(error.total, error.largest) for error in groups]
    if any(one.table is not None for one in release.asked):
        mark = {b"matrixdp": privacy_mark(release.private)}
        table = statistics_table(release.asked).replace_schema_metadata(mark)
        with arrow_writer(folder / records.STATISTICS, table.schema, compression="zstd") as writer:
            writer.write_table(table)
    files = {name: entry(folder / name) for name in records.LISTED if (folder / name).exists()}
    written = records.document(release, errors, files, columns, asked.max_answers)
    (folder / records.RECORD).write_text(records.as_text(written) + "\n", encoding="utf-8")
    if key is not None:
        write_signature(folder, key)
    _LOG.info("wrote a release of %d queries in %d groups", workload.queries, len(workload))


def _write_answers(
    release: Release, columns: AnswerColumns, folder: Path, csv: bool, progress: Progress | None
) -> list[tuple[float, float]]:
    """Write the answers and return each group's sum of variances and largest variance."""
    errors: list[tuple[float, float]] = []

    def seen(variances: NDArray[np.float64]) -> None:
        errors.append((float(variances.sum()), float(variances.max())))

    schema = columns.schema.with_metadata({b"matrixdp": privacy_mark(release.private)})
    batches = release.batches(release.workload.groups, columns, seen)
    done = 0
    # many small products: several threads would spend their time waiting for one another
    with one_blas_thread(), ExitStack() as stack:
        sinks = [stack.enter_context(_parquet(folder / records.ANSWERS, schema))]
        if csv:
            sinks.append(stack.enter_context(_csv(folder / records.ANSWERS_CSV, schema)))
        for table in row_groups(batches, schema):
            for write in sinks:
                write(table)
            done += table.num_rows
            if progress is not None:
                progress(done, release.workload.queries)
    return errors


def _write_new_answers(release: Release, columns: AnswerColumns, folder: Path) -> None:
    """Write the answers that came with the last publication of a series."""
    assert release.series is not None
    name, published = release.series
    last = release.domain[name].label(published[-1] - 1)
    schema = plain_schema(columns.schema)
    new = arrow_writer(folder / records.NEW_ANSWERS, schema)
    with arrow_file(folder / records.ANSWERS) as answers, new as writer:
        for batch in pq.ParquetFile(answers).iter_batches():
            table = pa.Table.from_batches([batch]).cast(schema)
            writer.write_table(table.filter(pc.equal(table.column(PUBLISHED), last)))


def privacy_mark(private: bool) -> bytes:
    """Return what the file of the answers says of the noise."""
    return b"private" if private else b"NOT PRIVATE: seeded noise"


_Write = Callable[[pa.Table], None]


@contextmanager
def _behind(writing: AbstractContextManager[Any], write: Callable[[Any, pa.Table], None]) -> Iterator[_Write]:
    """Yield what writes tables in a thread of its own, at most one table behind."""
    with writing as writer, ThreadPoolExecutor(1) as pool:
        pending = pool.submit(lambda: None)

        def put(table: pa.Table) -> None:
            nonlocal pending
            pending.result()
            pending = pool.submit(write, writer, table)

        yield put
        pending.result()


def _parquet(path: Path, schema: pa.Schema) -> AbstractContextManager[_Write]:
    writing = arrow_writer(
        path,
        schema,
        compression="zstd",
        compression_level=_COMPRESSION_LEVEL,
        # a dictionary of numbers costs more time than it saves in bytes
        use_dictionary=[field.name for field in schema if pa.types.is_dictionary(field.type)],
        write_statistics=[_SORTED],
        write_batch_size=_ENCODED_ROWS,
    )
    return _behind(writing, lambda writer, table: writer.write_table(table, row_group_size=table.num_rows))


def _csv(path: Path, schema: pa.Schema) -> AbstractContextManager[_Write]:
    plain = plain_schema(schema)
    return _behind(arrow_writer(path, plain), lambda writer, table: writer.write_table(table.cast(plain)))
