"""Entries of products of predicate sets, of comparisons of two attributes, and of matrices over a few."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import final

from matrixdp.domain import Attribute, Domain
from matrixdp.errors import EntryError, TooLargeError, within
from matrixdp.forms import ListOf, OneOf, key, record
from matrixdp.language.arrays import ArrayForm
from matrixdp.language.entry import (
    MAX_GROUPS,
    NAMES,
    PREDICATES_BY_ATTRIBUTE,
    AttributeSets,
    Entry,
    entry_form,
    find_attribute,
    narrowed,
)
from matrixdp.language.predicates import PredicateForm
from matrixdp.queries.arrays import Array
from matrixdp.queries.crossed import Crossed
from matrixdp.queries.groups import (
    AbsoluteDifferences,
    DenseGroup,
    Group,
    MatrixRows,
    ProductGroup,
    Rows,
    Sums,
)

__all__ = ["DenseEntry", "MergedEntry", "PairwiseEntry", "ProductEntry"]


@final
@entry_form
@record
class ProductEntry(Entry):
    """One product of predicate sets; attributes that are not named are totals."""

    predicates: Mapping[str, PredicateForm] = key(PREDICATES_BY_ATTRIBUTE, name="product")

    def groups(self, domain: Domain) -> list[Group]:
        sets = AttributeSets.on(domain, self.predicates, "product")
        return [
            ProductGroup(
                self.group_name(sets.attributes, sets.texts, single=True),
                tuple(a.name for a in sets.attributes),
                tuple(sets.predicates),
                tuple(a.size for a in sets.attributes),
                self.weight,
                self.weights_for(sets.queries),
            )
        ]


@final
@entry_form
@record
class PairwiseEntry(Entry):
    """A comparison of the codes of every two numeric attributes."""

    kind: str = key(OneOf(("affine", "abs")), name="pairwise")
    attributes: tuple[str, ...] | None = key(NAMES, default=None)

    def groups(self, domain: Domain) -> list[Group]:
        chosen = narrowed(domain, self.attributes)
        if self.attributes is None:
            chosen = tuple(one for one in chosen if one.numeric and one.null_code is None)
        for position, name in enumerate(self.attributes or ()):
            if not domain[name].numeric:
                found = f"{name!r}, which lists categories"
                expected = "a numeric attribute: one given by min and max, edges, bins, dates or a size"
                raise EntryError.at(("attributes", position), found, expected)
            if domain[name].null_code is not None:
                found = f"{name!r}, which has the value null"
                expected = "an attribute without `null`, which has no place in an order"
                raise EntryError.at(("attributes", position), found, expected)
        if len(chosen) < 2:
            path = ("pairwise" if self.attributes is None else "attributes",)
            raise EntryError.at(path, f"{len(chosen)} numeric attributes", "at least 2")
        pairs = math.comb(len(chosen), 2)
        if pairs > MAX_GROUPS:
            expected = f"at most {MAX_GROUPS}; narrow them with `attributes`"
            raise TooLargeError.at(("pairwise",), f"{pairs} pairs", expected)
        self.check_single(pairs)
        return [self._group(pair, pairs == 1) for pair in combinations(chosen, 2)]

    def _group(self, pair: tuple[Attribute, ...], single: bool) -> DenseGroup:
        sizes = (pair[0].size, pair[1].size)
        content = Sums(sizes) if self.kind == "affine" else AbsoluteDifferences(sizes)
        return DenseGroup(
            self.group_name(pair, [self.kind], single),
            (pair[0].name, pair[1].name),
            content,
            sizes,
            self.weight,
            self.weights_for(content.count),
        )


@record
class MergedEntry(Entry):
    """An entry of explicit queries over merged attributes, asked within predicates of others."""

    by: Mapping[str, PredicateForm] = key(PREDICATES_BY_ATTRIBUTE, default={})

    def merged_group(
        self,
        domain: Domain,
        attributes: Sequence[Attribute],
        content: Rows,
        text: str,
    ) -> DenseGroup:
        """Return the group of explicit queries, within the predicates of ``by``.

        Parameters
        ----------
        domain : Domain
        attributes : sequence of Attribute
            The merged attributes, in domain order.
        content : Rows
            The queries over their cells.
        text : str
            What the queries are called where the user gave no name.
        """
        merged = {attribute.name for attribute in attributes}
        others = AttributeSets.on(domain, self.by, "by")
        for name in self.by:
            if name in merged:
                found = "an attribute of the queries themselves"
                raise EntryError.at(("by", name), found, "other attributes")
        together = sorted([*attributes, *others.attributes], key=lambda a: domain.index(a.name))
        sizes = tuple(attribute.size for attribute in together)
        weights = self.weights_for(content.count * others.queries)
        if self.by:
            places = tuple(place for place, attribute in enumerate(together) if attribute.name in merged)
            content = Crossed(content, places, tuple(others.predicates), sizes)
        return DenseGroup(
            self.group_name(together, [text, *others.texts], single=True),
            tuple(attribute.name for attribute in together),
            content,
            sizes,
            self.weight,
            weights,
        )


@final
@entry_form
@record
class DenseEntry(MergedEntry):
    """A matrix over the cells of a few attributes, row-major."""

    matrix: Array = key(ArrayForm("a finite matrix with a row for each query", axes=2), name="dense")
    attributes: tuple[str, ...] = key(
        ListOf(
            NAMES.item,
            "a list of at least one attribute",
            least=1,
            once=NAMES.once,
        ),
        missing="the list of attributes whose cells the matrix is over",
    )

    def groups(self, domain: Domain) -> list[Group]:
        attributes = []
        for position, name in enumerate(self.attributes):
            with within("attributes", position):
                attributes.append(find_attribute(domain, name))
        sizes = tuple(attribute.size for attribute in attributes)
        rows, columns = self.matrix.shape
        if columns != math.prod(sizes):
            expected = f"{math.prod(sizes)}, one for each cell of {', '.join(self.attributes)}"
            raise EntryError.at(("dense",), f"a matrix of {columns} columns", expected)
        order = sorted(range(len(sizes)), key=lambda place: domain.index(self.attributes[place]))
        matrix = self.matrix.reshape(rows, *sizes).transpose(0, *(position + 1 for position in order))
        content = MatrixRows(matrix.reshape(rows, columns))
        return [self.merged_group(domain, [attributes[place] for place in order], content, "dense")]
