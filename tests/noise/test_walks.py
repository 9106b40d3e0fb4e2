"""The noise of walks: its law, exact log-ratios over all moves, moments, and quantiles of combinations.

Statistical tests use fixed seeds, and alarm falsely with a probability below 1e-9 over the choice of them.
"""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from flint import arb, ctx, fmpq
from programs import box, least_of_all_noise
from scipy import stats

from matrixdp.errors import PrivacyError
from matrixdp.exact import WalkMatrix
from matrixdp.exact.walks import paths
from matrixdp.noise import SeededSource, Walk, drawing, laplace, walks
from matrixdp.selection.searches.walks import walk_for
from tests.noise.exact import FALSE_ALARM
from tests.noise.recorded import RecordedSource


def heights(noise: np.ndarray, widths: tuple[int, ...]) -> np.ndarray:
    """The exponents h of probabilities a^h of the noise of walks, from the definition, shape (lines,)."""
    total, before = np.zeros(len(noise), dtype=np.int64), np.zeros(len(noise), dtype=np.int64)
    for own, width in zip(noise.T, widths, strict=True):
        innovation = own - before
        beyond = np.maximum(np.abs(innovation) - width, 0)
        total += beyond
        before = before + np.sign(innovation) * beyond
    return total


WIDTHS = [(1, 1, 0), (2, 0, 1), (0, 3, 1), (0, 0, 0), (3, 2, 1, 0), (0, 2, 0, 3), (1, 0, 2, 0)]


@pytest.mark.parametrize("widths", WIDTHS, ids=str)
def test_no_record_moves_a_log_probability_by_more_than_its_entry(widths: tuple[int, ...]):
    """Of every noise in a box, for records of every value that count once, twice, thrice; it is reached."""
    size = len(widths)
    noise = box(5 if size == 3 else 4, size)
    own = heights(noise, widths)
    for entry in (1, 2, 3):
        for value in range(size):
            move = np.where(np.arange(size) >= value, entry, 0)
            ratios = np.abs(heights(noise + move, widths) - own)
            assert ratios.max() == entry


@pytest.mark.parametrize("widths", WIDTHS, ids=str)
def test_a_replacement_costs_exactly_two_records(widths: tuple[int, ...]):
    size, largest = len(widths), 0
    noise = box(5 if size == 3 else 4, size)
    own = heights(noise, widths)
    for first, second in itertools.permutations(range(size), 2):
        move = (np.arange(size) >= first).astype(int) - (np.arange(size) >= second)
        largest = max(largest, int(np.abs(heights(noise + move, widths) - own).max()))
    assert largest == 2


def test_the_same_rule_on_a_grid_is_not_private():
    """Why a walk has one attribute: predicted from three neighbours, a log-probability moves by 3."""
    noise = box(3, 4)

    def height(values: np.ndarray) -> np.ndarray:
        first = np.sign(values) * np.maximum(np.abs(values) - 1, 0)
        total, u = np.abs(first[:, 0]), np.zeros_like(values)
        u[:, 0] = first[:, 0]
        for place, from_places in ((1, [0]), (2, [0]), (3, [1, 2])):
            before = u[:, from_places].sum(axis=1) - (u[:, 0] if place == 3 else 0)
            beyond = values[:, place] - before
            step = np.sign(beyond) * np.maximum(np.abs(beyond) - 1, 0)
            total, u[:, place] = total + np.abs(step), before + step
        return total

    assert np.abs(height(noise + 1) - height(noise)).max() == 3


FORESTS: list[tuple[tuple[int, ...], tuple[int, ...]]] = [
    ((2, 2, 3), (1, 2, 0)),  # two leaves and their sum
    ((2, 2, 3), (0, 0, 1)),
    ((3, 3, 3, 4), (1, 0, 2, 1)),  # three
    ((2, 2, 3, 4), (1, 1, 2, 0)),  # two, their sum, one more
    ((2, 3, 3, 4), (2, 1, 0, 1)),  # a path and a leaf below one
    ((3, 2, 4, 4), (1, 2, 0, 1)),  # two trees, of rows that take turns
]


