"""Tables on screen, through rich."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, final

import pyarrow as pa
import typer
from rich.box import HEAVY_HEAD
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from matrixdp.answers.inference import METADATA
from matrixdp.answers.intervals import decimals_of, directed, for_people, least_error
from matrixdp.answers.table import BOUND, FIGURE, FIGURES, OF, figure_of, heading
from matrixdp.cli.console import Row, say
from matrixdp.display import figure, printable, rounded

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
    """Print a table; a plain one is whole, which makes a narrow screen break its lines."""
    table = table_of(columns, plain=plain)
    if plain:
        needed = Measurement.get(screen, screen.options.update(max_width=_WIDEST), table).maximum
        Console(highlight=False, width=max(screen.width, needed)).print(table)
        return
    _fit(table, columns, screen.width)
    screen.print(table)


def _fit(table: Table, columns: Sequence[Column], width: int) -> None:
    """Keep figures whole, or at least words, where the screen is wide enough for that."""
    texts = [[column.head, *column.texts] for column in columns]
    most = [max(map(len, own)) for own in texts]
    for kept in (True, None):
        widths = []
        for column, own in zip(columns, texts, strict=True):
            whole = column.whole or column.number is kept
            words = (part for text in own for part in ([text] if whole else text.split()))
            widths.append(max(map(len, words), default=1))
        spare = width - 1 - sum(widths) - 3 * len(widths)
        if spare >= 0:
            for _ in range(min(spare, sum(most) - sum(widths))):  # the narrowest that is cut grows first
                widths[min((w, place) for place, w in enumerate(widths) if w < most[place])[1]] += 1
            for drawn, own_width in zip(table.columns, widths, strict=True):
                drawn.width = own_width
            return


def _print_rest(shown: int, rows: int) -> None:
    if shown < rows:
        typer.echo(f"{shown:,} of {rows:,} answers shown.")


def _interval(confidence: float) -> str:
    return f"{100 * confidence:g}% interval"


def _amount(value: object, error: object = None) -> str:
    """Return a number with two digits of its error, or as many as help, or what else stands in a table."""
    if value is None:
        return "-"
    if not isinstance(value, float):
        return str(value)
    size = abs(value)
    if isinstance(error, float) and size < 1e12 and (decimals := decimals_of(error)) is not None:
        return rounded(value, decimals)
    return f"{value:,.1f}" if 100 <= size < 1e12 else f"{value:,.4g}"


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
    head: str, figures: Sequence[pa.ChunkedArray], confidence: float, *, whole: bool = True
) -> list[Column]:
    """Return the columns of the counts, standard errors and intervals that four columns hold."""
    values, errors, low, high = (column.to_pylist() for column in figures)

    def counts(numbers: list[float | None]) -> list[str]:
        # more than one digit behind the point where the error is small
        decimals = (1 if error is None else max(1, decimals_of(error) or 1) for error in errors)
        pairs = zip(numbers, decimals, strict=True)
        return ["-" if number is None else rounded(number, digits) for number, digits in pairs]

    pairs = zip(counts(low), counts(high), strict=True)
    ends = ["-" if pair == ("-", "-") else " to ".join(pair) for pair in pairs]
    return [
        Column(head, counts(values), number=True, whole=True),
        Column("stddev", [figure(error) for error in errors], number=True, whole=True),
        Column(_interval(confidence), ends, number=True, whole=whole),
    ]


def print_answers(screen: Console, answers: pa.Table, confidence: float, limit: int) -> None:
    """Print the first rows of a table of answers, and say how many there are."""
    bounds = {field.name for field in answers.schema if BOUND in (field.metadata or {})}
    texts = [name for name in answers.schema.names if name not in {*FIGURES, "group"} | bounds]
    shown = answers.slice(0, limit)
    asked = []
    for row in shown.select(texts).to_pylist():
        parts = (text if name == "query" else f"{name} {text}" for name, text in row.items() if text)
        asked.append(printable(", ".join(parts) or "(all)"))
    columns = [Column("group", _labels(shown.column("group"), "")), Column("records with", asked)]
    columns += _counts("estimate", shown.select(FIGURES).columns, confidence)
    print_columns(screen, columns)
    _print_rest(len(asked), answers.num_rows)


def print_table(screen: Console, found: pa.Table, confidence: float, limit: int) -> None:
    """Print the first rows of one clean table: estimates with half the length of their intervals."""
    decimals = decimals_of(least_error(found))
    exact = found.slice(0, limit)
    part = for_people(exact, decimals)
    columns: list[Column] = []
    for place, field in enumerate(part.schema):
        kind = figure_of(field)
        if BOUND in (field.metadata or {}) or kind in ("lower", "upper", "stddev"):
            continue
        texts = _labels(part.column(place), "(all)")
        if kind:
            # of the ends as they are: those that are rounded outward are up to two units further apart
            low, high = (exact.column(place + end).to_numpy() for end in (2, 3))
            own = part.column(place).to_pylist()
            halves = directed((high - low) / 2, "upper", decimals).tolist()
            texts = [f"{value:,.10g} ± {half:,.10g}" for value, half in zip(own, halves, strict=True)]
        columns.append(
            Column(printable(heading(field) if not kind else field.name), texts, number=bool(kind))
        )
    print_columns(screen, columns)
    _print_rest(part.num_rows, found.num_rows)
    screen.print(f"± is the {_interval(confidence)}; --csv has its ends and the standard errors.")


def print_result(screen: Console, answers: pa.Table, confidence: float, limit: int) -> None:
    """Print the first rows of answers in the shape of a statement's result."""
    shown = answers.slice(0, limit)
    keys: list[Column] = []
    together: list[Column] = []
    aggregates: list[list[Column]] = []
    for place, field in enumerate(answers.schema):
        kind, head = (field.metadata or {}).get(FIGURE), printable(field.name)
        if kind == b"estimate":
            aggregates.append(_counts(head, shown.columns[place : place + 4], confidence, whole=False))
            together += aggregates[-1]
        elif kind is None:
            texts = _labels(shown.column(place), "NULL")
            # where the screen is too narrow, intervals and long keys are broken; the rest keeps its line
            keys.append(Column(head, texts, whole=max(map(len, [head, *texts])) <= _LONGEST_KEY))
            together.append(keys[-1])
    needed = Measurement.get(screen, screen.options.update(max_width=_WIDEST), table_of(together)).maximum
    # several aggregates that do not fit beside one another stand below one another
    for columns in [together] if needed <= screen.width else [[*keys, *own] for own in aggregates]:
        print_columns(screen, columns)
    _print_rest(shown.num_rows, answers.num_rows)


