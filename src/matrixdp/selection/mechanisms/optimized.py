"""The mechanisms that optimize a strategy: what each is called, and what it can be told."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from matrixdp.plan import Plan
from matrixdp.selection.bounds.decomposed import decomposition_bound
from matrixdp.selection.compose.decomposition import select_by_decomposition
from matrixdp.selection.compose.generalized_marginals import select_generalized_marginals
from matrixdp.selection.compose.hdmm import select_hdmm, select_whole
from matrixdp.selection.compose.joint_tables import select_jointly
from matrixdp.selection.compose.kron import select_kron
from matrixdp.selection.compose.marginals import select_marginals
from matrixdp.selection.compose.residual_planner import select_residual_planner, select_residual_planner_plus
from matrixdp.selection.compose.sub_solver import SUB_SOLVERS
from matrixdp.selection.compose.union import CLUSTERS, select_union
from matrixdp.selection.compose.weighted_product import select_weighted_product
from matrixdp.selection.compose.whole_table import select_directly
from matrixdp.selection.gram import DEFAULT_GAP
from matrixdp.selection.gram.opt_0 import Rows
from matrixdp.selection.mechanisms.options import Options, option
from matrixdp.selection.mechanisms.table import Mechanism, Task, register
from matrixdp.selection.selection import Certificate

if TYPE_CHECKING:
    from matrixdp.language.predicates import PredicateForm

__all__ = [
    "Based",
    "Certified",
    "Decomposed",
    "Restarted",
    "Searched",
    "United",
    "Weighted",
]

_BOTH = (1, 2)
_GAUSSIAN = (2,)
_SEED = "of the searches that start from random points; equal seeds give equal strategies"


@dataclass(frozen=True)
class Certified(Options):
    """Of mechanisms that solve certified problems."""

    gap: float = option(DEFAULT_GAP, "relative gap of every certified problem")


@dataclass(frozen=True)
class Searched(Certified):
    """Of mechanisms that search from random points too."""

    seed: int = option(0, _SEED)


@dataclass(frozen=True)
class Restarted(Searched):
    """Of searches for p-Identity strategies."""

    restarts: int = option(0, "random starts under Laplace noise; 0 leaves them to the size of the problem")
    p: int = option(0, "rows of p-Identity strategies beside the identity; 0 tries several numbers")
    cells_per_row: int = option(0, "p as a share: a row for so many cells (McKenna et al.: 16); 0 as `p`")

    @property
    def rows(self) -> Rows:
        """How searches are to be made."""
        return Rows(self.p, self.cells_per_row, self.restarts)


@dataclass(frozen=True)
class United(Restarted):
    """Of unions of products."""

    clusters: str = option("merged", "which query groups share a product", CLUSTERS)


def _read_bases(given: object) -> Mapping[str, PredicateForm]:
    from matrixdp.specification.load import read_bases  # reads YAML, which other mechanisms do without

    return read_bases(given)


@dataclass(frozen=True)
class Based(Certified):
    """Of ResidualPlanner+."""

    bases: Mapping[str, PredicateForm] | None = option(
        None, "a file or mapping of what is measured of each attribute", read=_read_bases
    )


@dataclass(frozen=True)
class Weighted(Options):
    """Of weighted marginals."""

    seed: int = option(0, _SEED)
    restarts: int = option(10, "random covers by marginals to start from, under Laplace noise")


@dataclass(frozen=True)
class Decomposed(Searched):
    """Of the decomposition into marginals."""

    sub_solver: str = option("auto", "how the sub-workload of a marginal is solved", SUB_SOLVERS)


def _decomposition(name: str, source: str) -> None:
    def select(task: Task[Decomposed]) -> tuple[Plan, Certificate]:
        given = task.options
        if name == "residual" and task.noise.norm == 2 and given.sub_solver in ("auto", "optimum", "fast"):
            joint = select_jointly(task.workload, given.gap, task.progress, given.sub_solver, given.seed)
            if joint is not None:
                return joint
        return select_by_decomposition(
            task.workload,
            task.noise,
            name,
            given.gap,
            task.progress,
            sub_solver=given.sub_solver,
            seed=given.seed,
            bound_of=decomposition_bound if task.bounded else None,
            known=task.memory,
        )

    register(Mechanism(name, source, _BOTH, Decomposed, select))


def _fourier(task: Task[Certified]) -> tuple[Plan, Certificate]:
    return select_by_decomposition(task.workload, task.noise, "fourier", task.options.gap, task.progress)


def _residual_planner_plus(task: Task[Based]) -> tuple[Plan, Certificate]:
    from matrixdp.specification.load import bases_on

    bases = bases_on(task.workload.domain, task.options.bases or {})
    return select_residual_planner_plus(task.workload, task.noise, bases, gap=task.options.gap)


def _searching(task: Task[Restarted]) -> dict[str, Any]:
    """Return how searches for p-Identity strategies are made."""
    given = task.options
    return {"gap": given.gap, "seed": given.seed, "progress": task.progress, "rows": given.rows}


def _covering(task: Task[Weighted]) -> dict[str, Any]:
    """Return how searches for weighted marginals are made."""
    return {"seed": task.options.seed, "restarts": task.options.restarts, "progress": task.progress}


def _hdmm(task: Task[Restarted]) -> tuple[Plan, Certificate]:
    return select_hdmm(task.workload, task.noise, **_searching(task))[:2]


def _opt_plus(task: Task[United]) -> tuple[Plan, Certificate]:
    clusters = task.options.clusters
    return select_union(task.workload, task.noise, clusters=clusters, memory=task.memory, **_searching(task))


register(
    Mechanism(
        "dense",
        "the problem of Yuan et al. 2016, solved to a proved gap: the optimum on the whole table",
        _GAUSSIAN,
        Certified,
        lambda task: select_directly(task.workload, task.noise, task.options.gap, task.memory),
    )
)
register(
    Mechanism(
        "weighted-product",
        "one product of bases with weighted rows, bases and weights optimized together",
        _GAUSSIAN,
        Certified,
        lambda task: select_weighted_product(task.workload, task.noise, task.options.gap),
    )
)
_decomposition("residual", "the decomposition into marginals, weight vectors optimized")
_decomposition("querysmasher", "QuerySmasher (2026): the decomposition, uniform weights")
register(
    Mechanism(
        "fourier",
        "Weighted Fourier Factorizations: the decomposition in the Fourier basis",
        _GAUSSIAN,
        Certified,
        _fourier,
    )
)
register(
    Mechanism(
        "hdmm",
        "McKenna et al. 2018: the best of opt-0, opt-kron, opt-plus and opt-m, with searches of ours",
        _BOTH,
        Restarted,
        _hdmm,
    )
)
register(
    Mechanism(
        "opt-0",
        "McKenna et al. 2018, section 5.2: one explicit strategy on the whole table; starts of ours",
        _BOTH,
        Restarted,
        lambda task: select_whole(task.workload, task.noise, **_searching(task)),
    )
)
register(
    Mechanism(
        "opt-kron",
        "McKenna et al. 2018, section 6.1: one product; starts of ours",
        _BOTH,
        Restarted,
        lambda task: select_kron(task.workload, task.noise, **_searching(task)),
    )
)
register(
    Mechanism(
        "opt-plus",
        "McKenna et al. 2018, section 6.2: a union of products, by default merged in a way of ours",
        _BOTH,
        United,
        _opt_plus,
    )
)
register(
    Mechanism(
        "opt-m",
        "McKenna et al. 2018, section 6.3: weighted marginals, found by a search of ours",
        _BOTH,
        Weighted,
        lambda task: select_marginals(task.workload, task.noise, **_covering(task)),
    )
)
register(
    Mechanism(
        "generalized-marginals",
        "weighted marginals with one optimized strategy for each attribute",
        _BOTH,
        Weighted,
        lambda task: select_generalized_marginals(task.workload, task.noise, **_covering(task)),
    )
)
register(
    Mechanism(
        "residualplanner",
        "Xiao et al. 2023: residuals of marginals, for workloads of marginals",
        _GAUSSIAN,
        Options,
        lambda task: select_residual_planner(task.workload, task.noise),
    )
)
register(
    Mechanism(
        "residualplanner-plus",
        "ResidualPlanner+: residuals in a given basis for each attribute",
        _GAUSSIAN,
        Based,
        _residual_planner_plus,
    )
)
