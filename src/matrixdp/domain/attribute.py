"""What all kinds of attributes have in common."""

from __future__ import annotations

import math
import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from itertools import chain
from typing import Any, ClassVar, Self, final

from matrixdp import forms
from matrixdp.domain.rules import (
    A_NUMERAL,
    NUMBERS,
    WHITESPACE,
    Bounds,
    Kind,
    Listed,
    Rule,
    Texts,
    canonical_text,
    canonical_value,
    is_unreadable,
    wrong_value,
)
from matrixdp.errors import DomainError, TooLargeError, each, within
from matrixdp.forms import (
    Accepted,
    Form,
    MappingOf,
    OrFile,
    Record,
    Schema,
    Verbatim,
    flag,
    is_unicode,
    key,
    record,
    unknown_name,
)
from matrixdp.texts import ENGLISH, TEXT, Described, Text, Words, texts_of, words_in

_FRACTION = re.compile(r"(0|[1-9][0-9]{0,3999})(/[1-9][0-9]{0,3999})?", re.ASCII)
EXACT = Accepted(
    "an exact number as text, such as '1/3'",
    lambda written: written if isinstance(written, str) and _FRACTION.fullmatch(written) else None,
    {"type": "string"},
)
"""The form of an exact number."""

# Levels of an attribute: coarser lists of values, such as the states that counties are in.


@final
@record
class LevelTexts(Record):
    """What readers call a level of an attribute, and its values."""

    error = DomainError

    title: Text | None = key(TEXT, default=None, about="the name of the level for readers")
    labels: Mapping[str, Text] = key(
        MappingOf(TEXT, "a mapping of values of the level to what they are called", named="a value"),
        default={},
    )


