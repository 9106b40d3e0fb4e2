"""Groups: products, explicit queries, weights."""

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

from matrixdp import queries as q
from matrixdp.domain import Domain
from matrixdp.errors import TooLargeError
from matrixdp.queries import predicates


def test_product_rows_are_the_kronecker_product() -> None:
    group = q.ProductGroup("g", ("a", "b"), (q.Identity(), q.Prefix()), (2, 3))
    assert (group.counts, group.queries) == ((2, 3), 6)
    np.testing.assert_array_equal(group.rows(), np.kron(np.eye(2), np.tril(np.ones((3, 3)))))
    same, other = (q.ProductGroup("h", ("c", "d"), group.predicates, (2, size)) for size in (3, 4))
    assert group.key() == same.key() != other.key()
    total = q.ProductGroup("total", (), (), ())
    assert (total.queries, total.rows().tolist()) == (1, [[1.0]])


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 6), st.integers(1, 6))
def test_pairwise_rows(left: int, right: int) -> None:
    sums, gaps = q.Sums((left, right)), q.AbsoluteDifferences((left, right))
    cells = [(a, b) for a in range(left) for b in range(right)]
    expected = [[float(a + b <= c) for a, b in cells] for c in range(left + right - 1)]
    np.testing.assert_array_equal(sums.matrix(), expected)
    expected = [[float(abs(a - b) <= c) for a, b in cells] for c in range(max(left, right))]
    np.testing.assert_array_equal(gaps.matrix(), expected)
    assert (sums.count, gaps.count) == (left + right - 1, max(left, right))
    assert sums.key() == q.Sums((left, right)).key() != gaps.key()


def test_explicit_queries() -> None:
    domain = Domain({"a": 2, "b": 2})
    assert q.Sums((2, 2)).describe(domain, ("a", "b")) == ["a + b <= 0", "a + b <= 1", "a + b <= 2"]
    assert q.AbsoluteDifferences((2, 2)).describe(domain, ("a", "b")) == ["|a - b| <= 0", "|a - b| <= 1"]
    left, right = q.MatrixRows(np.eye(2)), q.MatrixRows(np.eye(2))
    assert left.describe(domain, ("a",)) == ["query 0", "query 1"]
    assert left.key() == right.key() != q.MatrixRows(2 * np.eye(2)).key()
    np.testing.assert_array_equal(left.matrix(), np.eye(2))
    group = q.DenseGroup("g", ("a", "b"), q.Sums((2, 3)), (2, 3), 2.0, np.arange(1.0, 5.0))
    assert group.queries == left.count + 2 == 4
    np.testing.assert_array_equal(group.rows(), q.Sums((2, 3)).matrix())
    assert group.key() == q.DenseGroup("h", ("c", "d"), q.Sums((2, 3)), (2, 3)).key()


def test_size_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(predicates, "MAX_EXPLICIT_ENTRIES", 20)
    with pytest.raises(TooLargeError, match="6 queries over 6 cells; the limit is 20"):
        q.ProductGroup("g", ("a", "b"), (q.Identity(), q.Prefix()), (2, 3)).rows()
    with pytest.raises(TooLargeError, match="4 queries over 6 cells; the limit is 20"):
        q.DenseGroup("g", ("a", "b"), q.Sums((2, 3)), (2, 3))
    monkeypatch.setattr(predicates, "MAX_EXPLICIT_ENTRIES", 3)
    with pytest.raises(TooLargeError, match="4 entries; the limit is 3"):
        q.Matrix(np.eye(2))


def test_weights_accepted() -> None:
    weight, weights = q.check_weights(np.int64(3), [[1, 2], [3, 4]], 4)
    assert weights is not None
    assert (weight, weights.tolist(), weights.flags.writeable) == (3.0, [1, 2, 3, 4], False)
