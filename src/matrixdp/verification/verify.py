"""Whether what a release says of itself is true: recomputed from its measurement."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from fractions import Fraction
from itertools import chain, islice
from pathlib import Path
from typing import Any, Literal, final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
from numpy.typing import NDArray

from matrixdp.answers.inference import statistics_table
from matrixdp.answers.table import (
    FIGURE,
    FIGURES,
    LEVEL,
    MARGINS,
    OF,
    AnswerColumns,
    level_of,
    plain_schema,
    row_groups,
)
from matrixdp.display import counted
from matrixdp.errors import MatrixDPError, StorageError, TooLargeError, UnsupportedQueryError, within
from matrixdp.errors import Path as JsonPath
from matrixdp.exact.linear import Array
from matrixdp.exact.resources import one_blas_thread
from matrixdp.language.periods import workload_through
from matrixdp.ledger import Entry, Ledger, LedgerEntry
from matrixdp.locks import whole_path
from matrixdp.measure.calibration import measured_cost, rounds_cost
from matrixdp.measure.measurement import Authorization, Measurement, Periods, as_authorized
from matrixdp.model import Model
from matrixdp.model.constraints import Constraints
from matrixdp.model.folder import ANSWERS as MODEL_ANSWERS
from matrixdp.model.folder import MODEL_FILES, answers_schema
from matrixdp.model.integers import AreaTable
from matrixdp.model.model import tests_of
from matrixdp.model.tables import IntegerTable
from matrixdp.plans import Rounds
from matrixdp.privacy.budget import OTHER
from matrixdp.queries import Workload
from matrixdp.releases import record as records
from matrixdp.releases.files import answer_columns, expected_in, largest_errors, privacy_mark
from matrixdp.releases.record import read_record
from matrixdp.releases.release import Release
from matrixdp.releases.signatures import PublicKey, check_signature
from matrixdp.releases.transaction import claim_of, refuse_leftover, unfinished
from matrixdp.selection.rounds import SecondRound
from matrixdp.storage.archive import TOLERANCE, arrow_file, differences, entry, plain_content
from matrixdp.storage.formats import load_measurement
from matrixdp.texts import Publication

# What was checked of a release, as data.

_MOST = 10

_ABOVE = "because a check above failed"
Outcome = Literal["ok", "failed", "not checked"]
Progress = Callable[[int, int], None] | None


@final
@dataclass(frozen=True)
class Finding:
    """One fact about a release, and whether it holds.

    Attributes
    ----------
    subject : str
        What it is about: ``files``, ``cost``, ``answers`` and so on; see `verify_release`.
    outcome : {"ok", "failed", "not checked"}
    words : str
        What holds, what does not, or why it was not checked.
    """

    subject: str
    outcome: Outcome
    words: str


@final
@dataclass(frozen=True)
class Verification:
    """All that was checked of a release; it holds if nothing failed.

    Attributes
    ----------
    folder : str
    findings : tuple of Finding

    Examples
    --------
    >>> found = Verification("out", (Finding("files", "ok", "3 files"), Finding("noise", "not checked", "-")))
    >>> found.holds, [finding.subject for finding in found]
    (True, ['files', 'noise'])
    """

    folder: str
    findings: tuple[Finding, ...]

    def __iter__(self) -> Iterator[Finding]:
        return iter(self.findings)

    @property
    def holds(self) -> bool:
        """Whether nothing that was checked is false."""
        return not self.failed

    @property
    def failed(self) -> tuple[Finding, ...]:
        """What is false."""
        return tuple(finding for finding in self.findings if finding.outcome == "failed")

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON has it."""
        return {"folder": self.folder, "holds": self.holds, "findings": [asdict(own) for own in self]}


def settled(subject: str, words: str, problems: Iterable[str]) -> Iterator[Finding]:
    """Yield what failed, the first few of it, or that all holds."""
    found = iter(problems)
    told = list(islice(found, _MOST))
    more = sum(1 for _ in found)
    told += [f"and {more} more"] * bool(more)
    yield from [Finding(subject, "failed", one) for one in told] or [Finding(subject, "ok", words)]


# Whether the answers on disk are those that follow from a measurement.

#: How far an estimate, a standard error or the end of an interval may lie from what is computed again: so
#: many standard errors, and so much of itself, which is what sums of floating-point numbers may differ by.
STANDARD_ERRORS, RELATIVE = 1e-6, 1e-12
_ROWS = 1 << 18
#: The most bytes of a row group in a Parquet file: for its texts, and for each row.
_LARGEST_GROUP, _LARGEST_ROW = 1 << 26, 1 << 10
_DAMAGED = (pa.ArrowException, OSError, ValueError, KeyError)


