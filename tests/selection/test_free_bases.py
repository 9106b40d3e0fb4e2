"""Products of free bases with weighted rows, against the dense optimum and finite differences."""

import itertools

import numpy as np
import pytest

import matrixdp as mdp
from matrixdp.errors import TooLargeError
from matrixdp.noise import GAUSSIAN
from matrixdp.selection.auto import select
from matrixdp.selection.compose import free_bases as module
from matrixdp.selection.compose import weighted_product
from matrixdp.selection.compose.free_bases import free_bases
from matrixdp.selection.compose.product import Product, solve_structured
from matrixdp.selection.compose.weighted_product import few_products
from matrixdp.selection.gram import ConvexSolver
from matrixdp.selection.view.product_terms import product_terms
from matrixdp.selection.view.table_shape import table_shape


def crossed(size: int, attributes: int = 2) -> mdp.Workload:
    """Prefixes of each attribute within every cell of the others."""
    names = "abcd"[:attributes]
    domain = mdp.Domain(dict.fromkeys(names, size))
    entries = [mdp.product(dict.fromkeys(names, "identity") | {name: "prefix"}) for name in names]
    return mdp.Workload(domain, *entries)


@pytest.mark.parametrize(("size", "attributes"), [(10, 2), (4, 3)])
def test_crossed_prefixes_are_near_the_optimum(size: int, attributes: int) -> None:
    workload = crossed(size, attributes)
    selection = select(workload, noise=GAUSSIAN, mechanism="weighted-product")
    optimum = select(workload, noise=GAUSSIAN, mechanism="dense").certificate
    loss = sum(selection.plan.analysis.group(group).weighted for group in workload)
    assert optimum.lower_bound is not None
    assert optimum.lower_bound <= loss <= 1.01 * optimum.lower_bound  # 0.5 % of the RMSE
    assert selection.certificate.loss == pytest.approx(loss, rel=1e-3)
    one_product = select(workload, noise=GAUSSIAN, mechanism="opt-kron").certificate.loss
    assert one_product > 1.02 * loss


def test_sub_workloads_past_the_joint_limit_are_given_free_bases(monkeypatch: pytest.MonkeyPatch) -> None:
    from matrixdp.selection.compose import sub_solver

    monkeypatch.setattr("matrixdp.selection.compose.decomposition.MAX_JOINT_CELLS", 50)
    monkeypatch.setattr(module, "_MAX_EVALUATIONS", 100)
    workload = crossed(10)
    freed = select(workload, noise=GAUSSIAN, mechanism="residual")
    monkeypatch.setattr(sub_solver, "free_bases", lambda _, product: product)
    alternated = select(workload, noise=GAUSSIAN, mechanism="residual")
    assert freed.certificate.loss < 0.995 * alternated.certificate.loss
    loss = sum(freed.plan.analysis.group(group).weighted for group in workload)
    assert loss == pytest.approx(freed.certificate.loss, rel=1e-3)


def test_the_gradient_is_that_of_the_error() -> None:
    domain = mdp.Domain({"a": 4, "b": 3, "c": 2})
    workload = mdp.Workload(
        domain,
        mdp.disjunction(a="prefix", b="identity"),
        mdp.product(a="range", c="identity"),
        mdp.marginals(1),
    )
    error = module._Error(product_terms(domain, workload.groups))
    rng = np.random.default_rng(3)
    bases = [np.eye(n) + 0.2 * rng.normal(size=(n, n)) for n in error.shape]
    flat = error.flat(bases, rng.normal(size=error.shape))
    for power in (3.0, 40.0):
        gradient = error(flat, power)[1]
        steps = 1e-6 * np.eye(len(flat))
        slopes = [(error(flat + h, power)[0] - error(flat - h, power)[0]) / 2e-6 for h in steps]
        np.testing.assert_allclose(gradient, slopes, atol=2e-6)
    assert error.work > 0


def test_what_has_no_free_bases_stays_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    domain = mdp.Domain({"a": 5, "b": 4})
    workload = mdp.Workload(domain, mdp.pairwise("affine", ["a", "b"]), mdp.product(a="prefix", b="prefix"))
    explicit = product_terms(domain, workload.groups)
    product = solve_structured(explicit, ConvexSolver(1e-4))
    assert free_bases(explicit, product) is product
    terms = product_terms(*(crossed(4).domain, crossed(4).groups))
    product = solve_structured(terms, ConvexSolver(1e-4))
    fewer = Product(tuple(factor for factor in product.factors), product.loss)
    monkeypatch.setattr(module, "MAX_FREE_CELLS", 15)
    assert free_bases(terms, fewer) is fewer
    selection = select(workload, noise=GAUSSIAN, mechanism="weighted-product")
    loss = sum(selection.plan.analysis.group(group).weighted for group in workload)
    assert loss == pytest.approx(selection.certificate.loss, rel=1e-3)


