"""Attributes from what a specification or a few lines of Python say about them."""

from __future__ import annotations

import csv
import hashlib
import io
import os
from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import date, datetime
from numbers import Real
from pathlib import Path
from typing import Any, final

from matrixdp import forms
from matrixdp.display import counted
from matrixdp.domain.amount import Amount
from matrixdp.domain.areas import AREAS, areas_of
from matrixdp.domain.attribute import LEVELS, Attribute, Codebook, Discovered, LevelTexts
from matrixdp.domain.derived import derived_attribute, derived_schema, is_derived
from matrixdp.domain.kinds import EDGE, UNITS, Bins, Categorical, Coded, Dates, Integers, edge_of
from matrixdp.domain.rules import INTEGER, NUMBER, TYPES, canonical_text, integer_of, number_of, wrong_value
from matrixdp.errors import DomainError, within
from matrixdp.forms import AnyOf, ListOf, MappingOf, OneOf, OrFile, RecordForm, Verbatim, key, record
from matrixdp.texts import TEXT, Described

# Public files with values: lists of categories, and tables that say which value stands for which.

_LARGEST = 64 * 2**20
_TWO = "a CSV file of two columns: the value, and what it counts as"
_KINDS = "a CSV file (.csv) with a header, or a text file (.txt) of one value a line"


@final
@dataclass(frozen=True)
class PublicFile:
    """What a public file says.

    Attributes
    ----------
    header : tuple of str
        The names of its columns; empty for a text file, which has one column.
    rows : tuple of tuple of str
        Its records, each of as many texts as there are columns.
    sha256 : str
        The digest of its bytes.
    """

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    sha256: str

    def values(self) -> tuple[str, ...]:
        """Return the values of a file of one column."""
        self._check(len(self.header) <= 1, "a file of one column, the values")
        return tuple(row[0] for row in self.rows)

    def pairs(self) -> dict[str, str]:
        """Return for each value of the first column what the second says of it, in a file of two."""
        self._check(len(self.header) == 2, _TWO)
        return {row[0]: row[1] for row in self._once()}

    def columns(self) -> dict[str, list[str]]:
        """Return the values of each column of a CSV file, by its name."""
        self._check(bool(self.header), "a CSV file with a header")
        return {name: list(values) for name, *values in zip(self.header, *self.rows, strict=True)}

    def groups(self) -> dict[str, dict[str, list[str]]]:
        """Return for each column but the first its values, each with those of the first that stand beside."""
        self._check(len(self.header) >= 2, "a CSV file: the value, then a column for each level")
        found: dict[str, dict[str, list[str]]] = {name: {} for name in self.header[1:]}
        for row in self._once():
            for name, value in zip(self.header[1:], row[1:], strict=True):
                found[name].setdefault(value, []).append(row[0])
        return found

    def group(self) -> dict[str, list[str]]:
        """Return the only group of a file of two columns."""
        self._check(len(self.header) == 2, _TWO)
        [group] = self.groups().values()
        return group

    def _check(self, fits: bool, expected: str) -> None:
        if not fits:
            columns = counted(max(len(self.header), 1), "column")
            raise DomainError.at((), f"a file with {columns}", expected, code="wrong-size")

    def _once(self) -> tuple[tuple[str, ...], ...]:
        """Return the records, each of another value in the first column."""
        seen: set[str] = set()
        for line, row in enumerate(self.rows, start=2):
            if row[0] in seen:
                found = f"{row[0]!r} a second time"
                raise DomainError.at((f"record {line}",), found, "each value once", code="duplicate")
            seen.add(row[0])
        return self.rows


def read_file(path: str | os.PathLike[str]) -> PublicFile:
    r"""Read a public file of values.

    Parameters
    ----------
    path : path
        Of a CSV file, whose first record names its columns, or of a text file of one value a line. Both are
        UTF-8. Values are taken as they stand; empty lines are left out.

    Raises
    ------
    DomainError
        If there is no such file, it is of another kind or too large, or a record has too few or too many
        values.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "codes.txt").write_text("AA\nDL\n")
    ...     read_file(Path(folder, "codes.txt")).values()
    ('AA', 'DL')
    """
    file = Path(path)
    kind = file.suffix.lower()
    if kind not in (".csv", ".txt"):
        raise _unread(file.name, "", _KINDS)
    if not os.path.isfile(file):  # noqa: PTH113 - no error where the path is none
        raise _unread(file.name, ", which is no file", _KINDS, "file-missing")
    try:
        if file.stat().st_size > _LARGEST:
            raise _unread(file.name, " of more than 64 MiB", "a smaller file", "too-large")
        content = file.read_bytes()
        text = content.decode("utf-8-sig")
    except OSError as error:
        told = f", which cannot be read ({error.strerror})"
        raise _unread(file.name, told, _KINDS, "file-missing") from None
    except UnicodeDecodeError:
        raise _unread(file.name, ", which is not UTF-8", "a file in UTF-8") from None
    digest = hashlib.sha256(content).hexdigest()
    if kind == ".csv":
        return PublicFile(*_records(text, file.name), digest)
    lines = text.replace("\r\n", "\n").split("\n")
    return PublicFile((), tuple((line,) for line in lines if line.strip()), digest)