def tree_heights(noise: np.ndarray, parents: tuple[int, ...], widths: tuple[int, ...]) -> np.ndarray:
    """The exponents of the probabilities of the noise of trees, from the definition, shape (lines,)."""
    total, before = np.zeros(len(noise), dtype=np.int64), np.zeros((len(noise), len(widths) + 1), np.int64)
    for row, (parent, width) in enumerate(zip(parents, widths, strict=True)):
        step = np.sign(noise[:, row] - before[:, row]) * np.maximum(
            np.abs(noise[:, row] - before[:, row]) - width, 0
        )
        total += np.abs(step)
        before[:, parent] += before[:, row] + step
    return total


def record_moves(parents: tuple[int, ...]) -> np.ndarray:
    """What a record at each node moves: the nodes from there up."""
    moves = np.eye(len(parents), dtype=np.int64)
    for row in reversed(range(len(parents))):
        if parents[row] < len(parents):
            moves[row] += moves[parents[row]]
    return moves


@pytest.mark.parametrize(("parents", "widths"), FORESTS, ids=str)
def test_on_trees_a_record_costs_its_count_and_a_replacement_two(
    parents: tuple[int, ...], widths: tuple[int, ...]
):
    """Of every noise in a box: records at every node, every two of them, and weighted own parts."""
    noise = box(5 if len(parents) == 3 else 4, len(parents))
    own, moves = tree_heights(noise, parents, widths), record_moves(parents)

    def largest(move: np.ndarray) -> int:
        return int(np.abs(tree_heights(noise + move, parents, widths) - own).max())

    for entry in (1, 2):
        assert {largest(entry * move) for move in moves} == {entry}
    both = [largest(one - other) for one, other in itertools.permutations(moves, 2)]
    assert max(both) <= 2
    assert max(both) == 2
    for counts in ((2, 1, 0, 0), (1, -1, 1, 0), (0, 3, 0, 1)):
        counted = np.array(counts[: len(parents)])
        assert largest(counted @ moves) <= np.abs(counted).sum()


