"""The tables of a release as files that people publish: one for each group, and what describes them."""

from __future__ import annotations

import ctypes
import json
import logging
import math
import os
import re
import shutil
import sys
import unicodedata
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, final

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
from numpy.typing import NDArray

from matrixdp.answers.inference import statistics_table
from matrixdp.answers.intervals import decimals_of, for_people
from matrixdp.answers.table import BATCH_ROWS, AnswerColumns, own_table, plain_schema
from matrixdp.answers.titles import head, titles
from matrixdp.domain import Domain
from matrixdp.errors import Path as Place
from matrixdp.errors import (
    SafeNote,
    SpecificationError,
    StorageError,
    TooLargeError,
    file_problem,
    format_place,
)
from matrixdp.exact.resources import one_blas_thread
from matrixdp.forms import describe_value
from matrixdp.locks import Lock
from matrixdp.queries import Group, ProductGroup, Total
from matrixdp.releases.record import (
    ANSWERS,
    ANSWERS_CSV,
    CSV,
    LISTED,
    MEASUREMENT,
    PARQUET,
    READABLE_VERSIONS,
    RECORD,
    RELEASE_FILES,
    RELEASE_FORMAT,
    REPLACED,
    REQUEST,
    RUNNING,
    SPENT,
    STATISTICS,
    UNFINISHED,
    TableFile,
    as_text,
    croissant,
    data_package,
    document,
    field_description,
    is_release,
    mark_spent,
    measured,
    promise,
    refuse_leftover,
    remove_release,
    settle,
    spent_for,
    unmark,
)
from matrixdp.releases.signatures import SigningKey, write_signature
from matrixdp.storage.archive import TOLERANCE, differences, entry, read_strictly, sync_folder, temporary_name
from matrixdp.storage.formats import load_measurement, save_measurement

if TYPE_CHECKING:
    from matrixdp.releases.release import Release as Written

DATA_PACKAGE, CROISSANT = "datapackage.json", "croissant.json"
FORMATS = {"csv": CSV, "parquet": PARQUET}
"""What tables can be written as, with their media types."""
#: A folder gets at most so many tables.
_MOST_TABLES = 10_000
_LONGEST_NAME = 80
#: Latin letters that are not a plain one with a mark.
_LETTERS = str.maketrans(
    {"ø": "o", "ł": "l", "đ": "d", "ð": "d", "ħ": "h", "ı": "i", "æ": "ae", "œ": "oe", "þ": "th"}
)


def write_tables(release: Written, out: str | os.PathLike[str], format: str, pivot: str | None) -> Path:  # noqa: A002
    """Write every table of a release into a new folder; see `matrixdp.Release.save_tables`."""
    if format not in FORMATS:
        raise SpecificationError.at(("format",), describe_value(format), " or ".join(FORMATS))
    groups = release.workload.groups
    if len(groups) > _MOST_TABLES:
        expected = f"at most {_MOST_TABLES:,} as files of their own; answers.parquet has all of them"
        raise TooLargeError.at(("tables",), f"{len(groups):,} tables", expected)
    if pivot is not None and not any(_pivoted(group, release.workload.domain, pivot) for group in groups):
        expected = "an attribute that a table asks about beside others"
        raise SpecificationError.at(("pivot",), describe_value(pivot), expected)
    target = Path(os.path.abspath(out))  # noqa: PTH100 - keeps a symbolic link to where the user points
    try:
        if target.exists() and (not target.is_dir() or any(target.iterdir())):
            raise StorageError(f"{target}: found something there; expected a folder that is new or empty")
        partial = temporary_name(target, "tables")
        target.parent.mkdir(parents=True, exist_ok=True)
        partial.mkdir()
    except (OSError, ValueError) as error:
        reason = file_problem(error)
        raise StorageError(f"{target}: cannot be written ({reason})") from None
    try:
        with one_blas_thread():
            files = list(_written(release, partial, format, pivot))
        for name, described in ((DATA_PACKAGE, data_package), (CROISSANT, croissant)):
            (partial / name).write_text(as_text(described(release, files)) + "\n", encoding="utf-8")
        partial.replace(target)
        sync_folder(target.parent)
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)
        raise
    return Path(out)


