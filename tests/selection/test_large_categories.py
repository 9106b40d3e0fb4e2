"""Attributes of many values that nothing tells apart are selected for without a matrix over their values."""

from __future__ import annotations

import numpy as np
import pytest

import matrixdp as mdp
from matrixdp.exact import IdentityMatrix
from matrixdp.noise import GAUSSIAN, LAPLACE, Noise
from matrixdp.queries import Workload
from matrixdp.selection.auto import _reason, select
from matrixdp.selection.compose.product import solve_kron
from matrixdp.selection.gram.factor import Factor
from matrixdp.selection.gram.opt_0 import solve_axis, solve_symmetric
from matrixdp.selection.limits import LIMITS
from matrixdp.selection.problem.kron_sum import Inverse, KronSum
from matrixdp.selection.rules import Facts


def _beside_prefixes(values: int) -> Workload:
    domain = mdp.Domain({"a": [f"v{place}" for place in range(values)], "b": range(6)})
    return Workload(domain, mdp.kway([1, 2], {"numeric": "prefix", "categorical": "identity"}))


@pytest.mark.parametrize("noise", [GAUSSIAN, LAPLACE], ids=str)
@pytest.mark.parametrize("off", [0.0, 0.3, 2.0])
def test_the_closed_form_is_that_of_the_written_matrix(noise: Noise, off: float) -> None:
    """a I + b 11' has one strategy, whether its entries are seen or only a and b."""
    gram = 1.5 * np.eye(7) + off
    known, seen = solve_symmetric(7, 1.5, off, noise), solve_axis(gram, noise)
    assert known.loss == pytest.approx(seen.loss, rel=1e-12)
    errors = np.linalg.pinv(known.rows.T @ known.rows)
    assert float(np.vdot(gram, errors)) == pytest.approx(known.loss, rel=1e-9)
    assert float(noise.column_norms(known.rows).max()) == pytest.approx(1.0)


def test_what_an_attribute_sees_is_told_without_its_matrix() -> None:
    """The surrogate of identities and totals is a I + b 11'; that of prefixes is not known to be."""
    workload = _beside_prefixes(5)
    terms = KronSum.of(workload.domain, workload.groups)
    others: list[Inverse] = [0.2, np.asarray(np.linalg.inv(np.tri(6)), dtype=np.float64)]
    seen = terms.surrogate(0, others)
    a, b = seen.symmetric or (0.0, 0.0)
    np.testing.assert_allclose(a * np.eye(5) + b, seen.matrix(), rtol=1e-12)
    assert terms.surrogate(1, others).symmetric is None


def test_products_measure_large_attributes_whole() -> None:
    """Where totals have products of their own; a product alone keeps a total's row."""
    workload = _beside_prefixes(12)
    heavy = Workload(workload.domain, *workload.entries, mdp.product(b="prefix", weight=50))
    terms = KronSum.of(heavy.domain, heavy.groups)
    free, whole = (solve_kron(terms, LAPLACE, most_symmetric=most) for most in (500, 10))
    assert not free.factors[0].identity
    assert isinstance(whole.factors[0].strategy, IdentityMatrix)
    assert free.loss < whole.loss


def test_rows_are_told_without_being_written_out() -> None:
    """A million values would take eight terabytes."""
    assert Factor(IdentityMatrix(10**6), 1.0).height == 10**6


def test_products_are_searched_only_where_they_may_win() -> None:
    """A decomposition that is proved to be within a thousandth is taken, past the optimum's reach."""
    domain = mdp.Domain({"a": [f"v{place}" for place in range(100)], "b": range(6), "c": ["x", "y"]})
    found = select(
        Workload(domain, mdp.kway(2, {"numeric": "prefix", "categorical": "identity"})), noise=GAUSSIAN
    )
    assert found.mechanism == "residual"
    assert found.certificate.gap is not None
    assert LIMITS.rules_settled < found.certificate.gap < LIMITS.rules_worthwhile
    share = 100 * (1 - (1 + found.certificate.gap) ** -0.5)
    assert f" {share:.2g}%" in found.reason


def test_what_is_alone_says_why() -> None:
    prefixes = Workload(mdp.Domain({"a": range(8)}), mdp.product(a="prefix"))
    assert select(prefixes, noise=GAUSSIAN).reason == "at the lower bound, before rounding to integers"
    assert _reason((), None, Facts(prefixes, GAUSSIAN)) == "no other fits"
