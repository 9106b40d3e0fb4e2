"""Predicate sets as a user writes them; a form knows nothing of an attribute until it is put on one."""

from __future__ import annotations

import csv
import math
import os
import re
import zipfile
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, TypeVar, final

import numpy as np

from matrixdp import forms, queries
from matrixdp.domain import Attribute, Dates
from matrixdp.domain.kinds import PERIODS
from matrixdp.errors import DomainError, EntryError, MatrixDPError, TooLargeError, WorkloadError, each, within
from matrixdp.forms import Form, FormError, ListOf, ResolvePath, Schema, WriteArray, as_lists, key, record
from matrixdp.queries.predicates import NOT_NUMPY, Array, Matrix, Predicates, real_array
from matrixdp.queries.structured import seeded_order


def calendar_dates(attribute: Attribute) -> Dates:
    """Return an attribute of periods that follow one another."""
    if isinstance(attribute, Dates) and attribute.by in PERIODS:
        return attribute
    *others, last = PERIODS
    expected = f"an attribute of dates by {', '.join(others)} or {last}"
    raise EntryError.at((), f"{attribute.name!r}", expected, code="wrong-kind")


def _year_to_date(attribute: Attribute) -> Predicates:
    """Return the ranges from the first period of each calendar year, as far as it is in the domain."""
    first: dict[int, int] = {}
    years = enumerate(calendar_dates(attribute).years)
    return queries.YearToDate(tuple((first.setdefault(year, code), code) for code, year in years))


def _same_period_last_year(attribute: Attribute) -> Predicates:
    dates = calendar_dates(attribute)
    earlier = ((dates.year_before(code), code) for code in range(len(dates.years)))
    pairs = tuple((before, code) for before, code in earlier if before is not None)
    if not pairs:
        found = f"{attribute.name!r}, no period of which is also a year before another"
        raise EntryError.at((), found, "an attribute of dates of more than a year", code="wrong-size")
    return queries.Changes(pairs)


NAMED_PREDICATES: dict[str, Predicates | Callable[[Attribute], Predicates]] = {
    "identity": queries.Identity(),
    "total": queries.Total(),
    "prefix": queries.Prefix(),
    "suffix": queries.Suffix(),
    "range": queries.AllRanges(),
    "circular": queries.Circular(),
    "year_to_date": _year_to_date,
    "same_period_last_year": _same_period_last_year,
}
"""The predicate sets that need nothing but their name, and the attribute's calendar."""

KEYED_PREDICATES: dict[str, type[KeyedPredicates]] = {}
"""The predicate sets that are mappings, by the key that tells them."""
_FORMER: Mapping[object, object] = {"width": "sliding"}
"""What keys that tell sets were called before."""


K = TypeVar("K", bound="type[KeyedPredicates]")


class PredicateForm(ABC):
    """A predicate set as written, checked as far as it can be without its attribute."""

    @property
    @abstractmethod
    def text(self) -> str:
        """The name of the set within the names of groups."""

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
        found = NAMED_PREDICATES[self.name]
        return found if isinstance(found, Predicates) else found(attribute)

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
        return queries.Stacked(tuple(each(lambda form: form.on(attribute), self.forms)))

    def to_spec(self, write_array: WriteArray = as_lists) -> list[object]:
        return [form.to_spec(write_array) for form in self.forms]


class KeyedPredicates(forms.Record, PredicateForm):
    """A set that is written as a mapping, recognized by its first key; see `keyed_predicates`."""

    sample: ClassVar[str]
    """How it is written, for messages."""
    details: ClassVar[str] = ""
    """What follows its first key in ``text``, as a regular expression."""

    @property
    def text(self) -> str:
        return self.main_key()


def keyed_predicates(form: K) -> K:
    """Add a form of predicate sets to the language, by its first key; a decorator of records."""
    forms.register(KEYED_PREDICATES, form)
    return form


