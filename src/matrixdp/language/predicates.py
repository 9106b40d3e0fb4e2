"""Predicate sets as a user writes them; a form knows nothing of an attribute until it is put on one."""

from __future__ import annotations

import csv
import math
import os
import zipfile
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import ClassVar, TypeVar, final

import numpy as np

from matrixdp.domain import Attribute
from matrixdp.errors import DomainError, EntryError, MatrixDPError, TooLargeError, WorkloadError, each, within
from matrixdp.forms import (
    AnyOf,
    Form,
    FormError,
    ListOf,
    MappingOf,
    Record,
    ResolvePath,
    Schema,
    WriteArray,
    as_lists,
    describe_value,
    is_unicode,
    key,
    nearest,
    record,
    register,
    scalar,
    text,
    unknown_name,
    whole,
)
from matrixdp.queries import predicates as arrays
from matrixdp.queries.predicates import (
    NOT_NUMPY,
    AllRanges,
    Array,
    Circular,
    Identity,
    Matrix,
    Predicates,
    Prefix,
    Ranges,
    Sets,
    Suffix,
    Total,
    Width,
    real_array,
)
from matrixdp.queries.structured import Labelled, Permuted, Stacked, seeded_order

NAMED_PREDICATES: dict[str, Predicates] = {
    "identity": Identity(),
    "total": Total(),
    "prefix": Prefix(),
    "suffix": Suffix(),
    "range": AllRanges(),
    "circular": Circular(),
}
"""The predicate sets that need nothing but their name."""

KEYED_PREDICATES: dict[str, type[KeyedPredicates]] = {}
"""The predicate sets that are mappings, by the key that tells them."""


K = TypeVar("K", bound="type[KeyedPredicates]")


class PredicateForm(ABC):
    """A predicate set as written, checked as far as it can be without its attribute."""

    @property
    @abstractmethod
    def text(self) -> str:
        """What the set is called in the names of groups."""

    @abstractmethod
    def on(self, attribute: Attribute) -> Predicates:
        """Return the predicates over the codes of an attribute.

        Raises
        ------
        EntryError
            If a value is not in the attribute's domain, or the set does not fit its size. The path is inside.
        """

    @abstractmethod
    def to_spec(self, write_array: WriteArray = as_lists) -> object:
        """Return the form as a specification has it, arrays as lists or as `write_array` writes them."""


@final
@dataclass(frozen=True)
class NamedPredicates(PredicateForm):
    """A set that needs nothing but its name."""

    name: str

    @property
    def text(self) -> str:
        return self.name

    def on(self, attribute: Attribute) -> Predicates:
        return NAMED_PREDICATES[self.name]

    def to_spec(self, write_array: WriteArray = as_lists) -> str:
        return self.name


@final
@dataclass(frozen=True)
class StackedPredicates(PredicateForm):
    """Several sets, one after the other."""

    forms: tuple[PredicateForm, ...]

    @property
    def text(self) -> str:
        return " + ".join(form.text for form in self.forms)

    def on(self, attribute: Attribute) -> Predicates:
        return Stacked(tuple(each(lambda form: form.on(attribute), self.forms)))

    def to_spec(self, write_array: WriteArray = as_lists) -> list[object]:
        return [form.to_spec(write_array) for form in self.forms]


class KeyedPredicates(Record, PredicateForm):
    """A set that is written as a mapping, told from others by its first key; see `keyed_predicates`."""

    sample: ClassVar[str]
    """How it is written, for messages."""

    @property
    def text(self) -> str:
        return self.main_key()


def keyed_predicates(form: K) -> K:
    """Add a form of predicate sets to the language, by its first key; a decorator of records."""
    register(KEYED_PREDICATES, form)
    return form


@final
@dataclass(frozen=True)
class _Predicates(Form[PredicateForm]):
    """The form of a predicate set: a name, a mapping, or, where they may be stacked, a list of these."""

    stacked: bool

    def read(self, written: object, resolve: ResolvePath) -> PredicateForm:
        if isinstance(written, PredicateForm):
            return written
        if isinstance(written, str) and written in NAMED_PREDICATES:
            return NamedPredicates(written)
        if self.stacked and isinstance(written, list | tuple) and written:
            return StackedPredicates(ListOf(_Predicates(stacked=False), "").read(written, resolve))
        keys = list(written) if isinstance(written, Mapping) else []
        known = [name for name in keys if name in KEYED_PREDICATES]
        if len(known) == 1:
            return KEYED_PREDICATES[known[0]].read(written, resolve)
        close: tuple[str, ...] = ()
        if isinstance(written, str):
            close = nearest(written, (*NAMED_PREDICATES, *KEYED_PREDICATES))
        elif keys and not known:
            close = nearest(str(keys[0]), KEYED_PREDICATES)
        forms = ", ".join([*NAMED_PREDICATES, *(form.sample for form in KEYED_PREDICATES.values())])
        expected = f"{forms} or a list of these" if self.stacked else forms
        code = "unknown-name" if close or (isinstance(written, str) and written) else None
        raise FormError.at((), describe_value(written), expected, close, code=code)

    def write(self, value: PredicateForm, write_array: WriteArray = as_lists) -> object:
        return value.to_spec(write_array)

    def schema(self, definitions: Schema) -> Schema:
        one, several = {"$ref": "#/$defs/PredicateSet"}, {"$ref": "#/$defs/PredicateSets"}
        if "PredicateSet" not in definitions:
            forms = definitions["PredicateSet"] = {"anyOf": [{"enum": list(NAMED_PREDICATES)}]}
            definitions["PredicateSets"] = {"anyOf": [one, {"type": "array", "minItems": 1, "items": one}]}
            forms["anyOf"] += [form.schema(definitions) for form in KEYED_PREDICATES.values()]
        return several


