"""The decomposition where some queries are on pairs of attributes that do not factor: a joint plan.

Every pair with explicit queries becomes a whole table, with all that is asked of the pair, of its attributes
alone and of the total. What is asked of other sets of attributes splits as in the decomposition, with
optimized weights; its pieces on the tables, on their one-way marginals and on the total are asked of the
tables, and only the others are measured apart.

Each class of tables gets one strategy B on its whole cells, measured with a share of the privacy cost; the
estimates are the global least squares of all tables (`matrixdp.plans.Joint`). The total squared error,

    sum over tables of tr(C X^+ C'),

is jointly convex in the strategies' Gram matrices X and the coefficients C of an unbiased linear estimator.
So the two are minimized in turn: for given coefficients each table is an optimal-design problem of its own
with the Gram matrix C'C, and the budget is split in closed form; for given strategies the coefficients are
those of least squares. Coefficients on a table stay in the span of the queries on it and of its one-way
marginals, so everything is of that rank, however many cells there are.

Attributes that can be exchanged have one role. Matrices over the unknowns (the total, and for every attribute
the contrasts of its one-way marginal) that exchanges leave alone are kept as their action on sums over a role
and on differences within it.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import scipy  # its parts are read when they are first used

from matrixdp.domain import Domain
from matrixdp.exact.linear import Array, contrasts, kronecker
from matrixdp.noise import GAUSSIAN
from matrixdp.plans import Joint, Part, Plan, residual_weights
from matrixdp.queries import DenseGroup, Group, Workload
from matrixdp.selection.compose.assembly import assemble
from matrixdp.selection.compose.decomposition import (
    describe_methods,
    select_by_decomposition,
    solve_classes,
    sub_solver_for,
)
from matrixdp.selection.compose.rounding import measured_matrix, product_blocks
from matrixdp.selection.compose.sub_solver import SubSolver
from matrixdp.selection.compose.weight_vectors import optimized_weights
from matrixdp.selection.gram import solve_rows
from matrixdp.selection.gram.factor import Factor
from matrixdp.selection.limits import LIMITS
from matrixdp.selection.problem.gather_groups import GivenGroups
from matrixdp.selection.problem.kron_sum import KronSum
from matrixdp.selection.problem.residuals import Pieces, Split, SubWorkload, numeric_terms, split_workload
from matrixdp.selection.registry import Progress, silent
from matrixdp.selection.selection import Certificate

Names = tuple[str, ...]
#: Eigenvalues of C'C below this are lifted to it; such directions fade, and never vanish.
_FLOOR = 1e-11
#: Cells of a table of pairs: a matrix of as many columns takes half a gigabyte.
_MAX_DESIGNED_CELLS = 8_000
#: A table of more independent queries is not designed whole.
_MAX_TABLE_RANK = 600
#: The most unknowns of one-way marginals: exchangeable ones counted once, and all of them.
_MAX_SEARCHED_UNKNOWNS = 1_500
_MAX_SHARED_UNKNOWNS = 4_000


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
    # a dense group with summands is a sum of few products
    if not any(isinstance(group, DenseGroup) and not group.summands for group in workload):
        return []
    groups: dict[Names, list[Group]] = defaultdict(list)
    for group in workload:
        large = group.queries * math.prod(group.sizes) > LIMITS.written_entries
        if large and (isinstance(group, DenseGroup) or len(group.attributes) == 2):
            return []  # its queries would be written out
        if len(group.attributes) == 2:
            groups[group.attributes].append(group)
    pairs = [
        pair
        for pair, own in groups.items()
        if any(isinstance(group, DenseGroup) and not group.summands for group in own)
    ]
    for pair in pairs:
        sizes = [workload.domain[name].size for name in pair]
        cells, rank = math.prod(sizes), sum(group.queries for group in groups[pair]) + sum(sizes) - 1
        if any(set(pair) < set(group.attributes) for group in workload):
            rank = cells
        if cells > _MAX_DESIGNED_CELLS or min(rank, cells) > _MAX_TABLE_RANK or 1 in sizes:
            return []
    unknowns = sum(workload.domain[name].size - 1 for name in {name for pair in pairs for name in pair})
    return pairs if unknowns <= _MAX_SHARED_UNKNOWNS else []


def select_jointly(
    workload: Workload,
    gap: float,
    progress: Progress = silent,
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
        (own[group.attributes] if group.attributes in held else rest).append(group)

    others = _Others({}, {}, lambda: ((), 0.0, ""))
    if rest:
        split = split_workload(Workload(workload.domain, GivenGroups(tuple(rest))))
        weights = optimized_weights(
            split, lambda n, phi: progress(f"optimizing weights ({n} evaluations, error {phi:.6g})", None)
        )
        solver = sub_solver_for(Pieces(split, weights), GAUSSIAN, gap, sub_solver, seed)
        others = _others(workload.domain, split, solver, held, progress)
    problem = _problem(workload, pairs, own, others.pulled)
    if problem is None:
        return None
    design = design_jointly(
        problem.roles,
        [table for _, table in problem.tables],
        problem.total,
        lambda n, loss: progress(f"designing tables jointly ({n} rounds, error {loss**0.5:.6g})", None),
    )
    choice = _choice(workload, problem, design, others)
    if not rest:
        return choice
    # where queries on more attributes weigh most, tables of their own can lose by their lifts
    split_apart = select_by_decomposition(workload, GAUSSIAN, "residual", gap, progress, sub_solver, seed)
    return min(choice, split_apart, key=lambda found: found[1].loss)


@dataclass(frozen=True, eq=False)
class _Others:
    """What tables alone do not answer.

    Attributes
    ----------
    pulled : dict of tuple of str to ndarray
        The Gram matrices of its pieces on marginals that follow from the tables.
    weights : dict of str to ndarray
        The vectors along which its attributes are split.
    solve : callable
        Returns parts at privacy cost 1 for the other pieces, their loss, and how they were solved.
    """

    pulled: dict[Names, Array]
    weights: dict[str, Array]
    solve: Callable[[], tuple[tuple[Part, ...], float, str]]


def _others(
    domain: Domain, split: Split, solver: SubSolver, held: Collection[Names], progress: Progress
) -> _Others:
    """Return the pieces of a split on what tables hold, and those that are measured apart."""
    pulled: dict[Names, Array] = {}
    classes: list[SubWorkload] = []
    for sub in split.classes:
        inside = [marginal for marginal in sub.marginals if marginal in held]
        if inside:
            terms, explicit = numeric_terms(solver.pieces, sub), solver.explicit(sub)
            total = math.fsum(weight * float((rows**2).sum()) for weight, rows in explicit)
            total += sum(term.coefficient for term in terms)
            gram = solver.gram(terms, explicit).explicit.entries if sub.types else np.full((1, 1), total)
            pulled |= dict.fromkeys(inside, gram)
        outside = tuple(marginal for marginal in sub.marginals if marginal not in held)
        if outside:
            classes.append(replace(sub, marginals=outside))

    def solve() -> tuple[tuple[Part, ...], float, str]:
        if not classes:
            return (), 0.0, ""
        apart = replace(split, classes=tuple(classes))
        solved = solve_classes(apart, solver, progress)
        loss = GAUSSIAN.total_loss([s.loss for _, s in solved], [len(sub.marginals) for sub, _ in solved])
        return assemble(domain, solver, solved).parts, loss, describe_methods(solver, solved)

    weights = {name: solver.pieces.weights[type_] for name, type_ in split.types.items()}
    return _Others(pulled, weights, solve)


@dataclass(frozen=True, eq=False)
class Role:
    """Attributes that can be exchanged.

    Attributes
    ----------
    size, count : int
        The values of each, and how many attributes there are.
    gram : ndarray, shape (size, size)
        The Gram matrix of what is asked of each alone.
    """

    size: int
    count: int
    gram: Array


@dataclass(frozen=True, eq=False)
class DesignTable:
    """A class of tables with equal queries.

    Attributes
    ----------
    sizes : tuple of int
        Values of its attributes.
    queries : ndarray, shape (queries, cells)
        What is asked of each table, square-rooted weights multiplied in.
    roles : list of (tuple of int, int)
        The roles of the attributes, and how many tables have these.
    """

    sizes: tuple[int, ...]
    queries: Array
    roles: list[tuple[tuple[int, ...], int]]

    @property
    def count(self) -> int:
        """The number of tables."""
        return sum(count for _, count in self.roles)


@dataclass(frozen=True)
class Design:
    """Strategies for the classes of tables, the share of the budget of each table, and the loss."""

    factors: list[Factor]
    shares: list[float]
    loss: float


@dataclass(frozen=True, eq=False)
class _Problem:
    """What is asked of the tables: see `design_jointly`; each class of tables with its marginals."""

    roles: list[Role]
    tables: list[tuple[list[Names], DesignTable]]
    total: float


def _problem(
    workload: Workload,
    pairs: Sequence[Names],
    own: Mapping[Names, list[Group]],
    pulled: Mapping[Names, Array],
) -> _Problem | None:
    """Set up the search; None where it would be too large."""
    domain, split = workload.domain, split_workload(workload)
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
    counts, roles = Counter(role_of.values()), []
    for role in order:
        first = next(name for name in names if role_of[name] == role)
        gram = np.zeros((domain[first].size,) * 2) + pulled.get((first,), 0.0)
        if own.get((first,)):
            gram += KronSum.of(domain, own[first,]).dense([first])
        roles.append(Role(len(gram), counts[role], gram))
    if sum(role.size - 1 for role in roles) > _MAX_SEARCHED_UNKNOWNS:
        return None
    tables = []
    for one, queries in found:
        instances = Counter(tuple(order[role_of[name]] for name in pair) for pair in one)
        sizes = tuple(domain[name].size for name in one[0])
        tables.append((one, DesignTable(sizes, queries, list(instances.items()))))
    total = float((_queries(own.get((), ()), pulled.get(())) ** 2).sum())
    return _Problem(roles, tables, total)


def _queries(groups: Sequence[Group], pieces: Array | None) -> Array:
    """Return rows with the Gram matrix of all that is asked of a table."""
    rows = []
    for group in groups:
        weights = group.weight * (1.0 if group.query_weights is None else group.query_weights[:, None])
        rows.append(np.asarray(np.sqrt(weights) * group.rows()))
    if pieces is not None:
        values, vectors = scipy.linalg.eigh(pieces, driver="evd", check_finite=False)
        rows.append((vectors * np.sqrt(np.maximum(values, 0.0))).T)
    return np.vstack(rows) if rows else np.zeros((0, 1))


def _exchangeable(pairs: Sequence[Names], queries: Array, role_of: Mapping[str, int]) -> bool:
    """Return whether a class has all pairs of its two roles, and is the same after exchanges."""
    first, second = (role_of[name] for name in pairs[0])
    counts = Counter(role_of.values())
    if first != second:
        return len(pairs) == counts[first] * counts[second]
    if len(pairs) != math.comb(counts[first], 2):
        return False
    size = math.isqrt(queries.shape[1])
    swapped = queries.reshape(-1, size, size).swapaxes(1, 2).reshape(queries.shape)
    gap = queries.T @ queries - swapped.T @ swapped
    return float(np.abs(gap).max()) <= 1e-9 * float((queries**2).sum())


def _choice(
    workload: Workload, problem: _Problem, design: Design, others: _Others
) -> tuple[Plan, Certificate]:
    """Return the joint plan, its loss that of the integer matrices."""
    apart, apart_loss, methods = others.solve()
    budget = GAUSSIAN.best_shares([design.loss, apart_loss], [1, 1])
    parts: list[Part] = []
    for (pairs, _), factor, share in zip(problem.tables, design.factors, design.shares, strict=True):
        matrix = measured_matrix(factor, GAUSSIAN)
        for pair in pairs:
            part = Part(pair, product_blocks(workload.domain, [(pair, matrix)]), 1.0)
            parts.append(part.at_cost(GAUSSIAN, budget[0] * share))
    marks = np.repeat([1.0, 0.0], [len(parts), len(apart)])
    parts += [replace(part, variance=part.variance / budget[1]) for part in apart]
    sizes = zip(workload.domain.names, workload.domain.shape, strict=True)
    weights = {name: residual_weights(size) for name, size in sizes} | others.weights
    plan = Joint(workload.domain, tuple(parts), GAUSSIAN, weights, {"parts": marks})
    loss = math.fsum(plan.analysis.group(group).weighted for group in workload)
    return plan, Certificate(loss, None, f"no bound for the decomposition at this size{methods}")


class _Exchangeable:
    """A symmetric matrix over the unknowns: its action on sums over roles, and on differences in each."""

    def __init__(self, roles: Sequence[Role]) -> None:
        self.roles, self._starts = roles, np.cumsum([1, *(role.size - 1 for role in roles)])
        self.sums = np.zeros((int(self._starts[-1]),) * 2)
        self.differences = [np.zeros((role.size - 1, role.size - 1)) for role in roles]

    def _placed(self, own: tuple[int, ...]) -> tuple[Array, list[tuple[int, slice, slice, bool]]]:
        """Return the map from a table's unknowns to sums, and its pairs of attributes of one role."""
        ends = np.cumsum([1, *(self.roles[role].size - 1 for role in own)])
        places = [slice(*ends[i : i + 2]) for i in range(len(own))]
        placed = np.zeros((int(ends[-1]), len(self.sums)))
        placed[0, 0] = 1.0
        for role, place in zip(own, places, strict=True):
            start, size = self._starts[role], self.roles[role].size - 1
            placed[place, start : start + size] = np.eye(size) / math.sqrt(self.roles[role].count)
        pairs = [
            (role, place, other, place is other)
            for role, place in zip(own, places, strict=True)
            for second, other in zip(own, places, strict=True)
            if role == second and self.roles[role].count > 1
        ]
        return placed, pairs

    def add(self, own: tuple[int, ...], count: int, block: Array) -> None:
        """Add one matrix over the total and the attributes of a table, for as many tables as there are."""
        placed, pairs = self._placed(own)
        self.sums += count * (placed.T @ block @ placed)
        for role, place, other, same in pairs:
            each = self.roles[role].count
            share = 1.0 / each if same else -1.0 / (each * (each - 1))
            self.differences[role] += count * share * block[place, other]

    def block(self, own: tuple[int, ...]) -> Array:
        """Return the matrix over the total and the attributes of one table."""
        placed, pairs = self._placed(own)
        found = placed @ self.sums @ placed.T
        for role, place, other, same in pairs:
            found[place, other] += (float(same) - 1.0 / self.roles[role].count) * self.differences[role]
        return np.asarray(found)

    def mapped(self, change: Callable[..., Array], *others: _Exchangeable) -> _Exchangeable:
        """Apply a product or an inverse to this matrix and others."""
        out = _Exchangeable(self.roles)
        out.sums = change(self.sums, *(other.sums for other in others))
        parts = zip(self.differences, *(other.differences for other in others), strict=True)
        out.differences = [
            change(*own) if role.count > 1 else own[0] for role, own in zip(self.roles, parts, strict=True)
        ]
        return out

    def inner(self, other: _Exchangeable) -> float:
        """Return the trace of the product of two matrices."""
        total = float((self.sums * other.sums).sum())
        for role, own, their in zip(self.roles, self.differences, other.differences, strict=True):
            total += (role.count - 1) * float((own * their).sum())
        return total


