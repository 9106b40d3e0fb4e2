"""From a text to the trees of its statements; DuckDB's dialect."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

import sqlglot
from sqlglot import exp
from sqlglot.errors import ParseError, TokenError
from sqlglot.tokens import Token, TokenType  # type: ignore[attr-defined]  # re-exported without a word

from matrixdp.errors import EntryError
from matrixdp.forms import describe_value
from matrixdp.statements.written import error_at

__all__ = ["DIALECT", "parsed"]

DIALECT = "duckdb"
_LONGEST = 5_000_000
_EXPECTED = "SQL that DuckDB can read: SELECT ..., COUNT(*) FROM table WHERE ... GROUP BY ..."
_STARTS = (TokenType.SELECT, TokenType.FROM, TokenType.L_PAREN, TokenType.WITH)


def parsed(text: str) -> list[tuple[int, int, exp.Select]]:
    """Return the first and the last place, exclusive, and the tree of each statement of a text."""
    if not isinstance(text, str):
        raise EntryError.at(("sql",), describe_value(text), _EXPECTED)
    if len(text) > _LONGEST:
        raise EntryError.at(("sql",), f"a text of {len(text):,} characters", f"at most {_LONGEST:,}")
    try:
        spans = list(_spans(text, sqlglot.tokenize(text, dialect=DIALECT)))
        if not spans:
            raise EntryError.at(("sql",), "no statement", _EXPECTED)
        trees = [
            tree
            for tree in sqlglot.parse(text, dialect=DIALECT)
            if tree is not None and not isinstance(tree, exp.Semicolon)
        ]
    except TokenError:
        raise EntryError.at(("sql",), "a quote or a comment that is not closed", _EXPECTED) from None
    except ParseError as error:
        raise _unparsed(text, error) from None
    except RecursionError:
        raise EntryError.at(("sql",), "expressions nested too deeply", "a flatter statement") from None
    made = []
    for (first, last), tree in zip(spans, trees, strict=True):
        if not isinstance(tree, exp.Select):
            what = "UNION" if isinstance(tree, exp.SetOperation) else "what is no SELECT"
            expected = "one SELECT; several statements stand one after the other, each closed by a semicolon"
            raise error_at(text, first, what, expected)
        made.append((first, last, tree))
    return made


def _spans(text: str, tokens: list[Token]) -> Iterator[tuple[int, int]]:
    """Yield where the statements stand."""
    for ends, part in groupby(tokens, lambda token: token.token_type is TokenType.SEMICOLON):
        if ends:
            continue
        listed = list(part)
        if listed[0].token_type not in _STARTS:
            raise error_at(text, listed[0].start, repr(listed[0].text), _EXPECTED)
        yield listed[0].start, listed[-1].end + 1


def _unparsed(text: str, error: ParseError) -> EntryError:
    """Return the error of a text that is no SQL, at the first place where it is none."""
    told = error.errors[0] if error.errors else {}
    word = str(told.get("highlight") or "")
    lines = text.split("\n")
    line = min(int(told.get("line") or 1), len(lines))
    column = max(int(told.get("col") or 1) - len(word), 0)
    start = sum(len(row) + 1 for row in lines[: line - 1]) + column
    return error_at(text, min(start, len(text)), repr(word) if word else "what is no SQL", _EXPECTED)
