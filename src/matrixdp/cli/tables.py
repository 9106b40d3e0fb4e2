"""Tables on screen, through rich."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import final

import numpy as np
import pyarrow as pa
import typer
from rich.box import HEAVY_HEAD
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from matrixdp.answers.cross_table import CrossTable
from matrixdp.answers.inference import METADATA
from matrixdp.answers.intervals import decimals_by_subject, decimals_of
from matrixdp.answers.quality import (
    MISSING,
    QUALITY,
    UNRELIABLE,
    Presentation,
    deviations_of,
    texts_for_readers,
)
from matrixdp.answers.table import BOUND, FIGURE, FIGURES, figure_of, heading, row_in_words, subject_of
from matrixdp.cli.console import Row, say
from matrixdp.display import figure, printable, rounded
from matrixdp.texts import ENGLISH, Words

_LONGEST_KEY = 20
#: Columns of a screen without an end.
_WIDEST = 1000


def console() -> Console:
    """Return the console that writes to stdout."""
    return Console(highlight=False)


@final
@dataclass(frozen=True)
class Column:
    """One column of a table: numbers stand on the right; what is whole is never broken into lines."""

    head: str
    texts: Sequence[str]
    number: bool = False
    whole: bool = False


def table_of(columns: Sequence[Column], *, plain: bool = False) -> Table:
    """Return columns as a table, without lines where it is plain."""
    box, padding = (None, (0, 1, 0, 0)) if plain else (HEAVY_HEAD, (0, 1))
    table = Table(header_style="bold", box=box, padding=padding)
    for column in columns:
        table.add_column(Text(column.head), overflow="fold", no_wrap=column.whole)
        table.columns[-1].justify = "right" if column.number else "left"
    for row in zip(*(column.texts for column in columns), strict=True):
        table.add_row(*map(Text, row))
    return table


def print_columns(screen: Console, columns: Sequence[Column], *, plain: bool = False) -> None:
    """Print a table; a plain one is whole, which makes a narrow screen break its lines.

    Where the screen is too narrow for words, columns of numbers go below one another, with the columns of
    texts before each part of them.
    """
    if plain:
        table = table_of(columns, plain=plain)
        needed = Measurement.get(screen, screen.options.update(max_width=_WIDEST), table).maximum
        Console(highlight=False, width=max(screen.width, needed)).print(table)
        return
    for part in _parts(columns, screen.width):
        table = table_of(part)
        for drawn, width in zip(table.columns, _widths(part, screen.width), strict=True):
            drawn.width = width
        screen.print(table)


def _parts(columns: Sequence[Column], width: int) -> Iterator[list[Column]]:
    """Yield the parts of a table that fit on a screen: columns of texts, with as many of numbers as fit."""
    keys, numbers = ([own for own in columns if own.number is kind] for kind in (False, True))
    if _fits(columns, width) or not numbers:
        yield list(columns)
        return
    if len(keys) > 1 and not all(_fits([*keys, own], width) for own in numbers):
        rows = zip(*(own.texts for own in keys), strict=True)
        words = [", ".join(f"{own.head} {text}" for own, text in zip(keys, row, strict=True)) for row in rows]
        keys = [Column("of", words)]
    part: list[Column] = []
    for own in numbers:
        if part and not _fits([*keys, *part, own], width):
            yield [*keys, *part]
            part = []
        part.append(own)
    yield [*keys, *part]


def _fits(columns: Sequence[Column], width: int) -> bool:
    return sum(_least(own) + 3 for own in columns) + 1 <= width


def _least(column: Column, figures: bool = True) -> int:
    """Return the width at which no word is broken, and on request no figure."""
    whole = column.whole or (column.number and figures)
    words = (part for text in column.texts for part in ([text] if whole else text.split()))
    return max(map(len, (*([column.head] if column.whole else column.head.split()), *words)), default=1)


def _widths(columns: Sequence[Column], width: int) -> list[int | None]:
    """Return the widths at which figures are whole, or at least words, where the screen is wide enough."""
    most = [max(map(len, (own.head, *own.texts))) for own in columns]
    for figures in (True, False):
        widths = [_least(own, figures) for own in columns]
        spare = width - 1 - sum(widths) - 3 * len(widths)
        if spare >= 0:
            for _ in range(min(spare, sum(most) - sum(widths))):  # the narrowest that is cut grows first
                widths[min((w, place) for place, w in enumerate(widths) if w < most[place])[1]] += 1
            return list(widths)
    return [None] * len(columns)


def _print_rest(shown: int, rows: int) -> None:
    if shown < rows:
        typer.echo(f"{shown:,} of {rows:,} answers shown.")


def _interval(confidence: float, say_in: Words = ENGLISH) -> str:
    return say_in("interval", confidence=f"{100 * confidence:g}")


def _labels(column: pa.ChunkedArray, missing: str) -> list[str]:
    return [missing if value is None else printable(str(value)) for value in column.to_pylist()]


def print_errors(screen: Console, rows: Sequence[Row]) -> None:
    """Print a table of errors."""
    several = any(row.groups != 1 for row in rows)
    found = {"groups": [f"{row.groups:,}" for row in rows]} if several else {}
    found |= {
        "queries": [f"{row.queries:,}" for row in rows],
        "RMSE": [figure(row.rmse) for row in rows],
        "largest stddev": [figure(row.max_stddev) for row in rows],
    }
    if any(row.target is not None for row in rows):
        found["target"] = [figure(row.target) for row in rows]
    names = Column("asked" if several else "group", [row.name for row in rows])
    print_columns(screen, [names, *(Column(head, texts, number=True) for head, texts in found.items())])


def _counts(
    head: str,
    figures: Sequence[pa.ChunkedArray],
    confidence: float,
    *,
    whole: bool = True,
    suppress: bool = False,
) -> list[Column]:
    """Return the columns of the counts, standard errors and intervals that four columns hold.

    Estimates without an interval have the letter of what is unreliable, or it takes their place.
    """
    values, errors, low, high = (column.to_pylist() for column in figures)

    def counts(numbers: list[float | None]) -> list[str]:
        # more than one digit behind the point where the error is small
        pairs = zip(numbers, errors, strict=True)
        return [
            MISSING if number is None else rounded(number, max(1, decimals_of(error or 0.0) or 1))
            for number, error in pairs
        ]

    texts, pairs = counts(values), list(zip(counts(low), counts(high), strict=True))
    for place, (text, own) in enumerate(zip(texts, pairs, strict=True)):
        if text != MISSING and own == (MISSING, MISSING):
            texts[place] = UNRELIABLE if suppress else f"{text} {UNRELIABLE}"
    ends = [_between(*own, ENGLISH) for own in pairs]
    return [
        Column(head, texts, number=True, whole=True),
        Column("stddev", [figure(error) for error in errors], number=True, whole=True),
        Column(_interval(confidence), ends, number=True, whole=whole),
    ]


def print_answers(screen: Console, answers: pa.Table, confidence: float, limit: int) -> None:
    """Print the first rows of a table of answers, and say how many there are."""
    bounds = {field.name for field in answers.schema if BOUND in (field.metadata or {})}
    texts = [name for name in answers.schema.names if name not in {*FIGURES, "group"} | bounds]
    shown = answers.slice(0, limit)
    asked = [
        printable(row_in_words(((name, text) for name, text in row.items() if text), "(all)"))
        for row in shown.select(texts).to_pylist()
    ]
    columns = [Column("group", _labels(shown.column("group"), "")), Column("records with", asked)]
    columns += _counts("estimate", shown.select(FIGURES).columns, confidence)
    print_columns(screen, columns)
    _print_rest(len(asked), answers.num_rows)


def print_table(
    screen: Console, table: pa.Table, unit: str, presentation: Presentation, confidence: float, limit: int
) -> None:
    """Print the first rows of a table as readers see it, and what is to be known of it."""
    texts, say_in = texts_for_readers(table, unit, presentation, limit), presentation.say
    counts = METADATA not in (table.schema.metadata or {})  # a statistic says there how it was computed
    if counts:
        figures = np.stack([table.column(name).to_numpy()[:limit] for name in FIGURES])
        margins = presentation.margins(figures, unit, decimals_by_subject(table)[""])
        pairs = zip(texts["estimate"], margins, strict=True)
        texts["estimate"] = [text if text == UNRELIABLE else f"{text} {margin}" for text, margin in pairs]
    ends = {subject_of(f): f.name for f in table.schema if figure_of(f) == "upper"}
    columns: list[Column] = []
    for field in table.schema:
        figure, own = figure_of(field), texts.get(field.name, [])
        if not own or figure == "upper" or field.name == "warning":
            continue
        if (counts and figure in ("stddev", "lower")) or (figure == "stddev" and set(own) == {MISSING}):
            continue
        head = printable(heading(field, say_in))
        if figure == "lower":
            pairs = zip(own, texts[ends[subject_of(field)]], strict=True)
            own = [_between(*pair, say_in) for pair in pairs]
            head = f"{subject_of(field)} {_interval(confidence, say_in)}".strip()
        columns.append(Column(head, own, number=bool(figure) or pa.types.is_floating(field.type)))
    if QUALITY in texts:
        columns.append(Column(say_in(QUALITY), texts[QUALITY], number=True))
    print_columns(screen, columns)
    shown = table.slice(0, limit)
    if "warning" in table.column_names:
        _print_warnings(shown.column("warning").to_pylist())
    if note := json.loads((table.schema.metadata or {}).get(METADATA, b"{}")).get("note"):
        say(printable(note))
    if not counts and "confidence" in texts:
        say(say_in("listed"))
    _print_rest(shown.num_rows, table.num_rows)
    if counts:
        say(say_in("half_file", interval=_interval(confidence, say_in)))
    for words in presentation.rules(unit) if QUALITY in texts else ():
        say(words)


def _between(low: str, high: str, say_in: Words) -> str:
    """Return an interval by its ends."""
    gone = UNRELIABLE if low == high == UNRELIABLE else MISSING if MISSING in (low, high) else ""
    return gone or say_in("range", low=low, high=high)


def _print_warnings(told: Sequence[str | None]) -> None:
    """Print each warning once, with the rows that it is about."""
    warned: dict[str, list[str]] = {}
    for place, words in enumerate(told, 1):
        if words:
            warned.setdefault(words, []).append(str(place))
    for words, places in warned.items():
        more = " and more" if len(places) > 8 else ""
        say(f"Row {', '.join(places[:8])}{more}: {words}.")


def print_cross_table(screen: Console, cross: CrossTable, limit: int, *, margins: bool = False) -> None:
    """Print a cross table: figures with their quality, or with half their intervals."""
    for panel in cross.panels:
        if panel.label:
            say(panel.label, bold=True)
        texts = zip(*cross.lines(panel, margins=margins)[:limit], strict=True)
        heads = (cross.corner, *cross.columns)
        columns = [
            Column(printable(head), list(map(printable, own)), number=place > 0)
            for place, (head, own) in enumerate(zip(heads, texts, strict=True))
        ]
        print_columns(screen, columns)
        if limit < len(panel.rows):
            typer.echo(f"{limit:,} of {len(panel.rows):,} rows shown.")
    say_in = cross.presentation.say
    say(say_in("unit", unit=cross.unit))
    if margins:
        say(say_in("half", interval=_interval(cross.confidence, say_in)))
    for words in cross.presentation.rules(cross.measures)[margins:]:  # no letters beside margins
        say(words)


def print_result(
    screen: Console, answers: pa.Table, presentation: Presentation, confidence: float, limit: int
) -> None:
    """Print the first rows of answers in the shape of a statement's result."""
    shown = answers.slice(0, limit)
    columns: list[Column] = []
    for place, field in enumerate(answers.schema):
        kind, head = (field.metadata or {}).get(FIGURE), printable(field.name)
        if kind == b"estimate":
            suppress = presentation.suppress_above is not None
            figures = shown.columns[place : place + 4]
            columns += _counts(head, figures, confidence, whole=False, suppress=suppress)
        elif kind is None:
            texts = _labels(shown.column(place), "NULL")
            # where the screen is too narrow, intervals and long keys are broken; the rest keeps its line
            columns.append(Column(head, texts, whole=max(map(len, [head, *texts])) <= _LONGEST_KEY))
    print_columns(screen, columns)
    if np.isinf(deviations_of(shown)).any():
        say(f"{UNRELIABLE}: the figure has no bounds.")
    _print_rest(shown.num_rows, answers.num_rows)