class _Table:
    """A class of tables in an orthonormal basis: one-way marginals first, then the rest of its queries."""

    def __init__(self, table: DesignTable) -> None:
        self.table = table
        maps = _one_way_maps(table.sizes)
        self.lengths = np.linalg.norm(maps, axis=1)
        marginals = maps / self.lengths[:, None]
        beyond = table.queries - (table.queries @ marginals.T) @ marginals
        self.basis = np.vstack([marginals, _row_space(beyond, float(np.abs(table.queries).max()))])
        inside = table.queries @ self.basis.T
        self.gram = inside.T @ inside
        self.known = len(maps)
        self.factor: Factor | None = None

    def solve(self, gram: Array, gap: float) -> Factor:
        """Solve the table's own problem for the Gram matrix C'C of coefficients in the basis."""
        values, vectors = scipy.linalg.eigh(gram, driver="evd", check_finite=False)
        roots = np.sqrt(np.maximum(values, _FLOOR * values[-1]))
        start = None if self.factor is None else self.factor.dual
        self.factor = solve_rows((vectors * roots).T @ self.basis, gap, start)
        return self.factor

    def measured(self, share: float) -> None:
        """Take what the table says of its unknowns at a share of the budget from its strategy."""
        assert self.factor is not None
        rows = self.factor.rows @ self.basis.T
        self.covariance = np.linalg.inv(share * (rows.T @ rows))
        own = self.covariance[:, : self.known]
        self.information = np.linalg.inv(own[: self.known]) / np.multiply.outer(self.lengths, self.lengths)
        self.lift = (own * self.lengths) @ self.information

    @property
    def beyond(self) -> float:
        """The loss of what the table says beyond its one-way marginals."""
        known = (self.covariance[:, : self.known] * self.lengths) @ self.lift.T
        return float((self.gram * (self.covariance - known)).sum())

    def coefficients(self, covariance: Array, asked: Array) -> Array:
        """Return C'C of least squares, from K and K H K over the table's unknowns."""
        maps = np.eye(self.known, len(self.basis)) * self.lengths[:, None]
        pulled = self.information @ maps
        left = np.eye(len(self.basis)) - self.lift @ maps
        cross = left.T @ (self.gram @ (self.lift @ covariance @ pulled))
        return np.asarray(left.T @ self.gram @ left + cross + cross.T + pulled.T @ asked @ pulled)


