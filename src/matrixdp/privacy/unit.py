"""The unit of privacy: what of a table is one person's."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, final

from matrixdp.domain import Discovered, Domain, OutOfDomain
from matrixdp.errors import DomainError, PrivacyError
from matrixdp.forms import describe_value, is_unicode, unknown_name

#: The most records that a unit may have.
MOST_RECORDS = 2**53 - 1
UNIT_KEYS = ("records", "id", "per", "max_values", "max_records_each", "constant")
#: A unit says how many records by one of these.
_NUMBERED = ("records", "per")


def only_per(attribute: str) -> str:
    """Say what is expected of `per` where a table is measured period by period."""
    return f"{attribute}, the attribute of the series, alone"


def _refusal(found: str, expected: str, code: str, *steps: str) -> PrivacyError:
    return PrivacyError.at(("budget", "unit", *steps), found, expected, code=code)


@final
@dataclass(frozen=True, init=False, repr=False)
class Unit:
    """What is protected as one: a person, of whose records at most this many are counted.

    Without `id` that is a fact about the table which the promise assumes. With it, it is made true: a column
    names the person, and of the records of one person at most `records` are counted, chosen by a public rule
    that is a function of the person's own records (docs/privacy.md).

    With `per`, a person's records are also in at most `max_values` values of an attribute, with at most
    `max_records_each` in each. Units of one meaning are equal: names are sorted, and no number is larger
    than what the others leave of it.

    Parameters
    ----------
    records : int, optional
        The most records of one person, from 1 to 2^53 - 1. If it is left out, 1, or with `per` as many as
        the other two numbers allow.
    id : str, optional
        The column that names the person.
    per : str or sequence of str, optional
        The attribute, or several whose combinations of values count as values.
    max_values : int, optional
        In how many values of `per` a person has records at most; `records` if it is left out.
    max_records_each : int, optional
        The most records of a person in each value of `per`; 1 if it is left out.
    constant : str or sequence of str, optional
        Attributes that are the same in all records of a person that are counted; with `id` and `per`.

    Raises
    ------
    PrivacyError
        If a number is out of range, a name is no text or empty, or what is given does not go together.

    References
    ----------
    C. Dwork and A. Roth, The algorithmic foundations of differential privacy, 2014, theorem 2.2 (groups).

    Examples
    --------
    >>> Unit(records=3), Unit(records=3, id="person")
    (Unit(records=3), Unit(records=3, id='person'))
    >>> Unit.of({"id": "person", "records": 3}).as_dict()
    {'id': 'person', 'records': 3}
    >>> Unit(id="person", per="month", max_values=12)
    Unit(records=12, id='person', per=('month',), max_values=12, max_records_each=1)
    >>> Unit(records=0)
    Traceback (most recent call last):
        ...
    matrixdp.errors.PrivacyError: budget.unit.records: found 0; expected an integer from 1 to 2^53 - 1
    """

    records: int
    id: str | None
    per: tuple[str, ...]
    max_values: int
    max_records_each: int
    constant: tuple[str, ...]

    def __init__(
        self,
        records: int | None = None,
        id: str | None = None,  # noqa: A002
        per: str | Iterable[str] = (),
        max_values: int | None = None,
        max_records_each: int | None = None,
        constant: str | Iterable[str] = (),
    ) -> None:
        numbers = {"records": records, "max_values": max_values, "max_records_each": max_records_each}
        for name, number in numbers.items():
            if number is not None and (type(number) is not int or not 1 <= number <= MOST_RECORDS):
                expected = "an integer from 1 to 2^53 - 1"
                raise _refusal(describe_value(number), expected, "out-of-range", name)
        if id is not None and not _is_name(id):
            raise _refusal(describe_value(id), "the name of a column", "wrong-type", "id")
        within, same = _names(per, "per"), _names(constant, "constant")
        if not within:
            for name, given in (("max_values", max_values), ("max_records_each", max_records_each)):
                if given is not None:
                    expected = "it beside per: the attribute in whose values records are bounded"
                    raise _refusal(f"{name} without per", expected, "missing-key", name)
            # all attributes, of which there are none, have one value together
            most, values, each = records or 1, 1, records or 1
        else:
            most, values, each = _bounds(records, max_values, max_records_each)
        _check_constant(same, id, within)
        found = (most, id, within, values, each, same)
        for name, value in zip(UNIT_KEYS, found, strict=True):
            object.__setattr__(self, name, value)

    def __repr__(self) -> str:
        written = self.as_dict()
        told = [f"{name}={getattr(self, name)!r}" for name in UNIT_KEYS if name in written]
        return f"Unit({', '.join(told)})"

    @classmethod
    def of(cls, given: object) -> Unit:
        """Return the unit that is given: itself, a mapping as `as_dict` makes it, or None for one record.

        Raises
        ------
        PrivacyError
            If it is none of these.
        """
        if given is None or isinstance(given, cls):
            return given or cls()
        if (
            not isinstance(given, Mapping)
            or not set(given) <= set(UNIT_KEYS)
            or given.keys().isdisjoint(_NUMBERED)
        ):
            expected = "Unit(records=k), Unit(records=k, id='column'), or a mapping with these keys"
            raise _refusal(describe_value(given), expected, "wrong-type")
        return cls(**given)

    def as_dict(self) -> dict[str, Any]:
        """Return the unit as JSON has it."""
        found: dict[str, Any] = {} if self.id is None else {"id": self.id}
        found["records"] = self.records
        if self.per:
            found |= {"per": list(self.per), "max_values": self.max_values}
            found["max_records_each"] = self.max_records_each
        return found | ({"constant": list(self.constant)} if self.constant else {})

    @property
    def spread(self) -> str:
        """What `per` and `constant` say of a person's records, to follow their number; empty without them.

        Examples
        --------
        >>> Unit(id="person", per="month", max_values=12).spread
        ", at most one in each of 12 values of 'month'"
        >>> Unit(20, "person", ["region", "month"], 12, 3, "sex").spread
        ", at most 3 in each of 12 combinations of 'month' and 'region', all with the same 'sex'"
        """
        if not self.per:
            return ""
        each = f"{self.max_records_each:,}" if self.max_records_each > 1 else "one"
        kind = "value" if len(self.per) == 1 else "combination"
        values = f"each of {self.max_values:,} {kind}s of" if self.max_values > 1 else f"a single {kind} of"
        same = f", all with the same {_listed(self.constant)}" if self.constant else ""
        return f", at most {each} in {values} {_listed(self.per)}{same}"

    def _is_person_of(self, found: Discovered) -> bool:
        return self.id == found.id and (self.id is not None or self.records <= found.records)

    @property
    def most_values(self) -> int:
        """In how many values of `per` a person can have records, where they are as many in each as can be."""
        return min(-(-self.records // self.max_records_each), self.max_values)

    @property
    def bounded(self) -> tuple[str, ...]:
        """The attributes that say which records of a person count: those of `per`, then the constant ones."""
        return (*self.per, *self.constant)

    def on(self, domain: Domain, out_of_domain: OutOfDomain | None = None) -> Unit:
        """Return the unit as it is for a domain: in no more values of `per` than there are.

        Raises
        ------
        DomainError
            If `per` or `constant` names what is no attribute or divides records, or `id` names an attribute;
            or if records out of domain are to be counted beside `per`, as none of them is in a value of it.

        Examples
        --------
        >>> Unit(records=100, id="person", per="month").on(Domain({"month": 12}))
        Unit(records=12, id='person', per=('month',), max_values=12, max_records_each=1)
        """
        if self.id in (*domain.names, *domain.columns):
            found, expected = f"the attribute {self.id!r}", "a column that is no attribute of the domain"
            raise DomainError.at(("unit", "id"), found, expected, code="conflict")
        for attribute in domain:
            found_for = attribute.codebook.discovered
            if found_for is not None and not self._is_person_of(found_for):
                person = "no column" if found_for.id is None else f"the column {found_for.id!r}"
                expected = (
                    f"the person of the discovery of {attribute.name!r}, whom {person} names, lest its "
                )
                expected += "cost be another for her"
                raise DomainError.at(("unit",), repr(self), expected, code="conflict")
        for key in ("per", "constant"):
            for name in getattr(self, key):
                if name not in domain:
                    raise DomainError(unknown_name(("unit", key), name, "an attribute", domain.names))
                if domain[name].divided:
                    expected = "an attribute with values: an amount divides a record between two of them"
                    raise DomainError.at(("unit", key), f"the amount {name!r}", expected, code="wrong-type")
        if not self.per:
            return self
        if out_of_domain is not None and out_of_domain.counts:
            found, expected = (
                "counts beside a unit with per",
                "none, as it bounds records in the domain alone",
            )
            raise DomainError.at(("out_of_domain", "count"), found, expected, code="not-supported")
        values = min(self.max_values, domain.cells(self.per))
        return Unit(self.records, self.id, self.per, values, self.max_records_each, self.constant)


def _listed(names: Iterable[str]) -> str:
    return " and ".join(map(repr, names))


def _is_name(given: object) -> bool:
    return type(given) is str and bool(given) and is_unicode(given)


def _names(given: object, key: str) -> tuple[str, ...]:
    """Return the names of attributes, sorted."""
    listed = [given] if isinstance(given, str) else given
    names: list[Any] = [None]
    if isinstance(listed, Iterable) and not isinstance(listed, Mapping):
        names = list(listed)
    if not all(map(_is_name, names)):
        expected = "the name of an attribute, or a list of such names"
        raise _refusal(describe_value(given), expected, "wrong-type", key)
    if len(set(names)) < len(names):
        raise _refusal("a name twice", "each attribute once", "duplicate", key)
    return tuple(sorted(names))


def _bounds(records: int | None, values: int | None, each: int | None) -> tuple[int, int, int]:
    """Return the most records, values and records in each, none of them larger than the others leave it."""
    if values is None:
        if records is None:
            expected = "max_values: in how many values of it a person has records at most"
            raise _refusal("per without it", expected, "missing-key", "max_values")
        values = records
    if each is None:
        if records is not None and records > values:
            found = f"{records} records in at most {values} values of per"
            expected = f"max_records_each: how many of them in each, from 2 to {records}"
            raise _refusal(found, expected, "missing-key", "max_records_each")
        each = 1
    most = values * each if records is None else min(records, values * each)
    if most > MOST_RECORDS:
        found, expected = "max_values * max_records_each above it", "records: at most 2^53 - 1 in all"
        raise _refusal(found, expected, "out-of-range", "records")
    return most, min(values, most), min(each, most)


def _check_constant(same: tuple[str, ...], person: str | None, within: tuple[str, ...]) -> None:
    if not same:
        return
    if person is None:
        expected = "id: the column that names the person, whose records are compared"
        raise _refusal("constant without id", expected, "missing-key", "constant")
    if not within:
        expected = "it beside per; without per it changes nothing, as all records of a person may be equal"
        raise _refusal("constant without per", expected, "missing-key", "constant")
    if twice := sorted(set(same) & set(within)):
        expected = "other attributes than those of per, whose values differ"
        raise _refusal(repr(twice[0]), expected, "conflict", "constant")
