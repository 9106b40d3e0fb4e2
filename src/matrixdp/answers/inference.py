"""What follows from a measurement besides its answers: covariances, and tables of statistics with errors."""

from __future__ import annotations

import dataclasses
import itertools
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any, final

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike

from matrixdp.answers.intervals import Intervals
from matrixdp.answers.questions import Question, advised, embed
from matrixdp.answers.table import (
    FIGURE,
    FIGURES,
    OF,
    OWN,
    PUBLISHED,
    AnswerColumns,
    heading,
    is_key,
    joined,
    row_in_words,
)
from matrixdp.answers.titles import title, unique
from matrixdp.domain import Domain
from matrixdp.errors import MatrixDPError, SpecificationError
from matrixdp.exact.linear import Array
from matrixdp.exact.resources import one_blas_thread
from matrixdp.forms import describe_value
from matrixdp.language.periods import whole_workload
from matrixdp.measure.measurement import Measurement
from matrixdp.noise import Tails
from matrixdp.plans import Analysis
from matrixdp.queries import Entry, Group, Workload
from matrixdp.statistics import Column, StatisticEntry, statistic_of
from matrixdp.statistics.intervals import EVERY, Pairs, Ratios, Term, largest_of_normals, ratios
from matrixdp.statistics.statistic import METADATA as METADATA
from matrixdp.texts import ENGLISH, words_in

#: Of the probability that an interval of a ratio may miss, what is for its denominator alone.
_DENOMINATOR = 0.05

Terms = Iterable[tuple[ArrayLike, Question]]
"""Pairs of coefficients and an entry: a number, one for each query, or a row of them for each combination."""


def check_confidence(given: object) -> float:
    """Return a confidence, a number above 0 and below 1.

    Examples
    --------
    >>> check_confidence(0.9)
    0.9
    """
    if isinstance(given, bool) or not isinstance(given, int | float) or not 0 < given < 1:
        expected = "a number above 0 and below 1"
        raise SpecificationError.at(("confidence",), describe_value(given), expected, code="out-of-range")
    return float(given)


