"""The ends of intervals: how many standard deviations they lie from the estimates."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from matrixdp.answers.table import BOUND, REMARKS, figure_of, subject_of
from matrixdp.errors import TooLargeError
from matrixdp.noise import Noise
from matrixdp.plan import Analysis
from matrixdp.queries import Group
from matrixdp.texts import ENGLISH, Words

Array = NDArray[np.float64]

#: Groups of more queries, or of more coefficients altogether, get the bound that holds for all combinations.
MAX_EXACT_QUERIES = 2_000
_MAX_COEFFICIENTS = 4_000_000
#: Beyond it distributions are not inverted: a bound that holds for all is taken.
_MOST_CONFIDENCE = 1.0 - 1e-6
#: Distributions that are inverted for a group at most, and terms of one.
_MAX_DISTINCT = 64
_MAX_TERMS = 128
#: Distributions that are inverted for all groups of a release together.
_MAX_INVERSIONS = 500


@dataclass(eq=False)
class Intervals:
    """Multipliers of standard deviations for pointwise intervals, at the noise that was really added.

    ``bounded`` says whether some group so far got the bound in the place of its exact distribution.
    """

    analysis: Analysis
    noise: Noise
    confidence: float
    bounded: bool = field(default=False, init=False)
    _known: dict[bytes, float] = field(default_factory=dict, init=False)

    @property
    def description(self) -> str:
        """How intervals are made, in words."""
        return self.described(ENGLISH)

    def described(self, say: Words) -> str:
        """Return how intervals are made, in words of a language."""
        text, noise = say("pointwise"), self.noise
        if noise.stable:
            return text
        deviations = f"{noise.largest_quantile(self.confidence):.4f}"
        told = {"queries": MAX_EXACT_QUERIES, "noise": noise.title, "deviations": deviations}
        return say("pointwise_mixed", pointwise=text, **told)

    @property
    def alone(self) -> float:
        """How many standard deviations the ends lie from one noisy count by itself."""
        largest = self.noise.largest_quantile(self.confidence)
        if self.noise.stable or self.confidence > _MOST_CONFIDENCE:
            return largest
        found = self.noise.combination_quantiles(np.ones((1, 1)), self.confidence)
        return largest if found is None else float(found[0])

    def multipliers(self, group: Group) -> float | Array:
        """Return how many standard deviations the ends lie from the estimates, for all queries or each.

        The quantile of the distribution that the answer's noise really has, or a bound on it.
        """
        if self.noise.stable:
            return self.noise.largest_quantile(self.confidence)
        # a series grows beyond the limits of exact distributions, and its intervals may not change
        exact = None if self.analysis.through is not None else self._exact(group)
        self.bounded |= exact is None
        return self.noise.largest_quantile(self.confidence) if exact is None else exact

    def _exact(self, group: Group) -> Array | None:
        """Return the quantiles of the answers' own distributions, or None where they are too many."""
        shares = self._shares(group)
        if shares is None or self.confidence > _MOST_CONFIDENCE:
            return None
        distinct, inverse = np.unique(np.round(shares, 9), axis=0, return_inverse=True)
        new = [row for row in distinct if row.tobytes() not in self._known]
        if len(distinct) > _MAX_DISTINCT or len(self._known) + len(new) > _MAX_INVERSIONS:
            return None
        if new:
            # rounding to 9 digits moves quantiles less than they are rounded outward
            block = np.array(new)
            found = self.noise.combination_quantiles(
                block / block.sum(axis=1, keepdims=True), self.confidence
            )
            if found is None:
                return None
            self._known |= {row.tobytes(): float(q) for row, q in zip(new, found, strict=True)}
        return np.array([self._known[row.tobytes()] for row in distinct])[inverse.ravel()]

    def _shares(self, group: Group) -> Array | None:
        """Return the sorted shares of the noise terms in every query's variance, or None if too many."""
        cells = math.prod(group.sizes)
        if group.queries > MAX_EXACT_QUERIES or group.queries * cells > _MAX_COEFFICIENTS:
            return None
        try:
            combined = self.analysis.noise_terms(group, _MAX_COEFFICIENTS)
        except TooLargeError:
            return None
        if combined is None or combined.size > _MAX_COEFFICIENTS:
            return None
        total = combined.sum(axis=1, keepdims=True)
        shares = -np.sort(-combined / np.where(total > 0, total, 1.0), axis=1)
        shares[total[:, 0] <= 0, 0] = 1.0  # a query that is zero has no noise
        used = int((shares > 1e-9).any(axis=0).sum())
        return None if used > _MAX_TERMS else np.ascontiguousarray(shares[:, :used])


# Figures with the digits that their errors justify.

