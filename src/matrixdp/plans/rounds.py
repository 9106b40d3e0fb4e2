"""Rounds: the parts of a split plan, some of them measured a second time with noise chosen after the first.

Two independent measurements of the same rows say as much as one of their average by inverse variance: its
precision is the sum of theirs. So estimates and errors are those of the split plan with the averages as its
answers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, final

import numpy as np

from matrixdp.errors import NumericalError
from matrixdp.exact.linear import Array
from matrixdp.noise import Noise
from matrixdp.plans.part import Part
from matrixdp.plans.plan import Analysis, Estimates, Plan
from matrixdp.plans.split import Split, SplitAnalysis, check_weight_vectors

#: The share of the privacy cost that the first round may spend.
FIRST_SHARE = Fraction(1, 2)


#: For each part of the first round the variance of the average, and the parts that it is of, with shares.
Averages = list[tuple[float, list[tuple[int, float]]]]


@final
@dataclass(frozen=True, eq=False)
class Rounds(Plan, kind="rounds"):
    """The parts of a first round, on different marginals, and then those that are measured again.

    Parameters
    ----------
    domain, parts, noise
        See `Plan`. A part of the second round has the matrices of the one on its marginal in the first.
    weights : dict of str to ndarray
        As of `Split`.

    Raises
    ------
    NumericalError
        If a part is measured more than twice, or the second time with other matrices.
    """

    words: ClassVar[str] = "one part for each marginal, in two rounds"

    weights: dict[str, Array]

    def __post_init__(self) -> None:
        super().__post_init__()
        check_weight_vectors(self.domain, self.weights)
        if {part.attributes for part in self.begun} != self.positions.keys():
            raise NumericalError("rounds: the first round has two parts on one marginal")
        if len(self.begun) == len(self.parts):
            raise NumericalError("rounds: nothing is measured a second time")
        for names, places in self.positions.items():
            if len(places) > 2 or len({self.parts[own].key(names) for own in places}) > 1:
                raise NumericalError(f"part {names}: measured again by other matrices, or more than twice")

    @classmethod
    def of(cls, first: Split, second: Split) -> Rounds:
        """Return the plan of both rounds, each with its share of the privacy cost."""
        shares = (first, float(FIRST_SHARE)), (second, float(1 - FIRST_SHARE))
        parts = [_at_share(part, first.noise, share) for plan, share in shares for part in plan.parts]
        return cls(first.domain, tuple(parts), first.noise, first.weights)

    @property
    def begun(self) -> tuple[Part, ...]:
        """The parts of the first round, at their share of the privacy cost."""
        return self.parts[: len(self.positions)]

    @property
    def again(self) -> tuple[Part, ...]:
        """The parts of the second round, at their share of the privacy cost."""
        return self.parts[len(self.positions) :]

    @property
    def first(self) -> Split:
        """The plan of the first round alone, at privacy cost 1."""
        return self._alone(self.begun, FIRST_SHARE)

    @property
    def second(self) -> Split:
        """The plan of the second round alone, at privacy cost 1."""
        return self._alone(self.again, 1 - FIRST_SHARE)

    def _alone(self, parts: tuple[Part, ...], share: Fraction) -> Split:
        whole = (_at_share(part, self.noise, 1.0 / float(share)) for part in parts)
        return Split(self.domain, tuple(whole), self.noise, self.weights)

    def averages(self, noise: Sequence[float]) -> Averages:
        """Return how the answers to each part of the first round are averaged, given all noise variances."""
        found = []
        for part in self.begun:
            places = self.positions[part.attributes]
            variance = 1.0 / sum(1.0 / noise[own] for own in places)
            found.append((variance, [(own, variance / noise[own]) for own in places]))
        return found

    def analysed(self, noise: Sequence[float]) -> Analysis:
        return _RoundsAnalysis(self, noise)


@final
class _RoundsAnalysis(SplitAnalysis):
    """Estimates and errors from the averages of both rounds."""

    def __init__(self, plan: Rounds, noise: Sequence[float]) -> None:
        self._averages = plan.averages(noise)
        variances = [variance for variance, _ in self._averages]
        super().__init__(plan.domain, plan.begun, variances, plan.weights)

    def estimates(self, values: Sequence[Array]) -> Estimates:
        return super().estimates(averaged(self._averages, values))

    def variables(self, place: int) -> Sequence[tuple[int, float]]:
        # share^2 times the variance v / share of what is averaged
        return self._averages[place][1]


def averaged(averages: Averages, values: Sequence[Array]) -> list[Array]:
    """Return the averages of the noisy answers of both rounds."""
    return [np.asarray(sum(share * values[own] for own, share in shares)) for _, shares in averages]


def _at_share(part: Part, noise: Noise, share: float) -> Part:
    """Return a part at a share of what it costs."""
    return part.at_cost(noise, share * noise.share(part, part.variance))
