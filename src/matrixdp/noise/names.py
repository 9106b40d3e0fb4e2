"""The noises by name: where text becomes a noise."""

from __future__ import annotations

from dataclasses import replace

from matrixdp.errors import PrivacyError
from matrixdp.forms import nearest
from matrixdp.noise.gaussian import GAUSSIAN
from matrixdp.noise.laplace import LAPLACE
from matrixdp.noise.noise import Cost, Noise
from matrixdp.privacy import Budget
from matrixdp.privacy.conversions import float_above, float_below

#: Every noise by its name; where several can honour a budget, the first of them is taken.
NOISES: dict[str, Noise] = {noise.name: noise for noise in (GAUSSIAN, LAPLACE)}


def register_noise(noise: Noise) -> None:
    """Make a noise known by its name, everywhere.

    Raises
    ------
    PrivacyError
        If it is no noise, its norm is neither 1 nor 2, or another has its name.
    """
    if not isinstance(noise, Noise):
        raise PrivacyError(f"noise: found a {type(noise).__name__}; expected a Noise", code="wrong-type")
    if noise.norm not in (1, 2):
        raise PrivacyError(f"noise {noise}: found norm {noise.norm!r}; expected 1 or 2", code="out-of-range")
    if NOISES.setdefault(noise.name, noise) != noise:
        raise PrivacyError(f"noise {noise}: another noise has this name", code="conflict")


def noise_named(name: str | Noise) -> Noise:
    """Return the noise of a name; a noise is itself.

    Raises
    ------
    PrivacyError
        If there is none.

    Examples
    --------
    >>> noise_named("laplace").norm
    1
    >>> noise_named("laplas")
    Traceback (most recent call last):
        ...
    matrixdp.errors.PrivacyError: noise: found 'laplas'; expected gaussian or laplace; did you mean 'laplace'?
    """
    if isinstance(name, Noise):
        return name
    if isinstance(name, str) and name in NOISES:
        return NOISES[name]
    meant = nearest(name, NOISES) if isinstance(name, str) else ()
    raise PrivacyError.at(("noise",), repr(name), " or ".join(NOISES), meant, code="unknown-name")


def natural_noise(budget: Budget | None) -> Noise:
    """Return the first noise that can honour a budget, of whatever size.

    Examples
    --------
    >>> natural_noise(Budget(rho=1)), natural_noise(Budget(epsilon=1)), natural_noise(None)
    (gaussian, laplace, gaussian)
    """
    return next(noise for noise in NOISES.values() if budget is None or noise.honours(budget))


# The one comparison of a cost with the budget that allows it.


def checked_cost(cost: Cost, budget: Budget) -> Cost:
    """Return the cost if the budget allows its noise that much, compared exactly; refuse it otherwise."""
    if not isinstance(budget, Budget):
        raise PrivacyError(f"budget: found a {type(budget).__name__}; expected a Budget", code="wrong-type")
    if not isinstance(cost, Cost):
        raise PrivacyError(f"privacy cost: found a {type(cost).__name__}; expected a Cost", code="wrong-type")
    left = budget.less(cost.delta)
    if left is None:
        found, expected = f"{float_above(cost.delta):.17g}", f"at most that of the budget, {budget.words}"
        raise PrivacyError.at(("privacy cost", "delta"), found, expected, code="budget-exceeded")
    allowed = replace(cost.noise.cost(left), delta=cost.delta)
    if not cost <= allowed:
        raise PrivacyError(
            f"privacy cost: found {float_above(cost.value):.17g}; expected at most "
            f"{float_below(allowed.value):.17g}, which is what {budget.words} allows",
            code="budget-exceeded",
        )
    return cost
