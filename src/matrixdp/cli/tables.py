"""Tables and texts on screen, through rich."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from matrixdp.answers.intervals import decimals_of
from matrixdp.cli.console import Row, figure

if TYPE_CHECKING:
    import pyarrow as pa

NOT_PRIVATE = "NOT PRIVATE: the noise was seeded. Do not release this output."
_LONGEST_KEY = 20
_BOUNDS = ("_from", "_to")
_FIGURES = ("estimate", "stddev", "lower", "upper")


def console() -> Console:
    """Return the console that writes to stdout."""
    return Console(highlight=False)


def print_errors(screen: Console, rows: Sequence[Row]) -> None:
    """Print a table of errors."""
    several = any(row.groups != 1 for row in rows)
    aimed = any(row.target is not None for row in rows)
    table = Table(header_style="bold")
    table.add_column("asked" if several else "group", overflow="fold")
    counts = ["groups", "queries"] if several else ["queries"]
    for name in (*counts, "RMSE", "largest stddev", *(["target"] if aimed else [])):
        table.add_column(name, justify="right")
    for row in rows:
        groups = [f"{row.groups:,}"] if several else []
        target = [figure(row.target)] if aimed else []
        errors = [figure(row.rmse), figure(row.max_stddev)]
        table.add_row(Text(row.name), *groups, f"{row.queries:,}", *errors, *target)
    screen.print(table)


def print_answers(screen: Console, answers: pa.Table, confidence: float, limit: int) -> None:
    """Print the first rows of a table of answers, and say how many there are."""
    from matrixdp.answers.table import BOUND
    from matrixdp.verification.explain import printable

    shown: Any = answers.slice(0, limit)
    bounds = {field.name for field in answers.schema if BOUND in (field.metadata or {})}
    texts = [name for name in answers.schema.names if name not in {*_FIGURES, "group"} | bounds]
    table = Table(header_style="bold")
    for name in ("group", "records with"):
        table.add_column(name, overflow="fold")
    for name in ("estimate", "stddev", f"{100 * confidence:g} % interval"):
        table.add_column(name, justify="right", no_wrap=True)
    for row in shown.to_pylist():
        asked = ((row[name] if name == "query" else f"{name} {row[name]}") for name in texts if row[name])
        estimate, low, high = (_count(row[name], row["stddev"]) for name in ("estimate", "lower", "upper"))
        words = (Text(printable(text)) for text in (row["group"], ", ".join(asked) or "(all)"))
        table.add_row(*words, estimate, figure(row["stddev"]), f"{low} to {high}")
    _print(screen, table)
    _print_number(screen, shown.num_rows, answers.num_rows)


def print_table(screen: Console, found: pa.Table, confidence: float, limit: int) -> None:
    """Print the first rows of one clean table: estimates with half the length of their intervals."""
    from matrixdp.answers.intervals import for_people, least_error, rounded_up
    from matrixdp.answers.table import BOUND, FIGURE
    from matrixdp.verification.explain import printable

    decimals = decimals_of(least_error(found))
    exact = found.slice(0, limit)
    part = for_people(exact, decimals)
    table = Table(header_style="bold")
    columns: list[list[Text]] = []
    for place, field in enumerate(part.schema):
        metadata = field.metadata or {}
        kind = metadata.get(FIGURE, field.name.encode() if field.name in _FIGURES else b"").decode()
        if BOUND in metadata or kind in ("lower", "upper", "stddev"):
            continue
        own = part.column(place).to_pylist()
        if kind:
            # of the ends as they are: those that are rounded outward are up to two units further apart
            low, high = (exact.column(place + end).to_numpy() for end in (2, 3))
            halves = rounded_up((high - low) / 2, decimals).to_pylist()
            texts = [f"{value:,.10g} ± {half:,.10g}" for value, half in zip(own, halves, strict=True)]
        else:
            texts = ["(all)" if value is None else printable(value) for value in own]
        table.add_column(Text(printable(field.name)), justify="right" if kind else "left", overflow="fold")
        columns.append([Text(text) for text in texts])
    for row in zip(*columns, strict=True):
        table.add_row(*row)
    _print(screen, table)
    _print_number(screen, part.num_rows, found.num_rows)
    screen.print(f"± is the {100 * confidence:g} % interval; --csv has its ends and the standard errors.")


def print_result(screen: Console, answers: pa.Table, confidence: float, limit: int) -> None:
    """Print the first rows of answers in the shape of a statement's result."""
    from matrixdp.answers.table import FIGURE
    from matrixdp.verification.explain import printable

    shown = answers.slice(0, limit)
    table = Table(header_style="bold")
    columns: list[list[Text]] = []
    for place, (field, values) in enumerate(zip(answers.schema, shown.columns, strict=True)):
        kind = (field.metadata or {}).get(FIGURE, b"").decode()
        own = values.to_pylist()
        if kind == "upper":
            continue
        if kind == "lower":
            errors = shown.column(place - 1).to_pylist()
            ends = zip(own, shown.column(place + 1).to_pylist(), errors, strict=True)
            texts = [f"{_count(low, error)} to {_count(high, error)}" for low, high, error in ends]
        elif kind == "estimate":
            errors = shown.column(place + 1).to_pylist()
            texts = [_count(value, error) for value, error in zip(own, errors, strict=True)]
        elif kind:
            texts = [figure(value) for value in own]
        else:
            texts = ["NULL" if value is None else printable(str(value)) for value in own]
        head = {"lower": f"{100 * confidence:g} % interval", "stddev": "stddev"}.get(
            kind, printable(field.name)
        )
        # Where the screen is too narrow, intervals and long keys are broken; the rest is kept on its line.
        short = kind != "lower" if kind else max(map(len, [head, *texts])) <= _LONGEST_KEY
        table.add_column(Text(head), justify="right" if kind else "left", overflow="fold", no_wrap=short)
        columns.append([Text(text) for text in texts])
    for row in zip(*columns, strict=True):
        table.add_row(*row)
    _print(screen, table)
    _print_number(screen, shown.num_rows, answers.num_rows)


