"""Every mechanism on every form of workload, held against dense matrices and the certified optimum."""

from functools import cache
from typing import Any

import numpy as np
import pytest
import scipy.optimize

import matrixdp as mdp
from matrixdp.noise import GAUSSIAN, LAPLACE, Noise
from matrixdp.selection.auto import select
from matrixdp.selection.registry import OF_JOINT_NOISE
from matrixdp.selection.selection import Selection
from matrixdp.testing import dense_gram
from tests.selection.oracle import check, error_of, scaled_rows

DOMAIN = mdp.Domain({"a": 5, "b": 3, "c": ["x", "y"], "one": 1})
RNG = np.random.default_rng(0)
SPANS = RNG.integers(0, (5, 3), (12, 2, 2))
SPANS.sort(axis=1)
ENTRIES: dict[str, list[Any]] = {
    "total": [mdp.marginals(0)],
    "marginals": [mdp.marginals([0, 1, 2, 3])],
    "weighted ways": [mdp.marginals(2), mdp.marginals(1, weight=2.5)],
    "product": [mdp.product(a="prefix", b="range", weight=2.0)],
    "prefixes": [mdp.kway([1, 2], {"categorical": "identity", "numeric": "prefix"})],
    "ranges": [mdp.kway([0, 1, 2, 3], "range"), mdp.marginals(2)],
    "crossed": [
        mdp.product(a=x, b=y, c="prefix") for x, y in (("prefix", "identity"), ("identity", "prefix"))
    ],
    "affine": [mdp.pairwise("affine", ["a", "b"]), mdp.kway(1, "prefix")],
    "abs": [mdp.pairwise("abs", ["a", "b"]), mdp.kway(3, "prefix"), mdp.kway(1, "range")],
    "weights": [
        mdp.product(a="prefix", c="identity", weight=3),
        mdp.product(a="range", weights=np.arange(1.0, 16)),
    ],
    "weighted cells": [
        mdp.product(a="prefix", b="prefix", weights=np.outer(range(1, 6), [1, 2, 5]) + 1.0),
        mdp.marginals(1),
    ],
    "disjunctions": [
        mdp.disjunction(a="prefix", b="identity", c="identity"),
        mdp.product(a="range", b="prefix"),
    ],
    "either by": [
        mdp.disjunction(a="prefix", b="identity", by={"c": "identity"}, weight=2),
        mdp.product(a="prefix"),
    ],
    "boxes": [
        mdp.cells([{"a": [0, 1], "b": 0}, [{"a": 3, "b": [0, 2]}, {"a": 0}]], by={"c": "identity"}),
        mdp.marginals(1),
    ],
    "explicit": [
        mdp.dense(np.arange(45.0).reshape(3, 15) % 7, ["a", "b"], weights=[1, 2, 3]),
        mdp.product(b="prefix", c="identity"),
        mdp.dense([[1, 0, 2]], ["b"]),
    ],
    "few values": [
        mdp.product(a={"ranges": [[0, 1], [2, 4]]}, c="identity"),
        mdp.product(b={"sets": [[0, 1], [2]]}),
    ],
    "differences": [mdp.product(a={"matrix": [[1, -1, 0, 0, 0], [0, 1, -1, 0, 0]]}), mdp.product(b="prefix")],
    "zeros": [mdp.product(a={"matrix": [[0] * 5, [1, 0, 0, 0, 0]]}), mdp.dense(np.zeros((2, 3)), ["b"])],
    "duplicates": [mdp.marginals(1), mdp.marginals(1), mdp.product(a="identity")],
    "a huge weight": [mdp.product(a="prefix", weight=1e100)],
    "a tiny weight": [mdp.product(a="prefix", weight=1e-200), mdp.marginals(1)],
    "one value": [
        mdp.product(one="prefix", a="identity"),
        mdp.product(one="identity", b="prefix", weight=0.1),
    ],
    "single ranges": [
        mdp.product(a={"ranges": [a.tolist()]}, b={"ranges": [b.tolist()]})
        for a, b in SPANS.transpose(0, 2, 1)
    ],
}
WORKLOADS = {name: mdp.Workload(DOMAIN, *entries) for name, entries in ENTRIES.items()}
GAUSSIAN_ONES = "residual querysmasher fourier opt-kron weighted-product opt-m generalized-marginals opt-plus"
LAPLACE_ONES = "opt-kron opt-m opt-0 generalized-marginals opt-plus"
#: Errors of these mechanisms, over that of the Gaussian optimum or twice that.
FIGURES = {
    "total": "1.000 1.000 1.000 1.000 1.000 1.000 1.000 1.000 | 1.000 1.000 1.000 1.000 1.000",
    "marginals": "1.000 1.000 1.000 1.003 1.000 1.000 1.000 1.000 | 1.563 1.563 1.563 1.563 1.563",
    "weighted ways": "1.000 1.000 1.000 1.077 1.000 1.000 1.000 1.000 | 2.381 2.381 2.381 2.381 2.381",
    "product": "1.000 1.080 1.129 1.000 1.000 1.163 1.000 1.000 | 1.833 1.833 1.833 1.833 1.833",
    "prefixes": "1.001 1.060 1.099 1.044 1.002 1.125 1.001 1.044 | 3.693 3.430 3.223 3.430 3.693",
    "ranges": "1.000 1.032 1.036 1.001 1.000 1.067 1.000 1.001 | 1.990 1.990 1.990 1.990 1.990",
    "crossed": "1.014 1.042 1.054 1.030 1.006 1.063 1.018 1.014 | 1.458 1.458 1.458 1.458 1.458",
    "affine": "1.000 1.089 1.185 1.287 1.176 1.234 1.146 1.152 | 5.970 3.128 3.671 3.128 3.129",
    "abs": "1.007 1.064 1.097 1.017 1.016 1.127 1.016 1.017 | 3.127 2.913 2.806 2.913 3.127",
    "weights": "1.036 1.066 1.080 1.046 1.000 1.116 1.038 1.032 | 1.782 1.782 1.782 1.782 1.782",
    "weighted cells": "1.000 1.132 1.174 1.046 1.002 1.202 1.000 1.002 | 4.827 3.249 3.744 3.249 3.518",
    "disjunctions": "1.087 1.130 1.149 1.140 1.023 1.183 1.088 1.140 | 3.493 2.689 2.454 2.689 3.493",
    "either by": "1.208 1.252 1.305 1.252 1.002 1.341 1.208 1.250 | 3.217 2.804 2.167 2.804 3.217",
    "boxes": "1.237 1.251 1.360 1.431 1.205 1.380 1.345 1.431 | 3.454 3.454 3.454 3.454 3.454",
    "explicit": "1.011 1.671 1.824 2.109 1.738 1.989 1.795 2.109 | 5.665 4.746 2.646 4.413 4.412",
    "few values": "1.000 1.339 1.819 1.327 1.000 1.021 1.021 1.021 | 1.694 4.013 1.694 1.694 1.694",
    "differences": "1.000 1.045 1.105 1.222 1.001 1.132 1.022 1.021 | 2.574 2.272 2.375 2.166 2.256",
    "zeros": "1.000 1.000 1.000 1.000 1.000 1.000 1.000 1.000 | 1.000 1.000 1.001 1.000 1.000",
    "duplicates": "1.000 1.000 1.000 1.384 1.000 1.009 1.009 1.009 | 4.441 2.475 3.605 2.475 4.441",
    "a huge weight": "1.000 1.062 1.110 1.000 1.000 1.143 1.000 1.000 | 1.602 1.602 1.602 1.602 1.602",
    "a tiny weight": "1.000 1.000 1.000 1.373 1.000 1.007 1.000 1.008 | 4.656 2.532 3.775 2.532 2.968",
    "one value": "1.000 1.008 1.008 1.196 1.001 1.008 1.000 1.018 | 2.453 1.663 1.989 1.663 1.663",
    "single ranges": "1.124 1.266 1.332 1.160 1.100 1.453 1.159 1.160 | 1.999 1.999 1.999 1.999 1.999",
}  # fmt: skip
COLUMNS = ((GAUSSIAN, GAUSSIAN_ONES), (LAPLACE, LAPLACE_ONES))
CASES = [
    (name, noise, mechanism, figure)
    for name, figures in FIGURES.items()
    for (noise, names), listed in zip(COLUMNS, figures.split("|"), strict=True)
    for mechanism, figure in zip(names.split(), map(float, listed.split()), strict=True)
]