@final
@dataclass(frozen=True, eq=False)
class Inference:
    """Estimates of queries from one measurement, their covariances, and multiples of standard errors.

    Parameters
    ----------
    measurement : Measurement
        What was measured.
    workload : Workload
        What it was measured for.
    confidence : float
        Of intervals, above 0 and below 1.
    """

    measurement: Measurement
    workload: Workload
    confidence: float
    #: Of estimates that hold together, by their correlations.
    _multipliers: dict[bytes, float] = dataclasses.field(default_factory=dict, init=False)

    @property
    def domain(self) -> Domain:
        """The attributes."""
        return self.workload.domain

    @property
    def through(self) -> tuple[str, int] | None:
        """Of a series that goes on: its attribute, and how many periods are measured."""
        return None if self.measurement.whole else self.analysis.through

    @cached_property
    def as_if_ended(self) -> Inference:
        """The same of a series as if all periods were over; see `Measurement.as_if_ended`."""
        return Inference(self.measurement.as_if_ended, whole_workload(self.workload), self.confidence)

    @property
    def analysis(self) -> Analysis:
        """Variances and covariances at the noise that was added."""
        return self.measurement.analysis

    @property
    def tails(self) -> Tails:
        """How far the noise that was added stays from 0."""
        return self.measurement.tails

    @property
    def multiplier(self) -> float:
        """Standard errors from an estimate to the ends of its interval, enough for every combination."""
        return self.tails.largest_quantile(self.confidence)

    def joint_multiplier(self, count: int, *groups: Group) -> float:
        """Return the multiplier at which several intervals hold together, whatever their covariances.

        By the inequality of Sidak where all combinations are normal, else by that of Bonferroni. With
        ``groups``, as the measurement determines them, it is for their queries alone: for joint noise, whose
        tails are lighter than what is known of all combinations, the largest of their own.
        """
        if self.tails.stable:
            return self.tails.largest_quantile(self.confidence ** (1.0 / count))
        each = 1.0 - (1.0 - self.confidence) / count
        if not (self.tails.joint and groups):
            return self.tails.largest_quantile(each)
        own = Intervals(self.analysis, self.tails, each)
        return max(float(np.max(own.multipliers((1.0, group, EVERY)))) for group in groups)

    def multipliers(self, *terms: Term) -> float | Array:
        """Return standard errors to the ends of pointwise intervals of sums: exact where that is known."""
        return self._intervals.multipliers(*terms)

    def ratios(self, pairs: Pairs, tops: Sequence[Term], bottoms: Sequence[Term]) -> Ratios:
        """Return ratios of sums of queries, by the distribution of each N - t D where that is known.

        Parameters
        ----------
        pairs : Pairs
            Each numerator N beside its denominator D.
        tops, bottoms : sequence of Term
            What they are sums of; see `Intervals.multipliers`.
        """
        if self.tails.stable:
            return ratios(pairs, self.multiplier)
        shape, missed = np.broadcast(*pairs).shape, (1.0 - self.confidence) * _DENOMINATOR

        def of(quotients: Array) -> Array:
            beside = [(factor * -np.ravel(quotients), group, places) for factor, group, places in bottoms]
            return np.broadcast_to(self._beside_denominators.multipliers(*tops, *beside), shape)

        return ratios(pairs, self.multiplier, (self.tails.largest_quantile(1.0 - missed), of))

    @cached_property
    def _beside_denominators(self) -> Intervals:
        missed = (1.0 - self.confidence) * (1.0 - _DENOMINATOR)
        return Intervals(self.analysis, self.tails, 1.0 - missed)

    @cached_property
    def _intervals(self) -> Intervals:
        return Intervals(self.analysis, self.tails, self.confidence)

    def embed(self, group: Group) -> Group:
        """Return the group as the measurement determines it."""
        return embed(self.analysis, self.workload, group)

    def estimates(self, group: Group) -> Array:
        """Return the estimates of a group's queries."""
        return self.measurement.estimates.answers(group)

    def variances(self, group: Group) -> Array:
        """Return their variances."""
        return np.maximum(self.analysis.variances(group), 0.0)

    @contextmanager
    def computing(self, *groups: Group) -> Iterator[list[Group]]:
        """Compute what is asked of groups, as the measurement determines them; a refusal says what works."""
        # many small products: several threads would spend their time waiting for one another
        with one_blas_thread():
            used = [self.embed(group) for group in groups]
            with advised(self.analysis, self.workload, used):
                yield used

    def figures(self, group: Group) -> Array:
        """Return estimates, standard errors, lower and upper ends of intervals, shape (4, queries)."""
        with self.computing(group) as (used,):
            estimates, deviations = self.estimates(used), np.sqrt(self.variances(used))
            half = self.multipliers((1.0, used, EVERY)) * deviations
        return np.stack((estimates, deviations, estimates - half, estimates + half))

    def correlated_multiplier(self, covariance: Array) -> float:
        """Return standard errors from estimates to the ends of intervals that hold together.

        Parameters
        ----------
        covariance : ndarray, shape (queries, queries)
            Of the estimates.

        Notes
        -----
        For normal noise the quantile of the largest standardized error, by 20,000 draws of a fixed public
        seed from the known covariance: the order statistic that is not below the quantile with a probability
        of 0.999 over the seed. Never above the bound that holds for every covariance.
        """
        bound = self.joint_multiplier(len(covariance))
        if not self.tails.stable:
            return bound
        correlation = _correlation(covariance)
        key = np.round(correlation, 9).tobytes()
        if key not in self._multipliers:
            self._multipliers[key] = largest_of_normals(correlation, self.confidence)
        return min(bound, self._multipliers[key])

    def labels(
        self, groups: Sequence[Group], places: ArrayLike | None = None, group: bool = False
    ) -> pa.Table:
        """Return the columns that say what the queries of groups ask, or those of them at some places.

        ``group`` to have the column of the groups' names, too.
        """
        columns = AnswerColumns(self.domain, groups, levels=True)
        nothing = [np.zeros(own.queries) for own in groups]
        batches = [columns.batches(place, none, none, 0.0) for place, none in enumerate(nothing)]
        table = pa.Table.from_batches(itertools.chain(*batches), schema=columns.schema)
        table = table.drop_columns([*FIGURES] if group else ["group", *FIGURES])
        return table if places is None else table.take(pa.array(places))

    def words(self, group: Group) -> list[str]:
        """Return what the queries of a group ask, in words."""
        language, labels, words = self.domain.language, self.labels([group]), []
        say = ENGLISH if language is None else words_in(language)
        keys = [own for own in labels.schema if is_key(own)]
        heads = [own.name if language is None else heading(own, say) for own in keys]
        for row in labels.select([own.name for own in keys]).to_pylist() or [{}]:
            asked = zip(heads, row.values(), strict=False)
            words.append(row_in_words([own for own in asked if own[1] is not None], say("title_total")))
        return words

    def table(
        self, labels: pa.Table | Mapping[str, Any], columns: Sequence[Column], intervals: str, **said: object
    ) -> pa.Table:
        """Return the table of a statistic; what is not finite is null.

        Parameters
        ----------
        labels : Table or mapping of str to array
            The columns of what is asked about; where one has the name of a figure it gets the ending
            ``_attribute``.
        columns : sequence of Column
            The columns of the statistic. In the metadata of their fields, `FIGURE` says which of them are
            estimates, standard errors and ends of intervals, and `OF` of what.
        intervals : str
            How the intervals are made.
        **said
            What the metadata says besides, under the key `METADATA`.
        """
        if not isinstance(labels, pa.Table):
            told = pa.table(labels)
            labels = told.cast(pa.schema([field.with_metadata({OWN: b"1"}) for field in told.schema]))
        fields, arrays = [], list(labels.columns)
        figures = {column.name for column in columns}
        for field in labels.schema:
            own = field.name
            while own in figures or (own != field.name and own in labels.column_names):
                own += "_attribute"
            fields.append(field.with_name(own))
        for name, values, figure, of in columns:
            if isinstance(values, list):
                arrays.append(pa.array(values, pa.utf8()))
            else:
                arrays.append(pa.array(values, mask=~np.isfinite(values)))
            metadata = {FIGURE: figure.encode(), OF: of.encode()} if figure else {OWN: b"1"}
            fields.append(pa.field(name, arrays[-1].type, metadata=metadata))
        made = {"multiplier": self.multiplier, **said, "confidence": self.confidence, "intervals": intervals}
        return self.telling(pa.Table.from_arrays(arrays, schema=pa.schema(fields)), **made)

    def telling(self, table: pa.Table, **said: object) -> pa.Table:
        """Return a table whose metadata says something more under the key `METADATA`."""
        told = json.loads((table.schema.metadata or {}).get(METADATA, b"{}")) | said
        return table.replace_schema_metadata({METADATA: json.dumps(told).encode()})