PREDICATES = _Predicates(stacked=True)
"""The form of predicate sets."""


# Files that hold arrays: NumPy and SciPy files, told by how they begin, and CSV, by its ending.

ARRAY_FILE = "a NumPy file (.npy), a SciPy sparse matrix (.npz) or numbers without a header (.csv)"
"""What a file of an array may be, for messages."""

_NUMPY, _ZIP = b"\x93NUMPY", b"PK\x03\x04"
_UNREADABLE = (*NOT_NUMPY, zipfile.BadZipFile, KeyError, NotImplementedError, RuntimeError)


def load_array(path: str | os.PathLike[str]) -> Array:
    r"""Return the array that a NumPy, SciPy or CSV file holds.

    Pickled objects are refused, and sizes are checked before the numbers are read.

    Raises
    ------
    WorkloadError
        If there is no such file, or it holds anything but real numbers.
    TooLargeError
        If they are too many.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "halves.csv")
    ...     _ = file.write_text("1, 1, 0, 0\n0, 0, 1, 1\n")
    ...     load_array(file)
    array([[1., 1., 0., 0.],
           [0., 0., 1., 1.]])
    """
    file = Path(path)
    if not os.path.isfile(file):  # noqa: PTH113 - no error where the path is none
        raise _refused(file, "no such file", ARRAY_FILE, "file-missing")
    if file.suffix.lower() == ".csv":
        return real_array(_numbers(file), str(file))
    try:
        with file.open("rb") as stream:
            start = stream.read(6)
        if start[:4] == _ZIP:
            return _sparse(file)
        if start != _NUMPY:
            raise ValueError("not a NumPy file")
        array = np.load(file, mmap_mode="r", allow_pickle=False)
    except MatrixDPError:  # which may be a ValueError, or a MemoryError
        raise
    except _UNREADABLE:
        raise _refused(file, "a file that cannot be read as NumPy", ARRAY_FILE, "damaged-file") from None
    return real_array(array, str(file))


def _refused(file: Path, found: str, expected: str, code: str) -> WorkloadError:
    return WorkloadError.at((str(file),), found, expected, code=code)