def _unread(name: str, told: str, expected: str, code: str = "wrong-type") -> DomainError:
    return DomainError.at((), f"{name!r}{told}", expected, code=code)


def _records(text: str, name: str) -> tuple[tuple[str, ...], tuple[tuple[str, ...], ...]]:
    try:
        records = [tuple(row) for row in csv.reader(io.StringIO(text, newline=""), strict=True) if row]
    except csv.Error as error:
        raise _unread(name, f", which is no CSV ({error})", _KINDS) from None
    if len(records) < 2:
        told = f" with {counted(len(records), 'record')}"
        raise _unread(name, told, "a header and at least one record", "empty")
    header, *rows = records
    if len(set(header)) < len(header) or "" in header:
        told = f" with the header {', '.join(header)}"
        raise _unread(name, told, "a name for each column, once", "duplicate")
    for line, row in enumerate(rows, start=2):
        if len(row) != len(header):
            found = f"{counted(len(row), 'value')} in record {line} of {name!r}"
            expected = f"{len(header)}, one for each column of its header"
            raise DomainError.at((), found, expected, code="wrong-size")
    return header, tuple(rows)


def _at_files(spec: Mapping[object, object], change: Callable[[str, object], object]) -> dict[object, object]:
    """Return the description of an attribute with `change` applied to what may be a path, and its key."""
    found = {name: change(str(name), said) if name in _READERS else said for name, said in spec.items()}
    if isinstance(levels := found.get("levels"), Mapping):
        found["levels"] = {name: change(f"levels.{name}", said) for name, said in levels.items()}
    return found


def inlined(spec: Mapping[object, object]) -> dict[object, object]:
    """Return the description of an attribute with the contents of files in place of their paths.

    The digests of the files are added under ``sha256``; one that is given there already must be the same.

    Raises
    ------
    DomainError
        If a file cannot be read, does not have the columns that are needed, or has another digest.
    """
    digests: dict[str, str] = {}

    def read(key: str, said: object) -> object:
        if not isinstance(said, os.PathLike):
            return said
        with within(*key.split(".", maxsplit=1)):
            file = read_file(said)
            digests[key] = file.sha256
            return _READERS.get(key, PublicFile.group)(file)

    found = _at_files(spec, read)
    given = found.get("sha256", {})
    if digests and isinstance(given, Mapping):
        for key, digest in digests.items():
            if given.get(key, digest) != digest:
                expected = f"{digest}, that of the file"
                raise wrong_value(given[key], expected, "sha256", key, code="damaged-file")
        found["sha256"] = {**given, **digests}
    return found


_READERS: Mapping[object, Callable[[PublicFile], object]] = {
    "categories": lambda file: list(file.values()),
    "map": PublicFile.pairs,
    "levels": PublicFile.groups,
    "levels_from": PublicFile.columns,
    "values_from": PublicFile.columns,
}
"""How the keys that may have the path of a file are read from it."""


def with_paths(spec: object, resolve: forms.ResolvePath) -> object:
    """Return the description of an attribute with the names of files resolved relative to a folder."""
    if not isinstance(spec, Mapping):
        return spec
    found = _at_files(spec, lambda _, said: resolve(said) if isinstance(said, str) else said)
    if isinstance(columns := found.get("columns"), Mapping):
        found["columns"] = {name: with_paths(own, resolve) for name, own in columns.items()}
    return found


EXPECTED = (
    "a list of categories, {min, max}, {min, max, bins}, {edges: [...]}, {amount: [...]}, "
    "{categories: [...], type}, {labels: {...}}, {levels_from: file}, {from, to, by}, {map: {...}}, "
    "{of: [...], sql} or a size"
)
_INTEGER = forms.Accepted(INTEGER, integer_of, {"type": "integer"})
_NUMBER = forms.Accepted(NUMBER, number_of, {"type": "number"})
_EDGE = forms.Accepted(EDGE, edge_of, {"anyOf": [{"type": "number"}, {"enum": ["-inf", "inf"]}]})
_NAME = forms.text("text that is not empty")
_TEXT_OF_DAY = forms.text("a date, such as 2013-01-31")
_CATEGORY = forms.scalar("text, a finite number, true or false")


