"""Arrays of numbers that a user gives: in memory, as lists, or as NumPy files."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import final

import numpy as np

from matrixdp.errors import WorkloadError
from matrixdp.forms import Form, FormError, Given, Kept, Schema, as_lists, describe_value
from matrixdp.queries.arrays import NOT_NUMPY, Array, real_array

__all__ = ["ArrayForm", "load_array"]


def load_array(path: str | os.PathLike[str]) -> Array:
    """Return the array that a NumPy ``.npy`` file holds.

    Pickled objects are refused, and the size is checked before the numbers are read.
    """
    file = Path(path)
    if not os.path.isfile(file):  # noqa: PTH113 - no error where the path is none
        raise WorkloadError.at((str(file),), "no such file", "a NumPy file (.npy)")
    try:
        with file.open("rb") as stream:
            if stream.read(6) != b"\x93NUMPY":
                raise ValueError("not a NumPy file")
        array = np.load(file, mmap_mode="r", allow_pickle=False)
    except NOT_NUMPY:
        found = "a file that cannot be read as NumPy"
        raise WorkloadError.at((str(file),), found, "an array of real numbers (.npy)") from None
    return real_array(array, str(file))


@final
@dataclass(frozen=True)
class ArrayForm(Form[Array]):
    """An array, nested lists, or the path of a NumPy file.

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
            raise FormError.at((), "an array with an entry that is NaN or infinite", self.expected)
        return array.ravel() if self.axes is None else array

    def write(self, value: Array, kept: Kept = as_lists) -> object:
        return kept(value)

    def schema(self, definitions: Schema) -> Schema:
        definitions["Array"] = {
            "description": "a NumPy file (.npy), or the numbers themselves",
            "anyOf": [{"type": "string", "minLength": 1}, {"type": "array"}],
        }
        return {"$ref": "#/$defs/Array"}

    def _numbers(self, value: object) -> Array:
        if isinstance(value, str | os.PathLike):
            try:
                return load_array(value)
            except WorkloadError as error:
                found = f"{error.problem.found if error.problem else error} at {os.fspath(value)}"
                raise FormError.at((), found, f"a NumPy file (.npy) with {self.expected}") from None
        if not isinstance(value, np.ndarray | list | tuple):
            expected = f"a NumPy file (.npy) or an array, {self.expected}"
            raise FormError.at((), describe_value(value), expected)
        try:
            return real_array(value, "array")
        except WorkloadError:
            found = "entries that are not real numbers, or rows of unequal length"
            raise FormError.at((), found, self.expected) from None
