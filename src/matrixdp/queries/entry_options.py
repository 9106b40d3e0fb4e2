"""What all entries of a workload share: options, names of groups, and finding attributes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

from matrixdp.domain import Attribute, Domain
from matrixdp.domain.suggestions import unknown_name
from matrixdp.errors import EntryError, Path
from matrixdp.queries.predicate_set import Array

__all__ = ["MAX_GROUPS", "Options", "domain_order", "find_attribute", "narrowed"]

#: An entry stands for at most this many groups.
MAX_GROUPS = 1_000_000


@final
@dataclass(frozen=True, eq=False)
class Options:
    """What every entry may say: a weight, a weight for each query, a name."""

    weight: float = 1.0
    weights: Array | None = None
    name: str | None = None

    def to_spec(self) -> dict[str, object]:
        """Return the options that are not the default, as a specification has them."""
        spec: dict[str, object] = {}
        if self.weight != 1.0:
            spec["weight"] = self.weight
        if self.weights is not None:
            spec["weights"] = self.weights.tolist()
        if self.name is not None:
            spec["name"] = self.name
        return spec

    def group_name(self, attributes: Sequence[Attribute], predicates: Sequence[str], single: bool) -> str:
        """Return what a group is called: the user's name if there is one, else what it asks.

        Parameters
        ----------
        attributes : sequence of Attribute
            The group's attributes.
        predicates : sequence of str
            What its predicate sets are called; empty to leave them out.
        single : bool
            Whether the entry stands for one group.
        """
        names = ", ".join(attribute.name for attribute in attributes) or "total"
        if self.name is not None:
            return self.name if single else f"{self.name}: {names}"
        return f"{names}: {' x '.join(predicates)}" if predicates and attributes else names

    def weights_for(self, counts: Sequence[int], order: Sequence[int]) -> Array | None:
        """Return the weights of the queries of the only group, row-major in domain order.

        Parameters
        ----------
        counts : sequence of int
            The number of predicates on each attribute, in the order that the user wrote.
        order : sequence of int
            The positions of the attributes in that order, sorted by domain order.

        Raises
        ------
        EntryError
            If there is not one weight for each query.
        """
        if self.weights is None:
            return None
        queries = math.prod(counts)
        if self.weights.size != queries:
            raise EntryError.at(
                ("weights",), f"{self.weights.size} weights", f"{queries}, one for each query of the group"
            )
        return self.weights.reshape(tuple(counts)).transpose(tuple(order)).ravel()

    def check_single(self, groups: int) -> None:
        """Check that weights for each query are for one group alone.

        Raises
        ------
        EntryError
            If the entry stands for several groups.
        """
        if self.weights is not None and groups != 1:
            raise EntryError.at(
                ("weights",),
                f"weights for an entry that stands for {groups} groups",
                "`weights` with one group alone; `weight` holds for all groups of an entry",
            )


def find_attribute(domain: Domain, name: str, path: Path) -> Attribute:
    """Return an attribute of the domain.

    Parameters
    ----------
    domain : Domain
        The attributes.
    name : str
        The attribute's name.
    path : tuple of str or int
        Where the name stands in the entry, for messages.

    Raises
    ------
    EntryError
        If there is no attribute of that name.
    """
    if name not in domain:
        raise EntryError(unknown_name(path, name, "an attribute of the domain", domain.names))
    return domain[name]


def domain_order(domain: Domain, names: Sequence[str]) -> list[int]:
    """Return the positions of known names, sorted by the order of the domain.

    Parameters
    ----------
    domain : Domain
        The attributes.
    names : sequence of str
        Names of attributes.
    """
    return sorted(range(len(names)), key=lambda position: domain.index(names[position]))


def narrowed(domain: Domain, attributes: tuple[str, ...] | None) -> tuple[Attribute, ...]:
    """Return the attributes to combine, in domain order.

    Parameters
    ----------
    domain : Domain
        The attributes.
    attributes : tuple of str, optional
        The names that the user wrote; all attributes where they are left out.

    Raises
    ------
    EntryError
        If a name is unknown.
    """
    if attributes is None:
        return domain.attributes
    for position, name in enumerate(attributes):
        find_attribute(domain, name, ("attributes", position))
    return tuple(domain[attributes[position]] for position in domain_order(domain, attributes))