def _one_way_maps(sizes: Sequence[int]) -> Array:
    """Return the map from a table's cells to the total and the contrasts of its one-way marginals."""
    rows = [np.ones((1, math.prod(sizes)))]
    for axis, size in enumerate(sizes):
        sums = [np.ones((1, count)) for count in sizes]
        rows.append(kronecker([*sums[:axis], contrasts(size).T, *sums[axis + 1 :]]))
    return np.vstack(rows)


def _row_space(rows: Array, scale: float) -> Array:
    """Return an orthonormal basis of a row space; what is small beside ``scale`` is rounding error."""
    if not len(rows):
        return rows
    if len(rows) > rows.shape[1]:
        values, vectors = scipy.linalg.eigh(rows.T @ rows, driver="evd", check_finite=False)
        keep = values > max(LIMITS.span * values[-1], (LIMITS.span * scale) ** 2)
        return np.ascontiguousarray(vectors[:, keep].T)
    _, values, right = scipy.linalg.svd(rows, full_matrices=False, check_finite=False)
    return np.asarray(right[values > LIMITS.span * max(values[0], scale)])


def design_jointly(
    roles: Sequence[Role],
    tables: Sequence[DesignTable],
    total: float = 0.0,
    report: Callable[[int, float], None] | None = None,
) -> Design:
    """Choose the strategies of tables and their shares of the privacy cost.

    Parameters
    ----------
    roles : sequence of Role
        Exchanging attributes of one role must leave the problem as it is.
    tables : sequence of DesignTable
        Every role is that of an attribute of some table.
    total : float
        The weight with which the total itself is asked.
    report : callable, optional
        Called with the number of rounds and the loss.

    Examples
    --------
    >>> role = Role(2, 2, np.eye(2))
    >>> cells = DesignTable((2, 2), np.eye(4), [((0, 0), 1)])
    >>> round(design_jointly([role], [cells]).loss, 3)
    11.223
    """
    solved = [_Table(table) for table in tables]
    counts = [table.count for table in tables]
    asked = _asked(roles, total)
    held = np.zeros(len(roles))
    for table in tables:
        for own, count in table.roles:
            for role in own:
                held[role] += count / roles[role].count
    grams = []
    for one in solved:
        own = one.table.roles[0][0]
        share = np.concatenate(
            [[1.0 / sum(counts)], *(np.full(roles[r].size - 1, 1.0 / held[r]) for r in own)]
        )
        share *= one.lengths
        gram = one.gram.copy()
        gram[: one.known, : one.known] += share[:, None] * asked.block(own) * share
        grams.append(gram)
    best: Design | None = None
    gap = LIMITS.fast_gap
    for rounds in range(1, LIMITS.max_iterations + 1):
        found = [one.solve(gram, gap) for one, gram in zip(solved, grams, strict=True)]
        shares = GAUSSIAN.best_shares([factor.loss for factor in found], counts)
        loss, grams = _least_squares(roles, solved, shares, asked)
        if report is not None:
            report(rounds, loss)
        gain = math.inf if best is None else 1.0 - loss / best.loss
        if gain > 0.0:
            best = Design(found, list(shares), loss)
        if gain < LIMITS.gain and gap <= LIMITS.inner_gap:
            break
        gap = min(max(gain, LIMITS.inner_gap), LIMITS.fast_gap)
    assert best is not None
    return best