def _written(release: Written, folder: Path, format: str, pivot: str | None) -> Iterator[TableFile]:  # noqa: A002
    groups = release.workload.groups
    called = titles(groups)
    taken: set[str] = set()
    for group, title in zip(groups, called, strict=True):
        name = _file_name(title, taken)
        path = folder / f"{'' if release.private else 'NOT-PRIVATE-'}{name}.{format}"
        own = pivot if pivot is not None and _pivoted(group, release.workload.domain, pivot) else None
        columns = AnswerColumns(release.workload.domain, (group,), levels=True)
        rows, schema = _write(path, _tables(release, group, columns, format, own), title, release)
        said = entry(path)
        yield TableFile(
            path.name, name, title, rows, schema, _categories(columns, schema),
            int(str(said["bytes"])), str(said["sha256"]), FORMATS[format],
        )  # fmt: skip


def _tables(
    release: Written,
    group: Group,
    columns: AnswerColumns,
    format: str,  # noqa: A002
    pivot: str | None,
) -> Iterator[pa.Table]:
    """Yield the table of a group in pieces, or at once where it is made wide."""
    least: list[float] = []

    def seen(variances: NDArray[np.float64]) -> None:
        least.append(float(np.sqrt(variances[variances > 0].min(initial=np.inf))))

    batches = release.batches((group,), columns, seen)
    pieces: Iterator[Any] = ([batch] for batch in batches) if pivot is None else iter([list(batches)])
    for piece in pieces:
        table = pa.Table.from_batches(piece, schema=columns.schema)
        table = own_table(table, group, release.workload.domain, pivot)
        yield for_people(table, decimals_of(least[0])) if format == "csv" else table


def _write(path: Path, tables: Iterator[pa.Table], title: str, release: Written) -> tuple[int, pa.Schema]:
    """Write the pieces of a table; return the number of rows, and the columns."""
    first = next(tables)
    schema, rows = first.schema, 0
    if path.suffix == ".csv":
        writer = pacsv.CSVWriter(path, schema)
    else:
        described = [field.with_metadata({**(field.metadata or {}), b"description": field_description(field)})
                     for field in schema]  # fmt: skip
        said = {"title": title, "confidence": release.confidence, "privacy": release.statement.as_dict()}
        metadata = {"matrixdp": json.dumps(said, ensure_ascii=False)}
        schema = pa.schema(described, metadata=metadata)
        writer = pq.ParquetWriter(path, schema, compression="zstd")
    with writer:
        while first is not None:
            rows += first.num_rows
            writer.write_table(
                first.cast(schema) if path.suffix != ".csv" else first.replace_schema_metadata()
            )
            first = next(tables, None)
    return rows, schema


def _categories(columns: AnswerColumns, schema: pa.Schema) -> dict[str, list[str]]:
    """Return the texts of the columns of attributes, in order."""
    texts = {columns.columns[name]: columns.texts(name) for name in columns.columns}
    return {name: found for name, found in texts.items() if name in schema.names}


def _pivoted(group: Group, domain: Domain, pivot: str) -> bool:
    """Return whether a group asks about an attribute, or a level, beside others."""
    if not isinstance(group, ProductGroup):
        return False
    asked = [(name, own) for name, own in group.sets.items() if not isinstance(own, Total)]
    return len(asked) > 1 and any(pivot in (name, head(domain[name], (own,))) for name, own in asked)


def _file_name(title: str, taken: set[str]) -> str:
    """Return a name of small letters, digits and hyphens that no other table has."""
    # ß becomes ss before what is not ASCII goes
    letters = title.casefold().translate(_LETTERS)
    plain = unicodedata.normalize("NFKD", letters).encode("ascii", "ignore").decode().lower()
    name = re.sub(r"[^a-z0-9]+", "-", plain).strip("-")[:_LONGEST_NAME].strip("-") or "table"
    made, number = name, 1
    while made in taken:
        number += 1
        made = f"{name}-{number}"
    taken.add(made)
    return made


# Releases from their folders: what the record says is held against what the measurement is.

R = TypeVar("R", bound="Written")

#: What stands in the statement and follows from the measurement without any rounding.
_STATED = ("private", "neighbours", "unit", "noise", "cost", "budget", "ledger", "out_of_domain",
           "max_records", "time")  # fmt: skip
_EXACT = re.compile(r"\d{1,3000}(/[1-9]\d{0,2999})?")


