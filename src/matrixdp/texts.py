"""Texts for readers: in one language or several, and the words of each language around tables."""

from __future__ import annotations

import datetime as dt
import logging
import os
import re
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from importlib import resources
from pathlib import Path
from types import MappingProxyType
from typing import final

from matrixdp import forms
from matrixdp.display import figure, rounded, size_in_words
from matrixdp.errors import SpecificationError, file_problem
from matrixdp.forms import (
    Accepted,
    AnyOf,
    Form,
    FormError,
    ListOf,
    MappingOf,
    Record,
    Schema,
    key,
    record,
    unknown_name,
)
from matrixdp.plugins import load_offered, offered

#: A language as BCP 47 writes it: fr, fr-CA, zh-Hant.
_LANGUAGE = r"[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8})*"
#: Of a line: a key of many parts takes memory that grows with their square.
_MOST_DOTS = 100


@final
class Text(str):
    """A text for readers: in its first language, with what it is in others.

    Parameters
    ----------
    text : str or mapping of str to str
        The text; or languages with the text in each, the first of which files have.

    Raises
    ------
    FormError
        If there is no text, or a language is none.

    Examples
    --------
    >>> sex = Text({"en": "Sex", "fr": "Sexe"})
    >>> sex, sex.within("fr"), sex.within("fr-CA"), sex.within("de")
    ('Sex', 'Sexe', 'Sexe', 'Sex')
    """

    languages: Mapping[str, str]

    def __new__(cls, text: str | Mapping[str, str]) -> Text:
        return TEXT.read(text, forms.as_written)

    def within(self, language: str | None) -> str:
        """Return the text in a language, else in the one that it is a variety of, else in its first."""
        asked = language or ""
        found = self.languages.get(asked) or self.languages.get(asked.partition("-")[0])
        return found or str(self)

    def __reduce__(self) -> tuple[type[Text], tuple[object]]:
        return Text, (self.to_spec(),)

    def to_spec(self) -> str | dict[str, str]:
        """Return the text as a specification writes it."""
        return dict(self.languages) or str(self)


_LONGEST_TEXT = 10_000
_ONE = forms.text(f"text that is not empty, of at most {_LONGEST_TEXT:,} characters", most=_LONGEST_TEXT)
_SEVERAL = MappingOf(_ONE, "a text, or {en: ..., fr: ...}", named="a language", least=1)


@final
class _TextForm(Form[Text]):
    """A text, or a mapping from languages to it."""

    def read(self, written: object, resolve: forms.ResolvePath) -> Text:
        if isinstance(written, Text):
            return written
        languages: Mapping[str, str] = {}
        if isinstance(written, Mapping):
            languages = _SEVERAL.read(written, resolve)
            for name in languages:
                if not re.fullmatch(_LANGUAGE, name):
                    expected = "a language, such as en or fr-CA"
                    raise FormError.at((name,), f"the key {name!r}", expected, code="unknown-name")
            first = next(iter(languages.values()))
        else:
            first = _ONE.read(written, resolve)
        made = str.__new__(Text, first)
        made.languages = languages
        return made

    def write(self, value: Text, write_array: forms.WriteArray = forms.as_lists) -> object:
        return value.to_spec()

    def schema(self, definitions: Schema) -> Schema:
        one = _ONE.schema(definitions)
        several = {"type": "object", "propertyNames": {"pattern": f"^{_LANGUAGE}$"}, "minProperties": 1}
        return {"anyOf": [one, {**several, "additionalProperties": one}]}


TEXT: Form[Text] = _TextForm()
"""The form of a text for readers."""


def legal_xml(text: str) -> str:
    r"""Return a text without characters that XML 1.0 has not.

    Examples
    --------
    >>> legal_xml("a\tb" + chr(27)).encode("unicode_escape")
    b'a\\tb\\ufffd'
    """
    return "".join(c if c in "\t\n\r" or " " <= c <= "\ufffd" or c > "\uffff" else "\ufffd" for c in text)


