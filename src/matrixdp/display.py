"""How values show themselves: numbers, names, and small tables in a notebook.

All stay short however much the value holds, and whatever the names in it are.
"""

from __future__ import annotations

import html
import unicodedata
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from functools import cached_property

#: Rows that a table in a notebook has at most.
MAX_ROWS = 20
_LONGEST = 60
_LONGEST_LINE = 120
_RIGHT = ' style="text-align: right"'
#: Marks without a width that words need: the soft hyphen, and what joins or parts letters.
_IN_WORDS = "\u00ad\u200c\u200d"


def harmless(mark: str) -> bool:
    r"""Return whether a character is one to read: no control, no line end, and nothing that reorders text.

    Examples
    --------
    >>> [harmless(mark) for mark in ("\u00a0", "\u3000", "\u00ad", "\x1b", "\u2028", "\u202e")]
    [True, True, True, False, False, False]
    """
    return mark.isprintable() or unicodedata.category(mark) == "Zs" or mark in _IN_WORDS


def shown_text(text: object, longest: int = _LONGEST) -> str:
    r"""Return a text as one line without what would control a terminal, cut where it is long.

    Examples
    --------
    >>> print(shown_text("two\nlines" + chr(27)), shown_text("x" * 100, 10))
    two\nlines\x1b xxxxxxx...
    """
    line = str(text)
    line = line if len(line) <= longest else f"{line[: longest - 3]}..."
    return "".join(m if harmless(m) else m.encode("unicode_escape").decode() for m in line)


def printable(text: str) -> str:
    """Return a text without what would control a terminal.

    Examples
    --------
    >>> printable("a" + chr(27) + "[1mb")
    'a\N{REPLACEMENT CHARACTER}[1mb'
    """
    return "".join(mark if harmless(mark) else "\N{REPLACEMENT CHARACTER}" for mark in text)


def figure(value: float | None, digits: int = 4) -> str:
    """Return a number with a few significant digits; whole from 1,000 on.

    Examples
    --------
    >>> figure(1234.5678), figure(0.00012345), figure(12.345, 3), figure(1e15), figure(None)
    ('1,235', '0.0001234', '12.3', '1.000e+15', '-')
    """
    if value is None:
        return "-"
    if abs(value) < 1000:
        return f"{value:.{digits}g}"
    return f"{value:,.0f}" if abs(value) < 1e12 else f"{value:.{digits - 1}e}"


def rounded(value: float, decimals: int) -> str:
    """Return a number rounded to `decimals` digits after the point, before it if negative; never minus zero.

    Examples
    --------
    >>> rounded(-0.04, 1), rounded(20200.46, 0), rounded(20249.0, -2)
    ('0.0', '20,200', '20,200')
    """
    return f"{round(value, decimals) + 0.0:,.{max(decimals, 0)}f}"


def about(value: Fraction) -> str:
    """Return an exact number with a decimal near it.

    Examples
    --------
    >>> about(Fraction(3)), about(Fraction(1, 3))
    ('3', '1/3 (about 0.333333)')
    """
    return str(value) if value.denominator == 1 and value < 10**9 else f"{value} (about {float(value):.6g})"


def above(value: Fraction) -> str:
    """Return a number with nine digits, rounded up.

    Examples
    --------
    >>> above(Fraction(1, 3)), above(Fraction(1, 2)), above(Fraction(1, 10**9)), above(Fraction(100))
    ('0.333333334', '0.5', '1E-9', '100')
    """
    context = Context(prec=9, rounding=ROUND_CEILING)
    written = context.divide(Decimal(value.numerator), Decimal(value.denominator)).normalize()
    return f"{written:f}" if 0 < written.adjusted() < 9 else str(written)


def size_in_words(number: int) -> str:
    """Return an integer of any size: all its digits, or of a great one two and its magnitude.

    Examples
    --------
    >>> size_in_words(1234567), size_in_words(2**200), size_in_words(10**5000)
    ('1,234,567', '1.6e+60', '1.0e+5000')
    """
    return f"{number:,}" if number < 10**15 else f"{Decimal(number):.1e}"


