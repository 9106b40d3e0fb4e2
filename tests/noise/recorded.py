"""Random bits that were written down."""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from matrixdp.errors import PrivacyError


class RecordedSource:
    """A source of random bits that hands out recorded words in turn, each in [0, 2**64)."""

    private = False

    def __init__(self, words: Iterable[int]) -> None:
        self._words = list(words)
        self.taken = 0

    def bits64(self, count: int) -> NDArray[np.uint64]:
        return np.array([self.more_bits(64) for _ in range(count)], dtype=np.uint64)

    def more_bits(self, count: int) -> int:
        if self.taken == len(self._words):
            raise PrivacyError(f"the source has {self.taken} recorded words; all are taken")
        self.taken += 1
        return self._words[self.taken - 1] >> (64 - count)
