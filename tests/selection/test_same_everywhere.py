"""Strategies do not depend on how rounding falls: gradients, and bases of eigenspaces."""

import numpy as np
import pytest

import matrixdp as mdp
from matrixdp.errors import NumericalError
from matrixdp.mechanisms.products import spectrum_of
from matrixdp.noise import LAPLACE
from matrixdp.papers.matrix_mechanism import l2_factor, singular_value_factor
from matrixdp.selection.compose.weight_vectors import Objective, descend_weights, optimized_weights
from matrixdp.selection.descent import Effort
from matrixdp.selection.gram import ConvexSolver, solve_gram, solve_rows
from matrixdp.selection.problem.residuals import split_workload
from tests.limits import Override

BINARY = mdp.Workload(
    mdp.Domain({"a": 2, "b": 2, "c": 4}),
    mdp.product(a="prefix", b="identity"),
    mdp.product(b={"sets": [[1]]}, c="prefix", weight=3.0),
    mdp.product(a={"sets": [[0]]}, c={"sets": [[0, 2]]}),
)


def weights_near(split, share):
    """Return weights off the kinks of binary attributes."""
    return [
        np.array([share, 1.0 - share]) if size == 2 else np.arange(1.0, size + 1) / (size * (size + 1) / 2)
        for size in split.sizes
    ]


@pytest.mark.parametrize("share", [0.4828, 0.55, 0.3])
@pytest.mark.parametrize("power", [np.inf, 10.0])
def test_the_gradient_of_phi_is_that_of_finite_differences(share, power):
    split = split_workload(BINARY)
    weights = weights_near(split, share)
    gradient = Objective(split, gap=1e-11, joint_gap=1e-11, power=power)(weights)[1]
    for type_, size in enumerate(split.sizes):
        step = np.zeros(size)
        step[:2] = 1e-6, -1e-6
        phi = [
            Objective(split, gap=1e-11, joint_gap=1e-11, power=power)(
                [w + sign * step if t == type_ else w for t, w in enumerate(weights)]
            )[0]
            for sign in (1, -1)
        ]
        slope = (phi[0] - phi[1]) / 2e-6
        assert gradient[type_][0] - gradient[type_][1] == pytest.approx(slope, rel=1e-3, abs=1e-4)


@pytest.mark.parametrize("start", [None, np.array([0.5, 0.5]), np.array([0.09, 0.91]), np.array([0.0, 1.0])])
def test_the_dual_point_of_a_single_query_is_its_largest_entry(start):
    row = np.array([0.5172, -0.4828])
    for found in (solve_gram(np.outer(row, row), start=start), solve_rows(row[None, :], start=start)):
        np.testing.assert_allclose(found.dual, [1.0, 0.0], atol=1e-9)
        assert found.loss == pytest.approx(0.5172**2) == found.bound


def test_a_start_in_the_wrong_corner_does_not_spoil_the_optimum():
    rows = np.vstack([np.eye(6)[1:3], np.zeros((3, 6))])
    gram = rows.T @ rows + np.diag([0, 0, 0, 1.0, 2.0, 0])
    start = np.eye(6)[0]
    assert solve_gram(gram, start=start).bound == pytest.approx(solve_gram(gram).bound, rel=1e-5)


def test_a_smoothed_query_bounds_its_loss_from_above():
    row = np.array([0.5, -0.5, 0.2])
    exact, smooth = (ConvexSolver(power=p).queries(row[None, :], (3,)) for p in (np.inf, 100.0))
    assert exact.loss == smooth.loss == pytest.approx(0.25)
    assert exact.loss < smooth.bound < 1.01 * exact.loss


def test_weights_leave_the_kinks_of_binary_attributes():
    split = split_workload(BINARY)
    objective = Objective(split)
    found = objective(optimized_weights(split))[0]
    for share in np.linspace(0.3, 0.7, 9):
        assert found <= 1.0002 * objective(weights_near(split, share))[0]


@pytest.mark.parametrize("factor", [l2_factor, singular_value_factor])
@pytest.mark.parametrize("size", [4, 8])
def test_any_basis_of_an_eigenspace_gives_the_same_strategy(monkeypatch, factor, size):
    import scipy.linalg

    gram = 2.0 ** (size - 2) * (np.eye(size) + 1.0)
    plain, eigh = factor(gram, LAPLACE), scipy.linalg.eigh

    def turned(matrix, *args, **options):
        values, vectors = eigh(matrix, *args, **options)
        turn = np.linalg.qr(np.random.default_rng(3).standard_normal((size - 1, size - 1)))[0]
        same = np.ptp(values[: size - 1]) < 1e-9 * values[-1]
        return values, np.hstack([vectors[:, :-1] @ turn, -vectors[:, -1:]]) if same else vectors

    monkeypatch.setattr(scipy.linalg, "eigh", turned)
    assert factor(gram, LAPLACE).loss == pytest.approx(plain.loss, rel=1e-9)


def test_the_basis_of_a_whole_space_is_that_of_the_cells():
    np.testing.assert_allclose(spectrum_of(3.0 * np.eye(5)).vectors, np.eye(5), atol=1e-12)


def test_a_single_query_of_zeros_or_not_finite_has_no_strategy():
    for row in ([0.0, 0.0], [1.0, np.nan]):
        with pytest.raises(NumericalError):
            solve_rows(np.array([row]))


def test_a_search_that_steps_astray_comes_back(limits):
    split = split_workload(BINARY)
    objective = Objective(split)
    start = weights_near(split, 0.4)
    phi, _ = objective(start)
    free = [place for place, size in enumerate(split.sizes) if size > 1]
    # weights of 1e13 were seen, at which Gram matrices have negative eigenvalues
    limits(_LARGEST_WEIGHT=0.7)
    descend_weights(objective, [1e3 * own for own in start], free, Effort(20, 1e-9))
    assert objective.evaluations > 1
    assert objective.best is not None
    assert 0 < objective.best[0] <= phi


def test_weights_are_searched_where_they_curve_alike(limits: Override):
    """As far as in the weights themselves, in far fewer evaluations."""
    rng = np.random.default_rng(3)

    def ranges():
        return {"ranges": [sorted(map(int, rng.integers(0, 8, 2))) for _ in range(3)]}

    asked = [mdp.product(**{f"a{i}": ranges() for i in rng.choice(5, 2, replace=False)}) for _ in range(12)]
    split = split_workload(mdp.Workload(mdp.Domain({f"a{i}": 8 for i in range(5)}), *asked))
    curved: list[float] = []
    plain: list[float] = []
    limits(few_values=0)
    optimized_weights(split, lambda _, phi: curved.append(phi))
    limits(_FLATTEST=1.0)
    optimized_weights(split, lambda _, phi: plain.append(phi))
    assert len(curved) < 0.7 * len(plain)
    assert min(curved) < min(plain) * (1 + 1e-6)
