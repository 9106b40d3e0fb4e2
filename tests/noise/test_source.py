import os

import numpy as np
import pytest

from matrixdp.errors import PrivacyError
from matrixdp.noise import SeededSource, SystemSource


@pytest.mark.parametrize("source", [SystemSource(), SeededSource(3)])
def test_words_and_further_bits_have_the_asked_size(source):
    words = source.bits64(1000)
    assert words.dtype == np.uint64
    assert words.shape == (1000,)
    assert len(np.unique(words)) == 1000
    assert source.bits64(0).shape == (0,)
    for count in (1, 7, 8, 9, 63, 64, 65, 200):
        assert 0 <= source.more_bits(count) < 1 << count


def test_every_bit_is_fair():
    # Each of the 64 positions is a binomial count of 2**16; 7 standard deviations is a false alarm
    # rate of 64 * 2.6e-12 < 1e-9.
    words = SystemSource().bits64(1 << 16)
    ones = np.unpackbits(words.view(np.uint8).reshape(-1, 8), axis=1).sum(axis=0, dtype=np.int64)
    assert np.all(np.abs(ones - (1 << 15)) < 7 * (1 << 7))


def test_only_the_system_source_is_private():
    assert SystemSource.private is True
    assert SeededSource.private is False


def test_a_seed_repeats_and_grouping_does_not_matter():
    whole = SeededSource(5).bits64(10)
    parts = SeededSource(5)
    first = parts.bits64(4)
    parts.more_bits(64)
    assert np.array_equal(whole, np.concatenate([first, parts.bits64(6)]))
    assert not np.array_equal(whole, SeededSource(6).bits64(10))


@pytest.mark.parametrize("seed", [None, 1.5, "1", True, -1])
def test_a_seed_is_an_integer(seed):
    with pytest.raises(PrivacyError, match="seed_not_private"):
        SeededSource(seed)


def test_too_few_bytes_are_refused(monkeypatch):
    monkeypatch.setattr(os, "urandom", lambda _count: b"")
    with pytest.raises(PrivacyError, match="too few"):
        SystemSource().bits64(2)
    with pytest.raises(PrivacyError, match="too few"):
        SystemSource().more_bits(2)
