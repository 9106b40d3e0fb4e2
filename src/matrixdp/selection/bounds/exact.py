"""F(p) itself, from the eigenvalues of sectors that are small."""

from __future__ import annotations

import math
from functools import reduce

import numpy as np
import scipy  # its parts are read when they are first used
from numpy.typing import NDArray

from matrixdp.exact.linear import kronecker
from matrixdp.selection.bounds.rings import Tied
from matrixdp.selection.bounds.triples import Operator

__all__ = ["Bases", "sector_dimensions", "sector_norm"]

Array = NDArray[np.float64]


#: The least eigenvalue of the metric of a sector, relative to its dimension and the largest.
_LEAST = 1e-13


class Bases:
    """For each attribute type: what turns cells to the complement of s = sqrt(p), and u = Q' w / s."""

    def __init__(self, operator: Operator, p: list[Array]) -> None:
        self.weights = operator.axes.weights
        self._p = p
        self._found: dict[int, tuple[Array, Array]] = {}

    def __getitem__(self, type_: int) -> tuple[Array, Array]:
        """Return S Q, shape (n, n - 1), and u, shape (n - 1, 1)."""
        if type_ not in self._found:
            root = np.sqrt(self._p[type_])
            basis = scipy.linalg.null_space(root[None, :])
            apart = basis.T @ (self.weights[type_] / root)
            self._found[type_] = root[:, None] * basis, apart[:, None]
        return self._found[type_]

    def side(self, type_: int, kept: bool) -> Array:
        """Return what a subset makes of an attribute: S Q where it keeps it, w where it does not."""
        return self[type_][0] if kept else self.weights[type_][:, None]


def sector_dimensions(operator: Operator, spread: tuple[int, ...]) -> int:
    """Return the dimensions of a sector, its symmetric attributes left out."""
    lattice = operator.lattice
    sizes = np.array([len(operator.axes.weights[type_]) - 1 for type_ in lattice.types])
    members = lattice.members[lattice.sectors[spread]]
    return int(np.where(members >= 0, sizes[members], 1).astype(float).prod(axis=1).sum())


def sector_norm(operator: Operator, spread: tuple[int, ...], p: list[Array]) -> float:
    """Return the sum of the singular values of W diag(p)^(1/2) within a sector."""
    lattice = operator.lattice
    places = lattice.sectors[spread].tolist()
    bases, theta = Bases(operator, p), operator.thetas(p)
    members = {place: set(lattice.members[place][lattice.members[place] >= 0].tolist()) for place in places}
    asked: list[list[Array]] = []
    metric: list[list[Array]] = []
    for first in places:
        unions = lattice.unions(first)
        asked.append([])
        metric.append([])
        for second in places:
            together = int(unions[second])
            shape = [
                math.prod(len(operator.axes.weights[lattice.types[i]]) - 1 for i in members[one])
                for one in (first, second)
            ]
            if together < 0:
                asked[-1].append(np.zeros(shape))
                metric[-1].append(np.zeros(shape))
                continue
            # where all that is asked between two subsets is nothing but rounding errors, no term says so
            terms = _asked(operator, together, members[first], members[second], bases)
            asked[-1].append(np.zeros(shape) + terms)
            own = lattice.members[together][lattice.members[together] >= 0].tolist()
            factors = []
            for i in own:
                apart = bases[int(lattice.types[i])][1]
                both = i in members[first] and i in members[second]
                factors.append(np.eye(len(apart)) if both else apart if i in members[first] else apart.T)
            metric[-1].append(theta[together] * kronecker(factors))
    middle = np.block(metric)
    spectrum = scipy.linalg.eigvalsh(middle)
    if not float(spectrum[0]) > _LEAST * len(spectrum) * float(spectrum[-1]):
        return 0.0  # as good as singular: rounding errors decide what its eigenvalues are
    values = scipy.linalg.eigh(np.block(asked), middle, eigvals_only=True)
    # an eigenvalue of 0 comes out as a rounding error, whose root would raise the bound noticeably
    condition = float(spectrum[-1] / spectrum[0])
    rounding = 4 * len(values) * np.finfo(np.float64).eps * condition * max(float(values[-1]), 0.0)
    kept = values[values > rounding] - rounding
    sizes = [float(len(operator.axes.weights[lattice.types[i]])) for i in spread]
    return float(np.sqrt(kept).sum()) * math.prod((n - 1.0) / math.sqrt(n) for n in sizes)


def _asked(operator: Operator, together: int, first: set[int], second: set[int], bases: Bases) -> Array:
    """Return the pieces of what is asked between two subsets."""
    lattice, axes = operator.lattice, operator.axes
    own = lattice.members[together][lattice.members[together] >= 0].tolist()
    total: Array = np.zeros((1, 1))
    for m, coefficient in enumerate(operator.coefficients[together]):
        if coefficient == 0.0:
            continue
        sides = [[bases.side(int(lattice.types[i]), i in subset) for i in own] for subset in (first, second)]
        slots = [axes.grams[int(operator.slots[together, m, i])] for i in own]
        if any(isinstance(slot, Tied) for slot in slots):
            order = np.argsort([slot.axis if isinstance(slot, Tied) else 0 for slot in slots], kind="stable")
            tied = slots[0]
            assert isinstance(tied, Tied)
            tensor = np.moveaxis(tied.tensor, np.arange(len(own)) + 1, order + 1)
            left, right = (
                reduce(lambda t, s: np.tensordot(t, s, axes=(1, 0)), side, tensor).reshape(len(tensor), -1)
                for side in sides
            )
            total = total + coefficient * (left.T @ right)
            continue
        grams = [slot for slot in slots if not isinstance(slot, Tied)]
        factors = [a.T @ gram @ b for a, gram, b in zip(sides[0], grams, sides[1], strict=True)]
        total = total + coefficient * kronecker(factors)
    return total
