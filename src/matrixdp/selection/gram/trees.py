"""Precisions of the nodes of a tree of values, jointly for several classes of queries, and their lower bound.

A class asks for the total of each node v with a weight w_v. What it is given at v is a share of the privacy
cost, and the shares of all classes on a path from the root to a value sum to at most 1. With precisions theta
the error is the sum of w_v var_v, found by two passes over the tree, and g_v = -dE / dtheta_v by two more.

Steps. The estimator that is best at theta_0 stays unbiased at any theta, so

    E(theta) <= sum of h_v / theta_v,    h_v = theta_0v^2 g_v,    with equality at theta_0.

The right side has its least value over all shares in closed form: with precisions that grow as the k-th power
of shares (k = 1 for Gaussian, 2 for Laplace noise) and r_v the sum over classes of (loss h_v)^(1/(k+1)),

    H_v^(1/(k+1)) = r_v + (sum of H_u over the children u)^(1/(k+1)),

and of what a node gets, each of the two terms takes its part. So no step can fail, and none has a length.

Bound. With P = diag(p) and D = P^(1/2) every Gaussian strategy has an error of at least the square of
tr (D V D)^(1/2). If the sum of a_j x / (x + t_j) is at most sqrt(x), with a_j, t_j > 0, the trace is at least
the sum of a_j E_j with E_j = tr V (V + t_j P^-1)^-1: the error of a tree with precisions w_v, and t_j / p_l
more at its leaves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, final

import numpy as np
import scipy  # its parts are read when they are first used
from numpy.typing import NDArray

from matrixdp.exact.linear import Array
from matrixdp.selection.limits import LIMITS

if TYPE_CHECKING:
    from matrixdp.selection.gram.beside import Beside

Places = NDArray[np.int64]
#: By level, from the root: of several classes at once, with shape (classes, nodes).
Levels = list[Array]

#: Nodes times classes that are worked on at once: they fit a cache.
_ENTRIES = 1 << 17
#: What families of areas have of the cost at first.
_BESIDE = 0.3
#: The least share of a node that areas consist of, of the largest: with less they leave few digits.
_LEAST_BELOW = 1e-5
#: Terms of the rational function: below the square root by less than 3e-5 of it over the widest range.
_TERMS = 24
#: The widest range of eigenvalues, as a power of 2: smaller ones may lack more.
WIDEST = 50
#: Points at which the function is compared with the square root.
_POINTS = 20_001
#: By how much a bound is lowered, relative to it, for the rounding of its passes (about 1e-13).
ROUNDING = 1e-10


@final
@dataclass(frozen=True, eq=False)
class Tree:
    """Nodes by level, coarse to fine, sorted such that the children of a node stand together.

    Attributes
    ----------
    order : tuple of ndarray of int64
        For each level the caller's number of the node at each place.
    children : tuple of ndarray of int64
        For each level but the last the number of children of the node at each place.
    values : ndarray of int64, shape (n,)
        The place of each value at the last level.
    """

    order: tuple[Places, ...]
    children: tuple[Places, ...]
    values: Places

    @classmethod
    def of(cls, groups: Sequence[Places]) -> Tree:
        """Return the tree of nested levels: the node of each value at each of them, numbered from 0.

        Level 0 is the root, which is added where the first level has more nodes than one.

        Examples
        --------
        >>> tree = Tree.of([np.array([0, 1, 0, 1]), np.array([0, 1, 2, 3])])
        >>> tree.counts, tree.children[1].tolist(), tree.order[2].tolist()
        ((1, 2, 4), [2, 2], [0, 2, 1, 3])
        """
        levels = [np.zeros_like(groups[0]), *groups] if groups[0].any() else list(groups)
        place = np.zeros(1, dtype=np.int64)
        order, children = [place], []
        for coarse, fine in pairwise(levels):
            value = np.empty(int(fine.max()) + 1, dtype=np.int64)
            value[fine] = np.arange(len(fine))  # one of each node
            parent = place[coarse[value]]
            order.append(np.argsort(parent, kind="stable"))
            children.append(np.bincount(parent, minlength=len(place)))
            place = np.empty_like(order[-1])
            place[order[-1]] = np.arange(len(place))
        return cls(tuple(order), tuple(children), place[levels[-1]])

    @property
    def counts(self) -> tuple[int, ...]:
        """The number of nodes of each level."""
        return tuple(map(len, self.order))

    @cached_property
    def starts(self) -> tuple[Places, ...]:
        return tuple(np.cumsum(own) - own for own in self.children)

    def sums(self, below: Array, level: int) -> Array:
        """Return for each node of a level the sum over its children; nodes are the last axis."""
        return np.asarray(np.add.reduceat(below, self.starts[level], axis=-1))

    def repeats(self, own: Array, level: int) -> Array:
        """Return for each node of the next level what its parent has."""
        return np.repeat(own, self.children[level], axis=-1)

    def nodes(self, level: int) -> Places:
        """Return the place of the node of each value at a level."""
        nodes = np.arange(self.counts[level])
        for coarse in range(level, len(self.children)):
            nodes = np.repeat(nodes, self.children[coarse])
        return nodes[self.values]

    def placed(self, own: Array, level: int) -> Array:
        """Return what the nodes of a level have, by their places, in the order of the caller's numbers."""
        found = np.empty_like(own)
        found[..., self.order[level]] = own
        return found

    def summed(self, values: Array) -> Levels:
        """Return the sum over the values of each node, by level."""
        found = [np.bincount(self.values, values, self.counts[-1]).astype(np.float64)]
        for level in reversed(range(len(self.children))):
            found.insert(0, self.sums(found[0], level))
        return found


