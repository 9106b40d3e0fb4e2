"""Attributes from what a specification or a few lines of Python say about them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import date, datetime
from numbers import Real
from typing import final

from matrixdp.domain.attributes import Attribute, Bins, Categorical, Coded, Dates, Integers
from matrixdp.domain.bins import EDGE, edge_of
from matrixdp.domain.canonical import INTEGER, canonical_text, integer_of, number_of
from matrixdp.domain.codebook import Codebook
from matrixdp.domain.dates import UNITS
from matrixdp.domain.derived import derived_attribute, derived_schema, is_derived
from matrixdp.domain.files import inlined
from matrixdp.domain.levels import LEVELS
from matrixdp.domain.rules import TYPES
from matrixdp.errors import DomainError, within
from matrixdp.forms import (
    Accepted,
    ListOf,
    MappingOf,
    OneOf,
    OrFile,
    Raw,
    Record,
    Schema,
    describe_value,
    flag,
    key,
    nearest,
    record,
    scalar,
    text,
)

__all__ = ["attribute_from_spec", "attribute_schema"]

EXPECTED = (
    "a list of categories, {min, max}, {min, max, bins}, {edges: [...]}, {categories: [...], type}, "
    "{labels: {...}}, {from, to, by}, {map: {...}}, {of: [...], sql} or a size"
)
_INTEGER = Accepted(INTEGER, integer_of, {"type": "integer"})
_NUMBER = Accepted("a finite number", number_of, {"type": "number"})
_EDGE = Accepted(EDGE, edge_of, {"anyOf": [{"type": "number"}, {"enum": ["-inf", "inf"]}]})
_NAME = text("text that is not empty")
_TEXT_OF_DAY = text("a date, such as 2013-01-31")
_CATEGORY = scalar("text, a finite number, true or false")


def _only(word: str, what: str) -> Accepted[str]:
    """Return the form of the one type that the values of an attribute can have."""
    expected = f"{word}, as {what}; other types are those of listed categories"
    return Accepted(expected, lambda written: word if written == word else None, {"const": word})


def _day(written: object) -> str | None:
    if isinstance(written, date) and not isinstance(written, datetime):
        return written.isoformat()
    return _TEXT_OF_DAY.accept(written)


_DAY = replace(_TEXT_OF_DAY, accept=_day)
_CASE = OneOf(("match", "ignore"))
_OF_INTEGERS = _only("integer", "the values from min to max are integers")
_OF_CODES = _only("integer", "codes are integers")
_OF_BINS = _only("number", "bins are made of numbers")


@record
class AttributeForm(Record):
    """An attribute that is written as a mapping; these keys go with all of them."""

    error = DomainError

    column: str | None = key(_NAME, default=None, about="the table's column, where it has another name")
    trim: bool = key(flag(), default=False, about="whether white space around texts is left out")
    null: str | None = key(_NAME, default=None, about="what missing values are called, as a value")
    labels: Mapping[str, str] = key(
        MappingOf(_NAME, "a mapping of values to what they are called", named="a value"), default={}
    )
    levels: Mapping[str, object] = key(LEVELS, default={}, about="coarser lists of values")
    sha256: Mapping[str, str] = key(
        MappingOf(_NAME, "a mapping of keys to the digests of their files", named="a key"),
        default={},
        about="the digests of the files that values were read from",
    )

    @abstractmethod
    def named(self, name: str) -> Attribute:
        """Return the attribute of a name."""

    @property
    def codebook(self) -> Codebook:
        """What these keys say."""
        labels, digests = tuple(self.labels.items()), tuple(self.sha256.items())
        return Codebook(self.column, self.null, labels, self.trim, sha256=digests)


@final
@record
class CategoriesForm(AttributeForm):
    """Listed categories."""

    categories: tuple[object, ...] = key(
        OrFile(
            ListOf(Raw(_CATEGORY.schema), "a list of categories", least=1, count="at least 1 category"),
            "a list of categories",
        )
    )
    type: str | None = key(OneOf(TYPES), default=None, blank=False)
    case: str = key(_CASE, default="match")

    def named(self, name: str) -> Categorical:
        return Categorical(name, self.categories, self.type, case=self.case, codebook=self.codebook)  # type: ignore[arg-type]  # checked by Categorical


@final
@record
class EdgesForm(AttributeForm):
    """Half-open bins between edges."""

    edges: tuple[float, ...] = key(ListOf(_EDGE, "a list of numbers", least=2, count="at least 2 edges"))
    closed: bool = key(flag(), default=False)
    type: str = key(_OF_BINS, default="number")

    def named(self, name: str) -> Bins:
        return Bins(name, self.edges, self.closed, codebook=self.codebook)


@final
@record
class EqualBinsForm(AttributeForm):
    """Equal half-open bins, the last one closed."""

    min: float = key(_NUMBER)
    max: float = key(_NUMBER)
    bins: int = key(_INTEGER)
    type: str = key(_OF_BINS, default="number")

    def named(self, name: str) -> Bins:
        return Bins.equal(name, self.min, self.max, self.bins, self.codebook)


@final
@record
class IntegersForm(AttributeForm):
    """Consecutive integers, both ends included."""

    min: int = key(_INTEGER)
    max: int = key(_INTEGER)
    type: str = key(_OF_INTEGERS, default="integer")
    round: str | None = key(OneOf(("floor", "nearest")), default=None, blank=False)

    def named(self, name: str) -> Integers:
        return Integers(name, self.min, self.max, round=self.round, codebook=self.codebook)


@final
@record
class DatesForm(AttributeForm):
    """The days from one to another, both included, or what they are parts of."""

    first: str | None = key(_DAY, name="from", default=None)
    last: str | None = key(_DAY, name="to", default=None)
    by: str = key(OneOf(UNITS), missing=f"what one value is: {', '.join(UNITS)}")

    def named(self, name: str) -> Dates:
        return Dates(name, self.first, self.last, self.by, codebook=self.codebook)


@final
@record
class CodedForm(AttributeForm):
    """Codes from 0 on, so many as the size says."""

    size: int = key(_INTEGER)
    type: str = key(_OF_CODES, default="integer")

    def named(self, name: str) -> Coded:
        return Coded(name, self.size, codebook=self.codebook)


@final
@record
class LabelledForm(AttributeForm):
    """Categories that are listed by their labels alone."""

    labels: Mapping[str, str] = key(
        MappingOf(_NAME, "a mapping of categories to what they are called", named="a category", least=1)
    )
    type: str | None = key(OneOf(TYPES), default=None, blank=False)
    case: str = key(_CASE, default="match")

    def named(self, name: str) -> Categorical:
        return Categorical(name, tuple(self.labels), self.type, case=self.case, codebook=self.codebook)


_FORMS: Mapping[str, type[AttributeForm]] = {
    "categories": CategoriesForm,
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
        one closed; ``{from, to, by}`` for dates; an integer, or ``{size}``, for the number of codes;
        ``{labels: {...}}`` for categories by their labels; or an `Attribute` of the same name. Mappings take
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
    Integers(name='age', minimum=0, maximum=114, round=None)
    """
    if isinstance(spec, Attribute):
        if spec.name != name:
            raise DomainError(f"attribute {name!r} is described by an attribute named {spec.name!r}")
        return spec
    if isinstance(spec, Mapping):
        with within(name):
            written = inlined(_with_texts(spec))
        if is_derived(written):
            texts = {str(word): value for word, value in written.items()}
            return derived_attribute(name, texts, known or {}, attribute_from_spec)
        with within(name):
            form = _form_of(written).read(written)
        return form.named(name).with_levels(form.levels)
    if isinstance(spec, range):
        if spec.step != 1 or len(spec) == 0:
            raise DomainError.at((name,), repr(spec), "a non-empty range of step 1")
        return Integers(name, spec.start, spec.stop - 1)
    if isinstance(spec, set | frozenset):
        raise DomainError.at((name,), "a set", "its categories in an order: a list, not a set")
    if isinstance(spec, tuple) and len(spec) == 2 and None not in map(integer_of, spec):
        raise DomainError.at((name,), describe_value(spec), _either(*map(integer_of, spec)))
    if isinstance(spec, Iterable) and not isinstance(spec, str | bytes):
        return Categorical(name, tuple(spec))
    if isinstance(spec, Real) and not isinstance(spec, bool):
        return Coded(name, spec)  # type: ignore[arg-type]  # checked by Coded
    raise DomainError.at((name,), describe_value(spec), EXPECTED)


