import numpy as np
import pytest

from matrixdp.exact import IntegerMatrix
from matrixdp.selection.gram import solve_gram
from matrixdp.selection.gram.dual import solve_dual
from matrixdp.selection.gram.factor import right_inverse
from matrixdp.selection.gram.p_identity import strategy_rows


@pytest.mark.parametrize(
    ("single", "pair", "size"), [(1, 1, 7), (0, 1, 5), (1, 0, 6), (2, -1 / 3, 6), (1, -0.1, 6), (3, 2, 1)]
)
def test_cells_treated_alike_have_a_closed_form(single, pair, size):
    gram = single * np.eye(size) + pair
    found = solve_gram(gram)
    values, vectors = np.linalg.eigh(gram)
    kept = values > 1e-12
    searched = solve_dual([(vectors[:, kept] * np.sqrt(values[kept])).T], 1e-10)
    assert found.loss == pytest.approx(searched.primal, rel=1e-8)
    assert found.bound == pytest.approx(found.loss, rel=1e-12)
    squares = found.rows.T @ found.rows
    assert squares.diagonal() == pytest.approx(np.ones(size))
    assert np.trace(np.linalg.pinv(squares, rcond=1e-9) @ gram) == pytest.approx(found.loss)
    assert found.inverse == pytest.approx(np.linalg.pinv(found.rows), abs=1e-12)


def test_nearly_alike_is_not_alike():
    gram = np.eye(5) + 1.0
    gram[1, 2] = gram[2, 1] = 1.001
    assert solve_gram(gram).loss != pytest.approx(solve_gram(np.eye(5) + 1.0).loss, rel=1e-6)


@pytest.mark.parametrize(("size", "count"), [(5, 1), (30, 4), (20, 20)])
def test_inverse_of_p_identity_strategies(size, count):
    rows = strategy_rows(3.0 * np.random.default_rng(size).random((count, size)))
    assert right_inverse(rows) == pytest.approx(np.linalg.pinv(rows), abs=1e-12)


def test_a_row_for_every_cell_proves_the_rank():
    entries = np.array([[0, 7, 0], [3, 0, 0], [0, 0, 1], [5, 5, 5]])
    assert np.linalg.matrix_rank(IntegerMatrix(entries).entries) == 3
    assert IntegerMatrix(entries).solve(entries @ np.array([[1.0], [2.0], [3.0]])).ravel() == pytest.approx(
        [1.0, 2.0, 3.0]
    )