def print_statistic(screen: Console, answers: pa.Table, confidence: float, limit: int) -> None:
    """Print the first rows of the table of a statistic, and what is to be known of it."""
    rows: list[dict[str, Any]] = answers.slice(0, limit).to_pylist()
    columns: list[Column] = []
    told = {field.name: field.metadata or {} for field in answers.schema}
    figures = {(own[OF], own[FIGURE]): name for name, own in told.items() if FIGURE in own}

    def amounts(name: str, error: str | None) -> list[str]:
        return [_amount(row[name], None if error is None else row[error]) for row in rows]

    for field in answers.schema:
        name, own = field.name, told[field.name]
        kind = own.get(FIGURE)
        hidden = kind == b"stddev" and all(row[name] is None for row in rows)
        # where the values of an attribute begin and end is said by its own column, too
        if hidden or BOUND in own or name == "warning" or kind == b"upper":
            continue
        error = None if kind == b"stddev" else figures.get((own.get(OF), b"stddev"))
        texts = amounts(name, error)
        head = name.replace("_", " ") if pa.types.is_floating(field.type) else heading(field)
        if kind == b"lower":
            pairs = zip(texts, amounts(figures[own[OF], b"upper"], error), strict=True)
            texts = ["-" if "-" in pair else " to ".join(pair) for pair in pairs]
            head = f"{own[OF].decode()} {_interval(confidence)}".strip()
        words = pa.types.is_dictionary(field.type) or pa.types.is_string(field.type)
        columns.append(Column(printable(head), list(map(printable, texts)), number=not words))
    print_columns(screen, columns)
    warned: dict[str, list[str]] = {}
    for place, row in enumerate(rows, 1):
        if row.get("warning"):
            warned.setdefault(row["warning"], []).append(str(place))
    for words, places in warned.items():
        more = " and more" if len(places) > 8 else ""
        say(f"Row {', '.join(places[:8])}{more}: {words}.")
    note = json.loads((answers.schema.metadata or {}).get(METADATA, b"{}")).get("note")
    if note:
        say(f"Here {printable(note)}.")
    _print_rest(len(rows), answers.num_rows)
