"""Fit mixtures of products to measured parts by stochastic gradient descent: it sees no data.

The number of components is what noise asks for; a few fits from different starts are averaged.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import final

import numpy as np
from numpy.typing import NDArray

from matrixdp.exact.resources import one_blas_thread
from matrixdp.model.constraints import with_published
from matrixdp.model.likelihood import Evidence, FitTests, Likelihood, kronecker_map
from matrixdp.model.tables import Mixture, khatri_rao, split_at
from matrixdp.selection.starting_points import Generator, generator

Single = NDArray[np.float32]

#: Fits from different starts that are averaged.
FITS = 4
#: Components and steps that are tried, until noise explains what is left.
_LADDER = ((10, 1000), (100, 1200), (200, 1600), (400, 2000), (800, 3000))
#: Adam: the rate falls to 0 along half a cosine.
_RATE, _MOMENTUM, _SQUARES, _TINY = 0.1, 0.9, 0.99, 1e-8
#: The smallest parts, with at most this share of all cells and half of a step's, take part in every step.
_ALWAYS = 0.1
#: A step looks at about this many cells.
_CELLS_A_STEP = 60_000
#: Added to shares before their logarithm is taken, over the number of values.
_LEAST_SHARE = 1e-3
#: The most rounds of steps of a fit; another round follows only where the last one left at most this share
#: of what is above the limit.
_ROUNDS, _GAIN = 8, 0.75


# The gradients of several parts, with one product of matrices.


@final
@dataclass(frozen=True, eq=False)
class Bundle:
    """Parts whose gradients are computed together, in single precision.

    Attributes
    ----------
    places : list of int
        Where they stand among all parts.
    left : list of int
        The attributes that they share, of whose cells their tables have the rows; counted from 1, as the
        weights come first.
    right : list of list of int
        The further attributes of each; the columns of their tables stand side by side.
    ends : list of int
        Where these columns begin and end.
    size : int
        The number of their cells.
    slope : callable
        From the tables to the gradients of their losses.
    """

    places: list[int]
    left: list[int]
    right: list[list[int]]
    ends: list[int]
    size: int
    slope: Callable[[Single], Single]

    def descend(self, shares: Sequence[Single], gradients: Sequence[Single], times: float) -> None:
        """Add `times` times share times gradient to the gradients of the weights and of each attribute."""
        left = khatri_rao([shares[place] for place in self.left], shares[0])
        right = [_columns([shares[place] for place in own]) for own in self.right]
        columns = right[0] if len(right) == 1 else np.concatenate(right, axis=1)
        slope = self.slope(left.T @ columns) * np.float32(times)
        to_left, to_right = left * (columns @ slope.T), columns * (left @ slope)
        gradients[0] += to_left.sum(axis=1)
        _scatter(self.left, to_left, gradients)
        for own, (start, end) in zip(self.right, pairwise(self.ends), strict=True):
            _scatter(own, to_right[:, start:end], gradients)


def _columns(factors: Sequence[Single]) -> Single:
    return factors[0] if len(factors) == 1 else khatri_rao(factors, np.ones(len(factors[0]), np.float32))


def _scatter(own: Sequence[int], inner: Single, gradients: Sequence[Single]) -> None:
    """Add to the gradient of each factor of a Khatri-Rao product, given product times gradient."""
    if len(own) == 1:
        gradients[own[0]] += inner
        return
    tensor = inner.reshape(len(inner), *(gradients[place].shape[1] for place in own))
    for axis, place in enumerate(own):
        gradients[place] += tensor.sum(axis=tuple(other + 1 for other in range(len(own)) if other != axis))


def bundles_of(evidence: Evidence) -> list[Bundle]:
    """Return all parts in bundles: those that share all attributes but their last, and are measured alike."""
    places = {name: place for place, name in enumerate(evidence.starts, 1)}
    sizes = {name: len(start) for name, start in evidence.starts.items()}
    alike: dict[object, list[int]] = {}
    for place, part in enumerate(evidence.parts):
        measured = [axis.matrix.digest() for axis in part.axes[:-1]]
        key = (part.free[:-1], *measured) if part.separable else place
        alike.setdefault(key, []).append(place)
    found = []
    for together in alike.values():
        parts = [evidence.parts[place] for place in together]
        free = parts[0].free
        cut = len(free) - 1 if len(parts) > 1 else split_at([sizes[name] for name in free])
        right = [[places[name] for name in part.free[cut:]] for part in parts]
        ends = np.cumsum([0, *(math.prod(sizes[name] for name in part.free[cut:]) for part in parts)])
        left, size = [places[name] for name in free[:cut]], sum(part.size for part in parts)
        slope = _slopes(parts, ends.tolist()) if len(parts) > 1 else _slope(parts[0])
        found.append(Bundle(together, left, right, ends.tolist(), size, slope))
    return found


def _slope(part: Likelihood) -> Callable[[Single], Single]:
    return lambda table: part.single.gradient(table.ravel()).reshape(table.shape)


def _slopes(parts: Sequence[Likelihood], ends: Sequence[int]) -> Callable[[Single], Single]:
    """Return the function for the gradients of parts whose tables stand side by side."""
    axes = [axis.single for axis in parts[0].axes[:-1]]
    last = [part.axes[-1] for part in parts]
    rows = math.prod(axis.size for axis in axes)
    target = np.hstack([part.target.reshape(rows, -1).astype(np.float32) for part in parts])
    scales = np.repeat([np.float32(part.scale) for part in parts], [axis.size for axis in last])
    spans = list(zip(pairwise(ends), last, strict=True))
    # which columns have their means removed, those of one axis alike
    back = np.zeros((sum(axis.centers for axis in last), ends[-1]), dtype=np.float32)
    for row, (start, end) in enumerate(span for span, axis in spans if axis.centers):
        back[row, start:end] = 1.0
    means = np.ascontiguousarray((back / back.sum(axis=1, keepdims=True)).T)
    grams = [(*span, axis.single.gram) for span, axis in spans if axis.gram is not None]

    def slope(table: Single) -> Single:
        off = table - target
        found = kronecker_map([axis.times for axis in axes], [axis.size for axis in axes], off.ravel())
        found = found.reshape(off.shape) * scales
        if len(back):
            found = found - (found @ means) @ back
        for start, end, gram in grams:
            found[:, start:end] = found[:, start:end] @ gram
        return np.asarray(found)

    return slope


# Fits.


@final
@dataclass(frozen=True, eq=False)
class MixtureFit:
    """A mixture, and how well it fits.

    Attributes
    ----------
    mixture : Mixture
        Of one fit, or the average of several.
    tests : FitTests
    components, steps : int
        What each fit was made with.
    done : int
        The steps of all rounds.
    """

    mixture: Mixture
    tests: FitTests
    components: int
    steps: int
    done: int


@final
class Weights:
    """The logarithms of a mixture's shares, flat, and views of them: weights first, then each attribute."""

    def __init__(self, components: int, sizes: Sequence[int]) -> None:
        self.ends = np.cumsum([components, *(components * size for size in sizes)]).tolist()
        self.components = components
        self.flat: Single = np.zeros(self.ends[-1], dtype=np.float32)

    def views(self, flat: Single) -> list[Single]:
        """Return the weights, shape (K,), and the factors, each of shape (K, size)."""
        own = [flat[start:end].reshape(self.components, -1) for start, end in pairwise(self.ends)]
        return [flat[: self.ends[0]], *own]

    def shares(self) -> tuple[Single, list[Single]]:
        """Return all shares, flat, and views of them, the weights' and the factors', which sum to 1."""
        shares = np.empty_like(self.flat)
        views = self.views(shares)
        for own, view in zip(self.views(self.flat), views, strict=True):
            np.exp(own - own.max(axis=-1, keepdims=True), out=view)
            view /= view.sum(axis=-1, keepdims=True)
        return shares, views

    def chain(self, shares: Single, gradient: Single) -> None:
        """Turn share times gradient, in place, into the gradient with respect to the logarithms."""
        for own, view in zip(self.views(shares), self.views(gradient), strict=True):
            view -= own * view.sum(axis=-1, keepdims=True)

    def mixture(self, evidence: Evidence) -> Mixture:
        """Return the mixture."""
        weights, *factors = (own.astype(np.float64) for own in self.shares()[1])
        named = dict(zip(evidence.starts, factors, strict=True))
        return Mixture(evidence.domain, evidence.total, weights, named)