@record
class Described(Record):
    """Texts for readers of an attribute or a table."""

    title: Text | None = key(TEXT, default=None, about="its name for readers")
    unit: Text | None = key(TEXT, default=None, about="what its figures count or measure")
    note: Text | None = key(TEXT, default=None, about="what readers should know of it")
    source: Text | None = key(TEXT, default=None, about="where it comes from")

    def texts(self) -> Iterator[tuple[str, Text]]:
        """Yield the texts by their keys."""
        return texts_of(self)

    def told(self, language: str | None) -> dict[str, str]:
        """Return the texts in a language, by key."""
        return {name: text.within(language) for name, text in self.texts()}


def texts_of(told: Record) -> Iterator[tuple[str, Text]]:
    """Yield the texts of a record by their keys."""
    for name, own in told.keys().items():
        if isinstance(text := getattr(told, own.attribute), Text):
            yield name, text


def _link(written: object) -> str | None:
    text = _ONE.accept(written)
    return text if text is not None and re.fullmatch(r"https?://[^\s<>\"']+", text) else None


def _language(written: object) -> str | None:
    return written if isinstance(written, str) and re.fullmatch(_LANGUAGE, written) else None


LARGEST_BASE = 10**9
"""What counts can be shown as multiples of, at most."""


@final
@record
class Suppression(Record):
    """Which figures readers do not see."""

    error = SpecificationError

    cv_above: float = key(
        forms.number("a coefficient of variation above 0, such as 0.33", above=0),
        missing="{cv_above: 0.33}, the largest coefficient of variation of what is shown",
        about="the largest coefficient of variation of figures that are shown",
    )


_TABLE = forms.text("the title or the name of a table", most=10_000)
_WHERE: Form[Mapping[str, str | bool | int | float]] = MappingOf(
    forms.scalar("a value, as the table names it"),
    "a mapping from what rows are of to a value, such as {sex: female}",
)


@record
class _OfRows(Record):
    """What is said of rows of a table."""

    error = SpecificationError

    table: str = key(_TABLE, missing="the title or the name of a table", about="the table")
    where: Mapping[str, str | bool | int | float] = key(
        _WHERE, default=MappingProxyType({}), about="the values that the rows are of; the table without it"
    )


@final
@record
class Rows(_OfRows):
    """Rows of a table: all of them, or those of some values."""

    title: Text | None = key(TEXT, default=None, about="what the figure is called")


@final
@record
class Footnote(_OfRows):
    """What readers should know of a table, or of rows of it."""

    text: Text = key(TEXT, missing="what readers should know", about="what readers should know")


_TABLES = ListOf(_TABLE, "a list of the titles or names of tables", once="each table once")