def read_release(out: str | os.PathLike[str], make: Callable[..., R]) -> R:
    """Return the release that a folder holds; see `matrixdp.releases.load_release`.

    ``make`` is called with the measurement, the workload, the confidence, how the strategy was chosen, and
    the expected number of records.
    """
    folder = Path(out)
    refuse_leftover(folder)
    record = folder / RECORD
    if not os.path.isfile(record):  # noqa: PTH113 - no error where the path is none
        raise StorageError(f"{folder}: found no {RECORD}; expected the folder of a release")
    written = read_strictly(record.read_bytes(), str(record))
    listed, stated, origin = _read(written, record)
    path = folder / MEASUREMENT
    if path.is_file() and entry(path) != listed:
        raise StorageError(f"{path}: does not belong to {RECORD}: its checksum is another")
    measurement, workload = load_measurement(path)
    try:
        release = make(measurement, workload, stated, origin, expected_in(written))
    except SpecificationError as error:
        raise StorageError(f"{record}: damaged: {error}") from None
    for problem in _differences(written, release):
        raise StorageError(f"{record}: damaged or altered: {problem} from {MEASUREMENT}")
    return release


def expected_in(written: Mapping[str, Any]) -> Any:
    """Return how many records a record says were expected."""
    size = written.get("size")
    return size.get("expect") if isinstance(size, dict) else None


def _read(written: Mapping[str, Any], record: Path) -> tuple[object, float, dict[str, Any]]:
    """Return what the record says of the measurement's file, the confidence, and the origin."""
    if written.get("format") != RELEASE_FORMAT:
        raise StorageError(f"{record}: holds something else than the record of a release")
    if written.get("format_version") not in READABLE_VERSIONS:
        raise StorageError(
            f"{record}: found format version {written.get('format_version')!r:.80}; expected "
            f"{' or '.join(map(str, READABLE_VERSIONS))}, which this matrixdp reads. What {MEASUREMENT} "
            "holds can be written as a release anew at no further cost: see `load_measurement` in the "
            "documentation",
            code="other-version",
        )
    try:
        listed = written["files"][MEASUREMENT]
        named = written["privacy"]["measurement"]
        stated, origin = written["confidence"], written["strategy"]
        if named != {"file": MEASUREMENT, "sha256": listed["sha256"]}:
            raise ValueError("two digests")
        if isinstance(stated, bool) or not isinstance(stated, int | float):
            raise TypeError("confidence")
        return listed, float(stated), origin
    except (ValueError, KeyError, TypeError, OverflowError):
        raise StorageError(f"{record}: damaged: not the record of a release") from None


def _differences(written: Mapping[str, Any], release: Written) -> Iterator[str]:
    """Yield where a record says something else than the measurement."""
    measurement = release.measurement
    authorization = measurement.authorization.as_dict()
    statement, parts = promise(release), measured(measurement)
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
        yield from differences(found, json.loads(as_text({place[-1]: value})), place[:-1], exact=True)
    place = ("privacy", "guarantees")
    if not _as_strong(_at(written, place).get("guarantees"), release.statement.guarantees):
        yield f"{format_place(place)}: others follow"


def _at(written: Any, place: Place) -> dict[str | int, Any]:
    """Return what stands at a place, by the last key of it alone; nothing where there is no such place."""
    *outer, last = place
    for key in outer:
        written = written.get(key) if isinstance(written, dict) else None
    return {last: written[last]} if isinstance(written, dict) and last in written else {}


def _as_strong(found: Any, expected: list[dict[str, Any]]) -> bool:
    """Return whether guarantees are those that follow, up to how their bounds were rounded."""
    if not isinstance(found, list) or len(found) != len(expected):
        return False
    return all(
        isinstance(one, dict) and _alike(one, other) for one, other in zip(found, expected, strict=True)
    )


def _alike(found: dict[str, Any], expected: dict[str, Any]) -> bool:
    figures = ("parameters", "exact")
    if {k: v for k, v in found.items() if k not in figures} != {"definition": expected["definition"]}:
        return False
    for name in figures:
        one, other = found.get(name), expected[name]
        if not isinstance(one, dict) or set(one) != set(other):
            return False
        if not all(_near(one[key], other[key]) for key in other):
            return False
    return True


def _near(found: Any, expected: float | str) -> bool:
    if isinstance(expected, str):
        if not isinstance(found, str) or _EXACT.fullmatch(found) is None:
            return False
        one, other = Fraction(found), Fraction(expected)
        return abs(one - other) <= Fraction(TOLERANCE) * other
    if isinstance(found, bool) or not isinstance(found, int | float) or abs(found) > sys.float_info.max:
        return False
    return math.isclose(found, expected, rel_tol=TOLERANCE)


