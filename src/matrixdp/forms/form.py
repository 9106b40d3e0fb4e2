"""What every form can do."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from matrixdp.errors import MatrixDPError

__all__ = ["Form", "FormError", "Given", "Kept", "Schema", "as_given", "as_lists"]

T = TypeVar("T")
Schema = dict[str, Any]
Given = Callable[[object], object]
"""From what stands where an array may stand to a path, lists or the array itself."""
Kept = Callable[[NDArray[np.float64]], object]
"""From an array to what is written in its place."""


def as_given(written: object) -> object:
    """Return what was written: arrays and paths mean themselves."""
    return written


def as_lists(array: NDArray[np.float64]) -> object:
    """Return an array as nested lists."""
    return array.tolist()


class FormError(MatrixDPError, ValueError):
    """What was written does not have its form; the record that it is part of names it by its own error."""


class Form(ABC, Generic[T]):
    """A way to write a value down.

    Examples
    --------
    >>> from matrixdp.forms import ListOf, as_given, whole
    >>> form = ListOf(whole("an integer"), "a list of integers")
    >>> form.read([1, 2], as_given), form.write((1, 2)), form.schema({})
    ((1, 2), [1, 2], {'type': 'array', 'items': {'type': 'integer'}})
    >>> form.read([1, "2"], as_given)
    Traceback (most recent call last):
        ...
    matrixdp.forms.form.FormError: [1]: found '2'; expected an integer
    """

    @abstractmethod
    def read(self, written: object, given: Given) -> T:
        """Return the value that was written; what was read before is read again.

        Raises
        ------
        FormError
            If it does not have this form, with the path inside of it.
        """

    def write(self, value: T, kept: Kept = as_lists) -> object:
        """Return a value as it is written, made of what JSON has and of kept arrays."""
        return value

    @abstractmethod
    def schema(self, definitions: Schema) -> Schema:
        """Return the JSON Schema, and add what it refers to to the definitions."""