@final
@dataclass
class AnswerFile:
    """A file of answers, read once from the beginning, and the first thing that is wrong with it.

    Or a folder of those at one level of areas, whose files follow one another by their names.
    """

    name: str
    paths: Sequence[Path]
    schema: pa.Schema
    level: str | None = None
    problems: list[str] = field(default_factory=list)
    _read: int = 0
    _batches: Iterator[pa.RecordBatch] | None = None
    _rest: pa.Table | None = None

    def follow(self, expected: pa.Table) -> None:
        """Compare the next rows with those that follow from the measurement."""
        if self.level is not None:
            if level_of(expected) != self.level:
                return
            expected = expected.drop_columns([LEVEL])
        for start in range(0, expected.num_rows, _ROWS):
            if not self.problems:
                self._compare(expected.slice(start, _ROWS))

    def _compare(self, expected: pa.Table) -> None:
        try:
            found = self._take(expected.num_rows)
        except _DAMAGED:
            self.problems.append(f"{self.name} cannot be read")
            return
        if found.num_rows < expected.num_rows:
            self.problems.append(f"{self.name} ends after row {self._read + found.num_rows}")
            return
        follows = expected.cast(found.schema)
        # null where a model extrapolates
        allowed = STANDARD_ERRORS * np.nan_to_num(_numbers(follows.column("stddev")))
        figures = dict.fromkeys((*FIGURES, *MARGINS, "modelled"), allowed)
        wrong = _mismatches(found, follows, figures, RELATIVE, self._read)
        self.problems += [f"{self.name}, {words}" for words in islice(wrong, 1)]
        self._read += expected.num_rows

    def end(self) -> None:
        """Check that nothing is left."""
        try:
            left = 0 if self.problems else self._take(1).num_rows
        except _DAMAGED:
            left = 1
        if left:
            self.problems.append(f"{self.name} has more than the {self._read} rows that follow")

    def _take(self, rows: int) -> pa.Table:
        """Return the next rows; fewer at the end."""
        if self._batches is None:
            csv = self.name.endswith(".csv")
            each = (_csv_batches(path, self.schema) if csv else _parquet_batches(path) for path in self.paths)
            self._batches = chain.from_iterable(each)
        tables = [] if self._rest is None else [self._rest]
        held = sum(table.num_rows for table in tables)
        while held < rows and (batch := next(self._batches, None)) is not None:
            tables.append(pa.Table.from_batches([batch]).cast(self.schema))
            held += batch.num_rows
        joined = pa.concat_tables(tables) if tables else self.schema.empty_table()
        self._rest = joined.slice(rows)
        taken = joined.slice(0, rows)
        taken.validate(full=True)  # texts may be no UTF-8
        return taken

    def check_schema(self, private: bool) -> None:
        """Compare the columns of Parquet files, and whether they say that the noise was seeded."""
        for path in self.paths:
            try:
                found = _metadata(path).schema.to_arrow_schema()
            except _DAMAGED:
                self.problems.append(f"{self.name} cannot be read")
                return
            self.problems += _schema_problems(self.name, found, self.schema, private)


def _metadata(path: Path) -> pq.FileMetaData:
    """Return what a Parquet file says of itself; reject one that is small and says that it holds much."""
    with arrow_file(path) as file:
        found = pq.read_metadata(file)
    for group in map(found.row_group, range(found.num_row_groups)):
        if group.total_byte_size > _LARGEST_GROUP + _LARGEST_ROW * group.num_rows:
            raise ValueError("too large")
    return found


def _schema_problems(name: str, found: pa.Schema, expected: pa.Schema, private: bool) -> list[str]:
    """Return what is wrong with the columns of a Parquet file, or with what it says of its noise."""
    if not found.equals(expected):
        return [f"{name} has other columns than those that follow"]
    marked = (found.metadata or {}).get(b"matrixdp") == privacy_mark(private)
    return [] if marked else [f"{name} does not say whether the noise was seeded"]


def _parquet_batches(path: Path) -> Iterator[pa.RecordBatch]:
    with arrow_file(path) as file:
        yield from pq.ParquetFile(file, pre_buffer=False).iter_batches(batch_size=_ROWS)