@final
@dataclass(frozen=True)
class Level:
    """A coarser list of values of an attribute, each of whose own values is in one of them, or skips it.

    Parameters
    ----------
    name : str
        What the level is called.
    groups : tuple of (str, tuple of int)
        The values of the level in order, and the codes of the attribute that are in each.
    texts : LevelTexts
        What readers call the level and its values.
    skipped : tuple of int
        The codes that are in none of the values, as a city that is in no county.

    Raises
    ------
    DomainError
        If a name is no text or empty, or a value has no codes.

    Examples
    --------
    >>> from matrixdp.domain import Categorical
    >>> county = Categorical("county", ("Kings", "Queens", "Orange"))
    >>> state = Level.of(county, "state", {"NY": ["Kings", "Queens"], "CA": ["Orange"]})
    >>> state.groups
    (('NY', (0, 1)), ('CA', (2,)))
    """

    name: str
    groups: tuple[tuple[str, tuple[int, ...]], ...]
    texts: LevelTexts = field(default=LevelTexts(), compare=False, repr=False)
    skipped: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        _check_name(self.name)
        with within(self.name):
            for value, codes in self.groups:
                _check_name(value)
                if not codes:
                    expected = "at least one value of the attribute"
                    raise DomainError.at((value,), "an empty list", expected, code="empty")

    @classmethod
    def of(cls, attribute: Attribute, name: str, groups: object) -> Self:
        """Return the level of an attribute that lists its values under those of the level.

        Parameters
        ----------
        attribute : Attribute
            The attribute, whose values are listed.
        name : str
            What the level is called.
        groups : mapping of str to list, or to ``{"range": [first, last]}``
            The attribute's values under each value of the level; under an empty text those that skip it.

        Raises
        ------
        DomainError
            If a value is none of the attribute's.
        """
        with within(name):
            if not isinstance(groups, Mapping) or not groups:
                expected = "a mapping from each value of the level to the values that are in it, or a file"
                raise wrong_value(groups, expected)
            found = []
            for value, listed in groups.items():
                with within(str(value)):
                    found.append((value, _codes_of(attribute, listed)))
            null = attribute.null_code
            if null is not None and not any(null in codes for _, codes in found):
                # Files of levels list values alone: what is missing is missing in the level too.
                label = attribute.label(null)
                own = dict(found)
                own[label] = (*own.get(label, ()), null)
                found = list(own.items())
            skipped = dict(found).get("", ())
            named = tuple((value, codes) for value, codes in found if value != "")
            if not named:
                raise wrong_value("", "a value of the level, besides the empty text of those that skip it")
        return cls(name, named, skipped=skipped)

    @property
    def sets(self) -> tuple[tuple[int, ...], ...]:
        """The codes that are in each of its values."""
        return tuple(codes for _, codes in self.groups)

    def check(self, attribute: Attribute) -> None:
        """Check that every value of the attribute is in exactly one value of the level, or skips it."""
        groups = (*self.groups, ("", self.skipped))
        if sorted(chain.from_iterable(codes for _, codes in groups)) == [*attribute.all_codes]:
            return
        seen: dict[int, str] = {}
        for value, code in ((value, code) for value, codes in groups for code in codes):
            if code in seen:
                found = f"{attribute.label(code)!r} again, which is in {seen[code]!r}"
                raise DomainError.at((value,), found, "each value once", code="duplicate")
            seen[code] = value
        missing = [code for code in attribute.all_codes if code not in seen]
        if missing:
            found = f"no value for {attribute.label(missing[0])!r}"
            more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
            raise DomainError.at((), found + more, f"every value of {attribute.name!r} once")

    def labels(self, attribute: Attribute) -> tuple[str, ...]:
        """Return the names of the level's values in answers, in the attribute's language.

        One that is called like another value of the attribute has the level's name behind it: the state
        ``New York`` is not its county.
        """
        own = attribute.by_label
        language = attribute.codebook.language
        title = self.name if language is None else self.called(attribute)
        known = self.texts.labels
        texts = [
            known[value].within(language) if value in known else attribute.spoken(value, self.name)
            for value, _ in self.groups
        ]
        return tuple(
            text if own.get(text) in (None, *(codes if len(codes) == 1 else ())) else f"{text} ({title})"
            for text, (_, codes) in zip(texts, self.groups, strict=True)
        )

    def called(self, attribute: Attribute) -> str:
        """Return the title of the level, in the attribute's language."""
        title = self.texts.title
        return attribute.spoken(self.name) if title is None else title.within(attribute.codebook.language)

    def to_spec(self, values: Sequence[object]) -> dict[str, object]:
        """Return the level as a specification writes it: its values with those of the attribute."""
        groups = (*self.groups, ("", self.skipped)) if self.skipped else self.groups
        return {value: [values[code] for code in codes] for value, codes in groups}


def _level_schema(definitions: Schema) -> Schema:  # noqa: ARG001
    listed = {"type": "array", "minItems": 1}
    ends = {"type": "array", "minItems": 2, "maxItems": 2}
    spanned = {"type": "object", "properties": {"range": ends}, "required": ["range"]}
    groups = {"type": "object", "minProperties": 1, "additionalProperties": {"anyOf": [listed, spanned]}}
    return {"anyOf": [groups, {"type": "string", "minLength": 1}]}


LEVELS: Form[Mapping[str, object]] = OrFile(
    MappingOf(Verbatim(_level_schema), "a mapping from names to levels", named="the name of a level"),
    "a mapping from names to levels",
)
"""The form of the levels of an attribute."""


def _codes_of(attribute: Attribute, listed: object) -> tuple[int, ...]:
    expected = "a list of values, or {range: [first, last]}"
    if isinstance(listed, str | bytes) or not isinstance(listed, Iterable):
        raise wrong_value(listed, expected)
    if isinstance(listed, Mapping):
        return tuple(codes_of_range(attribute, listed, expected))
    return tuple(each(attribute.code_of, listed))


def codes_of_range(attribute: Attribute, written: Mapping[object, object], expected: str) -> range:
    """Return the codes of values that are written as ``{range: [first, last]}``."""
    ends = written.get("range")
    if set(written) != {"range"} or not isinstance(ends, list | tuple) or len(ends) != 2:
        raise wrong_value(written, expected)
    with within("range"):
        first, last = attribute.code_range(*ends)
    return range(first, last + 1)


