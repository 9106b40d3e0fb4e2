"""The statistics of a release, as methods: those that compare or combine its answers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from matrixdp.answers.questions import Question
from matrixdp.statistics import combinations, comparisons
from matrixdp.statistics.combinations import Terms
from matrixdp.statistics.inference import Inference

__all__ = ["ComparedAnswers"]


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
