"""OPT_plus: a union of products, each for some of the query groups."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence

import numpy as np
import scipy  # its parts are read when they are first used
from numpy.typing import NDArray

from matrixdp.errors import NumericalError, TooLargeError
from matrixdp.noise import Noise
from matrixdp.plan import Direct, Local, Part, Plan, Union
from matrixdp.queries import Workload
from matrixdp.selection.compose.grouping import (
    Members,
    group_products,
    group_subset,
    groups_apart,
    two_groups,
)
from matrixdp.selection.compose.product import AS_MANY_AS_PAY, Product, solve_kron
from matrixdp.selection.compose.whole_table import measured_product
from matrixdp.selection.gram import DEFAULT_GAP
from matrixdp.selection.gram.factor import Factor
from matrixdp.selection.gram.opt_0 import Rows
from matrixdp.selection.problem.kron_sum import KronSum
from matrixdp.selection.selection import Certificate

__all__ = [
    "CLUSTERS",
    "combined_plan",
    "first_union_loss",
    "least_squares_plan",
    "select_union",
]

Array = NDArray[np.float64]
Progress = Callable[[str, float | None], None]

_TOO_LARGE = "opt-plus: a group asks about a table of too many cells. Use residual or opt-m"

#: Steps of the search for the shares of the cost, and where each is dear what all may cost but for the least.
_SHARE_STEPS, _LEAST_STEPS, _SHARE_WORK = 60, 4, 3e10
#: A product that is measured so much less precisely than another would add rounding errors alone.
_LEAST_PRECISION = 1e-8
#: Attributes of more values that nothing tells apart are measured whole: totals have products of their own.
_MOST_SYMMETRIC = 500
#: Up to so many groups are also measured by a product each, and so many marginals under Gaussian noise.
_MOST_APART, _MOST_MARGINALS = 8, 1_000
#: Least squares of which one evaluation takes more multiplications than this leave their place to averages.
_MOST_WORK = 1e10
_SCOPE = "no bound for a union of products"
#: Sets of groups that are merged while it pays; each group with a product of its own, answered from it, as in
#: the journal version; two sets with equal shares of the cost, as in the conference version.
CLUSTERS = ("merged", "products", "two")


def select_union(
    workload: Workload,
    noise: Noise,
    *,
    gap: float = DEFAULT_GAP,
    seed: int = 0,
    progress: Progress | None = None,
    rows: Rows = AS_MANY_AS_PAY,
    clusters: str = "merged",
    memory: dict[Hashable, Product] | None = None,
) -> tuple[Plan, Certificate]:
    """Select a union of products.

    Groups that ask about the same attributes share a product; sets of groups are merged while the total
    error falls. The products are combined by least squares, and the privacy cost is split for that. With
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
    candidates = _candidates(workload, noise, products.loss, clusters)

    def measured(sets: Sequence[Members], effort: str = "full") -> tuple[Plan, Certificate]:
        losses = [products.loss(members, effort=effort) for members in sets]
        parts = products.parts(
            sets, [1.0 / len(sets)] * len(sets) if clusters == "two" else noise.best_shares(losses)
        )
        if len(parts) > 1 and clusters == "merged":
            return combined_plan(workload, parts, noise)
        if len(parts) > 1:
            return _as_published(workload, parts, noise, clusters)
        plan = Direct(workload.domain, tuple(parts), noise)
        return plan, Certificate(noise.variance_factor * losses[0], None, _SCOPE)

    if noise.norm == 1 and len(candidates) > 1:
        # full searches take long: what is found fast decides for which sets they are made
        candidates = [min(candidates, key=lambda sets: measured(sets, "fast")[1].loss)]
    return min((measured(sets) for sets in candidates), key=lambda choice: choice[1].loss)