@final
@dataclass(frozen=True, eq=False)
class Shares:
    """What each class is given at each node.

    Attributes
    ----------
    precisions : tuple of ndarray, shape (nodes, classes)
        For each level of the tree, by the caller's numbers of nodes, the share of the privacy cost that each
        class has there. On every path the sum over nodes and classes is at most 1.
    loss : float
        The sum over classes of their losses times the errors of the tree.
    prices : ndarray, shape (n,)
        A distribution over values at which the bound of `tree_bound` is near its largest.
    beside : tuple of ndarray, shape (nodes, classes)
        The same for each family of areas beside the tree, by the nodes of their home: of every area there.
    """

    precisions: tuple[Array, ...]
    loss: float
    prices: Array
    beside: tuple[Array, ...] = ()


@dataclass(frozen=True)
class _Chunk:
    """Some of the classes that end at the same level: the deepest that asks them, or tells their areas."""

    depth: int
    classes: Places
    beside: Beside | None

    def of(self, tree: Tree, values: Sequence[Array]) -> Levels:
        """Return what these classes have, down to their last level, by the places of nodes."""
        found: Levels = []
        for own, count, order in zip(values[: self.depth + 1], tree.counts, tree.order, strict=False):
            if own.ndim == 1:
                found.append(np.broadcast_to(own[self.classes, None], (len(self.classes), count)))
            else:
                found.append(np.ascontiguousarray(own[:, self.classes].T[:, order]))
        return found