# Folders that appear whole or not at all.

_WORKING_FOLDER = -100
_EXCHANGE = 2


@contextmanager
def staged_folder(
    out: str | os.PathLike[str], *, force: bool = False, keep: bool = False, spends: str | None = None
) -> Iterator[Path]:
    """Give a temporary folder beside `out`, which takes its place when all went well.

    If anything fails, the temporary folder is removed and `out` is as it was. It must not be there, or be
    empty, or, with `force`, hold a release: nothing else is ever replaced. With `keep` a measurement that
    was written whole stays in the temporary folder when something fails after it, and the error has a note
    that says what was spent (`matrixdp.releases.record.mark_spent`) and where it is. `spends` is the budget
    that is spent for the folder once it is there, for whoever has a release in it already.

    Raises
    ------
    StorageError
        If `out` holds something, or its parent cannot be written to. Before anything is written.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as parent:
    ...     with staged_folder(f"{parent}/out") as folder:
    ...         written = (folder / "release.json").write_text("{}")
    ...     sorted(path.name for path in Path(parent, "out").iterdir())
    ['release.json']
    """
    target = Path(os.path.abspath(out))  # noqa: PTH100 - keeps a symbolic link to where the user points
    try:
        settle(target)
        replaces = _check(target, force, spends)
        partial = temporary_name(target, UNFINISHED)
        target.parent.mkdir(parents=True, exist_ok=True)
        partial.mkdir()
    except (OSError, ValueError) as error:
        reason = file_problem(error)
        raise StorageError(f"{target}: cannot be written ({reason})") from None
    lock: Lock | None = None
    try:
        lock = Lock(partial / RUNNING)
        yield partial
        for file in partial.iterdir():
            with file.open("rb+") as stream:
                os.fsync(stream.fileno())
        sync_folder(partial)
        _check(target, force)
        if replaces:
            _replace(partial, target)
        else:
            partial.replace(target)
        sync_folder(target.parent)
        # only now, so that a folder elsewhere that has it was never put in its place
        unmark(target)
    except BaseException as error:
        told = _clear(partial, target, keep)
        if keep and told is not None:
            error.add_note(SafeNote(told))
        raise
    finally:
        if lock is not None:
            lock.free()


def _clear(partial: Path, target: Path, keep: bool) -> str | None:
    """Remove a temporary folder after a failure; say what became of a budget that was spent for it."""
    marks = [path for folder in (partial, target) if (path := folder / SPENT).exists()]
    if not marks:
        shutil.rmtree(partial, ignore_errors=True)
        return None
    budget, command = spent_for(marks[0].parent)
    spent = f"The budget was spent: {budget}"
    if marks[0].parent == target:
        shutil.rmtree(partial, ignore_errors=True)
        return f"{spent}. The release is whole in {target}"
    if not keep or not (partial / MEASUREMENT).exists():
        shutil.rmtree(partial, ignore_errors=True)
        return f"{spent}. No measurement was kept"
    for path in partial.iterdir():
        if path.name not in (MEASUREMENT, SPENT, REQUEST):
            path.unlink(missing_ok=True)
    return (
        f"{spent}. The measurement is whole: {partial / MEASUREMENT}. `matrixdp {command}` makes a "
        "release of it, at no further cost"
    )


def _replace(partial: Path, target: Path) -> None:
    if _exchange(partial, target):
        sync_folder(target.parent)
        remove_release(partial)
        return
    old = temporary_name(target, REPLACED)
    target.replace(old)
    try:
        partial.replace(target)
    except BaseException:
        if not target.exists():
            old.replace(target)
        raise
    sync_folder(target.parent)
    remove_release(old)


def _exchange(one: Path, other: Path) -> bool:
    """Let two folders change places in one step; return False, having done nothing, where that cannot be."""
    rename = getattr(ctypes.CDLL(None), "renameat2", None)
    if rename is None:
        return False
    places = _WORKING_FOLDER, os.fsencode(one), _WORKING_FOLDER, os.fsencode(other)
    return bool(rename(*places, _EXCHANGE) == 0)


