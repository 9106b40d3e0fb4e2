"""Options that several commands share."""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from matrixdp.selection.mechanisms.table import MECHANISMS, OF_OTHERS

__all__ = [
    "CertifyOption",
    "Confidence",
    "MechanismOption",
    "NoiseOption",
    "Objective",
    "ObjectiveOption",
    "OptionOption",
    "ReleaseFolder",
    "RestartsOption",
    "SeedOption",
    "Spec",
    "SubSolverOption",
    "mechanism_options",
    "noise_name",
]


ReleaseFolder = Annotated[
    Path, typer.Argument(metavar="DIR", show_default=False, help="The folder that `release` wrote.")
]


def noise_name(words: tuple[str, ...], value: str) -> str:
    """Return the name of a noise that there is, or one of some words."""
    from matrixdp.errors import Problem
    from matrixdp.forms.wording import nearest
    from matrixdp.noise import NOISES

    names = (*words, *NOISES)
    if value not in names:
        raise typer.BadParameter(str(Problem((), repr(value), ", ".join(names), nearest(value, names))))
    return value


def _mechanism_names(incomplete: str) -> list[str]:
    """Return the mechanisms whose names begin so, for the completion of a shell."""
    return [name for name in ("auto", *MECHANISMS) if name.startswith(incomplete)]


def _noise_names(incomplete: str) -> list[str]:
    """Return the noises whose names begin so, for the completion of a shell."""
    from matrixdp.noise import NOISES

    return [name for name in ("auto", *NOISES) if name.startswith(incomplete)]


class Objective(StrEnum):
    """What selection makes least."""

    sum = "sum"
    max = "max"


Spec = Annotated[
    Path,
    typer.Argument(metavar="SPEC", show_default=False, help="The specification: a YAML file."),
]
MechanismOption = Annotated[
    str,
    typer.Option(
        "--mechanism",
        autocompletion=_mechanism_names,
        help="auto: the least expected error among those that fit. dense: the optimum on the whole domain, "
        "for a few thousand cells. residual: one part for each marginal, with optimized weight vectors. "
        "querysmasher: the same with uniform ones. fourier: the same in the Fourier basis. hdmm: the best of "
        "opt-0 (one explicit table), opt-kron (one product), opt-plus (a union of products) and opt-m "
        "(weighted marginals). generalized-marginals: weighted marginals with one optimized strategy for "
        "each attribute. weighted-product: one product of bases with weighted rows. `matrixdp "
        "compare` shows them side by side, with the mechanisms of other papers: "
        + ", ".join(OF_OTHERS)
        + ".",
        metavar="NAME",
    ),
]
NoiseOption = Annotated[
    str,
    typer.Option(
        "--noise",
        autocompletion=_noise_names,
        parser=partial(noise_name, ("auto",)),
        metavar="<auto|gaussian|laplace>",
        help="gaussian, laplace, or auto: Laplace for pure differential privacy (epsilon alone), Gaussian "
        "for rho and mu, and for epsilon with delta whichever gives narrower intervals.",
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
    str | None,
    typer.Option(
        "--sub-solver",
        metavar="NAME",
        show_default="auto",
        help="How residual and querysmasher solve the sub-workload of a marginal: optimum (refused where it "
        "is too large), product (one product with row weights), fourier, fixed (each attribute's own "
        "optimum as basis), fast (few iterations), or auto: the optimum where it fits, else the best of the "
        "others.",
    ),
]
SeedOption = Annotated[
    int | None,
    typer.Option(
        "--seed",
        min=0,
        show_default="0",
        help="Of the searches for a strategy that start from random points: equal seeds, equal strategies. "
        "The noise knows nothing of it.",
    ),
]
RestartsOption = Annotated[
    int | None,
    typer.Option(
        "--restarts",
        min=0,
        show_default="10",
        help="How many random covers by marginals opt-m and generalized-marginals start from under Laplace "
        "noise.",
    ),
]
OptionOption = Annotated[
    list[str] | None,
    typer.Option(
        "--option",
        metavar="NAME=VALUE",
        show_default=False,
        help="Another option of the mechanism, such as seed=1 or gap=1e-4; may be repeated.",
    ),
]
CertifyOption = Annotated[
    bool,
    typer.Option(
        "--certify",
        help="Take longer for a higher lower bound.",
    ),
]
Confidence = Annotated[
    float | None,
    typer.Option("--confidence", help="Of the pointwise intervals (default: 0.95).", show_default=False),
]


def mechanism_options(
    mechanism: str,
    sub_solver: str | None,
    pairs: list[str] | None,
    *,
    seed: int | None = None,
    restarts: int | None = None,
    certify: bool = False,
) -> dict[str, Any]:
    """Return the options that a mechanism is given, checked to be its own, and whether to certify.

    Examples
    --------
    >>> mechanism_options("opt-0", None, ["seed=1"])
    {'seed': '1'}
    """
    from matrixdp.errors import SpecificationError, WorkloadError
    from matrixdp.selection.auto import check_mechanism

    flags = {"sub_solver": sub_solver, "seed": seed, "restarts": restarts}
    given: dict[str, Any] = {name: value for name, value in flags.items() if value is not None}
    for pair in pairs or []:
        name, sign, value = pair.partition("=")
        if not sign:
            raise SpecificationError.at(("--option",), repr(pair), "NAME=VALUE")
        given[name.replace("-", "_")] = value
    try:
        check_mechanism(mechanism, given)
    except WorkloadError as error:
        if error.problem is None:
            raise
        name = str(error.problem.path[0])
        own = name == "mechanism" or flags.get(name) is not None
        flag = f"--{name.replace('_', '-')}" if own else f"--option {name}"
        raise SpecificationError(replace(error.problem, path=(flag,))) from None
    return given | {"certify": True} if certify else given
