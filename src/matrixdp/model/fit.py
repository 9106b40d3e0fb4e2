"""Fit a mixture of products to measured parts by stochastic gradient descent: it sees no data."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from matrixdp.model.mixture import Mixture
from matrixdp.model.parts import FittedPart, Parts
from matrixdp.model.products import khatri_rao, split_at
from matrixdp.model.published import with_published
from matrixdp.selection.starting_points import Generator, generator

__all__ = ["Fit", "fit"]

Array = NDArray[np.float64]
Single = NDArray[np.float32]

#: Adam: the rate falls to 0 along half a cosine.
_RATE, _MOMENTUM, _SQUARES, _TINY = 0.1, 0.9, 0.99, 1e-8
#: The smallest parts, with this share of all cells, take part in every step.
_ALWAYS = 0.1
#: A step looks at about so many cells.
_CELLS_A_STEP = 60_000
#: Added to shares before their logarithm is taken, over the number of values.
_LEAST_SHARE = 1e-3


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
    """

    mixture: Mixture
    losses: Array
    seed: int
    components: int
    steps: int

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

    def shares(self) -> tuple[Single, list[Single]]:
        """Return the weights and the factors, which sum to 1."""
        weights, *factors = [_softmax(view) for view in self.views(self.flat)]
        return weights, factors

    def chain(self, shares: Single, gradient: Single) -> None:
        """Turn share times gradient, in place, into the gradient with respect to the logarithms."""
        for own, view in zip(self.views(shares), self.views(gradient), strict=True):
            view -= own * view.sum(axis=-1, keepdims=True)


def _softmax(logarithms: Single) -> Single:
    raised = np.exp(logarithms - logarithms.max(axis=-1, keepdims=True))
    return np.asarray(raised / raised.sum(axis=-1, keepdims=True))


def _add_gradients(factors: Sequence[Single], inner: Single, gradients: Sequence[Single]) -> None:
    """Add factor times gradient of each factor of a Khatri-Rao product, given product times gradient."""
    sizes = [factor.shape[1] for factor in factors]
    tensor = inner.reshape(len(inner), *sizes)
    for axis, gradient in enumerate(gradients):
        gradient += tensor.sum(axis=tuple(i + 1 for i in range(len(sizes)) if i != axis))


class _Objective:
    """The loss of a mixture against parts, with its gradient."""

    def __init__(self, parts: Parts) -> None:
        self.parts = parts
        self.places = {name: place for place, name in enumerate(parts.starts)}
        sizes = {name: parts.domain[name].size for name in parts.starts}
        self._cuts = {part.free: split_at([sizes[name] for name in part.free]) for part in parts.parts}

    def add(
        self,
        part: FittedPart,
        shares: tuple[Single, list[Single]],
        gradients: list[Single] | None = None,
        times: float = 1.0,
    ) -> float:
        """Return the loss of one part; add share times gradient, so many times, to the views given."""
        weights, factors = shares
        cut = self._cuts[part.free]
        places = [self.places[name] for name in part.free]
        own = [factors[place] for place in places]
        left = khatri_rao(own[:cut], weights * np.float32(self.parts.total))
        right = khatri_rao(own[cut:], np.ones_like(weights))
        table = (left.T @ right).ravel()
        if part.cells is not None:
            table = np.bincount(part.cells, table, part.term.cells).astype(np.float32)
        loss, slope = part.term.loss(table)
        if gradients is None:
            return loss
        if part.cells is not None:
            slope = slope[part.cells]
        matrix = (slope * np.float32(times)).reshape(left.shape[1], right.shape[1])
        to_left = left * (right @ matrix.T)
        to_right = right * (left @ matrix)
        gradients[0] += to_left.sum(axis=1)
        _add_gradients(own[:cut], to_left, [gradients[place + 1] for place in places[:cut]])
        _add_gradients(own[cut:], to_right, [gradients[place + 1] for place in places[cut:]])
        return loss

    def losses(self, shares: tuple[Single, list[Single]]) -> Array:
        """Return the loss of each part."""
        return np.array([self.add(part, shares) for part in self.parts.parts])


def _batches(parts: Parts, random: Generator) -> Iterator[list[tuple[FittedPart, float]]]:
    """Yield forever the parts of each step, with what their gradients are multiplied by.

    The smallest parts are in every step; the others are dealt out, each once in as many steps as it takes.
    """
    by_size = sorted(parts.parts, key=lambda part: part.size)
    sizes = np.array([part.size for part in by_size])
    number = max(1, min(len(by_size), round(sizes.sum() / _CELLS_A_STEP)))
    few = int(np.searchsorted(np.cumsum(sizes), _ALWAYS * sizes.sum(), side="right")) if number > 1 else 0
    always = [(part, 1.0) for part in by_size[:few]]
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
    seen : callable, optional
        Called with the number of steps done and of all.

    Returns
    -------
    Fit

    Notes
    -----
    Minimizes the sum over parts of |B_A x_A - y_A|^2 / (2 v_A), the negative logarithm of the likelihood
    for Gaussian noise, by Adam with rate 0.1 falling to 0 along half a cosine. The largest parts take turns.
    """
    random = generator(seed)
    objective = _Objective(parts)
    weights = _Weights(components, [len(start) for start in parts.starts.values()])
    for view, start in zip(weights.views(weights.flat)[1:], parts.starts.values(), strict=True):
        least = _LEAST_SHARE / len(start)
        view[:] = np.log((start + least) / (1.0 + _LEAST_SHARE)) + random.standard_normal(view.shape)
    if parts.constraints.boxes:
        masks = parts.constraints.masks(parts.starts, components, random)
        for view, name in zip(weights.views(weights.flat)[1:], parts.starts, strict=True):
            view[~masks[name]] = -np.inf  # a share of 0, which has no gradient
    mean = np.zeros_like(weights.flat)
    square = np.zeros_like(weights.flat)
    batches = _batches(parts, random)
    with threadpool_limits(limits=1, user_api="blas"):
        for step in range(steps):
            shares = weights.shares()
            gradient = np.zeros_like(weights.flat)
            views = weights.views(gradient)
            for part, times in next(batches):
                objective.add(part, shares, views, times)
            weights.chain(np.concatenate([own.ravel() for own in (shares[0], *shares[1])]), gradient)
            mean += (1 - _MOMENTUM) * (gradient - mean)
            square += (1 - _SQUARES) * (gradient * gradient - square)
            rate = _RATE * 0.5 * (1 + math.cos(math.pi * step / steps))
            unbiased = math.sqrt(1 - _SQUARES ** (step + 1)) / (1 - _MOMENTUM ** (step + 1))
            weights.flat -= np.float32(rate * unbiased) * mean / (np.sqrt(square) + np.float32(_TINY))
            if seen is not None:
                seen(step + 1, steps)
        shares = weights.shares()
        losses = objective.losses(shares)
    factors = {name: own.astype(np.float64) for name, own in zip(parts.starts, shares[1], strict=True)}
    mixture = Mixture(parts.domain, parts.total, shares[0].astype(np.float64), factors)
    return Fit(with_published(mixture, parts.constraints.tables), losses, seed, components, steps)
