"""Pictures of comparisons, drawn with matplotlib where it is installed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from matrixdp.cli.comparison import Outcome, weighted
from matrixdp.errors import SpecificationError, StorageError

__all__ = ["check_picture", "draw_comparison"]

_COLOURS = {"gaussian": "#3465a4", "laplace": "#ce5c00"}
_OTHER_COLOUR = "#4e9a06"


def check_picture(picture: Path) -> None:
    """Refuse a file that no picture can be written to, before anything is computed."""
    if picture.suffix.lower() not in (".png", ".svg", ".pdf"):
        raise SpecificationError.at(
            ("--picture",), picture.suffix or "no ending", "a file .png, .svg or .pdf"
        )
    if not picture.absolute().parent.is_dir():
        raise StorageError(f"{picture}: found no folder to save a file of that name in")


def draw_comparison(rows: Sequence[Outcome], path: Path, title: str) -> None:
    """Draw the RMSE of every mechanism that applies as bars, with the lower bounds as lines.

    Where queries have weights, bars are the weighted RMSE, which the bounds are for, and points the other.
    """
    try:
        from matplotlib.figure import Figure
        from matplotlib.ticker import NullFormatter, ScalarFormatter
    except ImportError:
        raise SpecificationError.at(
            ("--picture",), "no matplotlib", "an installation with it: pip install 'matrixdp[pictures]'"
        ) from None
    applies = [row for row in rows if row.weighted_rmse is not None]
    if not applies:
        raise SpecificationError.at(("--picture",), "no mechanism that applies", "at least one")
    aside = weighted(applies)
    figure = Figure(figsize=(8.0, 1.6 + 0.32 * len(applies)), layout="constrained")
    axes = figure.add_subplot()
    values = [float(row.weighted_rmse or 0.0) for row in applies]
    labels = [f"{row.label} ({row.noise})" for row in applies]
    colours = {row.noise: _COLOURS.get(row.noise, _OTHER_COLOUR) for row in applies}
    bars = axes.barh(range(len(values)), values, color=[colours[row.noise] for row in applies])
    for bar, row in zip(bars, applies, strict=True):
        if row.data_dependent:
            bar.set(hatch="///", alpha=0.5)
    if aside:
        plain = [float(row.rmse or 0.0) for row in applies]
        axes.scatter(
            plain, range(len(plain)), marker="D", s=18, zorder=3.5, label="RMSE, unweighted",
            facecolor="white", edgecolor="black",
        )  # fmt: skip
    axes.set_yticks(range(len(values)), labels)
    axes.invert_yaxis()
    for place, (value, row) in enumerate(zip(values, applies, strict=True)):
        axes.annotate(
            f"{value:.4g}",
            (max(value, float(row.rmse or 0.0)), place),
            (5, 0),
            textcoords="offset points",
            va="center",
            zorder=4,
            bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.5, "alpha": 0.85},
        )
    for noise, colour in colours.items():
        bounds = [row.lower_bound_rmse for row in applies if row.noise == noise and row.lower_bound_rmse]
        if bounds:
            axes.axvline(
                max(bounds), color=colour, linestyle="--", zorder=3, label=f"lower bound, {noise} noise"
            )
    if axes.get_legend_handles_labels()[0]:
        figure.legend(loc="outside lower center", ncols=3, frameon=False)
    if max(values) > 20 * min(values):
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter(ScalarFormatter())
        axes.xaxis.set_minor_formatter(NullFormatter())
    axes.margins(x=0.12, y=0.01)
    axes.set_xlabel("weighted RMSE in records, which is minimized" if aside else "RMSE in records")
    axes.set_title(title, fontsize="medium")
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=150)
