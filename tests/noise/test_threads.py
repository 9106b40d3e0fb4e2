"""Long vectors are drawn by two threads from the operating system's bits, each sample decided alike."""

import threading
from fractions import Fraction

import numpy as np

from matrixdp.noise import GAUSSIAN, LAPLACE, SystemSource
from matrixdp.noise.drawing import draw
from matrixdp.noise.gaussian import LAST_CELL, approximate, table

WORDS = np.random.default_rng(5).integers(0, 2**64, 64, dtype=np.uint64)


class Fixed(SystemSource):
    """Gives every chunk the same words."""

    def __init__(self):
        self.seen = set()

    def bits64(self, count):
        self.seen.add(threading.get_ident())
        return WORDS[:count]


def test_chunks_keep_their_places_whoever_draws_them(monkeypatch):
    monkeypatch.setattr("matrixdp.noise.drawing.processors", lambda: 2)
    for noise in (GAUSSIAN, LAPLACE):
        source = Fixed()
        # samples that the filter leaves are decided after it, in order
        wider = Fraction(1, 9000)
        found = draw(noise.distribution, Fraction(900), 64 * 40, None, None, source, chunk=64, epsilon=wider)
        alone = draw(noise.distribution, Fraction(900), 64, None, None, Fixed(), filtered=False)
        # the first chunk, which makes the tables of the filter, is drawn before there are threads
        assert source.seen - {threading.get_ident()}
        assert (found.reshape(40, 64) == alone).all()


def test_tables_are_made_before_there_are_threads():
    table.cache_clear()
    source = Fixed()
    draw(GAUSSIAN.distribution, Fraction(900), 64 * 40, None, None, source, chunk=64)
    assert table.cache_info().misses == 1


def test_few_chunks_are_drawn_without_threads():
    source = Fixed()
    draw(GAUSSIAN.distribution, Fraction(900), 64, None, None, source, chunk=16)
    assert source.seen == {threading.get_ident()}


def test_one_processor_draws_without_threads(monkeypatch):
    monkeypatch.setattr("matrixdp.noise.drawing.processors", lambda: 1)
    source = Fixed()
    draw(GAUSSIAN.distribution, Fraction(900), 64 * 40, None, None, source, chunk=64)
    assert source.seen == {threading.get_ident()}


def test_cells_are_guessed_right_wherever_words_lie():
    ends = np.concatenate([table().tail[1 : LAST_CELL - 1], WORDS >> np.uint64(1)])
    words = np.concatenate([ends, ends + np.uint64(1), ends - np.uint64(1)])
    top = np.array([2**63 - 1, 2**47, 2**47 - 1, 2**54, 2**54 - 1, 2**30], dtype=np.uint64)
    assert approximate(words)[1].all()
    assert approximate(top)[1].tolist() == [True, True, True, True, True, False]
