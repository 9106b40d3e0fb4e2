"""A release: everything that follows from one measurement, free of further budget."""

from __future__ import annotations

import math
import os
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Self, cast, final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from matrixdp.answers.intervals import Intervals
from matrixdp.answers.questions import Question, advised, covariance, question, spread
from matrixdp.answers.table import FIGURES, AnswerColumns, Estimated, Tabulated
from matrixdp.answers.titles import title
from matrixdp.display import MAX_ROWS, Displayed, Preview, counted
from matrixdp.domain import Domain
from matrixdp.errors import (
    MatrixDPError,
    SignatureError,
    SpecificationError,
    StorageError,
    TooLargeError,
    WorkloadError,
)
from matrixdp.exact.resources import one_blas_thread
from matrixdp.forms import describe_value
from matrixdp.language import StatisticEntry
from matrixdp.measure.measurement import DEFAULT_MAX_RECORDS, Measurement
from matrixdp.measure.statement import PrivacyStatement
from matrixdp.model.bridge import ToMbi
from matrixdp.model.making import Modelled
from matrixdp.pictures.plotted import Plotted
from matrixdp.plan import Analysis
from matrixdp.privacy import delta_warnings
from matrixdp.privacy.budget import MOST_RECORDS
from matrixdp.queries import Group, Workload
from matrixdp.releases.files import (
    MAX_ANSWERS,
    Progress,
    check_record,
    expected_in,
    read_folder,
    write_tables,
)
from matrixdp.releases.record import RECORD, SIGNATURE, SizeCheck, check_size, checked_origin
from matrixdp.releases.signatures import SigningKey, check_files, write_signature
from matrixdp.releases.transaction import refuse_leftover, save_release
from matrixdp.statements import SqlQuery, read
from matrixdp.statements.query import Places
from matrixdp.statistics import AskedStatistics, Inference, check_confidence
from matrixdp.storage.archive import plain_content

# A release at a glance: two lines, and a few of its answers.

NOT_PRIVATE = "NOT PRIVATE: the noise was seeded"
#: Answers to larger groups are not computed for a glance.
_MOST_QUERIES = 100_000


