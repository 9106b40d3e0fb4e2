"""The front of selection: a mechanism by name, or the one with the least expected error."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping

from threadpoolctl import threadpool_limits

from matrixdp.errors import PrivacyError, TooLargeError, WorkloadError
from matrixdp.noise import NOISES, Noise
from matrixdp.queries import DenseGroup, Group, Workload
from matrixdp.selection.compose.weighted_product import few_products
from matrixdp.selection.mechanisms.options import check_options, given_options
from matrixdp.selection.mechanisms.table import mechanism_named, silent
from matrixdp.selection.mechanisms.trials import Bound, Choice, Trials, bounded
from matrixdp.selection.minimax import select_minimax
from matrixdp.selection.selection import Selection
from matrixdp.selection.targets import targeted
from matrixdp.selection.view.table_shape import table_shape

__all__ = ["check_mechanism", "select"]

_LOG = logging.getLogger(__name__)

#: What ``auto`` may try.
_CANDIDATES = ("residual", "dense", "opt-kron", "weighted-product", "hdmm")
#: ``auto`` tries one product over the whole table up to this many cells.
MAX_PRODUCT_CELLS = 10_000_000
#: Reweightings for the objective ``max``, by norm; searches in the L1 norm are dear and not certified.
_BALANCING_STEPS = {2: 60, 1: 8}
#: Less per cent of error than this is no difference.
_EVEN = 0.005


def check_mechanism(name: str, options: Mapping[str, object]) -> None:
    """Raise WorkloadError if there is no such mechanism, or it does not have options of these values."""
    tried = [mechanism_named(one).options for one in (_CANDIDATES if name == "auto" else (name,))]
    check_options(name, tried, options)
    for kind in tried:
        given_options(kind, options)


def select(
    workload: Workload,
    *,
    noise: Noise,
    mechanism: str = "auto",
    neighbours: str = "add_remove",
    objective: str = "sum",
    targets: Mapping[str, float] | None = None,
    progress: Callable[[str, float | None], None] | None = None,
    **options: object,
) -> Selection:
    """Choose the strategy that answers a workload with the least expected squared error.

    Never reads data. The objective is the sum of weight times variance over all queries, or the largest
    weight times variance of a query.

    Parameters
    ----------
    workload : Workload
    mechanism : str
        ``auto``, or one of `matrixdp.selection.MECHANISMS`. ``auto`` is the least expected error: with
        Gaussian noise among ``residual``, where it fits ``dense``, and for tables that are not too large
        ``opt-kron``, or for a sum of few products ``weighted-product``; with Laplace noise among ``hdmm``
        (all of its kinds) and ``residual``.
    noise : Noise
    neighbours : str
        ``"add_remove"`` or ``"replace"``. Selection optimizes add_remove in both cases.
    objective : {"sum", "max"}
        ``max`` reweights the queries around the mechanism that is best for the sum, until the largest
        variance meets its lower bound or no longer falls.
    targets : mapping of str to float, optional
        The largest standard error that groups may have; see `matrixdp.selection.targets`. What is made least
        is the budget that meets them, whatever the objective and the weights.
    progress : callable, optional
        Called with what is being done and the share done, if known.
    **options : object
        Of the mechanism, such as ``gap`` or ``seed``; ``auto`` takes those of the mechanisms that it tries.

    Returns
    -------
    Selection

    Raises
    ------
    WorkloadError
        If the mechanism is unknown or does not have an option, or every query is zero.
    PrivacyError
        If noise or neighbours are unknown, or the mechanism does not select for the noise.
    TooLargeError
        If the mechanism cannot serve a workload of this size.

    Examples
    --------
    >>> import matrixdp as mdp
    >>> from matrixdp.noise import GAUSSIAN, LAPLACE
    >>> from matrixdp.selection import select
    >>> domain = mdp.Domain({"sex": ["female", "male"], "age": range(20)})
    >>> selection = select(mdp.Workload(domain, mdp.marginals([1, 2])), noise=GAUSSIAN)
    >>> selection.certificate.gap < 1e-6
    True
    >>> select(mdp.Workload(domain, mdp.marginals([1, 2])), noise=LAPLACE).plan.noise
    laplace
    """
    check_mechanism(mechanism, options)
    norms = (1, 2) if mechanism == "auto" else mechanism_named(mechanism).norms
    if noise.norm not in norms:
        served = " and ".join(other.name for other in NOISES.values() if other.norm in norms)
        raise PrivacyError(
            f"noise: {mechanism} selects for {served} noise alone; found {noise}. "
            "Use mechanism auto, which serves both"
        )
    if objective not in ("sum", "max"):
        raise WorkloadError(f"objective: found {objective!r}; expected sum or max")
    if neighbours not in ("add_remove", "replace"):
        raise PrivacyError(f"neighbours: found {neighbours!r}; expected 'add_remove' or 'replace'")
    if not any(_asks_something(group) for group in workload):
        raise WorkloadError("workload: every query is zero; expected at least one that counts something")
    asked, objective = (workload, objective) if targets is None else (targeted(workload, targets), "max")
    trials = Trials(asked, noise, options, progress or silent)
    _LOG.info("selecting by %s for %d queries in %d groups", mechanism, workload.queries, len(workload))
    # problems of a few hundred rows lose by several threads; the large ones take them back
    with threadpool_limits(limits=1, user_api="blas"):
        if mechanism == "auto":
            (plan, certificate), chosen, reason = _least_error(trials)
        else:
            plan, certificate = trials.choose(mechanism)
            chosen, reason = mechanism, "asked for"
            if mechanism == "residual" and trials.small:
                certificate = bounded(certificate, trials.whole_bound())
        if objective == "max":
            plan, certificate = select_minimax(
                asked,
                lambda weighted: trials.quietly(weighted).choose(chosen),
                iterations=_BALANCING_STEPS[noise.norm],
                bound_of=lambda weighted: _bound_after(trials.quietly(weighted)),
                progress=progress,
            )
        elif certificate.lower_bound is None:
            certificate = bounded(certificate, trials.lower_bound())
    _LOG.info("selected %s with %s noise, %d parts: %s", chosen, noise, len(plan.parts), reason)
    return Selection(workload, plan, chosen, neighbours, certificate, reason, objective, dict(targets or {}))


def _asks_something(group: Group) -> bool:
    """Return whether a query of a group is not zero."""
    if isinstance(group, DenseGroup):
        return group.content.asks
    pairs = zip(group.predicates, group.sizes, strict=True)
    return all(bool(predicates.squares(size).any()) for predicates, size in pairs)


def _bound_after(trials: Trials) -> Bound:
    """Return a lower bound for a mechanism that has none of its own."""
    return trials.whole_bound() if trials.small else trials.lower_bound()


def _candidates(trials: Trials) -> list[str]:
    """Return what is tried for a workload."""
    if trials.noise.norm == 1:
        return ["residual", "hdmm"]
    if trials.small:
        return ["residual", "dense"]
    shape = table_shape(trials.asked)
    table = trials.asked.domain.cells((*shape.factored, *shape.joint))
    if table > MAX_PRODUCT_CELLS:
        return ["residual"]
    return ["residual", "weighted-product" if few_products(trials.asked, shape) else "opt-kron"]


def _least_error(trials: Trials) -> tuple[Choice, str, str]:
    """Return the choice with the least loss among those that fit, its mechanism, and why."""
    names = _candidates(trials)
    found: dict[str, Choice] = {}
    refusals: dict[str, TooLargeError] = {}
    for name in names:
        trials.progress(f"trying {name}", None)
        _LOG.info("trying %s", name)
        try:
            found[name] = trials.choose(name)
        except TooLargeError as error:
            refusals[name] = error
    if not found:
        raise refusals[names[0]]
    bound = None
    if "dense" in found and found["dense"][1].lower_bound is not None:
        bound = found["dense"][1].lower_bound, found["dense"][1].scope
    elif trials.small and trials.noise.norm == 1:
        bound = trials.whole_bound()
    # as accurate as dense within rounding, the decomposition measures each marginal apart
    losses = {name: choice[1].loss for name, choice in found.items()}
    best = min(losses, key=lambda name: losses[name] * (1.0 + 2e-6 * (name == "dense")))
    if best == "residual" and "dense" in losses and not table_shape(trials.asked).joint:
        best = "dense"
    plan, certificate = found[best]
    return (plan, bounded(certificate, bound)), best, _reason(best, losses, refusals)


def _reason(best: str, losses: dict[str, float], refusals: dict[str, TooLargeError]) -> str:
    others = [
        f"{share:.3g} % less error than {name}" if share >= _EVEN else f"as little error as {name}"
        for name, loss in sorted(losses.items(), key=lambda item: item[1])
        if name != best
        for share in [100 * (1 - (losses[best] / loss) ** 0.5)]
    ]
    others += [f"{name} does not fit: {error}" for name, error in refusals.items()]
    return "; ".join(others) or "the only one that fits a table of this size"