def _sparse(file: Path) -> Array:
    """Return the only array of a NumPy archive, or the sparse matrix that it is, written out."""
    import scipy.sparse

    with zipfile.ZipFile(file) as archive:
        names = {info.filename.removesuffix(".npy") for info in archive.infolist()}
        _check_entries(sum(info.file_size for info in archive.infolist()) // 8, file)
    with np.load(file, allow_pickle=False) as held:
        if len(names) == 1:
            return real_array(held[names.pop()], str(file))
        if "format" not in names:
            found = f"a file of {len(names)} arrays"
            raise _refused(file, found, "one array, or a sparse matrix", "wrong-size")
        _check_entries(math.prod(int(size) for size in held["shape"]), file)
    return real_array(scipy.sparse.load_npz(file).toarray(), str(file))


def _check_entries(entries: int, file: Path) -> None:
    if not 0 <= entries <= arrays.MAX_EXPLICIT_ENTRIES:
        raise TooLargeError(f"{file}: {entries} entries; the limit is {arrays.MAX_EXPLICIT_ENTRIES}")


def _numbers(file: Path) -> list[list[float]]:
    rows: list[list[float]] = []
    try:
        with file.open(encoding="utf-8-sig", newline="") as stream:
            for number, row in enumerate(csv.reader(stream, strict=True), 1):
                if row:
                    rows.append(_row(row, number, file))
                    _check_entries(len(rows) * len(row), file)
                    if len(row) != len(rows[0]):
                        found = f"{len(row)} numbers in line {number}, and {len(rows[0])} before"
                        raise _refused(file, found, "as many in every line", "wrong-size")
    except (OSError, UnicodeDecodeError, csv.Error):
        raise _refused(file, "a file that cannot be read as CSV", ARRAY_FILE, "damaged-file") from None
    return rows


def _row(row: list[str], number: int, file: Path) -> list[float]:
    numbers = []
    for place, cell in enumerate(row, 1):
        try:
            numbers.append(float(cell))
        except ValueError:
            found = f"{cell[:40]!r} in line {number}, column {place}"
            expected = "numbers alone, separated by commas, without a header"
            raise _refused(file, found, expected, "wrong-type") from None
    return numbers


# Arrays of numbers that a user gives: in memory, as lists, or as files.


@final
@dataclass(frozen=True)
class ArrayForm(Form[Array]):
    """An array, nested lists, or the path of a file; see `load_array`.

    Parameters
    ----------
    expected : str
    axes : int, optional
        The number of axes; where it is left out, any number is flattened to one.
    """

    expected: str
    axes: int | None = None

    def read(self, written: object, resolve: ResolvePath) -> Array:
        value = resolve(written)
        array = self._numbers(value)
        if array.ndim != (array.ndim if self.axes is None else self.axes) or 0 in array.shape:
            raise FormError.at((), f"an array of shape {array.shape}", self.expected, code="wrong-size")
        if not np.isfinite(array).all():
            place = np.argwhere(~np.isfinite(array))[0] + 1
            where = f"row {place[0]}, column {place[1]}" if len(place) == 2 else f"number {place[0]}"
            found = f"an array with an entry that is NaN or infinite ({where})"
            raise FormError.at((), found, self.expected)
        return array.ravel() if self.axes is None else array

    def write(self, value: Array, write_array: WriteArray = as_lists) -> object:
        return write_array(value)

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
                raise FormError.at((), found, f"{ARRAY_FILE} with {self.expected}", code=error.code) from None
        if not isinstance(value, np.ndarray | list | tuple):
            expected = f"{ARRAY_FILE} or an array, {self.expected}"
            raise FormError.at((), describe_value(value), expected)
        try:
            return real_array(value, "array")
        except WorkloadError:
            found = "entries that are not real numbers, or rows of unequal length"
            raise FormError.at((), found, self.expected) from None


# The predicate sets that are written as mappings.

_MOST_PERMUTED = 1_000_000
_VALUE = scalar("one value of the attribute")

T = TypeVar("T")
V = TypeVar("V")
Listed = tuple[T, ...] | Mapping[str, T]
"""Items of a list, or each under its name."""


def _listed(item: Form[T], written: str) -> Form[Listed[T]]:
    """Return the form of a list of at least one item, or of a mapping from names to such items."""
    named = MappingOf(
        item,
        f"a mapping from names, each to {written}",
        named="a name, which is text",
        least=1,
        count=f"at least one name with {written}",
    )
    listed = ListOf(item, f"a list of at least one {written}, or a mapping from names to them", least=1)
    return AnyOf(((lambda value: isinstance(value, Mapping), named),), listed)


def _each(function: Callable[[T], V], items: Listed[T]) -> tuple[V, ...]:
    """Return what a function makes of each item; its errors tell the position or the name of the item."""
    if not isinstance(items, Mapping):
        return tuple(each(function, items))
    made = []
    for name, item in items.items():
        with within(name):
            made.append(function(item))
    return tuple(made)


def _labelled(
    predicates: Predicates, items: Listed[T], only: Iterable[int | None], attribute: Attribute
) -> Predicates:
    """Return a set with the names of its items, if they have some, which may not be those of other values.

    ``only`` has for each item its code, where it has no more than one.
    """
    if not isinstance(items, Mapping):
        return predicates
    for name, code in zip(items, only, strict=True):
        if not name.strip() or not is_unicode(name):
            raise EntryError.at((), f"the name {describe_value(name)}", "text that is not empty")
        if _called(attribute, name) not in (None, code):
            expected = f"a name that is not that of another value of {attribute.name!r}"
            raise EntryError.at((name,), repr(name), expected)
    return Labelled(predicates, tuple(items))


def _called(attribute: Attribute, name: str) -> int | None:
    """Return the code of the value that is called so, without a step for every value; bins by their edge."""
    for value in (name, name[1:].partition(",")[0]):
        with suppress(DomainError):
            code = attribute.find(value)
            if attribute.label(code) == name:
                return code
    return None


@final
@keyed_predicates
@record
class WidthForm(KeyedPredicates):
    """All ranges of so many values."""

    sample = "{width: k}"
    width: int = key(whole("an integer of at least 1, the number of values", least=1))

    @property
    def text(self) -> str:
        return f"width {self.width}"

    def on(self, attribute: Attribute) -> Predicates:
        if self.width > attribute.size:
            raise EntryError.at(
                ("width",), str(self.width), f"at most {attribute.size}, the attribute's size"
            )
        return Width(self.width)


@final
@keyed_predicates
@record
class RangesForm(KeyedPredicates):
    """Ranges, by their ends: listed, or each under its name."""

    sample = "{ranges: [[first, last], ...]}"
    ranges: Listed[tuple[object, object]] = key(
        _listed(
            ListOf(_VALUE, "a range [first, last]", 2, 2, "a range [first, last] of two values"),
            "range [first, last]",
        )
    )

    def on(self, attribute: Attribute) -> Predicates:
        with within("ranges"):
            ends = _each(lambda ends: attribute.code_range(*ends), self.ranges)
            only = (first if first == last else None for first, last in ends)
            return _labelled(Ranges(ends), self.ranges, only, attribute)


@final
@keyed_predicates
@record
class SetsForm(KeyedPredicates):
    """Sets of values: listed, or each under its name."""

    sample = "{sets: [[value, ...], ...]}"
    sets: Listed[tuple[object, ...]] = key(_listed(ListOf(_VALUE, "a set [value, ...]"), "set [value, ...]"))

    def on(self, attribute: Attribute) -> Predicates:
        with within("sets"):
            sets = _each(lambda values: _codes_of(values, attribute), self.sets)
            only = (codes[0] if len(codes) == 1 else None for codes in sets)
            return _labelled(Sets(sets), self.sets, only, attribute)


@final
@keyed_predicates
@record
class LevelForm(KeyedPredicates):
    """The values of a level of the attribute, each the set of those that are in it."""

    sample = "{level: name}"
    level: str = key(text("the name of a level of the attribute"))

    @property
    def text(self) -> str:
        return f"level {self.level}"

    def on(self, attribute: Attribute) -> Predicates:
        names = [level.name for level in attribute.codebook.levels]
        if self.level not in names:
            expected = f"a level of {attribute.name!r}"
            raise EntryError(unknown_name(("level",), self.level, expected, names), code="unknown-name")
        level = attribute.level(self.level)
        return Labelled(Sets(tuple(codes for _, codes in level.groups)), level.labels(attribute))


@final
@keyed_predicates
@record
class MatrixForm(KeyedPredicates):
    """The rows of a real matrix with a column for each value."""

    sample = "{matrix: file.npy}"
    matrix: Array = key(ArrayForm("a finite matrix with a row for each query", axes=2))

    @cached_property
    def _rows(self) -> Matrix:
        return Matrix(self.matrix)

    def on(self, attribute: Attribute) -> Predicates:
        columns = self.matrix.shape[1]
        if columns != attribute.size:
            expected = f"{attribute.size}, one for each value of the attribute"
            raise EntryError.at(("matrix",), f"a matrix of {columns} columns", expected, code="wrong-size")
        return self._rows


@final
@keyed_predicates
@record
class PermutedForm(KeyedPredicates):
    """A set over the values in another order: that of a seed, or one listed."""

    sample = "{permuted: set, seed: 1}"
    permuted: PredicateForm = key(PREDICATES)
    seed: int | None = key(whole("an integer"), default=None)
    order: tuple[object, ...] | None = key(ListOf(_VALUE, "a list of all values"), default=None)

    @property
    def text(self) -> str:
        return f"permuted {self.permuted.text}"

    def check(self) -> None:
        if (self.seed is None) == (self.order is None):
            found = "permuted with neither seed nor order" if self.seed is None else "both seed and order"
            expected = "{permuted: set, seed: 1} or {permuted: set, order: [value, ...]}, each value once"
            raise FormError.at((), found, expected)

    def on(self, attribute: Attribute) -> Predicates:
        with within("order"):
            order = self._order(attribute)
        with within("permuted"):
            return Permuted(self.permuted.on(attribute), order)

    def _order(self, attribute: Attribute) -> tuple[int, ...]:
        if self.order is None:
            if attribute.size > _MOST_PERMUTED:
                found = f"an attribute of {attribute.size:,} values"
                raise EntryError.at(
                    (), found, f"one of at most {_MOST_PERMUTED:,} to put in order", code="too-large"
                )
            return seeded_order(attribute.size, int(self.seed or 0))
        codes = _codes_of(self.order, attribute)
        if len(codes) != attribute.size:
            raise EntryError.at(
                (), f"{len(codes)} values", f"each of the {attribute.size} values once", code="wrong-size"
            )
        return codes


def _codes_of(values: tuple[object, ...], attribute: Attribute) -> tuple[int, ...]:
    codes = tuple(each(attribute.code_of, values))
    if len(set(codes)) < len(codes):
        place = next(i for i, code in enumerate(codes) if code in codes[:i])
        raise EntryError.at(
            (place,), f"{describe_value(values[place])} again", "each value once in a set", code="duplicate"
        )
    return codes