class _Products:
    """The best products that are found for sets of groups, each distinct problem solved once."""

    def __init__(
        self,
        workload: Workload,
        noise: Noise,
        gap: float = 1e-4,
        seed: int = 0,
        rows: Rows = AS_MANY_AS_PAY,
        progress: Progress | None = None,
        memory: dict[Hashable, Product] | None = None,
    ) -> None:
        self._workload, self._noise, self._progress = workload, noise, progress
        self._gap, self._seed, self._rows = gap, seed, rows
        self._contents = {} if memory is None else memory
        self._solved: dict[Members, tuple[tuple[str, ...], Product]] = {}

    def loss(self, members: Members, worth: float = math.inf, effort: str = "fast") -> float:
        """Return the loss of the product for some groups; infinite where it does not fit."""
        terms = KronSum.of(self._workload.domain, group_subset(self._workload, members))
        content = (terms.sizes, frozenset((keys, weight) for weight, keys in terms.products), effort)
        key = content, self._gap, self._seed, self._rows
        known = None if terms.rows else self._contents.get(key)
        if known is None:
            try:
                known = solve_kron(
                    terms,
                    self._noise,
                    gap=self._gap,
                    seed=self._seed,
                    effort=effort,
                    start=_starts(terms.attributes, members, self._solved) if effort == "fast" else None,
                    worth=worth,
                    most_symmetric=_MOST_SYMMETRIC,
                    rows=self._rows,
                )
            except TooLargeError:
                return math.inf
            if not terms.rows:
                self._contents[key] = known
            if self._progress is not None:
                self._progress(f"grouping products ({len(self._solved) + 1} tried)", None)
        self._solved[members] = terms.attributes, known
        return known.loss

    def known(self, members: Members) -> float | None:
        """Return the loss that was last found for some groups, if any was."""
        return self._solved[members][1].loss if members in self._solved else None

    def parts(self, sets: Sequence[Members], shares: Sequence[float]) -> list[Part]:
        """Return the parts that measure the products of sets that were solved, at shares of the cost."""
        found = []
        for members, share in zip(sets, shares, strict=True):
            attributes, product = self._solved[members]
            blocks = measured_product(self._workload.domain, attributes, product, self._noise)
            found.append(Part(attributes, blocks, 1.0).at_cost(self._noise, share))
        return found


def _candidates(
    workload: Workload, noise: Noise, solve: Callable[[Members, float], float], clusters: str
) -> list[list[Members]]:
    """Return the sets of groups that products are made for, by their places; the best of them is taken."""
    apart = groups_apart(workload)
    if clusters == "merged":
        sets, total = group_products(workload, noise, solve)
    else:
        sets = apart if clusters == "products" else two_groups(workload, noise, solve)
        total = noise.total_loss([solve(members, math.inf) for members in sets])
    if not math.isfinite(total):
        raise TooLargeError(_TOO_LARGE)
    candidates: list[list[Members]] = [list(sets)]
    if clusters == "merged":
        # what merging gains by itself least squares may gain without it
        fewer = [group_products(workload, noise, solve, merge=False)[0]] if noise.norm == 1 else []
        plain = noise.norm == 2 and KronSum.of(workload.domain, workload.groups).plain()
        fewer += [apart] if len(apart) <= (_MOST_MARGINALS if plain else _MOST_APART) else []
        for other in fewer:
            if all(sorted(other) != sorted(known) for known in candidates):
                candidates.append(other)
    return candidates


def _as_published(
    workload: Workload, parts: Sequence[Part], noise: Noise, clusters: str
) -> tuple[Plan, Certificate]:
    """Return the plan of products whose shares of the cost stay as they are."""
    plan = (Union if clusters == "two" else Local)(workload.domain, tuple(parts), noise)
    return plan, Certificate(_loss(workload, plan), None, _SCOPE)


def _starts(
    attributes: Sequence[str], members: Members, solved: Mapping[Members, tuple[tuple[str, ...], Product]]
) -> list[Factor | None]:
    """Return for each attribute the strategy with the most rows of those for some of the same groups."""
    found: dict[str, Factor] = {}
    for own, (names, product) in solved.items():
        if set(own) < set(members):
            for name, factor in zip(names, product.factors, strict=True):
                if name not in found or factor.height > found[name].height:
                    found[name] = factor
    return [found.get(name) for name in attributes]


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
    sets, total = group_products(workload, noise, products.loss, merge=False)
    if not math.isfinite(total):
        raise TooLargeError(_TOO_LARGE)
    whole = products.known(tuple(range(len(workload))))
    losses = [products.loss(members) for members in sets]
    loss = noise.variance_factor * total
    if len(sets) > 1:
        loss = combined_plan(workload, products.parts(sets, noise.best_shares(losses)), noise)[1].loss
    return loss, None if whole is None else noise.variance_factor * whole


def combined_plan(workload: Workload, parts: Sequence[Part], noise: Noise) -> tuple[Plan, Certificate]:
    """Return the plan of several products with its loss: their least squares, with the best shares for it.

    Where that is too large, every query is the average of the estimates of those parts that determine it.

    Examples
    --------
    >>> import matrixdp as mdp
    >>> from matrixdp.exact import IdentityMatrix
    >>> from matrixdp.noise import GAUSSIAN
    >>> from matrixdp.plan import Block
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
    if analysed.work > _MOST_WORK:
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

    first = np.log([noise.share(part, part.variance) for part in parts])
    least = math.log(_LEAST_PRECISION) / power
    found = scipy.optimize.minimize(
        objective,
        first,
        jac=True,
        method="L-BFGS-B",
        bounds=[(least, 0.0)] * len(first),
        options={"maxiter": steps},
    )
    unchanged = objective(first)[0]
    if found.fun >= unchanged:
        return start, math.exp(unchanged)
    shares = scipy.special.softmax(found.x)
    best = [part.at_cost(noise, float(share)) for part, share in zip(parts, shares, strict=True)]
    return Union(workload.domain, tuple(best), noise), math.exp(found.fun)