def _check_name(text: object, *path: str, expected: str = "text that is not empty, a name") -> None:
    if not isinstance(text, str) or not text.strip() or not is_unicode(text):
        raise wrong_value(text, expected, *path)


# Attributes that are derived from others: a public table from the codes of the others to their own.

_MOST_COMBINATIONS = 1_000_000
"""The most combinations of values of parents that a public table may have."""


@final
@dataclass(frozen=True)
class Derivation:
    """How the codes of an attribute follow from those of its parents: a table that is looked up.

    Parameters
    ----------
    of : tuple of str
        The parents that are attributes of the domain.
    columns : tuple of Attribute
        The parents that are read from the table for this alone.
    codes : tuple of int
        The code for each combination of the parents' codes, row-major, those of `of` first.
    sql : str, optional
        The expression that the codes were computed by; a remark, which is not computed again.

    Examples
    --------
    >>> Derivation(("age",), (), (0, 0, 1)).of
    ('age',)
    """

    of: tuple[str, ...]
    columns: tuple[Attribute, ...]
    codes: tuple[int, ...]
    sql: str | None = None

    def to_spec(self) -> dict[str, object]:
        """Return the keys of a specification that say the same."""
        columns = {parent.name: parent.to_spec() for parent in self.columns}
        spec = {"of": list(self.of), "columns": columns, "sql": self.sql}
        return {key: said for key, said in spec.items() if said} | {"codes": list(self.codes)}

    def check(self, parents: Sequence[Attribute], size: int) -> None:
        """Check that there is a code of the attribute for every combination of the parents' values."""
        combinations = check_combinations(parents)
        if len(self.codes) != combinations:
            expected = f"{combinations}, one for each combination of values of {names_of(parents)}"
            raise DomainError.at(("codes",), f"{len(self.codes)} codes", expected, code="wrong-size")
        wrong = next((code for code in self.codes if not 0 <= code < size), None)
        if wrong is not None:
            raise DomainError.at(("codes",), str(wrong), f"codes from 0 to {size - 1}", code="out-of-range")


def check_combinations(parents: Sequence[Attribute]) -> int:
    """Return the number of combinations of the parents' values, which is limited."""
    if not parents:
        expected = "at least one attribute under `of`, or one column under `columns`"
        raise DomainError.at((), "no parents", expected, code="missing-key")
    for parent in parents:
        if parent.divided:
            expected = "a column under `columns` with values of its own, such as {edges: [0, 1000, 5000]}"
            raise DomainError.at((), f"the amount {parent.name!r}", expected, code="wrong-kind")
    combinations = math.prod(parent.size for parent in parents)
    if combinations > _MOST_COMBINATIONS:
        found = f"{combinations:,} combinations of values of {names_of(parents)}"
        raise DomainError.at((), found, f"at most {_MOST_COMBINATIONS:,}", code="too-large")
    return combinations


def names_of(parents: Sequence[Attribute]) -> str:
    """Return the names of parents in words."""
    return ", ".join(parent.name for parent in parents)


@final
@record
class Discovered(Record):
    """That values were found in a private table, and at which cost between its neighbours, as exact text."""

    error = DomainError

    epsilon: str | None = key(EXACT, default=None, about="of pure differential privacy, delta aside")
    mu: str | None = key(EXACT, default=None, about="of Gaussian differential privacy, delta aside")
    delta: str | None = key(EXACT, default=None, about="with what probability a rare value may show itself")
    private: bool = key(flag(), default=True, about="false where the noise was seeded")
    id: str | None = key(
        forms.text("text that is not empty"),
        default=None,
        about="the column that names the person it protects",
    )
    records: int = key(
        forms.whole("an integer of at least 1", least=1),
        default=1,
        about="of a person, where no column names her",
    )

    def check(self) -> None:
        if (self.epsilon is None) == (self.mu is None):
            raise DomainError.at((), "none of both, or both", "epsilon or mu", code="conflict")


