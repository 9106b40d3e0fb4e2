"""Lower bounds from triples of subsets: never above the optimum, and the traces that they are made of."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import matrixdp as mdp
from matrixdp.noise import GAUSSIAN, LAPLACE
from matrixdp.selection.auto import select
from matrixdp.selection.bounds import lower_bound, triples
from matrixdp.selection.bounds.lower_bound import (
    decomposition_bound,
    operator_at,
    product_bound,
    sector_norm,
    tuned,
)
from matrixdp.selection.bounds.terms import mean_duals
from matrixdp.selection.compose.decomposition import solve_classes, solve_decomposition, sub_solver_for
from matrixdp.selection.compose.weight_vectors import optimized_weights
from matrixdp.selection.problem.residuals import Pieces, split_workload
from matrixdp.testing import dense_gram
from tests.limits import Override

KINDS = ["identity", "prefix", "range", "total"]


@st.composite
def workloads(draw):
    names = "abc"[: draw(st.sampled_from([2, 3]))]
    domain = mdp.Domain({name: range(draw(st.integers(2, 4))) for name in names})
    asked = st.dictionaries(st.sampled_from(names), st.sampled_from(KINDS), min_size=1)
    entries = draw(st.lists(st.tuples(asked, st.sampled_from([0.2, 1.0, 7.0])), min_size=1, max_size=3))
    found: list[Any] = [mdp.product(weight=weight, **sets) for sets, weight in entries]
    joint = draw(st.sampled_from([None, "affine", "abs", "dense"])) if len(names) == 2 else None
    if draw(st.booleans()):
        sets = {name: draw(st.sampled_from(KINDS[:3])) for name in names[:2]}
        found.append(mdp.disjunction(**sets, by=dict.fromkeys(names[2:], "identity")))
    if joint == "dense":
        rows = np.random.default_rng(draw(st.integers(0, 99))).integers(-1, 3, (4, domain.cells(list(names))))
        found.append(mdp.dense(matrix=rows.astype(float), attributes=list(names)))
    elif joint is not None:
        found.append(mdp.pairwise(joint, weight=0.5))
    return mdp.Workload(domain, *found)


def nuclear_bound(workload, distributions):
    """The square of the nuclear norm of W diag(p)^(1/2), below the loss of every strategy."""
    p = np.ones(1)
    for name in workload.domain.names:
        p = np.kron(p, distributions.get(name, np.full(workload.domain[name].size, 1.0)))
    root = np.sqrt(p / p.sum())
    values = np.linalg.eigvalsh(root[:, None] * dense_gram(workload) * root)
    return float(np.sqrt(np.maximum(values, 0.0)).sum()) ** 2


@settings(max_examples=10, deadline=None)
@given(workloads())
def test_never_above_the_optimum(workload):
    found = product_bound(workload)
    if found is not None:
        assert 0 < found[0] <= select(workload, noise=GAUSSIAN, mechanism="dense").certificate.loss


@pytest.fixture(scope="module")
def mixed():
    """Several predicate sets for each attribute, weights, a symmetric attribute, and two of one role."""
    domain = mdp.Domain({"a": range(4), "b": range(4), "c": ["x", "y", "z"], "d": range(3)})
    return mdp.Workload(
        domain,
        mdp.product(a="prefix", c="identity"),
        mdp.product(b="prefix", c="identity"),
        mdp.product(a="prefix", b="prefix"),
        mdp.product(a="range", weight=3.0),
        mdp.product(b="range", weight=3.0),
        mdp.product(c="identity", d="prefix", weight=0.5),
    )


@pytest.fixture(scope="module")
def either():
    """Disjunctions, whose Gram matrices have terms with signs that are not symmetric one by one."""
    domain = mdp.Domain({"a": range(4), "b": range(3), "c": ["x", "y", "z"], "d": range(3)})
    return mdp.Workload(
        domain,
        mdp.disjunction(a="prefix", b="range", c="identity"),
        mdp.disjunction(b="prefix", d="prefix", by={"c": "identity"}, weight=0.3),
        mdp.product(a="prefix", c="identity"),
    )


@pytest.fixture(scope="module")
def boxes():
    """Queries that are sums of boxes of cells: pairs of boxes keep both attributes, unlike from each side."""
    domain = mdp.Domain({"a": range(4), "b": range(3), "c": ["x", "y", "z"]})
    asked = np.array(
        [[[0, 1, 1], [0, 1, 1], [1, 1, 0], [0, 0, 0]], [[1, 0, 0], [0, 1, 1], [0, 1, 1], [1, 0, 0]]]
    )
    rows = mdp.dense(matrix=asked.reshape(2, -1), attributes=["a", "b"], by={"c": "identity"})
    # with queries of full rank beside them, so that strategies are told by their rows
    return mdp.Workload(domain, rows, mdp.product(a="prefix", b="prefix", c="identity"))


@pytest.mark.parametrize("asked", ["mixed", "either", "boxes"])
def test_traces_are_those_of_dense_matrices(asked, request):
    workload = request.getfixturevalue(asked)
    split = split_workload(workload)
    pieces = Pieces(split, optimized_weights(split))
    solver = sub_solver_for(pieces, GAUSSIAN, 1e-6, "product")
    solved = solve_classes(split, solver)
    operator, _ = operator_at(split, solver, solved, mean_duals(split, solved))
    rng = np.random.default_rng(3)
    p = [
        one / one.sum() if free else np.full(len(one), 1 / len(one))
        for one, free in zip((rng.uniform(0.5, 2.0, n) for n in split.sizes), split.free, strict=True)
    ]
    first, second = (float(sums.sum()) for sums in operator.sums(p))
    names, sizes = workload.domain.names, [workload.domain[name].size for name in workload.domain.names]
    weights = {name: solver.pieces.weights[split.types[name]] for name in names}
    measured = np.zeros((math.prod(sizes),) * 2)
    kept = np.zeros_like(measured)
    for sub, solution in solved:
        for marginal in sub.marginals:
            # of this workload, whose sub-strategies are products of one attribute each
            factors = {marginal[axis]: f for block in solution.blocks for axis, f in factors_of(block)}
            z: np.ndarray = np.ones((1, 1))
            projection: np.ndarray = np.ones((1, 1))
            for name, n in zip(names, sizes, strict=True):
                w, q = weights[name], p[split.types[name]]
                root = np.outer(np.sqrt(q), np.sqrt(q))
                if name in marginal:
                    free = split.free[split.types[name]]
                    right = factors[name].inverse if free else np.linalg.pinv(factors[name].rows)
                    right = right - np.outer(w, right.sum(axis=0))
                    z, projection = np.kron(z, right @ right.T), np.kron(projection, np.eye(n) - root)
                else:
                    z, projection = np.kron(z, np.outer(w, w)), np.kron(projection, root)
            measured += z / math.sqrt(solution.loss)
            kept += projection
    gram = dense_gram(workload)
    q = np.ones(1)
    for name in names:
        q = np.kron(q, 1 / p[split.types[name]])
    middle = np.sqrt(q)[:, None] * kept * np.sqrt(q)
    assert first == pytest.approx(np.trace(gram @ measured), rel=1e-9)
    assert first == pytest.approx(sum(math.sqrt(s.loss) * len(sub.marginals) for sub, s in solved), rel=1e-6)
    assert second == pytest.approx(np.trace(gram @ measured @ middle @ measured @ gram @ measured), rel=1e-9)


def factors_of(block):
    factors = getattr(block.found, "factors", (block.found,))
    return zip(block.axes, factors, strict=True)


def test_nothing_is_lost_on_marginals_nor_beside_the_nuclear_norm(mixed):
    marginals = mdp.Workload(mixed.domain, mdp.marginals([1, 2], weight=2.0), mdp.marginals(3))
    loss = select(marginals, noise=GAUSSIAN, mechanism="residual").certificate.loss
    assert loss * (1 - 1e-9) <= product_bound(marginals)[0] <= loss
    split, solver, solved = solve_decomposition(split_workload(mixed), 1e-6)
    start = mean_duals(split, solved)
    operator, _ = operator_at(split, solver, solved, start)
    root, p = tuned(operator, start)
    best = nuclear_bound(mixed, {name: p[type_] for name, type_ in split.types.items()})
    assert root >= operator.roots(start)[0].sum()
    assert 0.9 * best <= root**2 <= best
    # all of its sectors are small enough for their eigenvalues
    exact = [count * sector_norm(operator, sector, p) for sector, count in operator.sectors]
    assert sum(exact) ** 2 == pytest.approx(best, rel=1e-6)
    first = nuclear_bound(mixed, {name: start[type_] for name, type_ in split.types.items()})
    assert decomposition_bound(split, solver, solved) == pytest.approx(max(first, best), rel=1e-6)


def test_small_sectors_of_explicit_queries_are_exact():
    domain = mdp.Domain({"a": range(3), "b": range(4), "c": range(3)})
    rows = np.array([[1.0, 2, 0, 0, 1, 0, 0, 0, 1, 1, 0, 3], [0, 1, 1, 1, 0, 0, 2, 0, 0, 0, 1, 0]])
    workload = mdp.Workload(
        domain, mdp.dense(matrix=rows, attributes=["a", "b"]), mdp.pairwise("affine"), mdp.product(c="prefix")
    )
    split, solver, solved = solve_decomposition(split_workload(workload), 1e-6)
    p = mean_duals(split, solved)
    operator, rooted = operator_at(split, solver, solved, p)
    assert rooted
    best = nuclear_bound(workload, {name: p[type_] for name, type_ in split.types.items()})
    assert sector_norm(operator, 0, p) ** 2 == pytest.approx(best, rel=1e-6)
    assert 0.5 * best <= operator.roots(p)[0].sum() ** 2 <= best


def test_none_where_attributes_are_tied_that_no_query_asks_about_together():
    domain = mdp.Domain({"a": range(2), "b": range(3), "c": range(3), "d": range(2)})
    # of the first half who has b = 0, of the second who has c = 0: a pair of boxes ties b to c
    asked = np.zeros((2, 3, 3))
    asked[0, 0], asked[1, :, 0] = 1.0, 1.0
    entry = mdp.dense(matrix=asked.reshape(1, -1), attributes=["a", "b", "c"], by={"d": "identity"})
    workload = mdp.Workload(domain, entry)
    assert split_workload(workload).coupled_apart
    assert product_bound(workload) is None
    solution = solve_decomposition(split_workload(workload), 1e-4)
    assert decomposition_bound(*solution) is None


def test_certificates_have_it_for_both_noises():
    domain = mdp.Domain({f"a{i}": range(6) for i in range(5)})
    workload = mdp.Workload(domain, mdp.kway([1, 2], "prefix"))
    found = select(workload, noise=GAUSSIAN, mechanism="residual").certificate
    assert 0 < found.gap < 0.045
    assert found.scope.startswith("every Gaussian strategy")
    laplace = select(workload, noise=LAPLACE, mechanism="identity").certificate
    assert laplace.lower_bound == pytest.approx(2 * found.lower_bound, rel=1e-3)


def test_the_optimum_of_one_attribute_needs_no_product_of_matrices(limits):
    domain = mdp.Domain({"a": range(40), "b": range(3)})
    solved = solve_decomposition(split_workload(mdp.Workload(domain, mdp.kway([1, 2], "prefix"))), 1e-6)
    found = decomposition_bound(*solved)
    # two sets of queries, of which no strategy is the optimum of both
    both = mdp.Workload(domain, mdp.product(a="prefix", b="prefix"), mdp.product(a="identity"))
    other = solve_decomposition(split_workload(both), 1e-6)
    assert decomposition_bound(*other) is not None
    limits(spectral_cells=10)
    # the sectors of larger attributes are not looked at one by one
    assert decomposition_bound(*solved) == pytest.approx(found, rel=1e-6)
    assert decomposition_bound(*other) is None
    assert product_bound(both) is None
    limits(spectral_cells=40)
    limits(_SAME_TRACES=-1.0)
    assert decomposition_bound(*solved) == pytest.approx(found, rel=1e-6)


@pytest.mark.parametrize("limit", ["MOST_LOOKS", "MOST_TRIPLES"])
def test_none_where_there_are_too_many_triples(mixed, limit, limits: Override):
    limits(**{limit: 10})
    assert product_bound(mixed) is None


def test_none_where_the_tables_are_too_large(mixed, limits):
    limits(MOST_ENTRIES=10)
    assert product_bound(mixed) is None
    limits(spectral_cells=3)
    assert decomposition_bound(*solve_decomposition(split_workload(mixed), 1e-2)) is None


def test_what_is_dear_is_not_done_again_for_a_bound_that_proves_little(monkeypatch, limits: Override):
    """Beside joint strategies of many cells; where the bound is to be refined it is."""
    made = []

    def counted(*given):
        made.append(given)
        return operator_at(*given)

    monkeypatch.setattr(lower_bound, "operator_at", counted)
    limits(MOST_SECTOR_WORK=0.0)
    domain = mdp.Domain({"a": range(4), "b": range(4), "c": range(4)})
    workload = mdp.Workload(domain, mdp.kway(1, "range"), mdp.pairwise("affine"), mdp.kway(3, "prefix"))
    solved = solve_decomposition(split_workload(workload), 1e-6)
    best = decomposition_bound(*solved)
    often = len(made)
    limits(slow_cells=15)
    assert decomposition_bound(*solved) == best
    assert len(made) == 2 * often > 2
    limits(_FAR_LOSS=1.0)
    assert 0.9 * best < decomposition_bound(*solved) < best
    assert len(made) == 2 * often + 1
    assert decomposition_bound(*solved, certify=True) > best
    assert len(made) == 3 * often + 1


def test_a_bound_is_proved_once_for_every_mechanism_and_noise(monkeypatch):
    proved = []

    def counted(workload, certify):
        proved.append(workload)
        return product_bound(workload, certify)

    monkeypatch.setattr("matrixdp.selection.auto.product_bound", counted)
    workload = mdp.Workload(mdp.Domain({"a": 40, "b": 40}), mdp.kway(1, "prefix"), mdp.marginals(2))
    tried = [("identity", GAUSSIAN), ("identity", LAPLACE), ("wavelet", GAUSSIAN)]
    found = [select(workload, mechanism=name, noise=noise).certificate for name, noise in tried]
    assert len(proved) == 1
    assert found[1].lower_bound == 2.0 * found[0].lower_bound == 2.0 * found[2].lower_bound
    assert found[1].scope == "every strategy with laplace noise"
    again = mdp.Workload(workload.domain, mdp.kway(1, "prefix"), mdp.marginals(2))
    assert select(again, mechanism="identity", noise=GAUSSIAN).certificate == found[0]
    assert len(proved) == 2


@pytest.mark.parametrize(("limit", "asked"), [("written_entries", "dense"), ("spectral_cells", "affine")])
def test_none_where_explicit_queries_or_joint_strategies_are_too_large(limit, asked, limits: Override):
    domain = mdp.Domain({"a": range(3), "b": range(4)})
    rows = mdp.dense(matrix=np.arange(24.0).reshape(2, 12), attributes=["a", "b"])
    workload = mdp.Workload(domain, rows if asked == "dense" else mdp.pairwise("affine"), mdp.marginals(1))
    assert product_bound(workload) is not None
    limits(**{limit: 4})
    assert product_bound(workload) is None


@pytest.mark.parametrize("asked", ["prefix", "affine"])
def test_attributes_that_can_be_exchanged_share_their_triples(monkeypatch, asked, limits: Override):
    """As if they could not: the same bound, from more triples."""
    domain = mdp.Domain({name: range(4) for name in "abcd"} | {name: ["x", "y", "z"] for name in "ef"})
    pairs = mdp.kway(2, {"numeric": "prefix"}) if asked == "prefix" else mdp.pairwise("affine", list("abcd"))
    workload = mdp.Workload(
        domain, mdp.kway(1, "range", attributes=list("abcd")), pairs, mdp.marginals(2, ["e", "f"])
    )
    solved = solve_decomposition(split_workload(workload), 1e-6)
    found = decomposition_bound(*solved)
    operator, _ = operator_at(*solved, mean_duals(solved[0], solved[2]))
    monkeypatch.setattr(triples, "_exchangeable", lambda split, lattice, _: np.arange(len(lattice.types) - 1))
    limits(MOST_TIED=10_000)
    apart, _ = operator_at(*solved, mean_duals(solved[0], solved[2]))
    assert len(apart._values) > 2 * len(operator._values)
    assert len(apart.sectors) > len(operator.sectors)
    assert decomposition_bound(*solved) == pytest.approx(found, rel=1e-9)


def test_products_with_weighted_rows_leave_their_bound_to_plain_ones():
    domain = mdp.Domain({"a": range(8), "b": range(8)})
    crossed = mdp.product(a="prefix", b="identity"), mdp.product(a="identity", b="prefix")
    workload = mdp.Workload(domain, *crossed)
    split = split_workload(workload)
    solver = sub_solver_for(Pieces(split, optimized_weights(split)), GAUSSIAN, 1e-6, "product")
    optimum = select(workload, noise=GAUSSIAN, mechanism="dense").certificate.loss
    bound = decomposition_bound(split, solver, solve_classes(split, solver))
    assert 0.85 * optimum < bound <= optimum
