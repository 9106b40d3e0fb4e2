"""OPT_plus: a union of products, each for some of the query groups.

Groups that ask about the same attributes share a product, sets of groups are merged while it pays, and the
products are combined by least squares with the best shares of the cost. Under Laplace noise a few explicit
queries may have one strategy of their whole table instead of a product; such unions are averaged.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import scipy  # its parts are read when they are first used

from matrixdp.errors import NumericalError, TooLargeError
from matrixdp.exact.linear import Array
from matrixdp.exact.resources import most_cells
from matrixdp.noise import Noise
from matrixdp.plans import Direct, Local, Part, Plan, Union
from matrixdp.queries import Workload
from matrixdp.selection.compose.product import Product, solve_kron
from matrixdp.selection.compose.rounding import measured_matrix, product_blocks
from matrixdp.selection.descent import Effort, descend
from matrixdp.selection.gram.factor import Factor
from matrixdp.selection.gram.opt_0 import AS_MANY_AS_PAY, Rows, solve_axis
from matrixdp.selection.limits import GAP, LIMITS
from matrixdp.selection.problem.kron_sum import KronSum
from matrixdp.selection.registry import Progress, silent
from matrixdp.selection.selection import Certificate

#: Places of query groups, ascending.
Members = tuple[int, ...]

_TOO_LARGE = "opt-plus: a group asks about a table of too many cells. Use residual or opt-m"

_SCOPE = "no bound for a union of products"
#: Sets of groups that are merged while it pays; each group with a product of its own, answered from it, as in
#: the journal version; two sets with equal shares of the cost, as in the conference version.
CLUSTERS = ("merged", "products", "two")
#: A product that is measured so much less precisely than another would add rounding errors alone.
_LEAST_PRECISION = 1e-8
#: Attributes of more values that nothing tells apart are measured whole.
_MOST_SYMMETRIC = 500
#: Groups that are also measured by a product each, and marginals under Gaussian noise.
_MOST_APART = 8
_MOST_MARGINALS = 1_000
#: Of more sets, sets are only folded into others that hold their attributes.
_MOST_MERGED_SETS = 24
#: Steps of the search for shares, and the least where each takes long; multiplications of all, and of one
#: evaluation, past which averages take the place of least squares.
_SHARE_STEPS = 60
_LEAST_STEPS = 4
_SHARE_WORK = 3e10
_MOST_UNION_WORK = 1e10


def select_union(
    workload: Workload,
    noise: Noise,
    *,
    gap: float = GAP,
    seed: int = 0,
    progress: Progress = silent,
    rows: Rows = AS_MANY_AS_PAY,
    clusters: str = "merged",
    memory: dict[Hashable, Product] | None = None,
) -> tuple[Plan, Certificate]:
    """Select a union of products.

    Groups that ask about the same attributes share a product; sets of groups are merged while the total
    error falls. The products are combined by least squares, and the privacy cost is split for that. Under
    Laplace noise the same is tried with a strategy of the whole table for a few explicit queries. With
    ``clusters`` "products" every group has a product of its own, the cost is split for answers from those
    products alone, and answers that several determine are averaged, which can only lower the error.
    With "two" there are two sets with equal shares of the cost, and least squares. ``memory`` keeps the
    products that were found; see `first_union_loss`.

    References
    ----------
    McKenna et al. 2018, section 6.2 (OPT_plus); the journal version, definition 19 ("products").

    Examples
    --------
    >>> import matrixdp as mdp
    >>> from matrixdp.noise import LAPLACE
    >>> domain = mdp.Domain({"a": 2, "b": 5, "c": 50, "d": 100})
    >>> _, certificate = select_union(mdp.Workload(domain, mdp.marginals(2)), LAPLACE)
    >>> certificate.loss / 2 < 85_070  # McKenna et al., Table 3
    True
    """
    products = _Products(workload, noise, max(gap, 1e-4), seed, rows, progress, memory)
    if clusters == "merged":
        searches = products, *products.with_tables(mixed=True)
        candidates = [(search, sets) for search in searches for sets in _merged_candidates(search)]
    else:
        candidates = [(products, products.apart() if clusters == "products" else _two_sets(products))]
        products.total(candidates[0][1])

    def measured(products: _Products, sets: Sequence[Members]) -> tuple[Plan, Certificate]:
        losses = [products.loss(members, effort="full") for members in sets]
        even = [1.0 / len(sets)] * len(sets)
        parts = products.parts(sets, even if clusters == "two" else noise.best_shares(losses), "full")
        if len(parts) == 1:
            plan = Direct(workload.domain, tuple(parts), noise)
            return plan, Certificate(noise.variance_factor * losses[0], None, _SCOPE)
        if clusters == "merged":
            return combined_plan(workload, parts, noise)
        published = (Union if clusters == "two" else Local)(workload.domain, tuple(parts), noise)
        return published, Certificate(_loss(workload, published), None, _SCOPE)

    if noise.norm == 1 and len(candidates) > 1:
        # full searches take long: what is found fast decides for which sets they are made
        candidates = [min(candidates, key=lambda candidate: candidate[0].fast_loss(candidate[1]))]
    return min((measured(*candidate) for candidate in candidates), key=lambda choice: choice[1].loss)


@dataclass(frozen=True, eq=False)
class _Strategy:
    """The product that is measured for a set of groups, of strategies of an attribute or a whole table."""

    loss: float
    factors: tuple[tuple[tuple[str, ...], Factor], ...]


class _Products:
    """The best products that are found for sets of groups, each distinct problem solved once.

    ``memory`` keeps them by what is asked, for other searches on the same workload.
    """

    #: Whether a few explicit queries may have one strategy of their table instead, and products with them.
    tables = mixed = False

    def __init__(
        self,
        workload: Workload,
        noise: Noise,
        gap: float = 1e-4,
        seed: int = 0,
        rows: Rows = AS_MANY_AS_PAY,
        progress: Progress = silent,
        memory: dict[Hashable, Product] | None = None,
    ) -> None:
        self.workload, self.noise = workload, noise
        self._gap, self._seed, self._rows, self._progress = gap, seed, rows, progress
        self._memory = {} if memory is None else memory
        self._products: dict[tuple[Members, str], Product | None] = {}
        self._solved: dict[tuple[Members, str], _Strategy | None] = {}

    def with_tables(self, mixed: bool) -> list[_Products]:
        """Return the same where a few explicit queries may have one strategy of their table instead.

        With ``mixed`` other queries on its attributes may share it. Nothing where no group asks such queries:
        under Gaussian noise the decomposition has them.
        """
        found = copy(self)
        found.tables, found.mixed, found._solved = self.noise.norm == 1, mixed, {}
        alone = [(place,) for place in range(len(self.workload))]
        return [found] if any(found._has_table(self.terms(own), own) for own in alone) else []

    def loss(self, members: Members, worth: float = math.inf, effort: str = "fast") -> float:
        """Return the loss of the product for some groups; infinite where it does not fit.

        One above ``worth`` is of no use.
        """
        if (members, effort) not in self._solved:
            self._solved[members, effort] = self._strategy(members, worth, effort)
        found = self._solved[members, effort]
        return math.inf if found is None else found.loss

    def terms(self, members: Members) -> KronSum:
        """Return the queries of some groups as a sum of Kronecker products."""
        return KronSum.of(self.workload.domain, [self.workload.groups[place] for place in members])

    def _strategy(self, members: Members, worth: float, effort: str) -> _Strategy | None:
        terms, found = self.terms(members), []
        if (members, effort) not in self._products:
            self._products[members, effort] = self._product(terms, members, worth, effort)
        product = self._products[members, effort]
        if product is not None:
            alone = [(name,) for name in terms.attributes]
            found.append(_Strategy(product.loss, tuple(zip(alone, product.factors, strict=True))))
        if self._has_table(terms, members):
            table = solve_axis(
                terms.dense(terms.attributes),
                self.noise,
                gap=self._gap,
                seed=self._seed,
                rows=self._rows,
                effort=effort,
            )
            found.append(_Strategy(table.loss, ((terms.attributes, table),)))
        return min(found, key=lambda one: one.loss, default=None)

    def _has_table(self, terms: KronSum, members: Members) -> bool:
        """Return whether groups are few queries, some of them explicit on all attributes of a table.

        One strategy of the table for all groups together is another mechanism's.
        """
        if not self.tables or (terms.terms and not self.mixed) or len(members) == len(self.workload):
            return False
        queries = sum(self.workload.groups[place].queries for place in members)
        cells, most = math.prod(terms.sizes), min(LIMITS.axis_cells, most_cells())
        few = queries <= LIMITS.max_searched_queries and cells <= most
        return few and any(len(rows.axes) == len(terms.sizes) > 1 for rows in terms.rows)

    def _product(self, terms: KronSum, members: Members, worth: float, effort: str) -> Product | None:
        content = (terms.sizes, frozenset((keys, weight) for weight, keys in terms.products), effort)
        key = content, self._gap, self._seed, self._rows
        if not terms.rows and key in self._memory:
            return self._memory[key]
        try:
            found = solve_kron(
                terms,
                self.noise,
                gap=self._gap,
                seed=self._seed,
                effort=effort,
                start=self._starts(terms.attributes, members) if effort == "fast" else None,
                worth=worth,
                most_symmetric=_MOST_SYMMETRIC,
                rows=self._rows,
            )
        except TooLargeError:
            return None
        if not terms.rows:
            self._memory[key] = found
        self._progress(f"grouping products ({len(self._solved) + 1} tried)", None)
        return found

    def _starts(self, attributes: Sequence[str], members: Members) -> list[Factor | None]:
        """Return for each attribute the strategy with the most rows of those for some of the groups."""
        found: dict[str, Factor] = {}
        for (own, _), strategy in self._solved.items():
            if strategy is not None and set(own) < set(members):
                for (name, *others), factor in strategy.factors:
                    if not others and (name not in found or factor.height > found[name].height):
                        found[name] = factor
        return [found.get(name) for name in attributes]

    def total(self, sets: Sequence[Members]) -> float:
        """Return the loss of a product for each set with the best shares, each answered from its own.

        Raises TooLargeError where one does not fit.
        """
        total = self.noise.total_loss([self.loss(members) for members in sets])
        if not math.isfinite(total):
            raise TooLargeError(_TOO_LARGE)
        return total

    def fast_loss(self, sets: Sequence[Members]) -> float:
        """Return the loss of a union, searched fast; with tables each set is answered from its own."""
        apart, losses = self.total(sets), [self.loss(members) for members in sets]
        found = [self._solved[members, "fast"] for members in sets]
        tables = any(len(names) > 1 for one in found if one is not None for names, _ in one.factors)
        if tables or len(sets) == 1:
            return self.noise.variance_factor * apart
        shares = self.noise.best_shares(losses)
        return combined_plan(self.workload, self.parts(sets, shares, "fast"), self.noise)[1].loss

    def parts(self, sets: Sequence[Members], shares: Sequence[float], effort: str) -> list[Part]:
        """Return the parts that measure the products of sets that were solved, at shares of the cost."""
        found = []
        for members, share in zip(sets, shares, strict=True):
            strategy = self._solved[members, effort]
            assert strategy is not None
            matrices = [(names, measured_matrix(factor, self.noise)) for names, factor in strategy.factors]
            attributes = tuple([name for names, _ in matrices for name in names])
            blocks = product_blocks(self.workload.domain, matrices)
            found.append(Part(attributes, blocks, 1.0).at_cost(self.noise, share))
        return found

    def apart(self) -> list[Members]:
        """Return every group alone; one of zeros beside the first that asks about its attributes, or any."""
        names = [set(self.terms((place,)).attributes) for place in range(len(self.workload))]
        asking = [place for place, group in enumerate(self.workload) if group.asks]
        homes = {place: [place] for place in asking}
        for place, own in enumerate(names):
            if place not in homes:
                homes[next((one for one in asking if own <= names[one]), asking[0])].append(place)
        return [tuple(places) for places in homes.values()]

    def by_attributes(self) -> dict[tuple[str, ...], Members]:
        """Return the places of the groups that ask about the same attributes."""
        asked: dict[tuple[str, ...], Members] = {}
        for members in self.apart():
            names = self.terms(members).attributes
            asked[names] = (*asked.get(names, ()), *members)
        return asked


def first_union_loss(
    workload: Workload, noise: Noise, memory: dict[Hashable, Product] | None = None
) -> tuple[float, float | None]:
    """Return the loss of a union of products before sets of groups are merged two by two, searched fast.

    And that of one product for everything, where it was tried. Raises TooLargeError if no union fits.

    Examples
    --------
    >>> import matrixdp as mdp
    >>> from matrixdp.noise import LAPLACE
    >>> workload = mdp.Workload(mdp.Domain({"a": 20, "b": 30}), mdp.marginals(1))
    >>> [round(loss, 1) for loss in first_union_loss(workload, LAPLACE)]
    [386.6, 2400.0]
    """
    products = _Products(workload, noise, memory=memory)
    sets, _ = _sets(products, merge=False)
    loss = products.fast_loss(sets)
    for tables in products.with_tables(mixed=False):
        loss = min(loss, tables.fast_loss(_sets(tables, merge=False)[0]))
    whole = products.loss(_everything(products)) if len(sets) <= _MOST_MERGED_SETS else math.inf
    return loss, noise.variance_factor * whole if math.isfinite(whole) else None


def _everything(products: _Products) -> Members:
    return tuple(range(len(products.workload)))


def _merged_candidates(products: _Products) -> list[list[Members]]:
    """Return the sets of groups that products are made for; the best of them is taken."""
    noise, apart = products.noise, products.apart()
    found = [_sets(products, merge=True)[0]]
    if noise.norm == 1:
        # what merging gains by itself least squares may gain without it
        found.append(_sets(products, merge=False)[0])
    plain = noise.norm == 2 and products.terms(_everything(products)).plain()
    if len(apart) <= (_MOST_MARGINALS if plain else _MOST_APART):
        found.append(apart)
    return list({tuple(sorted(sets)): sets for sets in reversed(found)}.values())[::-1]


def _sets(products: _Products, merge: bool) -> tuple[list[Members], float]:
    """Return sets of groups, and the total loss of solving each by one product.

    Groups go by their attributes, or into a set that has those and more, or all into one; with ``merge`` also
    two sets into one while that lowers the loss, which takes most of the time.
    """
    asked = products.by_attributes()
    starts = [list(asked.values()), _folded(asked)]
    few = [sets for sets in starts if len(sets) <= _MOST_MERGED_SETS]
    total, found = min(((_total(products, sets), sets) for sets in starts), key=lambda item: item[0])
    if len(found) <= _MOST_MERGED_SETS:
        others = [_merged(products, sets) for sets in few] if merge else []
        for sets in (*others, [_everything(products)]):
            less = _total(products, sets)
            if less < total:
                total, found = less, sets
    products.total(found)
    return found, total


def _total(products: _Products, sets: Sequence[Members]) -> float:
    return products.noise.total_loss([products.loss(members) for members in sets])


def _two_sets(products: _Products) -> list[Members]:
    """Return two sets of groups: those whose union loses least are merged until two are left.

    Raises TooLargeError where there are too many sets of attributes to be merged two by two.
    """
    asked = products.by_attributes()
    sets = list(asked.values()) if len(asked) > 1 else products.apart()
    if len(sets) > _MOST_MERGED_SETS:
        sets = _folded(asked)
    if len(sets) > _MOST_MERGED_SETS:
        raise TooLargeError(
            f"opt-plus: {len(sets)} sets of attributes are not merged to two groups; the limit is "
            f"{_MOST_MERGED_SETS}. Use clusters=merged or products"
        )
    while len(sets) > 2:
        sets = min(_merges(products, sets, related=False), key=lambda item: item[0])[1]
    return sets


def _folded(asked: dict[tuple[str, ...], Members]) -> list[Members]:
    """Put every set of groups into one that asks about all of its attributes and more, if there is one."""
    homes: dict[tuple[str, ...], Members] = {}
    for names, places in sorted(asked.items(), key=lambda item: -len(item[0])):
        home = next((other for other in homes if set(names) <= set(other)), names)
        homes[home] = tuple(sorted((*homes.get(home, ()), *places)))
    return list(homes.values())


def _merged(products: _Products, sets: list[Members]) -> list[Members]:
    """Merge the two sets whose union gains most, until none does."""
    while len(sets) > 1:
        best = min(_merges(products, sets, related=True), key=lambda item: item[0], default=None)
        if best is None or best[0] >= _total(products, sets) * (1 - 1e-9):
            break
        sets = best[1]
    return sets


def _merges(products: _Products, sets: list[Members], related: bool) -> Iterator[tuple[float, list[Members]]]:
    """Yield the total loss with two sets merged, and the sets.

    With ``related`` they share an attribute, since a product of others has all cells of both, and a product
    is of use only where its loss is below that of both apart.
    """
    names = [set(products.terms(members).attributes) for members in sets]
    for j, i in sorted(combinations(range(len(sets)), 2), key=lambda pair: pair[1]):
        if related and names[i] and names[j] and not names[i] & names[j]:
            continue
        union = tuple(sorted((*sets[i], *sets[j])))
        rest = [members for k, members in enumerate(sets) if k not in (i, j)]
        products.loss(union, _total(products, [sets[i], sets[j]]) if related else math.inf)
        yield _total(products, [*rest, union]), [*rest, union]


def combined_plan(workload: Workload, parts: Sequence[Part], noise: Noise) -> tuple[Plan, Certificate]:
    """Return the plan of several products with its loss: their least squares, with the best shares for it.

    Where that is too large, every query is the average of the estimates of those parts that determine it.

    Examples
    --------
    >>> import matrixdp as mdp
    >>> from matrixdp.exact import IdentityMatrix
    >>> from matrixdp.noise import GAUSSIAN
    >>> from matrixdp.plans import Block
    >>> workload = mdp.Workload(mdp.Domain({"a": 3, "b": 5}), mdp.marginals(1))
    >>> parts = [Part((n,), (Block((n,), IdentityMatrix(k)),), 2.0) for n, k in (("a", 3), ("b", 5))]
    >>> plan, certificate = combined_plan(workload, parts, GAUSSIAN)
    >>> plan.kind, certificate.loss < 3 * 2 + 5 * 2
    ('union', True)
    """
    try:
        plan, loss = least_squares_plan(workload, parts, noise)
    except (NumericalError, TooLargeError):
        found = Local(workload.domain, tuple(parts), noise)
        scope = f"{_SCOPE}, and averages of their estimates instead of least squares"
        return found, Certificate(_loss(workload, found), None, scope)
    return plan, Certificate(loss, None, _SCOPE)


def _loss(workload: Workload, plan: Plan) -> float:
    return math.fsum(plan.analysis.group(group).weighted for group in workload)


def least_squares_plan(workload: Workload, parts: Sequence[Part], noise: Noise) -> tuple[Union, float]:
    """Return the least squares of several products at the best shares of the cost, and its loss.

    Under Gaussian noise the loss is convex in the shares. Raises TooLargeError as `Union` does, and where its
    evaluation takes too long.
    """
    start = Union(workload.domain, tuple(parts), noise)
    analysed = start.analysed([part.variance for part in parts])
    if analysed.work > _MOST_UNION_WORK:
        raise TooLargeError(f"least squares of {len(parts)} products would take too long to be optimized")
    evaluate = analysed.loss(workload)
    steps = int(np.clip(_SHARE_WORK / max(analysed.work, 1.0), _LEAST_STEPS, _SHARE_STEPS))
    alone = np.array([1.0 / noise.variance(part) for part in parts])
    power = 2.0 / noise.norm

    def objective(exponents: Array) -> tuple[float, Array]:
        shares = scipy.special.softmax(exponents)
        loss, slopes = evaluate(alone * shares**power)
        # d loss / d log(share), then less its mean: shares add up to 1
        own = slopes * alone * power * shares**power
        return float(np.log(loss)), (own - shares * own.sum()) / loss

    least = math.log(_LEAST_PRECISION) / power
    # where a product counts for all but nothing, least squares would be all rounding
    first = np.maximum(np.log([noise.share(part, part.variance) for part in parts]), least)
    found = descend(objective, first, Effort(steps, 2e-9, 1e-5, memory=10), (least, 0.0))
    exponents = min((found, first), key=lambda one: objective(one)[0])
    shares = scipy.special.softmax(exponents)
    best = [part.at_cost(noise, float(share)) for part, share in zip(parts, shares, strict=True)]
    return Union(workload.domain, tuple(best), noise), math.exp(objective(exponents)[0])
