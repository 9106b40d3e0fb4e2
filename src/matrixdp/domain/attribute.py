"""What all kinds of attributes have in common."""

from abc import ABC, abstractmethod
from typing import ClassVar

from matrixdp.domain.rules import Kind, Rule
from matrixdp.errors import DomainError
from matrixdp.forms import describe_value, is_unicode

__all__ = ["Attribute"]


class Attribute(ABC):
    """A name and a finite, public, ordered list of values.

    Attributes
    ----------
    name : str
        The name, which is also the name of the column in a table.
    size : int
        The number of values, at least 1.
    numeric : bool
        Whether the order of the values is that of numbers.
    """

    name: str
    size: int
    numeric: ClassVar[bool]

    @abstractmethod
    def value(self, code: int) -> str | int | float:
        """Return the public value of a code: a category's text, an integer, or the start of a bin."""

    @abstractmethod
    def code_of(self, value: object) -> int:
        """Return the code of a public value; the inverse of `value`.

        Raises
        ------
        DomainError
            If the attribute does not list the value.
        """

    @abstractmethod
    def code_range(self, low: object, high: object) -> tuple[int, int]:
        """Return the first and the last code, both inclusive, of a public range of values.

        Raises
        ------
        DomainError
            If the range is empty or its ends are not in the domain.
        """

    @abstractmethod
    def rule(self, kind: Kind) -> Rule | None:
        """Return how values of a kind become codes; None where the attribute cannot be read from them."""

    @abstractmethod
    def to_spec(self) -> object:
        """Return what a specification says about the attribute, made of plain Python values."""

    def label(self, code: int) -> str:
        """Return the text of one value."""
        return str(self.value(code))

    def range_label(self, first: int, last: int) -> str:
        """Return the text of the values from one code to another, both inclusive."""
        self._check_codes(first, last)
        if first == last:
            return self.label(first)
        low, high = self.label(first), self.label(last)
        return f"{low}..{high}" if low.startswith("-") or not self.numeric else f"{low}-{high}"

    def _check_codes(self, first: int, last: int) -> None:
        if not 0 <= first <= last < self.size:
            asked = f"code {first}" if first == last else f"codes {first} to {last}"
            raise DomainError(f"attribute {self.name!r} has codes 0 to {self.size - 1}; found {asked}")

    def _check_name(self) -> None:
        if not isinstance(self.name, str) or not self.name or not is_unicode(self.name):
            raise DomainError.at(
                (), describe_value(self.name), "a non-empty string as the name of an attribute"
            )

    def _set(self, **values: object) -> None:
        for key, value in values.items():
            object.__setattr__(self, key, value)
