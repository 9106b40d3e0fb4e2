"""What the sampler, its sources and the table of noises reject."""

from collections.abc import Callable
from fractions import Fraction
from typing import Any, cast
from unittest.mock import patch

import numpy as np

from matrixdp.noise import GAUSSIAN, LAPLACE, Laplace, SeededSource, SystemSource, noise_named, register_noise
from tests.noise.exact import draw, unfiltered
from tests.noise.recorded import RecordedSource
from tests.refusals import Refusal, calling

Attempt = Callable[[], object]
SCALES: dict[str, list[object]] = {
    "out-of-range": [
        *(0, -1, Fraction(0), Fraction(-5), Fraction(1, 2), Fraction(2**20 + 1), Fraction(10**400), 10**400)
    ],
    "wrong-type": [float("nan"), float("inf"), 5.0, True, None, "5", np.float64(5)],
}
OFFSETS: dict[str, list[Any]] = {
    "wrong-type": [np.zeros(2), np.zeros((3, 1)), np.zeros(3, dtype=np.float32), [0.0, 0.0, 0.0]],
    "out-of-range": [np.array([0.0, wrong, 0.0]) for wrong in (np.nan, -0.1, 1.1)],
}


class Source(RecordedSource):
    """A source that hands out the same words and bits whatever it is asked for."""

    def __init__(self, words: Any, more: int = 0) -> None:
        super().__init__([])
        self.words, self.more = words, more

    def bits64(self, count: int) -> Any:
        return self.words

    def more_bits(self, count: int) -> int:
        return self.more


class Third(Laplace):  # type: ignore[misc]
    name, norm = "third", cast("Any", 3)


class Second(Laplace):  # type: ignore[misc]
    """Has the name of another."""


def drawn(scale: Any = Fraction(5), size: Any = 3, source: Any = None, **offsets: Any) -> Attempt:
    return lambda: LAPLACE.draw_rounded(scale, size, source=source or SeededSource(1), **offsets)


def offset(exact: Any) -> Attempt:
    class Exact(list):
        def __getitem__(self, place: Any) -> Any:
            return exact

    return lambda: draw(unfiltered(GAUSSIAN), Fraction(5), 3, SeededSource(1), Exact([0.25] * 3))


def zero(_place: int) -> Fraction:
    return Fraction(0)


def nothing(source: str) -> Attempt:
    @patch("os.urandom", lambda _count: b"")
    def attempt() -> object:
        return getattr(SystemSource(), source)(2)

    return lambda: attempt()


REJECTED: dict[str, dict[str, Attempt]] = {
    "out-of-range": {
        **{f"a scale of {type(one).__name__} {str(one)[:9]}": drawn(one) for one in SCALES["out-of-range"]},
        **{f"a size of {size!r}": drawn(size=size) for size in (-1, 1.5, None, "3", True)},
        **{f"offsets of {one[1]}": drawn(offsets=one, exact_offset=zero) for one in OFFSETS["out-of-range"]},
        "a source of bits out of range": drawn(source=Source(np.zeros(3, dtype=np.uint64), 1 << 64)),
        "a seed below 0": lambda: SeededSource(-1),
        "a noise of another norm": calling(register_noise, Third()),
    },
    "wrong-type": {
        **{f"a scale of {one!r}": drawn(one) for one in SCALES["wrong-type"]},
        **{
            f"offsets number {place}": drawn(offsets=one, exact_offset=zero)
            for place, one in enumerate(OFFSETS["wrong-type"])
        },
        **{f"an exact offset of {exact}": offset(exact) for exact in (0.25, None)},
        "what is no noise": calling(register_noise, "logistic"),
    },
    "privacy": {
        "offsets without their exact values": drawn(offsets=np.zeros(3)),
        "exact offsets without their values": drawn(exact_offset=zero),
        **{f"an exact offset of {one}": offset(one) for one in (Fraction(1, 3), Fraction(-1), Fraction(1))},
        **{
            f"a source of {words!r}": drawn(source=Source(words))
            for words in (np.zeros(2, dtype=np.uint64), np.zeros(3, dtype=np.int64), None)
        },
        "a source of constant bits": drawn(source=Source(np.zeros(3, dtype=np.uint64))),
        **{f"a seed of {seed!r}": calling(SeededSource, seed) for seed in (None, 1.5, "1", True)},
        **{f"too few bytes for {name}": nothing(name) for name in ("bits64", "more_bits")},
    },
    "conflict": {"a noise of a name that is taken": calling(register_noise, Second())},
}
REFUSALS = [
    Refusal(name, code, "", attempt) for code, own in REJECTED.items() for name, attempt in own.items()
] + [
    Refusal(f"a noise called {name!r}", "unknown-name", "noise", calling(noise_named, name))
    for name in ("uniform", None, 1)
]
