"""Checks of predicates, plans, mechanisms and noises, and the dense matrices that they compare with."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cache
from typing import Any, TypeVar

import numpy as np
from flint import arb, ctx
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import block_diag
from scipy.special import ndtr, ndtri

from matrixdp.domain import Categorical, Domain, Integers, OutOfDomain
from matrixdp.errors import MatrixDPError, PrivacyError, TooLargeError, UnsupportedQueryError, WorkloadError
from matrixdp.exact import IntegerMatrix
from matrixdp.exact.linear import Array, kronecker
from matrixdp.language import Entry, dense, marginals, product
from matrixdp.noise import NOISES, Distribution, Noise, SeededSource, noise_named
from matrixdp.plans import Part, Plan
from matrixdp.privacy import Budget
from matrixdp.queries import Group, Identity, Predicates, ProductGroup, Spans, Workload
from matrixdp.selection.registry import MECHANISMS, DataDependent, Mechanism
from matrixdp.strategy import Strategy, select

E = TypeVar("E", bound=MatrixDPError)


def _spread(rows: Array, own: Sequence[str], domain: Domain, attributes: Sequence[str] | None) -> Array:
    """Return rows over the cells of ``own``, in that order, as rows over the cells of ``attributes``."""
    wanted = domain.names if attributes is None else tuple(attributes)
    sizes = {name: domain[name].size for name in (*own, *wanted)}
    tensor = rows.reshape(-1, *(sizes[name] for name in own))
    tensor = np.transpose(tensor, [0, *(1 + list(own).index(name) for name in wanted if name in own)])
    tensor = tensor.reshape(-1, *(sizes[name] if name in own else 1 for name in wanted))
    shape = (len(tensor), *(sizes[name] for name in wanted))
    return np.broadcast_to(tensor, shape).reshape(len(tensor), math.prod(shape[1:])).copy()


def dense_queries(group: Group, domain: Domain, attributes: Sequence[str] | None = None) -> Array:
    """Return the queries of a group over the cells of a table.

    Parameters
    ----------
    group : Group
        The group.
    domain : Domain
        The attributes.
    attributes : sequence of str, optional
        Those of the table, among them those of the group; all of the domain where they are left out.

    Returns
    -------
    ndarray
        Shape (queries, cells), row-major cells; weights are left aside.

    Examples
    --------
    >>> import matrixdp as mdp
    >>> domain = mdp.Domain({"sex": ["f", "m"], "age": 3})
    >>> [group] = mdp.marginals([["age"]]).expand(domain)
    >>> dense_queries(group, domain)
    array([[1., 0., 0., 1., 0., 0.],
           [0., 1., 0., 0., 1., 0.],
           [0., 0., 1., 0., 0., 1.]])
    """
    return _spread(group.rows(), group.attributes, domain, attributes)


def dense_gram(workload: Workload, attributes: Sequence[str] | None = None) -> Array:
    """Return the Gram matrix W' D W of a workload, D holding the weights of its queries.

    Parameters
    ----------
    workload : Workload
        The workload.
    attributes : sequence of str, optional
        Those of the table, among them all that are asked about; all of the domain where they are left out.

    Returns
    -------
    ndarray
        Shape (cells, cells).

    Examples
    --------
    >>> import matrixdp as mdp
    >>> dense_gram(mdp.Workload(mdp.Domain({"age": 2}), mdp.product(age="prefix", weight=3.0)))
    array([[6., 3.],
           [3., 3.]])
    """
    total: Array = np.zeros(())
    for group in workload:
        rows = dense_queries(group, workload.domain, attributes)
        weights = np.ones(len(rows)) if group.query_weights is None else group.query_weights
        total = np.asarray(total + group.weight * (rows.T * weights) @ rows)
    return total


def dense_measurement(part: Part, domain: Domain, attributes: Sequence[str] | None = None) -> Array:
    """Return the queries of a part of a plan as rows over the cells of a table.

    Parameters
    ----------
    part : Part
        The part.
    domain : Domain
        The attributes.
    attributes : sequence of str, optional
        Those of the table, among them those of the part; all of the domain where they are left out.

    Returns
    -------
    ndarray
        Shape (measured queries, cells), integers, the queries in the order in which they are measured.

    Examples
    --------
    >>> import matrixdp as mdp
    >>> from matrixdp.exact import IdentityMatrix
    >>> from matrixdp.plans import Block
    >>> part = Part(("sex",), (Block(("sex",), IdentityMatrix(2)),), 1.0)
    >>> dense_measurement(part, mdp.Domain({"sex": ["f", "m"], "age": 2}))
    array([[1., 1., 0., 0.],
           [0., 0., 1., 1.]])
    """
    return _measured(part, domain, attributes, np.float64)


def _measured(part: Part, domain: Domain, attributes: Sequence[str] | None, type_: type[Any]) -> NDArray[Any]:
    """Return the same with entries of a type: Python's integers are of any width."""
    rows = kronecker(np.rint(block.matrix.written()).astype(np.int64).astype(type_) for block in part.blocks)
    if part.multipliers is not None:
        rows = rows * part.multipliers.reshape(-1, 1).astype(type_)
    own = [name for block in part.blocks for name in block.attributes]
    return _spread(rows, own, domain, attributes)