def _asked(roles: Sequence[Role], total: float) -> _Exchangeable:
    """Return the Gram matrix of what is asked of attributes alone and of the total, over the unknowns."""
    asked = _Exchangeable(roles)
    asked.sums[0, 0] = total
    for place, role in enumerate(roles):
        back = _one_way_maps((role.size,)).T / np.concatenate([[role.size], np.ones(role.size - 1)])
        asked.add((place,), role.count, back.T @ role.gram @ back)
    return asked


def _least_squares(
    roles: Sequence[Role], solved: Sequence[_Table], shares: Sequence[float], asked: _Exchangeable
) -> tuple[float, list[Array]]:
    """Return the loss of global least squares, and C'C of its coefficients on each class of tables."""
    information, queries = _Exchangeable(roles), asked.mapped(np.copy)
    loss = 0.0
    for one, share in zip(solved, shares, strict=True):
        one.measured(share)
        loss += one.table.count * one.beyond
        lifted = one.lift.T @ one.gram @ one.lift
        for own, count in one.table.roles:
            information.add(own, count, one.information)
            queries.add(own, count, lifted)
    covariance = information.mapped(np.linalg.inv)
    loss += covariance.inner(queries)
    spread = covariance.mapped(lambda k, h: k @ h @ k, queries)
    grams = []
    for one in solved:
        own_blocks = [(covariance.block(own), spread.block(own), count) for own, count in one.table.roles]
        middle = [sum(block[i] * (block[2] / one.table.count) for block in own_blocks) for i in (0, 1)]
        grams.append(one.coefficients(np.asarray(middle[0]), np.asarray(middle[1])))
    return loss, grams
