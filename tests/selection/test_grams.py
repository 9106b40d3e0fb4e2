"""Disjunctions and weighted products as a few Kronecker products: selection and analysis against rows."""

import numpy as np
import pytest

import matrixdp as mdp
from matrixdp.noise import GAUSSIAN
from matrixdp.queries import Workload
from matrixdp.selection.auto import select
from matrixdp.selection.problem.entries import distinct_cells
from matrixdp.selection.problem.grams import CrossGram, gram_terms, weight_products
from matrixdp.selection.problem.kron_sum import KronSum
from matrixdp.selection.problem.residuals import split_workload
from tests.limits import Override

DOMAIN = mdp.Domain({"a": 4, "b": 3, "c": 2})
UNEVEN = np.outer([1, 2, 3, 4], [1, 2, 5])


def over_all(workload: Workload) -> np.ndarray:
    """All queries over the whole domain, scaled by the roots of their weights."""
    found = []
    for group in workload:
        shape = (DOMAIN[name].size if name in group.attributes else 1 for name in DOMAIN.names)
        rows = np.broadcast_to(group.rows().reshape(-1, *shape), (group.queries, *DOMAIN.shape))
        own = np.ones(group.queries) if group.query_weights is None else group.query_weights
        found.append(rows.reshape(group.queries, -1) * np.sqrt(group.weight * own)[:, None])
    return np.vstack(found)


def test_disjunctions_of_many_cells_are_selected_and_analysed_without_them() -> None:
    domain = mdp.Domain({"age": 60, "race": 5, "relationship": 6, "state": 40})
    asked = mdp.disjunction(age="prefix", race="identity", relationship="identity", by={"state": "identity"})
    workload = Workload(domain, asked)
    assert workload.queries == 72_000  # over as many cells: 5,184,000,000 entries
    selection = select(workload, noise=GAUSSIAN, mechanism="residual")
    [group] = workload.groups
    loss = selection.certificate.loss
    assert selection.plan.analysis.group(group).weighted == pytest.approx(loss, rel=1e-3)
    # one state of forty costs what it would alone, but for the total over them
    alone = Workload(domain, mdp.disjunction(age="prefix", race="identity", relationship="identity"))
    single = select(alone, noise=GAUSSIAN, mechanism="residual").certificate.loss
    assert loss == pytest.approx(40 * single, rel=1e-4)


def test_weights_are_a_few_products_or_are_written_out() -> None:
    [(scale, vectors)] = weight_products(np.multiply.outer(UNEVEN, [2.0, 3.0])) or []
    assert scale == 2.0
    assert [vector.tolist() for vector in vectors] == [[1, 2, 3, 4], [1, 2, 5], [1, 1.5]]
    cube = np.multiply.outer(UNEVEN, [2.0, 3.0]) + 1.0
    found = weight_products(cube)
    assert found is not None
    assert len(found) <= 4
    total = sum(c * np.einsum("i,j,k->ijk", *vectors) for c, vectors in found)
    np.testing.assert_allclose(total, cube, rtol=1e-10)
    assert weight_products(np.random.default_rng(0).uniform(1, 2, (9, 9))) is None
    [group] = mdp.product(a="prefix", b="prefix", weights=np.full((4, 3), 7.0)).expand(DOMAIN)
    terms = gram_terms(group)
    assert terms is not None
    assert [coefficient for coefficient, _ in terms] == [7.0]
    [single] = mdp.product(weights=[3.0]).expand(DOMAIN)
    [(coefficient, asked)] = gram_terms(single) or []
    assert (coefficient, asked) == (3.0, ())


def test_pairs_of_products_have_the_product_of_their_rows() -> None:
    predicates = mdp.queries.Prefix()
    weights = np.array([1.0, -2.0, 3.0])
    cross = CrossGram(mdp.queries.Identity(), predicates, 3, weights)
    expected = np.diag(weights) @ predicates.rows(3)
    np.testing.assert_array_equal(cross.matrix(), expected)
    assert cross.trace() == np.trace(expected)
    assert cross.symmetric is None
    assert cross.key != CrossGram(mdp.queries.Identity(), predicates, 3).key


BOXES: list[list[dict[str, object]] | dict[str, object]] = [
    {"a": [0, 1], "b": 0},
    [{"a": 3, "b": [0, 2]}, {"a": 0}],
]


def test_queries_over_merged_attributes_leave_the_others_to_factor_out(limits: Override) -> None:
    rows = np.random.default_rng(2).integers(-2, 3, (2, 12))
    asked = Workload(
        DOMAIN,
        mdp.cells(BOXES, by={"c": "identity"}, weight=2),
        mdp.dense(rows, ["a", "b"], by={"c": "identity"}),
    )
    whole = KronSum.of(DOMAIN, asked.groups)
    assert whole.joint == ("a", "b")
    assert list(whole.factored) == ["c"]
    over = over_all(asked)
    np.testing.assert_allclose(whole.dense(DOMAIN.names), over.T @ over, atol=1e-11)
    assert not split_workload(asked).explicit
    selection = select(asked, noise=GAUSSIAN, mechanism="residual")
    loss = sum(selection.plan.analysis.group(group).weighted for group in asked)
    assert loss == pytest.approx(selection.certificate.loss, rel=1e-3)
    # what is within each cell of an attribute costs so many times what it costs alone
    alone = Workload(DOMAIN, mdp.cells(BOXES, weight=2), mdp.dense(rows, ["a", "b"]))
    single = select(alone, noise=GAUSSIAN, mechanism="dense").certificate.loss
    assert select(asked, noise=GAUSSIAN, mechanism="dense").certificate.loss == pytest.approx(
        2 * single, rel=1e-4
    )
    limits(MAX_BOX_TERMS=4)
    assert len(split_workload(asked).explicit) == 2
    [matrix] = mdp.dense(rows[:, :4], ["a"], by={"c": "prefix"}).expand(DOMAIN)
    [(coefficient, (own, _))] = gram_terms(matrix) or []
    assert coefficient == 1.0
    np.testing.assert_array_equal(own.matrix(), rows[:, :4].T @ rows[:, :4])


@pytest.mark.parametrize("apart", [1e-9, 10.0])  # with the second their numbers tell no two cells apart
def test_cells_are_the_same_where_no_query_tells_them_apart(apart: float, limits: Override):
    limits(alike=apart)
    random = np.random.default_rng(5)
    queries = random.integers(0, 2, size=(4, 40)) * 1.0
    first, place = distinct_cells(queries.T @ queries)
    assert first.tolist() == sorted(np.unique(queries, axis=1, return_index=True)[1].tolist())
    np.testing.assert_array_equal(queries[:, first][:, place], queries)