def _csv_batches(path: Path, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a CSV file; an empty cell is null, an empty text is not."""
    types = {field.name: field.type for field in schema}
    convert = pacsv.ConvertOptions(
        column_types=types, strings_can_be_null=True, quoted_strings_can_be_null=False, null_values=[""]
    )
    options = pacsv.ParseOptions(newlines_in_values=True)
    with (
        arrow_file(path) as file,
        pacsv.open_csv(file, parse_options=options, convert_options=convert) as reader,
    ):
        if reader.schema.names != schema.names:
            raise ValueError("columns")
        yield from reader


def _compared(
    tables: Iterator[pa.Table], files: Sequence[AnswerFile], workload: Workload, progress: Progress
) -> list[str]:
    """Return what is wrong with files, against the answers computed again."""
    done = 0
    # as they were made
    with one_blas_thread():
        for table in tables:
            for file in files:
                file.follow(table)
            done += table.num_rows
            if progress is not None:
                progress(done, workload.queries)
    for file in files:
        file.end()
    return [problem for file in files for problem in file.problems]


def _settled_answers(workload: Workload, problems: Iterable[str]) -> Iterator[Finding]:
    words = f"{workload.queries:,} answers follow, to {STANDARD_ERRORS:g} of their standard errors"
    return settled("answers", words, problems)


def _mismatches(
    found: pa.Table, expected: pa.Table, allowed: Mapping[str, Array], relative: float, start: int = 0
) -> Iterator[str]:
    """Yield the first row of each column that differs, by more than is allowed where it has figures."""
    for name in expected.column_names:
        one, other = found.column(name), expected.column(name)
        if one.equals(other):
            continue
        if name in allowed:
            wrong = _far(_numbers(one), _numbers(other), allowed[name], relative)
        elif pa.types.is_dictionary(one.type) and (wrong := _lengths(one) != _lengths(other)).any():
            pass  # written out, one long text of a dictionary may need more memory than there is
        # equal texts may have other dictionaries
        elif one.cast(pa.utf8()).equals(other.cast(pa.utf8())):
            continue
        else:
            pairs = zip(one.to_pylist(), other.to_pylist(), strict=True)
            wrong = np.array([says != follows for says, follows in pairs], dtype=bool)
        if wrong.any():
            row = int(wrong.argmax())
            yield f"row {start + row}: {name} says {one[row]!s:.80}; {other[row]!s:.80} follows"


def _lengths(texts: Any) -> NDArray[np.int64]:
    """Return the length of each text in bytes; 0 of what is null."""
    sizes = [pc.binary_length(own.dictionary).take(own.indices).fill_null(0) for own in texts.chunks]
    return np.asarray(pa.chunked_array(sizes, pa.int32()))


def _numbers(column: Any) -> Array:
    return np.asarray(column.to_numpy(zero_copy_only=False), dtype=float)


def _far(found: Array, expected: Array, allowed: Array, relative: float) -> NDArray[np.bool_]:
    """Return where figures are further apart than allowed; what is no number is, except in both."""
    with np.errstate(invalid="ignore"):
        near = np.abs(found - expected) <= allowed + relative * np.abs(expected)
    return np.asarray(~(near | (found == expected) | (np.isnan(found) & np.isnan(expected))))


# Whether the statistics on disk are those that follow from a measurement.

#: What figures may differ by that are computed again: so much of their interval, and so much of themselves.
_OF_INTERVAL, _OF_ITSELF = STANDARD_ERRORS, 1e-9


def check_statistics(folder: Path, release: Release, there: bool) -> Iterator[Finding]:
    """Yield whether the file of statistics holds those that follow, if the workload asks for any."""
    name, count = records.STATISTICS, sum(one.table is not None for one in release.asked)
    if bool(count) != there:
        wrong = f"{name} is {'missing' if count else 'there, and nothing is asked that it could hold'}"
        yield Finding("statistics", "failed", wrong)
    elif count:
        words = f"{count} table{'s follow' if count != 1 else ' follows'} from the measurement"
        yield from settled("statistics", words, _statistic_differences(folder / name, release))


def _statistic_differences(path: Path, release: Release) -> list[str]:
    expected = statistics_table(release.asked)
    try:
        rows = _metadata(path).num_rows
        if rows != expected.num_rows:  # before they are in memory
            return [f"{path.name} has {rows} rows; {expected.num_rows} follow"]
        with arrow_file(path) as file:
            found = pq.read_table(file)
        found.validate(full=True)
    except _DAMAGED:
        return [f"{path.name} cannot be read"]
    if problems := _schema_problems(path.name, found.schema, expected.schema, release.private):
        return problems
    figures = {
        own.name: _OF_INTERVAL * _widths(expected, own)
        for own in expected.schema
        if pa.types.is_floating(own.type)
    }
    wrong = _mismatches(found, expected, figures, _OF_ITSELF)
    return [f"{path.name}, {words}" for words in wrong]


def _widths(expected: pa.Table, column: pa.Field) -> Array:
    """Return the lengths of the intervals that a column belongs to; 0 where they have no end."""
    of = (column.metadata or {}).get(OF)
    ends = {
        field.metadata[FIGURE]: _numbers(expected.column(field.name))
        for field in expected.schema
        if of is not None and (field.metadata or {}).get(OF) == of and pa.types.is_floating(field.type)
    }
    if not {b"lower", b"upper"} <= ends.keys():
        return np.zeros(expected.num_rows)
    with np.errstate(invalid="ignore"):
        widths = ends[b"upper"] - ends[b"lower"]
    return np.where(np.isfinite(widths), widths, 0.0)


# Whether what the folder of a model says is true: recomputed from the measurement and the model's arrays.

#: Losses are sums in single precision, in an order that may differ, of differences of large numbers.
_LOSS = 1e-2
#: How far integers may be off on average: rounding errors may have decided ties otherwise.
_TIED = 1e-3
_FIT = Finding(
    "fit",
    "not checked",
    "how the model was fitted, and whether its measurement is valid: run `matrixdp verify` on the release "
    "with the same measurement digest",
)


def verify_model(
    folder: str | os.PathLike[str], *, progress: Callable[[int, int], None] | None = None
) -> Verification:
    """Check all that can be checked of the folder of a model, without the data.

    Parameters
    ----------
    folder : str or path
        The folder.
    progress : callable, optional
        Is called with the number of answers computed again and of all.

    Returns
    -------
    Verification
        A finding for each subject. ``model``: its files have the digests that are listed, the measurement is
        whole and costs what it says, the arrays are shares or tables that agree, the record says what
        follows, and what it says is publicly known is kept; the tests of its fit have the outcome that is
        said, or its integers follow from the measurement. ``answers``: both the unbiased and the modelled
        ones are those that follow, to a millionth of the unbiased standard errors. ``fit`` is not checked:
        that the model was made as it says.

    Raises
    ------
    StorageError
        If there is no such folder.
    """
    path = _folder(folder, "a model")
    try:
        model = Model.load(path)
    except MatrixDPError as error:
        failed = Finding("model", "failed", str(error)), Finding("answers", "not checked", _ABOVE)
        return Verification(str(path), (*failed, _FIT))
    of = f"a model by method {model.method} of the measurement {model.measurement_digest[:16]}"
    found = [Finding("model", "ok", f"whole, {of}; {', '.join(MODEL_FILES)}: as listed")]
    if not model.accepted:
        found.append(Finding("model", "ok", "it says that its own tests reject it"))
    found += _known(model)
    found += _integers(model, model.tables) if isinstance(model.tables, IntegerTable) else _tested(model)
    schema = answers_schema(model)
    answers = AnswerFile(MODEL_ANSWERS, [path / MODEL_ANSWERS], schema)
    answers.check_schema(model.private)
    tables = row_groups(model.batches(model.workload.groups), schema)
    problems = _compared(tables, [answers], model.workload, progress)
    return Verification(str(path), (*found, *_settled_answers(model.workload, problems), _FIT))


def _folder(path: str | os.PathLike[str], kind: str) -> Path:
    if not os.path.isdir(path):  # noqa: PTH112 - no error where the path is none
        raise StorageError(f"{path}: no such folder; expected that of {kind}")
    return Path(path)


def _known(model: Model) -> Iterable[Finding]:
    """Return whether a model keeps what its record says is publicly known."""
    told = model.made.get("invariants"), model.made.get("structural_zeros")
    if told == (None, None):
        return []
    try:
        known = Constraints.of(model.domain, *told)
        problems = list(known.broken(model.tables.marginal, model.total))
    except (TooLargeError, UnsupportedQueryError) as error:
        return [Finding("model", "not checked", f"what is publicly known: {error}")]
    except MatrixDPError as error:
        problems = [str(error)]
    words = "it keeps the published counts and impossible combinations of its record"
    return settled("model", words, problems)


def _integers(model: Model, table: IntegerTable) -> Iterable[Finding]:
    """Return whether integers, and their drift, are those that follow from the measurement."""
    try:
        areas = AreaTable.of(model.measurement, model.workload)
        follows = areas.integers()
    except (TooLargeError, UnsupportedQueryError) as error:
        return [Finding("model", "failed", f"its integers: {error}")]
    if table.attributes != follows.attributes:
        problems = [f"its table is of {', '.join(table.attributes)}"]
    elif (off := abs(table.counts - follows.counts)).mean() > _TIED:
        problems = [f"{int((off > 0).sum()):,} of its integers do not follow"]
    else:
        problems = list(differences(model.made.get("levels"), areas.drift(table), ("made", "levels")))
    return settled("model", "its integers and their drift follow from the measurement", problems)


def _tested(model: Model) -> Iterable[Finding]:
    """Return whether the tests of a model's fit say what its record has of them."""
    try:
        tests = tests_of(model)
    except (TooLargeError, UnsupportedQueryError) as error:
        return [Finding("model", "not checked", f"the tests of its fit: {error}")]
    except MatrixDPError as error:
        return [Finding("model", "failed", f"the tests of its fit: {error}")]
    says, loss = model.accepted, model.tests.get("loss", tests.loss)
    problems = []
    if says != tests.accepted:
        words = ("reject", "accept")
        problems = [f"its record says that its tests {words[says]} it; they {words[tests.accepted]} it"]
    elif (degrees := model.tests.get("degrees", tests.degrees)) != tests.degrees:
        problems = [f"its record says {degrees!r:.20} degrees of freedom; {tests.degrees} follow"]
    elif not isinstance(loss, float) or not math.isclose(loss, tests.loss, rel_tol=_LOSS, abs_tol=_LOSS):
        problems = [f"its record says a loss of {loss}; {tests.loss} follows"]
    return settled("model", f"its tests are as it says, with a loss of {tests.loss:,.4g}", problems)


# Whether a ledger holds the debit of a release.

_DURABLE = ("measured", "released")


def check_ledger(
    authorization: Authorization, sha256: object, path: str | os.PathLike[str] | None, folder: Path
) -> Iterable[Finding]:
    """Check that a ledger holds the debit of a measurement, given by the digest of its file in a folder."""
    named: LedgerEntry | None = authorization.ledger
    if path is None:
        words = "no ledger was used, so other releases about the same people add to the cost"
        if named is not None:
            words = f"debited to that of {named.dataset}, entry {named.entry}, which was not given (--ledger)"
        return [Finding("ledger", "not checked", words)]
    if named is None:
        return [Finding("ledger", "failed", "the release says that it was debited to none")]
    try:
        ledger = Ledger.open(path)
        entries = {entry.id: entry for entry in ledger.entries}
    except MatrixDPError as error:
        return [Finding("ledger", "failed", str(error))]
    entry = entries.get(named.entry)
    if entry is None:
        return [Finding("ledger", "failed", f"it has no entry {named.entry}")]
    words = f"{ledger.dataset} holds the debit, entry {entry.number} of {len(entries)}: {entry.state}"
    claimed = entry.measurement, sha256
    if entry.measurement != sha256:
        with suppress(OSError):  # the folder around it may not be listed
            if claimed in [*map(claim_of, unfinished(whole_path(folder)))]:
                entry = replace(entry, measurement=str(sha256))
                words += "; another publication goes on, or was stopped: publish again"
    return settled("ledger", words, _differences(ledger, entry, named, authorization, sha256))


def _differences(
    ledger: Ledger, entry: Entry, named: LedgerEntry, authorization: Authorization, sha256: object
) -> Iterator[str]:
    pairs = (
        ("dataset", named.dataset, ledger.dataset),
        ("total", named.total, ledger.total),
        ("digest of the entry", named.digest, entry.digest),
        ("cost", authorization.cost, entry.cost),
        ("budget", authorization.budget, entry.budget),
        ("measurement", sha256, entry.measurement),
    )
    for name, said, held in pairs:
        if said != held:
            yield f"the {name} is another than that of the release"
    if entry.state not in _DURABLE:
        yield f"its entry is {entry.state}; expected {' or '.join(_DURABLE)}"


# Whether a release is signed with a key.


def signature_finding(folder: Path, key: PublicKey | None) -> Finding:
    """Return whether the holder of a key signed a release as it stands."""
    if key is None:
        signed = os.path.lexists(folder / records.SIGNATURE)
        words = "there is one, and the public key was not given (--key)" if signed else "there is none"
        return Finding("signature", "not checked", words)
    try:
        check_signature(folder, key)
    except MatrixDPError as error:
        return Finding("signature", "failed", str(error))
    return Finding("signature", "ok", f"record and files are those that the key {key.fingerprint} signed")


#: What of the record does not follow from the measurement: how the strategy was chosen, and with what.
ORIGIN = {("strategy", name) for name in ("mechanism", "reason", "objective", "certificate")}
UNFOUNDED = frozenset(ORIGIN | {("versions",), ("privacy", "versions"), ("files",)})
#: What is compared to the last digit: it is computed exactly, or rounded to a stated side.
EXACT = ("privacy", "authorization")
#: Sentences: another version may word them otherwise. What they say stands beside them, as data.
_SENTENCES = {
    ("privacy", "text"),
    *(("privacy", name, 0, "text") for name in ("covered", "assumed", "not_covered")),
    ("privacy", "mechanism", "rounding"),
    ("authorization", "note"),
    ("intervals",),
    ("answers", "note"),
    ("answers", "totals"),
    ("size", "warnings", 0),
    ("statistics", 0, "intervals"),
    ("warning",),
}
#: In standard errors, how far the total that is computed again may lie from what is written.
_NEAR = 1e-10
#: By which share of its half of the budget a round may cost more or less.
_SPLIT = Fraction(1, 10**6)
#: How far, relative to it, the noise of the other round may lie from what is computed again.
_ROUNDS = 1e-6
_SUBJECTS = ("files", "measurement", "cost", "private", "statement", "answers", "record", "ledger")
#: What the files cannot show.
_BEYOND = (
    Finding(
        "noise",
        "not checked",
        "whether the noise was random and drawn only once: only the publisher can vouch for this, by signing "
        "the release",
    ),
    Finding(
        "origin",
        "not checked",
        "stated and not provable: how the strategy was chosen (mechanism, reason, certificate), software "
        "versions, date, kind of table (assumptions, bounds on the records of a person), the publisher's "
        "texts and display rules, and whether domain, workload and budget were chosen without the data",
    ),
)


def verify_release(
    out: str | os.PathLike[str],
    *,
    ledger: Ledger | str | os.PathLike[str] | None = None,
    key: PublicKey | str | os.PathLike[str] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Verification:
    """Check all that can be checked of the folder of a release, without the data.

    Parameters
    ----------
    out : str or path
        The folder.
    ledger : Ledger or path, optional
        The ledger that the release was debited to, by what it says.
    key : PublicKey or path, optional
        The public key that the release must be signed with, from a place that you trust.
    progress : callable, optional
        Is called with the number of answers computed again and of all.

    Returns
    -------
    Verification
        A finding for each subject. ``record``: release.json is JSON that all read alike, and its figures
        follow from the measurement. ``files``: they have the digests that are listed. ``measurement``: it is
        whole. ``cost``: recomputed exactly from its matrices and noise scales, it is what is said, and within
        the budget. ``private``: whether the noise was seeded is said alike everywhere. ``statement``: every
        clause, parameter and figure of it follows; sentences are not compared, as versions may word them
        otherwise. ``answers``: they are those that follow, to a millionth of their standard errors.
        ``statistics``: so are those that the workload asks for. ``ledger``: it holds the debit.
        ``signature``: the holder of the key signed the record and, by their digests, all files. What nothing
        can show is ``not checked``.

    Raises
    ------
    StorageError
        If there is no such folder or ledger, or the folder is that of a release that was never finished.
    SignatureError
        If the file of the key holds no such key.

    Examples
    --------
    >>> import tempfile
    >>> import matrixdp as mdp
    >>> workload = mdp.Workload(mdp.Domain({"sex": ["female", "male"]}), mdp.marginals(1))
    >>> release = mdp.select(workload).measure({"sex": ["male"]}, mdp.Budget(rho=0.5)).reconstruct()
    >>> with tempfile.TemporaryDirectory() as parent:
    ...     folder = mdp.save_release(release, f"{parent}/out")
    ...     found = verify_release(folder)
    ...     altered = (folder / "release.json").read_text().replace('"queries": 2', '"queries": 3')
    ...     written = (folder / "release.json").write_text(altered)
    ...     forged = verify_release(folder)
    >>> found.holds, forged.holds, forged.failed[0].words
    (True, False, 'queries says 3; 2 follows')
    """
    folder = _folder(out, "a release")
    refuse_leftover(folder)
    if not any((folder / name).exists() for name in records.RELEASE_FILES):
        told = f"{folder}: found no {records.RECORD}; expected the folder of a release"
        raise StorageError(told, "file-missing")
    ledger = ledger.path if isinstance(ledger, Ledger) else ledger
    if ledger is not None and not os.path.isfile(ledger):  # noqa: PTH113 - no error where the path is none
        raise StorageError(f"{ledger}: no such file; expected the ledger that the release was debited to")
    public = key if key is None or isinstance(key, PublicKey) else PublicKey.load(key)
    found = signature_finding(folder, public), *_findings(folder, ledger, progress), *_BEYOND
    return Verification(str(folder), found)


def _findings(folder: Path, ledger: str | os.PathLike[str] | None, progress: Progress) -> Iterator[Finding]:
    """Check one subject after the other; each needs those before it."""
    try:
        record = read_record(plain_content(folder / records.RECORD), Path(records.RECORD))
    except StorageError as error:
        yield Finding("record", "failed", str(error))
        yield from _ended("record")
        return
    actual = _digests(folder, record.get("files"))
    listed = f"{', '.join(actual)}: as listed"
    yield from settled("files", listed, _wrong_files(record.get("files"), actual))
    others = sorted({path.name for path in folder.iterdir()} - set(records.RELEASE_FILES))
    if others:
        yield Finding("files", "not checked", f"no part of the release: {', '.join(others)}")
    try:
        measurement, workload = load_measurement(folder / records.MEASUREMENT)
    except MatrixDPError as error:
        yield Finding("measurement", "failed", str(error))
        yield from _ended("files", "measurement")
        return
    answers = counted(sum(v.size for v in measurement.values), "noisy answer")
    rows = f"{counted(len(measurement.plan.parts), 'part')}, {answers}"
    yield Finding("measurement", "ok", f"whole: {rows}")
    yield from _cost(measurement)
    if measurement.periods is not None:
        yield from _series(folder, measurement, workload)
    if isinstance(measurement.plan, Rounds):
        yield from _rounds(measurement, workload)
    private = measurement.private
    words = "said everywhere to be private" if private else "SEEDED, NOT PRIVATE, and said so everywhere"
    yield from settled("private", words, _flags(record, private))
    yield from _what_follows(folder, record, measurement, workload, actual, progress)
    yield from check_ledger(measurement.authorization, actual[records.MEASUREMENT]["sha256"], ledger, folder)


def _ended(*known: str) -> Iterator[Finding]:
    """Yield what could not be checked, as something failed that all else needs."""
    for name in _SUBJECTS:
        if name not in known:
            yield Finding(name, "not checked", _ABOVE)


def _what_follows(
    folder: Path,
    record: dict[str, Any],
    measurement: Measurement,
    workload: Workload,
    actual: dict[str, Any],
    progress: Progress,
) -> Iterator[Finding]:
    """Compare answers, statement and record with those that follow from the measurement."""
    try:
        with within("publication"):
            told = Publication.read(record.get("publication", {}))
        stated, expect = record["confidence"], expected_in(record)
        release = Release(measurement, workload, stated, expect=expect, publication=told)
        listed = {name: own for name, own in actual.items() if name != records.RECORD}
        columns, problems, errors = _answers(folder, release, actual, progress)
        document = records.document(release, errors, listed, columns, _limit(record, workload))
        follows = json.loads(json.dumps(document))
    except (MatrixDPError, KeyError, TypeError, AttributeError) as error:
        yield Finding("answers", "failed", f"none follow from the measurement ({error})")
        return
    leave = {*UNFOUNDED, *_sentences(record, follows)}
    exact = [
        problem
        for name in EXACT
        for problem in differences(record.get(name), follows.get(name), (name,), exact=True, leave=leave)
    ]
    words = "every clause, parameter and figure follows from the measurement; how they are worded is free"
    yield from settled("statement", words, exact)
    if columns is None:
        yield Finding("answers", "not checked", "none were written; the measurement serves them")
    else:
        yield from _settled_answers(workload, problems)
    yield from check_statistics(folder, release, records.STATISTICS in actual)
    _near(record.get("size"), follows["size"])
    rest = differences(record, follows, leave=leave | {(name,) for name in EXACT})
    yield from settled("record", f"its other figures follow, to a relative {TOLERANCE:g}", rest)


def _answers(
    folder: Path, release: Release, actual: Mapping[str, object], progress: Progress
) -> tuple[AnswerColumns | None, list[str], list[tuple[float, float]]]:
    """Return columns, what is wrong with the answers, and each group's sum and largest of the variances."""
    workload = release.workload
    parts = [name for name in actual if records.ANSWERS_PART.fullmatch(name)]
    if not parts and records.ANSWERS not in actual and records.ANSWERS_CSV not in actual:
        totals = [release.analysis.group(group) for group in workload]
        return None, [], [(error.total, error.largest) for error in totals]
    columns = answer_columns(release, parted=bool(parts))
    files: list[AnswerFile] = []
    if columns.at is not None:
        schema = columns.schema.remove(columns.schema.get_field_index(LEVEL))
        for level in dict.fromkeys(columns.at[1]):
            name = records.level_folder(level)
            paths = [folder / part for part in parts if Path(part).parent.as_posix() == name]
            files.append(AnswerFile(name, paths, schema, level))
    if records.ANSWERS in actual:
        files.append(AnswerFile(records.ANSWERS, [folder / records.ANSWERS], columns.schema))
    for file in files:
        file.check_schema(release.private)
    if records.ANSWERS_CSV in actual:
        paths = [folder / records.ANSWERS_CSV]
        files.append(AnswerFile(records.ANSWERS_CSV, paths, plain_schema(columns.schema)))
    errors, seen = largest_errors(workload)
    tables = row_groups(release.batches(workload.groups, columns, seen), columns.schema)
    return columns, _compared(tables, files, workload, progress), errors


def _sentences(said: Any, follows: Any, path: JsonPath = ()) -> Iterator[JsonPath]:
    """Yield the places of the sentences of a record, where another version may have worded them otherwise."""
    if isinstance(said, dict) and isinstance(follows, dict):
        # a clause without an identifier of its own is known by its sentence
        for key in said.keys() & follows.keys() - ({"text"} if follows.get("id") == OTHER else set()):
            yield from _sentences(said[key], follows[key], (*path, key))
    elif isinstance(said, list) and isinstance(follows, list):
        for place, (one, other) in enumerate(zip(said, follows, strict=False)):
            yield from _sentences(one, other, (*path, place))
    elif isinstance(said, str) and tuple(0 if isinstance(step, int) else step for step in path) in _SENTENCES:
        yield path


def _near(said: object, follows: dict[str, Any]) -> None:
    """Let the total that follows be the one that is said, where arithmetic alone tells them apart."""
    total, other = follows["total"], said.get("total") if isinstance(said, dict) else None
    if total is None or not isinstance(other, dict):
        return
    for name in ("estimate", "lower", "upper"):
        one = other.get(name)
        if isinstance(one, float) and abs(one - total[name]) <= _NEAR * total["stddev"]:
            total[name] = one


def _limit(record: Mapping[str, Any], workload: Workload) -> int | None:
    """Return the limit of answers that is stated, if there are more."""
    limit = record["answers"].get("limit")
    return limit if isinstance(limit, int) and limit < workload.queries else None


def _digests(folder: Path, listed: object) -> dict[str, dict[str, object]]:
    """Return the size and digest of every file that a record lists, or that ought not to be there."""
    names = sorted((*records.LISTED, *records.MARKS, *records.parts_in(folder)))
    like = listed if isinstance(listed, dict) else {}
    return {name: entry(folder / name, like=like.get(name)) for name in names if (folder / name).is_file()}


def _wrong_files(listed: object, actual: Mapping[str, object]) -> Iterator[str]:
    if not isinstance(listed, dict):
        yield f"{records.RECORD} lists no files"
        return
    for name in sorted({*listed, *actual}):
        if name not in actual:
            yield f"{name} is listed and not there"
        elif name not in listed:
            yield f"{name} is there and not listed"
        elif listed[name] != actual[name]:
            yield f"{name} has another digest or size than is listed"


def _cost(measurement: Measurement) -> Iterator[Finding]:
    """Recompute the cost: exact sensitivities over exact scales, summed as fractions."""
    authorization = measurement.authorization
    measured = measurement.plan, measurement.scales, measurement.out_of_domain_counts
    cost = measured_cost(*measured, authorization.budget.neighbours)
    allowed = cost.noise.cost(authorization.budget)
    problems = []
    if not as_authorized(authorization, *measured):
        problems.append(f"recomputed it is {cost.value}; {authorization.cost.value} was authorized")
    if not cost <= allowed:
        problems.append(f"it is above {allowed.value}, which is what {authorization.budget.words} allows")
    share = float(cost.value / allowed.value)
    as_said = "within what was authorized" if isinstance(measurement.plan, Rounds) else "as authorized"
    words = (
        f"recomputed exactly from the matrices and scales: about {float(cost.value):.6g}, {as_said}, and "
        f"{100 * share:g}% of what {authorization.budget.words} allows"
    )
    yield from settled("cost", words, problems)


def _series(folder: Path, measurement: Measurement, workload: Workload) -> Iterator[Finding]:
    """Compare a publication with the series as it began: what was authorized, and what is asked."""
    try:
        begun, asked = load_measurement(folder / records.SERIES)
    except MatrixDPError as error:
        yield Finding("series", "failed", str(error))
        return
    problems = []
    periods = measurement.periods
    assert periods is not None
    if begun.periods != Periods(periods.attribute) or not measurement.continues(begun):
        problems.append(f"{records.SERIES} began with another strategy, noise or authorization")
    elif [one.to_spec() for one in workload_through(asked, periods.attribute, periods.through).entries] != [
        one.to_spec() for one in workload.entries
    ]:
        problems.append(f"{records.SERIES} asks other queries")
    made = counted(len(periods.published), "publication")
    words = f"{made} of what {records.SERIES} authorized; no row beyond them"
    yield from settled("series", words, problems)


def _rounds(measurement: Measurement, workload: Workload) -> Iterator[Finding]:
    """Plan the second round again from the noisy answers of the first, and compare its noise."""
    plan = measurement.plan
    assert isinstance(plan, Rounds)
    begun = len(plan.begun)
    noise = [scale.variance for scale in measurement.scales]
    try:
        estimates = plan.first.analysed(noise[:begun]).estimates(measurement.values[:begun])
        again = SecondRound.of(plan.first, workload)(noise[:begun], estimates)
    except MatrixDPError as error:
        yield Finding("rounds", "failed", f"no second round follows from the first ({error})")
        return
    follows = {part.attributes: part.variance for part in again.parts}
    said = dict(zip((part.attributes for part in plan.again), noise[begun:], strict=True))
    ratios = [said[names] / follows[names] for names in said.keys() & follows]
    problems = []
    if said.keys() != follows.keys() or max(ratios) > min(ratios) * (1.0 + _ROUNDS):
        problems.append("the second round has other noise than follows from the answers to the first")
    outside = measurement.out_of_domain_counts
    costs = rounds_cost(plan, measurement.scales, outside, measurement.authorization.budget.neighbours)
    half = measurement.authorization.cost.value / 2
    if not all((1 - _SPLIT) * half <= own.value <= half * (1 + _SPLIT) for own in costs):
        problems.append("each round should cost half of what was authorized")
    words = (
        f"each costs half; {len(said)} of {begun} parts are measured again, with the noise that follows from "
        "the answers to the first"
    )
    yield from settled("rounds", words, problems)


def _flags(record: Mapping[str, Any], private: bool) -> Iterator[str]:
    said = record.get("privacy")
    for name, holder in (("private", record), ("privacy.private", said if isinstance(said, dict) else {})):
        if holder.get("private") is not private:
            yield f"{name} is not {str(private).lower()}, which the measurement says"
    if ("warning" in record) is private:
        yield f"the warning of seeded noise is {'there' if private else 'missing'}"
