"""Entries of statistics of one attribute: quantiles, CDF, mean, sum, and the most frequent values."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Real
from typing import Generic, TypeVar, final

import numpy as np

from matrixdp.domain import Attribute, Bins, Dates
from matrixdp.errors import EntryError, TooLargeError
from matrixdp.forms import (
    LISTS,
    Accepted,
    Alone,
    Either,
    Form,
    FormError,
    Given,
    Kept,
    ListOf,
    MappingOf,
    Schema,
    as_lists,
    key,
    record,
    text,
    whole,
)
from matrixdp.language.entry import entry_form
from matrixdp.language.statistic import Codes, OneAttributeEntry, Statistics, Table
from matrixdp.queries.arrays import Array
from matrixdp.queries.labelled import Labelled
from matrixdp.queries.predicates import Identity, Matrix, Predicates, Prefix, Ranges, Sets

__all__ = [
    "MAX_VALUES",
    "QUARTILES",
    "CdfEntry",
    "MeanEntry",
    "QuantileEntry",
    "QuantilesEntry",
    "SumEntry",
    "TopEntry",
    "check_order",
    "value_ends",
]

T = TypeVar("T")

MAX_VALUES = 4_000
"""Of the attribute of a quantile, a CDF or a list of the top: their square is how much is computed."""
QUARTILES = (0.25, 0.5, 0.75)
"""The quantiles that are meant where none are named."""


def _between(written: object) -> float | None:
    if isinstance(written, bool) or not isinstance(written, Real):
        return None
    return float(written) if 0 < float(written) < 1 else None


_SHARE = Accepted(
    "a number above 0 and below 1",
    _between,
    {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1},
)
_SHARES: Form[tuple[float, ...]] = Either(
    ((lambda value: isinstance(value, LISTS), ListOf(_SHARE, _SHARE.expected, least=1)),), Alone(_SHARE)
)
_ATTRIBUTE = text("the name of an attribute")


@final
@dataclass(frozen=True)
class _OfOne(Form[Mapping[str, T]], Generic[T]):
    """One attribute with what is asked of it, or its name alone where that has a default."""

    item: Form[T]
    expected: str
    default: T | None = None

    def read(self, written: object, given: Given) -> Mapping[str, T]:
        if isinstance(written, str) and self.default is not None:
            return {_ATTRIBUTE.read(written, given): self.default}
        named = MappingOf(self.item, self.expected, least=1, count=self.expected).read(written, given)
        if len(named) > 1:
            raise FormError.at((), f"{len(named)} attributes", f"one attribute: {self.expected}")
        return named

    def write(self, value: Mapping[str, T], kept: Kept = as_lists) -> object:
        [(name, item)] = value.items()
        return name if item == self.default else {name: self.item.write(item, kept)}

    def schema(self, definitions: Schema) -> Schema:
        item = self.item.schema(definitions)
        mapping = {"type": "object", "additionalProperties": item, "minProperties": 1, "maxProperties": 1}
        return mapping if self.default is None else {"anyOf": [_ATTRIBUTE.schema(definitions), mapping]}


def check_order(attribute: Attribute) -> None:
    """Check that the values of an attribute have an order.

    Raises
    ------
    EntryError
        If it lists categories, or days of the week.
    """
    if not attribute.numeric:
        found = f"{attribute.name!r}, which lists categories"
        expected = "a numeric attribute: one given by min and max, edges, bins, dates or a size"
        raise EntryError.at((), found, expected)
    if isinstance(attribute, Dates) and attribute.by == "weekday":
        found = f"{attribute.name!r}, whose values are days of the week"
        raise EntryError.at((), found, "values with a first and a last one")


def _ordered(attribute: Attribute, codes: Codes) -> Codes:
    """Return the codes that are asked about and have a place in the order, which null has not."""
    check_order(attribute)
    kept = tuple(code for code in codes if code != attribute.null_code)
    if not kept:
        raise EntryError.at((), "no value but null", "values with an order")
    return kept


def _cumulated(attribute: Attribute, codes: Codes) -> Predicates:
    """Return the counts of the values up to each."""
    kept = _ordered(attribute, codes)
    if len(kept) > MAX_VALUES:
        found = f"{len(kept)} values"
        raise TooLargeError.at((), found, f"at most {MAX_VALUES}; ask for a range of them with `where`")
    if len(kept) == attribute.size:
        return Prefix()
    if kept == tuple(range(kept[0], kept[-1] + 1)):
        return Ranges(tuple((kept[0], code) for code in kept))
    return Sets(tuple(kept[: place + 1] for place in range(len(kept))))


@record
class _Quantiles(OneAttributeEntry):
    """What the two spellings of quantiles share."""

    @property
    @abstractmethod
    def asked(self) -> Mapping[str, tuple[float, ...]]:
        """The attribute, and its quantiles."""

    @property
    def attribute(self) -> str:
        """The attribute."""
        return next(iter(self.asked))

    @property
    def kind(self) -> str:
        """The name of the method."""
        return "quantile"

    @property
    def called(self) -> str:
        """What is asked, in words."""
        shares = self.asked[self.attribute]
        if shares == (0.5,):
            return f"median of {self.attribute}"
        if shares == QUARTILES:
            return f"quartiles of {self.attribute}"
        return f"quantiles of {self.attribute} ({', '.join(f'{share:g}' for share in shares)})"

    predicates_text = "prefix"

    def to_spec(self, kept: Kept = as_lists) -> dict[str, object]:
        """Return the entry as it is written under `quantile`."""
        spec = super().to_spec(kept)
        return {"quantile": spec.pop(self.main_key())} | spec

    def ask(self, statistics: Statistics) -> Table:
        """Return the quantiles."""
        shares = self.asked[self.attribute]
        return statistics.quantile(self.attribute, shares, by=self.by, where=self.where or None)

    def needs(self, attribute: Attribute, codes: Codes) -> list[Predicates | None]:
        """Return the counts up to each value."""
        return [_cumulated(attribute, codes)]


_QUANTILES: Form[Mapping[str, tuple[float, ...]]] = _OfOne(_SHARES, "{age: [0.25, 0.5, 0.75]}", QUARTILES)


@final
@entry_form
@record
class QuantileEntry(_Quantiles):
    """Quantiles of a numeric attribute."""

    quantile: Mapping[str, tuple[float, ...]] = key(_QUANTILES)

    @property
    def asked(self) -> Mapping[str, tuple[float, ...]]:
        """The attribute, and its quantiles."""
        return self.quantile


@final
@entry_form
@record
class QuantilesEntry(_Quantiles):
    """Quantiles of a numeric attribute; the same as `quantile`."""

    quantiles: Mapping[str, tuple[float, ...]] = key(_QUANTILES)

    @property
    def asked(self) -> Mapping[str, tuple[float, ...]]:
        """The attribute, and its quantiles."""
        return self.quantiles


@final
@entry_form
@record
class CdfEntry(OneAttributeEntry):
    """How many records, and which share of them, are at most each value of a numeric attribute."""

    attribute: str = key(_ATTRIBUTE, name="cdf")

    @property
    def called(self) -> str:
        """What is asked, in words."""
        return f"CDF of {self.attribute}"

    predicates_text = "prefix"

    def ask(self, statistics: Statistics) -> Table:
        """Return the cumulative counts and shares."""
        return statistics.cdf(self.attribute, by=self.by, where=self.where or None)

    def needs(self, attribute: Attribute, codes: Codes) -> list[Predicates | None]:
        """Return the counts up to each value."""
        return [_cumulated(attribute, codes)]


def value_ends(attribute: Attribute, codes: Codes) -> tuple[Array, Array]:
    """Return the least and the largest number of each value, shape (values,) each; equal for integers.

    Raises
    ------
    EntryError
        If the values are no numbers, or a bin has no end.

    Examples
    --------
    >>> from matrixdp.domain import Bins, Integers
    >>> value_ends(Bins("income", (0, 10, 50)), (0, 1)), value_ends(Integers("age", 1, 3), (0, 2))[0]
    ((array([ 0., 10.]), array([10., 50.])), array([1., 3.]))
    """
    if isinstance(attribute, Dates) and attribute.by != "hour":
        found = f"{attribute.name!r}, whose values are dates"
        raise EntryError.at((), found, "numbers: an attribute given by min and max, edges, bins or a size")
    if not isinstance(attribute, Bins):
        values = np.array([float(attribute.value(code)) for code in codes])
        return values, values
    edges, places = np.array(attribute.edges), np.array(codes)
    lows, highs = edges[places], edges[places + 1]
    if not (np.isfinite(lows).all() and np.isfinite(highs).all()):
        found = f"{attribute.name!r}, of which a bin has no end"
        expected = "bins with two ends, as their middles stand for their values; `where` can leave others out"
        raise EntryError.at((), found, expected)
    return lows, highs


def _sums(attribute: Attribute, codes: Codes, middle: float, said: str) -> Predicates:
    """Return the sum of how far values lie from a number; of bins by their middles, and by either end."""
    lows, highs = value_ends(attribute, codes)
    listed = {said: (lows + highs) / 2}
    if (lows < highs).any():
        listed |= {f"{said}, by lower ends": lows, f"{said}, by upper ends": highs}
    rows = np.zeros((len(listed), attribute.size))
    rows[:, list(codes)] = np.array(list(listed.values())) - middle
    return Labelled(Matrix(rows), tuple(listed))


@final
@entry_form
@record
class MeanEntry(OneAttributeEntry):
    """The mean of an attribute of numbers, by the middles of bins."""

    attribute: str = key(_ATTRIBUTE, name="mean")

    @property
    def called(self) -> str:
        """What is asked, in words."""
        return f"mean of {self.attribute}"

    def ask(self, statistics: Statistics) -> Table:
        """Return the mean."""
        return statistics.mean(self.attribute, by=self.by, where=self.where or None)

    def needs(self, attribute: Attribute, codes: Codes) -> list[Predicates | None]:
        """Return how far the values lie from the middle of the domain, summed; and the count.

        The error of a mean m is that of sum(x) - m count, and so at most that of sum(x - c) plus |m - c|
        times that of the count: with c in the middle of the domain neither outweighs the other.
        """
        kept = _ordered(attribute, codes)
        lows, highs = value_ends(attribute, kept)
        middle = float(lows[0] + highs[-1]) / 2
        away = _sums(attribute, kept, middle, f"sum of {attribute.name} less {middle:g}")
        return [away, _counted(attribute, kept)]

    def scale(self, needed: Predicates, size: int) -> float:
        """Return the weight that makes a sum as large as a count."""
        return _as_counts(needed, size)


@final
@entry_form
@record
class SumEntry(OneAttributeEntry):
    """The sum of an attribute of numbers, by the middles of bins."""

    attribute: str = key(_ATTRIBUTE, name="sum")

    @property
    def called(self) -> str:
        """What is asked, in words."""
        return f"sum of {self.attribute}"

    def ask(self, statistics: Statistics) -> Table:
        """Return the sum."""
        return statistics.sum(self.attribute, by=self.by, where=self.where or None)

    def needs(self, attribute: Attribute, codes: Codes) -> list[Predicates | None]:
        """Return the sum of the values, and what it is if all of a bin lie at one of its ends."""
        return [_sums(attribute, _ordered(attribute, codes), 0.0, f"sum of {attribute.name}")]

    def scale(self, needed: Predicates, size: int) -> float:
        """Return the weight that makes a sum as large as a count."""
        return _as_counts(needed, size)


def _counted(attribute: Attribute, kept: Codes) -> Predicates | None:
    """Return the predicate of all values that are asked about; None where those are all."""
    return None if len(kept) == attribute.size else Labelled(Sets((kept,)), ("records",))


def _as_counts(needed: Predicates, size: int) -> float:
    largest = float(np.abs(needed.rows(size)).max())
    return 1.0 / largest**2 if largest > 0 else 1.0


_MANY = whole("a number of values, an integer of at least 1", least=1)


@final
@entry_form
@record
class TopEntry(OneAttributeEntry):
    """The values of an attribute that most records have."""

    top: Mapping[str, int] = key(_OfOne(_MANY, "{city: 10}"))

    @property
    def attribute(self) -> str:
        """The attribute."""
        return next(iter(self.top))

    @property
    def called(self) -> str:
        """What is asked, in words."""
        return f"top {self.top[self.attribute]} of {self.attribute}"

    def ask(self, statistics: Statistics) -> Table:
        """Return the values that most records have."""
        return statistics.top(self.attribute, self.top[self.attribute], by=self.by, where=self.where or None)

    def needs(self, attribute: Attribute, codes: Codes) -> list[Predicates | None]:
        """Return the counts of all values."""
        many = self.top[attribute.name]
        if many > len(codes):
            raise EntryError.at((), f"{many}", f"at most {len(codes)}, the number of values")
        if len(codes) > MAX_VALUES:
            found = f"{len(codes)} values"
            raise TooLargeError.at((), found, f"at most {MAX_VALUES}; ask for some of them with `where`")
        return [Identity() if len(codes) == attribute.size else Sets(tuple((code,) for code in codes))]
