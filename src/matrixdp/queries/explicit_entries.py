"""The entries of a workload whose queries are written out over the cells of a few attributes.

`matrixdp.queries.builders` makes entries from what a user wrote; `expand` turns them into query groups.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Literal, final

from matrixdp.domain import Domain
from matrixdp.errors import EntryError, Path, TooLargeError
from matrixdp.queries.crossed import merged_group
from matrixdp.queries.entry_options import MAX_GROUPS, Options, domain_order, find_attribute, narrowed
from matrixdp.queries.groups import AbsoluteDifferences, DenseGroup, Group, MatrixRows, Sums
from matrixdp.queries.predicate_form import PredicateForm, by_spec
from matrixdp.queries.predicate_set import Array

__all__ = ["DenseEntry", "PairwiseEntry"]


@final
@dataclass(frozen=True, eq=False)
class PairwiseEntry:
    """A comparison of the codes of every two numeric attributes.

    Parameters
    ----------
    kind : {"affine", "abs"}
        ``affine``: code(A) + code(B) <= c for all c; ``abs``: |code(A) - code(B)| <= c for all c.
    attributes : tuple of str, optional
        The attributes to pair; all numeric ones where it is left out.
    options : Options
        The weight, weights and name.
    """

    kind: Literal["affine", "abs"]
    attributes: tuple[str, ...] | None
    options: Options

    def expand(self, domain: Domain) -> list[Group]:
        """Return one query group for each pair, in domain order.

        Parameters
        ----------
        domain : Domain
            The attributes.

        Raises
        ------
        EntryError
            If an attribute is unknown or not numeric, or there are fewer than two.
        TooLargeError
            If there are more than `MAX_GROUPS` pairs, or a pair's queries are too many numbers.
        """
        chosen = narrowed(domain, self.attributes)
        if self.attributes is None:
            chosen = tuple(attribute for attribute in chosen if attribute.numeric)
        for position, name in enumerate(self.attributes or ()):
            if not domain[name].numeric:
                raise EntryError.at(
                    ("attributes", position),
                    f"{name!r}, which lists categories",
                    "a numeric attribute: one given by min and max, edges, bins or a size",
                )
        if len(chosen) < 2:
            path: Path = ("pairwise",) if self.attributes is None else ("attributes",)
            raise EntryError.at(path, f"{len(chosen)} numeric attributes", "at least 2")
        pairs = math.comb(len(chosen), 2)
        if pairs > MAX_GROUPS:
            raise TooLargeError(
                f"pairwise: found {pairs} pairs; expected at most {MAX_GROUPS}; narrow them with `attributes`"
            )
        self.options.check_single(pairs)
        rows = Sums if self.kind == "affine" else AbsoluteDifferences
        groups: list[Group] = []
        for pair in combinations(chosen, 2):
            sizes = (pair[0].size, pair[1].size)
            content = rows(sizes)
            groups.append(
                DenseGroup(
                    self.options.group_name(pair, [self.kind], pairs == 1),
                    (pair[0].name, pair[1].name),
                    content,
                    sizes,
                    self.options.weight,
                    self.options.weights_for([content.count], [0]),
                )
            )
        return groups

    def to_spec(self) -> dict[str, object]:
        """Return the entry as a mapping with the keys of a specification, arrays as lists."""
        spec: dict[str, object] = {"pairwise": self.kind}
        if self.attributes is not None:
            spec["attributes"] = list(self.attributes)
        return spec | self.options.to_spec()


@final
@dataclass(frozen=True, eq=False)
class DenseEntry:
    """A matrix over the cells of a few attributes.

    Parameters
    ----------
    matrix : ndarray
        Shape (queries, cells), cells row-major in the order of `attributes`.
    attributes : tuple of str
        The attributes, in the order that the user wrote.
    by : mapping of str to PredicateForm
        The sets of other attributes, within which everything is asked.
    options : Options
        The weight, weights and name.
    """

    matrix: Array
    attributes: tuple[str, ...]
    by: Mapping[str, PredicateForm]
    options: Options

    def expand(self, domain: Domain) -> list[Group]:
        """Return the one query group, its columns brought into domain order.

        Parameters
        ----------
        domain : Domain
            The attributes.

        Raises
        ------
        EntryError
            If an attribute is unknown, or the matrix does not have a column for each cell.
        """
        attributes = [
            find_attribute(domain, name, ("attributes", position))
            for position, name in enumerate(self.attributes)
        ]
        sizes = tuple(attribute.size for attribute in attributes)
        rows, columns = self.matrix.shape
        if columns != math.prod(sizes):
            raise EntryError.at(
                ("dense",),
                f"a matrix of {columns} columns",
                f"{math.prod(sizes)}, one for each cell of {', '.join(self.attributes)}",
            )
        order = domain_order(domain, self.attributes)
        matrix = self.matrix.reshape(rows, *sizes).transpose(0, *(position + 1 for position in order))
        ordered = [attributes[position] for position in order]
        content = MatrixRows(matrix.reshape(rows, columns))
        return [merged_group(domain, ordered, content, "dense", self.by, self.options, ([rows], [0]))]

    def to_spec(self) -> dict[str, object]:
        """Return the entry as a mapping with the keys of a specification, arrays as lists."""
        spec: dict[str, object] = {"dense": self.matrix.tolist(), "attributes": list(self.attributes)}
        return spec | by_spec(self.by) | self.options.to_spec()