@cache
def optimum(name: str) -> Selection:
    return select(WORKLOADS[name], mechanism="dense", noise=GAUSSIAN)


@pytest.mark.parametrize("name", WORKLOADS)
def test_the_optimum_is_proved_by_its_own_matrix(name: str) -> None:
    """The square of the nuclear norm of W diag(p)^(1/2) bounds every error; the strategy tells p."""
    selection = optimum(name)
    error, gram = check(selection), dense_gram(selection.workload)
    squares = scaled_rows(selection).T @ scaled_rows(selection)
    # the optimum X solves X diag(p) X = W'W for p of which no entry is negative
    p = scipy.optimize.nnls((squares @ squares) ** 2, np.diagonal(squares @ gram @ squares))[0]
    root = np.sqrt(p)
    values = np.linalg.eigvalsh(root[:, None] * gram * root)
    proved = np.sqrt(np.where(values > 1e-13 * values[-1], values, 0.0)).sum() ** 2 / p.sum()
    assert error * (1 - 1e-3) <= proved <= error * (1 + 1e-9)
    assert selection.certificate.lower_bound == pytest.approx(proved, rel=1e-3)
    assert selection.certificate.lower_bound <= error


@pytest.mark.parametrize(("name", "noise", "mechanism", "figure"), CASES)
def test_errors_and_bounds_are_those_of_the_matrix(
    name: str, noise: Noise, mechanism: str, figure: float
) -> None:
    selection = select(WORKLOADS[name], mechanism=mechanism, noise=noise)
    best = noise.variance_factor * error_of(optimum(name))
    error, bound = check(selection), selection.certificate.lower_bound
    assert best * (1 - 1e-3) <= error <= best * figure * (1.003 if noise == GAUSSIAN else 1.01)
    assert bound is None or 0.7 * best < bound <= best


