"""The certified optimum on explicit domains."""

import numpy as np
import pytest

from matrixdp.errors import NumericalError
from matrixdp.noise import GAUSSIAN
from matrixdp.privacy import Budget
from matrixdp.queries import AllRanges, Prefix, Sliding
from matrixdp.selection.gram import dual as solver
from matrixdp.selection.gram import optimum, solve_dual, solve_gram, solve_rows
from matrixdp.selection.problem import grams


def _centered(n):
    return np.eye(n) - 1.0 / n


def dual_value(gram, p):
    """The square of tr((D^(1/2) V D^(1/2))^(1/2)), by definition."""
    half = np.sqrt(p / p.sum())
    values = np.linalg.eigvalsh(gram * np.outer(half, half))
    return float(np.sqrt(np.where(values > 1e-13 * values[-1], values, 0)).sum() ** 2)


def _affine(n):
    sums = np.add.outer(np.arange(n), np.arange(n)).ravel()
    rows = (sums[None, :] <= np.arange(2 * n - 1)[:, None]).astype(float)
    return rows @ np.kron(_centered(n), _centered(n))


@pytest.mark.parametrize(
    ("predicates", "size", "printed"),
    [
        (AllRanges(), 64, 9.73),
        (AllRanges(), 256, 12.26),
        (Prefix(), 64, 8.87),
        (Prefix(), 256, 10.66),
    ],
)
def test_published_optima(predicates, size, printed):
    # HDMM journal version, Table 5: (epsilon, delta) = (1, 1e-6), analytic Gaussian
    design = solve_gram(predicates.gram(size))
    assert design.loss / design.bound - 1 < 1e-6
    cost = GAUSSIAN.error_scale(Budget(epsilon=1, delta=1e-6))
    assert np.sqrt(design.loss / predicates.count(size) / cost) <= printed + 0.005


@pytest.mark.slow
@pytest.mark.parametrize(
    ("predicates", "size"), [(AllRanges(), 512), (Prefix(), 512), (Prefix(), 1024), (Sliding(32), 512)]
)
def test_certified_in_few_looks(predicates, size, monkeypatch):
    looks = []
    evaluate = solver._evaluate
    monkeypatch.setattr(solver, "_evaluate", lambda *given: looks.append(1) or evaluate(*given))
    design = solve_gram(predicates.gram(size))
    assert design.loss / design.bound - 1 < 1e-6
    assert len(looks) < 25


@pytest.mark.parametrize(
    "gram",
    [
        Prefix().gram(20),
        _centered(20) @ Prefix().gram(20) @ _centered(20),
        _affine(8).T @ _affine(8),
        np.ones((5, 5)),
        np.diag([1.0, 0.0, 2.0]),
    ],
)
def test_certificates_hold(gram):
    design = solve_gram(gram, gap=1e-8)
    assert design.loss / design.bound - 1 < 1e-6
    assert (design.rows**2).sum(axis=0).max() <= 1 + 1e-12
    strategy = design.rows.T @ design.rows
    direct = np.trace(np.linalg.pinv(strategy, rcond=1e-9) @ gram)
    assert direct == pytest.approx(design.loss, rel=1e-6)
    # the dual value is a bound for every strategy: check it against its definition
    assert dual_value(gram, design.dual) == pytest.approx(design.bound, rel=1e-6)


def test_symmetry_changes_nothing():
    n = 9
    gram = _affine(n).T @ _affine(n) + 0.3 * np.kron(*[_centered(n) @ Prefix().gram(n) @ _centered(n)] * 2)
    plain = solve_gram(gram, [n * n])
    split = solve_gram(gram, [n, n])
    assert split.loss == pytest.approx(plain.loss, rel=1e-6)
    assert len(split.rows) == len(plain.rows)


def test_few_queries_over_many_cells():
    rows = _affine(12)
    assert solve_rows(rows).loss == pytest.approx(solve_gram(rows.T @ rows).loss, rel=2e-6)


def test_products_of_optima_are_optimal():
    left, right = Prefix().gram(7), _centered(6) @ AllRanges().gram(6) @ _centered(6)
    whole = solve_gram(np.kron(left, right), gap=1e-9)
    assert solve_gram(left).loss * solve_gram(right).loss == pytest.approx(whole.loss, rel=1e-6)


def test_gradient_by_finite_differences():
    rng = np.random.default_rng(0)
    gram = _affine(6).T @ _affine(6) + np.eye(36)
    change = rng.normal(size=(36, 36))
    change = change @ change.T
    step = 1e-3
    ends = [np.sqrt(solve_gram(gram + s * change, gap=1e-10).bound) for s in (-step, step)]
    design = solve_gram(gram, gap=1e-10)
    assert (ends[1] - ends[0]) / (2 * step) == pytest.approx(
        0.5 * np.trace(design.slope @ change) / np.sqrt(design.level), rel=2e-3
    )


GRAMS = [
    Prefix().gram(20),
    AllRanges().gram(13),
    _centered(12) @ Prefix().gram(12) @ _centered(12),
    np.diag(np.arange(1.0, 8.0)),
]


