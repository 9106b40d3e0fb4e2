"""Where random bits come from: the operating system, or a seed that makes the output public.

This is the only module of the package that draws randomness. A source hands out independent fair bits
in two ways: many 64-bit words at once, and, for the rare sample that 64 bits do not decide, further bits
one small request at a time. No bit is ever handed out twice.
"""

from __future__ import annotations

import os
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from matrixdp.errors import PrivacyError


class RandomSource(Protocol):
    """Independent fair random bits.

    Attributes
    ----------
    private : bool
        True only if nobody can predict or repeat the bits.
    """

    @property
    def private(self) -> bool:
        """Whether the bits are unpredictable, so that noise made from them protects anyone."""

    def bits64(self, count: int) -> NDArray[np.uint64]:
        """Return `count` words of 64 independent fair bits, shape (count,)."""

    def more_bits(self, count: int) -> int:
        """Return `count` fresh fair bits as an integer in [0, 2**count)."""


class SystemSource:
    """The operating system's cryptographic generator: the only source that a release may use.

    Nothing is buffered, so a copy of the process made by ``fork`` never repeats its parent's bits.

    Examples
    --------
    >>> source = SystemSource()
    >>> source.private
    True
    >>> source.bits64(3).shape
    (3,)
    >>> 0 <= source.more_bits(5) < 32
    True
    """

    private = True

    def bits64(self, count: int) -> NDArray[np.uint64]:
        """Return `count` words of 64 random bits, shape (count,)."""
        return np.frombuffer(_system_bytes(8 * count), dtype=np.uint64)

    def more_bits(self, count: int) -> int:
        """Return `count` fresh random bits as an integer in [0, 2**count)."""
        size = (count + 7) // 8
        return int.from_bytes(_system_bytes(size), "little") >> (8 * size - count)


def _system_bytes(size: int) -> bytes:
    data = os.urandom(size)
    if len(data) != size:
        raise PrivacyError("the operating system's generator returned too few bytes")
    return data


class SeededSource:
    """Bits that follow from a seed: repeatable, hence **not private**, whatever noise is made of them.

    For tests and for demonstrations that must come out the same every time. The words and the further
    bits come from two independent streams, so that results do not depend on how draws are grouped.

    Parameters
    ----------
    seed_not_private : int
        The seed, at least 0. Anyone who knows or guesses it can subtract the noise.

    Raises
    ------
    PrivacyError
        If the seed is not an integer of at least 0.

    Examples
    --------
    >>> SeededSource(7).private
    False
    >>> bool((SeededSource(7).bits64(4) == SeededSource(7).bits64(4)).all())
    True
    """

    private = False

    def __init__(self, seed_not_private: int) -> None:
        if isinstance(seed_not_private, bool) or not isinstance(seed_not_private, int | np.integer):
            raise PrivacyError("seed_not_private: found a value that is no integer; expected an integer")
        if seed_not_private < 0:
            found = f"seed_not_private: found {seed_not_private}"
            raise PrivacyError(f"{found}; expected an integer of at least 0", "out-of-range")
        words, further = np.random.SeedSequence(int(seed_not_private)).spawn(2)
        self._words = np.random.PCG64DXSM(words)
        self._further = np.random.PCG64DXSM(further)

    def bits64(self, count: int) -> NDArray[np.uint64]:
        """Return the next `count` words of the stream, shape (count,)."""
        words: NDArray[np.uint64] = self._words.random_raw(count)
        return words

    def more_bits(self, count: int) -> int:
        """Return the next `count` bits of the second stream as an integer in [0, 2**count)."""
        value, words = 0, (count + 63) // 64
        for _ in range(words):
            value = value << 64 | int(self._further.random_raw())
        return value >> (64 * words - count)
