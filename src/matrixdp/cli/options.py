"""Options that several commands share."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

__all__ = [
    "Confidence",
    "Mechanism",
    "MechanismOption",
    "Noise",
    "NoiseOption",
    "Objective",
    "ObjectiveOption",
    "Spec",
    "SubSolver",
    "SubSolverOption",
]


class Mechanism(StrEnum):
    """How a strategy is chosen."""

    auto = "auto"
    dense = "dense"
    residual = "residual"
    querysmasher = "querysmasher"
    fourier = "fourier"
    hdmm = "hdmm"
    opt_0 = "opt-0"
    opt_kron = "opt-kron"
    opt_plus = "opt-plus"
    opt_m = "opt-m"
    residualplanner = "residualplanner"
    residualplanner_plus = "residualplanner-plus"
    identity = "identity"
    workload = "workload"
    hierarchical = "hierarchical"
    hb = "hb"
    wavelet = "wavelet"
    quadtree = "quadtree"
    greedy_h = "greedy-h"
    datacube = "datacube"
    l2_approximation = "l2-approximation"
    singular_value = "singular-value"
    rotation = "rotation"
    low_rank = "low-rank"
    eigen_query = "eigen-query"
    exponential_smoothing = "exponential-smoothing"
    fourier_thresholds = "fourier-thresholds"
    coa = "coa"


class Noise(StrEnum):
    """Which noise is added."""

    auto = "auto"
    gaussian = "gaussian"
    laplace = "laplace"


class Objective(StrEnum):
    """What selection makes least."""

    sum = "sum"
    max = "max"


class SubSolver(StrEnum):
    """How sub-workloads are solved."""

    auto = "auto"
    optimum = "optimum"
    product = "product"
    fourier = "fourier"
    fixed = "fixed"
    fast = "fast"


Spec = Annotated[
    Path,
    typer.Argument(metavar="SPEC", show_default=False, help="The specification: a YAML file."),
]
MechanismOption = Annotated[
    Mechanism,
    typer.Option(
        "--mechanism",
        help="auto: the least expected error among those that fit. dense: the optimum on the whole domain, "
        "for a few thousand cells. residual: one part for each marginal, with optimized weight vectors. "
        "querysmasher: the same with uniform ones. fourier: the same in the Fourier basis. hdmm: the best of "
        "opt-0 (one explicit table), opt-kron (one product), opt-plus (a union of products) and opt-m "
        "(weighted marginals). `matrixdp compare` shows them side by side, with the mechanisms of other "
        "papers: " + ", ".join(name.value for name in list(Mechanism)[10:]) + ".",
        show_choices=False,
        metavar="NAME",
    ),
]
NoiseOption = Annotated[
    Noise,
    typer.Option(
        "--noise",
        help="gaussian, laplace, or auto: Laplace for pure differential privacy (epsilon alone), Gaussian "
        "for rho and mu, and for epsilon with delta whichever gives less error.",
    ),
]
ObjectiveOption = Annotated[
    Objective,
    typer.Option(
        "--objective",
        help="What is made least: the sum of the (weighted) variances of all queries, or the largest one.",
    ),
]
SubSolverOption = Annotated[
    SubSolver,
    typer.Option(
        "--sub-solver",
        help="How residual and querysmasher solve the sub-workload of a marginal: optimum (refused where it "
        "is too large), product (one product with row weights), fourier, fixed (each attribute's own "
        "optimum as basis), fast (few iterations), or auto: the optimum where it fits, else the best of the "
        "others.",
    ),
]
Confidence = Annotated[
    float | None,
    typer.Option("--confidence", help="Of the pointwise intervals (default: 0.95).", show_default=False),
]
