"""Curves as pictures, and the page of scaling, which shows some of them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from values import plain, table

__all__ = ["draw_convergence", "draw_errors", "scaling_page"]

#: One colour for each mechanism, distinct for colour-blind readers too (Okabe and Ito's palette).
_COLOURS = {
    "dense": "#0072B2",
    "residual": "#0072B2",
    "coa": "#D55E00",
    "querysmasher": "#D55E00",
    "eigen-query": "#009E73",
    "residualplanner-plus": "#009E73",
    "low-rank": "#CC79A7",
    "fourier": "#CC79A7",
    "exponential-smoothing": "#E69F00",
    "opt-kron": "#E69F00",
    "greedy-h": "#56B4E9",
    "rotation": "#56B4E9",
    "opt-plus": "#56B4E9",
    "opt-0": "#000000",
    "opt-m": "#000000",
}
_MARKERS = {"gaussian": "o", "laplace": "s"}
_LINES = {"gaussian": "-", "laplace": "--"}


def draw(figure: dict[str, Any], path: Path) -> None:
    """Draw processor seconds against what is varied, both on logarithmic axes.

    Without matplotlib the picture that is there stays.
    """
    canvas = _canvas(path, 8.0, 4.4)
    if canvas is None:
        return
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

    axes = canvas.add_subplot()
    places: set[int] = set()
    for curve in figure["curves"]:
        if not curve["points"]:
            continue
        at = [point["at"] for point in curve["points"]]
        places.update(at)
        axes.plot(
            at,
            [max(point["cpu_seconds"], 1e-3) for point in curve["points"]],
            color=_COLOURS[curve["mechanism"]],
            linestyle=_LINES[curve["noise"]],
            marker=_MARKERS[curve["noise"]],
            markersize=4,
            linewidth=1.5,
            label=f"{curve['mechanism']} ({curve['noise']})",
        )
    axes.set_xscale("log")
    axes.xaxis.set_major_locator(FixedLocator(sorted(places)))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    _dress(axes, figure["axis"], figure["title"])
    axes.set_ylabel("processor seconds of selection")
    canvas.legend(loc="outside right upper", frameon=False, fontsize="small")
    _save(canvas, path)


def _canvas(path: Path, width: float, height: float) -> Any:
    """Return an empty picture, or None and say so without matplotlib."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        print(f"{path.name} is not drawn: pip install '.[pictures]'", file=sys.stderr)
        return None
    return Figure(figsize=(width, height), layout="constrained")


def _dress(axes: Any, across: str, title: str) -> None:
    axes.set_yscale("log")
    axes.grid(which="major", color="#dddddd", linewidth=0.6)
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_xlabel(across)
    axes.set_title(title, loc="left", fontsize="medium")


def _save(canvas: Any, path: Path) -> None:
    canvas.savefig(path, dpi=110, metadata={"Software": None})


#: Of the curves of a convergence, in this order.
_PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#000000")
#: Of errors, in this order.
_EIGHT = (*_PALETTE, "#E69F00", "#56B4E9", "#999999")


def draw_convergence(figures: dict[str, Any], path: Path) -> None:
    """Draw objective, gradient and measured error against Newton steps, on logarithmic axes.

    Without matplotlib the picture that is there stays.
    """
    canvas = _canvas(path, 9.6, 3.6)
    if canvas is None:
        return
    titles = {
        "objective": "objective over the optimum",
        "optimality": "gradient over its start",
        "test_error": "measured error over the optimum",
    }
    for axes, (key, title) in zip(canvas.subplots(1, 3), titles.items(), strict=True):
        for curve, colour in zip(figures["curves"], _PALETTE, strict=True):
            values = [point[key] for point in curve["points"]]
            unit = values[0] if key == "optimality" else curve["optimum"]
            label = curve["family"] if key == "objective" else None
            axes.plot([value / unit for value in values], color=colour, linewidth=1.5, label=label)
        _dress(axes, "Newton steps", title)
    canvas.legend(loc="outside lower center", ncols=5, frameon=False, fontsize="small")
    _save(canvas, path)