@pytest.mark.parametrize("gram", GRAMS)
@pytest.mark.parametrize("gap", [10.0, 0.3, 1e-2, 1e-5])
def test_bounds_hold_wherever_the_solver_stops(gram, gap):
    """A bound is never above the optimum, nor raised to the error of the strategy beside it."""
    optimum = solve_gram(gram, gap=1e-10)
    design = solve_gram(gram, gap=gap)
    assert design.bound <= optimum.loss * (1 + 1e-12)
    assert design.loss <= design.bound * (1 + gap)
    # the distribution that comes with the strategy proves a bound itself: by definition, not by the solver
    value = dual_value(gram, design.dual)
    assert design.dual_value == pytest.approx(value, rel=1e-9)
    assert design.bound >= value * (1 - 1e-9)
    if gap == 10.0:  # one look: what is proved is its value and nothing else
        assert design.bound == pytest.approx(value, rel=1e-9)


def test_bounds_come_from_points_that_were_looked_at(monkeypatch):
    values = []
    evaluate = solver._evaluate

    def looked(blocks, y):
        values.append(dual_value(sum(block.T @ block for block in blocks), y))
        return evaluate(blocks, y)

    monkeypatch.setattr(solver, "_evaluate", looked)
    for gap in (0.2, 1e-3, 1e-8):
        values.clear()
        design = solve_rows(np.tril(np.ones((6, 6)))[:, :5], gap=gap)
        assert design.bound == pytest.approx(max(values), rel=1e-9)


@pytest.mark.parametrize(
    "gram",
    [
        np.zeros((3, 3)),
        np.full((2, 2), np.nan),
        np.array([[1.0, np.inf], [np.inf, 1.0]]),
        -np.ones((2, 2)) - np.eye(2),
    ],
)
def test_nothing_to_solve(gram):
    with pytest.raises(NumericalError, match="zero or not finite"):
        solve_gram(gram)


def test_zero_queries():
    with pytest.raises(NumericalError, match="all zero"):
        solve_rows(np.zeros((2, 5)))


@pytest.mark.parametrize("centered", [False, True])
def test_values_that_may_trade_places_are_solved_by_class(monkeypatch, centered):
    widths, solve = [], solve_dual

    def counted(blocks, *given):
        widths.append(blocks[0].shape[1])
        return solve(blocks, *given)

    monkeypatch.setattr(optimum, "solve_dual", counted)
    states = np.repeat(np.arange(5), [1, 9, 20, 30, 20])
    counties = np.random.default_rng(0).permutation(states)
    gram = 2.0 * np.eye(80) + 3.0 * (counties[:, None] == counties) + 1.0
    if centered:
        weights = np.array([3.0, 1.0, 2.0, 1.0, 4.0])[counties]
        mean = np.eye(80) - np.outer(np.ones(80), weights / weights.sum())
        gram = mean.T @ gram @ mean
    found = solve_gram(gram, gap=1e-8)
    assert widths == [5]
    inverse = np.linalg.pinv(found.rows)
    assert np.square(found.rows).sum(axis=0).max() <= 1.0 + 1e-9
    assert np.allclose(found.rows @ inverse @ found.rows, found.rows)
    assert np.isclose(np.trace(inverse.T @ gram @ inverse), found.loss, rtol=1e-9)
    assert found.bound <= found.loss <= found.bound * (1.0 + 1e-8)
    # the same as cell by cell
    monkeypatch.setattr(grams, "siblings", lambda _: None)
    assert np.isclose(solve_gram(gram, gap=1e-8).bound, found.bound, rtol=1e-7)
    assert widths == [5, 80]


def test_values_that_no_query_tells_apart_are_solved_as_one(monkeypatch):
    widths, solve = [], solve_dual

    def counted(blocks, *given):
        widths.append(blocks[0].shape[1])
        return solve(blocks, *given)

    random = np.random.default_rng(1)
    queries, step = random.normal(size=(2, 3, 7))
    cells = random.permutation(np.repeat(np.arange(7), [1, 9, 10, 20, 15, 5, 20]))

    def loss(amount):
        rows = queries + amount * step
        return solve_gram(rows.T @ rows, gap=1e-11).loss

    gram, change = queries.T @ queries, step.T @ queries + queries.T @ step
    monkeypatch.setattr(optimum, "solve_dual", counted)
    found = solve_gram(gram[np.ix_(cells, cells)], gap=1e-9)
    solve_gram(gram[np.ix_(cells, cells)], gap=1e-9, start=found.dual)
    assert widths == [7, 7]
    assert np.isclose(found.loss, loss(0.0), rtol=1e-8)
    assert found.bound <= found.loss <= found.bound * (1.0 + 1e-9)
    assert found.rows.shape == (3, 80)
    assert np.isclose(found.dual.sum(), 1.0)
    slope = np.vdot(found.slope, change[np.ix_(cells, cells)])
    assert np.isclose(slope, (loss(1e-4) - loss(-1e-4)) / 2e-4, rtol=1e-5)


def test_values_without_classes_are_solved_as_they_are():
    # cells that no query tells apart, a single query, and no query at all
    halves = np.repeat([1.0, 2.0], 40)
    assert solve_gram(np.outer(halves, halves)).loss == solve_gram(np.outer(halves, halves)).bound == 4.0
    blocks = np.asarray(np.kron(np.eye(4) + 1.0, np.ones((20, 20))), dtype=np.float64)
    assert np.isclose(solve_gram(blocks).loss, solve_gram(np.eye(4) + 1.0).loss, rtol=1e-6)
    with pytest.raises(NumericalError):
        solve_gram(np.zeros((80, 80)))
