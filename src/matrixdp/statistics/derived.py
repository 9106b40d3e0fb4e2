"""The statistics of a release, as methods: those of one attribute."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa

from matrixdp.statistics import curves, means, quantiles, ranking
from matrixdp.statistics.compared import ComparedAnswers
from matrixdp.statistics.strata import By, Where

__all__ = ["DerivedStatistics"]


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
