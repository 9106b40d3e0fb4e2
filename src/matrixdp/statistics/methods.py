"""The statistics of a release, as methods: those of one attribute."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from matrixdp.answers.questions import Question
from matrixdp.answers.table import joined
from matrixdp.errors import MatrixDPError
from matrixdp.language import StatisticEntry, Statistics
from matrixdp.statistics import comparisons, means, quantiles
from matrixdp.statistics import comparisons as combinations
from matrixdp.statistics import quantiles as curves
from matrixdp.statistics import quantiles as ranking
from matrixdp.statistics.comparisons import Terms
from matrixdp.statistics.strata import By, Inference, Where, said_of

# The statistics of a release, as methods: those that compare or combine its answers.


class ComparedAnswers(ABC):
    """Shares, ratios, differences and combinations of answers; see `DerivedStatistics`."""

    @abstractmethod
    def inference(self, confidence: float | None = None) -> Inference:
        """Return what statistics are derived from, for intervals of a confidence."""

    def share(
        self,
        entry: Question,
        *,
        of: Question | Iterable[str] | None = None,
        confidence: float | None = None,
    ) -> pa.Table:
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
        pyarrow.Table
            Columns: those of the entry's answers, ``stddev`` by the delta method, Fieller's ``lower`` and
            ``upper``, ``warning`` where the denominator is small. The interval holds the true share with the
            confidence whatever the denominator is; where that cannot be told from 0 the ends are null.

        Raises
        ------
        EntryError
            If an argument is wrong, at its name.
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
        return comparisons.share(self.inference(confidence), entry, of)

    def ratio(
        self, numerator: Question, denominator: Question, *, confidence: float | None = None
    ) -> pa.Table:
        """Return ratios of answers, query by query, or to a single one.

        Returns
        -------
        pyarrow.Table
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
        return comparisons.ratio(self.inference(confidence), numerator, denominator)

    def difference(self, left: Question, right: Question, *, confidence: float | None = None) -> pa.Table:
        """Return differences of answers, query by query, or to a single one.

        Both are of this release: their covariance is exact. Of two releases with noise of their own, the
        variances add up.

        Returns
        -------
        pyarrow.Table
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
        return comparisons.difference(self.inference(confidence), left, right)

    def combination(self, terms: Terms, *, confidence: float | None = None) -> pa.Table:
        """Return linear combinations of answers.

        Parameters
        ----------
        terms : list of pairs
            Coefficients and an entry of one group. Coefficients are a number for each query of the entry, or
            rows of them, one for each combination; of an entry of one query they may be a number.

        Returns
        -------
        pyarrow.Table
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
        return combinations.combination(self.inference(confidence), terms)

    def simultaneous(self, entry: Question, *, confidence: float | None = None) -> pa.Table:
        """Return answers with intervals that all hold together with the confidence.

        Returns
        -------
        pyarrow.Table
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
        return combinations.simultaneous(self.inference(confidence), entry)

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
        return comparisons.covariances(self.inference(), entry, other)


class DerivedStatistics(ComparedAnswers):
    """What follows from a release, with intervals from the exact covariances of its answers.

    All of it is free of further budget. ``by`` are attributes whose values are strata, or a mapping of
    attributes to predicate sets; ``where`` is a mapping of attributes to a value, a list of values or
    ``{"range": [first, last]}``. ``confidence`` is that of the release where it is left out. Tables have the
    columns of the strata, then what it is, then ``estimate``, ``stddev``, ``lower`` and ``upper``; what does
    not exist is null. Their schema's metadata says under ``matrixdp`` how the intervals are made.
    """

    def quantile(
        self,
        attribute: str,
        q: float | Iterable[float] = (0.25, 0.5, 0.75),
        *,
        by: By = (),
        where: Where = None,
        confidence: float | None = None,
    ) -> pa.Table:
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
        pyarrow.Table
            Columns: strata, ``quantile``, ``estimate``, ``stddev`` (null: there is none), ``lower``,
            ``upper``, ``warning``. Each interval holds the true quantile with the confidence, taken alone, in
            every table: with few records, with many on one value. In bins the estimate is interpolated, and
            the ends are ends of bins.

        Raises
        ------
        EntryError
            If an argument is wrong, at its name.
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
        return quantiles.quantile(self.inference(confidence), attribute, q, by, where)

    def cdf(
        self, attribute: str, *, by: By = (), where: Where = None, confidence: float | None = None
    ) -> pa.Table:
        """Return how many records, and what share of them, are at or below each value.

        Returns
        -------
        pyarrow.Table
            Columns: strata, the attribute's, ``estimate``, ``stddev``, ``lower``, ``upper`` of counts,
            ``share``, ``share_stddev``, ``share_lower``, ``share_upper``, ``warning``. The band of counts
            holds a whole curve with the confidence, and so does that of shares, each taken alone.

        Raises
        ------
        EntryError
            If an argument is wrong, at its name.
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
        return curves.cdf(self.inference(confidence), attribute, by, where)

    def mean(
        self, attribute: str, *, by: By = (), where: Where = None, confidence: float | None = None
    ) -> pa.Table:
        """Return means of a numeric attribute, bins by their middles.

        Returns
        -------
        pyarrow.Table
            Columns: strata, ``estimate``, ``stddev`` (of the noise alone, by the delta method), ``lower``,
            ``upper``, ``binning``, ``warning``. The interval is Fieller's, and holds wherever in their bins
            the numbers lie; ``binning`` is half of the widest bin, the most by which the mean of the middles
            is off. Where the number of records cannot be told from 0 the ends are null.

        Raises
        ------
        EntryError
            If an argument is wrong, at its name; a bin without an end is left out with ``where``.
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
        return means.mean(self.inference(confidence), attribute, by, where)

    def sum(
        self, attribute: str, *, by: By = (), where: Where = None, confidence: float | None = None
    ) -> pa.Table:
        """Return sums of a numeric attribute, bins by their middles.

        Returns
        -------
        pyarrow.Table
            Columns: strata, ``estimate``, ``stddev`` (of the noise alone), ``lower``, ``upper``, ``binning``.
            The interval holds wherever in their bins the numbers lie; ``binning`` estimates the most by which
            the sum of the middles is off.

        Raises
        ------
        EntryError
            If an argument is wrong, at its name; a bin without an end is left out with ``where``.
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
        return means.sum_of(self.inference(confidence), attribute, by, where)

    def top(
        self,
        attribute: str,
        k: int,
        *,
        by: By = (),
        where: Where = None,
        confidence: float | None = None,
    ) -> pa.Table:
        """Return the values of an attribute with the most records.

        Parameters
        ----------
        attribute : str
            The attribute, of any kind.
        k : int
            How many values.

        Returns
        -------
        pyarrow.Table
            Columns: strata, the attribute's, ``rank``, ``estimate``, ``stddev``, ``lower``, ``upper``,
            ``confidence``: that with which the set of values, in any order, is the right one; 0 says
            nothing. Intervals hold together for all values, so that they hold for those that were chosen.

        Raises
        ------
        EntryError
            If an argument is wrong, at its name.
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
        return ranking.top(self.inference(confidence), attribute, k, by, where)


# The statistics that a workload asks for, as a release has them.

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
    table : pyarrow.Table or None
        What follows; None where nothing does.
    refusal : MatrixDPError or None
        Why nothing follows.
    """

    name: str
    entry: StatisticEntry
    table: pa.Table | None
    refusal: MatrixDPError | None = None

    def as_dict(self, first_row: int) -> dict[str, Any]:
        """Return what the record of a release says of it, given the row of the file on which it begins."""
        said: dict[str, Any] = {"name": self.name, "statistic": self.entry.kind, "first_row": first_row}
        if self.table is None:
            return said | {"rows": 0, "note": str(self.refusal)}
        columns, intervals = self.table.column_names, said_of(self.table)["intervals"]
        return said | {"rows": self.table.num_rows, "columns": columns, "intervals": intervals}


