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
    "middle_values",
]

T = TypeVar("T")

MAX_VALUES = 4_000
"""Of the attribute of a quantile or CDF, whose square queries are written out in."""
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


def middle_values(attribute: Attribute, codes: Codes) -> Array:
    """Return the number that stands for each value: integers themselves, and the middles of bins.

    Raises
    ------
    EntryError
        If the values are no numbers, or a bin has no end.

    Examples
    --------
    >>> from matrixdp.domain import Bins, Integers
    >>> middle_values(Bins("income", (0, 10, 50)), (0, 1)), middle_values(Integers("age", 1, 3), (0, 2))
    (array([ 5., 30.]), array([1., 3.]))
    """
    if isinstance(attribute, Dates) and attribute.by != "hour":
        found = f"{attribute.name!r}, whose values are dates"
        raise EntryError.at((), found, "numbers: an attribute given by min and max, edges, bins or a size")
    if not isinstance(attribute, Bins):
        return np.array([float(attribute.value(code)) for code in codes])
    edges = np.array(attribute.edges)
    values = (edges[:-1] + edges[1:])[list(codes)] / 2
    if not np.isfinite(values).all():
        found = f"{attribute.name!r}, of which a bin has no end"
        expected = "bins with two ends, as their middles stand for their values; `where` can leave others out"
        raise EntryError.at((), found, expected)
    return np.asarray(values)


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
        values = middle_values(attribute, kept)
        middle = (values[0] + values[-1]) / 2
        away = np.zeros((1, attribute.size))
        away[0, list(kept)] = values - middle
        text = f"sum of {attribute.name} less {middle:g}"
        return [Labelled(Matrix(away), (text,)), _counted(attribute, kept)]

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
        """Return the sum of the values; and of bins the count, which bounds how far their middles are off."""
        kept = _ordered(attribute, codes)
        values = np.zeros((1, attribute.size))
        values[0, list(kept)] = middle_values(attribute, kept)
        summed = Labelled(Matrix(values), (f"sum of {attribute.name}",))
        return [summed, _counted(attribute, kept)] if isinstance(attribute, Bins) else [summed]

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
        if many >= len(codes):
            raise EntryError.at((), f"{many}", f"less than {len(codes)}, the number of values")
        return [Identity() if len(codes) == attribute.size else Sets(tuple((code,) for code in codes))]
