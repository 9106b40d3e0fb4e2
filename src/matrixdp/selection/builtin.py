"""The mechanisms that optimize a strategy: what each is called, and what it can be told."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from matrixdp.plans import Plan
from matrixdp.selection.bounds.lower_bound import decomposition_bound
from matrixdp.selection.compose.decomposition import select_by_decomposition
from matrixdp.selection.compose.joint_tables import select_jointly
from matrixdp.selection.compose.product import solve_kron
from matrixdp.selection.compose.sub_solver import SUB_SOLVERS
from matrixdp.selection.compose.tree import select_tree
from matrixdp.selection.compose.whole_table import select_table
from matrixdp.selection.explain import (
    OF_MARGINALS,
    OF_TABLE,
    part_methods,
    searched_attributes,
    searched_table,
)
from matrixdp.selection.gram.opt_0 import Rows
from matrixdp.selection.limits import GAP
from matrixdp.selection.problem.kron_sum import KronSum
from matrixdp.selection.registry import Mechanism, Options, Task, option, register
from matrixdp.selection.rules import Facts
from matrixdp.selection.searches.marginals import (
    first_generalized_loss,
    first_walk_marginals_loss,
    select_generalized_marginals,
    select_marginals,
    select_walk_marginals,
)
from matrixdp.selection.searches.radius import select_radius
from matrixdp.selection.searches.unions import CLUSTERS, first_union_loss, select_union
from matrixdp.selection.searches.walks import select_walk
from matrixdp.selection.selection import Certificate, PartMethod

_BOTH = (1, 2)
_GAUSSIAN = (2,)
_SEED = "of the searches that start from random points; equal seeds give equal strategies"


@dataclass(frozen=True)
class ConvexOptions(Options):
    """What mechanisms that solve convex problems can be told."""

    gap: float = option(GAP, "relative gap of every certified problem")


@dataclass(frozen=True)
class SearchOptions(ConvexOptions):
    """What mechanisms that search from random points too can be told."""

    seed: int = option(0, _SEED)


@dataclass(frozen=True)
class PIdentityOptions(SearchOptions):
    """What searches for p-Identity strategies can be told."""

    restarts: int = option(0, "random starts under Laplace noise; 0 leaves them to the size of the problem")
    p: int = option(0, "rows of p-Identity strategies beside the identity; 0 tries several numbers")
    cells_per_row: int = option(0, "p as a share: a row for this many cells (McKenna et al.: 16); 0 as `p`")

    @property
    def rows(self) -> Rows:
        """How searches are to be made."""
        return Rows(self.p, self.cells_per_row, self.restarts)


@dataclass(frozen=True)
class UnionOptions(PIdentityOptions):
    """Of unions of products."""

    clusters: str = option("merged", "which query groups share a product", CLUSTERS)


@dataclass(frozen=True)
class MarginalsOptions(Options):
    """Of weighted marginals."""

    seed: int = option(0, _SEED)
    restarts: int = option(10, "random covers by marginals to start from, under Laplace noise")


@dataclass(frozen=True)
class DecompositionOptions(SearchOptions):
    """Of the decomposition into marginals."""

    sub_solver: str = option("auto", "how the sub-workload of a marginal is solved", SUB_SOLVERS)


def _decomposition(name: str, source: str, norms: tuple[int, ...]) -> None:
    def select(task: Task[DecompositionOptions]) -> tuple[Plan, Certificate]:
        given = task.options
        if name == "residual" and given.sub_solver in ("auto", "optimum", "fast"):
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

    def parts(facts: Facts, given: DecompositionOptions) -> tuple[PartMethod, ...]:
        return part_methods(facts.asked, given.sub_solver, facts.noise, tables=name == "residual")

    # uniform weights over groups would be other weights than the paper's
    reduces = "pairs" if name == "residual" else ""
    told = Mechanism(
        name, source, norms, DecompositionOptions, select, parts=parts, proof=OF_MARGINALS, reduces=reduces
    )
    register(told)


def _searching(task: Task[PIdentityOptions]) -> dict[str, Any]:
    """Return how searches for p-Identity strategies are made."""
    given = task.options
    return {"gap": given.gap, "seed": given.seed, "progress": task.progress, "rows": given.rows}


def _one_product_loss(task: Task[PIdentityOptions]) -> float:
    """Return the loss of a product that is searched fast."""
    terms = KronSum.of(task.workload.domain, task.workload.groups)
    return task.noise.variance_factor * solve_kron(terms, task.noise, effort="fast").loss


_TABLE: Mapping[str, str | float] = {"table": "max_table_cells"}
_DENSE: Mapping[str, str | float] = {**_TABLE, "joint": "max_dense_cells", "factor": "max_dense_cells"}


def _table(
    name: str,
    source: str,
    options: type[ConvexOptions],
    method: str,
    limits: Mapping[str, str | float],
    norms: tuple[int, ...] = _BOTH,
    **about: Any,
) -> None:
    """Register a name for one method of `select_table`."""
    limits = {**_TABLE, **limits}

    def select(task: Task[Any]) -> tuple[Plan, Certificate]:
        known = method == "optimum" and task.noise.norm == 2  # by `dense`, whatever the name
        Facts(task.workload, task.noise).check(name, _DENSE if known else limits)
        how = {"gap": task.options.gap, "progress": task.progress}
        if options is PIdentityOptions:
            how = _searching(task)
        return select_table(task.workload, task.noise, method, duals=task.memory, **how)

    register(Mechanism(name, source, norms, options, select, limits, **about, reduces="pairs"))


def _opt_plus(task: Task[UnionOptions]) -> tuple[Plan, Certificate]:
    clusters = task.options.clusters
    return select_union(task.workload, task.noise, clusters=clusters, memory=task.memory, **_searching(task))


def _marginals(
    name: str,
    source: str,
    search: Callable[..., tuple[Plan, Certificate]],
    limits: Mapping[str, str | float],
    norms: tuple[int, ...] = _BOTH,
    **about: Any,
) -> None:
    """Register a search for weighted marginals."""

    def select(task: Task[MarginalsOptions]) -> tuple[Plan, Certificate]:
        Facts(task.workload, task.noise).check(name, limits)
        how = {"seed": task.options.seed, "restarts": task.options.restarts, "progress": task.progress}
        return search(task.workload, task.noise, **how)

    register(Mechanism(name, source, norms, MarginalsOptions, select, limits, **about, reduces="groups"))


_MARGINALS: Mapping[str, str | float] = {"marginal": "max_table_cells"}
_OF_STRATEGIES: Mapping[str, str | float] = {
    **_MARGINALS,
    "subsets": "max_axis_pieces",
    "strategy": "axis_cells",
    "written": "max_axis_entries",
}

_table(
    "dense",
    "the problem of Yuan et al. 2016, solved to a proved gap: the optimum on the whole table",
    ConvexOptions,
    "optimum",
    _DENSE,
    _GAUSSIAN,
    matrices=("joint", "factor"),
    proof=OF_TABLE,
)
_table(
    "weighted-product",
    "one product of bases with weighted rows, bases and weights optimized together",
    ConvexOptions,
    "weighted product",
    {
        "cells": "max_free_cells",
        "attribute": "max_axis_values",
        "weighted": "max_weighted_values",
        "factor": "max_axis_values",
    },
    _GAUSSIAN,
    matrices=("attribute", "factor"),
)
_table(
    "opt-0",
    "McKenna et al. 2018, section 5.2: one explicit strategy on the whole table; starts of ours",
    PIdentityOptions,
    "optimum",
    {"joint": "axis_cells"},
    matrices=("joint", "factor"),
    proof=OF_TABLE,
    parts=lambda facts, _: searched_table(facts),
)
_table(
    "opt-kron",
    "McKenna et al. 2018, section 6.1: one product; starts of ours",
    PIdentityOptions,
    "product",
    {},
    matrices=("attribute", "factor"),
    trial=_one_product_loss,
    parts=lambda facts, _: searched_attributes(facts),
)
register(
    Mechanism(
        "tree",
        "of ours: an attribute whose sets are levels of a tree, each node with its own precision; of the "
        "other attributes the decomposition into marginals, or one product",
        _BOTH,
        ConvexOptions,
        lambda task: select_tree(task.workload, task.noise, task.options.gap, task.progress),
        matrices=(),
        proof=OF_MARGINALS,
        reduces="groups",
    )
)
_decomposition("residual", "the decomposition into marginals, weight vectors optimized", _GAUSSIAN)
_decomposition("querysmasher", "QuerySmasher (2026): the decomposition, uniform weights", _BOTH)
register(
    Mechanism(
        "opt-plus",
        "McKenna et al. 2018, section 6.2: a union of products, by default merged in a way of ours",
        _BOTH,
        UnionOptions,
        _opt_plus,
        _MARGINALS,
        lambda task: first_union_loss(task.workload, task.noise, task.memory)[0],
        lambda facts, _: searched_attributes(facts),
        reduces="groups",
    )
)
register(
    Mechanism(
        "walk",
        "of ours: counts up to each value of one attribute, or of nested sets of its values, with noise that "
        "they share; of the other attributes p-Identity strategies",
        (1,),
        PIdentityOptions,
        lambda task: select_walk(task.workload, task.noise, **_searching(task)),
        {**_TABLE, "factor": "axis_cells"},
        lambda task: select_walk(task.workload, task.noise, effort="fast")[1].loss,
        lambda facts, _: searched_attributes(facts),
        reduces="groups",
    )
)
register(
    Mechanism(
        "radius",
        "of ours: the counts of small tables less their mean, with noise that all of these tables share; "
        "larger tables with Laplace noise",
        (1,),
        Options,
        lambda task: select_radius(task.workload, task.noise, task.progress),
        {"subsets": "max_axis_pieces"},
        lambda task: select_radius(task.workload, task.noise)[1].loss,
        matrices=(),
        reduces="groups",
    )
)
_marginals(
    "walk-marginals",
    "of ours: weighted marginals, one ordered attribute of each with the joint noise of a walk",
    select_walk_marginals,
    _OF_STRATEGIES,
    norms=(1,),
    trial=lambda task: first_walk_marginals_loss(task.workload, task.noise),
    parts=lambda facts, _: searched_attributes(facts),
    matrices=("strategy",),
)
_marginals(
    "opt-m",
    "McKenna et al. 2018, section 6.3: weighted marginals, found by a search of ours",
    select_marginals,
    {**_MARGINALS, "subsets": "max_pieces"},
    matrices=(),
)
_marginals(
    "generalized-marginals",
    "weighted marginals with one optimized strategy for each attribute",
    select_generalized_marginals,
    _OF_STRATEGIES,
    trial=lambda task: first_generalized_loss(task.workload, task.noise),
    parts=lambda facts, _: searched_attributes(facts),
    matrices=("strategy",),
)