def chunks_of(
    tree: Tree, weights: Sequence[Array], count: int, beside: Beside | None = None
) -> Iterator[_Chunk]:
    """Yield all classes that are asked anywhere."""
    depths, asks = np.full(count, -1), np.zeros(count, dtype=bool)
    for level, asked in enumerate(weights):
        depths[(asked > 0).reshape(-1, count).any(axis=0)] = level
    if beside is not None:
        asks = beside.asks(count)
        depths[asks] = np.maximum(depths[asks], beside.depth)
    for depth in range(len(weights)):
        for areas in (None, beside) if asks.any() else (None,):
            classes = np.flatnonzero((depths == depth) & (asks == (areas is not None)))
            step = max(1, _ENTRIES // sum(tree.counts[: depth + 1]))
            if areas is not None and len(classes):
                step = areas.step(depth)
            for start in range(0, len(classes), step):
                yield _Chunk(depth, classes[start : start + step], areas)


def passes(tree: Tree, precisions: Levels) -> tuple[Levels, Levels, Levels, Levels]:
    """Return variances from below of nodes and sums over children, nodes' parts of these, and variances."""
    own, below, parts = [1.0 / precisions[-1]], list[Array](), list[Array]()
    for level in reversed(range(len(precisions) - 1)):
        below.insert(0, tree.sums(own[0], level))
        own.insert(0, below[0] / (1.0 + precisions[level] * below[0]))
    variances = [own[0]]
    for level, total in enumerate(below):
        spread = tree.repeats(total, level)
        part = own[level + 1] / spread
        parts.append(part)
        variances.append(part * ((spread - own[level + 1]) + part * tree.repeats(variances[-1], level)))
    return own, below, parts, variances


def error_of(weights: Levels, variances: Levels) -> Array:
    """Return the error of each class."""
    pairs = zip(weights, variances, strict=True)
    return np.asarray(sum((own * there).sum(axis=-1) for own, there in pairs))


def slopes_of(tree: Tree, precisions: Levels, weights: Levels) -> tuple[Array, Levels]:
    """Return the error of each class, and by how much it falls with each precision."""
    own, below, parts, variances = passes(tree, precisions)
    up = [weights[-1]]
    for level in reversed(range(len(below))):
        up.insert(0, weights[level] + tree.sums(parts[level] ** 2 * up[0], level))
    down = up[0]
    slopes = [own[0] ** 2 * down]
    for level, total in enumerate(below):
        part, asked = parts[level], up[level + 1]
        pull = asked * (2.0 * part * tree.repeats(variances[level], level) - own[level + 1])
        rest = down / (1.0 + precisions[level] * total) ** 2 - tree.sums(pull * part, level) / total
        down = asked * (1.0 - part) + pull / tree.repeats(total, level) + tree.repeats(rest, level)
        slopes.append(own[level + 1] ** 2 * np.maximum(down, 0.0))  # rounding
    return error_of(weights, variances), slopes


def _local(tree: Tree, weights: Levels) -> Levels:
    """Return shares of each class alone: those of regular trees, by the mean sizes in each subtree."""
    depth = len(weights) - 1
    counts, totals = [np.ones(tree.counts[depth])], [weights[depth]]
    kept: Levels = []  # of what a path has left, the part that a node takes
    for level in reversed(range(depth)):
        counts = [np.ones(tree.counts[level]), *(tree.sums(one, level) for one in counts)]
        totals = [weights[level], *(tree.sums(one, level) for one in totals)]
        asked, root, own, every = np.zeros((4, 1, 1))
        for count, total in zip(reversed(counts), reversed(totals), strict=True):
            size = counts[-1] / count
            asked = asked + total / count * size
            own = (np.sqrt(asked) - root) / size
            root, every = np.sqrt(asked), every + own
        part = np.divide(own, every, out=np.zeros_like(own), where=every > 0.0)
        kept.insert(0, np.minimum(part, 1.0 - LIMITS.least_share))
    found, left = list[Array](), np.ones((len(weights[0]), 1))
    for level, part in enumerate(kept):
        found.append(left * part)
        left = tree.repeats(left * (1.0 - part), level)
    return [*found, left]


def _root(squares: Array, power: int) -> Array:
    return np.sqrt(squares) if power == 1 else np.cbrt(squares)


def _scales(tree: Tree, pulls: Levels, power: int) -> Levels:
    """Return what pulls are multiplied by to become the shares of least loss that spend every path."""
    below = [np.zeros(tree.counts[-1])]
    for level in reversed(range(len(pulls) - 1)):
        costs = (pulls[level + 1] + below[0]) ** (power + 1)
        below.insert(0, _root(tree.sums(costs, level), power))
    found, left = list[Array](), np.ones(1)
    for level, (own, rest) in enumerate(zip(pulls, below, strict=True)):
        found.append(np.divide(left, own + rest, out=np.zeros_like(own), where=own + rest > 0.0))
        if level < len(tree.children):
            left = tree.repeats(found[-1] * rest, level)
    return found


def tree_shares(
    tree: Tree,
    weights: Sequence[Array],
    losses: Array,
    norm: int = 2,
    steps: int = 2,
    beside: Beside | None = None,
) -> Shares:
    """Return the shares of all nodes and classes.

    Parameters
    ----------
    tree : Tree
        The tree.
    weights : sequence of ndarray, shape (classes,) or (nodes, classes)
        For each level of the tree the weight of the squared error of each node's total, 0 where a class is
        not asked. A class ends at the deepest level that asks it, where every node has a share.
    losses : ndarray, shape (classes,)
        The squared error of one node for which a class is measured at privacy cost 1; above 0.
    norm : int
        2: Gaussian noise, whose precision is proportional to the share; 1: Laplace noise, to its square.
    steps : int
        Steps from the start. Laplace noise takes more, until a step gains little.
    beside : Beside, optional
        Families of areas that are measured too.

    Examples
    --------
    >>> tree = Tree.of([np.zeros(4, dtype=np.int64), np.arange(4)])
    >>> found = tree_shares(tree, [np.ones(1), np.ones(1)], np.ones(1))
    >>> [own[0].round(3).tolist() for own in found.precisions], round(found.loss, 3)
    ([[0.236], [0.764]], 6.854)
    """
    return _Search(tree, weights, losses, 3 - norm, beside).run(steps)


@dataclass(frozen=True, eq=False)
class _Search:
    """Shares that change in place; what no class has stays untouched, so it takes no memory.

    After the levels come families of areas, with a share for each node of their home.
    """

    tree: Tree
    weights: Sequence[Array]
    losses: Array
    power: int
    beside: Beside | None

    def run(self, steps: int) -> Shares:
        self._start()
        before, loss, done = np.inf, np.inf, 0
        gain = LIMITS.first_gain if self.power == 1 else LIMITS.gain
        while done < steps or (done < LIMITS.max_iterations and not loss > before * (1.0 - gain)):
            before, loss = loss, self._step()
            done += 1
        loss, prices = self._prices()
        for chunk in self.chunks:
            for place in self._places(chunk):
                own = self.shares[place]
                own[chunk.classes] = self.tree.placed(own[chunk.classes], self.levels[place])
        found, last = tuple(own.T for own in self.shares), len(self.tree.order)
        return Shares(found[:last], loss, prices, found[last:])

    @cached_property
    def chunks(self) -> tuple[_Chunk, ...]:
        return tuple(chunks_of(self.tree, self.weights, len(self.losses), self.beside))

    @cached_property
    def levels(self) -> list[int]:
        families = [] if self.beside is None else [self.beside.home] * len(self.beside.areas)
        return [*range(len(self.tree.order)), *families]

    @cached_property
    def shares(self) -> Levels:
        return [np.zeros((len(self.losses), self.tree.counts[level])) for level in self.levels]

    def _places(self, chunk: _Chunk) -> list[int]:
        families = range(len(self.tree.order), len(self.levels)) if chunk.beside else ()
        return [*range(chunk.depth + 1), *families]

    def _start(self) -> None:
        """Share the cost among classes as is best where each is alone."""
        alone = np.zeros(len(self.losses))
        for chunk in self.chunks:
            weights = chunk.of(self.tree, self.weights)
            if chunk.beside:
                depth = chunk.beside.depth
                weights[depth] = chunk.beside.raised(weights[depth], chunk.classes, depth)
            local = _local(self.tree, weights)
            errors = error_of(weights, passes(self.tree, [own**self.power for own in local])[-1])
            alone[chunk.classes] = _root(self.losses[chunk.classes] * errors, self.power)
            if chunk.beside:
                families = len(self.levels) - len(self.tree.order)
                local = [(1.0 - _BESIDE) * own for own in local]
                local += [np.full((1, 1), _BESIDE / families)] * families
            for place, there in zip(self._places(chunk), local, strict=True):
                self.shares[place][chunk.classes] = there
        parts = alone / alone.sum()
        self._scale(lambda _, one: parts[one])

    def _scale(self, factor: Callable[[int, int], Array]) -> None:
        for chunk in self.chunks:
            for place in self._places(chunk):
                for one in chunk.classes:
                    self.shares[place][one] *= factor(self.levels[place], one)

    def _pulls(self, chunk: _Chunk) -> tuple[float, Levels]:
        """Return the loss of some classes and (loss h)^(1/(k+1)) of nodes; at their last level none is 0."""
        precisions = [self.shares[place][chunk.classes] ** self.power for place in self._places(chunk)]
        weights, loss = chunk.of(self.tree, self.weights), self.losses[chunk.classes]
        depth = chunk.depth
        if chunk.beside:
            errors, slopes = chunk.beside.slopes(precisions, weights, chunk.classes)
        else:
            errors, slopes = slopes_of(self.tree, precisions, weights)
        pairs = zip(precisions, slopes, strict=True)
        found = [_root(loss[:, None] * slope * own**2, self.power) for own, slope in pairs]
        share = LIMITS.least_share if chunk.beside is None else _LEAST_BELOW
        least = share ** (1.0 / self.power) * np.max([own.max(axis=-1) for own in found], axis=0)
        found[depth] = np.maximum(found[depth], least[:, None])
        return float((loss * errors).sum()), found

    def _step(self) -> float:
        """Replace shares by those of the next step and return the loss before it."""
        loss, sums = 0.0, [np.zeros(count) for count in self.tree.counts]
        for chunk in self.chunks:
            own_loss, found = self._pulls(chunk)
            loss += own_loss
            for place, pulls in zip(self._places(chunk), found, strict=True):
                self.shares[place][chunk.classes] = pulls
                sums[self.levels[place]] += pulls.sum(axis=0)
        scales = _scales(self.tree, sums, self.power)
        self._scale(lambda level, _: scales[level])
        return loss

    def _prices(self) -> tuple[float, Array]:
        """Return the loss, and by how much a larger share of each value lowers it, as a distribution.

        Read off the classes that reach the deepest level asked; what they say is spread over a node's values.
        """
        depth, tree = self.chunks[-1].depth, self.tree
        loss, gains, spent = 0.0, np.zeros(tree.counts[depth]), np.zeros(tree.counts[depth])
        for chunk in self.chunks:
            own_loss, found = self._pulls(chunk)
            loss += own_loss
            if chunk.depth == depth:
                own = self.shares[depth][chunk.classes]
                gains += (found[depth] ** (self.power + 1) / own**self.power).sum(axis=0)
                spent += own.sum(axis=0)
        price = gains / spent / tree.summed(np.ones(len(tree.values)))[depth]
        for level in range(depth, len(tree.children)):
            price = tree.repeats(price, level)
        return loss, distribution(price[tree.values])


def distribution(prices: Array) -> Array:
    """Return prices that sum to 1, none of them 0."""
    found = prices / prices.sum()
    found = np.maximum(found, LIMITS.least_share / len(found))
    return np.asarray(found / found.sum())


def tree_loss(
    tree: Tree, weights: Sequence[Array], losses: Array, precisions: Sequence[Array], norm: int = 2
) -> float:
    """Return the loss of shares: the sum over classes of their losses times the errors of the tree.

    Examples
    --------
    >>> tree = Tree.of([np.zeros(4, dtype=np.int64), np.arange(4)])
    >>> tree_loss(tree, [np.zeros(1), np.ones(1)], np.ones(1), [np.zeros((1, 1)), np.ones((4, 1))])
    4.0
    """
    loss = 0.0
    for chunk in chunks_of(tree, weights, len(losses)):
        own = [one ** (3 - norm) for one in chunk.of(tree, precisions)]
        errors = error_of(chunk.of(tree, weights), passes(tree, own)[-1])
        loss += float((losses[chunk.classes] * errors).sum())
    return loss


def tree_bound(
    tree: Tree, weights: Sequence[Array], losses: Array, prices: Array, beside: Beside | None = None
) -> float:
    """Return a loss that no Gaussian strategy goes below.

    Parameters
    ----------
    tree, weights, beside
        Those of `tree_shares`.
    losses : ndarray, shape (classes,)
        A lower bound on the squared error of one node for which a class is measured at privacy cost 1.
    prices : ndarray, shape (n,)
        A distribution over values; any gives a bound.

    Examples
    --------
    >>> tree = Tree.of([np.zeros(4, dtype=np.int64), np.arange(4)])
    >>> round(tree_bound(tree, [np.ones(1), np.ones(1)], np.ones(1), np.full(4, 0.25)), 3)
    6.854
    """
    p = tree.summed(distribution(prices))
    trace = 0.0
    for chunk in chunks_of(tree, weights, len(losses), beside):
        weight, last = chunk.of(tree, weights), p[chunk.depth]
        rows = weight[0] * p[0]
        for level in range(chunk.depth):
            rows = tree.repeats(rows, level) + weight[level + 1] * p[level + 1]
        ends = weight[-1] * last
        if chunk.beside:
            areas, every = chunk.beside.priced(last, chunk.classes, chunk.depth)
            rows, ends = rows + areas, np.concatenate([ends, every], axis=1)
        largest = rows.max(axis=-1)
        least = np.min(ends, axis=-1, initial=np.inf, where=ends > 0.0)
        range_ = np.clip(np.ceil(np.log2(largest / least)), 0, WIDEST).astype(int)
        factors, shifts = np.array([rational(int(one)) for one in range_]).transpose(1, 2, 0)
        unit = largest / 2.0**range_
        for factor, shift in zip(factors * np.sqrt(unit), shifts * unit, strict=True):
            measured = [*weight[:-1], weight[-1] + shift[:, None] / last]
            if chunk.beside:
                errors = chunk.beside.error(measured, weight, chunk.classes)
            else:
                errors = error_of(weight, passes(tree, measured)[-1])
            trace += float((np.sqrt(losses[chunk.classes]) * factor * errors).sum())
    return trace * trace * (1.0 - ROUNDING)


@lru_cache
def rational(bits: int) -> tuple[Array, Array]:
    """Return a, t > 0 with the sum of a x / (x + t) at most sqrt(x) for all x, and close from 1 to 2^bits.

    Notes
    -----
    Zolotarev's, by elliptic functions, and scaled by a maximum that is proved. With y = sqrt(x) = e^u the
    function over y is s(u) = sum of A_j sech(u - u_j), where A > 0. As sech'' = sech - 2 sech^3 >= -sech,
    s'' >= -s: the maximum S is at most S d^2 / 8 above the nearest of points with distances d. Left of all
    u_j it rises, right of them it falls.
    """
    modulus = 2.0**-bits
    arguments = np.arange(1, 2 * _TERMS) * (scipy.special.ellipkm1(modulus) / (2 * _TERMS))
    sn, cn, _, _ = scipy.special.ellipj(arguments, 1.0 - modulus)
    places = (sn / cn) ** 2
    shifts, zeros = places[0::2], places[1::2]
    factors = np.array([np.prod((zeros - t) / (np.delete(shifts, j) - t)) for j, t in enumerate(shifts)])
    points, step = np.linspace(0.5 * np.log(shifts[0]), 0.5 * np.log(shifts[-1]), _POINTS, retstep=True)
    y = np.exp(points)[:, None]
    peak = (factors * y / (y * y + shifts)).sum(axis=1).max() / (1.0 - step * step / 8.0)
    return np.asarray(factors / (peak * (1.0 + LIMITS.rounding))), np.asarray(shifts, dtype=np.float64)
