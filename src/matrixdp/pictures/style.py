"""How pictures look: one small palette, which a page can map to its own colours."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from matrixdp.errors import SpecificationError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = [
    "BAND",
    "BOUND",
    "GRID",
    "INK",
    "SERIES",
    "label_places",
    "new_figure",
    "quiet",
    "shortened",
]

#: Text and axes; lines behind them; bands; a bound.
INK, GRID, BAND, BOUND = "#24292f", "#d8dee4", "#9ec5e8", "#b3261e"
#: Of lines, in their order: distinguishable in grey and with a weakness for colours (after Okabe and Ito).
SERIES = ("#0b5ea8", "#b35900", "#00785a", "#8f3f97", "#6b5b00", "#a8324a", "#3d3d3d", "#007a99")

_LONGEST = 22


def new_figure(width: float, height: float) -> Figure:
    """Return an empty figure of a size in inches.

    Raises
    ------
    SpecificationError
        If matplotlib is not installed.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise SpecificationError.at(
            ("picture",), "no matplotlib", "an installation with it: pip install 'matrixdp[pictures]'"
        ) from None
    return Figure(figsize=(width, height), layout="constrained")


def quiet(axes: Axes, *, grid: str = "y") -> None:
    """Give axes no more lines than are needed to read them."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["bottom", "left"]].set_color(INK)
    axes.tick_params(colors=INK, labelsize=9)
    axes.xaxis.label.set(color=INK, fontsize=10)
    axes.yaxis.label.set(color=INK, fontsize=10)
    axes.title.set(color=INK, fontsize=10)
    if grid:
        axes.grid(axis="x" if grid == "x" else "y", color=GRID, linewidth=0.6)
        axes.set_axisbelow(True)


def shortened(text: str, longest: int = _LONGEST) -> str:
    r"""Return a label that is short and not read as a formula.

    Examples
    --------
    >>> shortened("a" * 30), shortened("$x$ and $y$")
    ('aaaaaaaaaaaaaaaaaaaaa…', '\\$x\\$ and \\$y\\$')
    """
    line = " ".join("".join(mark if mark.isprintable() else " " for mark in text).split())
    short = line if len(line) <= longest else f"{line[: longest - 1]}…"
    return short.replace("$", r"\$")


def label_places(labels: Sequence[str], most: int) -> tuple[list[int], list[str]]:
    """Return places, evenly spread and the last among them, and what they are called.

    Examples
    --------
    >>> label_places(["a", "b", "c", "d", "e"], 3)
    ([0, 2, 4], ['a', 'c', 'e'])
    """
    step = max(1, math.ceil((len(labels) - 1) / max(most - 1, 1)))
    places = list(range(len(labels) - 1, -1, -step))[::-1]
    return places, [shortened(labels[place], 14) for place in places]
