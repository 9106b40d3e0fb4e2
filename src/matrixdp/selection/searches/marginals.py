"""OPT_M and its generalization: weighted marginals, measured by products of their attributes' strategies.

Which marginals are measured, their shares of the cost and one strategy for each role of attributes are
searched in turn, for the error of the global least squares of all that is measured. With the identity for
every attribute they are the weighted marginals of OPT_M, and only the first two are searched. Under Laplace
noise ordered attributes may have walks, the same in every marginal, if no marginal then has two.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from matrixdp.domain import Domain
from matrixdp.errors import NumericalError, WorkloadError
from matrixdp.exact import IdentityMatrix, MeasuredMatrix
from matrixdp.exact.linear import Array
from matrixdp.noise import Noise
from matrixdp.plans import Block, Part, Plan, Pooled
from matrixdp.queries import Workload
from matrixdp.selection.compose.rounding import measured_factor
from matrixdp.selection.gram.factor import Factor
from matrixdp.selection.gram.opt_0 import solve_axis
from matrixdp.selection.gram.p_identity import strategy_rows, tree_start
from matrixdp.selection.limits import LIMITS
from matrixdp.selection.problem.residual_traces import (
    AxisState,
    ResidualTraces,
    marginal_spectrum,
    residual_traces,
)
from matrixdp.selection.registry import Progress, silent
from matrixdp.selection.searches.coverage import (
    Coverage,
    Subset,
    convex_weights,
    coverage,
    greedy_cover,
    laplace_shares,
    lower_bound,
    polished,
)
from matrixdp.selection.searches.walks import NO_BOUND, one_walk, walk_for, walking
from matrixdp.selection.selection import Certificate

#: A strategy of an attribute, or None for the identity.
Basis = Array | MeasuredMatrix | None
#: The norm of the columns of the identity that gives a Gaussian strategy full rank.
_REGULAR = 1e-3
#: The norm of the columns of a total that is measured for an exact row space alone.
_FAINT = 2.0**-7
#: Squared share of the total that may lie outside the row space of a matrix that measures it.
_OUTSIDE = 1e-18
#: Roles whose walks are compared where not all can have one.
_COMPARED = 8
#: Larger attributes keep the strategy that is best for them alone.
_MAX_SEARCHED = 1_024


def select_marginals(
    workload: Workload,
    noise: Noise,
    *,
    seed: int = 0,
    restarts: int = 10,
    progress: Progress = silent,
) -> tuple[Plan, Certificate]:
    """Select the best weights of measured marginals.

    What is weighted are the marginals on the downward closure of what is asked and, as far as they are few,
    larger ones: any number of attributes will do. Under Gaussian noise the problem is convex and solved to a
    certified gap; under Laplace noise supports are searched by covers and moves.

    References
    ----------
    McKenna et al. 2018, section 6.3 (OPT_M); journal version, section 7.

    Examples
    --------
    >>> import matrixdp as mdp
    >>> from matrixdp.noise import LAPLACE
    >>> domain = mdp.Domain({"a": 2, "b": 5, "c": 50, "d": 100})
    >>> _, certificate = select_marginals(mdp.Workload(domain, mdp.marginals(2)), LAPLACE)
    >>> certificate.loss / 2 < 62_886.5  # McKenna et al., Table 3
    True
    """
    progress("weighting marginals", None)
    asked = marginal_spectrum(workload)
    allowed = _allowed(workload, asked.attributes)
    problem = coverage(asked.residuals, asked.weights, asked.sizes, allowed, noise.norm)
    scope = "no bound on all strategies"
    if noise.norm == 2:
        shares = convex_weights(problem)
        loss = problem.loss(shares)
        gap = max(loss / lower_bound(problem, shares) - 1.0, 0.0)
        scope += f"; within {gap:.1e} of the best weighted marginals"
        if len(problem.marginals) < 2 ** len(asked.sizes):
            scope += f" of the {len(problem.marginals):,} considered"
    else:
        loss, shares = laplace_shares(problem, seed=seed, restarts=restarts)
    plan = _plan(workload, asked.attributes, problem.marginals, shares, {}, noise)
    return plan, Certificate(noise.variance_factor * loss, None, scope)


def select_generalized_marginals(
    workload: Workload,
    noise: Noise,
    *,
    seed: int = 0,
    restarts: int = 10,
    progress: Progress = silent,
) -> tuple[Plan, Certificate]:
    """Select weighted marginals, each measured by the product of its attributes' strategies.

    Attributes that play the same role share their strategy (p-Identity under Laplace noise); those that are
    asked for identities and totals alone keep the identity.

    References
    ----------
    McKenna et al. 2018, sections 5.2 (p-Identity) and 6.3 (weighted marginals), which this joins.

    Examples
    --------
    >>> import matrixdp as mdp
    >>> from matrixdp.noise import LAPLACE
    >>> domain = mdp.Domain({"age": range(32), "sex": ["f", "m"], "race": 4})
    >>> workload = mdp.Workload(domain, mdp.kway([1, 2], {"numeric": "prefix", "categorical": "identity"}))
    >>> plan, certificate = select_generalized_marginals(workload, LAPLACE, restarts=2)
    >>> round(plan.cost, 6), (certificate.loss / workload.queries) ** 0.5 < 14.3
    (1.0, True)
    """
    search = _searching(workload, noise, seed, restarts, _Effort())
    return _choice(workload, search, search.best(progress), "no bound on all strategies")


def select_walk_marginals(
    workload: Workload,
    noise: Noise,
    *,
    seed: int = 0,
    restarts: int = 10,
    progress: Progress = silent,
) -> tuple[Plan, Certificate]:
    """Select weighted marginals in which ordered attributes have walks, at most one in each marginal.

    All others have strategies as in `select_generalized_marginals`.

    Raises
    ------
    WorkloadError
        If no attribute has queries for which a walk is made.

    Examples
    --------
    >>> import matrixdp as mdp
    >>> from matrixdp.noise import LAPLACE
    >>> domain = mdp.Domain({"age": range(32), "sex": ["f", "m"], "race": 4})
    >>> workload = mdp.Workload(domain, mdp.kway([1, 2], {"numeric": "prefix", "categorical": "identity"}))
    >>> plan, certificate = select_walk_marginals(workload, LAPLACE, restarts=2)
    >>> round(plan.cost, 6), (certificate.loss / workload.queries) ** 0.5 < 12.9
    (1.0, True)
    """
    found = _walking(workload, noise, seed, restarts, _Effort(), progress)
    if found is None:
        told = "walk-marginals, but nothing is asked that walks are for"
        raise WorkloadError.at(("mechanism",), told, "queries such as prefixes and ranges")
    return _choice(workload, *found, NO_BOUND)


def _choice(workload: Workload, search: _Search, found: _Found, scope: str) -> tuple[Plan, Certificate]:
    asked, noise = search.asked, search.noise
    roles = dict(zip(asked.attributes, asked.types, strict=True))
    bases: dict[str, Basis] = {
        name: found.strategies[role].basis for name, role in roles.items() if role in found.strategies
    }
    plan = _plan(workload, asked.attributes, found.problem.marginals, found.shares, bases, noise)
    return plan, Certificate(noise.variance_factor * found.loss, None, scope)


def first_generalized_loss(workload: Workload, noise: Noise) -> float:
    """Return the loss at cost 1 of a fast trial of `select_generalized_marginals`.

    Examples
    --------
    >>> import matrixdp as mdp
    >>> from matrixdp.noise import LAPLACE
    >>> domain = mdp.Domain({"age": range(32), "sex": ["f", "m"]})
    >>> workload = mdp.Workload(domain, mdp.kway([1, 2], {"numeric": "prefix", "categorical": "identity"}))
    >>> searched = select_generalized_marginals(workload, LAPLACE)[1].loss
    >>> searched <= first_generalized_loss(workload, LAPLACE) < 1.1 * searched
    True
    """
    return noise.variance_factor * _searching(workload, noise, 0, 0, _TRIAL).best().loss


def first_walk_marginals_loss(workload: Workload, noise: Noise) -> float:
    """Return the loss at cost 1 of a fast trial of `select_walk_marginals`; infinite where it has nothing.

    Examples
    --------
    >>> import matrixdp as mdp
    >>> from matrixdp.noise import LAPLACE
    >>> domain = mdp.Domain({"age": range(32), "sex": ["f", "m"]})
    >>> workload = mdp.Workload(domain, mdp.kway([1, 2], {"numeric": "prefix", "categorical": "identity"}))
    >>> first_walk_marginals_loss(workload, LAPLACE) < first_generalized_loss(workload, LAPLACE)
    True
    """
    found = _walking(workload, noise, 0, 0, _TRIAL, silent)
    return math.inf if found is None else noise.variance_factor * found[1].loss


def _searching(
    workload: Workload, noise: Noise, seed: int, restarts: int, effort: _Effort, apart: str | None = None
) -> _Search:
    """Return the search for a workload, in which an attribute may have a role of its own."""
    asked = residual_traces(workload, apart)
    return _Search(asked, noise, _allowed(workload, asked.attributes), seed, restarts, effort)


def _walking(
    workload: Workload, noise: Noise, seed: int, restarts: int, effort: _Effort, progress: Progress
) -> tuple[_Search, _Found] | None:
    """Return what is found with walks: of attributes of any role, or where none can, of one by itself."""
    ordered = walking(workload, noise)
    if not ordered:
        return None
    largest = max(ordered, key=lambda name: workload.domain[name].size)
    for apart in (None, largest):
        search = _searching(workload, noise, seed, restarts, effort, apart)
        found = search.with_walks(ordered, progress)
        if found is not None:
            return search, found
    return None


def _allowed(workload: Workload, attributes: Sequence[str]) -> Callable[[Subset], bool]:
    """Return whether a marginal that is larger than what is asked may be measured: counted, above all."""
    sizes = [workload.domain.counted([name]) for name in attributes]
    return lambda marginal: math.prod(sizes[axis] for axis in marginal) <= LIMITS.max_marginal_cells


@dataclass(frozen=True, eq=False)
class _Strategy:
    """The strategy of a role of attributes: rows of full rank, or walks, and their covariance at cost 1."""

    basis: Array | MeasuredMatrix
    covariance: Array = field(init=False)

    def __post_init__(self) -> None:
        if isinstance(self.basis, MeasuredMatrix):
            covariance: Array = self.basis.sensitivity**2 * self.basis.covariance()
        else:
            covariance = np.asarray(np.linalg.inv(self.basis.T @ self.basis))
        object.__setattr__(self, "covariance", covariance)

    @property
    def walks(self) -> bool:
        return isinstance(self.basis, MeasuredMatrix)

    @classmethod
    def of(cls, factor: Factor, noise: Noise) -> _Strategy | None:
        """Return a factor, or None if under Laplace noise it is no p-Identity strategy, nor a walk."""
        if isinstance(factor.strategy, MeasuredMatrix) and factor.strategy.walk is not None:
            return cls(factor.strategy)
        rows = factor.rows
        size = rows.shape[1]
        if noise.norm == 2:
            rows = np.vstack([rows, _REGULAR * np.eye(size)])
            return cls(rows / np.linalg.norm(rows, axis=0))
        diagonal = np.diagonal(rows)
        return cls(rows) if np.count_nonzero(rows[:size]) == np.count_nonzero(diagonal) == size else None


@dataclass(frozen=True, eq=False)
class _Found:
    """Measured marginals, shares of the cost with sum 1, and strategies by role; identities on all others."""

    loss: float
    problem: Coverage
    shares: Array
    strategies: Mapping[int, _Strategy]

    def without_unmeasured(self) -> _Found:
        """Return the same without the marginals of share 0."""
        support = np.flatnonzero(self.shares)
        return replace(self, problem=self.problem.restricted(support), shares=self.shares[support])


@dataclass(frozen=True)
class _Effort:
    """How long strategies are searched.

    Attributes
    ----------
    thorough : int
        Up to this many values an attribute's own problem is searched at length.
    sweeps : int
        Over shares and strategies, at most.
    gain : float
        The least relative gain in loss for which another sweep is made.
    rounds : int
        In which marginals are searched again for the strategies found.
    """

    thorough: int = 256
    sweeps: int = 30
    gain: float = 1e-5
    rounds: int = 4


_TRIAL = _Effort(0, 6, 1e-4, 1)


@dataclass(frozen=True, eq=False)
class _Search:
    """The search for marginals, shares and strategies of one workload; equal seeds find the same."""

    asked: ResidualTraces
    noise: Noise
    allowed: Callable[[Subset], bool]
    seed: int
    restarts: int
    effort: _Effort

    @property
    def power(self) -> int:
        """The precision of a share is this power of it."""
        return 2 // self.noise.norm

    def best(self, progress: Progress = silent) -> _Found:
        """Return the best marginals, shares and strategies that are found.

        Each role starts from the optimum of what is asked of its attributes on their own, or from the
        identity, which is the better start where marginals are small.
        """
        own = self.alone(progress)
        starts = [own]
        if own and self.noise.norm == 1:
            starts.append({})
        progress("searching marginals", None)
        return min(map(self.searched, starts), key=lambda one: one.loss)

    def alone(self, progress: Progress) -> dict[int, _Strategy]:
        """Return the optimum of what is asked of the attributes of each role on their own."""
        own: dict[int, _Strategy] = {}
        for role, size in sorted(self.asked.free.items()):
            progress("searching strategies of attributes", None)
            effort = "full" if size <= self.effort.thorough else "fast"
            found = self.solved(self.asked.gram(role), effort, None)
            tree = tree_start(size, max(2, min(16, size // 2)))
            own[role] = found or _Strategy(strategy_rows(tree))
        return own

    def with_walks(self, ordered: Sequence[str], progress: Progress) -> _Found | None:
        """Return the same with walks of ordered attributes, or None if no role can have one.

        Roles have them one after the other, the most useful first, while no marginal that is asked has two.
        """
        others = {
            role
            for name, role in zip(self.asked.attributes, self.asked.types, strict=True)
            if name not in ordered
        }
        walks = {
            role: _Strategy(one_walk(self.asked.gram(role)).strategy)
            for role in sorted(set(self.asked.free) - others)
        }
        walks = {role: walk for role, walk in walks.items() if self.apart({role: walk})}
        if not walks:
            return None
        own = self.alone(progress)
        progress("searching marginals", None)
        if self.apart(walks):
            return self.searched(own | walks)
        # of many roles those of few values win least
        large = sorted(walks, key=lambda role: (-self.asked.free[role], role))
        losses = {role: self.weighted({**own, role: walks[role]}, None).loss for role in large[:_COMPARED]}
        found: dict[int, _Strategy] = {}
        for role in [*sorted(losses, key=lambda role: losses[role]), *large[_COMPARED:]]:
            more = found | {role: walks[role]}
            found = more if self.apart(more) else found
        return self.searched(own | found)

    def apart(self, strategies: Mapping[int, _Strategy]) -> bool:
        """Return whether no marginal that is asked has two walks."""
        walks = self.walked(strategies)
        return all(len(walks.intersection(residual)) < 2 for residual in self.asked.residuals)

    def walked(self, strategies: Mapping[int, _Strategy]) -> set[int]:
        """Return the places of the attributes with walks."""
        roles = {role for role, own in strategies.items() if own.walks}
        return {axis for axis, role in enumerate(self.asked.types) if role in roles}

    def searched(self, strategies: Mapping[int, _Strategy]) -> _Found:
        """Return the best marginals, shares and strategies that are found from given strategies."""
        best = self.alternated(self.weighted(strategies, None))
        for _ in range(self.effort.rounds if strategies else 1):
            before = best.loss
            weighted = self.weighted(best.strategies, best)
            best = self.alternated(min(best, weighted, key=lambda one: one.loss))
            if best.loss >= before * (1.0 - LIMITS.first_gain):
                break
        return best

    def solved(self, gram: Array, effort: str, start: Factor | None) -> _Strategy | None:
        """Return a strategy for a Gram matrix, or None if it cannot be changed further."""
        factor = solve_axis(gram, self.noise, gap=1e-4, seed=self.seed, effort=effort, start=start)
        return _Strategy.of(factor, self.noise)

    def states(self, strategies: Mapping[int, _Strategy]) -> dict[int, AxisState]:
        """Return the strategies of all roles as errors see them."""
        roles = zip(self.asked.types, self.asked.sizes, strict=True)
        known = {role: AxisState(own.covariance, len(own.covariance)) for role, own in strategies.items()}
        return {role: known.get(role) or AxisState(None, size) for role, size in roles}

    def weighted(self, strategies: Mapping[int, _Strategy], known: _Found | None) -> _Found:
        """Return the best marginals and shares: found quickly, or from known ones and thoroughly."""
        states = self.states(strategies)
        weights, spreads = self.asked.weights(states), self.asked.spreads(states)
        walks = self.walked(strategies)

        def allowed(marginal: Subset) -> bool:
            return len(walks.intersection(marginal)) < 2 and self.allowed(marginal)

        problem = coverage(self.asked.residuals, weights, spreads, allowed, self.noise.norm)
        if self.noise.norm == 2:
            shares = convex_weights(problem)
            loss = problem.loss(shares)
        elif known is None:
            loss, shares = polished(problem, greedy_cover(problem), 300, 1e-8)
        else:
            measured = dict(zip(known.problem.marginals, known.shares, strict=True))
            start = np.array([measured.get(marginal, 0.0) for marginal in problem.marginals])
            loss, shares = laplace_shares(problem, seed=self.seed, restarts=self.restarts, known=start)
        return _Found(loss, problem, shares, strategies).without_unmeasured()

    def alternated(self, known: _Found) -> _Found:
        """Improve strategies and shares in turn, each with the others fixed."""
        free = [role for role, own in known.strategies.items() if len(own.covariance) <= _MAX_SEARCHED]
        for sweep in range(self.effort.sweeps if free else 0):
            before = known.loss
            for role in free:
                known = self.improved(known, role, anew=sweep == 0)
            if self.noise.norm == 2:
                shares = convex_weights(known.problem)
                loss = known.problem.loss(shares)
            else:
                loss, shares = polished(known.problem, known.shares, 100, 1e-8)
            if loss < known.loss:
                known = replace(known, loss=loss, shares=shares).without_unmeasured()
            if known.loss >= before * (1.0 - self.effort.gain):
                break
        return known

    def improved(self, known: _Found, role: int, anew: bool) -> _Found:
        """Return the same with the strategy of a role that is better for the Gram matrix that the role sees.

        The loss is concave in the covariance of one attribute's strategy, all else fixed, so that its
        derivative is a Gram matrix whose own problem bounds it: what is better there is better here, where
        only one attribute has the role. The search goes on from the strategy known, or starts anew.
        """
        values, vectors = np.linalg.eigh(self.seen(known)[role])
        gram = np.asarray((vectors * np.maximum(values, 0.0)) @ vectors.T)  # definite but for rounding
        if not values[-1] > 0.0:
            return known
        old = known.strategies[role]
        start = None if anew else Factor(old.basis, float(np.vdot(gram, old.covariance)))
        new = _Strategy(walk_for(gram).strategy) if old.walks else self.solved(gram, "fast", start)
        if new is None:
            return known
        strategies = {**known.strategies, role: new}
        states = self.states(strategies)
        weights, spreads = self.asked.weights(states), tuple(self.asked.spreads(states))
        problem = replace(known.problem, weights=weights, spreads=spreads)
        loss = problem.loss(known.shares**self.power)
        return _Found(loss, problem, known.shares, strategies) if loss < known.loss else known

    def seen(self, known: _Found) -> dict[int, Array]:
        """Return the derivatives of the loss by the covariance of each role's strategy."""
        problem, precisions = known.problem, known.shares**self.power
        _, slopes = problem.loss_and_slopes(precisions)
        residual = problem.held @ (problem.scales * precisions)
        # nothing is asked of residuals that no marginal holds, whatever the strategies
        by_weight = np.divide(1.0, residual, out=np.zeros_like(residual), where=residual > 0)
        by_spread = np.zeros(len(problem.spreads))
        for marginal, change in zip(problem.marginals, slopes * precisions, strict=True):
            by_spread[list(marginal)] += change
        by_spread /= np.array(problem.spreads)
        return self.asked.slopes(self.states(known.strategies), by_weight, by_spread)