class AskedStatistics(DerivedStatistics):
    """The statistics that the workload of a release asks for."""

    @cached_property
    def asked(self) -> tuple[AskedStatistic, ...]:
        """The statistics that the workload asks for, each with its table or why there is none."""
        return asked_statistics(self, self.inference().workload.entries)

    @property
    def statistics(self) -> Mapping[str, pa.Table]:
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
        return {one.name: one.table for one in self.asked}


def asked_statistics(release: Statistics, entries: Iterable[object]) -> tuple[AskedStatistic, ...]:
    """Return the statistics that are among the entries of a workload, in their order.

    What cannot be computed is kept with its reason: the measurement was paid for, whatever follows from it.
    """
    asked = [entry for entry in entries if isinstance(entry, StatisticEntry)]
    titles = {entry.title for entry in asked}
    seen: Counter[str] = Counter()
    found = []
    for entry in asked:
        seen[entry.title] += 1
        name = entry.title
        while seen[entry.title] > 1 and (name := f"{entry.title} ({seen[entry.title]})") in titles:
            seen[entry.title] += 1
        try:
            found.append(AskedStatistic(name, entry, entry.ask(release)))
        except MatrixDPError as error:
            found.append(AskedStatistic(name, entry, None, error))
    return tuple(found)


def statistics_table(asked: Sequence[AskedStatistic]) -> pa.Table:
    """Return all that follow in one table, which begins with the name of the statistic."""
    tables = [(one.name, one.table.replace_schema_metadata()) for one in asked if one.table is not None]
    return joined(tables, STATISTIC)
