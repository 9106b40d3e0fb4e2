"""Groups: products, explicit queries, weights."""

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

from matrixdp.domain import Domain
from matrixdp.errors import TooLargeError
from matrixdp.queries import (
    AbsoluteDifferences,
    DenseGroup,
    Identity,
    MatrixRows,
    Prefix,
    ProductGroup,
    Sums,
    Total,
    check_weights,
    predicates,
)


def test_product_rows_are_the_kronecker_product() -> None:
    group = ProductGroup("g", ("a", "b"), (Identity(), Prefix()), (2, 3))
    assert group.counts == (2, 3)
    assert group.queries == 6
    np.testing.assert_array_equal(group.rows(), np.kron(np.eye(2), np.tril(np.ones((3, 3)))))
    assert group.key() == ProductGroup("h", ("c", "d"), (Identity(), Prefix()), (2, 3)).key()
    assert group.key() != ProductGroup("h", ("c", "d"), (Identity(), Prefix()), (2, 4)).key()


def test_single_total() -> None:
    group = ProductGroup("total", (), (), ())
    assert group.queries == 1
    assert group.rows().tolist() == [[1.0]]
    assert ProductGroup("t", ("a",), (Total(),), (4,)).rows().tolist() == [[1.0] * 4]


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 6), st.integers(1, 6))
def test_pairwise_rows(left: int, right: int) -> None:
    sums, gaps = Sums((left, right)), AbsoluteDifferences((left, right))
    cells = [(a, b) for a in range(left) for b in range(right)]
    expected = [[float(a + b <= c) for a, b in cells] for c in range(left + right - 1)]
    np.testing.assert_array_equal(sums.matrix(), expected)
    expected = [[float(abs(a - b) <= c) for a, b in cells] for c in range(max(left, right))]
    np.testing.assert_array_equal(gaps.matrix(), expected)
    assert sums.count == len(sums.matrix())
    assert gaps.count == len(gaps.matrix())
    # the last query of both is the total, and no query is empty
    assert sums.matrix()[-1].all()
    assert gaps.matrix()[-1].all()
    assert sums.key() == Sums((left, right)).key() != gaps.key()


def test_descriptions_of_explicit_rows() -> None:
    domain = Domain({"a": 2, "b": 2})
    assert Sums((2, 2)).describe(domain, ("a", "b")) == ["a + b <= 0", "a + b <= 1", "a + b <= 2"]
    assert AbsoluteDifferences((2, 2)).describe(domain, ("a", "b")) == ["|a - b| <= 0", "|a - b| <= 1"]
    assert MatrixRows(np.eye(2)).describe(domain, ("a",)) == ["query 0", "query 1"]


def test_dense_group() -> None:
    group = DenseGroup("g", ("a", "b"), Sums((2, 3)), (2, 3), 2.0, np.arange(1.0, 5.0))
    assert group.queries == 4
    np.testing.assert_array_equal(group.rows(), Sums((2, 3)).matrix())
    assert group.key() == DenseGroup("h", ("c", "d"), Sums((2, 3)), (2, 3)).key()
    left, right = MatrixRows(np.eye(2)), MatrixRows(np.eye(2))
    assert left.key() == right.key() != MatrixRows(2 * np.eye(2)).key()
    assert left.count == 2
    np.testing.assert_array_equal(left.matrix(), np.eye(2))


def test_size_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(predicates, "MAX_EXPLICIT_ENTRIES", 20)
    with pytest.raises(TooLargeError, match="6 queries over 6 cells; the limit is 20"):
        ProductGroup("g", ("a", "b"), (Identity(), Prefix()), (2, 3)).rows()
    with pytest.raises(TooLargeError, match="4 queries over 6 cells; the limit is 20"):
        DenseGroup("g", ("a", "b"), Sums((2, 3)), (2, 3))


def test_weights_accepted() -> None:
    weight, weights = check_weights(np.int64(3), [[1, 2], [3, 4]], 4)
    assert weight == 3.0
    assert weights is not None
    assert weights.tolist() == [1, 2, 3, 4]
    assert not weights.flags.writeable