def _check(target: Path, force: bool, spends: str | None = None) -> bool:
    """Return whether a release would be replaced; refuse to touch anything else."""
    if not target.exists() and not target.is_symlink():
        return False
    if not target.is_dir() or target.is_symlink():
        raise StorageError(f"{target}: found a file; expected a folder that is not there yet")
    names = {path.name for path in target.iterdir()}
    if not names:
        return False
    if not is_release(target) or not names <= set(RELEASE_FILES):
        raise StorageError(f"{target}: found a folder with other files; expected one that is not there yet")
    if not force:
        again = "" if spends is None else _again(target, spends)
        raise StorageError(
            f"{target}: found an earlier release; {again}use another folder, or replace it "
            "(force=True, or --force)"
        )
    return True


def _again(target: Path, spends: str) -> str:
    """Say what another release would spend, and how to do without."""
    return (
        f"a new one would spend {spends} once more, on top of what that one spent, and to replace it gives "
        f"nothing back. `matrixdp answer {target} QUERY` answers further queries of it at no further cost. "
        "To spend all the same, "
    )


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


def save_release(
    release: Written,
    out: str | os.PathLike[str],
    *,
    csv: bool = False,
    max_answers: int = MAX_ANSWERS,
    force: bool = False,
    key: SigningKey | None = None,
    progress: Progress | None = None,
) -> Path:
    """Write a release as a folder that appears whole or not at all.

    Parameters
    ----------
    release : Release
        The release.
    out : str or path
        The folder. It must not be there, or be empty, or, with `force`, hold an earlier release.
    csv : bool
        Whether to write the answers as CSV too.
    max_answers : int
        Above so many queries only the measurement is written, which `load_release` answers from.
    force : bool
        Whether an earlier release may be replaced.
    key : SigningKey, optional
        Signs the release, as the last step before the folder takes its place; see `check_signature`.
    progress : callable, optional
        Is called with the number of answers written and of all.

    Returns
    -------
    Path
        The folder.

    Raises
    ------
    StorageError
        If `out` holds something else, or cannot be written.
    UnsupportedQueryError
        If the measurement does not determine a query of the workload.

    Examples
    --------
    >>> import tempfile
    >>> import matrixdp as mdp
    >>> workload = mdp.Workload(mdp.Domain({"sex": ["female", "male"]}), mdp.marginals(1))
    >>> release = mdp.select(workload).measure({"sex": ["male"]}, mdp.Budget(rho=0.5)).reconstruct()
    >>> with tempfile.TemporaryDirectory() as parent:
    ...     folder = save_release(release, f"{parent}/out")
    ...     print(sorted(path.name for path in folder.iterdir()))
    ...     mdp.load_release(folder).answers.equals(release.answers)
    ['answers.parquet', 'measurement.mdp', 'release.json']
    True
    """
    with staged_folder(out, force=force) as folder:
        write_release(release, folder, csv=csv, max_answers=max_answers, key=key, progress=progress)
    mark_released(release, Path(out))
    return Path(out)


def write_release(
    release: Written,
    folder: Path,
    *,
    csv: bool = False,
    max_answers: int = MAX_ANSWERS,
    key: SigningKey | None = None,
    progress: Progress | None = None,
) -> dict[str, object]:
    """Write the files of a release into a staged folder, and return its record; see `save_release`."""
    reservation = release.measurement.reservation
    if release.private:
        debited = None if reservation is None else reservation.ledger.path
        mark_spent(folder, release.measurement.authorization.budget, debited)
    if reservation is not None and reservation.run is not None:
        reservation.run.writes_to(folder)
    asked: dict[str, object] = {"confidence": release.confidence, "csv": csv, "max_answers": max_answers}
    asked |= {"origin": dict(release.origin), "expect": release.expect}
    (folder / REQUEST).write_text(json.dumps(asked), encoding="utf-8")
    save_measurement(folder / MEASUREMENT, release.measurement, release.workload)
    if reservation is not None:
        reservation.measured(str(entry(folder / MEASUREMENT)["sha256"]))
    return complete_release(release, folder, csv=csv, max_answers=max_answers, key=key, progress=progress)


def mark_released(release: Written, out: Path) -> None:
    """Let the ledger that a release was debited to, if any, say that it is in its place."""
    reservation = release.measurement.reservation
    if reservation is None:
        return
    try:
        reservation.released(str(entry(out / MEASUREMENT)["sha256"]))
    except BaseException as error:
        error.add_note(SafeNote(f"{reservation.note}. The release is whole in {out}"))
        raise


