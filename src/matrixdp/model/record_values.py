"""From the codes of records to values: what answers call them, or what a table of the domain has."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from functools import singledispatch
from typing import Any, final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from matrixdp.domain import Attribute, Bins, Categorical, Dates, Domain
from matrixdp.domain.encoding import encode_value
from matrixdp.errors import SpecificationError
from matrixdp.forms import describe_value

_INT, _FLOAT, _TEXT = pa.int64(), pa.float64(), pa.utf8()


@final
@dataclass(frozen=True)
class _Column:
    """A column of records: of which attribute, its values, and the place among them of each code.

    Texts are a dictionary in the order of the domain. A code without a place has no value.
    """

    name: str
    attribute: str
    values: pa.Array
    places: NDArray[np.int32]

    @classmethod
    def of(cls, name: str, attribute: str, values: pa.Array) -> _Column:
        """Return a column with one value for each code, null where there is none."""
        places = np.arange(len(values), dtype=np.int32)
        if values.null_count:
            places = np.where(values.is_valid().to_numpy(zero_copy_only=False), places, -1).astype(np.int32)
        return cls(name, attribute, values, places)

    def taken(self, codes: NDArray[Any]) -> pa.Array:
        """Return the values of codes."""
        places = self.places[codes]
        indices = pa.array(places, mask=places < 0)
        if pa.types.is_string(self.values.type):
            return pa.DictionaryArray.from_arrays(indices, self.values, ordered=True)
        return self.values.take(indices)


@final
class RecordColumns:
    """The columns of records of a domain.

    Parameters
    ----------
    domain : Domain
    values : {'labels', 'data'}
        With ``labels`` there is a column for each attribute, under its name: categories, bins, weeks, months
        and quarters as texts, as the answers have them; numbers, years and hours as integers, days as dates;
        missing values as what they are called where the column is text, and else as null. With ``data`` the
        columns are those that the domain is read from, and each value is one that is read as that value of
        the attribute: of a bin its middle (an integer where its edges are; of a bin without an end the other
        end or one beside it), of weeks, months, quarters and years the first day, of days of the week and
        hours one that there is; missing values are null. Attributes that follow from others have no column.
    levels : bool
        With ``labels``, whether there is a column for each level too, under the names of its attribute and
        its own: ``county state``.

    Raises
    ------
    SpecificationError
        If `values` is neither, or levels are asked for with ``data``; or with ``data`` if two attributes are
        read from one column, one is derived from columns of its own, or a value cannot be written.

    Examples
    --------
    >>> domain = Domain({"sex": ["female", "male"], "pay": {"edges": [0, 10, 50]}})
    >>> codes = {"sex": np.array([1, 0]), "pay": np.array([0, 1])}
    >>> RecordColumns(domain).batch(codes).to_pylist()
    [{'sex': 'male', 'pay': '[0, 10)'}, {'sex': 'female', 'pay': '[10, 50)'}]
    >>> RecordColumns(domain, "data").batch(codes).to_pylist()
    [{'sex': 'male', 'pay': 5}, {'sex': 'female', 'pay': 30}]
    """

    def __init__(self, domain: Domain, values: str = "labels", *, levels: bool = False) -> None:
        if values not in ("labels", "data"):
            raise SpecificationError.at(
                ("values",), describe_value(values), "labels or data", code="unknown-name"
            )
        if levels and values == "data":
            raise SpecificationError.at(
                ("levels",), "levels with `data`", "levels with `labels` alone", code="conflict"
            )
        self.values = values
        self._columns = tuple(_labelled(domain, levels) if values == "labels" else _read(domain))
        self.schema = pa.schema([(own.name, own.taken(np.zeros(0, np.int32)).type) for own in self._columns])

    def batch(self, codes: Mapping[str, NDArray[Any]]) -> pa.RecordBatch:
        """Return records, given the codes of each attribute."""
        arrays = [own.taken(codes[own.attribute]) for own in self._columns]
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)


def _labelled(domain: Domain, levels: bool) -> Iterator[_Column]:
    """Yield a column for each attribute and, if asked for, for each of its levels."""
    taken = set(domain.names)
    for attribute in domain:
        yield _Column.of(attribute.name, attribute.name, _shown(attribute))
        for level in attribute.codebook.levels if levels else ():
            places = np.zeros(attribute.size, dtype=np.int32)
            for place, (_, codes) in enumerate(level.groups):
                places[list(codes)] = place
            name = f"{attribute.name} {level.name}"
            while name in taken:
                name += "*"
            taken.add(name)
            yield _Column(name, attribute.name, pa.array(level.labels(attribute), _TEXT), places)


def _shown(attribute: Attribute) -> pa.Array:
    """Return what answers call each value of an attribute; numbers and days as such."""
    codes = range(attribute.size)
    plain = not attribute.codebook.labels and attribute.numeric and not isinstance(attribute, Bins)
    if plain:
        values = [None if code == attribute.null_code else attribute.value(code) for code in codes]
        if isinstance(attribute, Dates) and attribute.by == "day":
            return pa.array([day and date.fromisoformat(str(day)) for day in values], pa.date32())
        if all(isinstance(value, int | None) for value in values):
            return pa.array(values, _INT)
    return pa.array([attribute.label(code) for code in codes], _TEXT)


def _read(domain: Domain) -> Iterator[_Column]:
    """Yield a column for each attribute that is read from one, of values that are read as its own."""
    owners: dict[str, str] = {}
    for attribute in domain:
        derivation, path = attribute.codebook.derivation, ("values", attribute.name)
        if derivation is not None and derivation.columns:
            found = "an attribute that is derived from columns of its own, which a model does not know"
            raise SpecificationError.at(path, found, _OTHERWISE, code="not-supported")
        if derivation is not None:
            continue
        other = owners.setdefault(attribute.column, attribute.name)
        if other != attribute.name:
            found = f"the column {attribute.column!r}, which {other!r} is read from too"
            raise SpecificationError.at(path, found, _OTHERWISE, code="not-supported")
        yield _Column.of(attribute.column, attribute.name, _written(attribute))


_OTHERWISE = "values that a table of the domain has; without it, records in the words of the answers"


def _written(attribute: Attribute) -> pa.Array:
    """Return for each code a value that is read as it."""
    values: list[Any] = []
    for code in range(attribute.size):
        tried = (None,) if code == attribute.null_code else _candidates(attribute, code)
        value = next((one for one in tried if encode_value(attribute, one) == code), _NONE)
        if value is _NONE:
            found = f"{attribute.label(code)!r}, which no value is written for"
            raise SpecificationError.at(("values", attribute.name), found, _OTHERWISE, code="not-supported")
        values.append(value)
    return pa.array(values, _type(values))


_NONE = object()


def _type(values: Sequence[Any]) -> pa.DataType:
    kinds = {type(value) for value in values} - {type(None)}
    for kind, arrow in ((str, _TEXT), (datetime, pa.timestamp("us")), (date, pa.date32()), (float, _FLOAT)):
        if kind in kinds:
            return arrow
    return _INT


@singledispatch
def _candidates(attribute: Attribute, code: int) -> Sequence[Any]:
    """Return values that may be read as a code that is not that of missing values, the best first."""
    return (attribute.value(code),)


@_candidates.register
def _(attribute: Categorical, code: int) -> Sequence[Any]:
    return (attribute.categories[code],)


@_candidates.register
def _(attribute: Bins, code: int) -> Sequence[Any]:
    low, high = attribute.edges[code : code + 2]
    if math.isinf(low) and math.isinf(high):
        return (0,)
    if math.isinf(high):
        return _whole_or_not(low)
    if math.isinf(low):
        return (*_whole_or_not(high - 1), math.nextafter(high, -math.inf))
    middle = low / 2 + high / 2
    whole = float(low).is_integer() and float(high).is_integer()
    return (*([math.floor(middle)] if whole else []), middle, low)


def _whole_or_not(value: float) -> tuple[float, ...]:
    return (int(value),) if float(value).is_integer() and abs(value) < 2**53 else (value,)


@_candidates.register
def _(attribute: Dates, code: int) -> Sequence[Any]:
    first, last = attribute.first, attribute.last
    if attribute.by == "hour":
        return [datetime.combine(first, time(code))]
    if attribute.by == "weekday":
        return [first + timedelta(days=days) for days in range(min(7, (last - first).days + 1))]
    days = range(first.toordinal(), last.toordinal() + 1)
    place = bisect_left(days, code, key=lambda day: encode_value(attribute, date.fromordinal(day)) or 0)
    return [date.fromordinal(days[place])]
