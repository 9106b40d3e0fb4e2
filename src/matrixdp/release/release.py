"""A release: everything that follows from one measurement, free of further budget."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from matrixdp.answers.columns import AnswerColumns
from matrixdp.answers.estimated import Estimated
from matrixdp.answers.intervals import Intervals
from matrixdp.answers.questions import Question, covariance, question
from matrixdp.answers.refusals import advised, spread
from matrixdp.answers.tables import Tabulated
from matrixdp.domain import Domain
from matrixdp.errors import SpecificationError, TooLargeError, WorkloadError
from matrixdp.exact.threads import one_blas_thread
from matrixdp.forms import describe_value
from matrixdp.language import StatisticEntry
from matrixdp.measure import DEFAULT_MAX_RECORDS, Measurement, PrivacyStatement
from matrixdp.model.bridge import ToMbi
from matrixdp.model.making import Modelled
from matrixdp.pictures import Plotted
from matrixdp.plan import Analysis
from matrixdp.privacy import delta_warnings
from matrixdp.privacy.unit import MOST_RECORDS
from matrixdp.queries import Group, Workload
from matrixdp.release.glance import Glance
from matrixdp.release.kept import Kept
from matrixdp.release.origin import checked_origin
from matrixdp.release.results import Figures, result
from matrixdp.release.size import SizeCheck, check_size
from matrixdp.statements import read
from matrixdp.statistics import AskedStatistics, Inference, check_confidence

__all__ = ["MAX_TABLE_ROWS", "Release"]

Array = NDArray[np.float64]

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
