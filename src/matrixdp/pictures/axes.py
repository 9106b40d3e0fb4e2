"""The axes of a query group: what varies along them, in which order, and what each place is called."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, final

from matrixdp.answers.titles import head
from matrixdp.domain import Attribute, Domain
from matrixdp.queries import AllRanges, DenseGroup, Group, Identity, Predicates, Prefix, Suffix, Total

__all__ = ["Axis", "axes_of", "joined"]

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
    pairs = zip(group.attributes, group.predicates, strict=True)
    return tuple(
        _axis(domain[name], predicates)
        for name, predicates in pairs
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
    labels = [""] * math.prod(axis.size for axis in axes)
    stride = 1
    for axis in reversed(axes):
        for place, label in enumerate(labels):
            own = axis.labels[place // stride % axis.size]
            labels[place] = f"{own}, {label}" if label else own
        stride *= axis.size
    return tuple(labels)