def _plan(
    workload: Workload,
    attributes: tuple[str, ...],
    marginals: tuple[Subset, ...],
    shares: Array,
    bases: Mapping[str, Basis],
    noise: Noise,
) -> Plan:
    precisions = {
        tuple(attributes[axis] for axis in marginal): float(share) ** (2 // noise.norm)
        for marginal, share in zip(marginals, shares, strict=True)
        if share > 0
    }
    return pooled_products(workload.domain, bases, precisions, noise)


def pooled_products(
    domain: Domain,
    bases: Mapping[str, Basis],
    precisions: Mapping[tuple[str, ...], float],
    noise: Noise,
) -> Plan:
    """Return the plan that measures products of one matrix for each attribute on many marginals.

    Parameters
    ----------
    domain : Domain
        The attributes.
    bases : mapping of str to ndarray, MeasuredMatrix or None
        For each attribute that is measured a strategy, shape (rows, size), whose largest column norm (that of
        the noise) is 1; None, or nothing, for the identity. One that does not determine the total of its
        attribute is given a faint row that does. A matrix is measured as it is.
    precisions : mapping of tuple of str to float
        For each marginal that is measured, its attributes in domain order: the inverse variance, before the
        noise's variance factor, of every row. They are scaled so that the whole costs 1.
    noise : Noise
        The noise.

    Returns
    -------
    Plan
        A pooled plan of privacy cost 1.

    Raises
    ------
    NumericalError
        If a strategy does not fit its attribute, a marginal is not in domain order or a precision is not
        above 0.

    Examples
    --------
    >>> import matrixdp as mdp
    >>> from matrixdp.noise import LAPLACE
    >>> halves = np.array([[0.5, 0.5], [0.5, 0.0], [0.0, 0.5]])
    >>> plan = pooled_products(
    ...     mdp.Domain({"a": 2, "b": 3}), {"a": halves}, {("a", "b"): 0.25, ("a",): 0.25}, LAPLACE
    ... )
    >>> plan.cost, [part.variance for part in plan.parts]
    (1.0, [32.0, 32.0])
    """
    known: dict[Hashable, MeasuredMatrix] = {}
    matrices: dict[str, MeasuredMatrix] = {}
    for name in {name for names in precisions for name in names}:
        rows = bases.get(name)
        if isinstance(rows, MeasuredMatrix):
            matrices[name] = rows
            continue
        if rows is not None and (rows.ndim != 2 or rows.shape[1] != domain[name].size):
            raise NumericalError(f"attribute {name!r}: a strategy of shape {rows.shape} does not fit it")
        key = domain[name].size if rows is None else (rows.shape, rows.tobytes())
        if key not in known:
            known[key] = IdentityMatrix(domain[name].size) if rows is None else _measured(rows, noise)
        matrices[name] = known[key]
    parts = []
    shares = {names: own ** (noise.norm / 2.0) for names, own in precisions.items()}
    total = math.fsum(shares.values())
    for names, share in shares.items():
        if names != domain.sort(names) or not precisions[names] > 0.0:
            raise NumericalError(f"marginal {names}: expected domain order and a precision above 0")
        part = Part(names, tuple(Block((name,), matrices[name]) for name in names), 1.0)
        parts.append(part.at_cost(noise, share / total))
    return Pooled(domain, tuple(parts), noise)


def _measured(rows: Array, noise: Noise) -> MeasuredMatrix:
    """Return the integer matrix that measures a strategy, and the total if the strategy does not."""
    matrix = measured_factor(rows, noise)
    if matrix.unsupported is None:
        return matrix
    outside = matrix.unsupported.sum(axis=1)
    if float(outside @ outside) <= _OUTSIDE * rows.shape[1]:
        return matrix
    total = np.full((1, rows.shape[1]), _FAINT)
    return measured_factor(np.vstack([(1.0 - _FAINT) * rows, total]), noise)