def batches_of(bundles: Sequence[Bundle], random: Generator) -> Iterator[list[tuple[Bundle, float]]]:
    """Yield forever the parts of each step, with what their gradients are multiplied by.

    The smallest are in every step; the others are dealt out, each once in as many steps as it takes.
    """
    by_size = sorted(bundles, key=lambda bundle: bundle.size)
    sizes = np.array([bundle.size for bundle in by_size])
    number = max(1, min(len(by_size), round(sizes.sum() / _CELLS_A_STEP)))
    most = min(_ALWAYS * sizes.sum(), _CELLS_A_STEP)
    few = int(np.searchsorted(np.cumsum(sizes), most, side="right")) if number > 1 else 0
    always = [(bundle, 1.0) for bundle in by_size[:few]]
    while True:
        dealt = few + random.permutation(len(by_size) - few)
        middle = np.cumsum(sizes[dealt]) - sizes[dealt] / 2
        steps = (number * middle / sizes[dealt].sum()).astype(int)
        for step in range(number):
            yield always + [(by_size[place], float(number)) for place in dealt[steps == step]]


def fit(
    evidence: Evidence, seed: int, components: int, steps: int, seen: Callable[[int, int], None] | None = None
) -> MixtureFit:
    """Fit a mixture to measured parts.

    Parameters
    ----------
    evidence : Evidence
    seed : int
        Of the start and of the order of the parts; no privacy depends on it.
    components : int
        How many products, K.
    steps : int
        Of a round. Further rounds follow, each from where the last one ended, until noise explains the loss
        or a round leaves more than three quarters of what is above that: then it has converged.
    seen : callable, optional
        Called with the number of steps done and those that there are now known to be.

    Returns
    -------
    MixtureFit

    Notes
    -----
    Minimizes the sum over parts of |B_A x_A - y_A|^2 / (2 v_A), the negative logarithm of the likelihood
    for Gaussian noise, by Adam with rate 0.1 falling to 0 along half a cosine in each round.
    The largest parts take turns.
    """
    random, starts = generator(seed), evidence.starts
    weights = Weights(components, [len(start) for start in starts.values()])
    views = dict(zip(starts, weights.views(weights.flat)[1:], strict=True))
    for name, start in starts.items():
        least = _LEAST_SHARE / len(start)
        noise = random.standard_normal(views[name].shape)
        views[name][:] = np.log((start + least) / (1.0 + _LEAST_SHARE)) + noise
    if evidence.constraints.boxes:
        for name, mask in evidence.constraints.masks(starts, components, random).items():
            views[name][~mask] = -np.inf  # a share of 0, which has no gradient
    batches = batches_of(bundles_of(evidence), random)
    loss, limit = np.inf, evidence.limit
    for done in range(0, _ROUNDS * steps, steps):
        before = loss
        _descend(evidence.total, weights, batches, steps, done, seen)
        mixture = with_published(weights.mixture(evidence), evidence.constraints.tables)
        losses = evidence.losses(mixture)
        loss = float(losses.sum())
        if loss <= limit or loss - limit > _GAIN * (before - limit):
            break
    return MixtureFit(mixture, evidence.tests(losses), components, steps, done + steps)