def _with_texts(spec: Mapping[object, object]) -> dict[object, object]:
    """Return a mapping with texts in the place of keys that Python has other values for."""
    written = {"null" if name is None else name: value for name, value in spec.items()}
    for named in ("labels", "map"):
        texts = written.get(named)
        if isinstance(texts, Mapping):
            with within(named):
                items = (("null" if value is None else value, told) for value, told in texts.items())
                written[named] = {canonical_text(value): told for value, told in items}
    return written


def _either(first: int | None, last: int | None) -> str:
    """Return what a pair of integers can mean."""
    integers = f"{{'min': {first}, 'max': {last}}} for integers"
    return f"{integers}, or the list [{first}, {last}] for two categories; a pair could be either"


def attribute_schema(definitions: Schema) -> Schema:
    """Return the JSON Schema of what describes an attribute."""
    categories = {"type": "array", "minItems": 1, "items": _CATEGORY.schema(definitions)}
    known = dict.fromkeys(_FORMS.values())
    forms = [form.schema(definitions) for form in known]
    values = {name: item for form in known for name, item in definitions[form.__name__]["properties"].items()}
    derived = derived_schema(definitions, values)
    return {"anyOf": [categories, {"type": "integer", "minimum": 1}, *forms, derived]}


def _form_of(spec: Mapping[object, object]) -> type[AttributeForm]:
    """Return the form that a mapping has, or was meant to have."""
    meant = {next(iter(nearest(str(name), _FORMS)), name) if name not in _FORMS else name for name in spec}
    for name, form in _FORMS.items():
        if name in meant:
            return form
    raise DomainError.at((), describe_value(spec), EXPECTED)