class Glance(Displayed):
    """What a release shows of itself."""

    measurement: Measurement
    workload: Workload
    confidence: float

    @abstractmethod
    def _table(self, groups: Sequence[Group]) -> pa.Table:
        """Return the answers to some groups."""

    def _lines(self) -> tuple[str, str]:
        noise, workload = self.measurement.plan.noise, self.workload
        answers, groups = counted(workload.queries, "answer"), counted(len(workload), "group")
        budget = self.measurement.authorization.budget
        second = f"within {budget!r}" if self.measurement.private else NOT_PRIVATE
        return f"Release of {answers} in {groups}, {noise} noise", second

    def _preview(self) -> Preview:
        groups = self.workload.groups[:MAX_ROWS]
        each = max(1, MAX_ROWS // len(groups))
        rows = [row for group in groups for row in self._first(group, each)]
        ends = f"{100 * self.confidence:g} % interval"
        columns = ("group", "records with", "estimate", "stddev", ends)
        return Preview(columns, rows, self.workload.queries, frozenset((2, 3, 4)))

    def _first(self, group: Group, number: int) -> Iterator[tuple[str, ...]]:
        """Yield the first answers to a group, or its name where they would take long or do not exist."""
        name, table = title(group), None
        if group.queries <= _MOST_QUERIES:
            try:
                table = self._table((group,)).slice(0, number)
            except MatrixDPError:
                table = None  # `answers` says why
        if table is None:
            yield name, counted(group.queries, "query", "queries"), "-", "-", "-"
            return
        columns = AnswerColumns(self.workload.domain, (group,), levels=True).columns
        for row in table.to_pylist():
            asked = [f"{a} {row[column]}" for a, column in columns.items() if row[column] is not None]
            asked += [row["query"]] if row.get("query") else []
            estimate, low, high = (f"{row[figure]:,.1f}" for figure in ("estimate", "lower", "upper"))
            yield name, ", ".join(asked) or "(all)", estimate, f"{row['stddev']:,.4g}", f"{low} to {high}"


# What a release does with folders, and with another workload.


class Kept:
    """What a release does with folders, and with another workload."""

    measurement: Measurement
    workload: Workload
    confidence: float
    origin: Mapping[str, object]
    expect: int | None

    def save(
        self,
        out: str | os.PathLike[str],
        *,
        csv: bool = False,
        max_answers: int = MAX_ANSWERS,
        force: bool = False,
        key: SigningKey | None = None,
        progress: Progress | None = None,
    ) -> Path:
        """Write the release as a folder that appears whole or not at all, and return it.

        Parameters and errors are those of `matrixdp.save_release`. The budget was spent before this: a
        program that stops between `Strategy.measure` and this loses the measurement, and a second run is not
        stopped from spending again. `matrixdp.release` protects against both.

        Examples
        --------
        >>> import tempfile
        >>> import matrixdp as mdp
        >>> workload = mdp.Workload(mdp.Domain({"sex": ["female", "male"]}), mdp.marginals([0, 1]))
        >>> release = mdp.select(workload).measure({"sex": ["male"]}, mdp.Budget(rho=0.5)).reconstruct()
        >>> with tempfile.TemporaryDirectory() as parent:
        ...     again = mdp.Release.load(release.save(f"{parent}/out"))
        >>> again.answers.equals(release.answers)
        True
        """
        return save_release(
            cast("Release", self),
            out,
            csv=csv,
            max_answers=max_answers,
            force=force,
            key=key,
            progress=progress,
        )

    def save_tables(
        self,
        out: str | os.PathLike[str],
        *,
        format: str = "csv",  # noqa: A002
        pivot: str | None = None,
    ) -> Path:
        """Write one clean table for each group, and descriptions of them for machines, into a new folder.

        Figures in CSV have the digits that the least standard error of the table justifies; ends of intervals
        are rounded outward. ``datapackage.json`` (Frictionless Data Package 2) and ``croissant.json``
        (Croissant 1.0) list the tables with their columns and digests, and have the privacy statement.

        Parameters
        ----------
        out : str or path
            The folder; it must not be there, or be empty. It is no part of the folder of a release.
        format : {'csv', 'parquet'}
            Parquet has every digit, ordered categories, and descriptions in its metadata.
        pivot : str, optional
            An attribute whose values become columns, in the tables that ask about it beside others.

        Returns
        -------
        Path
            The folder.

        Raises
        ------
        StorageError
            If `out` holds something, or cannot be written.
        SpecificationError
            If there is no such format, or no table that asks about the attribute beside others.
        TooLargeError
            If there are more than 10,000 groups, or too many columns.

        Examples
        --------
        >>> import tempfile
        >>> import matrixdp as mdp
        >>> workload = mdp.Workload(mdp.Domain({"sex": ["female", "male"]}), mdp.marginals([0, 1]))
        >>> release = mdp.select(workload).measure({"sex": ["male"]}, mdp.Budget(rho=0.5)).reconstruct()
        >>> with tempfile.TemporaryDirectory() as parent:
        ...     sorted(path.name for path in release.save_tables(f"{parent}/tables").iterdir())
        ['croissant.json', 'datapackage.json', 'sex.csv', 'total.csv']
        """
        return write_tables(cast("Release", self), out, format, pivot)

    @staticmethod
    def load(out: str | os.PathLike[str], *, confidence: float | None = None) -> Release:
        """Return the release that a folder holds; see `matrixdp.load_release`."""
        return load_release(out, confidence=confidence)

    def reconstruct(
        self,
        workload: Workload | None = None,
        confidence: float | None = None,
        expect: int | None = None,
    ) -> Self:
        """Return the answers to another workload from the same measurement, free of further budget.

        Parameters
        ----------
        workload : Workload, optional
            What to answer; that of the release where it is left out.
        confidence : float, optional
            Of the intervals; that of the release where it is left out.
        expect : int, optional
            How many records should be in the domain, a public figure; that of the release where it is left
            out.

        Raises
        ------
        WorkloadError
            If the workload is over another domain.
        SpecificationError
            If the confidence or what is expected is none.

        Examples
        --------
        >>> import matrixdp as mdp
        >>> domain = mdp.Domain({"age": range(4)})
        >>> release = mdp.select(mdp.Workload(domain, mdp.marginals(1))).measure(
        ...     {"age": [0, 3]}, mdp.Budget(mu=1)
        ... ).reconstruct()
        >>> release.reconstruct(mdp.Workload(domain, mdp.product(age="prefix"))).answers.num_rows
        4
        """
        make: Callable[..., Self] = type(self)
        return make(
            self.measurement,
            self.workload if workload is None else workload,
            self.confidence if confidence is None else confidence,
            self.origin,
            self.expect if expect is None else expect,
        )


# Answers in the shape of a statement's result: a row for each of its rows, its columns under their names.

Array = NDArray[np.float64]

FIGURE = b"figure"
"""The key of a field's metadata that says which figure of a count its column holds."""


@final
@dataclass(frozen=True)
class Figures:
    """What is known of a group's queries: estimates, standard errors, and half the lengths of intervals."""

    estimates: Array
    deviations: Array
    widths: Array


def result(query: SqlQuery, figures_of: Callable[[Group], Figures]) -> pa.Table:
    """Return the answers to a statement as its result would be.

    Parameters
    ----------
    query : SqlQuery
        What the statement asks.
    figures_of : callable
        Returns the figures of a query group.

    Returns
    -------
    pyarrow.Table
        The columns of SELECT in their order. Beside every count, under its name with an ending, its standard
        error ``_stddev`` and the ends of its interval, ``_lower`` and ``_upper``. What is 0 whatever the
        data has no error. Where a name stands twice, the later one gets a number.

    Examples
    --------
    >>> from matrixdp.domain import Domain
    >>> from matrixdp.statements import read
    >>> domain = Domain({"sex": ["female", "male"]})
    >>> query = read("SELECT sex AS s, COUNT(*) AS n FROM people GROUP BY sex").query(domain)
    >>> known = Figures(np.array([4.0, 5.0]), np.array([1.0, 1.0]), np.array([2.0, 2.0]))
    >>> result(query, lambda group: known).to_pylist()[1]
    {'s': 'male', 'n': 5.0, 'n_stddev': 1.0, 'n_lower': 3.0, 'n_upper': 7.0}
    """
    found = [figures_of(group) for group in query.groups]
    keys = iter(query.keys.columns)
    names: list[str] = []
    fields: list[pa.Field] = []
    arrays: list[pa.Array | pa.ChunkedArray] = []
    for column in query.columns:
        if column.aggregate is None:
            arrays.append(next(keys))
            fields.append(pa.field(_new(column.name, names), arrays[-1].type))
            continue
        estimates, deviations, widths = _placed(query.places[column.aggregate], found)
        values = (estimates, deviations, estimates - widths, estimates + widths)
        for figure, own in zip(FIGURES, values, strict=True):
            name = column.name if figure == FIGURES[0] else f"{column.name}_{figure}"
            arrays.append(pa.array(own, pa.float64()))
            fields.append(pa.field(_new(name, names), pa.float64(), metadata={FIGURE: figure.encode()}))
    return pa.Table.from_arrays(arrays, schema=pa.schema(fields))


def _placed(places: Places, found: list[Figures]) -> tuple[Array, Array, Array]:
    """Return the figures of every row of one aggregate, 0 where no record can fit."""
    filled = tuple(np.zeros(len(places.queries)) for _ in range(3))
    for number, figures in enumerate(found):
        own = (places.groups == number) & (places.queries >= 0)
        at = places.queries[own]
        for column, values in zip(
            filled, (figures.estimates, figures.deviations, figures.widths), strict=True
        ):
            column[own] = values[at]
    estimates, deviations, widths = filled
    return estimates, deviations, widths


def _new(name: str, names: list[str]) -> str:
    """Return a name that is not among others, and add it to them."""
    new, number = name, 1
    while new in names:
        new, number = f"{name}_{number}", number + 1
    names.append(new)
    return new


#: A table in memory has at most this many rows.
MAX_TABLE_ROWS = 50_000_000


@final
@dataclass(frozen=True, eq=False, repr=False)
class Release(Glance, Plotted, AskedStatistics, Tabulated, Kept, Modelled, ToMbi):
    """Answers with their standard errors, from one measurement.

    Everything here is computed from the noisy measurement alone: any number of further queries costs no
    further budget. Intervals are pointwise: each holds the true answer with the stated confidence, taken
    alone.

    Parameters
    ----------
    measurement : Measurement
        What was measured.
    workload : Workload
        What `answers` answers.
    confidence : float
        Of the intervals, above 0 and below 1.
    origin : mapping
        How the strategy was chosen, for the record: mechanism, reason, objective, certificate.
    expect : int, optional
        How many records the table should have in the domain: a public figure, given before. `size` compares
        the released total with it.

    Raises
    ------
    SpecificationError
        If the confidence is not a number between 0 and 1, what is expected is no number of records, or a
        field of the origin is of another type.
    WorkloadError
        If the workload is over another domain than the measurement.

    Examples
    --------
    >>> import matrixdp as mdp
    >>> workload = mdp.Workload(mdp.Domain({"sex": ["female", "male"]}), mdp.marginals(1))
    >>> table = {"sex": ["male", "male", "female"]}
    >>> release = mdp.select(workload).measure(table, mdp.Budget(rho=0.5)).reconstruct()
    >>> release.answers.num_rows, release.answers.column("stddev").to_pylist()[0] < 1.01
    (2, True)
    """

    measurement: Measurement
    workload: Workload
    confidence: float = 0.95
    origin: Mapping[str, object] = field(default_factory=dict)
    expect: int | None = None

    def __post_init__(self) -> None:
        check_confidence(self.confidence)
        if self.expect is not None and not (type(self.expect) is int and 1 <= self.expect <= MOST_RECORDS):
            expected = "a number of records, from 1 to 2^53 - 1"
            raise SpecificationError.at(("expect",), describe_value(self.expect), expected)
        object.__setattr__(self, "origin", checked_origin(self.origin))
        if not isinstance(self.workload, Workload):
            expected = "a Workload; `answer` takes single entries"
            raise WorkloadError.at(("workload",), describe_value(self.workload), expected)
        if self.workload.domain != self.measurement.plan.domain:
            raise WorkloadError("workload: found another domain than that of the measurement")

    @property
    def domain(self) -> Domain:
        """The attributes."""
        return self.workload.domain

    @property
    def private(self) -> bool:
        """False if the noise was seeded: then nothing is protected."""
        return self.measurement.private

    @property
    def statement(self) -> PrivacyStatement:
        """What the release promises."""
        return self.measurement.statement

    @cached_property
    def out_of_domain_counts(self) -> Mapping[str | None, Estimated]:
        """How many records were out of domain, where ``out_of_domain`` asked for it.

        Keys are names of attributes, for the records whose value of that attribute was out of domain, and
        None, for all records that were dropped.
        """
        counts = self.measurement.out_of_domain_counts
        if counts is None:
            return {}
        deviation, multiplier = math.sqrt(counts.scale.variance), self.intervals.alone
        estimates = [Estimated.within(float(value), deviation, multiplier) for value in counts.values]
        return dict(zip(counts.attributes, estimates, strict=True))

    @cached_property
    def size(self) -> SizeCheck:
        """The number of records, as released, beside what was expected; see its ``warnings``.

        From the release alone, so it is free of further budget.

        Examples
        --------
        >>> import matrixdp as mdp
        >>> strategy = mdp.select(mdp.Workload(mdp.Domain({"sex": ["Female", "Male"]}), mdp.marginals(1)))
        >>> measured = strategy.measure({"sex": [" Male"] * 1461}, mdp.Budget(rho=0.5))
        >>> measured.reconstruct(expect=1461).size.agrees
        False
        """
        with one_blas_thread():
            return check_size(self.measurement, self.workload.groups, self.confidence, self.expect)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What looks like a mistake: of the table's domain, and of the budget's delta; in sentences."""
        bound = self.measurement.max_records
        declared = self.expect or (None if bound == DEFAULT_MAX_RECORDS else bound)
        return (*self.size.warnings, *delta_warnings(self.measurement.authorization.budget, declared))

    @property
    def analysis(self) -> Analysis:
        """Variances and covariances at the noise that was really added."""
        return self.measurement.analysis

    @cached_property
    def intervals(self) -> Intervals:
        """How many standard deviations the ends of intervals lie from the estimates."""
        return Intervals(self.analysis, self.measurement.plan.noise, self.confidence)

    def inference(self, confidence: float | None = None) -> Inference:
        """Return what statistics are derived from; the confidence is that of the release if left out."""
        level = self.confidence if confidence is None else check_confidence(confidence)
        return Inference(self.measurement, self.workload, level)

    @cached_property
    def answers(self) -> pa.Table:
        """The workload's answers: a PyArrow table, one row for each query in the order of the workload.

        Columns: ``group``; one for each attribute that is asked about, with the value or range (null where a
        query is a total over it); ``query``, the text of explicit queries; ``estimate``, ``stddev``, and the
        ends ``lower`` and ``upper`` of the interval.

        Raises
        ------
        TooLargeError
            If there are more than `MAX_TABLE_ROWS` queries.
        UnsupportedQueryError
            If the measurement does not determine a query.
        """
        return self._table(self.workload.groups, levels=False)

    def answer(self, entry: Question, *, base_path: str | os.PathLike[str] = ".") -> pa.Table:
        """Return the answers to new queries, free of further budget.

        Parameters
        ----------
        entry : Entry or mapping
            What ``marginals``, ``kway``, ``product``, ``pairwise`` or ``dense`` return, what a function of
            `matrixdp.ask` returns, or an entry in the form of a specification.
        base_path : path
            What the paths of NumPy files in a mapping are relative to.

        Returns
        -------
        pyarrow.Table
            In the form of `answers`, but the column of an attribute that is asked about at one of its levels
            alone has the name of the level; of a statistic what the method of its name returns.

        Raises
        ------
        UnsupportedQueryError
            If what was measured does not determine a query; the message says why, and what works.
        WorkloadError
            If the entry does not fit the domain.
        TooLargeError
            If there are more than `MAX_TABLE_ROWS` queries.
        """
        made = question(entry, base_path)
        if isinstance(made, StatisticEntry):
            made.expand(self.domain)  # what is wrong with it is told at its place
            return made.ask(self)
        asked = made.expand(self.domain)
        return self._table([spread(self.analysis, self.workload, group) for group in asked])

    def sql(self, statement: str) -> pa.Table:
        """Return the answers to a SQL statement in the shape of its result, free of further budget.

        Parameters
        ----------
        statement : str
            One ``SELECT ..., COUNT(*) FROM table WHERE ... GROUP BY ...``, as in `matrixdp.sql`; it is
            parsed, and never executed on data.

        Returns
        -------
        pyarrow.Table
            The columns of SELECT under their names, a row for each of the result's; every count is an
            estimate, with its standard error and the ends of its interval beside it: ``n``, ``n_stddev``,
            ``n_lower``, ``n_upper``. Groups without records have a row too: which those are is not public.

        Raises
        ------
        UnsupportedQueryError
            If what was measured does not determine a count; the message says why, and what works.
        EntryError
            If it is not one statement that counts records of the domain; at its line and column.
        TooLargeError
            If the result has too many rows.

        Examples
        --------
        >>> import matrixdp as mdp
        >>> workload = mdp.Workload(mdp.Domain({"sex": ["female", "male"]}), mdp.marginals(1))
        >>> table = {"sex": ["male", "male", "female"]}
        >>> release = mdp.select(workload).measure(table, mdp.Budget(rho=0.5)).reconstruct()
        >>> answers = release.sql("SELECT sex, COUNT(*) AS people FROM t GROUP BY sex")
        >>> answers.column_names, answers["sex"].to_pylist()
        (['sex', 'people', 'people_stddev', 'people_lower', 'people_upper'], ['female', 'male'])
        """
        query = read(statement).query(self.domain)
        with self._computing(query.groups):
            return result(query, lambda group: self._figures(spread(self.analysis, self.workload, group)))

    def covariance(self, left: Question, left_query: int, right: Question, right_query: int) -> float:
        """Return the covariance of the estimates of two queries.

        Parameters
        ----------
        left, right : Entry or mapping
            Entries that stand for one group each.
        left_query, right_query : int
            The place of the query in its group, from 0, row-major.

        Raises
        ------
        UnsupportedQueryError
            If what was measured does not determine a query.
        WorkloadError
            If an entry stands for several groups, or has no such query.

        Examples
        --------
        >>> import matrixdp as mdp
        >>> workload = mdp.Workload(mdp.Domain({"code": 2}), mdp.marginals(1))
        >>> measured = mdp.select(workload).measure({"code": [0, 1]}, mdp.Budget(mu=1))
        >>> codes = mdp.marginals(1)
        >>> abs(measured.reconstruct().covariance(codes, 0, codes, 1)) < 1e-9
        True
        """
        return covariance(self.analysis, self.domain, (left, left_query), (right, right_query))

    def batches(
        self,
        groups: Sequence[Group],
        columns: AnswerColumns,
        seen: Callable[[Array], None] | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """Yield the answers to query groups, one group in memory at a time.

        ``seen`` is called before the rows of each group, with its queries' variances.
        """
        for position, group in enumerate(groups):
            variances = self.analysis.variances(group)
            if seen is not None:
                seen(variances)
            estimates = self.measurement.estimates.answers(group)
            yield from columns.batches(position, estimates, variances, self.intervals.multipliers(group))

    def _table(self, groups: Sequence[Group], levels: bool = True) -> pa.Table:
        rows = sum(group.queries for group in groups)
        if rows > MAX_TABLE_ROWS:
            raise TooLargeError(
                f"{rows} answers; a table in memory has at most {MAX_TABLE_ROWS}. Ask for a part of them "
                "with `answer`, or write them to disk"
            )
        columns = AnswerColumns(self.domain, groups, levels=levels)
        with self._computing(groups):
            return pa.Table.from_batches(self.batches(groups, columns), schema=columns.schema)

    def _figures(self, group: Group) -> Figures:
        """Return the estimates of a group with their standard errors and half the lengths of intervals."""
        deviations = np.sqrt(self.analysis.variances(group))
        estimates = self.measurement.estimates.answers(group)
        return Figures(estimates, deviations, self.intervals.multipliers(group) * deviations)

    @contextmanager
    def _computing(self, groups: Sequence[Group]) -> Iterator[None]:
        # many small products: several threads would spend their time waiting for one another
        with one_blas_thread(), advised(self.analysis, self.workload, groups):
            yield


# The folders of releases, as functions.


def load_release(out: str | os.PathLike[str], *, confidence: float | None = None) -> Release:
    """Return the release that a folder holds, ready for new queries; the data are not needed.

    The measurement is read if its digest is the one that the record lists. Whatever of the record follows
    from the measurement (the statement, the exact scales, the cost) must be what follows from it. The digests
    of the answers are not checked, as they are not read; `check_signature` and ``matrixdp verify`` do.

    Parameters
    ----------
    out : str or path
        The folder.
    confidence : float, optional
        Of the intervals; what the release was written with where it is left out.

    Returns
    -------
    Release
        With the workload that it was made for.

    Raises
    ------
    StorageError
        If the folder does not hold a release, or one that never took its place, or its files were damaged
        or altered, or its record is of another version.
    """
    folder = Path(out)
    refuse_leftover(folder)
    written, measurement, workload = read_folder(folder)
    stated, origin = float(written["confidence"]), written["strategy"]
    try:
        release = Release(measurement, workload, stated, origin, expected_in(written))
    except SpecificationError as error:
        raise StorageError(f"{folder / RECORD}: damaged: {error}", "damaged-file") from None
    check_record(folder, written, release)
    return release if confidence is None else release.reconstruct(confidence=confidence)


def sign_release(
    folder: str | os.PathLike[str], key: SigningKey | str | os.PathLike[str], *, force: bool = False
) -> Path:
    """Sign a release that is there already, after checking that it is whole.

    Its record must say what its measurement is, and every file must be the one that the record lists. What a
    signer vouches for beyond that is the signer's own: see the page on privacy.

    Parameters
    ----------
    folder : str or path
        The folder of the release.
    key : SigningKey or path
        Signs it; a path is that of a private key without a passphrase.
    force : bool
        Whether a signature that is there may be replaced.

    Returns
    -------
    Path
        The file of the signature, ``signature.json`` in the folder.

    Raises
    ------
    StorageError
        If the folder does not hold a whole release.
    SignatureError
        If there is a signature already, or it cannot be written.
    """
    place = Path(folder)
    key = key if isinstance(key, SigningKey) else SigningKey.load(key)
    load_release(place)
    check_files(place, plain_content(place / RECORD))
    path = place / SIGNATURE
    if os.path.lexists(path):
        if not force:
            raise SignatureError(f"{path}: is there already; replace it by force=True, or --force")
        path.unlink()
    return write_signature(place, key)