def dense_error(gram: Array, rows: Array) -> float:
    """Return the weighted sum of the variances of a workload's least-squares answers.

    Parameters
    ----------
    gram : ndarray
        Shape (cells, cells), the Gram matrix of the workload (see `dense_gram`).
    rows : ndarray
        Shape (measured queries, cells): each divided by the standard deviation of its noise.

    Returns
    -------
    float
        The trace of A^+' W'W A^+, A being the rows.

    Raises
    ------
    AssertionError
        If the rows do not determine what is asked.

    Examples
    --------
    >>> dense_error(np.ones((2, 2)), np.eye(2) / 3)
    18.0
    """
    inverse = np.linalg.pinv(rows, rcond=1e-11)
    lost = gram - gram @ inverse @ rows
    if np.abs(lost).max() > 1e-6 * np.abs(gram).max():
        raise AssertionError("the measured rows do not determine what is asked")
    return float(np.einsum("ia,ij,ja->", inverse, gram, inverse))


# How a check says what is wrong, and the numbers it tries.


def probes(*shape: int) -> NDArray[np.float64]:
    """Return numbers from -1 to 1 without a pattern, always the same."""
    return np.asarray(np.sin(np.arange(1.0, 1 + np.prod(shape)) ** 2)).reshape(shape)


def require(holds: object, what: str) -> None:
    """Raise AssertionError with a text unless something holds, with ``python -O`` too."""
    if not holds:
        raise AssertionError(what)


def refusal(what: str, failure: type[E], call: Callable[[], object]) -> E:
    """Return the error with which a call rejects something, which must be of a class."""
    try:
        call()
    except failure as error:
        return error
    except MatrixDPError as error:
        found = type(error).__name__
        raise AssertionError(f"{what}: a {found}; expected {failure.__name__}") from error
    raise AssertionError(f"{what} is not refused by the call")


def require_close(found: ArrayLike, expected: ArrayLike, what: str, relative: float = 1e-9) -> None:
    """Raise AssertionError unless two arrays have one shape and agree to rounding errors."""
    one, other = np.asarray(found, dtype=float), np.asarray(expected, dtype=float)
    require(one.shape == other.shape, f"{what}: shape {one.shape}; expected {other.shape}")
    scale = max(1.0, float(np.abs(other).max(initial=0.0)))
    gaps = np.abs(one - other)
    # a NaN is no agreement
    wrong = np.argwhere(~(gaps <= relative * scale))
    if len(wrong):
        place = tuple(wrong[0])
        raise AssertionError(f"{what}: {other[place]:.6g} is off by {gaps[place]:.3g}")


# What every family of predicates must do.

#: Sets of at most this many entries are compared with their dense matrix, larger ones by products of vectors.
_DENSE_ENTRIES = 1 << 22
_PROBES = 4


def _fixed(array: Array) -> Array:
    """Return an array that a method that writes into its arguments cannot use."""
    array.setflags(write=False)
    return array


def check_predicates(predicates: Predicates, size: int) -> None:
    """Check that a predicate set keeps its contract on an attribute with `size` values.

    Every method is compared with the rows that ``apply`` gives: a closed form that a family has for its
    Gram matrix, its quadratic forms, its squares or its column sums must be that of its queries.

    Parameters
    ----------
    predicates : Predicates
        The set; it must fit the size.
    size : int
        The number of values. 3, 64 and 600 between them take every path of the library.

    Raises
    ------
    AssertionError
        Names the method that disagrees.

    Examples
    --------
    >>> from matrixdp.queries import AllRanges
    >>> check_predicates(AllRanges(), 64)

    A family whose Gram matrix is not that of its queries is found:

    >>> class Wrong(AllRanges):
    ...     def gram(self, size):
    ...         return np.eye(size)
    >>> try:
    ...     check_predicates(Wrong(), 3)
    ... except AssertionError as error:
    ...     print(error)
    gram: not that of the queries: 2.21249 is off by 1.09
    """
    predicates.check(size)
    count = predicates.count(size)
    require(count == int(count) >= 1, f"count: {count!r}; expected an integer of at least 1")
    require(hash(predicates.key(size)) == hash(predicates.key(size)), "key: its hash changes")
    require(predicates.key(size) == predicates.key(size), "key: it differs from itself")
    require(predicates.text_key(size) == predicates.text_key(size), "text_key: it differs from itself")
    left, right = (_fixed(half) for half in probes(2, size, _PROBES))
    from_left, from_right = predicates.apply(left), predicates.apply(right)
    require(from_left.shape == (count, _PROBES), f"apply: shape {from_left.shape}; count says {count}")
    mixed = predicates.apply(_fixed(left - 2 * right))
    require_close(mixed, from_left - 2 * from_right, "apply: not linear")
    gram, form = predicates.gram(size), _fixed(left @ right.T)
    require_close(gram, gram.T, "gram: not symmetric")
    norms = np.einsum("ia,ij,ja->a", left, gram, left)
    require_close(norms, (from_left**2).sum(axis=0), "gram: not that of the queries")
    products = np.einsum("ij,ij->i", from_left, from_right)
    require_close(predicates.quadratic(form), products, "quadratic: not that of the queries")
    squares = predicates.squares(size)
    require_close(squares, predicates.quadratic(_fixed(np.eye(size))), "squares: not those of the queries")
    require_close(squares.sum(), np.trace(gram), "squares: their sum is not the trace of gram")
    weighted = predicates.quadratic(np.diag(left[:, 0]))
    require_close(
        predicates.weighted_squares(left[:, 0]), weighted, "weighted_squares: not those of the queries"
    )
    known = predicates.symmetric(size)
    if known is not None:
        require_close(gram, known[0] * np.eye(size) + known[1], "symmetric: not gram")
    if count * size <= _DENSE_ENTRIES:
        _check_dense(predicates, size)
    spans = predicates.spans(size)
    require(len(spans.first) == len(spans.last) == len(spans.whole) == count, "spans: not one for each query")
    for attribute in (Integers("code", 0, size - 1), Categorical("code", tuple(map(str, range(size))))):
        texts = predicates.describe(attribute)
        require(len(texts) == count, f"describe: {len(texts)} texts; count says {count}")
        require(all(isinstance(text, str) for text in texts), "describe: it gives what is no text")