def _only(word: str, what: str) -> forms.Accepted[str]:
    """Return the form of the one type that the values of an attribute can have."""
    expected = f"{word}, as {what}; other types are those of listed categories"
    return forms.Accepted(expected, lambda written: word if written == word else None, {"const": word})


def _day(written: object) -> str | None:
    if isinstance(written, date) and not isinstance(written, datetime):
        return written.isoformat()
    return _TEXT_OF_DAY.accept(written)


_DAY = replace(_TEXT_OF_DAY, accept=_day)
_CLIP = forms.flag()
_CASE = OneOf(("match", "ignore"))
_UNIT_LEVELS = ListOf(OneOf(UNITS), "a list of units", once="each unit once")
_DATED_LEVELS: forms.Form[Any] = AnyOf(((lambda said: isinstance(said, list | tuple), _UNIT_LEVELS),), LEVELS)
_OF_INTEGERS = _only("integer", "the values from min to max are integers")
_OF_CODES = _only("integer", "codes are integers")
_OF_NUMBERS = _only("number", "bins and amounts are made of numbers")


@record
class AttributeForm(Described):
    """An attribute that is written as a mapping; these keys go with all of them."""

    error = DomainError

    column: str | None = key(_NAME, default=None, about="the table's column, where it has another name")
    trim: bool = key(forms.flag(), default=False, about="whether white space around texts is left out")
    null: str | None = key(TEXT, default=None, about="the label of missing values, which makes them a value")
    missing: tuple[object, ...] = key(
        ListOf(_CATEGORY, "a list of values"),
        default=(),
        about="values of the table that mean missing, besides nulls, NaN and empty texts",
    )
    labels: Mapping[str, str] = key(
        MappingOf(TEXT, "a mapping of values to what they are called", named="a value"), default={}
    )
    levels: Mapping[str, object] = key(LEVELS, default={}, about="coarser lists of values")
    level_texts: Mapping[str, LevelTexts] = key(
        MappingOf(RecordForm(LevelTexts), "a mapping of levels to their texts", named="the name of a level"),
        default={},
        about="names of levels and their values for readers",
    )
    sha256: Mapping[str, str] = key(
        MappingOf(_NAME, "a mapping of keys to the digests of their files", named="a key"),
        default={},
        about="the digests of the files that values were read from",
    )
    discovered: Discovered | None = key(
        RecordForm(Discovered), default=None, about="what finding the values in a private table cost"
    )

    @abstractmethod
    def named(self, name: str) -> Attribute:
        """Return the attribute of a name."""

    @property
    def codebook(self) -> Codebook:
        """The code book that these keys describe."""
        labels, digests = tuple(self.labels.items()), tuple(self.sha256.items())
        told = Described(title=self.title, unit=self.unit, note=self.note, source=self.source)
        missing: Any = self.missing
        return Codebook(
            self.column,
            self.null,
            labels,
            self.trim,
            sha256=digests,
            missing=missing,
            described=told,
            discovered=self.discovered,
        )


@final
@record
class CategoriesForm(AttributeForm):
    """Listed categories."""

    categories: tuple[object, ...] = key(
        OrFile(
            ListOf(Verbatim(_CATEGORY.schema), "a list of categories", least=1, count="at least 1 category"),
            "a list of categories",
        )
    )
    type: str | None = key(OneOf(TYPES), default=None, blank=False)
    case: str = key(_CASE, default="match")

    def named(self, name: str) -> Categorical:
        return Categorical(name, self.categories, self.type, case=self.case, codebook=self.codebook)  # type: ignore[arg-type]  # checked by Categorical


@final
@record
class AreasForm(AttributeForm):
    """Categories and their levels, both listed by one table."""

    table: Mapping[str, tuple[object, ...]] = key(
        OrFile(MappingOf(ListOf(_CATEGORY, "a list of values"), AREAS, named="the name of a column"), AREAS),
        name="levels_from",
        about="a public table of the values, then a column for each level; or of area, parent and level",
    )
    type: str | None = key(OneOf(TYPES), default=None, blank=False)
    case: str = key(_CASE, default="match")

    def named(self, name: str) -> Categorical:
        with within(name, "levels_from"):
            categories, levels = areas_of(self.table)
            if name in levels:
                found = "a level that is called like the attribute"
                raise DomainError.at((name,), found, "another name of the column", code="conflict")
        own = Categorical(name, tuple(categories), self.type, case=self.case, codebook=self.codebook)
        return own.with_levels(levels)