def _descend(
    total: float,
    weights: Weights,
    batches: Iterator[list[tuple[Bundle, float]]],
    steps: int,
    done: int,
    seen: Callable[[int, int], None] | None,
) -> None:
    """Move the weights by a round of Adam."""
    mean, square = np.zeros_like(weights.flat), np.zeros_like(weights.flat)
    with one_blas_thread():
        for step in range(steps):
            shares, (own, *factors) = weights.shares()
            scaled = [own * np.float32(total), *factors]
            gradient = np.zeros_like(weights.flat)
            views = weights.views(gradient)
            for bundle, times in next(batches):
                bundle.descend(scaled, views, times)
            weights.chain(shares, gradient)
            mean += (1 - _MOMENTUM) * (gradient - mean)
            square += (1 - _SQUARES) * (gradient * gradient - square)
            rate = _RATE * 0.5 * (1 + math.cos(math.pi * step / steps))
            unbiased = math.sqrt(1 - _SQUARES ** (step + 1)) / (1 - _MOMENTUM ** (step + 1))
            weights.flat -= np.float32(rate * unbiased) * mean / (np.sqrt(square) + np.float32(_TINY))
            if seen is not None:
                seen(done + step + 1, done + steps)


def choose(
    evidence: Evidence,
    seed: int = 0,
    *,
    components: int | None = None,
    steps: int | None = None,
    seen: Callable[[int, int], None] | None = None,
) -> MixtureFit:
    """Fit mixtures to measured parts and return the average of a few that fit.

    Parameters
    ----------
    evidence : Evidence
    seed : int
        Of the first fit; the others take the numbers after it.
    components, steps : int, optional
        Of each fit. Without them the fewest of a few numbers are taken with which noise explains what is
        left; more would fit the noise.
    seen : callable, optional
        Called with the steps done and those that there are now known to be.

    Returns
    -------
    MixtureFit
        It may not fit: see its tests.

    Examples
    --------
    >>> import matrixdp as mdp
    >>> workload = mdp.Workload(mdp.Domain({"sex": ["female", "male"]}), mdp.marginals(1))
    >>> measured = mdp.select(workload).measure({"sex": ["male", "female"] * 45}, mdp.Budget(mu=1))
    >>> chosen = choose(Evidence.of(measured.measurement), components=2, steps=100)
    >>> chosen.mixture.components, chosen.tests.accepted
    (8, True)
    """
    tried = [(components or size, steps or number) for size, number in _LADDER]
    made: list[MixtureFit] = []

    def fitted(place: int, size: int, number: int) -> MixtureFit:
        before, ahead = sum(own.done for own in made), (FITS - 1 - place) * number
        told = None if seen is None else lambda step, own: seen(before + step, before + own + ahead)
        made.append(fit(evidence, seed + place, size, number, told))
        return made[-1]

    for size, number in tried[:1] if components and steps else tried:
        first = fitted(0, size, number)
        if first.tests.accepted:
            break
    fits = [first, *(fitted(place, size, number) for place in range(1, FITS))]
    mixture = Mixture.average([own.mixture for own in fits])
    tests = evidence.tests(evidence.losses(mixture))
    return MixtureFit(mixture, tests, size, number, sum(own.done for own in made))
