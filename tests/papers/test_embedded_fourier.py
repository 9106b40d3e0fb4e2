"""Thresholds as half circles."""

import numpy as np
import pytest

import matrixdp as mdp
from matrixdp.papers.embedded_fourier import embedded_thresholds, weighted_characters


@pytest.mark.parametrize("size", [1, 2, 3, 8, 9, 33])
def test_thresholds_are_sums_of_characters_with_the_variance_of_the_theory(size):
    rows = embedded_thresholds(size)
    # each half circle, cut back to the values, is a prefix: with its coefficients on the strategy's rows the
    # variance at sensitivity F = sum |h^(k)| is F^2, and least squares is not worse
    coefficients = np.abs(np.fft.fft(np.r_[np.ones(size), np.zeros(size)])) / (2 * size)
    total = coefficients.sum()
    norms = (rows**2).sum(axis=0)
    assert np.allclose(norms, total)
    lift = np.tri(size) @ np.linalg.pinv(rows)
    assert np.allclose(lift @ rows, np.tri(size))
    assert ((lift**2).sum(axis=1) * total <= total**2 * (1 + 1e-9)).all()


def test_circular_workloads_are_optimal():
    gram = np.array([[np.cos(2 * np.pi * (i - j) / 9) + 2.0 + (i == j) for i in range(9)] for j in range(9)])
    rows = weighted_characters(gram)
    norms = (rows**2).sum(axis=0)
    assert np.allclose(norms, norms[0])
    inverse = np.linalg.pinv(rows)
    loss = norms[0] * np.trace(inverse.T @ gram @ inverse)
    assert loss == pytest.approx(np.sqrt(np.linalg.eigvalsh(gram)).sum() ** 2 / 9, rel=1e-9)


def test_embedding_lowers_the_error():
    workload = mdp.Workload(mdp.Domain({"a": range(256)}), mdp.product(a="prefix"))
    embedded, plain = (
        mdp.select(workload, mechanism=name).certificate.loss for name in ("fourier-thresholds", "fourier")
    )
    assert embedded < 0.75 * plain
