"""The noise of tables under one radius: its law, exact log-ratios over all moves, moments, and its sampler.

Statistical tests use fixed seeds, and alarm falsely with a probability below 1e-9 over the choice of them.
"""

import itertools
import math
from fractions import Fraction

import numpy as np
import programs
import pytest
from scipy import stats

import matrixdp as mdp
from matrixdp.errors import PrivacyError
from matrixdp.noise import Radius, SeededSource, radius
from matrixdp.selection.searches.radius import second_moment
from tests.noise.exact import FALSE_ALARM
from tests.noise.recorded import RecordedSource


def norms(vectors: np.ndarray, ranged: bool = False) -> np.ndarray:
    """The least sum of |z_i - t| over all t, or the range, from its definition, shape (draws,)."""
    if ranged:
        return np.ptp(vectors, axis=-1)
    reach = int(np.abs(vectors).max(initial=0))
    return np.min([np.abs(vectors - t).sum(axis=-1) for t in range(-reach, reach + 1)], axis=0)


def box(reach: int, cells: int) -> np.ndarray:
    """Every vector up to a common summand: the last entry is 0."""
    found = np.array(list(itertools.product(range(-reach, reach + 1), repeat=cells - 1)))
    return np.hstack([found, np.zeros((len(found), 1), dtype=int)])


def heights(blocks: list[np.ndarray], widths: tuple[int, ...], ranged: bool = False) -> np.ndarray:
    """The exponents of the probabilities of combinations of vectors, one axis for each block."""
    found = np.zeros([1] * len(blocks))
    for axis, (own, width) in enumerate(zip(blocks, widths, strict=True)):
        shape = [-1 if other == axis else 1 for other in range(len(blocks))]
        found = np.maximum(found, (norms(own, ranged) - width).reshape(shape))
    return found


CASES = [((2, 2), (0, 2)), ((2, 3), (1, 0)), ((3, 3), (0, 2)), ((2, 2, 3), (0, 1, 2)), ((4, 2), (1, 3))]


@pytest.mark.parametrize(("cells", "widths"), CASES, ids=str)
def test_no_record_moves_a_log_probability_by_more_than_one(cells: tuple[int, ...], widths: tuple[int, ...]):
    """Over all vectors of a box and all moves, signs and several records included; it is reached."""
    blocks = [box(4 if len(cells) < 3 else 3, own) for own in cells]
    own = heights(blocks, widths)
    each = [[sign * row for row in np.eye(n, dtype=int) for sign in (1, -1)] for n in cells]
    moves = list(itertools.product(*each))
    single = [
        np.abs(heights([b + m for b, m in zip(blocks, move, strict=True)], widths) - own).max()
        for move in moves
    ]
    assert max(single) == 1
    double = max(
        np.abs(heights([b + m + o for b, m, o in zip(blocks, move, other, strict=True)], widths) - own).max()
        for move, other in itertools.product(moves[::3], moves[::2])
    )
    assert double == 2


def test_the_sum_of_norms_in_place_of_their_maximum_is_not_private():
    """One radius pays once because one record moves every table by one: shares would be paid for each."""
    blocks = [box(4, 2), box(4, 3)]
    move = (np.array([1, 0]), np.array([1, 0, 0]))
    before, after = ([norms(b + m * on) for b, m in zip(blocks, move, strict=True)] for on in (0, 1))
    both = [np.add.outer(one, other) for one, other in (before, after)]
    assert np.abs(both[1] - both[0]).max() == 2


@pytest.mark.parametrize(("values", "widths"), [((2,), (0,)), ((3,), (2,)), ((2, 2), (0, 2))], ids=str)
def test_no_person_moves_a_log_probability_by_more_than_her_records_in_one_value(
    values: tuple[int, ...], widths: tuple[int, ...]
):
    """Over all vectors of a box and all persons with up to m records in each value; the ratio is reached.

    The second block has a sign of the person on it. Records of both signs would move ranges twice as far.
    """
    blocks = [box(4, own + 1)[:, ::-1] for own in values]  # the first of the values is the one of nobody
    own = heights(blocks, widths, ranged=True)

    def farthest(persons: list[tuple[int, ...]], signs: tuple[int, ...]) -> float:
        found = 0.0
        for person, sign, way in itertools.product(persons, signs, (1, -1)):
            move = np.array([0, *person]) * way
            both = [block + move * (sign if place else 1) for place, block in enumerate(blocks)]
            found = max(found, float(np.abs(heights(both, widths, ranged=True) - own).max()))
        return found

    for most in (1, 2):
        persons = list(itertools.product(range(most + 1), repeat=values[0]))
        assert farthest(persons, (1, -1)) == most
    assert farthest([(1, -1, 0)[: values[0]]], (1,)) == 2


