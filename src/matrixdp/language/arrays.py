"""Arrays of numbers that a user gives: in memory, as lists, or as files."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import final

import numpy as np

from matrixdp.errors import WorkloadError
from matrixdp.forms import Form, FormError, Given, Kept, Schema, as_lists, describe_value
from matrixdp.language.array_files import ARRAY_FILE, read_array
from matrixdp.queries.arrays import Array, real_array

__all__ = ["ArrayForm", "load_array"]


def load_array(path: str | os.PathLike[str]) -> Array:
    """Return the array that a NumPy, SciPy or CSV file holds; see `array_files.read_array`."""
    return read_array(Path(path))


@final
@dataclass(frozen=True)
class ArrayForm(Form[Array]):
    """An array, nested lists, or the path of a file; see `array_files.read_array`.

    Parameters
    ----------
    expected : str
    axes : int, optional
        The number of axes; where it is left out, any number is flattened to one.
    """

    expected: str
    axes: int | None = None

    def read(self, written: object, given: Given) -> Array:
        value = given(written)
        array = self._numbers(value)
        if array.ndim != (array.ndim if self.axes is None else self.axes) or 0 in array.shape:
            raise FormError.at((), f"an array of shape {array.shape}", self.expected)
        if not np.isfinite(array).all():
            place = np.argwhere(~np.isfinite(array))[0] + 1
            where = f"row {place[0]}, column {place[1]}" if len(place) == 2 else f"number {place[0]}"
            found = f"an array with an entry that is NaN or infinite ({where})"
            raise FormError.at((), found, self.expected)
        return array.ravel() if self.axes is None else array

    def write(self, value: Array, kept: Kept = as_lists) -> object:
        return kept(value)

    def schema(self, definitions: Schema) -> Schema:
        definitions["Array"] = {
            "description": f"{ARRAY_FILE}, or the numbers themselves",
            "anyOf": [{"type": "string", "minLength": 1}, {"type": "array"}],
        }
        return {"$ref": "#/$defs/Array"}

    def _numbers(self, value: object) -> Array:
        if isinstance(value, str | os.PathLike):
            try:
                return load_array(value)
            except WorkloadError as error:
                found = f"{error.problem.found if error.problem else error} at {os.fspath(value)}"
                raise FormError.at((), found, f"{ARRAY_FILE} with {self.expected}") from None
        if not isinstance(value, np.ndarray | list | tuple):
            expected = f"{ARRAY_FILE} or an array, {self.expected}"
            raise FormError.at((), describe_value(value), expected)
        try:
            return real_array(value, "array")
        except WorkloadError:
            found = "entries that are not real numbers, or rows of unequal length"
            raise FormError.at((), found, self.expected) from None