def _check_dense(predicates: Predicates, size: int) -> None:
    """Compare every method with the dense matrix, whose columns are the images of unit vectors."""
    rows = predicates.apply(_fixed(np.eye(size)))
    require_close(predicates.rows(size), rows, "rows: not what apply gives")
    require_close(predicates.gram(size), rows.T @ rows, "gram: not that of the rows")
    entries = predicates.entries(size)
    if entries is not None:
        query, value, entry = entries
        named = np.zeros_like(rows)
        np.add.at(named, (query, value), entry)
        require_close(named, rows, "entries: not those of the rows")
    for power in (1, 2):
        sums = (np.abs(rows) ** power).sum(axis=0)
        require_close(predicates.column_sums(size, power), sums, "column_sums: not those of the rows")
    spans, dense = predicates.spans(size), Spans.of_rows(rows)
    for name in ("first", "last", "whole"):
        same = getattr(spans, name) == getattr(dense, name)
        require(same.all(), f"spans: {name} is not that of the rows")


# What every kind of plan must do: answers without bias, whose variances and costs are those of matrices.

_RECORDS = 2**33


def check_plan(plan: Plan, workload: Workload) -> None:
    """Check that a plan answers a workload as it says.

    What it measures, and the linear map from its measurements to its answers, are written out as matrices:
    the answers must be unbiased, and their covariances and the privacy cost must be those of the matrices.

    Parameters
    ----------
    plan : Plan
        The plan, on a domain of at most some thousand cells.
    workload : Workload
        On the same domain; the plan must determine it.

    Raises
    ------
    AssertionError
        Names what does not hold.

    Examples
    --------
    >>> import matrixdp as mdp
    >>> workload = mdp.Workload(mdp.Domain({"age": 8, "sex": ["f", "m"]}), mdp.kway([1, 2], "range"))
    >>> check_plan(mdp.select(workload).selection.plan, workload)
    """
    require(plan.domain == workload.domain, "the workload is over another domain")
    measured = [dense_measurement(part, plan.domain) for part in plan.parts]
    _check_parts(plan, measured)
    groups = list(workload)
    for group in groups:
        plan.analysis.check_support(group)
    if _is_answered(plan, cells := _all_cells(workload)):
        groups.append(cells)
    linear = _estimator(plan, groups)
    queries = np.vstack([dense_queries(group, plan.domain) for group in groups])
    require_close(linear @ np.vstack(measured), queries, "answers are biased", 1e-8)
    variances = plan.row_variances([part.variance for part in plan.parts])
    pairs = zip(variances, plan.parts, strict=True)
    noise = block_diag(*[variance * _shared_noise(part) for variance, part in pairs])
    _check_errors(plan, groups, linear @ noise @ linear.T)


def _shared_noise(part: Part) -> Array:
    """Return the covariance of the noise of a part's rows over the variance that the plan says."""
    if part.width is not None:  # what a table with noise on its cells has in the rows
        found = np.ones((1, 1))
        for block, rows in zip(part.blocks, part.shape, strict=True):
            alone = (block.attributes, block.matrix.digest()) in part.copied
            centred = np.eye(rows) - (0.0 if alone else 1.0 / rows)
            found = np.asarray(np.kron(found, centred))
        return found
    if part.walk is None:
        return np.eye(part.rows)
    return np.asarray(part.walk.covariance())


def _moved(part: Part, rows: NDArray[Any]) -> NDArray[Any]:
    """Return rows whose L1 norms are what a record costs: of a walk each row less those that add up to it.

    Under one radius a single row of ones.
    """
    if part.width is not None:
        return np.ones((1, rows.shape[1]), dtype=rows.dtype)
    if part.walk is None:
        return rows
    own = rows.reshape(part.walk.before, len(part.walk.widths), part.walk.after, -1)
    moved, count = own.copy(), own.shape[1]
    for row, parent in enumerate(part.walk.parents or range(1, count + 1)):
        if parent < count:
            moved[:, parent] -= own[:, row]
    return moved.reshape(rows.shape)


