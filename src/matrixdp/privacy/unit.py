"""The unit of privacy: what of a table is one person's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from matrixdp.errors import PrivacyError
from matrixdp.forms import describe_value
from matrixdp.forms.wording import is_unicode

__all__ = ["MOST_RECORDS", "Unit"]

MOST_RECORDS = 2**53 - 1
"""The most records that a unit may have."""

_EXPECTED = "Unit(records=k), Unit(records=k, id='column'), or a mapping with these keys"


@dataclass(frozen=True, repr=False)
class Unit:
    """What is protected as one: a person, of whose records at most so many are counted.

    Without `id` that is a fact about the table which the promise assumes. With it, it is made true: a column
    names the person, and of the records of one person at most `records` are counted, chosen by a public rule
    that looks at no value of an attribute (docs/privacy.md).

    Parameters
    ----------
    records : int
        The most records of one person, from 1 to 2^53 - 1.
    id : str, optional
        The column that names the person.

    Raises
    ------
    PrivacyError
        If the number is out of range, or the name is no text or empty.

    References
    ----------
    C. Dwork and A. Roth, The algorithmic foundations of differential privacy, 2014, theorem 2.2 (groups).

    Examples
    --------
    >>> Unit(records=3), Unit(records=3, id="person")
    (Unit(records=3), Unit(records=3, id='person'))
    >>> Unit.of({"id": "person", "records": 3}).as_dict()
    {'id': 'person', 'records': 3}
    >>> Unit(records=0)
    Traceback (most recent call last):
        ...
    matrixdp.errors.PrivacyError: budget.unit.records: found 0; expected an integer from 1 to 2^53 - 1
    """

    records: int = 1
    id: str | None = None

    def __post_init__(self) -> None:
        path = ("budget", "unit")
        if type(self.records) is not int or not 1 <= self.records <= MOST_RECORDS:
            found = describe_value(self.records)
            raise PrivacyError.at((*path, "records"), found, "an integer from 1 to 2^53 - 1")
        if self.id is not None and (type(self.id) is not str or not self.id or not is_unicode(self.id)):
            raise PrivacyError.at((*path, "id"), describe_value(self.id), "the name of a column")

    def __repr__(self) -> str:
        named = "" if self.id is None else f", id={self.id!r}"
        return f"Unit(records={self.records}{named})"

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
        if not isinstance(given, Mapping) or not {"records"} <= set(given) <= {"records", "id"}:
            raise PrivacyError.at(("budget", "unit"), describe_value(given), _EXPECTED)
        return cls(**given)

    def as_dict(self) -> dict[str, int | str]:
        """Return the unit as JSON has it."""
        return {"records": self.records} if self.id is None else {"id": self.id, "records": self.records}
