"""Every noise keeps its contract; noises that do not are found."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import matrixdp as mdp
from matrixdp.noise import GAUSSIAN, LAPLACE, NOISES, Noise
from matrixdp.testing import check_noise


@pytest.mark.parametrize("noise", NOISES.values(), ids=str)
def test_noises_keep_their_contract(noise: Noise) -> None:
    check_noise(noise)


def doubled(right):
    return lambda *given: 2 * right(*given)


def skewed(right):
    return lambda scale, size, **given: right(scale * Fraction(6, 5), size, **given)


WRONG = [
    (LAPLACE, "column_norms", doubled, "column_norms"),
    (LAPLACE, "power_sum", doubled, "power_sum"),
    (GAUSSIAN, "share", doubled, "share"),
    (GAUSSIAN, "variance", doubled, "share"),
    (GAUSSIAN, "scale", doubled, "scale"),
    (GAUSSIAN, "total_loss", doubled, "total_loss"),
    (GAUSSIAN, "best_shares", lambda _: lambda *_: [0.2, 0.1, 0.2], "total_loss"),
    (LAPLACE, "variance_factor", lambda _: 1.0, "variance_factor"),
    (GAUSSIAN, "honours", lambda _: lambda _: True, "delta"),
    (LAPLACE, "honours", lambda _: lambda _: False, "is not honoured, and is not refused"),
    (LAPLACE, "allowed", doubled, "promise: more than"),
    (GAUSSIAN, "allowed", doubled, "promise: more than"),
    (LAPLACE, "largest_quantile", lambda right: lambda level: 0.5 * right(level), "largest_quantile"),
    (LAPLACE, "combination_quantiles", doubled, "combination_quantiles: above"),
    (GAUSSIAN, "draw_rounded", skewed, "draw_rounded"),
]


def patched(monkeypatch: pytest.MonkeyPatch, noise: Noise, name: str, wrong) -> None:
    right = getattr(noise, name)
    value = wrong(right)
    method = lambda _self, *given, **named: value(*given, **named)  # noqa: E731
    monkeypatch.setattr(type(noise), name, method if callable(value) else value)


@pytest.mark.parametrize(("noise", "name", "wrong", "message"), WRONG)
def test_wrong_noises_are_found(monkeypatch, noise: Noise, name: str, wrong, message: str) -> None:
    patched(monkeypatch, noise, name, wrong)
    with pytest.raises((AssertionError, mdp.PrivacyError), match=message):
        check_noise(noise)


PROMISES = {"pure_epsilon": LAPLACE, "mu": GAUSSIAN, "rho": GAUSSIAN, "epsilon": GAUSSIAN}


@pytest.mark.parametrize("figure", PROMISES)
def test_promises_that_no_threshold_bears_out_are_found(monkeypatch, figure: str) -> None:
    noise = PROMISES[figure]

    def flattering(right):
        def guarantee(*given):
            found = right(*given)
            return replace(found, **{figure: getattr(found, figure) * Fraction(4, 5)})

        return guarantee

    patched(monkeypatch, noise, "guarantee", flattering)
    with pytest.raises(AssertionError, match=f"{figure.replace('_', ' ')}.* is not kept"):
        check_noise(noise)


@pytest.mark.parametrize("noise", NOISES.values(), ids=str)
def test_filters_and_tails_that_are_wrong_are_found(monkeypatch, noise: Noise) -> None:
    right = noise.distribution
    rough = replace(right, epsilon=right.epsilon / 2**30)
    shifted = lambda words: (right.approximate(words)[0] + 0.01, right.approximate(words)[1])  # noqa: E731
    off = replace(right, approximate=shifted)
    narrow = replace(right, upper_tail=lambda point: right.upper_tail(point * Fraction(11, 10)))
    blind = replace(right, approximate=lambda words: (np.zeros(len(words)), np.zeros(len(words), dtype=bool)))
    for wrong, message in (
        (rough, "not within epsilon"),
        (off, "not within epsilon"),
        (narrow, "variance_factor"),
        (blind, "next to nothing"),
    ):
        monkeypatch.setattr(type(noise), "distribution", wrong)
        with pytest.raises(AssertionError, match=message):
            check_noise(noise)