def set_names() -> tuple[str, ...]:
    """Return what predicate sets are called in the names of groups, as regular expressions.

    Examples
    --------
    >>> {"prefix", "ranges"} <= set(set_names())
    True
    """
    keyed = (f"{re.escape(name)}{form.details}" for name, form in KEYED_PREDICATES.items())
    return (*NAMED_PREDICATES, *keyed)


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
        keys = [_FORMER.get(name, name) for name in written] if isinstance(written, Mapping) else []
        known = [name for name in keys if name in KEYED_PREDICATES]
        if len(known) == 1:
            return KEYED_PREDICATES[known[0]].read(written, resolve)
        close: tuple[str, ...] = ()
        if isinstance(written, str):
            close = forms.nearest(written, (*NAMED_PREDICATES, *KEYED_PREDICATES))
        elif keys and not known:
            close = forms.nearest(str(keys[0]), KEYED_PREDICATES)
        known_forms = ", ".join([*NAMED_PREDICATES, *(form.sample for form in KEYED_PREDICATES.values())])
        expected = f"{known_forms} or a list of these" if self.stacked else known_forms
        code = "unknown-name" if close or (isinstance(written, str) and written) else None
        raise FormError.at((), forms.describe_value(written), expected, close, code=code)

    def write(self, value: PredicateForm, write_array: WriteArray = as_lists) -> object:
        return value.to_spec(write_array)

    def schema(self, definitions: Schema) -> Schema:
        one, several = {"$ref": "#/$defs/PredicateSet"}, {"$ref": "#/$defs/PredicateSets"}
        if "PredicateSet" not in definitions:
            found = definitions["PredicateSet"] = {"anyOf": [{"enum": list(NAMED_PREDICATES)}]}
            definitions["PredicateSets"] = {"anyOf": [one, {"type": "array", "minItems": 1, "items": one}]}
            found["anyOf"] += [form.schema(definitions) for form in KEYED_PREDICATES.values()]
        return several


PREDICATES = _Predicates(stacked=True)
"""The form of predicate sets."""


# Files that hold arrays: NumPy and SciPy files, recognized by their first bytes, and CSV, by its ending.

ARRAY_FILE = "a NumPy file (.npy), a SciPy sparse matrix (.npz) or numbers without a header (.csv)"
"""What a file of an array may be, for messages."""

_NUMPY, _ZIP = b"\x93NUMPY", b"PK\x03\x04"
_UNREADABLE: dict[str, tuple[type[Exception], ...]] = {
    "NumPy": (*NOT_NUMPY, zipfile.BadZipFile, KeyError, NotImplementedError, RuntimeError),
    "CSV": (OSError, UnicodeDecodeError, csv.Error),
}


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
    kind = "CSV" if file.suffix.lower() == ".csv" else "NumPy"
    try:
        values = _numbers(file) if kind == "CSV" else _stored(file)
    except MatrixDPError:  # which may be a ValueError, or a MemoryError
        raise
    except _UNREADABLE[kind]:
        found = f"a file that cannot be read as {kind}"
        raise _refused(file, found, ARRAY_FILE, "damaged-file") from None
    return real_array(values, str(file))


def _refused(file: Path, found: str, expected: str, code: str) -> WorkloadError:
    return WorkloadError.at((str(file),), found, expected, code=code)