@final
@record
class Publication(Record):
    """What readers are told of a release as a whole: public, and nothing that is measured depends on it.

    Its texts are listed here alone. Pages, workbooks and every export have each of them, in this order, under
    the words ``told_...`` of the catalogs; a standard that has a place of its own for one names that place.
    """

    error = SpecificationError

    title: Text | None = key(TEXT, default=None, about="what the release is called")
    description: Text | None = key(TEXT, default=None, about="what it is about, in a few sentences")
    summary: Text | None = key(TEXT, default=None, about="its main points, a line each")
    unit: Text | None = key(TEXT, default=None, about="what one record is, such as persons or stops")
    period: Text | None = key(TEXT, default=None, about="the time that the records are of")
    release_date: Text | None = key(TEXT, default=None, about="the day on which it is published")
    source: Text | None = key(TEXT, default=None, about="where the records come from")
    publisher: Text | None = key(TEXT, default=None, about="who publishes it")
    contact: Text | None = key(TEXT, default=None, about="whom readers ask")
    licence: Text | None = key(TEXT, default=None, about="under which terms it may be used")
    next_release: Text | None = key(TEXT, default=None, about="when the next release follows")
    method: str | None = key(
        Accepted("a link that begins with https:// or http://", _link, {"type": "string", "format": "uri"}),
        default=None,
        about="a link to a page on the method",
    )
    language: str = key(
        Accepted("a language, such as en or fr-CA", _language, {"type": "string"}),
        default="en",
        about="the language of texts that name none",
    )
    round_to: int | None = key(
        forms.whole("an integer from 1 to 1000000000, such as 5", least=1, most=LARGEST_BASE),
        default=None,
        about="readers see counts as multiples of it",
    )
    suppress: Suppression | None = key(
        forms.RecordForm(Suppression), default=None, about="readers see F in place of unreliable figures"
    )
    within_range: bool = key(
        forms.flag(),
        default=False,
        about="readers see what is beyond its range, such as counts below 0, as its end",
    )

    key_figures: tuple[str | Rows, ...] | None = key(
        ListOf(
            AnyOf(((lambda said: isinstance(said, str), _TABLE),), forms.RecordForm(Rows)),
            "a list of tables, or of {table: ..., where: {...}, title: ...}",
        ),
        default=None,
        about="the figures that a page begins with",
    )
    order: tuple[str, ...] = key(
        _TABLES, default=(), about="the tables that come first on pages and in workbooks, in this order"
    )
    hide_from_page: tuple[str, ...] = key(
        _TABLES, default=(), about="the tables that files have, and a page does not"
    )
    footnotes: tuple[Footnote, ...] = key(
        ListOf(forms.RecordForm(Footnote), "a list of {table: ..., where: {...}, text: ...}"),
        default=(),
        about="what readers should know of a table, or of rows of it",
    )

    @property
    def named(self) -> dict[tuple[str | int, ...], str]:
        """What it calls tables, by the places where it does."""
        found: dict[tuple[str | int, ...], str] = {}
        for name in ("order", "hide_from_page"):
            found |= {(name, number): called for number, called in enumerate(getattr(self, name))}
        for name, parts in (("key_figures", self.key_figures or ()), ("footnotes", self.footnotes)):
            for number, own in enumerate(parts):
                if isinstance(own, str):
                    found[name, number] = own
                else:
                    found[name, number, "table"] = own.table
        return found

    def texts(self) -> Iterator[tuple[tuple[str | int, ...], Text]]:
        """Yield every text by its place."""
        yield from (((name,), text) for name, text in texts_of(self))
        for name, parts in (("key_figures", self.key_figures or ()), ("footnotes", self.footnotes)):
            for place, part in enumerate(parts):
                own = texts_of(part) if isinstance(part, Record) else ()
                yield from (((name, place, called), text) for called, text in own)

    def told(self, language: str | None) -> dict[str, str]:
        """Return the texts in a language, by key."""
        found = {name: text.within(language) for name, text in texts_of(self)}
        return found if self.method is None else {**found, "method": self.method}


NO_PUBLICATION = Publication()
"""Nothing that readers are told."""


# The words around tables: a catalog for each language.

_LOG = logging.getLogger(__name__)
_FOLDER = resources.files("matrixdp") / "words"
_GROUP = "matrixdp.words"
#: A name in braces, and nothing else that `str.format` would evaluate, nor $, which begins a formula in a
#: picture: catalogs come from anybody.
_NAMED = re.compile(r"\{(\w+)\}")
_LONGEST_WORDS = 1_000
#: The catalogs of others, by their languages.
_REGISTERED: dict[str, Mapping[str, str]] = {}