@final
@record
class EdgesForm(AttributeForm):
    """Half-open bins between edges."""

    edges: tuple[float, ...] = key(ListOf(_EDGE, "a list of numbers", least=2, count="at least 2 edges"))
    closed: bool = key(forms.flag(), default=False)
    type: str = key(_OF_NUMBERS, default="number")
    clip: bool = key(_CLIP, default=False, about="count numbers beyond the edges for the first and last bin")

    def named(self, name: str) -> Bins:
        return Bins(name, self.edges, self.closed, clip=self.clip, codebook=self.codebook)


@final
@record
class EqualBinsForm(AttributeForm):
    """Equal half-open bins, the last one closed."""

    min: float = key(_NUMBER)
    max: float = key(_NUMBER)
    bins: int = key(_INTEGER)
    type: str = key(_OF_NUMBERS, default="number")
    clip: bool = key(_CLIP, default=False, about="count numbers beyond the ends for the first and last bin")

    def named(self, name: str) -> Bins:
        return Bins.equal(name, self.min, self.max, self.bins, self.codebook, clip=self.clip)


@final
@record
class IntegersForm(AttributeForm):
    """Consecutive integers, both ends included."""

    min: int = key(_INTEGER)
    max: int = key(_INTEGER)
    type: str = key(_OF_INTEGERS, default="integer")
    round: str | None = key(OneOf(("floor", "nearest")), default=None, blank=False)
    clip: bool = key(_CLIP, default=False, about="count numbers beyond the ends as the ends")

    def named(self, name: str) -> Integers:
        book = self.codebook
        return Integers(name, self.min, self.max, round=self.round, clip=self.clip, codebook=book)


@final
@record
class AmountForm(AttributeForm):
    """Numbers such as money, of which sums and means are asked; they are exact."""

    amount: tuple[float, ...] = key(
        ListOf(_NUMBER, "[lowest, highest], numbers beyond which count as these", 2, 2, "two numbers"),
        about="the lowest and the highest number; those beyond count as these",
    )
    step: float = key(_NUMBER, default=1, about="the step to which numbers are rounded")
    squares: bool = key(forms.flag(), default=False, about="whether variances can be asked, too")
    type: str = key(_OF_NUMBERS, default="number")

    def named(self, name: str) -> Amount:
        low, high = self.amount
        return Amount(name, low, high, self.step, self.squares, codebook=self.codebook)


@final
@record
class DatesForm(AttributeForm):
    """The days from one to another, both included, or what they are parts of."""

    first: str | None = key(_DAY, name="from", default=None)
    last: str | None = key(_DAY, name="to", default=None)
    by: str = key(OneOf(UNITS), missing=f"what one value is: {', '.join(UNITS)}")
    levels: Any = key(_DATED_LEVELS, default={}, about="coarser units, such as quarter, or lists of values")
    clip: bool = key(_CLIP, default=False, about="count days before `from` and after `to` as these")
    time_zone: str | None = key(
        forms.text("a time zone, such as America/Chicago"),
        default=None,
        about="where moments with an offset from UTC are read; UTC where it is left out",
    )

    def named(self, name: str) -> Dates:
        read: Any = {"clip": self.clip, "time_zone": self.time_zone, "codebook": self.codebook}
        return Dates(name, self.first, self.last, self.by, **read)


@final
@record
class CodedForm(AttributeForm):
    """Codes from 0 to the size less 1."""

    size: int = key(_INTEGER)
    type: str = key(_OF_CODES, default="integer")

    def named(self, name: str) -> Coded:
        return Coded(name, self.size, codebook=self.codebook)


@final
@record
class LabelledForm(AttributeForm):
    """Categories that are listed by their labels alone."""

    labels: Mapping[str, str] = key(
        MappingOf(TEXT, "a mapping of categories to what they are called", named="a category", least=1)
    )
    type: str | None = key(OneOf(TYPES), default=None, blank=False)
    case: str = key(_CASE, default="match")

    def named(self, name: str) -> Categorical:
        return Categorical(name, tuple(self.labels), self.type, case=self.case, codebook=self.codebook)


_FORMS: Mapping[str, type[AttributeForm]] = {
    "amount": AmountForm,
    "categories": CategoriesForm,
    "levels_from": AreasForm,
    "edges": EdgesForm,
    "bins": EqualBinsForm,
    "min": IntegersForm,
    "max": IntegersForm,
    "from": DatesForm,
    "to": DatesForm,
    "by": DatesForm,
    "size": CodedForm,
    "labels": LabelledForm,
}
"""The forms by the keys that tell them, the most telling first."""