def _correlation(covariance: Array) -> Array:
    """Return the correlations of those that vary."""
    deviations = np.sqrt(np.maximum(np.diagonal(covariance), 0.0))
    kept = deviations > deviations.max(initial=0.0) * 1e-12
    found = covariance[np.ix_(kept, kept)] / np.outer(deviations[kept], deviations[kept])
    return np.asarray((found + found.T) / 2.0)


# The statistics that a workload asks for.

#: What the column is called that says which statistic a row is of.
STATISTIC = "statistic"


@final
@dataclass(frozen=True, eq=False)
class AskedStatistic:
    """A statistic that a workload asks for.

    Attributes
    ----------
    name : str
        By the user, else what it asks; several alike have their number behind it.
    entry : StatisticEntry
        What was asked.
    place : int
        The place of its entry in the workload.
    inference : Inference
        What it follows from; nothing is computed before it is asked for.
    """

    name: str
    entry: StatisticEntry
    place: int
    inference: Inference

    @cached_property
    def _outcome(self) -> pa.Table | MatrixDPError:
        # one that cannot be computed is kept with its reason: the budget is already spent
        try:
            return self.entry.answer(self.inference)
        except MatrixDPError as error:
            return error

    @property
    def table(self) -> pa.Table | None:
        """What follows; None where nothing does."""
        return None if isinstance(self._outcome, MatrixDPError) else self._outcome

    @property
    def refusal(self) -> MatrixDPError | None:
        """Why nothing follows."""
        return self._outcome if isinstance(self._outcome, MatrixDPError) else None

    @property
    def published(self) -> pa.Table | None:
        """The table without the name of its one query group, which says nothing to a reader."""
        table = self.table
        if table is None or "group" not in table.column_names:
            return table
        return table if len(table.column("group").unique()) > 1 else table.drop_columns(["group"])

    def as_dict(self, first_row: int) -> dict[str, Any]:
        """Return what the record of a release says of it, given the row of the file on which it begins."""
        said: dict[str, Any] = {"name": self.name, "statistic": self.entry.kind, "first_row": first_row}
        if self.table is None:
            return said | {"rows": 0, "note": str(self.refusal)}
        made = json.loads(self.table.schema.metadata[METADATA])
        columns, rows = self.table.column_names, self.table.num_rows
        return said | {"rows": rows, "columns": columns, "intervals": made["intervals"]}