def _check_parts(plan: Plan, measured: list[Array]) -> None:
    """Compare sensitivities, costs and exact answers with the measured rows."""
    noise = plan.noise
    counts = np.floor(500.0 * (1.0 + probes(*plan.domain.shape))).astype(np.int64)
    for part, rows in zip(plan.parts, measured, strict=True):
        label, whole = f"the part on {part.attributes}", np.rint(rows).astype(np.int64)
        if part.max_entry >= 2**53:  # floating point rounds the products of its blocks
            whole = _measured(part, plan.domain, None, object)
        sizes = np.abs(_moved(part, whole))
        if len(whole) * int(sizes.max()) ** noise.norm >= 2**63:
            sizes = sizes.astype(object)  # integers of any width
        exact = int((sizes**noise.norm).sum(axis=0).max())
        require(noise.power_sum(part) == exact, f"{label}: its sensitivity is not that of its rows")
        others = tuple(axis for axis, name in enumerate(plan.domain.names) if name not in part.attributes)
        answers = part.answers(np.asarray(counts.sum(axis=others)), _RECORDS).values()
        if int(sizes.max()) * int(counts.sum()) >= 2**63:
            whole = whole.astype(object)
        expected = (whole @ counts.ravel()).tolist()
        require(answers == expected, f"{label}: its answers are not those of its rows")
    scales = [math.sqrt(part.variance / noise.variance_factor) for part in plan.parts]
    triples = list(zip(plan.parts, measured, scales, strict=True))
    alone = [_moved(part, rows) / scale for part, rows, scale in triples if part.width is None]
    if plan.under_radius:  # of any two records that differ there, each has a row of its own
        together = np.vstack([measured[place] for place in plan.under_radius])
        _, kinds = np.unique(together, axis=1, return_inverse=True)
        alone.append((kinds.ravel() == np.arange(kinds.max() + 1)[:, None]) / scales[plan.under_radius[0]])
    scaled = np.vstack(alone)
    dense = float(noise.column_norms(scaled).max()) ** 2
    require(dense <= plan.cost * (1 + 1e-9), f"cost: {plan.cost:.9g}; that of the rows is {dense:.9g}")
    require(plan.cost <= 1 + 1e-6, f"cost: {plan.cost:.9g}; expected at most 1")
    cost = plan.replacement_cost
    between = max(noise.column_norms(scaled - column[:, None]).max() for column in scaled.T) ** 2
    told = f"replacement_cost: {cost:.9g}"
    require(max(dense, between) <= cost * (1 + 1e-9), f"{told}; less than that of the rows")
    require(cost <= 4 * plan.cost * (1 + 1e-9), f"{told}; more than that of two records")


def _all_cells(workload: Workload) -> Group:
    """Return every cell of the attributes that are asked about."""
    names = workload.domain.sort({name for group in workload for name in group.attributes})
    sizes = tuple(workload.domain[name].size for name in names)
    return ProductGroup("every cell", names, tuple(Identity() for _ in names), sizes)


def _is_answered(plan: Plan, group: Group) -> bool:
    """Return whether a group is answered; every way to ask must agree."""
    blank = plan.analysis.estimates([np.zeros(math.prod(part.shape)) for part in plan.parts])
    ways = (plan.analysis.check_support, plan.analysis.variances, plan.analysis.group, blank.answers)
    refused = 0
    for ask in ways:
        try:
            ask(group)
        except UnsupportedQueryError:
            refused += 1
    require(refused in (0, len(ways)), "a query is answered in one way and refused in another")
    return refused == 0


def _estimator(plan: Plan, groups: list[Group]) -> Array:
    """Return the matrix from measurements to answers, shape (queries, measurements)."""
    counts = [math.prod(part.shape) for part in plan.parts]
    columns = []
    for unit in np.eye(sum(counts)):
        estimates = plan.analysis.estimates(np.split(unit, np.cumsum(counts)[:-1]))
        columns.append(np.concatenate([estimates.answers(group) for group in groups]))
    return np.array(columns).T