@final
@dataclass(frozen=True)
class Words:
    """The words of pages, workbooks and terminals around tables, in one language.

    Attributes
    ----------
    language : str
        The language.
    texts : mapping of str to str
        Each text by its name, with names in braces for what is put into it.

    Examples
    --------
    >>> words_in("fr-CA")("range", low=1, high=2), words_in("en").counted("tables", 1)
    ('1 à 2', '1 table')
    """

    language: str
    texts: Mapping[str, str]

    def __call__(self, name: str, **values: object) -> str:
        return filled(self.texts[name], values)

    @cached_property
    def _marks(self) -> dict[int, str]:
        return str.maketrans({",": self("thousands"), ".": self("decimal")})

    def number(self, value: float, decimals: int | None = None, *, digits: int = 4) -> str:
        """Return a number as people write it: the only thing that makes text of a figure for readers.

        Rounded to `decimals` digits after the point, or before it if negative. Without `decimals`, integers
        are written in full, other numbers with `digits` significant digits.

        Examples
        --------
        >>> [words_in(name).number(1234.5, 1) for name in ("en", "de")], words_in("en").number(0.12345)
        (['1,234.5', '1.234,5'], '0.1235')
        """
        if decimals is not None:
            text = rounded(value, decimals)
        else:
            text = size_in_words(value) if isinstance(value, int) else figure(value, digits)
        return text.translate(self._marks)

    def percent(self, share: float, decimals: int | None = None) -> str:
        r"""Return a share in percent.

        Examples
        --------
        >>> words_in("en").percent(0.0285, 1), words_in("de").percent(0.95)
        ('2.9%', '95\xa0%')
        """
        return self("percent", number=self.number(100 * share, decimals))

    def plain(self, value: float) -> str:
        """Return a number in the name of a value, which may be a year: marks begin at 10,000.

        Examples
        --------
        >>> [words_in("en").plain(value) for value in (1968, 25000.0, 0.5)]
        ['1968', '25,000', '0.5']
        """
        digits = f"{value:.10f}".rstrip("0").partition(".")[2]
        if abs(value) >= 10_000:
            return self.number(value, len(digits))
        return f"{value:.{len(digits)}f}".translate(self._marks)

    def period(self, text: str) -> str:
        """Return a day, a week, a month, a quarter or a day of the week as people write it.

        Examples
        --------
        >>> [words_in("en").period(text) for text in ("2016-06", "2016-06-30", "2016-Q2", "2016")]
        ['June 2016', '30 June 2016', 'Q2 2016', '2016']
        """
        if text in _WEEKDAYS:
            return self("weekdays").split()[_WEEKDAYS.index(text)]
        if (found := _PERIOD.fullmatch(text)) is None:
            return text
        year, kind, number, day = int(found[1]), found[2], int(found[3]), found[4]
        if kind:
            return self("quarter_of" if kind == "Q" else "week_of", number=number, year=year)
        try:
            first = dt.date(year, number, int(day or 1))
        except ValueError:  # such as the school year 2016-17
            return text
        return self.day(first) if day else self("month_of", month=self._month(first), year=year)

    def warning(self, text: str) -> str:
        """Return a warning of a statistic, which files have in English, in this language.

        Examples
        --------
        >>> [words_in("de").warning(text) for text in (ENGLISH("warning_all"), "as it is")]
        ['vom Rauschen verdeckt: das Intervall umfasst alle Werte', 'as it is']
        """
        for name, english in ENGLISH.texts.items():
            if name.startswith("warning_"):
                written = re.escape(_NAMED.sub(r"<\1>", english))
                if found := re.fullmatch(re.sub(r"<(\w+)>", r"(?P<\1>.+)", written), text):
                    return self(name, **found.groupdict())
        return text

    def counted(self, name: str, number: int) -> str:
        """Return a text about a number of things."""
        return self(f"{name}_one" if number == 1 else name, number=self.number(number))

    def listed(self, words: Sequence[str]) -> str:
        """Return words one after the other, "and" before the last."""
        joined = f" {self('and')} "
        return joined.join(words) if len(words) < 3 else f"{', '.join(words[:-1])}{joined}{words[-1]}"

    def day(self, day: dt.date) -> str:
        """Return a day as people write it."""
        return self("day", day=day.day, month=self._month(day), year=day.year)

    def _month(self, day: dt.date) -> str:
        return self("months").split()[day.month - 1]


_PERIOD = re.compile(r"(\d{4})-([QW]?)(\d{1,2})(?:-(\d\d))?")
_WEEKDAYS = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]


#: Words that are lists, one for each month or day of the week.
_LISTS = ("months", "months_short", "weekdays")


