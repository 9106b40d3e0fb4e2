"""Tables on screen, through rich."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import final

import pyarrow as pa
import typer
from rich.box import HEAVY_HEAD
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from matrixdp.answers.cross_table import CrossTable
from matrixdp.answers.figures import MISSING, UNRELIABLE
from matrixdp.answers.inference import METADATA
from matrixdp.answers.shown import QUALITY, Shown
from matrixdp.answers.table import figure_of, subject_of, subject_words
from matrixdp.cli.console import Row, say
from matrixdp.display import Preview, figure, printable
from matrixdp.texts import Words

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


def print_rest(shown: int, rows: int, say_in: Words) -> None:
    """Say how many rows are not shown."""
    if shown < rows:
        typer.echo(say_in("rows_shown", shown=say_in.number(shown), number=say_in.number(rows)))


def interval_of(confidence: float, say_in: Words) -> str:
    """Return what intervals of a confidence are called."""
    return say_in("interval", confidence=say_in.number(100 * confidence))


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
    if len(rows) > 1 and all(row.share is not None for row in rows):
        found["share of cost"] = [f"{100 * (row.share or 0.0):.3g}%" for row in rows]
    names = Column("asked" if several else "group", [row.name for row in rows])
    print_columns(screen, [names, *(Column(head, texts, number=True) for head, texts in found.items())])


def print_table(screen: Console, shown: Shown, confidence: float) -> None:
    """Print a table as readers see it, and what is to be known of it."""
    say_in, counts = shown.say, METADATA not in (shown.table.schema.metadata or {})
    interval = interval_of(confidence, say_in)
    columns: list[Column] = []
    for field in shown.fields:
        kind, own = figure_of(field), shown.figures.get(subject_of(field))
        if kind == "upper" or field.name == "warning" or (counts and kind in ("stddev", "lower")):
            continue
        texts, head = shown.texts(field.name), shown.head(field)
        if own is None or not kind:
            whole = max(map(len, [head, *texts])) <= _LONGEST_KEY and shown.main is None
            columns.append(Column(head, texts, pa.types.is_floating(field.type), whole))
            continue
        if kind == "estimate" and counts:
            texts = [f"{text} {margin}".rstrip() for text, margin in zip(texts, own.margins(), strict=True)]
        elif kind == "estimate" and shown.main is None:  # several figures in a row, each with its letter
            pairs, head = zip(texts, own.letters, strict=True), printable(field.name)
            texts = [text if text == UNRELIABLE else f"{text} {letter}".rstrip() for text, letter in pairs]
        elif kind == "stddev" and shown.main is None:
            head = say_in("stddev")
        elif kind == "lower":
            subject = subject_words(subject_of(field), say_in) if shown.main else ""
            texts, head = own.intervals(), printable(f"{subject} {interval}")
        if kind != "stddev" or set(texts) != {MISSING}:
            columns.append(Column(head.strip(), texts, number=True))
    if shown.letters:
        columns.append(Column(say_in(QUALITY), shown.letters, number=True))
    print_columns(screen, columns)
    for words, places in shown.warnings.items():
        more = " and more" if len(places) > 8 else ""
        say(f"Row {', '.join(map(str, places[:8]))}{more}: {words}.")
    for note in shown.notes:
        say(f"{note.rstrip('.')}.")
    if not counts and "confidence" in shown.table.column_names:
        say(say_in("listed"))
    print_rest(len(shown.table), shown.total, say_in)
    if counts:
        say(say_in("half_file", interval=interval))
    measures = shown.measures if shown.main is None else shown.main.measures
    for words in shown.rules.rules(measures) if shown.letters or not shown.main else ():
        say(words)


def print_preview(screen: Console, shown: Preview) -> None:
    """Print the small table that a value shows in a notebook."""
    columns = zip(shown.columns, zip(*shown.rows, strict=True), strict=True)
    print_columns(
        screen,
        [
            Column(printable(head), list(map(printable, texts)), number=place in shown.numeric)
            for place, (head, texts) in enumerate(columns)
        ],
    )


def print_cross_table(screen: Console, cross: CrossTable, limit: int, *, margins: bool = False) -> None:
    """Print a cross table: figures with their quality, or with half their intervals."""
    say_in = cross.presentation.say
    for panel in cross.panels:
        if panel.label:
            say(panel.label, bold=True)
        heads, numbers = (cross.corner, *cross.columns), frozenset(range(1, len(cross.columns) + 1))
        print_preview(screen, Preview(heads, cross.lines(panel, margins=margins)[:limit], 0, numbers))
        print_rest(limit, len(panel.rows), say_in)
    say(say_in("unit", unit=cross.unit))
    if margins:
        say(say_in("half", interval=interval_of(cross.confidence, say_in)))
    for words in cross.presentation.rules(cross.figures.measures)[margins:]:  # no letters beside margins
        say(words)
