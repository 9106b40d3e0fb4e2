"""The table of a comparison: as it grows, and at its end."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from types import TracebackType
from typing import TYPE_CHECKING, final

from rich.console import Console, Group
from rich.measure import Measurement
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from matrixdp.cli.comparison import Outcome, weighted
from matrixdp.cli.facts import figure
from matrixdp.cli.tables import console

if TYPE_CHECKING:
    from rich.live import Live as Screen

__all__ = ["Live", "comparison_table", "print_comparison"]

_WIDEST = 1000
_TITLES = ("RMSE", "largest stddev", "to best", "to bound", "s", "MB")


def comparison_table(rows: Sequence[Outcome]) -> Table:
    """Return the rows that apply as a table; names are broken where the screen is narrow, never figures."""
    aside = weighted(rows)
    table = Table(header_style="bold", box=None, padding=(0, 1, 0, 0))
    table.add_column("mechanism", overflow="fold")
    table.add_column("noise", no_wrap=True)
    for title in ("RMSE", "weighted RMSE", *_TITLES[1:]) if aside else _TITLES:
        table.add_column(title.replace(" ", "\n"), justify="right", no_wrap=True)
    for row in rows:
        if row.rmse is None:
            continue
        errors = [row.rmse, *([row.weighted_rmse] if aside else []), row.max_stddev]
        texts = [
            *map(figure, errors),
            *map(_ratio, (row.ratio_to_best, row.ratio_to_lower_bound)),
            *("-" if spent is None else f"{spent:.{digits}f}" for spent, digits in _spent(row)),
        ]
        table.add_row(Text(row.label.replace(" ", "\n")), row.noise, *texts)
    return table


def _spent(row: Outcome) -> tuple[tuple[float | None, int], ...]:
    return ((row.seconds, 1), (row.peak_memory_mb, 0))


def _ratio(ratio: float | None) -> str:
    return figure(ratio) if ratio is None or ratio >= 100 else f"{ratio:.3f}"


def print_comparison(rows: Sequence[Outcome], *, why: bool) -> None:
    """Print the table, what its columns mean, and which mechanisms are not in it."""
    screen = console()
    if any(row.rmse is not None for row in rows):
        table = comparison_table(rows)
        # a narrower screen breaks lines itself: nothing is left out
        needed = Measurement.get(screen, screen.options.update(max_width=_WIDEST), table).maximum
        Console(highlight=False, width=max(screen.width, needed)).print(table)
        named = "weighted RMSE" if weighted(rows) else "RMSE"
        screen.print(
            f"to best: ratio of the {named} to the least promised one of either noise. to bound: ratio to "
            "the lower bound for the same noise, below which no strategy comes."
        )
    for row in rows:
        if row.note and (why or row.rmse is not None):
            note = row.note.removeprefix(f"{row.mechanism}: ")
            screen.print(Text(f"{row.mechanism} ({row.noise}): {note}"))
    if not why:
        for words, unfinished in {"did not finish": True, "do not apply": False}.items():
            missing = [row for row in rows if row.rmse is None and row.unfinished == unfinished]
            if missing:
                screen.print(Text(f"{words} (--why says why): {_listed(missing)}"))


def _listed(rows: Sequence[Outcome]) -> str:
    """Return the names of mechanisms, each once; with the noise where it is not so for every noise."""
    noises: dict[str, list[str]] = {}
    for row in rows:
        noises.setdefault(row.mechanism, []).append(row.noise)
    most = max(map(len, noises.values()))
    texts = [name if len(own) == most else f"{name} ({', '.join(own)})" for name, own in noises.items()]
    return ", ".join(texts)


@final
class Live:
    """The table while it grows, where both output and errors go to a terminal; silent elsewhere.

    Examples
    --------
    >>> with Live() as live:
    ...     live.report("identity (gaussian), 1 of 9", 0.0, [])
    """

    def __init__(self) -> None:
        self._screen: Screen | None = None
        self._lock = threading.Lock()

    def report(self, label: str, _share: float | None, rows: Sequence[Outcome]) -> None:
        """Show what is being done, below what came of it so far."""
        if self._screen is None:
            return
        working = Spinner("dots", text=Text(label))
        shown = any(row.rmse is not None for row in rows)
        self._screen.update(Group(comparison_table(rows), working) if shown else working)

    def __enter__(self) -> Live:
        from rich.live import Live as Screen

        errors = Console(stderr=True, highlight=False)
        if errors.is_terminal and console().is_terminal:
            self._screen = Screen(console=errors, transient=True, vertical_overflow="crop")
            self._screen.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._screen is not None:
            self._screen.stop()
