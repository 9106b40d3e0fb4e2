"""The picture of a release's accuracy: its errors between what is possible and what is naive."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from matrixdp.pictures.style import BOUND, INK, SERIES, new_figure, quiet, shortened

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["draw_accuracies"]

_MOST = 30


def draw_accuracies(rows: Sequence[tuple[str, float, float, float | None]], straight: float | None) -> Figure:
    """Return the errors of groups as points: the largest of them, where there are more than 30.

    Parameters
    ----------
    rows : sequence of (str, float, float, float or None)
        The title of a group, the root mean square of its standard errors, the largest of them, and what no
        strategy is below.
    straight : float, optional
        The standard error of noise on every query.
    """
    from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

    shown = sorted(rows, key=lambda row: -row[1])[:_MOST]
    places = range(len(shown))
    figure = new_figure(6.4, 1.3 + 0.24 * len(shown))
    axes = figure.add_subplot()
    axes.plot(
        [row[1] for row in shown],
        places,
        "o",
        color=SERIES[0],
        label="RMSE of this release",
    )
    known = [(row[3], place) for place, row in enumerate(shown) if row[3] is not None]
    if known:
        values, at = zip(*known, strict=True)
        axes.plot(
            values,
            at,
            "|",
            color=BOUND,
            markersize=10,
            markeredgewidth=2,
            label="no strategy is below",
        )
    if straight is not None:
        axes.axvline(
            straight,
            color=INK,
            linestyle="--",
            linewidth=1.2,
            label="noise on the workload",
        )
    axes.set_yticks(places, [shortened(row[0], 30) for row in shown])
    axes.invert_yaxis()
    axes.set_xscale("log")
    axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axes.xaxis.set_major_formatter(StrMethodFormatter("{x:,g}"))
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.margins(x=0.08, y=0.04)
    more = "" if len(shown) == len(rows) else f", the largest of {len(rows):,}"
    axes.set_xlabel(f"standard error in records{more}")
    figure.legend(loc="outside upper center", ncols=3, fontsize=8.5, frameon=False, labelcolor=INK)
    quiet(axes, grid="x")
    return figure