_ROUNDED: dict[str, Callable[[Array], Array]] = {
    "estimate": np.rint, "stddev": np.rint, "lower": np.floor, "upper": np.ceil,
}  # fmt: skip


def decimals_of(least: float) -> int | None:
    """Return how many digits behind the point a table needs, given its least standard error.

    Two significant digits of the standard error: rounding an estimate so adds at most a thousandth to its
    variance. Negative where digits before the point say nothing; None where there is no error.

    Examples
    --------
    >>> [decimals_of(stddev) for stddev in (0.034, 1.5, 12.3, 99.6, 4_321.0, 0.0)]
    [3, 1, 0, 0, -2, None]
    """
    return None if not 0 < least < math.inf else 1 - math.floor(math.log10(least))


def least_error(table: pa.Table) -> float:
    """Return the least standard error above 0 in a table, infinite where there is none."""
    columns = (
        c.to_numpy() for f, c in zip(table.schema, table.columns, strict=True) if figure_of(f) == "stddev"
    )
    return float(min((values[values > 0].min(initial=np.inf) for values in columns), default=np.inf))


def decimals_by_subject(table: pa.Table) -> dict[str, int | None]:
    """Return how many digits behind the point the figures of a statistic need, by what they are of.

    Counts and shares of a CDF have digits of their own. Figures without a standard error, such as quantiles,
    have those that half of their shortest interval justifies.

    Examples
    --------
    >>> decimals_by_subject(pa.table({"estimate": [44.9713], "stddev": [0.00234]}))
    {'': 4}
    """
    least: dict[str, dict[str, Array]] = {}
    for shown, column in zip(table.schema, table.columns, strict=True):
        if figure := figure_of(shown):
            numeric = pa.types.is_floating(column.type)
            least.setdefault(subject_of(shown), {})[figure] = column.to_numpy() if numeric else np.empty(0)
    found: dict[str, int | None] = {}
    for subject, figures in least.items():
        errors = figures.get("stddev", np.empty(0))
        if not (errors > 0).any() and "lower" in figures:
            errors = (figures["upper"] - figures["lower"]) / 2
        found[subject] = decimals_of(float(errors[errors > 0].min(initial=np.inf)))
        if "stddev" in figures and not np.isfinite(figures["stddev"]).any():
            known = np.concatenate([own[np.isfinite(own)] for own in figures.values()])
            if (known == np.rint(known)).all():
                found[subject] = 0  # quantiles of whole numbers are whole
    return found


def for_people(table: pa.Table, decimals: int | Mapping[str, int | None] | None) -> pa.Table:
    """Return a table with rounded figures, plain texts, and nothing where bins are open.

    Estimates and standard errors are rounded to the nearest, ends of intervals outward, so that the intervals
    hold what they did. Digits may differ by what figures are of; see `decimals_by_subject`.

    Examples
    --------
    >>> table = pa.table({"estimate": [10.26], "stddev": [1.46], "lower": [7.41], "upper": [13.11]})
    >>> for_people(table, 0).to_pylist()
    [{'estimate': 10.0, 'stddev': 1.0, 'lower': 7.0, 'upper': 14.0}]
    """
    fields, columns = [], []
    for shown, column in zip(table.schema, table.columns, strict=True):
        figure = figure_of(shown)
        if figure and pa.types.is_floating(shown.type):
            own = decimals[subject_of(shown)] if isinstance(decimals, Mapping) else decimals
            made = pa.array(directed(column.to_numpy(), figure, own), from_pandas=True)
        elif pa.types.is_dictionary(shown.type):
            made = column.cast(pa.utf8())
        elif shown.name in REMARKS and pa.types.is_floating(shown.type):
            made = pa.array(
                [None if value is None else float(f"{value:.4g}") for value in column.to_pylist()]
            )
        elif BOUND in (shown.metadata or {}) and pa.types.is_floating(shown.type):
            values = column.to_numpy()
            made = pa.array(values, mask=~np.isfinite(values))
        else:
            made = column
        fields.append(pa.field(shown.name, made.type, metadata=shown.metadata))
        columns.append(made)
    return pa.Table.from_arrays(columns, schema=pa.schema(fields, metadata=table.schema.metadata))


def directed(values: Array, figure: str, decimals: int | None) -> Array:
    """Return rounded figures: ends of intervals outward, so that they hold what they did.

    Examples
    --------
    >>> directed(np.array([10.26]), "lower", 1), directed(np.array([7410.0]), "estimate", -2)
    (array([10.2]), array([7400.]))
    """
    if decimals is None:
        return values
    towards, scale = _ROUNDED[figure], 10.0 ** abs(decimals)
    made = towards(values * scale) / scale if decimals > 0 else towards(values / scale) * scale
    return np.asarray(made + 0)  # for there to be no -0
