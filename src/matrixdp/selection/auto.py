"""The front of selection: a mechanism by name, or the one with the least expected error."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import replace

from matrixdp.errors import PrivacyError, WorkloadError
from matrixdp.exact.resources import one_blas_thread
from matrixdp.noise import NOISES, Noise
from matrixdp.queries import Workload
from matrixdp.selection.mechanisms.contest import CANDIDATES, hoped_for, least_error
from matrixdp.selection.mechanisms.options import check_options, given_options
from matrixdp.selection.mechanisms.table import mechanism_named, silent
from matrixdp.selection.mechanisms.trials import Bound, Trials, bounded
from matrixdp.selection.minimax import select_minimax
from matrixdp.selection.selection import Selection, charged
from matrixdp.selection.targets import targeted

__all__ = ["check_mechanism", "hope_of", "select"]

_LOG = logging.getLogger(__name__)

#: Reweightings for the objective ``max``, by norm; searches in the L1 norm are dear and not certified.
_BALANCING_STEPS = {2: 60, 1: 8}


def check_mechanism(name: str, options: Mapping[str, object]) -> None:
    """Raise WorkloadError if there is no such mechanism, or it does not have options of these values."""
    tried = [mechanism_named(one).options for one in (CANDIDATES if name == "auto" else (name,))]
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
    certify: bool = False,
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
        Gaussian noise among ``residual``, where it fits ``dense``, for a sum of few products
        ``weighted-product`` and else for small tables ``opt-kron``; with Laplace noise among the strategies
        of ``hdmm`` and ``generalized-marginals``, of which those that take long are searched only if a fast
        trial leaves hope that they win.
    noise : Noise
    neighbours : str
        ``"add_remove"`` or ``"replace"``. Selection optimizes add_remove in both cases; the plan is scaled to
        cost 1 for these.
    objective : {"sum", "max"}
        ``max`` reweights the queries around the mechanism that is best for the sum, until the largest
        variance meets its lower bound or no longer falls.
    targets : mapping of str to float, optional
        The largest standard error that groups may have; see `matrixdp.selection.targets`. What is made least
        is the budget that meets them, whatever the objective and the weights.
    progress : callable, optional
        Called with what is being done and the share done, if known.
    certify : bool
        Take longer for a higher lower bound.
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
    >>> from matrixdp.selection.auto import select
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
    if not any(group.asks for group in workload):
        raise WorkloadError("workload: every query is zero; expected at least one that counts something")
    asked, objective = (workload, objective) if targets is None else (targeted(workload, targets), "max")
    trials = Trials(asked, noise, options, progress or silent, certify=certify)
    _LOG.info("selecting by %s for %d queries in %d groups", mechanism, workload.queries, len(workload))
    # problems of a few hundred rows lose by several threads; the large ones take them back
    with one_blas_thread():
        if mechanism == "auto":
            (plan, certificate), chosen, reason = least_error(trials)
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
                bound_of=lambda weighted: _bound_after(replace(trials, workload=weighted)),
                progress=progress,
            )
        elif certify or certificate.lower_bound is None:
            certificate = bounded(certificate, trials.lower_bound())
    _LOG.info("selected %s with %s noise, %d parts: %s", chosen, noise, len(plan.parts), reason)
    return charged(
        Selection(workload, plan, chosen, neighbours, certificate, reason, objective, dict(targets or {}))
    )


def _bound_after(trials: Trials) -> Bound:
    """Return a lower bound for a mechanism that has none of its own."""
    return trials.whole_bound() if trials.small else trials.lower_bound()


def hope_of(workload: Workload, noise: Noise) -> float:
    """Return a loss that ``auto`` is not expected to go below for a workload and a noise, from a fast trial.

    Examples
    --------
    >>> import matrixdp as mdp
    >>> from matrixdp.noise import LAPLACE
    >>> workload = mdp.Workload(mdp.Domain({"a": 20}), mdp.product(a="prefix"))
    >>> hope_of(workload, LAPLACE) <= select(workload, noise=LAPLACE).certificate.loss
    True
    """
    with one_blas_thread():
        return hoped_for(workload, noise)