def complete_release(
    release: Written,
    folder: Path,
    *,
    csv: bool,
    max_answers: int,
    key: SigningKey | None = None,
    progress: Progress | None = None,
) -> dict[str, object]:
    """Write the files of a release beside its measurement, and return its record."""
    workload = release.workload
    columns: AnswerColumns | None = None
    if workload.queries <= max_answers:
        columns = AnswerColumns(workload.domain, workload.groups)
        errors = _write_answers(release, columns, folder, csv, progress)
    else:
        groups = [release.analysis.group(group) for group in workload]
        errors = [(error.total, error.largest) for error in groups]
    if any(one.table is not None for one in release.asked):
        mark = {b"matrixdp": privacy_mark(release.private)}
        table = statistics_table(release.asked).replace_schema_metadata(mark)
        pq.write_table(table, folder / STATISTICS, compression="zstd")
    names = [name for name in LISTED if (folder / name).exists()]
    files = {name: entry(folder / name) for name in names}
    written = document(release, errors, files, columns, max_answers)
    (folder / RECORD).write_text(as_text(written) + "\n", encoding="utf-8")
    if key is not None:
        write_signature(folder, key)
    _LOG.info("wrote a release of %d queries in %d groups", workload.queries, len(workload))
    return written


def _write_answers(
    release: Written, columns: AnswerColumns, folder: Path, csv: bool, progress: Progress | None
) -> list[tuple[float, float]]:
    """Write the answers and return each group's sum of variances and largest variance."""
    errors: list[tuple[float, float]] = []

    def seen(variances: NDArray[np.float64]) -> None:
        errors.append((float(variances.sum()), float(variances.max())))

    schema = columns.schema.with_metadata({b"matrixdp": privacy_mark(release.private)})
    total = release.workload.queries
    done = 0
    with ExitStack() as stack:
        # many small products: several threads would spend their time waiting for one another
        stack.enter_context(one_blas_thread())
        sinks = [stack.enter_context(_parquet(folder / ANSWERS, schema))]
        if csv:
            sinks.append(stack.enter_context(_csv(folder / ANSWERS_CSV, schema)))
        for table in _row_groups(release.batches(release.workload.groups, columns, seen), schema):
            for sink in sinks:
                sink.write(table)
            done += table.num_rows
            if progress is not None:
                progress(done, total)
    return errors


def privacy_mark(private: bool) -> bytes:
    """Return what the file of the answers says of the noise."""
    return b"private" if private else b"NOT PRIVATE: seeded noise"


def _row_groups(batches: Iterator[pa.RecordBatch], schema: pa.Schema) -> Iterator[pa.Table]:
    """Join small batches, so that a file of many small groups has few row groups."""
    pending: list[pa.RecordBatch] = []
    rows = 0
    for batch in batches:
        if pending and rows + batch.num_rows > BATCH_ROWS:
            yield pa.Table.from_batches(pending).cast(schema)
            pending, rows = [], 0
        pending.append(batch)
        rows += batch.num_rows
    if pending:
        yield pa.Table.from_batches(pending).cast(schema)


@final
class _Sink:
    """Write tables to a file in a thread of its own, at most one table behind."""

    def __init__(self, write: Callable[[pa.Table], None], close: Callable[[], None]) -> None:
        self._write, self._close = write, close
        self._pool = ThreadPoolExecutor(1)
        self._pending: Future[None] | None = None

    def write(self, table: pa.Table) -> None:
        if self._pending is not None:
            self._pending.result()
        self._pending = self._pool.submit(self._write, table)

    def __enter__(self) -> _Sink:
        return self

    def __exit__(self, *_: object) -> None:
        try:
            if self._pending is not None:
                self._pending.result()
        finally:
            self._pool.shutdown()
            self._close()


def _parquet(path: Path, schema: pa.Schema) -> _Sink:
    # a dictionary of numbers costs more time than it saves in bytes
    texts = [field.name for field in schema if pa.types.is_dictionary(field.type)]
    writer = pq.ParquetWriter(
        path,
        schema,
        compression="zstd",
        compression_level=_COMPRESSION_LEVEL,
        use_dictionary=texts,
        write_statistics=[_SORTED],
        write_batch_size=_ENCODED_ROWS,
    )
    return _Sink(lambda table: writer.write_table(table, row_group_size=table.num_rows), writer.close)


def _csv(path: Path, schema: pa.Schema) -> _Sink:
    plain = plain_schema(schema)
    writer = pacsv.CSVWriter(path, plain)
    return _Sink(lambda table: writer.write_table(table.cast(plain)), writer.close)