# What a code book says of an attribute besides its values, the same for every kind of attribute.

_TEXT = "text that is not empty"
_SHA256 = re.compile(r"[0-9a-f]{64}", re.ASCII)


@final
@dataclass(frozen=True)
class Codebook:
    """Where raw values stand, how they are cleaned, and what values are called.

    Parameters
    ----------
    column : str, optional
        The table's column, where it has another name than the attribute.
    null : str, optional
        What missing values are called. They are then one more value of the attribute, the last one; otherwise
        they are out of domain.
    labels : mapping of object to str or Text, or pairs
        What some values are called.
    trim : bool
        Whether white space around texts is left out.
    levels : tuple of Level
        Coarser lists of values.
    sha256 : tuple of (str, str)
        The digests of the files that values were read from, by what was read.
    derivation : Derivation, optional
        How the attribute follows from others; then it is read from no column of its own.
    missing : sequence of object
        Values of the table that mean missing, such as 99 or "NA", besides nulls, NaN and empty texts.
    described : Described
        Texts for readers of the attribute; no other part depends on them.
    discovered : Discovered, optional
        Where values were found in a private table: what that cost. Statements of releases say it.
    language : str, optional
        The language of texts; the first of each where it is left out.

    Raises
    ------
    DomainError
        If a name is no text or empty, or something else is not what it should be.

    Examples
    --------
    >>> Codebook(null="unknown", labels={0: "female"}).to_spec()
    {'null': 'unknown', 'labels': {'0': 'female'}}
    """

    column: str | None = None
    null: str | None = None
    labels: tuple[tuple[str, str], ...] = ()
    trim: bool = False
    levels: tuple[Level, ...] = ()
    sha256: tuple[tuple[str, str], ...] = ()
    derivation: Derivation | None = None
    missing: tuple[str, ...] = ()
    described: Described = field(default=Described(), compare=False)
    discovered: Discovered | None = field(default=None, compare=False)
    language: str | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        for name, text in (("column", self.column), ("null", self.null)):
            if text is not None:
                _check_name(text, name, expected=_TEXT)
        if not isinstance(self.trim, bool):
            raise wrong_value(self.trim, "true or false", "trim")
        if not isinstance(self.missing, list | tuple):
            raise wrong_value(self.missing, "a list of values that mean missing", "missing")
        with within("missing"):
            missing = tuple(each(canonical_text, self.missing))
        object.__setattr__(self, "missing", missing)
        for file, digest in self.sha256:
            if not isinstance(digest, str) or not _SHA256.fullmatch(digest):
                expected = "64 digits from 0 to 9 and a to f, the digest of a file"
                raise wrong_value(digest, expected, "sha256", file)
        object.__setattr__(self, "labels", tuple(_labels(self.labels)))

    def to_spec(self) -> dict[str, object]:
        """Return the keys of a specification that say the same."""
        spec: dict[str, object] = {"column": self.column, "trim": self.trim, "null": _written(self.null)}
        spec |= {"missing": list(self.missing)}
        spec |= {"labels": {value: _written(label) for value, label in self.labels}}
        spec |= {"sha256": dict(self.sha256)} | self.described.to_spec()
        spec |= {"discovered": None if self.discovered is None else self.discovered.to_spec()}
        return {name: said for name, said in spec.items() if said}

    def texts(self) -> Iterator[tuple[str, str]]:
        """Yield the texts for readers with their places."""
        yield from texts_of(self.described)
        if self.null is not None:
            yield "null", self.null
        yield from ((f"labels.{value}", label) for value, label in self.labels)
        for level in self.levels:
            place = f"level_texts.{level.name}"
            yield from ((f"{place}.{key}", text) for key, text in texts_of(level.texts))
            yield from ((f"{place}.labels.{own}", text) for own, text in level.texts.labels.items())

    @property
    def languages(self) -> dict[str, None]:
        """The languages that its texts are written in."""
        texts = (text for _, text in self.texts() if isinstance(text, Text))
        return {name: None for text in texts for name in text.languages}