def counted(number: int, one: str, several: str | None = None) -> str:
    """Return a number of things in words, and of a great number its size.

    Examples
    --------
    >>> counted(1, "cell"), counted(1234567, "query", "queries"), counted(2**200, "cell")
    ('1 cell', '1,234,567 queries', '1.6e+60 cells')
    """
    return f"{size_in_words(number)} {one if number == 1 else several or one + 's'}"


def listed(texts: Iterable[str], number: int) -> str:
    """Return as many of some texts as fit into a line, and how many there are besides.

    Examples
    --------
    >>> listed(iter(["sex", "age"]), 2)
    'sex, age'
    >>> listed((f"attribute {i}" for i in range(40)), 40)[-38:]
    'attribute 5, attribute 6 and 33 others'
    """
    line, used = "", 0
    for text in texts:
        joined = f"{line}, {text}" if line else text
        if used and len(joined) > _LONGEST_LINE - 20:
            break
        line, used = joined, used + 1
    rest = number - used
    return line + (f" and {counted(rest, 'other')}" if rest else "")


@dataclass(frozen=True)
class Preview:
    """A small table of texts.

    Attributes
    ----------
    columns : tuple of str
        The heads.
    rows : sequence of sequence of str
        The cells; those beyond the first `MAX_ROWS` rows are left out.
    total : int
        How many rows there are altogether.
    numeric : frozenset of int
        The places of columns of numbers.
    """

    columns: tuple[str, ...]
    rows: Sequence[Sequence[str]]
    total: int
    numeric: frozenset[int] = frozenset()

    def html(self) -> str:
        """Return the table as HTML, every text escaped."""
        heads = "".join(f'<th scope="col">{html.escape(head)}</th>' for head in self.columns)
        shown = self.rows[:MAX_ROWS]
        body = "".join(f"<tr>{''.join(self._cell(i, t) for i, t in enumerate(row))}</tr>" for row in shown)
        more = f"<p>{len(shown):,} of {self.total:,} shown.</p>" if len(shown) < self.total else ""
        return f"<table><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table>{more}"

    def text(self) -> str:
        """Return the table as lines of text, its columns aligned.

        Examples
        --------
        >>> print(Preview(("sex", "n"), [("female", "10"), ("male", "9")], 3, frozenset({1})).text())
        sex      n
        female  10
        male     9
        2 of 3 rows.
        """
        rows = [self.columns, *([shown_text(text) for text in row] for row in self.rows[:MAX_ROWS])]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = [
            "  ".join(self._aligned(i, t, widths[i]) for i, t in enumerate(row)).rstrip() for row in rows
        ]
        shown = len(rows) - 1
        return "\n".join([*lines, f"{shown:,} of {self.total:,} rows."] if shown < self.total else lines)

    def _aligned(self, place: int, text: str, width: int) -> str:
        return text.rjust(width) if place in self.numeric else text.ljust(width)

    def _cell(self, place: int, text: str) -> str:
        return f"<td{_RIGHT if place in self.numeric else ''}>{html.escape(shown_text(text))}</td>"


def without_caches(value: object) -> dict[str, object]:
    """Return what a pickle or a copy of a value holds: not what was computed from the rest of it."""
    kind = type(value)
    return {
        name: own
        for name, own in vars(value).items()
        if not isinstance(getattr(kind, name, None), cached_property)
    }


class Displayed(ABC):
    """What shows itself by two lines and a small table; dataclasses among them have ``repr=False``."""

    __getstate__ = without_caches

    @abstractmethod
    def _lines(self) -> tuple[str, str]:
        """Return the two lines, without any long computation."""

    @abstractmethod
    def _preview(self) -> Preview:
        """Return what a notebook shows below them."""

    def __repr__(self) -> str:
        return "\n".join(shown_text(line, _LONGEST_LINE) for line in self._lines())

    def _repr_html_(self) -> str:
        first, second = (html.escape(shown_text(line, _LONGEST_LINE)) for line in self._lines())
        return f"<div><p><strong>{first}</strong><br>{second}</p>{self._preview().html()}</div>"