@pytest.mark.parametrize("ranged", [False, True])
@pytest.mark.parametrize("cells", [2, 3, 4, 5])
def test_points_and_squares_are_those_of_lists(cells: int, ranged: bool):
    reach = 6 if cells < 5 else 4
    vectors = box(reach, cells)
    own = norms(vectors, ranged)
    centred = cells * vectors - vectors.sum(axis=1, keepdims=True)
    for norm in range(reach // 2 + 1):
        inside = own <= norm
        assert radius.points(cells, norm, ranged) == inside.sum()
        squares = (centred[inside].astype(object) ** 2).sum()
        assert radius.square_sum(cells, norm, ranged) * cells == squares


def test_the_error_of_ranges_is_that_of_the_closed_form():
    """sqrt((T + 2) (T + 3) / 6) scales for each of T values, less on integers."""
    for values in (2, 12, 52):
        noise = Radius((values + 1,), (0,), (True,))
        error = (values + 2) * (values + 3) / 6
        assert 2 * noise.scaled_variances[0] == pytest.approx(error, rel=1e-6)
        body = second_moment(values + 1, ranged=True) * (values + 1) * (values + 2)
        assert body == pytest.approx(error / 2)


def law(
    cells: tuple[int, ...], widths: tuple[int, ...], steps: Fraction, reach: int, ranged: bool = False
) -> np.ndarray:
    """The probabilities of all combinations of vectors of a box that has all but nothing of them."""
    weights = np.exp(-heights([box(reach, own) for own in cells], widths, ranged) / float(steps))
    return weights / weights.sum()


@pytest.mark.parametrize("ranged", [False, True])
@pytest.mark.parametrize("steps", [Fraction(1, 2), Fraction(4, 5)], ids=str)
def test_variances_are_those_of_the_law(steps: Fraction, ranged: bool):
    cells, widths, reach = (2, 4) if ranged else (2, 3), (2, 1), 22
    probabilities = law(cells, widths, steps, reach, ranged)
    noise = Radius(cells, tuple(math.ceil(own * 1024 / steps) for own in widths), (ranged,) * 2)
    stated = noise.variances(steps)
    for axis, own in enumerate(cells):
        vectors = box(reach, own)
        centred = vectors - vectors.mean(axis=1, keepdims=True)
        alone = probabilities.sum(axis=1 - axis)
        covariance = np.einsum("q,qi,qj->ij", alone, centred, centred)
        assert covariance == pytest.approx(stated[axis] * (np.eye(own) - 1 / own), abs=1e-6)


SAMPLED: dict[bool, tuple[tuple[int, ...], tuple[int, ...], list[tuple[int, ...]]]] = {
    False: ((2, 3, 2), (1, 2, 0), [(1, 1, 0), (0, 2, 0)]),
    True: ((4, 2), (2, 0), [(1, 0), (2, 1)]),
}


@pytest.mark.parametrize("ranged", SAMPLED)
def test_samples_have_the_joint_law_and_a_wrong_one_is_seen(ranged: bool):
    cells, widths, others = SAMPLED[ranged]
    steps, count, reach = Fraction(3, 4), 12_000, 6
    noise = Radius(cells, tuple(math.ceil(own * 1024 / steps) for own in widths), (ranged,) * len(cells))
    assert noise.lattice_widths(steps) == list(widths)
    source = SeededSource(1)
    drawn = [noise.draw(steps, source) for _ in range(count)]
    places = []
    for axis, own in enumerate(cells):
        vectors = np.array([each[axis] for each in drawn])
        free = (vectors - vectors[:, -1:])[:, : own - 1] + reach
        inside = ((free >= 0) & (free <= 2 * reach)).all(axis=1)
        index = np.ravel_multi_index(np.clip(free, 0, 2 * reach).T, (2 * reach + 1,) * (own - 1))
        places.append(np.where(inside, index, -1))
    held = np.min(places, axis=0) >= 0
    shape = tuple((2 * reach + 1) ** (own - 1) for own in cells)
    observed = np.bincount(
        np.ravel_multi_index([own[held] for own in places], shape), minlength=math.prod(shape)
    )

    def chi_square(widths: tuple[int, ...], ranged: bool = ranged) -> float:
        expected = count * law(cells, widths, steps, 2 * reach, ranged).reshape(
            [side for own in cells for side in [4 * reach + 1] * (own - 1)]
        )
        middle = tuple(slice(reach, 3 * reach + 1) for _ in range(expected.ndim))
        expected = expected[middle].ravel()
        large = expected > 8
        cell = np.append(expected[large], count - expected[large].sum())
        seen = np.append(observed[large], count - observed[large].sum())
        return float(stats.chi2.sf(((seen - cell) ** 2 / cell).sum(), len(cell) - 1))

    assert chi_square(widths) > FALSE_ALARM
    assert all(chi_square(other) < FALSE_ALARM for other in others)
    if ranged:  # of three cells both norms are the same
        assert chi_square(widths, ranged=False) < FALSE_ALARM


@pytest.mark.parametrize("steps", [Fraction(1, 3), Fraction(5), Fraction(2**20)], ids=str)
def test_the_mixture_has_no_negative_weights_and_is_the_product_of_points(steps: Fraction):
    noise = Radius((2, 2, 5, 3, 4), (0, 4000, 3000, 1000, 777), (False, False, False, True, True))
    kinds = list(zip(noise.cells, noise.lattice_widths(steps), noise.ranged, strict=True))
    weights = radius._expanded(tuple((kind, 1) for kind in kinds))
    assert min(weights) >= 0
    assert len(weights) == noise.dimension + 1
    for r in (0, 3, 40):
        points = math.prod(radius.points(n, width + r, ranged) for n, width, ranged in kinds)
        assert sum(own * math.comb(r, j) for j, own in enumerate(weights)) == points


def test_further_bits_decide_what_one_word_does_not():
    """The first weight's share of the probability: just below it, just above it, and the word between."""
    weights, steps = [1, 3], Fraction(1)
    odds = 1 / (math.e - 1)
    share = 1 / (1 + 3 * odds)
    word = int(share * 2**40)
    assert radius._place(weights, steps, word - 1, 40) == 0
    assert radius._place(weights, steps, word + 1, 40) == 1
    assert radius._place(weights, steps, word, 40) is None
    found = {radius._place(weights, steps, (word << 64) + rest, 104) for rest in (0, 2**64 - 1)}
    assert found == {0, 1}


def test_blocks_are_drawn_by_the_words_that_are_given():
    """Of two cells of norm 3: the weights are 1 (nothing moves) and 6; sizes are 1, 2 or 3."""
    for first, size, place in itertools.product((1, 6), (0, 1, 2), (0, 1)):
        drawn = radius.draw_block(2, 3, RecordedSource([first << 61, size << 62, place << 63]))
        expected = [0, 0]
        expected[place] = size + 1
        assert drawn.tolist() == expected
    assert radius.draw_block(2, 3, RecordedSource([0])).tolist() == [0, 0]


def test_ranges_are_drawn_by_the_words_that_are_given():
    """Of three cells of range 2: 9 vectors begin with 0, then 6 with another before it, then 4 with two."""
    drawn = set()
    for first, one, other in itertools.product(range(19), range(4), range(4)):
        words = [first << 59, one << 62, other << 62]
        try:
            drawn.add((first, tuple(radius.draw_ranged(3, 2, RecordedSource(words)).tolist())))
        except PrivacyError:
            continue  # a number out of range is drawn again
    begun = {place: [v for first, v in drawn if first == place] for place in range(19)}
    vectors = {v for _, v in drawn}
    assert vectors == {v for v in itertools.product(range(3), repeat=3) if min(v) == 0}
    assert [begun[place][0].index(0) for place in range(19)] == [0] * 9 + [1] * 6 + [2] * 4
    assert [len(begun[place]) for place in (0, 9, 15)] == [9, 6, 4]


def test_sources_and_blocks_that_are_none_are_rejected():
    class Broken:
        private = False

        def bits64(self, count: int) -> np.ndarray:
            return np.full(count, 7, dtype=np.uint64)

        def more_bits(self, count: int) -> int:
            return 1 << count

    with pytest.raises(PrivacyError):
        Radius((2, 3), (0, 0)).draw(Fraction(1), Broken())
    for cells, widths in (((1,), (0,)), ((2, 2), (0,)), ((), ()), ((2,), (-1,)), ((2,), (0.5,))):
        with pytest.raises(PrivacyError):
            Radius(cells, widths)  # type: ignore[arg-type]


def test_no_noise_at_all_has_much_less_error_for_two_questions():
    """A linear program over all noise on the integers for the counts of two yes/no questions and their total.

    The number of records and both differences of two counts move by 1 each, up or down. So the best noise may
    be taken even in all of them: points of one octant stand for all.
    """
    epsilon, moves = 0.7, np.array(list(itertools.product((1,), (-1, 1), (-1, 1))))
    points = programs.box(20, 3)
    points = points[(points % 2 == points[:, :1] % 2).all(axis=1)]
    squares = points[:, 0] ** 2 + (points[:, 1] ** 2 + points[:, 2] ** 2) / 2.0  # of the four counts
    least, _ = programs.least_of_all_noise(points, moves, squares, epsilon, np.abs)
    workload = mdp.Workload(mdp.Domain({"a": 2, "b": 2}), mdp.marginals(1))
    ours = mdp.select(workload, noise="laplace", mechanism="radius").selection.total_squared_error
    laplace = mdp.select(workload, noise="laplace", mechanism="opt-m").selection.total_squared_error
    assert 1.0 < ours / epsilon**2 / least < 1.01
    assert laplace / epsilon**2 / least > 1.15


def test_one_large_table_alone_is_selected_for():
    workload = mdp.Workload(mdp.Domain({"a": 10, "b": 100, "c": 1_000}), mdp.marginals(3))
    budget = mdp.Budget(epsilon=1)
    # a count of a cell alone: geometric noise, of variance 1 / (2 sinh^2(1/2))
    assert mdp.select(workload, budget=budget).rmse(budget) == pytest.approx(math.sqrt(0.5) / math.sinh(0.5))