def _check_errors(plan: Plan, groups: list[Group], covariance: Array) -> None:
    """Compare variances, covariances and sums of them with the covariance matrix of all answers."""
    variances = plan.row_variances([part.variance for part in plan.parts])
    analysis, again = plan.analysis, plan.analysed([4.0 * own for own in variances])
    starts = np.cumsum([0, *(group.queries for group in groups)])
    for start, group in zip(starts, groups, strict=False):
        own, name = np.diagonal(covariance)[start : start + group.queries], group.name
        found = analysis.variances(group)
        require_close(found, own, f"{name}: variances", 1e-7)
        require_close(again.variances(group), 4.0 * own, f"{name}: variances at four times the noise", 1e-7)
        weights = 1.0 if group.query_weights is None else group.query_weights
        sums = [own.sum(), group.weight * (own * weights).sum(), own.max()]
        error = analysis.group(group)
        require_close([error.total, error.weighted, error.largest], sums, f"{name}: sums of variances", 1e-7)
        terms = analysis.noise_terms(group, 1 << 24)
        if terms is not None:
            walks = [own.walk for own in plan.parts]
            squares = (
                (some**2).sum(axis=1) if (walk := walks[place]) is None else walk.variances(some)
                for place, some in terms.items()
            )
            added = sum(squares, np.zeros(group.queries))
            require_close(added, own, f"{name}: squares of noise_terms do not sum to variances", 1e-7)
    for left, right in {(0, 0), (0, len(groups) - 1), (len(groups) // 2, len(groups) - 1)}:
        i, j = groups[left].queries - 1, groups[right].queries // 2
        place = covariance[starts[left] + i, starts[right] + j]
        found_pair = analysis.covariance(groups[left], i, groups[right], j)
        scale = float(np.abs(covariance).max())
        names = f"{groups[left].name} and {groups[right].name}"
        require_close(found_pair / scale, place / scale, f"covariance of {names}", 1e-7)
        block = covariance[starts[left] : starts[left + 1], starts[right] : starts[right + 1]]
        found = analysis.covariances(groups[left], groups[right])
        require_close(found / scale, block / scale, f"covariances of {names}", 1e-7)
        moved, others = (analysis.noise_terms(groups[place], 1 << 24) for place in (left, right))
        if moved is not None and others is not None:
            pairs = ((moved[p] @ _shared_noise(plan.parts[p]), others[p]) for p in moved.keys() & others)
            found = sum((own @ other.T for own, other in pairs), np.zeros(block.shape))
            require_close(found / scale, block / scale, f"noise_terms of {names}: covariances", 1e-7)
        if left == right:
            found = analysis.covariances(groups[left], groups[right], paired=True)
            require_close(found, np.diagonal(block), f"covariances of {names}, in pairs", 1e-7)


# What every mechanism must do.

_REFUSALS = (TooLargeError, UnsupportedQueryError, WorkloadError)


@cache
def small_workloads() -> Mapping[str, Workload]:
    """Return the workloads that every mechanism is tried on, by name.

    One product, a union of products with weights, ranges of one attribute, fewer queries than cells,
    marginals, explicit queries, and levels of a tree; each over a domain with an attribute that none asks
    about. Every call returns the same ones, as bounds are proved once for a workload.

    Examples
    --------
    >>> list(small_workloads())
    ['product', 'union', 'one attribute', 'low rank', 'marginals', 'explicit', 'levels']
    """
    domain = Domain({"a": range(7), "b": range(4), "unasked": 2})
    weights = np.arange(1.0, 11.0)
    entries: dict[str, list[Entry]] = {
        "product": [product(a="prefix", b="range", weight=2.0)],
        "union": [
            product(a="prefix", b="identity"),
            product(b="range", weights=weights),
            product(a="range", weight=3.0),
        ],
        "one attribute": [product(a="range")],
        "low rank": [product(a={"ranges": [[0, 6], [0, 2]]}, b="prefix")],
        "marginals": [marginals([0, 1, 2], ["a", "b"])],
        "explicit": [dense(np.floor(3 * probes(5, 28)), ["a", "b"]), marginals(1, ["a"])],
        "levels": [product(a=own, b="identity") for own in ({"sets": [[0, 2], [1, 3, 4, 5, 6]]}, "identity")],
    }
    return {name: Workload(domain, *listed) for name, listed in entries.items()}


def check_mechanism(
    mechanism: str | Mechanism[Any] | DataDependent, noise: str | Noise | None = None
) -> None:
    """Check that a mechanism selects strategies that do what it says of them.

    Each of its strategies for small workloads is written out as a matrix: it must answer without bias, cost
    what it says and have the error that its certificate says. Then a table is measured, with true noise.

    Parameters
    ----------
    mechanism : str, Mechanism or DataDependent
        One that is registered. Of a data-dependent one the simulated errors are checked.
    noise : str or Noise, optional
        The noise; every one that is registered where it is left out. A noise that the mechanism does not
        select for must be refused.

    Raises
    ------
    AssertionError
        Names the workload, and what does not hold.

    Examples
    --------
    >>> check_mechanism("identity", "laplace")
    """
    found = MECHANISMS[mechanism if isinstance(mechanism, str) else mechanism.name]
    require(mechanism in (found, found.name), f"{found.name!r} is the name of another mechanism")
    require(found.source.rstrip(".") == found.source != "", "source: expected the paper, or what it is")
    workloads = small_workloads()
    if isinstance(found, DataDependent):
        answered = [_check_simulation(found, workload) for workload in workloads.values()]
        require(any(answered), f"{found.name}: every workload is refused")
        return
    found.options()
    for own in NOISES.values() if noise is None else (noise_named(noise),):
        if own.norm not in found.norms:
            _check_refusal(found.name, own, workloads["product"])
            continue
        answered = [_check_selection(found.name, own, title, asked) for title, asked in workloads.items()]
        require(any(answered), f"{found.name}: every workload is refused with {own} noise")


def _check_simulation(mechanism: DataDependent, workload: Workload) -> bool:
    """Check the simulated errors on one table; return whether there are any."""
    table = {name: np.arange(200) ** 2 % workload.domain[name].size for name in workload.domain.names}
    try:
        found = mechanism.simulate(workload, table, Budget(epsilon=1), 3, OutOfDomain())
    except _REFUSALS:
        return False
    sound = 0 < found.rmse <= found.max_rmse < math.inf and 0 <= found.rmse_standard_error < math.inf
    require(sound and 0 < found.weighted_rmse < math.inf, f"{mechanism.name}: it simulates {found}")
    return True


def _check_refusal(mechanism: str, noise: Noise, workload: Workload) -> None:
    what = f"{mechanism}: {noise} noise, which it does not say that it selects for,"
    error = refusal(what, PrivacyError, lambda: select(workload, mechanism=mechanism, noise=noise.name))
    require(mechanism in str(error), f"{mechanism}: a refusal that does not name it: {error}")


def _check_selection(mechanism: str, noise: Noise, title: str, workload: Workload) -> bool:
    """Check one strategy; return whether there is one."""
    try:
        strategy = select(workload, mechanism=mechanism, noise=noise.name)
    except _REFUSALS:
        return False
    selection, label = strategy.selection, f"{mechanism}, {noise}, {title}"
    plan, certificate = selection.plan, selection.certificate
    require(plan.noise == noise, f"{label}: its noise is {plan.noise}")
    check_plan(plan, workload)
    require_close(plan.cost, 1.0, f"{label}: it costs", 1e-6)
    error = math.fsum(plan.analysis.group(group).weighted for group in workload)
    # measured matrices are integers near the strategy
    require_close(certificate.loss / error, 1.0, f"{label}: the error is not what its certificate says", 5e-3)
    bound = certificate.lower_bound
    require(bound is None or bound <= error * (1 + 1e-9), f"{label}: its bound is above its error")
    if title == "product":
        again = select(workload, mechanism=mechanism, noise=noise.name).certificate.loss
        require(again == certificate.loss, f"{label}: selected again it is another strategy")
    _check_release(strategy, workload, label)
    return True


def _check_release(strategy: Strategy, workload: Workload, label: str) -> None:
    """Measure a table with true noise: answers lie within 20 standard errors but with odds of 1e-11."""
    domain = workload.domain
    sizes = np.array(domain.shape)[:, None]
    codes = np.floor(sizes * (0.5 + 0.49999 * probes(len(sizes), 300))).astype(int)
    counts = np.zeros(domain.shape)
    np.add.at(counts, tuple(codes), 1.0)
    # with so small an epsilon noise is on no integers, which would be 0 now and then
    budgets = (Budget(rho=0.5), Budget(epsilon=0.1))
    budget = next(budget for budget in budgets if strategy.selection.plan.noise.honours(budget))
    # the exact distributions that intervals take are no mechanism's, and not inverted for as much confidence
    measured = strategy.measure(dict(zip(domain.names, codes, strict=True)), budget)
    release = measured.reconstruct(confidence=1 - 1e-9)
    exact = np.concatenate([dense_queries(group, domain) @ counts.ravel() for group in workload])
    errors = np.abs(release.answers["estimate"].to_numpy() - exact)
    deviations = release.answers["stddev"].to_numpy()
    require((errors <= 20 * deviations + 1e-9).all(), f"{label}: answers off by 20 standard errors")
    require(errors.max() > 0, f"{label}: answers without noise")


# What every noise must do.

_DELTA = Fraction(1, 10**6)
_SLACK = 1.0 + 1e-9
#: One budget of each kind, each within what a single bit or a few may promise.
_BUDGETS: list[dict[str, Any]] = [
    given | {"neighbours": neighbours}
    for given in ({"rho": 0.5}, {"mu": 0.75}, {"epsilon": 1.0, "delta": 1e-6}, {"epsilon": 1.5})
    for neighbours in ("add_remove", "replace")
]


def check_noise(noise: Noise, samples: int = 20_000) -> None:
    """Check that a noise keeps its contract.

    Its norm, shares and costs are compared with their definitions, its promises with what thresholds and
    bins of its distribution tell about one record, its filter with exact decisions, and its samples with the
    distribution. That a promise holds for every event is for a proof to say: a check can only refute it.

    Parameters
    ----------
    noise : Noise
        It need not be registered.
    samples : int
        How many samples are drawn, from a fixed seed; fewer for a noise without a filter, which is slow.

    Raises
    ------
    AssertionError
        Names what does not hold.

    Examples
    --------
    >>> from matrixdp.noise import LAPLACE
    >>> check_noise(LAPLACE)
    """
    require(str(noise) == noise.name, "str: not the name")
    require(hash(noise) == hash(type(noise)()) and noise == type(noise)(), "equal noises are not equal")
    _check_norm(noise)
    _check_shares(noise)
    budgets = [Budget(**given) for given in _BUDGETS]
    honoured = [budget for budget in budgets if _check_budget(noise, budget)]
    require(honoured, "no kind of budget is honoured")
    _check_tail(noise)
    for budget in honoured:
        _check_promise(noise, budget)
    _check_filter(noise.distribution)
    _check_samples(noise, samples if noise.distribution.approximate else min(samples, 3000))


_MATRIX = IntegerMatrix(np.array([[3, -1], [-4, 2], [0, 4]]))


def _check_norm(noise: Noise) -> None:
    require(noise.norm in (1, 2), f"norm: {noise.norm}; expected 1 or 2")
    rows = probes(4, 6)
    expected = (np.abs(rows) ** noise.norm).sum(axis=0) ** (1.0 / noise.norm)
    require_close(noise.column_norms(rows), expected, "column_norms")
    require(noise.power_sum(_MATRIX) == {1: 7, 2: 25}[noise.norm], "power_sum: not that of the columns")
    exact = noise.exact_cost([(noise.power_sum(_MATRIX), Fraction(10, 3))]).value
    least = noise.power_sum(_MATRIX) / Fraction(10, 3) ** noise.norm
    require(least <= exact <= least * (1 + Fraction(1, 2**60)), "exact_cost: not sensitivity over scale")


def _check_shares(noise: Noise) -> None:
    for share in (0.1, 1.0):
        variance = noise.variance(_MATRIX, share)
        require_close(noise.share(_MATRIX, variance), share, "share: not the inverse of variance")
        scale = noise.scale(variance, 1.0)
        require_close(scale**2 * noise.variance_factor, variance, "scale: not that of the variance")
        require_close(noise.power_sum(_MATRIX) / scale**noise.norm, share, "variance: it costs more")
    losses, counts = [3.0, 40.0, 700.0], [1, 4, 2]
    shares = np.array(noise.best_shares(losses, counts))
    require_close(shares @ counts, 1.0, "best_shares: they do not sum to 1")
    best = noise.total_loss(losses, counts)

    def total(chosen: Array) -> float:
        return float((np.array(counts) * losses / chosen ** (2.0 / noise.norm)).sum())

    require_close(total(shares), best, "total_loss: not that of the best shares")
    for step in probes(20, 3):
        other = shares * np.exp(0.3 * step)
        require(total(other / (other @ counts)) >= best / _SLACK, "best_shares: other shares are better")


def _check_budget(noise: Noise, budget: Budget) -> bool:
    """Check the cost of a budget; return whether it is honoured."""
    if not noise.honours(budget):
        refusal(f"cost: {budget} is not honoured, and", PrivacyError, lambda: noise.cost(budget))
        return False
    written: dict[str, Any] = budget.as_dict()
    cost = noise.cost(budget)
    require(cost.noise == noise, "cost: that of another noise")
    halves = written | {name: v / 2 for name, v in written.items() if isinstance(v, float)}
    less = noise.cost(Budget(**halves))
    require(less.value < cost.value, f"cost: half of {budget} does not cost less")
    if budget.neighbours == "replace":
        alone = noise.cost(Budget(**written | {"neighbours": "add_remove"}))
        require(cost.value * 2**noise.norm == alone.value, "cost: replacing moves twice as far")
    three = noise.cost(Budget(**written | {"unit": {"records": 3}}))
    require(three.value * 3**noise.norm == cost.value, "cost: three records move three times as far")
    between = noise.allowed(budget) / budget.unit.records**noise.norm
    require_close(noise.error_scale(budget), float(between) ** (2.0 / noise.norm), "error_scale")
    return True


def _tail(noise: Noise, point: float) -> float:
    """Return P(Z > point) at scale 1, for either sign."""
    if point < 0:
        return 1.0 - _tail(noise, -point)
    return float(noise.distribution.upper_tail(Fraction(point)))


def _check_tail(noise: Noise) -> None:
    points = np.linspace(0.0, 40.0 * math.sqrt(noise.variance_factor), 2001)
    tails = np.array([_tail(noise, point) for point in points])
    require_close(tails[0], 0.5, "distribution: P(Z > 0)")
    require((np.diff(tails) <= 0).all(), "distribution: its tail rises")
    # E Z^2 = 4 integral of x P(Z > x), by Simpson's rule
    weights = np.tile([2.0, 4.0], 1001)[:2001] * points[1] / 3
    weights[[0, -1]] /= 2
    require_close(4 * (weights * points * tails).sum(), noise.variance_factor, "variance_factor", 1e-4)
    for point, tail in zip(points[1:100:7], tails[1:100:7], strict=True):
        guess = noise.distribution.guess(math.log(tail))
        require(abs(guess - point) < 0.01 * (1 + point), "guess: far from the point")
    _check_quantiles(noise)


def _check_quantiles(noise: Noise) -> None:
    deviation = math.sqrt(noise.variance_factor)
    last = 0.0
    for confidence in (0.5, 0.8, 0.95, 0.999):
        quantile = noise.largest_quantile(confidence)
        covered = 1.0 - 2.0 * _tail(noise, quantile * deviation)
        require(covered >= confidence - 1e-9, f"largest_quantile: one term is covered with {covered:.6g}")
        require(quantile >= last, "largest_quantile: it falls")
        last = quantile
        own = noise.combination_quantiles(np.ones((1, 1)), confidence)
        if own is not None:
            require(own[0] <= quantile * (1 + 1e-4), "combination_quantiles: above the largest")
            covered = 1.0 - 2.0 * _tail(noise, float(own[0]) * deviation)
            within = confidence - 1e-9 <= covered <= confidence + 1e-4
            require(within, f"combination_quantiles: one term is covered with {covered:.6g}")


def _check_promise(noise: Noise, budget: Budget) -> None:
    """Compare what a budget's cost promises with the budget, and with thresholds and bins of one answer."""
    cost = noise.cost(budget)
    found = noise.promise(cost, budget, _DELTA)
    promised = {"rho": found.rho, "mu": found.mu, "pure": found.pure_epsilon, "approx": found.delta}
    own, asked = promised[budget.kind], [*budget.given.values()][-1]
    require(own is not None and float(own) <= float(asked) * _SLACK, f"promise: more than {budget}")
    # one row of sensitivity 1 whose noise has this cost: how far one record moves the answer, in scales
    shift = budget.moved * float(cost.value) ** (1.0 / noise.norm)
    edges = np.linspace(-12.0, 12.0, 193) * math.sqrt(noise.variance_factor)
    mine = np.array([_tail(noise, edge) for edge in edges])
    moved = np.array([_tail(noise, edge - shift) for edge in edges])
    for one, other in ((moved, mine), (1.0 - mine, 1.0 - moved)):
        if found.pure_epsilon is not None:
            bound = math.exp(found.pure_epsilon) * other
            require((one <= bound * _SLACK + 1e-15).all(), f"{budget}: pure epsilon is not kept")
        bound = math.exp(found.epsilon) * other + float(_DELTA)
        require((one <= bound * _SLACK).all(), f"{budget}: epsilon at the reference delta is not kept")
        if budget.epsilon is not None and found.delta is not None:
            bound = math.exp(budget.epsilon) * other + float(found.delta)
            require((one <= bound * _SLACK + 1e-15).all(), f"{budget}: delta is not kept")
        inside = other > 1e-12
        bound = ndtr(ndtri(other[inside]) + float(found.mu))
        require((one[inside] <= bound + 1e-9).all(), f"{budget}: mu is not kept")
    first, second = -np.diff(moved), -np.diff(mine)
    held = (first > 1e-13) & (second > 1e-13)
    for order in (1.5, 2.0, 4.0):
        moment = float((first[held] ** order * second[held] ** (1.0 - order)).sum())
        divergence = math.log(moment) / (order - 1.0)
        require(divergence <= order * float(found.rho) + 1e-9, f"{budget}: rho is not kept")


def _check_filter(distribution: Distribution) -> None:
    """Compare the approximations that a filter says it proved with the tail itself."""
    if distribution.approximate is None:
        return
    random = SeededSource(3).bits64(200) >> np.uint64(1)
    small = np.array([1, 2, 2**20, 2**41, 2**42, 2**43, 2**50, 2**63 - 1], dtype=np.uint64)
    words = np.concatenate([small, random])
    values, proved = distribution.approximate(words.copy())
    require(proved[-len(random) :].mean() > 0.9, "approximate: it proves next to nothing")
    for word, value in zip(words[proved].tolist(), values[proved].tolist(), strict=True):
        low, high = Fraction(value) - distribution.epsilon, Fraction(value) + distribution.epsilon
        with ctx.workprec(200):
            above = low <= 0 or distribution.upper_tail(low) >= arb((word + 1, -64))
            below = distribution.upper_tail(max(high, Fraction(0))) <= arb((word, -64))
        require(above and below, f"approximate: {value} is not within epsilon for the word {word}")


def _check_samples(noise: Noise, count: int) -> None:
    scale = Fraction(3000)
    drawn = noise.draw_rounded(scale, count, source=SeededSource(1))
    require(drawn.dtype == np.int64 and drawn.shape == (count,), "draw_rounded: not int64 of the size")
    ordered = np.sort(drawn)
    ends = (ordered + 0.5) / float(scale)
    expected = 1.0 - np.array([_tail(noise, end) for end in ends.tolist()])
    distance = float(np.abs(expected - np.searchsorted(ordered, ordered, side="right") / count).max())
    require(distance * math.sqrt(count) < 2.5, f"draw_rounded: {distance:.3g} from the distribution")
    unfiltered = {"__slots__": (), "distribution": replace(noise.distribution, approximate=None)}
    slow: Noise = type("Unfiltered", (type(noise),), unfiltered)()
    exact = slow.draw_rounded(scale, 300, source=SeededSource(1))
    require((exact == drawn[:300]).all(), "draw_rounded: the filter decides otherwise than the proof")
    offsets, third = np.full(count, 1.0 / 3.0), Fraction(1, 3)
    at_third: dict[str, Any] = {"offsets": offsets, "exact_offset": lambda _: third}
    rise = noise.draw_rounded(scale, count, source=SeededSource(1), **at_third) - drawn
    require(((rise == 0) | (rise == 1)).all(), "draw_rounded: an offset moves a sample by more than 1")
    require(abs(rise.mean() - 1 / 3) < 5 / math.sqrt(count), "draw_rounded: offsets are not added")
    for terms in (2, 8):
        sums = drawn[: count // terms * terms].reshape(-1, terms).sum(axis=1)
        sizes = np.abs(sums) / (math.sqrt(terms * noise.variance_factor) * float(scale))
        largest, slack = noise.largest_quantile(0.9), 1.5 / math.sqrt(len(sums))
        covered = float((sizes <= largest).mean())
        require(covered > 0.9 - slack, f"largest_quantile: {terms} terms are covered with {covered:.3g}")
        own = noise.combination_quantiles(np.full((1, terms), 1.0 / terms), 0.9)
        if own is not None:
            covered = float((sizes <= own[0]).mean())
            near = abs(covered - 0.9) < slack + 0.01
            require(near, f"combination_quantiles: {terms} terms are covered with {covered:.3g}")