def _stored(file: Path) -> object:
    """Return a NumPy array, the only one of an archive, or the sparse matrix that it is, written out."""
    with file.open("rb") as stream:
        start = stream.read(6)
    if start == _NUMPY:
        return np.load(file, mmap_mode="r", allow_pickle=False)
    if start[:4] != _ZIP:
        raise ValueError("not a NumPy file")
    with zipfile.ZipFile(file) as archive:
        names = {info.filename.removesuffix(".npy") for info in archive.infolist()}
        _check_entries(sum(info.file_size for info in archive.infolist()) // 8, file)
    with np.load(file, allow_pickle=False) as held:
        if len(names) == 1:
            return held[names.pop()]
        if "format" not in names:
            found = f"a file of {len(names)} arrays"
            raise _refused(file, found, "one array, or a sparse matrix", "wrong-size")
        _check_entries(math.prod(int(size) for size in held["shape"]), file)
    import scipy.sparse

    held = scipy.sparse.load_npz(file)
    if hasattr(held, "check_format"):
        held.check_format(full_check=True)  # SciPy writes to memory wherever an index says
    return held.toarray()


def _check_entries(entries: int, file: Path) -> None:
    if not 0 <= entries <= queries.predicates.MAX_EXPLICIT_ENTRIES:
        limit = queries.predicates.MAX_EXPLICIT_ENTRIES
        raise TooLargeError(f"{file}: {entries} entries; the limit is {limit}")


def _numbers(file: Path) -> list[list[float]]:
    rows: list[list[float]] = []
    with file.open(encoding="utf-8-sig", newline="") as stream:
        for line, row in enumerate(csv.reader(stream, strict=True), 1):
            if not row:
                continue
            rows.append([_number(cell, line, place, file) for place, cell in enumerate(row, 1)])
            _check_entries(len(rows) * len(row), file)
            if len(row) != len(rows[0]):
                found = f"{len(row)} numbers in line {line}, and {len(rows[0])} before"
                raise _refused(file, found, "as many in every line", "wrong-size")
    return rows


def _number(cell: str, line: int, place: int, file: Path) -> float:
    try:
        return float(cell)
    except ValueError:
        found = f"{cell[:40]!r} in line {line}, column {place}"
        expected = "numbers alone, separated by commas, without a header"
        raise _refused(file, found, expected, "wrong-type") from None


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
        array = self._numbers(resolve(written))
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
            raise FormError.at((), forms.describe_value(value), expected)
        try:
            return real_array(value, "array")
        except WorkloadError:
            found = "entries that are not real numbers, or rows of unequal length"
            raise FormError.at((), found, self.expected) from None


# The predicate sets that are written as mappings.

_MOST_PERMUTED = 1_000_000
_VALUE = forms.scalar("one value of the attribute")

T = TypeVar("T")
Listed = tuple[T, ...] | Mapping[str, T]
"""Items of a list, or each under its name."""


def _listed(item: Form[T], written: str) -> Form[Listed[T]]:
    """Return the form of a list of at least one item, or of a mapping from names to such items."""
    named = forms.MappingOf(
        item,
        f"a mapping from names, each to {written}",
        named="a name, which is text",
        least=1,
        count=f"at least one name with {written}",
    )
    listed = ListOf(item, f"a list of at least one {written}, or a mapping from names to them", least=1)
    return forms.AnyOf(((lambda value: isinstance(value, Mapping), named),), listed)


def _listed_on(
    attribute: Attribute,
    items: Listed[T],
    codes_of: Callable[[T], tuple[int, ...]],
    kind: Callable[[Any], Predicates],
) -> Predicates:
    """Return a set of items; their names, if they have some, may not be those of other values."""
    if not isinstance(items, Mapping):
        return kind(tuple(each(codes_of, items)))
    made = []
    for name, item in items.items():
        if not name.strip() or not forms.is_unicode(name):
            raise EntryError.at((), f"the name {forms.describe_value(name)}", "text that is not empty")
        with within(name):
            codes = codes_of(item)
            if _called(attribute, name) not in (None, codes[0] if codes[0] == codes[-1] else None):
                expected = f"a name that is not that of another value of {attribute.name!r}"
                raise EntryError.at((), repr(name), expected)
        made.append(codes)
    return queries.Labelled(kind(tuple(made)), tuple(items))


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
class SlidingForm(KeyedPredicates):
    """The range of the last k values up to each value from the k-th on."""

    sample = "{sliding: k}"
    details = r" \d+"
    sliding: int = key(forms.whole("an integer of at least 1, the number of values", least=1))

    @property
    def text(self) -> str:
        return f"sliding {self.sliding}"

    def on(self, attribute: Attribute) -> Predicates:
        if self.sliding > attribute.size:
            expected = f"at most {attribute.size}, the attribute's size"
            raise EntryError.at(("sliding",), str(self.sliding), expected)
        return queries.Sliding(self.sliding)


@final
@keyed_predicates
@record
class ChangeForm(KeyedPredicates):
    """Each value less the one k values before."""

    sample = "{change: k}"
    details = r" \d+"
    change: int = key(forms.whole("an integer of at least 1, how many values back", least=1))

    @property
    def text(self) -> str:
        return f"change {self.change}"

    def on(self, attribute: Attribute) -> Predicates:
        if not attribute.numeric:
            expected = "an attribute of numbers, dates or bins, whose values have an order"
            raise EntryError.at(
                (), f"{attribute.name!r}, which lists categories", expected, code="wrong-kind"
            )
        codes = attribute.all_codes if attribute.null_code is None else attribute.all_codes[:-1]
        if self.change >= len(codes):
            expected = f"at most {len(codes) - 1}, one less than the attribute has values"
            raise EntryError.at(("change",), str(self.change), expected, code="out-of-range")
        return queries.Changes(tuple(zip(codes, codes[self.change :], strict=False)))


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
            return _listed_on(
                attribute, self.ranges, lambda ends: attribute.code_range(*ends), queries.Ranges
            )


@final
@keyed_predicates
@record
class SetsForm(KeyedPredicates):
    """Sets of values: listed, or each under its name."""

    sample = "{sets: [[value, ...], ...]}"
    sets: Listed[tuple[object, ...]] = key(_listed(ListOf(_VALUE, "a set [value, ...]"), "set [value, ...]"))

    def on(self, attribute: Attribute) -> Predicates:
        with within("sets"):
            return _listed_on(attribute, self.sets, lambda values: _codes_of(values, attribute), queries.Sets)


@final
@keyed_predicates
@record
class LevelForm(KeyedPredicates):
    """The values of a level of the attribute, each the set of those that are in it."""

    sample = "{level: name}"
    details = " .+"
    level: str = key(forms.text("the name of a level of the attribute"))

    @property
    def text(self) -> str:
        return f"level {self.level}"

    def on(self, attribute: Attribute) -> Predicates:
        names = [level.name for level in attribute.codebook.levels]
        if self.level not in names:
            expected = f"a level of {attribute.name!r}"
            raise EntryError(forms.unknown_name(("level",), self.level, expected, names), code="unknown-name")
        level = attribute.level(self.level)
        return queries.Labelled(queries.Sets(level.sets), level.labels(attribute.as_written))


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
    seed: int | None = key(forms.whole("an integer"), default=None)
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
            return queries.Permuted(self.permuted.on(attribute), order)

    def _order(self, attribute: Attribute) -> tuple[int, ...]:
        if self.order is None:
            if attribute.size > _MOST_PERMUTED:
                found = f"an attribute of {attribute.size:,} values"
                expected = f"one of at most {_MOST_PERMUTED:,} to put in order"
                raise EntryError.at((), found, expected, code="too-large")
            return seeded_order(attribute.size, int(self.seed or 0))
        codes = _codes_of(self.order, attribute)
        if len(codes) != attribute.size:
            expected = f"each of the {attribute.size} values once"
            raise EntryError.at((), f"{len(codes)} values", expected, code="wrong-size")
        return codes


def _codes_of(values: tuple[object, ...], attribute: Attribute) -> tuple[int, ...]:
    codes = tuple(each(attribute.code_of, values))
    if len(set(codes)) < len(codes):
        place = next(i for i, code in enumerate(codes) if code in codes[:i])
        found = f"{forms.describe_value(values[place])} again"
        raise EntryError.at((place,), found, "each value once in a set", code="duplicate")
    return codes
