"""The decomposition where some queries are on pairs of attributes that do not factor: a joint plan.

Every pair with explicit queries becomes a whole table, with all that is asked of the pair, of its attributes
alone and of the total: `joint_design` chooses the strategies together. What is asked of other sets of
attributes splits as in the decomposition, with optimized weights; its pieces on the tables, on their one-way
marginals and on the total are asked of the tables, and only the others are measured apart.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import scipy  # its parts are read when they are first used
from numpy.typing import NDArray

from matrixdp.domain import Domain
from matrixdp.noise import GAUSSIAN
from matrixdp.plan import Joint, Part, Plan, residual_weights
from matrixdp.queries import DenseGroup, Group, Workload
from matrixdp.selection.compose.assembly import assemble
from matrixdp.selection.compose.decomposition import select_by_decomposition, solve_classes, sub_solver_for
from matrixdp.selection.compose.joint_design import Design, DesignTable, Role, design_jointly
from matrixdp.selection.compose.methods import describe_methods
from matrixdp.selection.compose.rounding import measured_matrix, product_blocks
from matrixdp.selection.compose.sub_solver import SubSolver
from matrixdp.selection.compose.weight_vectors import optimized_weights
from matrixdp.selection.problem.merge_groups import GivenGroups
from matrixdp.selection.problem.residuals import Pieces, Split, SubWorkload, numeric_terms, split_workload
from matrixdp.selection.selection import Certificate

__all__ = ["joint_pairs", "select_jointly"]

Array = NDArray[np.float64]
Names = tuple[str, ...]
Progress = Callable[[str, float | None], None]

#: Independent queries on a table, its one-way marginals included, up to which it is designed whole.
MAX_TABLE_RANK = 600
#: Cells of such a table.
MAX_TABLE_CELLS = 8_000
#: Entries of a group's queries, written out.
MAX_WRITTEN_ENTRIES = 20_000_000
#: Unknowns of the one-way marginals, those of attributes that can be exchanged counted once, in the search,
#: and all of them.
MAX_SEARCHED_UNKNOWNS, MAX_SHARED_UNKNOWNS = 1_500, 4_000


def joint_pairs(workload: Workload) -> list[Names]:
    """Return the pairs of attributes that are measured whole, if any: those with explicit queries.

    None of them where a table would be too large, or the one-way marginals together.

    Examples
    --------
    >>> import matrixdp as mdp
    >>> domain = mdp.Domain({"a": range(4), "b": range(4), "c": range(4)})
    >>> joint_pairs(mdp.Workload(domain, mdp.kway(1, "prefix"), mdp.pairwise("abs", attributes=["a", "c"])))
    [('a', 'c')]
    """
    groups: dict[Names, list[Group]] = defaultdict(list)
    for group in workload:
        large = group.queries * math.prod(group.sizes) > MAX_WRITTEN_ENTRIES
        if large and (isinstance(group, DenseGroup) or len(group.attributes) == 2):
            return []  # its queries would be written out
        if len(group.attributes) == 2:
            groups[group.attributes].append(group)
    pairs = [pair for pair, own in groups.items() if any(map(_explicit, own))]
    for pair in pairs:
        sizes = [workload.domain[name].size for name in pair]
        cells, rank = math.prod(sizes), sum(group.queries for group in groups[pair]) + sum(sizes) - 1
        if any(set(pair) < set(group.attributes) for group in workload):
            rank = cells
        if cells > MAX_TABLE_CELLS or min(rank, cells) > MAX_TABLE_RANK or 1 in sizes:
            return []
    names = {name for pair in pairs for name in pair}
    unknowns = sum(workload.domain[name].size - 1 for name in names)
    return pairs if unknowns <= MAX_SHARED_UNKNOWNS else []


def _explicit(group: Group) -> bool:
    """Return whether a group is neither a product nor a sum of few."""
    return isinstance(group, DenseGroup) and not group.summands


def select_jointly(
    workload: Workload,
    gap: float,
    progress: Progress | None = None,
    sub_solver: str = "auto",
    seed: int = 0,
) -> tuple[Plan, Certificate] | None:
    """Select a joint plan for Gaussian noise, or return None where no pair is measured whole.

    Examples
    --------
    >>> import matrixdp as mdp
    >>> domain = mdp.Domain({"a": range(4), "b": range(4), "c": range(4)})
    >>> workload = mdp.Workload(domain, mdp.kway(1, "prefix"), mdp.pairwise("affine"))
    >>> plan, _ = select_jointly(workload, 1e-6)
    >>> [part.attributes for part in plan.parts], round(plan.cost, 9)
    ([('a', 'b'), ('a', 'c'), ('b', 'c')], 1.0)
    """
    pairs = joint_pairs(workload)
    if not pairs:
        return None
    held = {(), *pairs, *((name,) for pair in pairs for name in pair)}
    own: dict[Names, list[Group]] = defaultdict(list)
    rest: list[Group] = []
    for group in workload:
        if group.attributes in held:
            own[group.attributes].append(group)
        else:
            rest.append(group)

    others = None
    if rest:
        others = _others(workload.domain, rest, held, gap, progress, sub_solver, seed)
    problem = _problem(workload, pairs, own, {} if others is None else others.pulled)
    if problem is None:
        return None
    choice = _choice(workload, problem, others, progress)
    if others is None:
        return choice
    # where queries on more attributes weigh most, tables of their own can lose by their lifts
    split_apart = select_by_decomposition(workload, GAUSSIAN, "residual", gap, progress, sub_solver, seed)
    return min(choice, split_apart, key=lambda found: found[1].loss)


def _choice(
    workload: Workload, problem: _Problem, others: _Others | None, progress: Progress | None
) -> tuple[Plan, Certificate]:
    """Return the joint plan, its loss that of the integer matrices."""

    def report(rounds: int, loss: float) -> None:
        if progress is not None:
            progress(f"designing tables jointly ({rounds} rounds, error {math.sqrt(loss):.6g})", None)

    design = design_jointly(problem.roles, [table for _, table in problem.tables], problem.total, report)
    apart = None if others is None else others.solve(progress)
    losses = [design.loss] if apart is None else [design.loss, apart[1]]
    shares = GAUSSIAN.best_shares(losses, [1] * len(losses))
    parts = problem.measured(workload.domain, design, shares[0])
    marks = [1.0] * len(parts)
    if apart is not None:
        parts += [replace(part, variance=part.variance / shares[1]) for part in apart[0]]
        marks += [0.0] * len(apart[0])
    sizes = zip(workload.domain.names, workload.domain.shape, strict=True)
    weights = {name: residual_weights(size) for name, size in sizes}
    if others is not None:
        weights |= {name: others.solver.pieces.weights[type_] for name, type_ in others.split.types.items()}
    plan = Joint(workload.domain, tuple(parts), GAUSSIAN, weights, {"parts": np.array(marks)})
    loss = math.fsum(plan.analysis.group(group).weighted for group in workload)
    methods = "" if apart is None else apart[2]
    return plan, Certificate(loss, None, f"no bound for the decomposition at this size{methods}")


def _others(
    domain: Domain,
    rest: Sequence[Group],
    held: Collection[Names],
    gap: float,
    progress: Progress | None,
    sub_solver: str,
    seed: int,
) -> _Others:
    """Split the groups that tables alone do not answer, with optimized weights."""

    def report(evaluations: int, phi: float) -> None:
        if progress is not None:
            progress(f"optimizing weights ({evaluations} evaluations, error {phi:.6g})", None)

    split = split_workload(Workload(domain, GivenGroups(tuple(rest))))
    pieces = Pieces(split, optimized_weights(split, report))
    return _Others(domain, split, sub_solver_for(pieces, GAUSSIAN, gap, sub_solver, seed), held)


class _Others:
    """What tables alone do not answer: its pieces on what they hold, and those that are measured apart.

    Attributes
    ----------
    pulled : dict of tuple of str to ndarray
        The Gram matrices of the pieces on marginals that follow from the tables.
    """

    def __init__(self, domain: Domain, split: Split, solver: SubSolver, held: Collection[Names]) -> None:
        self.domain, self.split, self.solver = domain, split, solver
        self.pulled: dict[Names, Array] = {}
        self.apart: list[SubWorkload] = []
        for sub in split.classes:
            inside = [marginal for marginal in sub.marginals if marginal in held]
            if inside:
                gram = self._gram(sub)
                self.pulled |= dict.fromkeys(inside, gram)
            outside = tuple(marginal for marginal in sub.marginals if marginal not in held)
            if outside:
                self.apart.append(replace(sub, marginals=outside))

    def _gram(self, sub: SubWorkload) -> Array:
        terms, explicit = numeric_terms(self.solver.pieces, sub), self.solver.explicit(sub)
        if sub.types:
            return np.zeros(()) + self.solver.gram(terms, explicit)
        total = sum(term.coefficient for term in terms)
        return np.full(
            (1, 1), total + math.fsum(weight * float((rows**2).sum()) for weight, rows in explicit)
        )

    def solve(self, progress: Progress | None) -> tuple[list[Part], float, str] | None:
        """Return parts at privacy cost 1 for what is measured apart, their loss, and how they were solved."""
        if not self.apart:
            return None
        chosen = replace(self.split, classes=tuple(self.apart))
        solved = solve_classes(chosen, self.solver, progress)
        plan = assemble(self.domain, chosen, self.solver, solved)
        loss = GAUSSIAN.total_loss([s.loss for _, s in solved], [len(sub.marginals) for sub, _ in solved])
        return list(plan.parts), loss, describe_methods(self.solver, solved)


@dataclass(frozen=True, eq=False)
class _Problem:
    """What is asked of the tables: see `design_jointly`; each class of tables with its marginals."""

    roles: list[Role]
    tables: list[tuple[list[Names], DesignTable]]
    total: float

    def measured(self, domain: Domain, design: Design, share: float) -> list[Part]:
        """Return the tables as integer matrices at a share of the privacy cost."""
        parts = []
        for (pairs, _), factor, own in zip(self.tables, design.factors, design.shares, strict=True):
            matrix = measured_matrix(factor, GAUSSIAN)
            for pair in pairs:
                part = Part(pair, product_blocks(domain, [(pair, matrix)]), 1.0)
                parts.append(part.at_cost(GAUSSIAN, share * own))
        return parts


def _problem(
    workload: Workload,
    pairs: Sequence[Names],
    own: Mapping[Names, list[Group]],
    pulled: Mapping[Names, Array],
) -> _Problem | None:
    """Return what is asked of the tables, or None where the search would be too large."""
    domain = workload.domain
    split = split_workload(workload)
    numbers = {marginal: number for number, sub in enumerate(split.classes) for marginal in sub.marginals}
    classes: dict[int, list[Names]] = defaultdict(list)
    for pair in pairs:
        classes[numbers[pair]].append(pair)
    found = [(names, _queries(own[names[0]], pulled.get(names[0]))) for names in classes.values()]
    names = domain.sort({name for pair in pairs for name in pair})
    role_of = {name: split.types[name] for name in names}
    if not all(_exchangeable(one, queries, role_of) for one, queries in found):
        role_of = {name: place for place, name in enumerate(names)}
    order = {role: place for place, role in enumerate(dict.fromkeys(role_of.values()))}
    members: list[list[str]] = [[] for _ in order]
    for name in names:
        members[order[role_of[name]]].append(name)
    roles = []
    for first, *others in members:
        size = domain[first].size
        roles.append(Role(size, 1 + len(others), _gram(own.get((first,), ()), pulled.get((first,)), size)))
    if sum(role.size - 1 for role in roles) > MAX_SEARCHED_UNKNOWNS:
        return None
    tables = []
    for one, queries in found:
        instances: Counter[tuple[int, ...]] = Counter(tuple(order[role_of[n]] for n in pair) for pair in one)
        sizes = tuple(domain[name].size for name in one[0])
        tables.append((one, DesignTable(sizes, queries, list(instances.items()))))
    return _Problem(roles, tables, float(_gram(own.get((), ()), pulled.get(()), 1)[0, 0]))


def _exchangeable(pairs: Sequence[Names], queries: Array, role_of: Mapping[str, int]) -> bool:
    """Return whether a class has all pairs of its two roles, and is the same after exchanges."""
    first, second = (role_of[name] for name in pairs[0])
    counts = Counter(role_of.values())
    if first != second:
        return len(pairs) == counts[first] * counts[second]
    if len(pairs) != counts[first] * (counts[first] - 1) // 2:
        return False
    size = math.isqrt(queries.shape[1])
    swapped = queries.reshape(-1, size, size).swapaxes(1, 2).reshape(queries.shape)
    gap = queries.T @ queries - swapped.T @ swapped
    return float(np.abs(gap).max()) <= 1e-9 * float((queries**2).sum())


def _weighted(group: Group) -> Array:
    """Return the queries of a group times the roots of their weights."""
    own = group.weight * (1.0 if group.query_weights is None else group.query_weights[:, None])
    return np.asarray(np.sqrt(own) * group.rows())


def _queries(groups: Sequence[Group], pieces: Array | None) -> Array:
    """Return rows with the Gram matrix of all that is asked of a table."""
    rows = [_weighted(group) for group in groups]
    if pieces is not None:
        values, vectors = scipy.linalg.eigh(pieces, driver="evd", check_finite=False)
        rows.append((vectors * np.sqrt(np.maximum(values, 0.0))).T)
    return np.vstack(rows)


def _gram(groups: Sequence[Group], pieces: Array | None, size: int) -> Array:
    """Return the Gram matrix of all that is asked of one attribute or of the total."""
    total = np.zeros((size, size)) if pieces is None else pieces.copy()
    for group in groups:
        if isinstance(group, DenseGroup) or group.query_weights is not None:
            rows = _weighted(group)
            total += rows.T @ rows
        elif group.attributes:
            total += group.weight * group.predicates[0].gram(size)
        else:
            total += group.weight
    return total