def asked_statistics(inference: Inference, entries: Iterable[Entry]) -> tuple[AskedStatistic, ...]:
    """Return the statistics that are among the entries of a workload, in their order.

    Of a series, those of which a row is known; their names are what they are when it ends.
    """
    return tuple(
        AskedStatistic(name, own, place, inference)
        for place, (name, own) in named_statistics(inference.domain, entries).items()
        if _any_known(own, inference)
    )


def named_statistics(domain: Domain, entries: Iterable[Entry]) -> dict[int, tuple[str, StatisticEntry]]:
    """Return the statistics that are among entries, by their places, each with its name."""
    asked = {place: own for place, entry in enumerate(entries) if (own := statistic_of(entry)) is not None}
    names = unique(own.called(domain, title) for own in asked.values())
    return {place: (name, own) for name, (place, own) in zip(names, asked.items(), strict=True)}


def _any_known(entry: StatisticEntry, inference: Inference) -> bool:
    """Return whether a row of a statistic is known by now."""
    if inference.through is None:
        return True
    name, periods = inference.through
    return bool((entry.known_after(inference.domain, inference.domain[name]) < periods).any())


def statistics_table(asked: Sequence[AskedStatistic]) -> pa.Table:
    """Return all that follow in one table, which begins with the name of the statistic.

    Of a series it says in a last column with which publication each row came.
    """
    tables = [(one.name, _dated(one, one.table)) for one in asked if one.table is not None]
    return joined(tables, STATISTIC)


def _dated(one: AskedStatistic, table: pa.Table) -> pa.Table:
    """Return the table of a statistic, of a series with the publication of each row."""
    table, periods = table.replace_schema_metadata(), one.inference.measurement.periods
    if periods is None:
        return table
    attribute = one.inference.domain[periods.attribute]
    known = one.entry.known_after(one.inference.domain, attribute)
    known = np.broadcast_to(known[known < periods.through], len(table))
    labels = [attribute.label(number - 1) for number in periods.published]
    came = [labels[place] for place in np.searchsorted(periods.published, known + 1)]
    names = [f"{PUBLISHED}_attribute" if name == PUBLISHED else name for name in table.column_names]
    return table.rename_columns(names).append_column(PUBLISHED, pa.array(came, pa.utf8()))
