"""Fit a mixture of products to measured parts by stochastic gradient descent: it sees no data."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from matrixdp.exact.resources import one_blas_thread
from matrixdp.model.bundles import Bundle, bundles_of
from matrixdp.model.mixture import Mixture
from matrixdp.model.parts import Parts
from matrixdp.model.published import with_published
from matrixdp.selection.starting_points import Generator, generator

__all__ = ["Fit", "fit"]

Array = NDArray[np.float64]
Single = NDArray[np.float32]

#: Adam: the rate falls to 0 along half a cosine.
_RATE, _MOMENTUM, _SQUARES, _TINY = 0.1, 0.9, 0.99, 1e-8
#: The smallest parts, with at most this share of all cells and half of a step's, take part in every step.
_ALWAYS = 0.1
#: A step looks at about so many cells.
_CELLS_A_STEP = 60_000
#: Added to shares before their logarithm is taken, over the number of values.
_LEAST_SHARE = 1e-3
#: A fit has at most so many rounds of steps, and another only where the last one left at most this share of
#: what is above the limit.
_ROUNDS, _GAIN = 8, 0.75


@final
@dataclass(frozen=True, eq=False)
class Fit:
    """A mixture, and how well it fits.

    Attributes
    ----------
    mixture : Mixture
    losses : ndarray, shape (parts,)
        Of each part, half its squared residuals over the noise's variance.
    seed, components, steps : int
        What it was made with; the same again on the same machine.
    done : int
        The steps of all rounds.
    """

    mixture: Mixture
    losses: Array
    seed: int
    components: int
    steps: int
    done: int

    @property
    def loss(self) -> float:
        """Of all parts."""
        return float(self.losses.sum())


@final
class _Weights:
    """The logarithms of a mixture's shares, flat, and views of them: weights first, then each attribute."""

    def __init__(self, components: int, sizes: Sequence[int]) -> None:
        self.ends = np.cumsum([components, *(components * size for size in sizes)]).tolist()
        self.components = components
        self.flat: Single = np.zeros(self.ends[-1], dtype=np.float32)

    def views(self, flat: Single) -> list[Single]:
        """Return the weights, shape (K,), and the factors, each of shape (K, size)."""
        pairs = zip(self.ends[:-1], self.ends[1:], strict=True)
        own = [flat[start:end].reshape(self.components, -1) for start, end in pairs]
        return [flat[: self.ends[0]], *own]

    def shares(self) -> tuple[Single, Single, list[Single]]:
        """Return all shares, flat, and views of them: the weights and the factors, which sum to 1."""
        shares = np.empty_like(self.flat)
        views = self.views(shares)
        for own, view in zip(self.views(self.flat), views, strict=True):
            np.exp(own - own.max(axis=-1, keepdims=True), out=view)
            view /= view.sum(axis=-1, keepdims=True)
        return shares, views[0], views[1:]

    def chain(self, shares: Single, gradient: Single) -> None:
        """Turn share times gradient, in place, into the gradient with respect to the logarithms."""
        for own, view in zip(self.views(shares), self.views(gradient), strict=True):
            view -= own * view.sum(axis=-1, keepdims=True)


def _batches(bundles: Sequence[Bundle], random: Generator) -> Iterator[list[tuple[Bundle, float]]]:
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
    parts: Parts, seed: int, components: int, steps: int, seen: Callable[[int, int], None] | None = None
) -> Fit:
    """Fit a mixture to measured parts.

    Parameters
    ----------
    parts : Parts
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
    Fit

    Notes
    -----
    Minimizes the sum over parts of |B_A x_A - y_A|^2 / (2 v_A), the negative logarithm of the likelihood
    for Gaussian noise, by Adam with rate 0.1 falling to 0 along half a cosine in each round.
    The largest parts take turns.
    """
    random = generator(seed)
    bundles = bundles_of(parts)
    weights = _Weights(components, [len(start) for start in parts.starts.values()])
    for view, start in zip(weights.views(weights.flat)[1:], parts.starts.values(), strict=True):
        least = _LEAST_SHARE / len(start)
        view[:] = np.log((start + least) / (1.0 + _LEAST_SHARE)) + random.standard_normal(view.shape)
    if parts.constraints.boxes:
        masks = parts.constraints.masks(parts.starts, components, random)
        for view, name in zip(weights.views(weights.flat)[1:], parts.starts, strict=True):
            view[~masks[name]] = -np.inf  # a share of 0, which has no gradient
    batches = _batches(bundles, random)
    losses = np.full(1, np.inf)
    for done in range(0, _ROUNDS * steps, steps):
        before = losses.sum()
        descended = _descended(parts, weights, batches, steps, done, seen)
        mixture = with_published(descended, parts.constraints.tables)
        losses = parts.losses(mixture)
        if losses.sum() <= parts.limit or losses.sum() - parts.limit > _GAIN * (before - parts.limit):
            break
    return Fit(mixture, losses, seed, components, steps, done + steps)


def _descended(
    parts: Parts,
    weights: _Weights,
    batches: Iterator[list[tuple[Bundle, float]]],
    steps: int,
    done: int,
    seen: Callable[[int, int], None] | None,
) -> Mixture:
    """Return the mixture after a round of Adam, which moves the weights."""
    mean, square = np.zeros_like(weights.flat), np.zeros_like(weights.flat)
    total = np.float32(parts.total)
    with one_blas_thread():
        for step in range(steps):
            shares, own, factors = weights.shares()
            gradient = np.zeros_like(weights.flat)
            views = weights.views(gradient)
            for bundle, times in next(batches):
                bundle.descend(own * total, factors, views, times)
            weights.chain(shares, gradient)
            mean += (1 - _MOMENTUM) * (gradient - mean)
            square += (1 - _SQUARES) * (gradient * gradient - square)
            rate = _RATE * 0.5 * (1 + math.cos(math.pi * step / steps))
            unbiased = math.sqrt(1 - _SQUARES ** (step + 1)) / (1 - _MOMENTUM ** (step + 1))
            weights.flat -= np.float32(rate * unbiased) * mean / (np.sqrt(square) + np.float32(_TINY))
            if seen is not None:
                seen(done + step + 1, done + steps)
        _, own, factors = weights.shares()
    named = {name: shares.astype(np.float64) for name, shares in zip(parts.starts, factors, strict=True)}
    return Mixture(parts.domain, parts.total, own.astype(np.float64), named)
