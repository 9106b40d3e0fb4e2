"""A release: everything that follows from one measurement, free of further budget."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self, final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from matrixdp.answers.cross_table import CrossTable, cross_table
from matrixdp.answers.figures import Presentation
from matrixdp.answers.inference import (
    METADATA,
    AskedStatistic,
    Inference,
    Terms,
    asked_statistics,
    check_confidence,
)
from matrixdp.answers.intervals import Intervals
from matrixdp.answers.publication import (
    PublishedTable,
    chosen_tables,
    find_table,
    helper_tables,
    published_tables,
)
from matrixdp.answers.questions import Question, advised, covariance, embed, question
from matrixdp.answers.result_table import ResultTable
from matrixdp.answers.shown import QUALITY, Shown
from matrixdp.answers.table import FIGURE, FIGURES, OF, AnswerColumns, Estimated, levels_of, row_in_words
from matrixdp.display import MAX_ROWS, Displayed, Preview, counted
from matrixdp.domain import Domain
from matrixdp.errors import (
    EntryError,
    MatrixDPError,
    SpecificationError,
    StorageError,
    TooLargeError,
    WorkloadError,
    format_place,
    within,
)
from matrixdp.errors import Path as Place
from matrixdp.exact.linear import Array
from matrixdp.exact.resources import one_blas_thread
from matrixdp.exports import export_tables
from matrixdp.forms import describe_value, unknown_name
from matrixdp.language.entries import one_group
from matrixdp.language.periods import changes, group_through
from matrixdp.locks import folder_lock
from matrixdp.measure.measurement import Measurement
from matrixdp.measure.statement import PrivacyStatement
from matrixdp.plans import Analysis, Batch
from matrixdp.privacy import delta_warnings
from matrixdp.privacy.budget import DEFAULT_MAX_RECORDS, weak_privacy
from matrixdp.privacy.persons import check_groups, check_persons, counts_persons
from matrixdp.privacy.unit import MOST_RECORDS
from matrixdp.queries import DenseGroup, Group, ProductGroup, Workload
from matrixdp.releases.answered import Answered
from matrixdp.releases.files import (
    check_record,
    expected_in,
    read_folder,
    read_measurement,
    version_in,
)
from matrixdp.releases.record import RECORD, SIGNATURE, SizeCheck, check_size
from matrixdp.releases.schema import checked_origin
from matrixdp.releases.signatures import SigningKey, check_files, write_signature
from matrixdp.releases.transaction import refuse_leftover, save_release
from matrixdp.statements import SqlEntry, SqlFileEntry, SqlQuery, read
from matrixdp.statements.query import Asked, Known
from matrixdp.statistics import StatisticEntry, ask
from matrixdp.statistics.ask import By, Where
from matrixdp.statistics.attributes import QUARTILES
from matrixdp.statistics.intervals import EVERY
from matrixdp.statistics.statistic import not_yet
from matrixdp.storage.archive import naming_later_versions, plain_content
from matrixdp.texts import NO_PUBLICATION, Described, Publication, catalogs

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from matrixdp.model import Model

NOT_PRIVATE = "NOT PRIVATE: the noise was seeded"
#: Answers to larger groups are not computed for a glance.
_MOST_QUERIES = 100_000

# Answers in the shape of a statement's result: a row for each of its rows, its columns under their names.


_CHOSEN = (
    "HAVING, ORDER BY and LIMIT are applied to noisy estimates: which rows are shown depends on the noise, "
    "and each interval holds for its row taken alone, not for a row that was chosen"
)


def result(
    query: SqlQuery,
    answer: Callable[[Asked], Known],
    confidence: float,
    intervals: str,
    known: NDArray[np.bool_] | None = None,
    multiplier: float | None = None,
) -> pa.Table:
    """Return the answers to a statement as its result would be.

    Parameters
    ----------
    query : SqlQuery
        What the statement asks.
    answer : callable
        Returns what is known of a query group, a statistic or an expression, figures of shape (4, rows).
    confidence : float
        Of the intervals.
    intervals : str
        How those of counts are made.
    known : ndarray of bool, optional
        Which rows are known, where some are not.
    multiplier : float, optional
        Standard errors from an estimate to the ends of its interval.

    Returns
    -------
    pyarrow.Table
        The columns of SELECT in their order. Beside every aggregate, under its name with an ending, its
        standard error ``_stddev`` and the ends of its interval, ``_lower`` and ``_upper``. What is 0 for
        every table has no error; what does not exist is null. Where a name stands twice, the later one gets a
        number. The metadata says how the intervals are made, and under ``notes`` what is to be known besides.

    Examples
    --------
    >>> from matrixdp.domain import Domain
    >>> from matrixdp.statements import read
    >>> from matrixdp.statements.translation import translate
    >>> domain = Domain({"sex": ["female", "male"]})
    >>> query = translate(read("SELECT sex AS s, COUNT(*) AS n FROM people GROUP BY sex"), domain)
    >>> known = Known(np.array([[4.0, 5.0], [1.0, 1.0], [2.0, 3.0], [6.0, 7.0]]))
    >>> result(query, lambda group: known, 0.95, "pointwise").to_pylist()[1]
    {'s': 'male', 'n': 5.0, 'n_stddev': 1.0, 'n_lower': 3.0, 'n_upper': 7.0}
    """
    found = [answer(asked) for asked in query.asked]
    every = np.column_stack([*(one.figures for one in found), np.zeros(len(FIGURES))])
    warned = np.zeros(every.shape[1], dtype=bool)
    starts = np.cumsum([0, *(one.figures.shape[1] for one in found)])
    for start, one in zip(starts, found, strict=False):
        warned[start : start + len(one.warnings)] = [text is not None for text in one.warnings]
    # the last of all are the figures where no record can fit
    placed = [np.where(own.queries < 0, -1, starts[own.asked] + own.queries) for own in query.places]
    rows = query.shown([every[0, own] for own in placed], known)
    keys = iter(query.keys.columns)
    names: list[str] = []
    fields: list[pa.Field] = []
    arrays: list[pa.Array | pa.ChunkedArray] = []
    measures: dict[str, str] = {}
    within: dict[str, Sequence[float | None]] = {}
    notes = [_CHOSEN] if query.choice is not None and query.choice.noisy else []
    for column in query.columns:
        if column.aggregate is None:
            constant = pa.array([column.constant] * len(rows))
            arrays.append(next(keys).take(rows) if column.constant is None else constant)
            fields.append(pa.field(_new(column.name, names), arrays[-1].type))
            continue
        shown = placed[column.aggregate][rows]
        called = _new(column.name, names)
        for figure, own in zip(FIGURES, every[:, shown], strict=True):
            name = called if figure == FIGURES[0] else _new(f"{column.name}_{figure}", names)
            arrays.append(pa.array(own, pa.float64(), mask=~np.isfinite(own)))
            kept = {FIGURE: figure.encode(), OF: called.encode()}
            fields.append(pa.field(name, pa.float64(), metadata=kept))
        one = found[column.aggregate]
        measures[called], within[called] = one.measures, one.within
        told = (one.note for one in found[column.aggregate :: len(query.items)])
        notes += [f"{column.name}: {note}" for note in dict.fromkeys(told) if note]
        if small := warned[shown].sum():
            notes.append(f"{column.name}: {small} of {len(rows)} denominators are small or none")
    said = {"statistic": "sql", "confidence": confidence, "intervals": intervals, "notes": notes}
    said |= {"measures": measures, "within": within, "multiplier": multiplier}
    schema = pa.schema(fields, metadata={METADATA: json.dumps(said).encode()})
    return pa.Table.from_arrays(arrays, schema=schema)


def _new(name: str, names: list[str]) -> str:
    """Return a name that is not among others, and add it to them."""
    new, number = name, 1
    while new in names:
        new, number = f"{name}_{number}", number + 1
    names.append(new)
    return new


#: A table in memory has at most this many rows.
MAX_TABLE_ROWS = 50_000_000


def check_expect(expect: object) -> int | None:
    """Return an expected number of records, or None for none; reject what is neither."""
    number = int(expect) if isinstance(expect, np.integer) else expect
    if number is None or (type(number) is int and 1 <= number <= MOST_RECORDS):
        return number
    expected = "a number of records, from 1 to 2^53 - 1"
    code = "out-of-range" if type(number) is int else "wrong-type"
    raise SpecificationError.at(("expect",), describe_value(expect), expected, code=code)


@final
@dataclass(frozen=True, eq=False, repr=False)
class Release(Displayed):
    """Answers with their standard errors, from one measurement.

    Everything here is computed from the noisy measurement alone: any number of further queries costs no
    further budget. Intervals are pointwise: each holds the true answer with the stated confidence, taken
    alone.

    Statistics take ``by``, attributes whose values are strata or a mapping of attributes to predicate sets,
    ``where``, a mapping of attributes to a value, a list of values or ``{"range": [first, last]}``, and
    ``confidence``, that of the release where it is left out. Their tables have the columns of the strata,
    then what it is, then ``estimate``, ``stddev``, ``lower`` and ``upper``; what does not exist is null. The
    schema's metadata says under ``matrixdp`` how the intervals are made.

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
    publication : Publication
        Texts for readers of the release.

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
    publication: Publication = NO_PUBLICATION

    def __post_init__(self) -> None:
        check_confidence(self.confidence)
        object.__setattr__(self, "expect", check_expect(self.expect))
        object.__setattr__(self, "origin", checked_origin(self.origin))
        if not isinstance(self.workload, Workload):
            expected = "a Workload; `answer` takes single entries"
            raise WorkloadError.at(("workload",), describe_value(self.workload), expected, code="wrong-type")
        if self.workload.domain != self.measurement.plan.domain:
            words = "workload: found another domain than that of the measurement"
            raise WorkloadError(words, code="domain-mismatch")
        check_persons(self.workload, self.measurement.authorization.budget.unit)

    @property
    def domain(self) -> Domain:
        """The attributes."""
        return self.workload.domain

    @property
    def private(self) -> bool:
        """False if the noise was seeded: then nothing is protected."""
        return self.measurement.private

    @property
    def series(self) -> tuple[str, tuple[int, ...]] | None:
        """The attribute of a series, and how many periods were over at each publication; else None."""
        periods = self.measurement.periods
        return None if periods is None else (periods.attribute, periods.published)

    @property
    def statement(self) -> PrivacyStatement:
        """The privacy statement of the release."""
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
        deviation = math.sqrt(counts.scale.variance)
        multiplier = self.intervals.alone(counts.scale.ratio)
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
        """Sentences about what looks like a mistake in the domain or the budget."""
        bound = self.measurement.max_records
        declared = self.expect or (None if bound == DEFAULT_MAX_RECORDS else bound)
        budget = self.measurement.authorization.budget
        return (*self.size.warnings, *delta_warnings(budget, declared), *weak_privacy(budget))

    @property
    def analysis(self) -> Analysis:
        """Variances and covariances at the noise that was really added."""
        return self.measurement.analysis

    @cached_property
    def intervals(self) -> Intervals:
        """How many standard deviations the ends of intervals lie from the estimates."""
        return Intervals(self.analysis, self.measurement.tails, self.confidence)

    def inference(self, confidence: float | None = None) -> Inference:
        """Return the object that statistics are computed from; by default with the release's confidence."""
        level = self.confidence if confidence is None else check_confidence(confidence)
        return Inference(self.measurement, self.workload, level)

    @cached_property
    def answers(self) -> ResultTable:
        """The workload's answers: one row for each query in the order of the workload.

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
        return ResultTable(self._table(self.workload.groups, levels=False))

    def answer(self, entry: Question, *, base_path: str | os.PathLike[str] = ".") -> ResultTable:
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
        ResultTable
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
        if isinstance(made, SqlEntry | SqlFileEntry):
            parts = made.split(self.domain)
            made = parts[0] if len(parts) == 1 else made
        if isinstance(made, StatisticEntry):
            return self._statistic(made, None)
        asked = self._known(made.expand(self.domain))
        if counts_persons(made):
            check_groups(asked, self.measurement.authorization.budget.unit)
        return ResultTable(self._table([embed(self.analysis, self.workload, group) for group in asked]))

    def sql(self, statement: str) -> ResultTable:
        """Return the answers to a SQL statement in the shape of its result, free of further budget.

        Parameters
        ----------
        statement : str
            One ``SELECT ..., AVG(x) FROM table WHERE ... GROUP BY ... HAVING ... ORDER BY ... LIMIT n``,
            as in `matrixdp.sql`; it is parsed, and never executed on data.

        Returns
        -------
        ResultTable
            The columns of SELECT under their names, a row for each of the result's; every aggregate is an
            estimate, with its standard error and the ends of its interval beside it: ``n``, ``n_stddev``,
            ``n_lower``, ``n_upper``. Groups without records have a row too: which those are is not public.
            The metadata says under ``matrixdp`` how intervals are made, and under ``notes`` what to know
            besides: HAVING, ORDER BY and LIMIT are applied to estimates, so which rows are shown depends on
            the noise.

        Raises
        ------
        UnsupportedQueryError
            If what was measured does not determine a count; the message says why, and what works.
        EntryError
            If it is not one statement of counts, sums, means and variances over the domain; at its line and
            column.
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
        from matrixdp.statements.clauses import of_persons
        from matrixdp.statements.translation import translate

        asked, unit = read(statement), self.measurement.authorization.budget.unit
        distinct = False
        if unit.id is not None:
            asked, distinct = of_persons(asked, unit.id)
        query, inference, known = translate(asked, self.domain), self.inference(), None
        if distinct and unit.records > 1:
            if not query.counts:
                expected = "a statement of its own for counts of persons"
                raise EntryError.at(("sql",), "statistics beside persons", expected, code="not-supported")
            check_groups(query.groups, unit, "sql")
        if inference.through is not None:
            name, periods = inference.through
            known = query.known_after(self.domain, self.domain[name]) < periods
            if not known.any():
                raise not_yet("sql", self.domain[name], periods)
        answer, said = partial(self._answered, inference.as_if_ended), self.intervals.description
        with self._computing(query.groups):
            return ResultTable(result(query, answer, self.confidence, said, known, inference.multiplier))

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

    def table(self, called: str | PublishedTable) -> ResultTable:
        """Return one of the tables that the workload asks for; `cross_table` has it as rows by columns.

        Parameters
        ----------
        called : str or PublishedTable
            One of `tables` or `helpers`, or what it is called: its title, the name of the group, or its
            attributes, in any order and case. A statistic is called by its title.

        Returns
        -------
        ResultTable
            The columns of `Release.answers` that the group has, without ``group``; an attribute that is asked
            about at a level has the name of the level. Of a statistic, what the method of its name returns.

        Raises
        ------
        WorkloadError
            If no table or several are called so.
        TooLargeError
            If there are too many rows.
        UnsupportedQueryError
            If the measurement does not determine a query.

        Examples
        --------
        >>> import matrixdp as mdp
        >>> domain = mdp.Domain({"sex": ["female", "male"], "age": range(4)})
        >>> workload = mdp.Workload(domain, mdp.product(sex="identity", age="prefix"))
        >>> table = {"sex": ["female", "male"], "age": [0, 3]}
        >>> release = mdp.select(workload).measure(table, mdp.Budget(rho=0.5)).reconstruct()
        >>> release.table("age CDF by sex").column_names[:4]
        ['sex', 'age', 'age_from', 'age_to']
        """
        one = self.find(called)
        if one.group is not None:
            return ResultTable(self._table((one.group,)).drop_columns(["group"]))
        assert one.statistic is not None
        if one.statistic.refusal is not None:
            raise one.statistic.refusal
        assert one.statistic.published is not None
        return ResultTable(one.statistic.published)

    def changes(
        self, called: str | PublishedTable, over: Literal["period", "year"] = "period"
    ) -> ResultTable:
        """Return how the counts of a table by period changed, free of further budget.

        Parameters
        ----------
        called : str or PublishedTable
            As in `table`: counts with a row for each day, week, month, quarter or year of an attribute.
        over : {"period", "year"}
            Whether each period is compared with the one before, or with the same period a year before (the
            week 52 weeks before). Only periods whose counts are both in the table are compared.

        Returns
        -------
        ResultTable
            Columns: those of the table's attributes, where the period says ``2025-02 less 2025-01``; the
            change in records as ``estimate``, ``stddev``, ``lower`` and ``upper``; and ``clear``, whether the
            interval excludes 0. Standard errors take in the exact covariance of the two counts. Each
            interval, and each ``clear``, holds with the confidence taken alone.

        Raises
        ------
        WorkloadError
            If no table or several are called so, it does not have counts by period, or it has no two periods
            that are so far apart.
        TooLargeError
            If there are too many rows.

        Examples
        --------
        >>> import matrixdp as mdp
        >>> domain = mdp.Domain({"month": {"from": "2025-01-01", "to": "2025-03-31", "by": "month"}})
        >>> table = {"month": ["2025-01-05"] * 500 + ["2025-02-07"] * 700 + ["2025-03-09"] * 700}
        >>> measured = mdp.select(mdp.Workload(domain, mdp.marginals(1))).measure(table, mdp.Budget(mu=5))
        >>> changes = measured.reconstruct().changes("month")
        >>> changes["month"].to_pylist(), changes["clear"].to_pylist()[0]
        (['2025-02 less 2025-01', '2025-03 less 2025-02'], True)
        """
        one = self.find(called)
        if one.group is None:
            expected = "a table of counts by period"
            raise WorkloadError.at(("changes",), repr(one.title), expected, code="not-supported")
        found = self._table([changes(one.group, self.domain, over)]).drop_columns(["group"])
        clear = pc.or_(pc.greater(found["lower"], 0), pc.less(found["upper"], 0))
        return ResultTable(found.append_column(pa.field("clear", pa.bool_()), clear))

    def cross_table(self, called: str | PublishedTable, layout: Sequence[str] | None = None) -> CrossTable:
        """Return one of the tables that the workload asks for as rows by columns, with totals.

        Totals are answers of their own from the same measurement: each has its exact standard error, and is
        what was published where it is one of the tables. They stand where each value is counted at most once.

        Parameters
        ----------
        called : str or PublishedTable
            As in `table`.
        layout : sequence of str, optional
            The attributes from the outermost: small multiples, row groups, rows, columns. Where it is left
            out, the attribute with the fewest values, at most 12, is in the columns, and the longest in the
            rows; numbers and dates are in the rows where they can be.

        Raises
        ------
        WorkloadError
            If no table is called so or it has no attributes to cross, or the layout does not name each of
            them once.
        TooLargeError
            If there are more than 100,000 figures.
        UnsupportedQueryError
            If the measurement does not determine a query.

        Examples
        --------
        >>> import matrixdp as mdp
        >>> domain = mdp.Domain({"sex": ["female", "male"], "age": range(4)})
        >>> workload = mdp.Workload(domain, mdp.marginals([["sex", "age"]]))
        >>> table = {"sex": ["female", "male"], "age": [0, 3]}
        >>> release = mdp.select(workload).measure(table, mdp.Budget(rho=0.5)).reconstruct()
        >>> cross = release.cross_table("sex by age")
        >>> cross.columns, [row.label for row in cross.panels[0].rows]
        (('Total', 'female', 'male'), ['Total', '0', '1', '2', '3'])
        """
        return cross_table(self.inference(), self.find(called), self.presentation, layout)

    def find(self, called: str | PublishedTable) -> PublishedTable:
        """Return the table that is called so: by its title in the release's language, name or attributes.

        Raises
        ------
        WorkloadError
            If no table or several are called so.
        """
        if isinstance(called, PublishedTable):
            return called
        found = find_table(self.tables, self.workload.groups, called)
        return next(one for one in self.helpers if one.place == found) if isinstance(found, int) else found

    def presented(
        self,
        *,
        suppress_above: float | None = None,
        within_range: bool | None = None,
        round_to: int | None = None,
        publication: Mapping[str, object] | None = None,
    ) -> Self:
        """Return the same release with other rules for what readers see of figures, or other texts.

        Nothing is measured again, and files for machines stay as they are. What is left out stays what the
        specification declared.

        Parameters
        ----------
        suppress_above : float, optional
            ``F`` takes the place of figures whose coefficient of variation is larger, such as 0.33.
        within_range : bool, optional
            Whether what is beyond its range is shown as the nearer end, such as counts below 0.
        round_to : int, optional
            Counts are shown as multiples of it.
        publication : mapping, optional
            Keys of a specification's ``publication`` that take the place of the release's own.

        Raises
        ------
        SpecificationError
            If a rule says nothing, or a key is none of a publication.
        WorkloadError
            If the publication speaks of a table that does not exist.

        Examples
        --------
        >>> import matrixdp as mdp
        >>> workload = mdp.Workload(mdp.Domain({"sex": ["female", "male"]}), mdp.marginals(1))
        >>> release = mdp.select(workload).measure({"sex": ["male"] * 903}, mdp.Budget(mu=1)).reconstruct()
        >>> [_, men] = release.presented(round_to=100).cross_table("sex").panels[0].rows[1:]
        >>> men.label, men.cells[0].text
        ('male', '900')
        """
        suppress = None if suppress_above is None else {"cv_above": suppress_above}
        asked = {"suppress": suppress, "within_range": within_range, "round_to": round_to}
        given = dict(publication or {}) | {name: own for name, own in asked.items() if own is not None}
        with within(*(["publication"] if publication else [])):
            told = Publication.read(self.publication.to_spec() | given)
        made = replace(self, publication=told)
        _ = made.chosen  # what it names is there
        return made

    @property
    def presentation(self) -> Presentation:
        """The rules for figures that readers see; files for machines keep every estimate as it is."""
        made = Presentation.of(self.publication, self.domain.language)
        unit, say = self.measurement.authorization.budget.unit, made.say
        if unit.id is None:
            return made
        each = "."
        if unit.per:
            of = say.listed([self.domain[name].title for name in unit.per])
            each = say("bounded_each", number=say.number(unit.max_records_each), of=of)
        return replace(made, counted=f"{say.counted('bounded', unit.records)}{each} {say('bounded_lower')}")

    @cached_property
    def tables(self) -> tuple[PublishedTable, ...]:
        """The tables that the workload asks for, in its order: answers of query groups, and statistics.

        Query groups that exist only to serve a statistic are not among them; see `helpers`.

        Examples
        --------
        >>> import matrixdp as mdp
        >>> domain = mdp.Domain({"sex": ["f", "m"], "age": range(8)})
        >>> workload = mdp.Workload(domain, mdp.marginals(1), mdp.ask.quantile("age", 0.5))
        >>> table = {"sex": ["f", "m"] * 50, "age": [3, 5] * 50}
        >>> release = mdp.select(workload).measure(table, mdp.Budget(mu=10)).reconstruct()
        >>> [(one.title, one.unit, one.rows) for one in release.tables]
        [('sex', 'records', 2), ('age', 'records', 8), ('median of age', 'age', 1)]
        """
        say = self.presentation.say
        return published_tables(self.workload, self.asked, say, self.told.get("unit"))

    @cached_property
    def chosen(self) -> dict[tuple[str | int, ...], str]:
        """The names of the tables that the publication speaks of, by the places where it does."""
        return chosen_tables(self.workload, self.publication)

    @cached_property
    def helpers(self) -> tuple[PublishedTable, ...]:
        """The answers that exist only to serve statistics: sums and counts that they are computed from."""
        return helper_tables(self.workload)

    @cached_property
    def asked(self) -> tuple[AskedStatistic, ...]:
        """The statistics that the workload asks for, each with its table or why there is none."""
        return asked_statistics(self.inference(), self.workload.entries)

    @property
    def statistics(self) -> Mapping[str, ResultTable]:
        """The tables of the statistics that the workload asks for, by their names.

        Raises
        ------
        MatrixDPError
            If one of them cannot be computed.

        Examples
        --------
        >>> import matrixdp as mdp
        >>> asked = mdp.ask.quantile("age", 0.5, name="median age")
        >>> workload = mdp.Workload(mdp.Domain({"age": range(8)}), asked)
        >>> measured = mdp.select(workload).measure({"age": [3] * 500 + [5] * 400}, mdp.Budget(mu=10))
        >>> measured.reconstruct().statistics["median age"]["estimate"].to_pylist()
        [3.0]
        """
        for one in self.asked:
            if one.refusal is not None:
                raise one.refusal
        return {one.name: ResultTable(one.table) for one in self.asked}

    def quantile(
        self,
        attribute: str,
        q: float | Sequence[float] = QUARTILES,
        *,
        by: By = (),
        where: Where = None,
        confidence: float | None = None,
    ) -> ResultTable:
        """Return quantiles of a numeric attribute, or of dates.

        Parameters
        ----------
        attribute : str
            Integers, codes, bins, dates or hours; missing values are left out.
        q : float or list of float
            Orders, above 0 and below 1. The quantile is the least value with at least the share ``q`` of the
            records at or below it.
        by, where, confidence
            See the class.

        Returns
        -------
        ResultTable
            Columns: strata, ``quantile``, ``estimate``, ``stddev`` (null: there is none), ``lower``,
            ``upper``, ``warning``. Each interval holds the true quantile with the confidence, taken alone, in
            every table: with few records, with many on one value. In bins the estimate is interpolated, and
            the ends are ends of bins.

        Raises
        ------
        EntryError
            If an argument is wrong, at its place.
        UnsupportedQueryError
            If what was measured does not determine the counts of the values.
        TooLargeError
            If the attribute has more than 4,000 values that are asked about.

        Examples
        --------
        >>> import matrixdp as mdp
        >>> workload = mdp.Workload(mdp.Domain({"age": range(8)}), mdp.product(age="prefix"))
        >>> table = {"age": [0, 1, 2, 3, 3, 3, 4, 7] * 100}
        >>> release = mdp.select(workload).measure(table, mdp.Budget(mu=10)).reconstruct()
        >>> release.quantile("age", 0.5).select(["quantile", "estimate", "lower", "upper"]).to_pylist()
        [{'quantile': 0.5, 'estimate': 3.0, 'lower': 3.0, 'upper': 3.0}]
        """
        return self._statistic(ask.quantile(attribute, q, by=by, where=where), confidence)

    def cdf(
        self, attribute: str, *, by: By = (), where: Where = None, confidence: float | None = None
    ) -> ResultTable:
        """Return how many records, and what share of them, are at or below each value.

        Returns
        -------
        ResultTable
            Columns: strata, the attribute's, ``estimate``, ``stddev``, ``lower``, ``upper`` of counts,
            ``share``, ``share_stddev``, ``share_lower``, ``share_upper``, ``warning``. The band of counts
            holds a whole curve with the confidence, and so does that of shares, each taken alone.

        Raises
        ------
        EntryError
            If an argument is wrong, at its place.
        UnsupportedQueryError
            If what was measured does not determine the counts.

        Examples
        --------
        >>> import matrixdp as mdp
        >>> workload = mdp.Workload(mdp.Domain({"age": range(3)}), mdp.product(age="prefix"))
        >>> measured = mdp.select(workload).measure({"age": [0, 0, 0, 1, 2] * 99}, mdp.Budget(mu=10))
        >>> curve = measured.reconstruct().cdf("age")
        >>> curve["age"].to_pylist(), [round(share, 1) for share in curve["share"].to_pylist()]
        (['0', '0-1', '0-2'], [0.6, 0.8, 1.0])
        """
        return self._statistic(ask.cdf(attribute, by=by, where=where), confidence)

    def mean(
        self, attribute: str, *, by: By = (), where: Where = None, confidence: float | None = None
    ) -> ResultTable:
        """Return means of a numeric attribute, bins by their middles.

        Returns
        -------
        ResultTable
            Columns: strata, ``estimate``, ``stddev`` (of the noise alone, by the delta method), ``lower``,
            ``upper``, ``binning``, ``warning``. The interval is Fieller's, and holds wherever in their bins
            the numbers lie; ``binning`` is half of the widest bin, the most by which the mean of the middles
            is off. Where the number of records cannot be told from 0 the ends are null.

        Raises
        ------
        EntryError
            If an argument is wrong, at its place; a bin without an end is left out with ``where``.
        UnsupportedQueryError
            If what was measured does not determine the sum or the number of records.

        Examples
        --------
        >>> import matrixdp as mdp
        >>> workload = mdp.Workload(mdp.Domain({"age": range(8)}), mdp.product(age="prefix"))
        >>> measured = mdp.select(workload).measure({"age": [2, 3] * 500}, mdp.Budget(mu=10))
        >>> round(measured.reconstruct().mean("age")["estimate"][0].as_py(), 1)
        2.5
        """
        return self._statistic(ask.mean(attribute, by=by, where=where), confidence)

    def variance(
        self, attribute: str, *, by: By = (), where: Where = None, confidence: float | None = None
    ) -> ResultTable:
        """Return variances of a numeric attribute: the mean of squares less the square of the mean.

        Returns
        -------
        ResultTable
            Columns: strata, ``estimate``, ``stddev`` (by the delta method), ``lower``, ``upper``,
            ``warning``. The interval follows from those of the two means behind it, which hold together; it
            is wider than the standard error says.

        Raises
        ------
        EntryError
            If an argument is wrong, at its place; the attribute has bins, or is an amount without squares.
        UnsupportedQueryError
            If what was measured does not determine the sums or the number of records.

        Examples
        --------
        >>> import matrixdp as mdp
        >>> workload = mdp.Workload(mdp.Domain({"age": range(8)}), mdp.product(age="prefix"))
        >>> measured = mdp.select(workload).measure({"age": [1, 3] * 5000}, mdp.Budget(mu=10))
        >>> round(measured.reconstruct().variance("age")["estimate"][0].as_py(), 1)
        1.0
        """
        return self._statistic(ask.variance(attribute, by=by, where=where), confidence)

    def sum(
        self, attribute: str, *, by: By = (), where: Where = None, confidence: float | None = None
    ) -> ResultTable:
        """Return sums of a numeric attribute, bins by their middles.

        Returns
        -------
        ResultTable
            Columns: strata, ``estimate``, ``stddev`` (of the noise alone), ``lower``, ``upper``, ``binning``.
            The interval holds wherever in their bins the numbers lie; ``binning`` estimates the most by which
            the sum of the middles is off.

        Raises
        ------
        EntryError
            If an argument is wrong, at its place; a bin without an end is left out with ``where``.
        UnsupportedQueryError
            If what was measured does not determine the sum.

        Examples
        --------
        >>> import matrixdp as mdp
        >>> workload = mdp.Workload(mdp.Domain({"age": range(8)}), mdp.product(age="prefix"))
        >>> measured = mdp.select(workload).measure({"age": [2, 3] * 500}, mdp.Budget(mu=10))
        >>> 2490 < measured.reconstruct().sum("age")["estimate"][0].as_py() < 2510
        True
        """
        return self._statistic(ask.sum(attribute, by=by, where=where), confidence)

    def top(
        self, attribute: str, k: int, *, by: By = (), where: Where = None, confidence: float | None = None
    ) -> ResultTable:
        """Return the values of an attribute with the most records.

        Parameters
        ----------
        attribute : str
            The attribute, of any kind.
        k : int
            How many values.

        Returns
        -------
        ResultTable
            Columns: strata, the attribute's, ``rank``, ``estimate``, ``stddev``, ``lower``, ``upper``,
            ``confidence``: that with which the set of values, in any order, is the right one; 0 says
            nothing. Intervals hold together for all values, so that they hold for those that were chosen.

        Raises
        ------
        EntryError
            If an argument is wrong, at its place.
        UnsupportedQueryError
            If what was measured does not determine the counts of the values.

        Examples
        --------
        >>> import matrixdp as mdp
        >>> workload = mdp.Workload(mdp.Domain({"colour": ["red", "green", "blue"]}), mdp.marginals(1))
        >>> table = {"colour": ["red"] * 100 + ["blue"] * 300 + ["green"] * 200}
        >>> found = mdp.select(workload).measure(table, mdp.Budget(mu=1)).reconstruct().top("colour", 2)
        >>> found["colour"].to_pylist(), found["confidence"][0].as_py() > 0.999
        (['blue', 'green'], True)
        """
        return self._statistic(ask.top(attribute, k, by=by, where=where), confidence)

    def share(
        self, entry: Question, *, of: Question | Iterable[str] | None = None, confidence: float | None = None
    ) -> ResultTable:
        """Return the answers of an entry as shares.

        Parameters
        ----------
        entry : Entry or mapping
            Of one group: the numerators.
        of : list of str, or Entry or mapping, optional
            Attributes that the denominator keeps: the share is that of all records with the same value of
            them; or an entry of one query, or of as many as the numerators. All records where it is left out.

        Returns
        -------
        ResultTable
            Columns: those of the entry's answers, ``stddev`` by the delta method, Fieller's ``lower`` and
            ``upper``, ``warning`` where the denominator is small. The interval holds the true share with the
            confidence whatever the denominator is; where that cannot be told from 0 the ends are null.

        Raises
        ------
        EntryError
            If an argument is wrong, at its place.
        UnsupportedQueryError
            If what was measured does not determine a numerator or a denominator.

        Examples
        --------
        >>> import matrixdp as mdp
        >>> workload = mdp.Workload(mdp.Domain({"sex": ["f", "m"], "age": range(3)}), mdp.marginals(2))
        >>> table = {"sex": ["f", "f", "m", "m"] * 100, "age": [0, 1, 2, 2] * 100}
        >>> release = mdp.select(workload).measure(table, mdp.Budget(mu=20)).reconstruct()
        >>> shares = release.share(mdp.marginals([["sex", "age"]]), of=["sex"])
        >>> [abs(round(share, 1)) for share in shares["estimate"].to_pylist()]
        [0.5, 0.5, 0.0, 0.0, 0.0, 1.0]
        """
        return self._statistic(ask.share(entry, of=of), confidence)

    def ratio(
        self, numerator: Question, denominator: Question, *, confidence: float | None = None
    ) -> ResultTable:
        """Return ratios of answers, query by query, or to a single one.

        Returns
        -------
        ResultTable
            Columns: ``numerator`` and ``denominator`` in words, then those of `share`.

        Raises
        ------
        EntryError
            If an entry does not stand for one group, or the numbers of queries do not fit.
        UnsupportedQueryError
            If what was measured does not determine a query.

        Examples
        --------
        >>> import matrixdp as mdp
        >>> workload = mdp.Workload(mdp.Domain({"sex": ["f", "m"]}), mdp.marginals(1))
        >>> measured = mdp.select(workload).measure({"sex": ["f", "m", "m"] * 200}, mdp.Budget(mu=10))
        >>> women, men = mdp.product(sex={"sets": [["f"]]}), mdp.product(sex={"sets": [["m"]]})
        >>> round(measured.reconstruct().ratio(men, women)["estimate"][0].as_py(), 1)
        2.0
        """
        return self._statistic(ask.ratio(numerator, denominator), confidence)

    def difference(self, left: Question, right: Question, *, confidence: float | None = None) -> ResultTable:
        """Return differences of answers, query by query, or to a single one.

        Both are of this release: their covariance is exact. Of two releases with noise of their own, the
        variances add up.

        Returns
        -------
        ResultTable
            Columns: ``left`` and ``right`` in words, ``estimate``, ``stddev``, ``lower``, ``upper``.

        Raises
        ------
        EntryError
            If an entry does not stand for one group, or the numbers of queries do not fit.
        UnsupportedQueryError
            If what was measured does not determine a query.

        Examples
        --------
        >>> import matrixdp as mdp
        >>> workload = mdp.Workload(mdp.Domain({"sex": ["f", "m"]}), mdp.marginals(1))
        >>> measured = mdp.select(workload).measure({"sex": ["f", "m", "m"] * 200}, mdp.Budget(mu=10))
        >>> women, men = mdp.product(sex={"sets": [["f"]]}), mdp.product(sex={"sets": [["m"]]})
        >>> found = measured.reconstruct().difference(men, women)
        >>> found["left"].to_pylist(), 199 < found["estimate"][0].as_py() < 201
        (['sex m'], True)
        """
        return self._statistic(ask.difference(left, right), confidence)

    def percent_change(
        self,
        entry: Question,
        over: Literal["period", "year"] = "period",
        *,
        confidence: float | None = None,
    ) -> ResultTable:
        """Return how much counts by period changed, in per cent of those of an earlier period.

        Parameters
        ----------
        entry : Entry or mapping
            Of one group with a row for each day, week, month, quarter or year, a level of them, the year to
            date, or a number of periods up to each.
        over : {"period", "year"}
            Whether each is compared with what lies just before it, or with the same of the year before (the
            week with that 52 weeks before). What has no such is left out.

        Returns
        -------
        ResultTable
            Columns: those of the entry's answers, for the later period; then those of `share`, in per cent.
            The interval is Fieller's, from the exact covariance of both counts; where the earlier cannot be
            told from 0 the ends are null.

        Raises
        ------
        EntryError
            If the entry does not stand for one group, or nothing in it can be compared.
        UnsupportedQueryError
            If what was measured does not determine a count.

        Examples
        --------
        >>> import matrixdp as mdp
        >>> domain = mdp.Domain({"month": {"from": "2025-01-01", "to": "2025-03-31", "by": "month"}})
        >>> table = {"month": ["2025-01-05"] * 500 + ["2025-02-07"] * 700 + ["2025-03-09"] * 350}
        >>> measured = mdp.select(mdp.Workload(domain, mdp.marginals(1))).measure(table, mdp.Budget(mu=20))
        >>> changes = measured.reconstruct().percent_change(mdp.marginals(1))
        >>> [(row["month"], round(row["estimate"])) for row in changes.to_pylist()]
        [('2025-02', 40), ('2025-03', -50)]
        """
        return self._statistic(ask.percent_change(entry, over), confidence)

    def combination(self, terms: Terms, *, confidence: float | None = None) -> ResultTable:
        """Return linear combinations of answers.

        Parameters
        ----------
        terms : list of pairs
            Coefficients and an entry of one group. Coefficients are a number for each query of the entry, or
            rows of them, one for each combination; of an entry of one query they may be a number.

        Returns
        -------
        ResultTable
            Columns: ``combination`` (its place), ``estimate``, ``stddev``, ``lower``, ``upper``. The metadata
            has the covariance matrix of the combinations.

        Raises
        ------
        EntryError
            If coefficients do not fit their entry, or one another.
        UnsupportedQueryError
            If what was measured does not determine them.

        Examples
        --------
        >>> import matrixdp as mdp
        >>> workload = mdp.Workload(mdp.Domain({"age": range(4)}), mdp.product(age="prefix"))
        >>> measured = mdp.select(workload).measure({"age": [0, 1, 2, 3] * 100}, mdp.Budget(mu=10))
        >>> ages = mdp.marginals([["age"]])
        >>> found = measured.reconstruct().combination([([1, 1, 0, 0], ages), ([0, 0, -1, -1], ages)])
        >>> abs(found["estimate"][0].as_py()) < 5
        True
        """
        return self._statistic(ask.combination(terms), confidence)

    def simultaneous(self, entry: Question, *, confidence: float | None = None) -> ResultTable:
        """Return answers with intervals that all hold together with the confidence.

        Returns
        -------
        ResultTable
            The columns of the entry's answers.

        Raises
        ------
        EntryError
            If the entry does not fit the domain.
        UnsupportedQueryError
            If what was measured does not determine a query.

        Examples
        --------
        >>> import matrixdp as mdp
        >>> workload = mdp.Workload(mdp.Domain({"age": range(4)}), mdp.marginals(1))
        >>> release = mdp.select(workload).measure({"age": [0, 1]}, mdp.Budget(mu=1)).reconstruct()
        >>> row = release.simultaneous(mdp.marginals(1)).to_pylist()[0]
        >>> round((row["upper"] - row["estimate"]) / row["stddev"], 1)  # alone: 2.0
        2.5
        """
        return self._statistic(ask.simultaneous(entry), confidence)

    def covariances(self, entry: Question, other: Question | None = None) -> NDArray[np.float64]:
        """Return the covariances of the estimates of an entry's queries, or of those with another's.

        Parameters
        ----------
        entry, other : Entry or mapping
            Of one group each.

        Returns
        -------
        ndarray
            Shape (queries of the entry, queries of the other one, or of the same).

        Raises
        ------
        EntryError
            If an entry stands for several groups.
        UnsupportedQueryError
            If what was measured does not determine a query.
        TooLargeError
            If that would be too many numbers.

        Examples
        --------
        >>> import matrixdp as mdp
        >>> workload = mdp.Workload(mdp.Domain({"age": range(4)}), mdp.marginals(1))
        >>> release = mdp.select(workload).measure({"age": [0, 1]}, mdp.Budget(mu=1)).reconstruct()
        >>> release.covariances(mdp.marginals(1)).round(3).diagonal().tolist()
        [1.0, 1.0, 1.0, 1.0]
        """
        inference = self.inference()
        with within("covariances"):
            asked = [one_group(question(one), self.domain) for one in (entry, other) if one is not None]
        with inference.computing(*asked) as used:
            return inference.analysis.covariances(used[0], used[-1])

    def plot(self, group: str) -> Figure:
        """Draw the answers of one query group, or a statistic, with their intervals.

        Cumulative counts, dates and long numeric attributes are lines, each in the band of its intervals.
        Categories are rows with their names: bars, or points where there are more than 40, the largest
        first. Several attributes are small multiples; where these would be more than 12, a heat map of
        estimates beside one of standard errors, or the largest answers. All ranges of values are a triangle.
        Intervals are the pointwise ones of the release, or those of the statistic.

        Parameters
        ----------
        group : str
            The name or title of a query group, or its attributes, such as ``"age CDF by sex"``; or the title
            of a statistic that the workload asks for.

        Returns
        -------
        matplotlib.figure.Figure
            To save with ``savefig``; a notebook shows it by itself.

        Raises
        ------
        WorkloadError
            If there is no such group; the message names those that are like it.
        TooLargeError
            If the group has more than a million answers.
        SpecificationError
            If matplotlib is not installed.

        Examples
        --------
        >>> import matrixdp as mdp
        >>> workload = mdp.Workload(mdp.Domain({"sex": ["female", "male"]}), mdp.marginals(1))
        >>> release = mdp.select(workload).measure({"sex": ["male"]}, mdp.Budget(rho=0.5)).reconstruct()
        >>> figure = release.plot("sex")
        >>> [text.get_text() for text in figure.axes[0].get_yticklabels()]
        ['female', 'male']
        """
        from matrixdp.pictures.plots import MAX_DRAWN, answered_group, draw_answers, draw_statistic

        one, say = self.find(group), self.presentation.say
        if one.group is None:
            shown = Shown(self.table(one).to_arrow(), one.measures, Presentation(language=say.language))
            return draw_statistic(shown, one.unit, one.title)
        if one.rows > MAX_DRAWN:
            most = f"a picture has at most {MAX_DRAWN:,}. Ask for a part of them"
            raise TooLargeError(f"{one.title}: {one.rows:,} answers; {most}")
        figures = self.inference().figures(one.group)
        return draw_answers(
            answered_group(self.domain, one.group, figures, unit=one.unit, say=say), one.title
        )

    def model(
        self,
        method: str = "auto",
        *,
        seed: int = 0,
        components: int | None = None,
        steps: int | None = None,
        invariants: object = None,
        structural_zeros: object = None,
        accept_anyway: bool = False,
        progress: Callable[[int, int], None] | None = None,
    ) -> Model:
        """Return a model of the release: non-negative, consistent answers and records, at no privacy cost.

        Its answers are biased; the unbiased ones stay beside them. See docs/model.md.

        Parameters
        ----------
        method : {'auto', 'mixture', 'local', 'integers'}
            ``mixture``: a mixture of products, which answers every query and has records. ``local``: a table
            for each pair of attributes, in seconds, for queries of at most two attributes; without records.
            ``auto``: ``mixture``; where its tests reject it and the tables of pairs serve and pass the same
            tests, ``local``. `made` then has the tests of both, the mixture's under ``rejected``.
            ``integers``: whole numbers for every area of a tree of areas, which add up to those of larger
            areas in every cell of a full table that the workload asks at each area; without records, and
            without any of the options below.
        seed : int
            Of the fits, and of records that are drawn without a seed of their own. No privacy depends on it.
        components, steps : int, optional
            Of each fit of a mixture. Without them the fewest components of a few numbers are taken with which
            noise explains what is left.
        invariants, structural_zeros : optional
            Published counts, and combinations that no record has, which are kept exactly: see
            `Constraints.of`.
        accept_anyway : bool
            Whether a model that its own tests reject is returned too; ``accepted`` says so. ``auto`` then
            returns the mixture in every case.
        progress : callable, optional
            Is called with the steps done and those that there are known to be.

        Raises
        ------
        NumericalError
            If the model does not fit what was measured; it says how far, and what can be done.
        SpecificationError
            If there is no such method, number or seed, or what is publicly known contradicts itself.
        UnsupportedQueryError
            If the number of records does not follow from what was measured, or a method does not serve.
        TooLargeError
            If the measured tables have too many cells.

        Examples
        --------
        >>> import matrixdp as mdp
        >>> workload = mdp.Workload(mdp.Domain({"sex": ["female", "male"]}), mdp.marginals([0, 1]))
        >>> people = {"sex": ["male", "female"] * 45}
        >>> release = mdp.select(workload).measure(people, mdp.Budget(mu=1)).reconstruct()
        >>> model = release.model(components=2, steps=100)
        >>> model.accepted, min(model.answers["modelled"].to_pylist()) >= 0
        (True, True)
        """
        from matrixdp.model.model import fit_model

        return fit_model(
            self.measurement,
            self.workload,
            self.confidence,
            method,
            seed=seed,
            components=components,
            steps=steps,
            invariants=invariants,
            structural_zeros=structural_zeros,
            accept_anyway=accept_anyway,
            progress=progress,
        )

    def to_mbi(self) -> tuple[Any, list[Any]]:
        """Return the measurement as an ``mbi.Domain`` and a list of ``mbi.LinearMeasurement``.

        One for each part: its noisy answers, its marginal, the noise's standard deviation, and its queries.
        mbi takes all noise for Gaussian. It does not know which attributes follow from others. It estimates
        the number of records from measured counts alone; give it ``known_total`` where residuals were
        measured.

        Raises
        ------
        UnsupportedQueryError
            If mbi is not installed.

        References
        ----------
        R. McKenna, D. Sheldon and G. Miklau, Graphical-model based estimation and inference for differential
        privacy, ICML 2019; https://github.com/ryan112358/mbi.
        """
        from matrixdp.model.mbi_export import to_mbi

        return to_mbi(self.measurement)

    save = save_release

    def save_tables(
        self,
        out: str | os.PathLike[str],
        *,
        format: str = "csv",  # noqa: A002
        helpers: bool = False,
    ) -> Path:
        """Write each of `tables` as a file, and descriptions of them for machines, into a new folder.

        Figures in CSV have the digits that the least standard error of the table justifies; ends of intervals
        are rounded outward. ``datapackage.json`` (Frictionless Data Package 2) and ``croissant.json``
        (Croissant 1.0) list the tables with their columns and digests, and have the privacy statement.

        Parameters
        ----------
        out : str or path
            The folder; it must not be there, or be empty. It is no part of the folder of a release.
        format : str
            One of ``csv``, ``parquet``, ``xlsx``, ``sdmx`` and ``ddi``, or what `register_export` added.
            Parquet has every digit, ordered categories, and descriptions in its metadata. ``xlsx`` is one
            workbook, ``tables.xlsx``, as readers see figures: contents, tables of two or three attributes
            as rows by columns, each table as a list, and notes. ``sdmx`` is SDMX-CSV 2.0 with its structure
            message, ``structure.xml``; ``ddi`` is the code book alone, ``codebook.xml``.
        helpers : bool
            Whether to write the answers of `helpers`, too.

        Returns
        -------
        Path
            The folder.

        Raises
        ------
        StorageError
            If `out` holds something, or cannot be written.
        SpecificationError
            If there is no such format, or XlsxWriter is not installed.
        TooLargeError
            If there are more than 10,000 groups, or a workbook cannot hold the tables.

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
        return export_tables(self, out, format, helpers)

    @staticmethod
    def load(out: str | os.PathLike[str], *, confidence: float | None = None) -> Release:
        """Return the release that a folder holds; see `matrixdp.load_release`."""
        return load_release(out, confidence=confidence)

    def reconstruct(
        self, workload: Workload | None = None, confidence: float | None = None, expect: int | None = None
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
        return replace(
            self,
            workload=self.workload if workload is None else workload,
            confidence=self.confidence if confidence is None else confidence,
            expect=self.expect if expect is None else expect,
        )

    @property
    def told(self) -> dict[str, str]:
        """The texts for readers of the release, in its language, by the keys of `Publication`."""
        return self.publication.told(self.domain.language)

    @property
    def languages(self) -> tuple[str, ...]:
        """The languages that texts for readers are written in, that of the others first."""
        entries = [entry.texts() for entry in self.workload.entries if isinstance(entry, Described)]
        texts = [text for _, text in chain(self.publication.texts(), *entries)]
        found = [self.publication.language, *self.domain.languages, *(n for t in texts for n in t.languages)]
        return tuple(dict.fromkeys(found))

    def in_language(self, language: str | None) -> Self:
        """Return the same release with titles, units, notes and labels in a language.

        Parameters
        ----------
        language : str or None
            One of `languages`, or one that has a catalog of words; None for the first of each text, which
            files have. A text that does not exist in the language is in its first.

        Raises
        ------
        SpecificationError
            If no text is in that language, and no catalog.

        Examples
        --------
        >>> import matrixdp as mdp
        >>> sex = {"labels": {"f": {"en": "female", "fr": "femme"}, "m": {"en": "male", "fr": "homme"}}}
        >>> workload = mdp.Workload(mdp.Domain({"sex": sex}), mdp.marginals(1, title={"fr": "Personnes"}))
        >>> release = mdp.select(workload).measure({"sex": ["f"]}, mdp.Budget(rho=0.5)).reconstruct()
        >>> french = release.in_language("fr")
        >>> french.tables[0].title, french.table("Personnes")["sex"].to_pylist()
        ('Personnes', ['femme', 'homme'])
        """
        if language is not None:
            words = catalogs()
            known = tuple(dict.fromkeys((*self.languages, *words)))
            if language not in known and language.partition("-")[0] not in words:
                expected = "a language of its texts, or of a catalog of words"
                raise SpecificationError(unknown_name(("language",), str(language), expected, known))
        return replace(self, workload=self.workload.in_language(language))

    def for_readers(self, language: str | None = None) -> Self:
        """Return the same release as people read it: in a language, or else in that of the publication."""
        return self.in_language(language or self.publication.language)

    def untranslated(self, language: str) -> list[str]:
        """Return the places of the specification whose texts do not exist in a language.

        Examples
        --------
        >>> import matrixdp as mdp
        >>> sex = {"categories": ["f", "m"], "title": {"en": "Sex", "fr": "Sexe"}, "note": "As registered"}
        >>> workload = mdp.Workload(mdp.Domain({"sex": sex, "age": 3}), mdp.marginals(1, title="Persons"))
        >>> release = mdp.select(workload).measure({"sex": ["f"], "age": [1]}, mdp.Budget(mu=1)).reconstruct()
        >>> release.untranslated("fr")
        ['workload[0].title', 'domain.sex.note', 'domain.age.title']
        """
        texts: list[tuple[Place, str]] = []
        texts += [(("publication", *place), text) for place, text in self.publication.texts()]
        for place, entry in enumerate(self.workload.entries):
            told = entry.texts() if isinstance(entry, Described) else ()
            texts += [(("workload", place, key), text) for key, text in told]
        for own in self.domain:
            known = {"title": own.name, **dict(own.codebook.texts())}
            texts += [(("domain", own.name, key), text) for key, text in known.items()]
        plain = {self.publication.language: ""}
        spoken = ((place, getattr(text, "languages", None) or plain) for place, text in texts)
        asked = language.partition("-")[0]
        lacking = (p for p, own in spoken if asked not in {name.partition("-")[0] for name in own})
        return [format_place(place) for place in lacking]

    def batches(
        self,
        groups: Sequence[Group],
        columns: AnswerColumns,
        seen: Callable[[int, Array], None] | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """Yield the answers to query groups, one group in memory at a time, or a slice of it.

        Groups come one after the other or, where the columns tell levels, all in one pass over slices.
        ``seen`` is called before the rows of each with the place of the group and its queries' variances.
        """
        passes = [tuple(groups)] if columns.at is not None else [(group,) for group in groups]
        before = 0
        for own in passes:
            found = self.measurement.estimates.batches(own)
            placed = ((before + place, first, some, known) for place, first, some, known in found)
            yield from self.rows_of(placed, columns, seen)
            before += len(own)

    def rows_of(
        self,
        batches: Iterable[Batch],
        columns: AnswerColumns,
        seen: Callable[[int, Array], None] | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """Yield rows with the estimates that batches have; see `batches`."""
        for place, first, asked, estimates in batches:
            variances = self.analysis.variances(asked)
            if seen is not None:
                seen(place, variances)
            multipliers = self.intervals.multipliers((1.0, asked, EVERY))
            yield from columns.batches(place, estimates, variances, multipliers, first)

    def _table(self, groups: Sequence[Group], levels: bool = True) -> pa.Table:
        rows = sum(group.queries for group in groups)
        if rows > MAX_TABLE_ROWS:
            raise TooLargeError(
                f"{rows} answers; a table in memory has at most {MAX_TABLE_ROWS}. Ask for a part of them "
                "with `answer`, or write them to disk"
            )
        columns = AnswerColumns(self.domain, groups, levels=levels, series=None if levels else self.series)
        with self._computing(groups):
            return pa.Table.from_batches(self.batches(groups, columns), schema=columns.schema)

    def _known(self, groups: Sequence[Group]) -> Sequence[Group]:
        """Return what is known of groups by now; all of them where nothing is, for the reason to be told."""
        if self.measurement.whole or self.series is None:
            return groups
        name, published = self.series
        size = self.domain[name].size
        known = [own for group in groups for own in group_through(group, name, published[-1], size)]
        return known or groups

    @staticmethod
    def _answered(inference: Inference, asked: Asked) -> Known:
        """Return the figures of a query group, a statistic or an expression of a SQL statement."""
        if isinstance(asked, StatisticEntry):
            table = asked.answer(inference)
            columns = [table[name].to_numpy() for name in FIGURES]
            warnings = table["warning"].to_pylist() if "warning" in table.column_names else []
            said = json.loads(table.schema.metadata[METADATA])
            note = said["intervals"]
            binning = table["binning"].to_pylist() if "binning" in table.column_names else []
            note = note.partition(";")[0] if binning else note
            if most := max(filter(None, binning), default=0.0):
                note += (
                    f"; it holds wherever in its bin a number lies, and an estimate may be off by {most:.4g}"
                )
            return Known(np.array(columns), note, warnings, said["measures"][""], said["within"][""])
        if not isinstance(asked, ProductGroup | DenseGroup):
            within = [end if math.isfinite(end) else None for end in asked.limits]
            return asked.known(inference)._replace(measures=asked.measures, within=within)
        return Known(inference.figures(asked), measures="records")

    @contextmanager
    def _computing(self, groups: Sequence[Group]) -> Iterator[None]:
        # many small products: several threads would spend their time waiting for one another
        with one_blas_thread(), advised(self.analysis, self.workload, groups):
            yield

    def _statistic(self, entry: StatisticEntry, confidence: float | None) -> ResultTable:
        return ResultTable(entry.answer(self.inference(confidence)))

    def _lines(self) -> tuple[str, str]:
        noise, workload = self.measurement.plan.noise, self.workload
        answers, groups = counted(workload.queries, "answer"), counted(len(workload), "group")
        budget = self.measurement.authorization.budget
        second = f"within {budget!r}" if self.measurement.private else NOT_PRIVATE
        return f"Release of {answers} in {groups}, {noise} noise", second

    def glance(self, most: int = MAX_ROWS) -> Preview:
        """Return the first rows of the first tables as readers see them, at most `most` of them."""
        tables, say = self.tables[:most], self.presentation.say
        rows = [row for one in tables for row in self._first(one, max(1, most // len(tables)))]
        heads = ("head_table", "records_with", "estimate")
        interval = say("interval", confidence=say.number(100 * self.confidence))
        columns = (*map(say, heads), interval, say(QUALITY))
        return Preview(columns, rows, sum(one.rows for one in self.tables), frozenset((2, 3, 4)))

    _preview = glance

    def _first(self, one: PublishedTable, number: int) -> Iterator[tuple[str, ...]]:
        """Yield the first rows of a table as readers see them; of a long or unknown one its title alone."""
        counts = one.group is not None
        try:
            table = None if counts and one.rows > _MOST_QUERIES else self.table(one).to_arrow()
        except MatrixDPError:
            table = None  # `answers` and `statistics` say why
        if table is None:
            words = counted(one.rows, "query", "queries") if counts else "not determined by the measurement"
            yield one.title, words, "-", "-", ""
            return
        shown = Shown(table, one.measures, self.presentation, number)
        assert shown.main is not None
        figures = shown.texts("estimate"), shown.main.intervals(), shown.main.letters
        for of, *texts in zip(shown.rows(), *figures, strict=True):
            yield one.title, row_in_words(of, shown.say("all")), *texts


# The folders of releases, as functions.


def load_release(out: str | os.PathLike[str], *, confidence: float | None = None) -> Release:
    """Return the release that a folder holds, ready for new queries; the data are not needed.

    The measurement is read if its digest is the one that the record lists. Whatever of the record follows
    from the measurement (the statement, the exact scales, the cost) must be what follows from it. Of a large
    one that is answered some areas at a time, that is its header, and noisy answers are checked when they are
    needed. Of files of answers for each level, those are checked that a question is answered from. Other
    answers are not read; `check_signature` and ``matrixdp verify`` check all files.

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
    written = read_folder(folder)
    with naming_later_versions(folder / RECORD, version_in(written)):
        measurement, workload = read_measurement(folder, written)
        said = written.get("answers")
        if isinstance(said, dict) and "levels_of" in said and levels_of(workload.domain, workload.groups):
            measurement = replace(measurement, answers=partial(Answered, folder, written, workload))
        stated, origin = float(written["confidence"]), written["strategy"]
        try:
            told = Publication.read(written.get("publication", {}))
            release = Release(measurement, workload, stated, origin, expected_in(written), publication=told)
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
        If the folder does not hold a whole release, or another one is taking its place.
    SignatureError
        If there is a signature already, or it cannot be written.
    """
    place = Path(folder)
    key = key if isinstance(key, SigningKey) else SigningKey.load(key)
    with folder_lock(place):  # what is checked is what is signed
        load_release(place)
        check_files(place, plain_content(place / RECORD))
        path = place / SIGNATURE
        if force:
            path.unlink(missing_ok=True)
        return write_signature(place, key)
