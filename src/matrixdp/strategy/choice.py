"""Selection for a budget: which noise, and the strategy."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from matrixdp.errors import PrivacyError, WorkloadError
from matrixdp.noise import Noise
from matrixdp.privacy import Budget, LeastBudget
from matrixdp.queries import Workload
from matrixdp.selection import Selection
from matrixdp.selection import select as select_strategy
from matrixdp.selection.auto import check_mechanism, hope_of
from matrixdp.selection.noise_choice import interval
from matrixdp.selection.targets import check_targets, largest_ratio, least_budget
from matrixdp.strategy.noises import possible_noises, preferred
from matrixdp.strategy.strategy import Strategy

__all__ = ["meet_targets", "select"]


def select(
    workload: Workload,
    noise: str = "auto",
    neighbours: str | None = None,
    mechanism: str = "auto",
    budget: Budget | None = None,
    objective: str = "sum",
    targets: Mapping[str, float] | None = None,
    progress: Callable[[str, float | None], None] | None = None,
    certify: bool = False,
    **options: object,
) -> Strategy:
    """Choose a strategy for a workload, without the data.

    Parameters
    ----------
    workload : Workload
        What will be asked.
    noise : {"auto", "gaussian", "laplace"}
        The noise that will be added. ``auto``: Gaussian, unless the budget says more: Laplace for pure
        differential privacy (epsilon alone), and for epsilon with delta whichever gives narrower intervals
        (95 %, in the weighted objective; with targets whichever needs less epsilon).
    neighbours : {"add_remove", "replace"}, optional
        Between which tables the promise will hold; the budget's where it is left out, else ``add_remove``.
        Selection optimizes ``add_remove``; for ``replace`` the same strategy costs more, exactly as much as
        the two records that are farthest apart in it.
    mechanism : str
        ``auto``, or one of those that ``matrixdp select --help`` lists.
    budget : Budget, optional
        What will be spent. Strategies do not depend on it, except by the choice of the noise.
    objective : {"sum", "max"}
        The sum of (weighted) variances, or the largest one.
    targets : mapping of str to float, optional
        The largest standard error that every query of a group may have, in records, by the name of the group
        or of its entry; ``all`` stands for every other group. What is made least is the budget that meets
        them, see `Strategy.least_budget`; groups without a target count as if theirs were ten times the
        largest. Weights and the objective have no influence then.
    progress : callable, optional
        Is called with what is being done and, where it is known, the share that is done.
    certify : bool
        Take longer for a higher lower bound in the certificate.
    **options : object
        Of the mechanism: ``seed=1`` for searches, ``gap``, ``sub_solver`` ("auto", "optimum", "product",
        "fourier", "fixed" or "fast") for the decomposition, and others. ``auto`` takes those of the
        mechanisms that it tries.

    Returns
    -------
    Strategy
        Reusable, with its certificate.

    Raises
    ------
    WorkloadError
        If the mechanism is unknown, does not have an option, or cannot serve the workload.
    TooLargeError
        If it would need more cells than it can hold.

    Examples
    --------
    >>> import matrixdp as mdp
    >>> domain = mdp.Domain({"sex": ["female", "male"], "age": range(20)})
    >>> strategy = mdp.select(mdp.Workload(domain, mdp.marginals(2)))
    >>> round(strategy.rmse(mdp.Budget(mu=1)), 3)
    1.0
    """
    if not isinstance(workload, Workload):
        raise WorkloadError(f"workload: found a {type(workload).__name__}; expected a Workload")
    if budget is not None and not isinstance(budget, Budget):
        raise PrivacyError(f"budget: found a {type(budget).__name__}; expected a Budget")
    check_mechanism(mechanism, options)
    noises, reason = possible_noises(noise, budget, mechanism)
    neighbours = neighbours or ("add_remove" if budget is None else budget.neighbours)
    selections: list[Selection] = []
    for kind in noises:
        tried = mechanism == "auto" and objective == "sum" and targets is None
        if selections and tried and _hopeless(kind, selections[0], budget):
            reason = f"narrower intervals than a fast trial with {kind.title} noise leaves hope for"
            continue
        selections.append(
            select_strategy(
                workload,
                noise=kind,
                neighbours=neighbours,
                mechanism=mechanism,
                objective=objective,
                targets=targets,
                progress=progress,
                certify=certify,
                **options,
            )
        )
    if len(selections) == 1:
        return Strategy(selections[0], reason)
    assert budget is not None
    best, reason = preferred(selections, budget, targets)
    return Strategy(selections[best], reason)


def _hopeless(noise: Noise, other: Selection, budget: Budget | None) -> bool:
    """Return whether no strategy with a noise can be expected to have narrower intervals than another's."""
    if budget is None:
        return False
    reached = interval(other.certificate.loss, other.noise, budget)
    return interval(hope_of(other.workload, noise), noise, budget) >= reached


def meet_targets(
    strategy: Strategy, targets: Mapping[str, float], least: LeastBudget, workload: Workload | None = None
) -> Budget:
    """Return the least budget of a form at which a strategy meets targets, if it is within the limit.

    The targets name groups of the workload, or of the strategy's own.

    Examples
    --------
    >>> import matrixdp as mdp
    >>> workload = mdp.Workload(mdp.Domain({"age": range(20)}), mdp.marginals(1))
    >>> strategy = mdp.select(workload, targets={"age": 2.0})
    >>> meet_targets(strategy, {"age": 2.0}, LeastBudget("mu"))
    Budget(mu=0.5, neighbours='add_remove')
    """
    errors = check_targets(workload or strategy.workload, targets, strategy.selection.analysis)
    noise, limit = strategy.selection.noise, least.limit
    budget = least_budget(errors, noise, least)
    if limit is None or noise.cost(budget) <= noise.cost(limit):
        return budget
    if noise.error_scale(limit) >= largest_ratio(errors) ** 2:
        return limit  # rounding up alone has taken the least budget past it
    tightest = max(
        (error for error in errors if error.target is not None),
        key=lambda error: error.stddev / (error.target or 1.0),
    )
    factor = largest_ratio(errors) / math.sqrt(noise.error_scale(limit))
    raise PrivacyError(
        f"targets: meeting them takes {budget!r}, more than privacy allows: {limit!r}. The tightest is "
        f"{tightest.group!r}; expected a larger budget, or targets {factor:.4g} times as large"
    )