#: Lines of what is new (the first on top), and of what it stands beside.
_OURS: tuple[dict[str, Any], ...] = (
    {"linewidth": 1.6, "marker": "o", "markersize": 4, "zorder": 5},
    {"linewidth": 4.5, "zorder": 4},
)
_OTHERS: dict[str, Any] = {"linewidth": 1.2, "linestyle": "--"}


def draw_errors(
    panels: dict[str, dict[str, list[tuple[int, float]]]],
    ours: tuple[str, ...],
    across: str,
    path: Path,
    along: str = "RMSE at epsilon 1",
) -> None:
    """Draw errors, or what is found, against a size on logarithmic axes, with a panel for each family.

    Without matplotlib the picture that is there stays.
    """
    canvas = _canvas(path, 4.6 * len(panels) + 1.6, 4.2)
    if canvas is None:
        return
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullFormatter

    titles = list(dict.fromkeys(title for curves in panels.values() for title in curves))
    colours = dict(zip(titles, _EIGHT, strict=False))
    shown: set[str] = set()
    for axes, (name, curves) in zip(
        canvas.subplots(1, len(panels), sharey=True, squeeze=False)[0], panels.items(), strict=True
    ):
        for title, points in curves.items():
            style = _OURS[ours.index(title)] if title in ours else _OTHERS
            label = None if title in shown else title
            shown.add(title)
            axes.plot(*zip(*points, strict=True), color=colours[title], label=label, **style)
        axes.set_xscale("log")
        places = sorted({place for points in curves.values() for place, _ in points})
        axes.xaxis.set_major_locator(FixedLocator(places[:: -1 - len(places) // 8]))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
        axes.xaxis.set_minor_formatter(NullFormatter())
        _dress(axes, across, name)
        axes.yaxis.set_major_locator(FixedLocator([1, 2, 5, 10, 20, 50, 100, 200, 500]))
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axes.yaxis.set_minor_formatter(NullFormatter())
        axes.set_ylabel(along)
        axes.label_outer()
    canvas.legend(loc="outside right upper", frameon=False, fontsize="small")
    _save(canvas, path)


def scaling_page(part: dict[str, Any], out: Path) -> list[str]:
    """Draw the pictures into a folder and return the page."""
    figures = part["figures"]
    machine = part["machine"]
    lines = [
        "# Scaling",
        "",
        "Processor seconds of one selection on one thread, its lower bound included, which takes most of the "
        "time where the spectrum of about a thousand cells has to be computed (6 attributes below). A curve "
        "ends where a selection takes longer than "
        f"{figures['limit']:g} s, or where its mechanism refuses the size. {machine['date']}, "
        f"{machine['processor']}.",
        "",
    ]
    for figure in figures["figures"]:
        name = f"scaling-{figure['name']}.png"
        draw(figure, out / name)
        places = sorted({point["at"] for curve in figure["curves"] for point in curve["points"]})
        rows = []
        for curve in figure["curves"]:
            by_place = {point["at"]: point for point in curve["points"]}
            cells = [plain(by_place[at]["cpu_seconds"], 2) if at in by_place else "-" for at in places]
            peak = max((point["peak_mb"] for point in curve["points"]), default=None)
            memory = "-" if peak is None else f"{peak:,.0f} MB"
            rows.append([f"`{curve['mechanism']}`, {curve['noise']}", *cells, memory])
        lines += [
            f"## {figure['title']}",
            "",
            f"![{figure['title']}: seconds by {figure['axis']}]({name})",
            "",
        ]
        lines += [*table([figure["axis"], *[f"{at:,}" for at in places], "most memory"], rows), ""]
        ends = [
            f"- `{curve['mechanism']}` ({curve['noise']}) ends before {curve['end']['at']:,}: "
            + curve["end"]["note"].partition(". ")[0]
            for curve in figure["curves"]
            if curve["end"] is not None
        ]
        lines += [*ends, *([""] if ends else [])]
    return lines
