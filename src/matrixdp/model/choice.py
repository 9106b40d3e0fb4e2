"""Choose the size of a mixture by what noise explains, average a few fits, test whether they may be used."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from matrixdp.errors import NumericalError
from matrixdp.model.fit import Fit, fit
from matrixdp.model.mixture import Mixture
from matrixdp.model.parts import Parts

__all__ = ["FITS", "ChosenMixture", "FitTests", "choose", "judged"]

Array = NDArray[np.float64]

#: Fits from different starts that are averaged.
FITS = 4
#: Components and steps that are tried, until noise explains what is left.
_LADDER = ((10, 1000), (100, 1200), (200, 1600), (400, 2000), (800, 3000))
#: The chance with which the true table would fail the test of any part.
_CHANCE = 1e-3
#: Parts that are named.
_NAMED = 3


@final
@dataclass(frozen=True)
class FitTests:
    """Whether what a model leaves of the measurement is no more than noise.

    Attributes
    ----------
    degrees : int
        The independent directions that were measured.
    loss, limit : float
        Half the squared residuals over the noise's variance, of all parts; at most this much may be left.
    tables : int
        The parts that were tested one by one.
    failed : tuple of str
        The attributes of those that the model is further from than noise explains, the worst first.
    worst : float
        The largest excess of a part's loss over the average of the true table's, as a share of what may be;
        0 where there is none.
    """

    degrees: int
    loss: float
    limit: float
    tables: int
    failed: tuple[str, ...]
    worst: float

    @property
    def relative_rms(self) -> float:
        """The root mean square of the residuals in standard deviations of the noise: about 1, or below."""
        return math.sqrt(2.0 * self.loss / self.degrees) if self.degrees else 0.0

    @property
    def accepted(self) -> bool:
        """Whether every test was passed."""
        return self.loss <= self.limit and not self.failed

    def as_dict(self) -> dict[str, object]:
        """Return them as JSON has them."""
        return {
            "degrees": self.degrees,
            "loss": self.loss,
            "limit": self.limit,
            "relative_rms": self.relative_rms,
            "tables": self.tables,
            "tables_failed": len(self.failed),
            "failed": list(self.failed[:_NAMED]),
            "worst": self.worst,
            "accepted": self.accepted,
        }

    def check(self, remedy: str) -> None:
        """Refuse a model that does not fit.

        Parameters
        ----------
        remedy : str
            What may make one that fits, as an imperative sentence without its end.

        Raises
        ------
        NumericalError
            Says what is wrong, and what can be done.
        """
        if self.accepted:
            return
        told = f"{self.loss:,.0f} is left where noise explains {self.limit:,.0f}"
        if self.failed:
            more = len(self.failed) - _NAMED
            named = "; ".join(self.failed[:_NAMED]) + (f" and {more} more" if more > 0 else "")
            told += f"; it is further than noise explains from {len(self.failed)} of {self.tables}: {named}"
        raise NumericalError(
            f"the model does not fit what was measured: {told}. {remedy}, or keep the unbiased answers; "
            "`accept_anyway` returns it all the same"
        )


@final
@dataclass(frozen=True, eq=False)
class ChosenMixture:
    """A mixture whose size was chosen, with the tests of its fit.

    Attributes
    ----------
    mixture : Mixture
        The average of all fits.
    tests : FitTests
    seed, components, steps, fits : int
        What it was made with: fits of so many components each, from seeds ``seed``, ``seed + 1``, ...
    """

    mixture: Mixture
    tests: FitTests
    seed: int
    components: int
    steps: int
    fits: int

    def as_dict(self) -> dict[str, object]:
        """Return how it was made, as JSON has it."""
        return {
            "method": "mixture",
            "seed": self.seed,
            "components": self.components,
            "steps": self.steps,
            "fits": self.fits,
            "accepted": self.tests.accepted,
            "tests": self.tests.as_dict(),
        }


def _limits(parts: Parts) -> tuple[float, Array]:
    """Return how large the loss may be of all parts, and of each.

    The loss z'Pz / 2 of the true table, P a projection of rank r, is r / 2 on average. Gaussian: chi-square
    with r degrees of freedom, and P(chi2 >= r + 2 sqrt(r t) + 2 t) <= exp(-t). Heavier noise: the same
    with the deviation and the tail so many times as wide.
    """
    degrees = np.array([part.term.degrees for part in parts.parts], dtype=np.float64)
    wider = 1.0 + parts.kurtosis / 2.0
    tail = math.log(max(len(degrees), 1) / _CHANCE)
    each = degrees / 2 + np.sqrt(degrees * tail * wider) + wider * tail
    return parts.limit, each


def judged(parts: Parts, losses: Array) -> FitTests:
    """Return the tests of a model, from the loss of each part.

    Two must be passed. The loss of all parts is at most 3 standard deviations above the average of the true
    table's; and no part's alone is above what the true table's exceeds in any part with probability 1 / 1000.

    References
    ----------
    The discrepancy principle: V. A. Morozov, On the solution of functional equations by the method of
    regularization, 1966. The tail of a chi-square: B. Laurent and P. Massart, Adaptive estimation of a
    quadratic functional by model selection, Annals of Statistics 28 (2000), lemma 1.
    """
    limit, each = _limits(parts)
    average = np.array([part.term.degrees / 2 for part in parts.parts])
    excess = (losses - average) / (each - average)
    order = np.argsort(-excess)
    failed = tuple(", ".join(parts.parts[place].attributes) for place in order if excess[place] > 1.0)
    worst = float(excess.max(initial=0.0))
    return FitTests(parts.degrees, float(losses.sum()), limit, len(losses), failed, worst)


def choose(
    parts: Parts,
    seed: int = 0,
    *,
    components: int | None = None,
    steps: int | None = None,
    fits: int = FITS,
    seen: Callable[[int, int], None] | None = None,
) -> ChosenMixture:
    """Fit mixtures to measured parts and return the average of a few that fit.

    Parameters
    ----------
    parts : Parts
    seed : int
        Of the first fit; the others take the numbers after it.
    components, steps : int, optional
        Of each fit. Without them the fewest of a few numbers are taken with which noise explains what is
        left; more would fit the noise.
    fits : int
        How many fits from different starts are averaged.
    seen : callable, optional
        Called with the steps done and those that there are now known to be.

    Returns
    -------
    ChosenMixture
        It may not fit: see its tests.

    Examples
    --------
    >>> import matrixdp as mdp
    >>> workload = mdp.Workload(mdp.Domain({"sex": ["female", "male"]}), mdp.marginals(1))
    >>> measured = mdp.select(workload).measure({"sex": ["male", "female"] * 45}, mdp.Budget(mu=1))
    >>> chosen = choose(Parts.of(measured.measurement), components=2, steps=100, fits=2)
    >>> chosen.mixture.components, chosen.tests.accepted
    (4, True)
    """
    tried = [
        (components or size, steps or number)
        for size, number in (_LADDER[:1] if components and steps else _LADDER)
    ]
    done = 0

    def told(ahead: int) -> Callable[[int, int], None] | None:
        before = done
        return None if seen is None else lambda step, own: seen(before + step, before + own + ahead)

    for size, number in tried:
        first = fit(parts, seed, size, number, told((fits - 1) * number))
        done += first.done
        if judged(parts, first.losses).accepted:
            break
    made = [first]
    for further in range(1, fits):
        made.append(fit(parts, seed + further, size, number, told((fits - 1 - further) * number)))
        done += made[-1].done
    return _averaged(parts, made, seed)


def _averaged(parts: Parts, made: Sequence[Fit], seed: int) -> ChosenMixture:
    mixture = Mixture.average([own.mixture for own in made])
    tests = judged(parts, parts.losses(mixture))
    return ChosenMixture(mixture, tests, seed, made[0].components, made[0].steps, len(made))