def _labels(given: object) -> Iterable[tuple[str, str]]:
    with within("labels"):
        if not isinstance(given, Mapping | tuple):
            raise wrong_value(given, "a mapping of values to what they are called")
        for value, label in given.items() if isinstance(given, Mapping) else given:
            text = canonical_text(value)
            _check_name(label, text, expected=_TEXT)
            yield text, label


def _written(text: str | None) -> object:
    return text.to_spec() if isinstance(text, Text) else text


def _within(text: str, language: str | None) -> str:
    return text.within(language) if isinstance(text, Text) else text


NO_CODEBOOK = Codebook()
"""The code book that says nothing."""


#: The most values of an attribute whose values are all listed or written out.
_MOST_LISTED = 20_000_000


@dataclass(frozen=True)
class Attribute(ABC):
    """A name and a finite, public, ordered list of values.

    Attributes
    ----------
    name : str
        The name, which is also the name of the column in a table where the code book names no other.
    size : int
        The number of values, at least 1.
    codebook : Codebook
        Where raw values stand, how they are cleaned, and what values are called.
    numeric : bool
        Whether the order of the values is that of numbers.
    divided : bool
        Whether records are divided among the values, as an `Amount` does, so that no record has one whole.
    """

    name: str
    size: int = field(init=False, repr=False, compare=False)
    _rule: Rule = field(init=False, repr=False, compare=False)
    codebook: Codebook = field(default=NO_CODEBOOK, kw_only=True, repr=False)
    _labels: dict[int, str] = field(init=False, repr=False, compare=False)
    _codes: dict[str, int] = field(init=False, repr=False, compare=False)
    numeric: ClassVar[bool]
    divided: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name or not is_unicode(self.name):
            raise wrong_value(self.name, "a non-empty string as the name of an attribute")
        if not isinstance(self.codebook, Codebook):
            raise wrong_value(self.codebook, "a Codebook", self.name, "codebook")
        self._set(_rule=self._checked())
        self._check_labels()

    @property
    def column(self) -> str:
        """The name of the table's column."""
        return self.name if self.codebook.column is None else self.codebook.column

    @property
    def null_code(self) -> int | None:
        """The code of missing values, the last one; None where these are out of domain."""
        return None if self.codebook.null is None else self.size - 1

    @property
    def rest_code(self) -> int | None:
        """The code of all values that a discovery did not find, the last one but null; None elsewhere."""
        return None

    @property
    def weight(self) -> int:
        """The weight of one record in the counts of the attribute's cells: 1, except for an `Amount`."""
        return 1

    @property
    def raw_size(self) -> int:
        """How many codes raw values become: as many as there are values, but for an `Amount`."""
        return self.size

    def raw_code(self, code: int) -> int:
        """Return the code that a raw value has which counts as one of the attribute's values."""
        return code

    @property
    def all_codes(self) -> range:
        """The codes of all values, for what takes memory for each.

        Raises
        ------
        TooLargeError
            If there are too many of them.
        """
        if self.size > _MOST_LISTED:
            found = f"{self.name!r} with {self.size:,} values, each of which would be listed"
            raise TooLargeError.at((), found, f"at most {_MOST_LISTED:,}: use bins, or fewer values")
        return range(self.size)

    @property
    def ends(self) -> Bounds | None:
        """Where the values begin and end, as numbers or days; None where they are categories."""
        return None

    @property
    def title(self) -> str:
        """The title of the attribute in its language, or its name if it has none."""
        return self.told.get("title", self.name)

    @property
    def told(self) -> dict[str, str]:
        """The texts for readers in the attribute's language, as far as given: title, unit, note, source.

        The note ends with `reading`.
        """
        told = self.codebook.described.told(self.codebook.language)
        note = " ".join(filter(None, (told.get("note"), self.reading)))
        return told | {"note": note} if note else told

    @property
    def reading(self) -> str:
        """How clipped, rounded, zoned and missing values count, in sentences; empty without such rules."""
        missing = [value or self.say("empty_text") for value in self.codebook.missing]
        absent = self.say("counts_missing", values=self.say.listed(missing)) if missing else ""
        return " ".join(filter(None, (self._counting, absent)))

    @property
    def _counting(self) -> str:
        """How numbers and times count, in sentences."""
        return ""

    @property
    def say(self) -> Words:
        """The words of the attribute's language."""
        language = self.codebook.language
        return ENGLISH if language is None else words_in(language)

    def in_language(self, language: str | None) -> Self:
        """Return the attribute with texts in a language; None for the first of each."""
        if language == self.codebook.language:
            return self
        return self._told(replace(self.codebook, language=language))

    def _told(self, codebook: Codebook) -> Self:
        """Return the attribute with levels or texts that do not change how values are read."""
        made = object.__new__(type(self))
        made._set(**{own.name: getattr(self, own.name) for own in fields(self)})
        made._set(codebook=codebook)
        made._check_labels()
        return made

    @cached_property
    def as_written(self) -> Self:
        """The attribute with the first of each text, which files have."""
        return self if self.codebook.language is None else self.in_language(None)

    def shown(self, text: str) -> str:
        """Translate a text of answers, a value or one of a level, into the attribute's language.

        Other texts come back as they are.
        """
        return self._shown.get(text, text)

    @cached_property
    def _shown(self) -> Mapping[str, str]:
        first = self.as_written
        found = {label: self._labels[code] for code, label in first._labels.items()}
        for level in self.codebook.levels:
            found |= zip(level.labels(first), level.labels(self), strict=True)
        return found

    def read_from(self, column: str | None) -> Self:
        """Return the attribute as it is read from another column; None for that of its own name."""
        return replace(self, codebook=replace(self.codebook, column=column))

    def value(self, code: int) -> str | int | float:
        """Return the public value of a code: a text, an integer, or the start of a bin.

        That of missing values is what they are called.
        """
        self._check_codes(code, code)
        null = self.codebook.null
        return null if null is not None and code == self.null_code else self._value(int(code))

    def code_of(self, value: object) -> int:
        """Return the code of a public value, or of what one is called; the inverse of `value` and `label`.

        Raises
        ------
        DomainError
            If the attribute does not list the value.
        """
        code = self._named(value)
        return self._code_of(value) if code is None else code

    def find(self, text: str) -> int:
        """Return the code of the public value that a text stands for, or of what is called by it.

        Raises
        ------
        DomainError
            If the attribute does not list the value.
        """
        code = self._named(text)
        code = self._listed(text) if code is None else code
        return self._code_of(text) if code is None else code

    def code_range(self, low: object, high: object) -> tuple[int, int]:
        """Return the first and the last code, both inclusive, of a public range of values.

        Raises
        ------
        DomainError
            If the range is empty or its ends are not in the domain.
        """
        first, last = self._named(low), self._named(high)
        if first is None or last is None:
            first, last = self._code_range(low, high)
        if first > last or last == self.null_code:
            null = "" if self.null_code is None else ", neither of them null"
            expected = f"two values of {self.name!r}, in the listed order{null}"
            raise wrong_value([low, high], expected, code="out-of-range")
        return first, last

    def rule(self, kind: Kind) -> Rule | None:
        """Return how values of a kind become codes; None where the attribute cannot be read from them."""
        return self._rule if kind in self._kinds() else None

    def to_spec(self) -> object:
        """Return the attribute as a specification writes it, in plain Python values."""
        common = self.codebook.to_spec()
        if self.codebook.levels:
            levels = self.codebook.levels
            values = [*map(self.value, self.all_codes)]
            common["levels"] = {level.name: level.to_spec(values) for level in levels}
            texts = {level.name: told for level in levels if (told := level.texts.to_spec())}
            common |= {"level_texts": texts} if texts else {}
        if self.codebook.derivation is not None:
            common |= self.codebook.derivation.to_spec()
        return {**self._mapping(), **common} if common else self._spec()

    def label(self, code: int) -> str:
        """Return the text of one value."""
        self._check_codes(code, code)
        return self._labels.get(int(code)) or self._written(int(code), int(code))

    @cached_property
    def by_label(self) -> Mapping[str, int]:
        """The code of each value by its text."""
        return {self._labels.get(code) or self._written(code, code): code for code in self.all_codes}

    def range_label(self, first: int, last: int) -> str:
        """Return the text of the values from one code to another, both inclusive."""
        self._check_codes(first, last)
        if first == last:
            return self.label(first)
        if last == self.null_code:
            return f"{self.range_label(first, last - 1)} | {self.label(last)}"
        if first in self._labels or last in self._labels:
            return f"{self.label(first)}..{self.label(last)}"
        return self._written(int(first), int(last))

    def _written(self, first: int, last: int) -> str:
        if self.codebook.language is not None and (spoken := self._spoken(first, last)):
            return spoken
        return self._label(first) if first == last else self._range_label(first, last)

    def _spoken(self, first: int, last: int) -> str:
        """Return values as people write them in the attribute's language; empty where files write them so."""
        return ""

    def spoken(self, text: str, level: str = "") -> str:
        """Return a value of a level, or a level's name, as people write it in the attribute's language."""
        return text

    def with_levels(self, levels: Mapping[str, object]) -> Self:
        """Return the attribute with levels besides its own, each as `Level.of` takes it.

        Raises
        ------
        DomainError
            If a level does not have every value of the attribute exactly once.
        """
        with within(self.name, "levels"):
            found = tuple(Level.of(self, name, groups) for name, groups in levels.items())
        book = replace(self.codebook, levels=(*self.codebook.levels, *found))
        return self._told(book) if found else self

    def with_level_texts(self, texts: Mapping[str, LevelTexts]) -> Self:
        """Return the attribute with what readers call some of its levels, and their values.

        Raises
        ------
        DomainError
            If there is no such level, or it has no such value.
        """
        for name, told in texts.items():
            with within(self.name, "level_texts", name):
                values = [value for value, _ in self.level(name).groups]
                for value in told.labels:
                    if value not in values:
                        expected = f"a value of the level {name!r}"
                        raise DomainError(unknown_name(("labels", value), value, expected, values))
        levels = self.codebook.levels
        named = tuple(replace(one, texts=texts[one.name]) if one.name in texts else one for one in levels)
        return self._told(replace(self.codebook, levels=named)) if texts else self

    def level(self, name: str) -> Level:
        """Return the level of a name.

        Raises
        ------
        DomainError
            If the attribute has no such level.
        """
        levels = {level.name: level for level in self.codebook.levels}
        if name not in levels:
            raise DomainError(unknown_name((), name, f"a level of {self.name!r}", levels))
        return levels[name]

    @abstractmethod
    def _checked(self) -> Rule:
        """Check the values, put them into one form, and return how raw values become codes."""

    def _kinds(self) -> tuple[Kind, ...]:
        """Return the kinds that the attribute can be read from."""
        return NUMBERS

    @abstractmethod
    def _value(self, code: int) -> str | int | float:
        """Return the public value of a code that is not that of missing values."""

    @abstractmethod
    def _code_of(self, value: object) -> int:
        """Return the code of a public value, or raise DomainError."""

    def _code_range(self, low: object, high: object) -> tuple[int, int]:
        """Return the codes of the ends of a range of public values."""
        first, last = each(self.code_of, (low, high))
        return first, last

    @abstractmethod
    def _mapping(self) -> dict[str, object]:
        """Return the values as the mapping that a specification writes."""

    def _spec(self) -> object:
        """Return the values in the shortest form that a specification writes."""
        return self._mapping()

    def _label(self, code: int) -> str:
        return str(self._value(code))

    def _range_label(self, first: int, last: int) -> str:
        low, high = self.label(first), self.label(last)
        return f"{low}..{high}" if low.startswith("-") or not self.numeric else f"{low}-{high}"

    def _check_codes(self, first: int, last: int) -> None:
        if not 0 <= first <= last < self.size:
            asked = f"code {first}" if first == last else f"codes {first} to {last}"
            expected = f"codes 0 to {self.size - 1} of {self.name!r}"
            raise DomainError.at((), asked, expected, code="out-of-range")

    def _check_word(self, key: str, words: tuple[str, ...]) -> None:
        if (word := getattr(self, key)) not in words:
            expected = f"{', '.join(words[:-1])} or {words[-1]}"
            raise wrong_value(word, expected, self.name, key, code="unknown-name")

    def _check_flags(self, *keys: str) -> None:
        for own in keys:
            if not isinstance(getattr(self, own), bool):
                raise wrong_value(getattr(self, own), "true or false", self.name, own)

    def _common(self, size: int) -> dict[str, Any]:
        """Set the size from the number of values, and return what every rule says besides."""
        null = None if self.codebook.null is None else size
        self._set(size=size + (null is not None))
        book = self.codebook
        missing = tuple(text.strip(WHITESPACE) if book.trim else text for text in book.missing)
        return {"trim": book.trim, "null": null, "missing": self._missing(missing) if missing else None}

    def _missing(self, texts: tuple[str, ...]) -> Listed | Texts:
        """Return the rule by which values that mean missing are found."""
        for place, text in enumerate(texts):
            # A NaN is missing in columns of numbers too.
            if is_unreadable(text) and text.strip().lower() != "nan":
                raise wrong_value(text, f"text, or {A_NUMERAL}", self.name, "missing", place)
        return Listed(texts, trim=self.codebook.trim)

    def _set(self, **values: object) -> None:
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def _check_labels(self) -> None:
        """Keep what values are called, by code; check that none is called by the text of another."""
        book = self.codebook
        called = {language: self._called(language) for language in (None, *book.languages)}
        own = called.get(book.language) or self._called(book.language)
        self._set(
            _labels=own, _codes={label: c for texts in (called[None], own) for c, label in texts.items()}
        )
        names = [level.name for level in self.codebook.levels]
        for level in self.codebook.levels:
            with within(self.name, "levels", level.name):
                if names.count(level.name) > 1:
                    raise DomainError.at((), "the level a second time", "each level once", code="duplicate")
                level.check(self)

    def _called(self, language: str | None) -> dict[int, str]:
        """Return the labels of values in a language, by code; no two may be equal."""
        codes: dict[int, str] = {}
        for value, text in self.codebook.labels:
            path, code, label = (self.name, "labels", value), self._listed(value), _within(text, language)
            if code is None:
                raise DomainError.at(path, repr(value), f"a value of {self.name!r}", code="unknown-name")
            if code in codes or label in codes.values():
                expected = "each value and each label once"
                raise DomainError.at(path, f"{label!r} a second time", expected, code="duplicate")
            if self._listed(label) not in (None, code):
                raise _other_value(label, path)
            codes[code] = label
        if self.codebook.null is not None:
            null = _within(self.codebook.null, language)
            if null in codes.values() or self._listed(null) is not None:
                raise _other_value(null, (self.name, "null"))
            codes[self.size - 1] = null
        return codes

    def _listed(self, text: str) -> int | None:
        """Return the code of a value by its text; None where there is none."""
        for value in (text, canonical_value(text)):
            try:
                return self._code_of(value)
            except DomainError:
                continue
        return None

    def _named(self, value: object) -> int | None:
        """Return the code of what is called by a text, or of null."""
        if value is None:
            return self.null_code
        return self._codes.get(value) if isinstance(value, str) else None


def _other_value(text: str, path: tuple[str, ...]) -> DomainError:
    return DomainError.at(path, f"{text!r}, which is another value", "a text of its own", code="conflict")