def test_explicit_queries_may_leave_attributes_out() -> None:
    rows = np.array([[1.0, 2.0, 0.0, -1.0], [0.0, 1.0, 1.0, 1.0]])
    domain = mdp.Domain({"a": 3, "b": 4, "c": 2})
    entries = [mdp.product(a="prefix", b="prefix"), mdp.dense(rows, ["b"]), mdp.marginals([["c"]])]
    workload = mdp.Workload(domain, *entries)
    terms = product_terms(domain, workload.groups)
    inverses = [np.random.default_rng(size).normal(size=(size, size)) for size in terms.sizes]
    assert terms.row_energies(inverses).sum() == pytest.approx(terms.loss(inverses))
    selection = select(workload, noise=GAUSSIAN, mechanism="weighted-product")
    loss = sum(selection.plan.analysis.group(group).weighted for group in workload)
    assert loss == pytest.approx(selection.certificate.loss, rel=1e-3)


def test_attributes_that_factor_out_are_solved_apart() -> None:
    domain = mdp.Domain({"a": 5, "b": 4, "c": 6, "d": 3})
    both = {"c": "prefix", "d": "identity"}
    workload = mdp.Workload(
        domain,
        mdp.product({"a": "prefix", "b": "identity"} | both),
        mdp.product({"a": "identity", "b": "prefix"} | both),
    )
    selection = select(workload, noise=GAUSSIAN, mechanism="weighted-product")
    loss = sum(selection.plan.analysis.group(group).weighted for group in workload)
    optimum = select(workload, noise=GAUSSIAN, mechanism="dense").certificate.loss
    assert optimum <= loss * 1.001
    assert loss <= 1.01 * optimum
    alone = select(
        mdp.Workload(domain, mdp.product(both)), noise=GAUSSIAN, mechanism="weighted-product"
    ).certificate
    assert alone.gap is not None
    assert alone.gap < 1e-5


def test_auto_tries_it_for_sums_of_few_products(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("matrixdp.selection.mechanisms.trials.MAX_COMPARED_CELLS", 20)
    monkeypatch.setattr(module, "_MAX_EVALUATIONS", 60)
    workload = crossed(6)
    assert select(workload, noise=GAUSSIAN).mechanism == "weighted-product"
    many = mdp.Workload(workload.domain, *itertools.repeat(mdp.product(a="prefix"), 5))
    assert not few_products(many, table_shape(many))
    dense = mdp.Workload(workload.domain, mdp.pairwise("affine"), mdp.product(a="prefix"))
    assert not few_products(dense, table_shape(dense))


@pytest.mark.parametrize(
    ("limit", "message"),
    [
        ("MAX_FREE_CELLS", "a x b has 16 cells that do not factor; the limit is 3 cells"),
        ("MAX_AXIS_VALUES", "and 3 values of an attribute"),
        ("MAX_TABLE_ROWS", "weighted-product: 48 rows, each with a weight; the limit is 3"),
    ],
)
def test_what_is_too_large_is_refused(monkeypatch: pytest.MonkeyPatch, limit: str, message: str) -> None:
    monkeypatch.setattr(weighted_product, limit, 3)
    monkeypatch.setattr(module, "_MAX_EVALUATIONS", 5)
    domain = mdp.Domain({"a": 4, "b": 4, "c": 3})
    sets = ("prefix", "identity"), ("identity", "prefix")
    crossing = [mdp.product(a=a, b=b, c="identity") for a, b in sets]
    with pytest.raises(TooLargeError, match=message):
        select(mdp.Workload(domain, *crossing), noise=GAUSSIAN, mechanism="weighted-product")


def test_a_large_attribute_that_factors_out_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(weighted_product, "MAX_AXIS_VALUES", 4)
    monkeypatch.setattr(module, "_MAX_EVALUATIONS", 5)
    domain = mdp.Domain({"a": 4, "b": 4, "c": 5})
    sets = ("prefix", "identity"), ("identity", "prefix")
    crossing = [mdp.product(a=a, b=b, c="prefix") for a, b in sets]
    with pytest.raises(TooLargeError, match="an attribute of 5 values; the limit is 4"):
        select(mdp.Workload(domain, *crossing), noise=GAUSSIAN, mechanism="weighted-product")
