"""How pictures look: one small palette, which a page can map to its own colours."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, final

from matrixdp.answers.titles import head
from matrixdp.domain import Attribute, Domain
from matrixdp.errors import SpecificationError
from matrixdp.queries import AllRanges, DenseGroup, Group, Identity, Predicates, Prefix, Suffix, Total

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

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
        expected = "an installation with it: pip install 'matrixdp[pictures]'"
        raise SpecificationError.at(("picture",), "no matplotlib", expected, code="missing-library") from None
    return Figure(figsize=(width, height), layout="constrained")


def quiet(axes: Axes, *, grid: Literal["", "x", "y"] = "y") -> None:
    """Give axes no more lines than are needed to read them."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["bottom", "left"]].set_color(INK)
    axes.tick_params(colors=INK, labelsize=9)
    axes.xaxis.label.set(color=INK, fontsize=10)
    axes.yaxis.label.set(color=INK, fontsize=10)
    axes.title.set(color=INK, fontsize=10)
    if grid:
        axes.grid(axis=grid, color=GRID, linewidth=0.6)
        axes.set_axisbelow(True)


def rows_of(axes: Axes, labels: Sequence[str], unit: str, longest: int = _LONGEST) -> None:
    """Let axes have a row for each label, the first at the top, and along them what is counted in a unit."""
    axes.set_yticks(range(len(labels)), [shortened(label, longest) for label in labels])
    axes.invert_yaxis()
    axes.set_xlabel(unit)
    quiet(axes, grid="x")


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


# The axes of a query group: what varies along them, in which order, and what each place is called.

Kind = Literal["cumulative", "values", "ranges", "categories"]


@final
@dataclass(frozen=True)
class Axis:
    """One axis of a query group.

    Attributes
    ----------
    name : str
        The attribute, or what the queries are.
    labels : tuple of str
        What each place is called: for cumulative counts the value up to which, or from which, they count.
    kind : {"cumulative", "values", "ranges", "categories"}
        Cumulative counts; the values of a numeric attribute in their order; every interval of values, first
        by their lower ends; or anything else.
    values : tuple of str
        What the values are called of which intervals are made; empty for other axes.
    """

    name: str
    labels: tuple[str, ...]
    kind: Kind
    values: tuple[str, ...] = ()

    @property
    def size(self) -> int:
        """The number of places."""
        return len(self.labels)

    @property
    def ordered(self) -> bool:
        """Whether a line may join neighbouring places."""
        return self.kind in ("cumulative", "values")


def axes_of(domain: Domain, group: Group) -> tuple[Axis, ...]:
    """Return the axes of a query group, row-major; those of one place alone are left out.

    Examples
    --------
    >>> from matrixdp.language import product
    >>> domain = Domain({"sex": ["female", "male"], "age": range(3)})
    >>> (group,) = product(sex="identity", age="prefix").expand(domain)
    >>> [(axis.name, axis.kind, axis.labels) for axis in axes_of(domain, group)]
    [('sex', 'categories', ('female', 'male')), ('age, at most', 'cumulative', ('0', '1', '2'))]
    """
    if isinstance(group, DenseGroup):
        texts = group.content.describe(domain, group.attributes)
        return (Axis("query", tuple(texts), "categories"),)
    return tuple(
        _axis(domain[name], predicates)
        for name, predicates in group.sets.items()
        if not isinstance(predicates, Total) and predicates.count(domain[name].size) > 1
    )


def _axis(attribute: Attribute, predicates: Predicates) -> Axis:
    names = tuple(attribute.label(code) for code in range(attribute.size))
    if isinstance(predicates, Prefix):
        return Axis(f"{attribute.name}, at most", names, "cumulative")
    if isinstance(predicates, Suffix):
        return Axis(f"{attribute.name}, at least", names, "cumulative")
    if isinstance(predicates, Identity):
        return Axis(attribute.name, names, "values" if attribute.numeric else "categories")
    texts = tuple(predicates.describe(attribute))
    if isinstance(predicates, AllRanges):
        return Axis(attribute.name, texts, "ranges", names)
    return Axis(head(attribute, (predicates,)), texts, "categories")


def joined(axes: tuple[Axis, ...]) -> tuple[str, ...]:
    """Return what each combination of places is called, row-major.

    Examples
    --------
    >>> sex = Axis("sex", ("female", "male"), "categories")
    >>> joined((sex, Axis("old", ("no", "yes"), "categories")))
    ('female, no', 'female, yes', 'male, no', 'male, yes')
    """
    return tuple(map(", ".join, itertools.product(*(axis.labels for axis in axes))))
