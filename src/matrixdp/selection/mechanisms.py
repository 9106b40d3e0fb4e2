"""The mechanisms by name: one registry that the front, the command line and the comparison share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from matrixdp.plan import Plan
from matrixdp.queries import Workload
from matrixdp.selection.baselines.registry import BASELINES
from matrixdp.selection.convex import DEFAULT_GAP
from matrixdp.selection.direct import select_directly
from matrixdp.selection.hdmm.kron import select_kron
from matrixdp.selection.hdmm.opt_marginals import select_marginals
from matrixdp.selection.hdmm.search import select_hdmm, select_whole
from matrixdp.selection.hdmm.union import select_union
from matrixdp.selection.residual.mechanism import select_by_decomposition
from matrixdp.selection.residual.planner import select_residual_planner, select_residual_planner_plus
from matrixdp.selection.selection import Certificate

__all__ = ["MECHANISMS", "Mechanism", "Options"]

Progress = Callable[[str, float | None], None]
Choice = tuple[Plan, Certificate]
BOTH = ("gaussian", "laplace")


@dataclass(frozen=True)
class Options:
    """How hard a mechanism tries.

    Attributes
    ----------
    gap : float
        Relative gap of every certified problem.
    seed : int
        Of the searches that start from random points.
    sub_solver : str
        Of the decomposition; see `matrixdp.selection.residual`.
    progress : callable or None
        Called with what is being done and the share done, if known.
    """

    gap: float = DEFAULT_GAP
    seed: int = 0
    sub_solver: str = "auto"
    progress: Progress | None = None


@dataclass(frozen=True)
class Mechanism:
    """A way to choose a strategy.

    Attributes
    ----------
    noises : tuple of str
        The kinds of noise that it selects for.
    source : str
        The paper, or what it is.
    select : callable
        From a workload, a kind of noise and options to a plan and its certificate.
    """

    noises: tuple[str, ...]
    source: str
    select: Callable[[Workload, str, Options], Choice]


def _decomposition(mechanism: str) -> Callable[[Workload, str, Options], Choice]:
    def choose(workload: Workload, noise: str, options: Options) -> Choice:
        return select_by_decomposition(
            workload,
            mechanism,
            options.gap,
            options.progress,
            noise=noise,
            sub_solver=options.sub_solver,
            seed=options.seed,
        )

    return choose


def _baseline(name: str) -> Mechanism:
    choose, source, noises = BASELINES[name]
    return Mechanism(noises, source, lambda workload, noise, _: choose(workload, noise))


#: Every mechanism by name, ``auto`` aside; those that others are compared to come last.
MECHANISMS: Mapping[str, Mechanism] = MappingProxyType(
    {
        "dense": Mechanism(
            ("gaussian",),
            "Yuan et al. 2016: the certified optimum on the whole table",
            lambda workload, _, options: select_directly(workload, options.gap),
        ),
        "residual": Mechanism(
            BOTH, "the decomposition into marginals, weight vectors optimized", _decomposition("residual")
        ),
        "querysmasher": Mechanism(
            BOTH, "QuerySmasher (2026): the decomposition, uniform weights", _decomposition("querysmasher")
        ),
        "fourier": Mechanism(
            ("gaussian",),
            "Weighted Fourier Factorizations: the decomposition in the Fourier basis",
            _decomposition("fourier"),
        ),
        "hdmm": Mechanism(
            BOTH,
            "McKenna et al. 2018: the best of opt-0, opt-kron, opt-plus and opt-m",
            lambda workload, noise, options: select_hdmm(
                workload, noise, gap=options.gap, seed=options.seed, progress=options.progress
            )[:2],
        ),
        "opt-0": Mechanism(
            BOTH,
            "McKenna et al. 2018, section 5.2: one explicit strategy on the whole table",
            lambda workload, noise, options: select_whole(
                workload, noise, gap=options.gap, seed=options.seed, progress=options.progress
            ),
        ),
        "opt-kron": Mechanism(
            BOTH,
            "McKenna et al. 2018, section 6.1: one product",
            lambda workload, noise, options: select_kron(
                workload, noise, gap=options.gap, seed=options.seed, progress=options.progress
            ),
        ),
        "opt-plus": Mechanism(
            BOTH,
            "McKenna et al. 2018, section 6.2: a union of products",
            lambda workload, noise, options: select_union(
                workload, noise, gap=options.gap, seed=options.seed, progress=options.progress
            ),
        ),
        "opt-m": Mechanism(
            BOTH,
            "McKenna et al. 2018, section 6.3: weighted marginals",
            lambda workload, noise, options: select_marginals(
                workload, noise, seed=options.seed, progress=options.progress
            ),
        ),
        "residualplanner": Mechanism(
            ("gaussian",),
            "Xiao et al. 2023: residuals of marginals, for workloads of marginals",
            lambda workload, _, options: select_residual_planner(workload, options.gap),
        ),
        "residualplanner-plus": Mechanism(
            ("gaussian",),
            "ResidualPlanner+: residuals in a given basis for each attribute",
            lambda workload, _, options: select_residual_planner_plus(workload, gap=options.gap),
        ),
        **{name: _baseline(name) for name in BASELINES},
    }
)
