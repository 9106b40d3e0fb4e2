"""ResidualPlanner and ResidualPlanner+: the decomposition with uniform weights and given bases."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import scipy  # its parts are read when they are first used
from numpy.typing import ArrayLike

from matrixdp.errors import WorkloadError
from matrixdp.exact.linear import Array
from matrixdp.mechanisms import (
    GAP,
    Choice,
    Construction,
    ConvexOptions,
    Factor,
    KronSum,
    Mechanism,
    Options,
    Product,
    Split,
    Task,
    option,
    register,
    right_inverse,
    select_by_decomposition,
    solve_gram,
    split_workload,
)
from matrixdp.noise import Noise
from matrixdp.queries import Workload

if TYPE_CHECKING:
    from matrixdp.language.predicates import PredicateForm


#: Eigenvalues of B'B below this share of the largest are rounding errors.
_RANK = 1e-11
#: The share of a workload's Gram matrix that may lie outside of a basis.
_OUTSIDE = 1e-7


def select_residual_planner(workload: Workload, noise: Noise) -> Choice:
    """Select by ResidualPlanner: marginals, each residual measured with its own noise, in closed form.

    References
    ----------
    Xiao, He, Zhang and Kifer (2023), "An optimal and scalable matrix mechanism for noisy marginals under
    convex loss functions", Theorem 3.2 and section 5.

    Examples
    --------
    >>> import matrixdp as mdp
    >>> from matrixdp.noise import GAUSSIAN
    >>> workload = mdp.Workload(mdp.Domain({"a": 3, "b": 4}), mdp.marginals([1, 2]))
    >>> plan, certificate = select_residual_planner(workload, GAUSSIAN)
    >>> len(plan.parts), certificate.gap < 1e-9
    (4, True)
    """
    split = split_workload(workload)
    if any(split.free) or split.explicit:
        raise WorkloadError(
            "workload: residualplanner answers marginals only; use residualplanner-plus or querysmasher"
        )
    return select_by_decomposition(workload, noise, "residualplanner", GAP)


def select_residual_planner_plus(
    workload: Workload, noise: Noise, bases: Mapping[str, ArrayLike] | None = None, gap: float = GAP
) -> Choice:
    """Select by ResidualPlanner+: one given strategy for each attribute, its mean removed, everywhere.

    References
    ----------
    ResidualPlanner+ (2024): the strategy of an attribute is the user's choice.

    Notes
    -----
    An attribute whose basis is not given gets the same one in every sub-workload. With these bases the
    figures that are published for ResidualPlanner+ on prefix, marginal and 10-valued pair workloads are
    reproduced; on ranges the published figure is that of a basis made for prefix queries.

    Examples
    --------
    >>> import matrixdp as mdp
    >>> from matrixdp.noise import GAUSSIAN
    >>> workload = mdp.Workload(mdp.Domain({"a": 3, "b": 8}), mdp.kway(2, "prefix"))
    >>> plan, _ = select_residual_planner_plus(workload, GAUSSIAN, {"b": np.tril(np.ones((8, 8)))})
    >>> round(plan.cost, 9)
    1.0
    """
    split = split_workload(workload)
    known = {name: _checked(workload, name, basis) for name, basis in (bases or {}).items()}
    chosen: dict[int, Array] = {}
    # attributes of one type share a solution, so they have to share their basis
    types: dict[str, int] = {}
    for name, type_ in split.types.items():
        types[name] = type_
        if name in known:
            other = chosen.get(type_)
            if other is not None and not np.array_equal(other, known[name]):
                raise WorkloadError(
                    f"bases: {name!r} plays the same role as another attribute; give both one basis"
                )
            chosen[type_] = known[name]
    missing = {name for name in known if name not in types}
    if missing:
        raise WorkloadError(f"bases: the workload asks nothing about {sorted(missing)[0]!r}")
    constructed = GivenBases({**own_bases(split, gap), **chosen})
    plan, certificate = select_by_decomposition(
        workload, noise, "residualplanner-plus", gap, construction=constructed
    )
    return plan, replace(certificate, lower_bound=None)


def _checked(workload: Workload, name: str, basis: ArrayLike) -> Array:
    if name not in workload.domain.names:
        raise WorkloadError(f"bases: there is no attribute {name!r}")
    rows = np.asarray(basis, dtype=np.float64)
    size = workload.domain[name].size
    if rows.ndim != 2 or rows.shape[1] != size or not np.isfinite(rows).all():
        raise WorkloadError(f"bases: {name!r} needs a finite matrix with {size} columns; found {rows.shape}")
    return rows


def own_bases(split: Split, gap: float) -> dict[int, Array]:
    """Return for each attribute type the optimal strategy of its own queries and the total.

    For types whose queries are not symmetric: the strategy that is optimal for the queries with their mean
    removed, together with the total. For types that only explicit queries ask about, that of prefixes.
    ResidualPlanner+ leaves strategies to the user; with these its published figures are reproduced.
    """
    grams: dict[int, Array] = {}
    for slot in split.slots:
        if split.free[slot.type] and slot.gram.definite:
            gram = slot.gram.matrix()
            grams[slot.type] = grams.get(slot.type, np.zeros_like(gram)) + gram
    for item in split.explicit:
        for type_, size in zip(item.types, item.content.sizes, strict=True):
            if type_ not in grams and size > 1:
                prefix = np.tril(np.ones((size, size)))
                grams[type_] = prefix.T @ prefix
    bases = {}
    for type_, gram in grams.items():
        mean = gram.mean(axis=0)
        centered = gram - mean[:, None] - mean[None, :] + mean.mean()
        bases[type_] = solve_gram(centered + 1.0, gap=gap).rows
    return bases


def residual_basis(basis: Array, weights: Array) -> Array:
    """Return a basis B with its weighted mean removed: independent rows, the largest column norm 1.

    Their Gram matrix is that of B (I - w 1'), up to scale.

    Examples
    --------
    >>> residual_basis(np.eye(2), np.array([0.5, 0.5])).shape
    (1, 2)
    """
    basis = basis / (float(np.abs(basis).max(initial=0.0)) or 1.0)  # squares neither overflow nor vanish
    rows = basis @ (np.eye(len(weights)) - np.outer(weights, np.ones(len(weights))))
    values, vectors = scipy.linalg.eigh(rows.T @ rows, driver="evd", check_finite=False)
    keep = values > _RANK * values[-1]
    if not values[-1] > _RANK * float((basis**2).sum()):
        raise WorkloadError("bases: found a basis that measures nothing but the total")
    rows = (vectors[:, keep] * np.sqrt(values[keep])).T
    return np.asarray(rows / math.sqrt(float((rows**2).sum(axis=0).max())))


def fixed_factor(rows: Array, gram: Array) -> Factor:
    """Return a given strategy with its loss on a Gram matrix.

    Raises WorkloadError if the basis does not span the queries.

    Examples
    --------
    >>> basis = residual_basis(np.eye(2), np.array([0.5, 0.5]))
    >>> round(fixed_factor(basis, np.array([[0.5, -0.5], [-0.5, 0.5]])).loss, 9)
    0.5
    """
    inverse = right_inverse(rows)
    inside = inverse @ (rows @ gram)
    if float(np.abs(inside - gram).max()) > _OUTSIDE * float(np.abs(gram).max()):
        raise WorkloadError("bases: a basis does not span the attribute's queries; give one that does")
    return Factor(rows, float(np.einsum("ia,ia->", inverse, gram @ inverse)))


@dataclass(frozen=True, eq=False)
class GivenBases(Construction):
    """One strategy for each attribute type, its mean removed, in every sub-workload that keeps the type.

    Attributes
    ----------
    bases : mapping of int to ndarray
        By attribute type; types without one measure all values alike.
    """

    bases: Mapping[int, Array]
    name = "fixed"
    by_type = True

    def axis(self, type_: int, weights: Array, gram: Callable[[], Array], structured: bool) -> Factor | None:
        """Return the basis that is given for a type, if any."""
        basis = self.bases.get(type_)
        return None if basis is None else fixed_factor(residual_basis(basis, weights), gram())

    def joint(self, types: Sequence[int], weights: Sequence[Array], problem: KronSum) -> Product:
        """Return the product of the bases with its loss on a problem; they have to span the queries."""
        factors = []
        for axis, (type_, w) in enumerate(zip(types, weights, strict=True)):
            rows = residual_basis(self.bases.get(type_, np.eye(len(w))), w)
            grams = [problem.gram(axis, key) for key in problem.sets[axis]]
            for _, _, tensor in problem.explicit:
                flat = np.moveaxis(tensor, axis + 1, -1).reshape(-1, problem.sizes[axis])
                grams.append(flat.T @ flat)
            factors.append([fixed_factor(rows, gram) for gram in grams][-1])
        return Product(tuple(factors), problem.loss([factor.inverse for factor in factors]))


def _read_bases(given: object) -> Mapping[str, PredicateForm]:
    from matrixdp.specification.load import read_bases  # reads YAML, which other mechanisms do without

    return read_bases(given)


@dataclass(frozen=True)
class PlusOptions(ConvexOptions):
    """What ResidualPlanner+ can be told."""

    bases: Mapping[str, PredicateForm] | None = option(
        None, "a file or mapping of what is measured of each attribute", read=_read_bases
    )


def _plus(task: Task[PlusOptions]) -> Choice:
    from matrixdp.specification.load import bases_on

    bases = bases_on(task.workload.domain, task.options.bases or {})
    return select_residual_planner_plus(task.workload, task.noise, bases, task.options.gap)


register(
    Mechanism(
        "residualplanner",
        "Xiao et al. 2023: residuals of marginals, for workloads of marginals",
        (2,),
        Options,
        lambda task: select_residual_planner(task.workload, task.noise),
    )
)
register(
    Mechanism(
        "residualplanner-plus",
        "ResidualPlanner+: residuals in a given basis for each attribute",
        (2,),
        PlusOptions,
        _plus,
    )
)