def print_statistic(screen: Console, answers: pa.Table, confidence: float, limit: int) -> None:
    """Print the first rows of the table of a statistic, and what is to be known of it."""
    import pyarrow as pa

    from matrixdp.verification.explain import printable

    shown = answers.slice(0, limit)
    rows = shown.to_pylist()
    warned = [(place, row.get("warning")) for place, row in enumerate(rows, 1) if row.get("warning")]
    table = Table(header_style="bold")
    cells: list[list[str]] = []
    for field in answers.schema:
        name, values = field.name, [row[field.name] for row in rows]
        hidden = name == "stddev" and all(value is None for value in values)
        # where the values of an attribute begin and end is said by its own column, too
        bound = any(
            name.endswith(end) and name.removesuffix(end) in row for end in _BOUNDS for row in rows[:1]
        )
        if hidden or bound or name == "warning" or name.endswith("upper"):
            continue
        if name.endswith("lower"):
            high = name.removesuffix("lower") + "upper"
            pairs = [
                (value, row[high], _error_of(name, row)) for value, row in zip(values, rows, strict=True)
            ]
            texts = [
                "-" if None in (low, end) else f"{_amount(low, error)} to {_amount(end, error)}"
                for low, end, error in pairs
            ]
            name = f"{name.removesuffix('lower').replace('_', ' ')}{100 * confidence:g} % interval"
        else:
            name = name.replace("_", " ") if pa.types.is_floating(field.type) else name
            texts = [
                _amount(value, _error_of(field.name, row)) for value, row in zip(values, rows, strict=True)
            ]
        left = pa.types.is_dictionary(field.type) or pa.types.is_string(field.type)
        table.add_column(Text(printable(name)), justify="left" if left else "right", overflow="fold")
        cells.append([printable(text) for text in texts])
    for row in zip(*cells, strict=True):
        table.add_row(*map(Text, row))
    _print(screen, table)
    for words in dict.fromkeys(words for _, words in warned):
        places = [str(place) for place, other in warned if other == words]
        named = ", ".join(places[:8]) + (" and more" if len(places) > 8 else "")
        screen.print(Text(f"Row {named}: {words}."))
    _print_number(screen, shown.num_rows, answers.num_rows)


def _print(screen: Console, table: Table) -> None:
    """Print a table whose figures, or at least words, are whole where the screen is wide enough for that."""
    texts = [[str(column.header), *map(str, column.cells)] for column in table.columns]
    most = [max(map(len, own)) for own in texts]
    for kept in ("right", None):
        widths = []
        for column, own in zip(table.columns, texts, strict=True):
            whole = column.no_wrap or column.justify == kept
            widths.append(
                max((len(part) for text in own for part in ([text] if whole else text.split())), default=1)
            )
        spare = screen.width - 1 - sum(widths) - 3 * len(widths)
        if spare >= 0:
            for _ in range(min(spare, sum(most) - sum(widths))):  # the narrowest that is cut grows first
                widths[min((w, place) for place, w in enumerate(widths) if w < most[place])[1]] += 1
            for column, width in zip(table.columns, widths, strict=True):
                column.width = width
            break
    screen.print(table)


def _count(value: float, error: float) -> str:
    """Return a count, with more than one digit behind the point where its error is small."""
    return f"{value:,.{max(1, decimals_of(error) or 1)}f}"


def _error_of(name: str, row: dict[str, Any]) -> object:
    """Return the standard error of what stands in a column of a statistic, None where it has none."""
    part = name.removesuffix("lower")
    return row.get(f"{part}stddev" if part != name else "stddev" if name == "estimate" else f"{name}_stddev")


def _amount(value: object, error: object = None) -> str:
    """Return a number with two digits of its error, or as many as help, or what else stands in a table."""
    if value is None:
        return "-"
    if not isinstance(value, float):
        return str(value)
    if isinstance(error, float) and abs(value) < 1e12 and (decimals := decimals_of(error)) is not None:
        return f"{round(value, decimals) + 0.0:,.{max(decimals, 0)}f}"
    size = abs(value)
    if not size < 1e12:
        return f"{value:.4g}"
    return f"{value:,.1f}" if size >= 100 else f"{value:,.4g}"


def _print_number(screen: Console, shown: int, rows: int) -> None:
    if shown < rows:
        screen.print(Text(f"{shown:,} of {rows:,} answers shown."))