def filled(text: str, values: Mapping[str, object], written: Callable[[object], str] = str) -> str:
    """Return a text with values in place of their names in braces.

    Examples
    --------
    >>> filled("{low} to {high}", {"low": 1, "high": 2})
    '1 to 2'
    """
    return _NAMED.sub(lambda named: written(values[named[1]]), text)


def _catalog(language: str) -> Mapping[str, str]:
    file = _FOLDER / f"{language}.toml"
    return tomllib.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}


def catalogs() -> tuple[str, ...]:
    """Return the languages that there are words in."""
    files = sorted(file.name for file in _FOLDER.iterdir())
    names = (name.removesuffix(".toml") for name in files)
    return tuple(dict.fromkeys([*names, *_REGISTERED, *offered(_GROUP)]))


ENGLISH = Words("en", _catalog("en"))
"""English words, which names for programs are made of; an office's own are in ``words_in("en")``."""


@cache
def words_in(language: str) -> Words:
    """Return the words of a language, else of the one that it is a variety of, else English ones."""
    for name in (language, language.partition("-")[0]):
        if not (_catalog(name) or name in _REGISTERED):
            load_offered(_GROUP, name)
        if own := {**_catalog(name), **_REGISTERED.get(name, {})}:
            return Words(name, {**ENGLISH.texts, **own})
    _LOG.warning("the words around tables are English: no catalog has the language %s", language)
    return words_in("en")


def register_words(path: str | os.PathLike[str]) -> None:
    """Let pages, workbooks and terminals have the words of a catalog.

    An installed package that has an entry point in the group ``matrixdp.words``, named as its language, whose
    value is the module that calls this, needs no import.

    Parameters
    ----------
    path : str or path
        A TOML file that is called as its language: ``it.toml``. Each of its keys is one of
        ``matrixdp/words/en.toml``, each value its text: at most 1,000 characters, without $ and without
        braces but for names that the English text has, as often at most. What it leaves out stays as it is:
        English where the language is new.

    Raises
    ------
    SpecificationError
        If the file cannot be read, or has a key or a name in braces that does not exist.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "it.toml"
    ...     _ = path.write_text('total = "Totale"', encoding="utf-8")
    ...     register_words(path)
    >>> words_in("it")("total"), words_in("it")("estimate")
    ('Totale', 'estimate')
    """
    file, place = Path(path), ("words", str(path))
    if not re.fullmatch(_LANGUAGE, file.stem) or file.suffix != ".toml":
        raise SpecificationError.at(place, repr(file.name), "a file that is called as its language: it.toml")
    try:
        text = file.read_text(encoding="utf-8-sig")
        if any(line.count(".") > _MOST_DOTS for line in text.split("\n")):
            raise ValueError("a line of too many dots")
        found = tomllib.loads(text)
    except OSError as error:
        expected, code = "a file that can be read", "file-missing"
        raise SpecificationError.at(place, file_problem(error), expected, code=code) from None
    except (ValueError, RecursionError) as error:
        raise SpecificationError.at(place, f"no TOML ({error})", "lines of key = text") from None
    english = ENGLISH.texts
    for name, text in found.items():
        own = (*place, name)
        if name not in english:
            raise SpecificationError(unknown_name(own, name, "a key of en.toml", english))
        known = Counter(_NAMED.findall(english[name]))
        short = isinstance(text, str) and len(text) <= _LONGEST_WORDS
        if not short or not Counter(_NAMED.findall(text)) <= known or set("{}$") & {*_NAMED.sub("", text)}:
            names = ", ".join(sorted(known.elements())) or "none"
            expected = (
                f"at most {_LONGEST_WORDS:,} characters, no $, and these names in braces alone: {names}"
            )
            raise SpecificationError.at(own, forms.describe_value(text), expected)
        number = len(english[name].split())
        if name in _LISTS and len(text.split()) != number:
            expected = f"{number} words with spaces between them"
            raise SpecificationError.at(own, forms.describe_value(text), expected, code="wrong-size")
    _REGISTERED[file.stem] = found
    words_in.cache_clear()