@pytest.mark.parametrize(("parents", "widths"), FORESTS, ids=str)
def test_on_trees_the_exponent_is_the_least_of_all_that_stay_within_the_widths(
    parents: tuple[int, ...], widths: tuple[int, ...]
):
    """So it is convex: the least, over v near e, of the sum of |v less those right below it|."""
    size, random = len(parents), np.random.default_rng(2)
    sums = record_moves(parents).T  # from own parts to counts
    own = np.rint(np.linalg.inv(sums)).astype(np.int64)
    near = np.array(list(itertools.product(*(range(-width, width + 1) for width in widths))))
    for noise in random.integers(-6, 7, (60, size)):
        least = np.abs((noise + near) @ own.T).sum(axis=1).min()
        assert least == tree_heights(noise[None], parents, widths)[0]
    points = random.integers(-8, 9, (4000, 2, size)) * 2
    ends = [tree_heights(points[:, side], parents, widths) for side in (0, 1)]
    middle = tree_heights(points.sum(axis=1) // 2, parents, widths)
    assert (2 * middle <= ends[0] + ends[1]).all()


def test_where_a_record_moves_all_below_a_node_the_rule_is_not_private():
    """Why walks go up trees: predicted from the node above, a log-probability moves by 3."""
    noise = box(3, 4)

    def height(values: np.ndarray) -> np.ndarray:
        root = np.sign(values[:, :1]) * np.maximum(np.abs(values[:, :1]) - 1, 0)
        beyond = np.maximum(np.abs(values[:, 1:] - root) - 1, 0)
        return np.abs(root[:, 0]) + beyond.sum(axis=1)

    assert np.abs(height(noise + 1) - height(noise)).max() == 3


def test_samples_of_trees_have_the_joint_law_and_that_of_a_path_is_seen():
    parents, widths, steps, count, reach = (2, 2, 3), (2, 1, 0), Fraction(7, 4), 400_000, 7
    own = [math.ceil(width * 1024 / steps) for width in widths]
    found = walks.draw_walk(own, steps, count, SeededSource(1), parents)
    inside = found[(np.abs(found) <= reach).all(axis=1)] + reach
    observed = np.bincount(
        np.ravel_multi_index(inside.T, (2 * reach + 1,) * 3), minlength=(2 * reach + 1) ** 3
    )

    def chi_square(parents: tuple[int, ...]) -> float:
        a = math.exp(-1 / steps)
        whole = math.prod(2 * width + 1 + 2 * a / (1 - a) for width in widths)
        expected = count * a ** tree_heights(box(reach, 3), parents, widths) / whole
        large = expected > 10
        cells = np.append(expected[large], count - expected[large].sum())
        seen = np.append(observed[large], count - observed[large].sum())
        return float(stats.chi2.sf(((seen - cells) ** 2 / cells).sum(), len(cells) - 1))

    assert chi_square(parents) > FALSE_ALARM
    assert chi_square((1, 2, 3)) < FALSE_ALARM


@pytest.mark.parametrize("steps", [Fraction(7, 4), Fraction(1, 2)], ids=str)
def test_samples_have_the_joint_law_and_a_wrong_one_is_seen(steps: Fraction):
    widths, count, reach = (2, 1, 0), 400_000, 7
    own = [math.ceil(width * 1024 / steps) for width in widths]
    assert walks.lattice_widths(own, steps) == list(widths)
    found = walks.draw_walk(own, steps, count, SeededSource(1))
    inside = found[(np.abs(found) <= reach).all(axis=1)] + reach
    observed = np.bincount(
        np.ravel_multi_index(inside.T, (2 * reach + 1,) * 3), minlength=(2 * reach + 1) ** 3
    )

    def chi_square(widths: tuple[int, ...], steps: float) -> float:
        a = math.exp(-1 / steps)
        whole = math.prod(2 * width + 1 + 2 * a / (1 - a) for width in widths)
        expected = count * a ** heights(box(reach, 3), widths) / whole
        large = expected > 10
        cells = np.append(expected[large], count - expected[large].sum())
        seen = np.append(observed[large], count - observed[large].sum())
        return float(stats.chi2.sf(((seen - cells) ** 2 / cells).sum(), len(cells) - 1))

    assert chi_square(widths, float(steps)) > FALSE_ALARM
    assert chi_square((2, 0, 0), float(steps)) < FALSE_ALARM
    assert chi_square(widths, float(steps) * 1.05) < FALSE_ALARM


def test_words_decide_which_innovations_are_flat():
    width, steps = 3, Fraction(5, 2)
    with ctx.workprec(400):
        a = (-1 / arb(fmpq(5, 2))).exp()
        share = 7 / (7 + 2 * a / (1 - a)) * arb(2) ** 128
        word, rest = divmod(int(share.floor().unique_fmpz()), 1 << 64)
    assert walks.flat_words(width, steps) == word
    half, six = 1 << 62, 6
    # a word below the bound: uniform on -3 .. 3 by its last three bits, of which 7 is drawn again
    for first in ([word - 1], [word, rest - 1]):
        source = RecordedSource([*first, 7, six])
        assert walks.draw_innovations([width], steps, 1, source).tolist() == [[3]]
        assert source.taken == len(first) + 2
    # above it: the tail, then a bit for its sign
    for first in ([word + 1], [word, rest + 1]):
        for sign, expected in ((0, 5), (1 << 63, -5)):
            source = RecordedSource([*first, half, sign])
            assert walks.draw_innovations([width], steps, 1, source).tolist() == [[expected]]


@pytest.mark.parametrize("steps", [Fraction(1, 3), Fraction(1), Fraction(9, 2)], ids=str)
def test_tails_are_geometric_to_the_last_word(steps: Fraction):
    """G >= k below 2^64 a^k / 2, for all k that words reach."""
    words, expected = [], []
    for k in range(1, 15):
        with ctx.workprec(300):
            edge = int(
                ((-k / arb(fmpq(steps.numerator, steps.denominator))).exp() / 2 * arb(2) ** 64)
                .floor()
                .unique_fmpz()
            )
        words += [edge - 1, edge + 1]
        expected += [k, k - 1]
    source = RecordedSource(words)
    found = drawing.draw(walks.tail_distribution(steps), Fraction(1), len(words), None, None, source)
    assert np.abs(found).tolist() == expected


def test_sources_that_are_none_are_rejected():
    class Broken:
        private = False

        def bits64(self, count: int) -> np.ndarray:
            return np.full(count, 7, dtype=np.uint64)

        def more_bits(self, count: int) -> int:
            return 0

    with pytest.raises(PrivacyError):
        walks.draw_innovations([3], Fraction(1), 1, Broken())


@pytest.mark.parametrize("widths", [(0, 0, 0), (1024, 2048, 0), (3000, 500, 1500, 100)], ids=str)
def test_moments_are_those_of_samples(widths: tuple[int, ...]):
    steps, count = Fraction(1 << 20), 100_000
    drawn = walks.draw_walk(widths, steps, count, SeededSource(5)) / float(steps)
    expected = 2.0 * WalkMatrix(widths).noise_covariance
    spread = np.sqrt(np.outer(expected.diagonal(), expected.diagonal()) * 6 / count)
    assert (np.abs(drawn.T @ drawn / count - expected) < 7 * spread).all()


def test_walks_of_a_part_are_independent_and_in_their_places():
    walk = Walk((1500, 800, 0), before=2, after=3)
    drawn = np.array([walk.draw(Fraction(1000), SeededSource(seed)) for seed in range(400)]) / 1000.0
    found = drawn.T @ drawn / len(drawn)
    expected = 2 * np.kron(np.eye(2), np.kron(WalkMatrix(walk.widths).noise_covariance, np.eye(3)))
    assert np.abs(found - expected).max() < 2.0
    alone = walk.variances(np.eye(18))
    np.testing.assert_allclose(2 * alone, expected.diagonal())
    pairs = np.eye(18)[0] + np.eye(18)[3]  # two prefix sums of one walk
    assert walk.variances(pairs[None])[0] == pytest.approx(pairs @ expected @ pairs / 2)


def test_walks_that_follow_one_another_are_independent():
    walk, count = Walk((1500, 0, 800, 300, 0), parents=paths(5, (0, 2))), 100_000
    drawn = walks.draw_walk(walk.widths, Fraction(1 << 20), count, SeededSource(8), walk.parents) / 2.0**20
    expected = np.zeros((5, 5))
    for own in (slice(0, 2), slice(2, 5)):
        expected[own, own] = 2 * WalkMatrix(walk.widths[own]).noise_covariance
    spread = np.sqrt(np.outer(expected.diagonal(), expected.diagonal()) * 6 / count)
    assert (np.abs(drawn.T @ drawn / count - expected) < 7 * spread).all()
    np.testing.assert_allclose(2 * walk.covariance(), expected)


def test_moments_of_trees_are_those_of_samples():
    parents, widths, count = (3, 3, 4, 4, 6, 6, 7), (1500, 0, 800, 2300, 500, 0, 900), 100_000
    drawn = walks.draw_walk(widths, Fraction(1 << 20), count, SeededSource(8), parents) / 2.0**20
    expected = 2 * Walk(widths, parents=parents).covariance()
    spread = np.sqrt(np.outer(expected.diagonal(), expected.diagonal()) * 6 / count)
    assert (np.abs(drawn.T @ drawn / count - expected) < 7 * spread).all()
    path = Walk(widths, parents=tuple(range(1, 8))).covariance()
    np.testing.assert_allclose(path, Walk(widths).covariance())


WALKS = {
    "tree": Walk((1500, 0, 4000, 300, 800), parents=(2, 2, 4, 4, 5)),
    "no widths": Walk((0, 0, 0, 0, 0)),
    "wide": Walk((5000, 4000, 3000, 2000, 0)),
    "uneven": Walk((0, 9000, 10, 2500, 0)),
    "two": Walk((1500, 0, 4000, 300, 0), parents=paths(5, (0, 2))),
}


@pytest.mark.parametrize("name", WALKS)
@pytest.mark.parametrize("confidence", [0.9, 0.99])
def test_quantiles_are_those_of_samples(name: str, confidence: float):
    walk, count = WALKS[name], 60_000
    source = SeededSource(6)
    drawn = walks.draw_walk(walk.widths, Fraction(1 << 16), count, source, walk.parents) / float(1 << 16)
    asked = np.vstack([np.eye(5), np.diff(np.eye(5), axis=0), np.ones(5), [0.3, -1, 0, 2, 0.1]])
    ends = walks.combination_quantiles([(walk, asked)], confidence) * np.sqrt(2 * walk.variances(asked))
    inside = (np.abs(drawn @ asked.T) <= ends).mean(axis=0)
    assert np.abs(inside - confidence).max() < 6 * math.sqrt(confidence * (1 - confidence) / count)
    assert (ends <= laplace.largest_quantile(confidence) * np.sqrt(2 * walk.variances(asked))).all()


def test_without_widths_a_prefix_sum_has_as_many_laplace_variables():
    from matrixdp.noise.laplace import combination_quantiles

    walk = Walk((0,) * 6)
    expected = combination_quantiles(np.tri(6) / np.arange(1, 7)[:, None], 0.95)
    np.testing.assert_allclose(walks.combination_quantiles([(walk, np.eye(6))], 0.95), expected, rtol=1e-4)


def test_a_combination_over_several_walks_adds_up_their_pairs():
    one, two = Walk((2000, 1000, 0)), Walk((2000, 1000, 0), before=2)
    asked = np.array([[1.0, 0.0, 2.0]])
    both = walks.combination_quantiles([(two, np.hstack([asked, -0.5 * asked]))], 0.95)
    steps, count = Fraction(1 << 16), 60_000
    drawn = [walks.draw_walk(one.widths, steps, count, SeededSource(seed)) for seed in (1, 2)]
    sums = (drawn[0] - 0.5 * drawn[1]) @ asked[0] / float(steps)
    inside = np.mean(np.abs(sums) <= both[0] * math.sqrt(2 * 1.25 * one.variances(asked)[0]))
    assert abs(inside - 0.95) < 6 * math.sqrt(0.95 * 0.05 / count)


def test_combinations_of_several_parts_add_up_their_noise():
    """Two walks and Laplace noise of other scales, in one sum: at 6 deviations."""
    first, second, count = Walk((2000, 1000, 0)), Walk((0, 4000), before=2), 60_000
    asked = [np.array([[1.0, 0.0, 2.0]]), np.array([[0.5, -1.0, 0.0, 0.3]]), np.array([[0.7, -0.2]])]
    parts = list(zip([first, second, Walk((0,), 2)], asked, strict=True))
    steps, random = Fraction(1 << 16), np.random.default_rng(8)
    sums = random.laplace(size=(count, 2)) @ asked[2][0]
    for seed, (walk, own) in enumerate(parts[:2]):
        seeds = range(9 * seed, 9 * seed + walk.before)
        drawn = [walks.draw_walk(walk.widths, steps, count, SeededSource(k)) for k in seeds]
        sums = sums + np.hstack(drawn) @ own[0] / float(steps)
    deviation = math.sqrt(2 * sum(walk.variances(own)[0] for walk, own in parts))
    for confidence in (0.5, 0.95):
        [far] = walks.combination_quantiles(parts, confidence)
        inside = np.mean(np.abs(sums) <= far * deviation)
        assert abs(inside - confidence) < 6 * math.sqrt(confidence * (1 - confidence) / count)


@pytest.mark.parametrize(
    ("size", "epsilon", "reach"), [(2, 1.0, 20), (2, 0.5, 32), (3, 1.0, 7), (4, 1.2, 3)], ids=str
)
def test_no_noise_at_all_has_less_error_for_a_few_prefixes(size: int, epsilon: float, reach: int):
    """Of prefixes of 2 to 4 values, on a box: the best walk in integers is the optimum of all mechanisms."""
    cells = box(reach, size)
    noise = np.cumsum(cells, axis=1)
    squares = (noise**2).sum(axis=1).astype(float)
    least, _ = least_of_all_noise(cells, np.eye(size, dtype=np.int64), squares, epsilon)
    laws = [
        np.exp(-epsilon * heights(noise, (*own, 0))) for own in itertools.product(range(3), repeat=size - 1)
    ]
    errors = [float(law @ squares / law.sum()) for law in laws]
    assert min(errors) == pytest.approx(least, rel=1e-5)
    assert errors[0] > 1.005 * least  # of no widths
    if size == 2:  # the box has all but nothing of the noise
        continuous = 2.0 * walk_for(np.tri(size).T @ np.tri(size)).loss / epsilon**2
        assert 1.0 < continuous / least < 1.03
