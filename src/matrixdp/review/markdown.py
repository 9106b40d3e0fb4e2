"""Markdown that reads well as it stands, whatever the names in it are."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction

__all__ = ["about", "above", "cell", "items", "printable", "table"]

_ESCAPED = str.maketrans({mark: f"\\{mark}" for mark in "\\|`*_<>[]#~"})
_LONGEST = 80


def printable(text: str) -> str:
    """Return a text without what would control a terminal.

    Examples
    --------
    >>> printable("a" + chr(27) + "[1mb")
    'a\N{REPLACEMENT CHARACTER}[1mb'
    """
    return "".join(mark if mark.isprintable() else "\N{REPLACEMENT CHARACTER}" for mark in text)


def cell(text: object, longest: int = _LONGEST) -> str:
    r"""Return a text that stands in a cell of a table, or in a sentence, as it is.

    Examples
    --------
    >>> print(cell("a|b\n*c*"))
    a\|b \*c\*
    """
    line = printable(" ".join(str(text).split()))
    return (line if len(line) <= longest else f"{line[: longest - 3]}...").translate(_ESCAPED)


def table(heads: Sequence[str], rows: Iterable[Sequence[object]]) -> list[str]:
    """Return the lines of a table, whose cells are Markdown."""
    lines = [heads, ["---"] * len(heads), *rows]
    return ["| " + " | ".join(map(str, line)) + " |" for line in lines]


def items(sentences: Iterable[str]) -> list[str]:
    """Return the lines of a list of sentences."""
    return [f"- {cell(sentence, 10_000)}" for sentence in sentences]


def about(value: Fraction) -> str:
    """Return an exact number with the decimal that is near it.

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
