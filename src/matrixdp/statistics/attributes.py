"""Statistics of one attribute: quantiles, CDF, mean, sum, and the most frequent values."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from numbers import Real
from typing import TYPE_CHECKING, Any, final

import numpy as np

from matrixdp import forms
from matrixdp.domain import Amount, Attribute, Dates, Domain
from matrixdp.errors import EntryError, UnsupportedQueryError, within
from matrixdp.forms import key, record
from matrixdp.language.entries import entry_form
from matrixdp.queries import Identity, Labelled, Matrix, Predicates, ProductGroup, Sets
from matrixdp.queries.predicates import Array
from matrixdp.queries.workload import FigureTarget, Precision
from matrixdp.statistics import statistic as shared
from matrixdp.statistics.intervals import (
    EVERY,
    UNBOUNDED,
    Pairs,
    Ratios,
    invert,
    ratios,
    set_confidence,
)
from matrixdp.statistics.statistic import (
    ATTRIBUTE,
    SQUARED,
    Codes,
    Column,
    OfAttribute,
    Strata,
    Table,
    figures,
    values_of,
)
from matrixdp.texts import ENGLISH, Words

if TYPE_CHECKING:
    from matrixdp.answers.inference import Inference

# Quantiles, with intervals that hold whatever the table.

QUARTILES = (0.25, 0.5, 0.75)
"""The default quantiles."""
_NO_RECORDS, ALL_VALUES, _OPEN = map(ENGLISH, ("warning_none", "warning_all", "warning_open"))


def _between(written: object) -> float | None:
    if isinstance(written, bool) or not isinstance(written, Real):
        return None
    return float(written) if 0 < float(written) < 1 else None


_SHARE = forms.Accepted(
    "a number above 0 and below 1",
    _between,
    {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1},
)
_SHARES: forms.Form[tuple[float, ...]] = forms.AnyOf(
    ((lambda value: isinstance(value, forms.LISTS), forms.ListOf(_SHARE, _SHARE.expected, least=1)),),
    forms.Unbracketed(_SHARE),
)
_QUANTILES = shared.OfOne(_SHARES, "{age: [0.25, 0.5, 0.75]}", QUARTILES)


@entry_form
@record
class QuantileEntry(OfAttribute):
    """Quantiles of a numeric attribute."""

    asked: Mapping[str, tuple[float, ...]] = key(_QUANTILES, name="quantile")

    @property
    def kind(self) -> str:
        """The name of the statistic, whichever of its two keys it was written under."""
        return "quantile"

    @property
    def attribute(self) -> str:
        return next(iter(self.asked))

    @property
    def measures(self) -> str:
        return values_of(self.attribute)

    def headed(self, attribute: str, say: Words) -> str:
        shares = self.asked[self.attribute]
        kind = {(0.5,): "median", QUARTILES: "quartiles"}.get(shares, "quantiles")
        listed = "" if kind != "quantiles" else f" ({', '.join(f'{share:g}' for share in shares)})"
        return say("statistic_of", statistic=say(kind), attribute=attribute) + listed

    def to_spec(self, write_array: forms.WriteArray = forms.as_lists) -> dict[str, object]:
        """Return the entry as it is written under `quantile`."""
        spec = super().to_spec(write_array)
        return {"quantile": spec.pop(self.main_key())} | spec

    def rows_of_each(self, strata: Strata) -> int:
        return len(self.asked[self.attribute])

    def evaluate(self, inference: Inference) -> Table:
        orders = self.asked[self.attribute]
        strata = self.strata(inference.domain)
        self.needed(strata)
        lows, highs, dates = _ends(strata.attribute, strata.codes)
        found = []
        for order in orders:
            group = strata.group(np.tri(len(strata.codes)) - order)
            estimates, variances = strata.known(inference, group)
            triples = zip(estimates, np.sqrt(variances), strata.multipliers(inference, group), strict=True)
            found.append([invert(own, error, order, multiplier) for own, error, multiplier in triples])
        rows = [_value(lows, highs, *row) for stratum in zip(*found, strict=True) for row in stratum]
        estimate, low, high = np.array([row[:3] for row in rows]).T
        if dates:
            estimate, low, high = _days(np.floor(estimate)), _days(low), _days(high)
        columns = [
            Column("quantile", np.array(orders * strata.count)),
            *figures(estimate, np.full(len(rows), np.nan), low, high),
            Column("warning", [row[3] for row in rows]),
        ]
        intervals = (
            "pointwise: each holds the true quantile with this confidence, taken alone, whatever the table; "
            "of bins and dates the ends are those of the values"
        )
        return strata.table(inference, columns, intervals)


@final
@entry_form
@record
class QuantilesEntry(QuantileEntry):
    """Quantiles of a numeric attribute; the same as `quantile`."""

    asked: Mapping[str, tuple[float, ...]] = key(_QUANTILES, name="quantiles")


def _value(
    lows: Array, highs: Array, place: int | None, share: float, first: int, last: int
) -> tuple[float, float, float, str | None]:
    """Return a quantile with the ends of its interval, and what there is to warn of."""
    lower, upper = float(lows[first]), float(highs[last])
    if place is None:
        return np.nan, lower, upper, _NO_RECORDS
    low, high = float(lows[place]), float(highs[place])
    value = low + share * (high - low) if np.isfinite(high - low) else (high if np.isinf(low) else low)
    warning = None if np.isfinite(high - low) else _OPEN
    if first == 0 and last == len(lows) - 1 > 0:
        warning = ALL_VALUES
    return (value if np.isfinite(value) else np.nan), lower, upper, warning


def _ends(attribute: Attribute, codes: Codes) -> tuple[Array, Array, bool]:
    """Return the least and the largest number of each value, of dates in days, and whether they are dates.

    Ends may be infinite; those of integers are equal.

    Examples
    --------
    >>> from matrixdp.domain import Bins
    >>> _ends(Bins("income", (0, 10, 50)), (0, 1))
    (array([ 0., 10.]), array([10., 50.]), False)
    """
    ends = attribute.ends
    assert ends is not None, "what has an order has ends"
    places = list(codes)
    # days are counted from 1970-01-01 by NumPy
    return ends.low[places].astype(float), ends.high[places].astype(float), ends.low.dtype.kind == "M"


def _days(numbers: Array) -> Any:
    finite = np.isfinite(numbers)
    days = np.where(finite, numbers, 0).astype("datetime64[D]")
    return np.where(finite, days, np.datetime64("NaT"))


# CDFs: cumulative counts and shares, each with a band that holds for a whole curve.

#: Strata and values of each up to which the correlations of a curve are computed.
_MOST_STRATA, _MOST_VALUES = 32, 500


@final
@entry_form
@record
class CdfEntry(OfAttribute):
    """How many records, and which share of them, are at most each value of a numeric attribute."""

    direct = True

    attribute: str = key(ATTRIBUTE, name="cdf")

    def headed(self, attribute: str, say: Words) -> str:
        return say("statistic_of", statistic=say("cdf"), attribute=attribute)

    def rows_of_each(self, strata: Strata) -> int:
        return len(strata.codes)

    def evaluate(self, inference: Inference) -> Table:
        strata = self.strata(inference.domain)
        [prefixes] = self.needed(strata)
        assert prefixes is not None
        count = len(strata.codes)
        counts, variances = strata.known(inference, strata.product(prefixes))
        with_all = strata.with_records(inference, np.tri(count))
        with_all[:, -1] = variances[:, -1]  # the last share is 1, without rounding
        bound = inference.joint_multiplier(count)
        own = inference.joint_multiplier(count, inference.embed(strata.product(prefixes)))
        multipliers = np.full(strata.count, own)
        if inference.tails.stable and strata.count <= _MOST_STRATA and count <= _MOST_VALUES:
            for place, covariance in enumerate(strata.covariances(inference, prefixes)):
                multipliers[place] = inference.correlated_multiplier(covariance)
        shares = ratios(Pairs(counts, counts[:, -1:], variances, variances[:, -1:], with_all), bound)
        columns = [
            *shared.symmetric(counts, np.sqrt(variances), multipliers[:, None]),
            *shares.columns(of="share"),
        ]
        places = np.tile(np.arange(count), (strata.count, 1))
        intervals = "bands: each holds the whole curve of its stratum with this confidence, taken alone"
        return strata.table(inference, columns, intervals, prefixes, places, multiplier=bound)


# Sums and means of numbers, with the error of binning in their intervals.

_BINNING = (
    "; it holds wherever in its bin a number lies, by the ends of the bins; `binning` is the most by which "
)


@record
class _OfNumbers(OfAttribute):
    """A statistic of the numbers that values stand for, bins by their middles; of amounts it is exact."""

    amounts = True

    @property
    def measures(self) -> str:
        return values_of(self.attribute)

    def ends(self, domain: Domain) -> tuple[float, float]:
        """Return the least and the largest of the numbers."""
        attribute = domain[self.attribute]
        lows, _, highs = self.numbers(attribute, self.strata(domain).codes)
        return float(lows.min()), float(highs.max())

    def scale(self, needed: Predicates, size: int) -> float:
        """Return the weight that makes a sum as large as a count."""
        largest = float(np.abs(needed.rows(size)).max())
        return 1.0 / largest**2 if largest > 0 else 1.0

    def numbers(self, attribute: Attribute, codes: Codes) -> Array:
        """Return the least number, the middle and the largest of each value, shape (3, values).

        Raises
        ------
        EntryError
            If the values are no numbers, or a bin has no end.
        """
        lows, highs, _ = _ends(attribute, codes)
        found, expected = "", ""
        if isinstance(attribute, Dates) and attribute.by != "hour":
            found = "whose values are dates"
            expected = (
                "numbers: an attribute given by min and max, edges, bins or a size; `quantile` takes dates"
            )
        elif not (np.isfinite(lows).all() and np.isfinite(highs).all()):
            found = "of which a bin has no end"
            expected = "bins with two ends; leave the open one out with `where`, or ask for a `quantile`"
        if found:
            raise EntryError.at((), f"{attribute.name!r}, {found}", expected, code="wrong-kind")
        return np.array([lows, (lows + highs) / 2, highs])

    def binning(self, strata: Strata, most: Array) -> list[Column]:
        """Return the column with the most by which bins make estimates wrong; none of amounts."""
        return [] if strata.attribute.divided else [Column("binning", most)]

    def table(
        self, inference: Inference, strata: Strata, columns: list[Column], intervals: str, off: str
    ) -> Table:
        """Return the table of figures, with the error of binning or how the numbers of an amount count."""
        if isinstance(strata.attribute, Amount):
            exact = f"{intervals}; exact, without bins: a number {strata.attribute.meaning}"
            return strata.table(inference, columns, exact)
        return strata.table(inference, columns, f"{intervals}{_BINNING}{off}" if off else intervals)

    def sums(self, attribute: Attribute, codes: Codes, middle: float, said: str) -> Predicates:
        """Return the sum of how far values lie from a number; of bins by their middles, and by either end."""
        lows, middles, highs = self.numbers(attribute, codes)
        listed = {said: middles}
        if (lows < highs).any():
            listed |= {f"{said}, by lower ends": lows, f"{said}, by upper ends": highs}
        rows = np.zeros((len(listed), attribute.size))
        rows[:, list(codes)] = np.array(list(listed.values())) - middle
        return Labelled(Matrix(rows), tuple(listed))

    def determined(self, inference: Inference, strata: Strata) -> Array:
        """Return `numbers`; bins of different widths are all as wide as the widest where no more is known.

        The sum of the middles and the number of records may have been measured, and nothing else.
        """
        with within(self.main_key(), self.attribute):
            lows, middles, highs = self.numbers(strata.attribute, strata.codes)
        try:
            inference.analysis.check_support(inference.embed(strata.group(lows[None, :])))
        except UnsupportedQueryError:
            half = float((highs - lows).max()) / 2
            lows, highs = middles - half, middles + half
        return np.array([lows, middles, highs])


@final
@entry_form
@record
class MeanEntry(_OfNumbers):
    """The mean of an attribute of numbers, by the middles of bins."""

    attribute: str = key(ATTRIBUTE, name="mean")

    def limits(self, domain: Domain) -> tuple[float, float]:
        return self.ends(domain)

    def needs(self, attribute: Attribute, codes: Codes) -> list[Predicates | None]:
        """Return how far the values lie from the middle of the domain, summed; and the count.

        The error of a mean m is that of sum(x) - m count, and so at most that of sum(x - c) plus |m - c|
        times that of the count: with c in the middle of the domain neither outweighs the other.
        """
        middle = _middle(self.numbers(attribute, codes))
        away = self.sums(attribute, codes, middle, f"sum of {attribute.name} less {middle:g}")
        count = None if len(codes) == attribute.size else Labelled(Sets((codes,)), ("records",))
        return [away, count]

    def precision(self, domain: Domain, target: FigureTarget) -> Precision:
        """Return bounds on the errors of sums of x - m, which over n are those of means m of n records.

        They are convex in m, so that those at both ends of what a mean can be hold for all between.
        """
        strata = self.strata(domain)
        (_, numbers, _), records = self.numbers(strata.attribute, strata.codes), target.of.records_above
        middle, (least, most) = _middle(self.numbers(strata.attribute, strata.codes)), self.ends(domain)
        if target.cv is not None:
            least = max(least, target.of.mean_above or 0.0)
            if not 0.0 < least < most:
                expected = f"a number above 0 and below {most:g}, which means are at least; or stddev, not cv"
                raise EntryError.at(
                    ("for", "mean_above"), f"means of {least:g}", expected, code="out-of-range"
                )
        limits = {m: target.most * records * (1.0 if target.cv is None else m) for m in (least, most)}

        def less(value: float) -> ProductGroup:
            whole = np.zeros((1, strata.attribute.size))
            whole[0, list(strata.codes)] = numbers - value
            return strata.product(Labelled(Matrix(whole), (f"sum of {self.attribute} less {value:g}",)))

        return Precision(
            less(middle),
            strata.product(self.needed(strata)[1]),
            tuple((m - middle, limit) for m, limit in limits.items()),
            tuple((less(m), limit) for m, limit in limits.items()),
        )

    def evaluate(self, inference: Inference) -> Table:
        strata = self.strata(inference.domain)
        numbers = self.determined(inference, strata)
        middle = _middle(numbers)
        rows = np.vstack([numbers - middle, np.ones(len(strata.codes))])
        group = strata.group(rows)
        estimates, variances = (own.T for own in strata.known(inference, group))
        covariances = strata.with_records(inference, rows[:3]).T
        used, places = inference.embed(group), strata.places(group).T
        below, means, above = (
            inference.ratios(
                Pairs(estimates[row], estimates[3], variances[row], variances[3], covariances[row]),
                [(1.0, used, places[row])],
                [(1.0, used, places[3])],
            )
            for row in range(3)
        )
        # a number of records below 0 is as good as none
        deviations, lower, upper = (
            np.where(estimates[3] > 0, own, np.nan)
            for own in (means.deviations, below.lower + middle, above.upper + middle)
        )
        pairs = zip(means.warnings, estimates[3], strict=True)
        columns = [
            *figures(means.estimates + middle, deviations, lower, upper),
            *self.binning(strata, np.full(strata.count, (numbers[2] - numbers[0]).max() / 2)),
            Column("warning", [text if count > 0 else UNBOUNDED for text, count in pairs]),
        ]
        return self.table(inference, strata, columns, "Fieller's, pointwise", "the estimate may be off")


def _middle(numbers: Array) -> float:
    return float(numbers[0, 0] + numbers[2, -1]) / 2


@final
@entry_form
@record
class SumEntry(_OfNumbers):
    """The sum of an attribute of numbers, by the middles of bins."""

    direct = True

    attribute: str = key(ATTRIBUTE, name="sum")

    def limits(self, domain: Domain) -> tuple[float, float]:
        least, most = self.ends(domain)
        return (0.0 if least >= 0 else -math.inf), (0.0 if most <= 0 else math.inf)

    def needs(self, attribute: Attribute, codes: Codes) -> list[Predicates | None]:
        """Return the sum of the values, and what it is if all of a bin lie at one of its ends."""
        return [self.sums(attribute, codes, 0.0, f"sum of {attribute.name}")]

    def evaluate(self, inference: Inference) -> Table:
        strata = self.strata(inference.domain)
        groups = [strata.group(rows[None, :]) for rows in self.determined(inference, strata)]
        with inference.computing(*groups) as used:
            below, middle, above = (inference.estimates(group) for group in used)
            deviations = [np.sqrt(inference.variances(group)) for group in used]
            pairs = zip(used, deviations, strict=True)
            widths = [inference.multipliers((1.0, group, EVERY)) * own for group, own in pairs]
        columns = [
            *figures(middle, deviations[1], below - widths[0], above + widths[2]),
            *self.binning(strata, np.maximum(above - below, 0.0) / 2.0),
        ]
        return self.table(inference, strata, columns, "pointwise", "the estimate would be off, as estimated")


@final
@entry_form
@record
class VarianceEntry(_OfNumbers):
    """The variance of an attribute of numbers: the mean of squared distances from the mean."""

    attribute: str = key(ATTRIBUTE, name="variance")

    def limits(self, domain: Domain) -> tuple[float, float]:
        least, most = self.ends(domain)
        return 0.0, (most - least) ** 2 / 4

    @property
    def measures(self) -> str:
        return f"{values_of(self.attribute)}{SQUARED}"

    def needs(self, attribute: Attribute, codes: Codes) -> list[Predicates | None]:
        """Return the sums of distances from the middle, and of their squares, and the count."""
        middle, half, known = self._rows(attribute, codes)
        whole = np.zeros((2, attribute.size))
        whole[:, list(codes)] = known
        less = f"({attribute.name} less {middle:g}) / {half:g}"
        rows = zip(_OF, whole, strict=True)
        made = [Labelled(Matrix(row[None, :]), (f"sum of {of}{less}",)) for of, row in rows]
        count = None if len(codes) == attribute.size else Labelled(Sets((codes,)), ("records",))
        return [*made, count]

    def _rows(self, attribute: Attribute, codes: Codes) -> tuple[float, float, Array]:
        """Return the middle, how far the ends are from it, and what values add to two sums.

        Those of distances from the middle, in units of that of the ends, and of their squares.
        """
        numbers = self.numbers(attribute, codes)
        if attribute.divided and not getattr(attribute, "squares", False):
            found = f"the amount {attribute.name!r} without squares"
            raise EntryError.at((), found, "`squares: true` beside `amount` in the domain", code="wrong-kind")
        if (numbers[0] < numbers[2]).any():
            expected = "numbers: an attribute given by min and max, or by `amount` with `squares: true`"
            raise EntryError.at((), f"{attribute.name!r}, which has bins", expected, code="wrong-kind")
        middle = _middle(numbers)
        half = float(np.abs(numbers[1] - middle).max()) or 1.0
        away = (numbers[1] - middle) / half
        # the squares of an amount are divided like its records: by the products of the distances of the ends
        squares = (
            np.array([away[0] ** 2, away[0] * away[-1], away[-1] ** 2]) if attribute.divided else away**2
        )
        return middle, half, np.array([away, squares])

    def evaluate(self, inference: Inference) -> Table:
        strata = self.strata(inference.domain)
        with within(self.main_key(), self.attribute):
            _, half, rows = self._rows(strata.attribute, strata.codes)
        whole = np.zeros((3, strata.attribute.size))
        whole[:, list(strata.codes)] = np.vstack([rows, np.ones(len(strata.codes))])
        estimates, variances = strata.known(inference, strata.product(Matrix(whole)))
        bound = inference.joint_multiplier(2)
        found, warnings = [], []
        covariances = strata.covariances(inference, Matrix(whole))
        for known, spread, covariance in zip(estimates, variances, covariances, strict=True):
            pairs = Pairs(known[:2], known[2:], spread[:2], spread[2:], covariance[:2, 2])
            means = ratios(pairs, bound)
            found.append(_variance(means, float(known[2]), covariance))
            warnings.append(means.warnings[0] if known[2] > 0 else UNBOUNDED)
        columns = [*figures(*np.array(found).T * half**2), Column("warning", warnings)]
        return self.table(inference, strata, columns, "pointwise, from those of two means", "")


_OF = ("", "squares of ")


def _variance(means: Ratios, count: float, covariance: Array) -> tuple[float, float, float, float]:
    """Return a variance, its standard error by the delta method, and the ends of its interval.

    It is the mean of squares less the square of the mean, and lies between what their intervals allow.
    """
    (away, squared), (low, least), (high, most) = means.estimates, means.lower, means.upper
    slopes = np.array([-2.0 * away, 1.0, 2.0 * away**2 - squared]) / (count if count > 0 else np.nan)
    farthest, nearest = max(abs(low), abs(high)), 0.0 if low <= 0 <= high else min(abs(low), abs(high))
    ends = (max(least - farthest**2, 0.0), most - nearest**2) if count > 0 else (np.nan, np.nan)
    deviation = math.sqrt(slopes @ covariance @ slopes) if math.isfinite(sum(ends)) else np.nan
    return squared - away**2, deviation, *ends


# The values of an attribute with the most records, and the confidence that the set of them is right.

_MANY = forms.whole("a number of values, an integer of at least 1", least=1)


@final
@entry_form
@record
class TopEntry(OfAttribute):
    """The values of an attribute that most records have."""

    direct = True

    top: Mapping[str, int] = key(shared.OfOne(_MANY, "{city: 10}"))

    ordered = False

    @property
    def attribute(self) -> str:
        return next(iter(self.top))

    def strata(self, domain: Domain) -> Strata:
        """Return the values that have a place: that of all values which a discovery did not find has none."""
        strata = super().strata(domain)
        if self.attribute in self.where:
            return strata
        rest = strata.attribute.rest_code
        return replace(strata, codes=tuple(code for code in strata.codes if code != rest))

    def headed(self, attribute: str, say: Words) -> str:
        kind = f"{say('top')} {self.top[self.attribute]}"
        return say("statistic_of", statistic=kind, attribute=attribute)

    def needs(self, attribute: Attribute, codes: Codes) -> list[Predicates | None]:
        many = self.top[attribute.name]
        if many > len(codes):
            expected = f"at most {len(codes)}, the number of values"
            raise EntryError.at((), f"{many}", expected, code="out-of-range")
        shared.check_number(codes)
        return [Identity() if len(codes) == attribute.size else Sets(tuple((code,) for code in codes))]

    def rows_of_each(self, strata: Strata) -> int:
        return self.top[self.attribute]

    def evaluate(self, inference: Inference) -> Table:
        strata = self.strata(inference.domain)
        [values] = self.needed(strata)
        assert values is not None
        most, count = self.top[self.attribute], len(strata.codes)
        bound = inference.joint_multiplier(count, inference.embed(strata.product(values)))
        estimates, variances = strata.known(inference, strata.product(values))
        chosen = np.argsort(-estimates, axis=1, kind="stable")[:, :most]
        each = zip(estimates, strata.covariances(inference, values), chosen, strict=True)
        confidences = [set_confidence(inference.tails, *own) for own in each]
        best, errors = (np.take_along_axis(own, chosen, 1) for own in (estimates, np.sqrt(variances)))
        columns = [
            Column("rank", np.tile(np.arange(1, most + 1), strata.count)),
            *shared.symmetric(best, errors, bound),
            Column("confidence", np.repeat(confidences, most)),
        ]
        intervals = (
            "simultaneous over the values of each stratum, so that they hold for those that were chosen; "
            "`confidence` is that with which the set, in any order, is that of the most frequent values"
        )
        return strata.table(inference, columns, intervals, values, chosen, multiplier=bound)