def attribute_from_spec(name: str, spec: object, known: Mapping[str, Attribute] | None = None) -> Attribute:
    """Return the attribute that a specification describes.

    Parameters
    ----------
    name : str
        The attribute's name.
    spec : object
        A list of categories, or ``{categories: [...], type}``; ``{min, max}`` or a Python range for integers,
        ends inclusive; ``{edges: [...]}`` for half-open bins; ``{min, max, bins}`` for equal ones, the last
        one closed; ``{amount: [lowest, highest], step}`` for numbers of which sums are asked;
        ``{from, to, by}`` for dates; an integer, or ``{size}``, for the number of codes;
        ``{labels: {...}}`` for categories by their labels; ``{levels_from: {...}}`` for areas with the larger
        ones that they lie in; or an `Attribute` of the same name. Mappings take
        the keys of `Codebook` too.
    known : mapping of str to Attribute, optional
        The attributes of the domain that this one may be derived from.

    Raises
    ------
    DomainError
        If the description is none of these, or wrong in itself.

    Examples
    --------
    >>> attribute_from_spec("hours", {"min": 0, "max": 100, "bins": 20}).label(0)
    '[0, 5)'
    >>> attribute_from_spec("age", range(115))
    Integers(name='age', minimum=0, maximum=114, round=None, clip=False)
    """
    if isinstance(spec, Attribute):
        if spec.name != name:
            told = f"attribute {name!r} is described by an attribute named {spec.name!r}"
            raise DomainError(told, code="conflict")
        return spec
    if isinstance(spec, Mapping):
        with within(name):
            written = inlined(_with_texts(spec))
        if is_derived(written):
            texts = {str(word): value for word, value in written.items()}
            return derived_attribute(name, texts, known or {}, attribute_from_spec)
        with within(name):
            form = _form_of(written).read(written)
        return form.named(name).with_levels(form.levels).with_level_texts(form.level_texts)
    if isinstance(spec, range):
        if spec.step != 1 or len(spec) == 0:
            raise DomainError.at((name,), repr(spec), "a non-empty range of step 1", code="wrong-type")
        return Integers(name, spec.start, spec.stop - 1)
    if isinstance(spec, set | frozenset):
        expected = "its categories in an order: a list, not a set"
        raise DomainError.at((name,), "a set", expected, code="wrong-type")
    if isinstance(spec, tuple) and len(spec) == 2 and None not in map(integer_of, spec):
        first, last = map(integer_of, spec)
        integers = f"{{'min': {first}, 'max': {last}}} for integers"
        expected = f"{integers}, or the list [{first}, {last}] for two categories; a pair could be either"
        raise wrong_value(spec, expected, name)
    if isinstance(spec, Iterable) and not isinstance(spec, str | bytes):
        return Categorical(name, tuple(spec))
    if isinstance(spec, Real) and not isinstance(spec, bool):
        return Coded(name, spec)  # type: ignore[arg-type]  # checked by Coded
    raise wrong_value(spec, EXPECTED, name)


def _with_texts(spec: Mapping[object, object]) -> dict[object, object]:
    """Return a mapping with texts in place of keys that Python has other values for."""
    written = {"null" if name is None else name: value for name, value in spec.items()}
    for named in ("labels", "map"):
        if isinstance(texts := written.get(named), Mapping):
            with within(named):
                items = (("null" if value is None else value, told) for value, told in texts.items())
                written[named] = {canonical_text(value): told for value, told in items}
    return written


def attribute_schema(definitions: forms.Schema) -> forms.Schema:
    """Return the JSON Schema of what describes an attribute."""
    categories = {"type": "array", "minItems": 1, "items": _CATEGORY.schema(definitions)}
    known = dict.fromkeys(_FORMS.values())
    forms = [form.schema(definitions) for form in known]
    values = {name: item for form in known for name, item in definitions[form.__name__]["properties"].items()}
    derived = derived_schema(definitions, values)
    return {"anyOf": [categories, {"type": "integer", "minimum": 1}, *forms, derived]}


def _form_of(spec: Mapping[object, object]) -> type[AttributeForm]:
    """Return the form that a mapping has, or was meant to have."""
    known = {name for form in _FORMS.values() for name in dict(form.keys())}
    meant = {name if name in known else next(iter(forms.nearest(str(name), _FORMS)), name) for name in spec}
    if "discover" in spec:
        expected = (
            "its values: `matrixdp discover` finds them, and `domain_from` names the file that it writes"
        )
        raise DomainError.at(("discover",), "an attribute without values", expected, code="missing-key")
    for name, form in _FORMS.items():
        if name in meant:
            return form
    raise wrong_value(spec, EXPECTED)
