"""How values show themselves: two lines of text, and a small table in a notebook.

Both stay short however much the value holds, and whatever the names in it are.
"""

from __future__ import annotations

import html
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

__all__ = ["MAX_ROWS", "Displayed", "Preview", "counted", "listed", "shown_text"]

#: Rows that a table in a notebook has at most.
MAX_ROWS = 20
_LONGEST = 60
_LONGEST_LINE = 120
_RIGHT = ' style="text-align: right"'


def shown_text(text: object, longest: int = _LONGEST) -> str:
    r"""Return a text as one line without what would control a terminal, cut where it is long.

    Examples
    --------
    >>> print(shown_text("two\nlines" + chr(27)), shown_text("x" * 100, 10))
    two\nlines\x1b xxxxxxx...
    """
    line = str(text)
    line = line if len(line) <= longest else f"{line[: longest - 3]}..."
    return "".join(m if m.isprintable() else m.encode("unicode_escape").decode() for m in line)


def counted(number: int, one: str, several: str | None = None) -> str:
    """Return a number of things in words, and of a great number its size.

    Examples
    --------
    >>> counted(1, "cell"), counted(1234567, "query", "queries"), counted(2**200, "cell")
    ('1 cell', '1,234,567 queries', '1.6e+60 cells')
    """
    digits = str(number)
    text = f"{number:,}" if number < 10**15 else f"{digits[0]}.{digits[1]}e+{len(digits) - 1}"
    return f"{text} {one if number == 1 else several or one + 's'}"


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

    def _cell(self, place: int, text: str) -> str:
        return f"<td{_RIGHT if place in self.numeric else ''}>{html.escape(shown_text(text))}</td>"


class Displayed(ABC):
    """What shows itself by two lines and a small table; dataclasses among them have ``repr=False``."""

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