@pytest.mark.parametrize(("noise", "name"), [(n, name) for n in (GAUSSIAN, LAPLACE) for name in FIGURES])
def test_auto_takes_the_least_error(name: str, noise: Noise) -> None:
    selection = select(WORKLOADS[name], noise=noise)
    figures = [figure for own, n, _, figure in CASES if (own, n) == (name, noise)]
    least = 1.0 if noise == GAUSSIAN else min(figures)
    assert check(selection) <= noise.variance_factor * error_of(optimum(name)) * least * 1.003
    if selection.mechanism in OF_JOINT_NOISE:
        assert selection.certificate.lower_bound is None
    else:
        assert selection.certificate.lower_bound <= noise.variance_factor * error_of(optimum(name))


@pytest.mark.parametrize("mechanism", ["residual", "querysmasher", "opt-kron", "generalized-marginals"])
@pytest.mark.parametrize("name", ["prefixes", "affine", "abs", "weights", "either by", "explicit"])
def test_the_order_of_attributes_never_matters(name: str, mechanism: str) -> None:
    turned = mdp.Domain([DOMAIN[own] for own in ("c", "one", "b", "a")])
    found = select(mdp.Workload(turned, *ENTRIES[name]), mechanism=mechanism, noise=GAUSSIAN)
    there = select(WORKLOADS[name], mechanism=mechanism, noise=GAUSSIAN)
    assert error_of(found) == pytest.approx(error_of(there), rel=2e-3)
