"""The front of selection: a mechanism by name, or the one with the least expected error."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from threadpoolctl import threadpool_limits

from matrixdp.errors import PrivacyError, TooLargeError, WorkloadError
from matrixdp.queries import DenseGroup, Group, Workload
from matrixdp.selection.bounds import svd_bound_workload
from matrixdp.selection.convex import DEFAULT_GAP
from matrixdp.selection.direct import direct_shape
from matrixdp.selection.factor import NOISES, variance_factor
from matrixdp.selection.mechanisms import MECHANISMS, Choice, Options
from matrixdp.selection.minimax import select_minimax
from matrixdp.selection.selection import Certificate, Selection
from matrixdp.selection.targets import targeted

__all__ = ["select"]

#: ``auto`` solves the whole table too up to this many cells that do not factor, and other mechanisms take
#: their lower bound from it.
MAX_COMPARED_CELLS = 1_100
#: ``auto`` tries one product over the whole table up to this many cells.
MAX_PRODUCT_CELLS = 10_000_000
#: Reweightings for the objective ``max``; searches under Laplace noise are dear and not certified.
_BALANCING_STEPS = {"gaussian": 60, "laplace": 8}
#: Less per cent of error than this is no difference.
_EVEN = 0.005
Progress = Callable[[str, float | None], None]


def select(
    workload: Workload,
    *,
    mechanism: str = "auto",
    noise: str = "gaussian",
    neighbours: str = "add_remove",
    gap: float = DEFAULT_GAP,
    seed: int = 0,
    sub_solver: str = "auto",
    objective: str = "sum",
    targets: Mapping[str, float] | None = None,
    progress: Progress | None = None,
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
        ``opt-kron``; with Laplace noise among ``hdmm`` (all of its kinds) and ``residual``.
    noise : {"gaussian", "laplace"}
    neighbours : str
        ``"add_remove"`` or ``"replace"``. Selection optimizes add_remove in both cases.
    gap : float
        Relative gap of every explicit problem.
    seed : int
        Of the searches that start from random points; equal seeds give equal strategies.
    sub_solver : str
        How the decomposition solves sub-workloads: ``auto``, ``optimum``, ``product``, ``fourier``,
        ``fixed`` or ``fast``.
    objective : {"sum", "max"}
        ``max`` reweights the queries around the mechanism that is best for the sum, until the largest
        variance meets its lower bound or no longer falls.
    targets : mapping of str to float, optional
        The largest standard error that groups may have; see `matrixdp.selection.targets`. What is made least
        is the budget that meets them, whatever the objective and the weights.
    progress : callable, optional
        Called with what is being done and the share done, if known.

    Returns
    -------
    Selection

    Raises
    ------
    WorkloadError
        If the mechanism is unknown, or every query is zero.
    PrivacyError
        If noise or neighbours are unknown, or the mechanism does not select for the noise.
    TooLargeError
        If the mechanism cannot serve a workload of this size.

    Examples
    --------
    >>> import matrixdp as mdp
    >>> from matrixdp.selection import select
    >>> domain = mdp.Domain({"sex": ["female", "male"], "age": range(20)})
    >>> selection = select(mdp.Workload(domain, mdp.marginals([1, 2])))
    >>> selection.certificate.gap < 1e-6
    True
    >>> select(mdp.Workload(domain, mdp.marginals([1, 2])), noise="laplace").plan.noise
    'laplace'
    """
    if mechanism != "auto" and mechanism not in MECHANISMS:
        raise WorkloadError(
            f"mechanism: found {mechanism!r}; expected one of {', '.join(['auto', *MECHANISMS])}"
        )
    if noise not in NOISES:
        raise PrivacyError(f"noise: found {noise!r}; expected gaussian or laplace")
    if mechanism != "auto" and noise not in MECHANISMS[mechanism].noises:
        raise PrivacyError(
            f"noise: {mechanism} selects for {MECHANISMS[mechanism].noises[0]} noise alone; found {noise}. "
            "Use mechanism auto, which serves both"
        )
    if objective not in ("sum", "max"):
        raise WorkloadError(f"objective: found {objective!r}; expected sum or max")
    if neighbours not in ("add_remove", "replace"):
        raise PrivacyError(f"neighbours: found {neighbours!r}; expected 'add_remove' or 'replace'")
    if not any(_asks_something(group) for group in workload):
        raise WorkloadError("workload: every query is zero; expected at least one that counts something")
    asked, objective = (workload, objective) if targets is None else (targeted(workload, targets), "max")
    options = Options(gap, seed, sub_solver, progress)
    # problems of a few hundred rows lose by several threads; the large ones take them back
    with threadpool_limits(limits=1, user_api="blas"):
        if mechanism == "auto":
            (plan, certificate), chosen, reason = _least_error(asked, noise, options)
        else:
            plan, certificate = MECHANISMS[mechanism].select(asked, noise, options)
            chosen, reason = mechanism, "asked for"
            if mechanism == "residual" and direct_shape(asked).cells <= MAX_COMPARED_CELLS:
                certificate = _bounded(certificate, _whole_bound(asked, noise, options))
        if objective == "max":
            plan, certificate = select_minimax(
                asked,
                lambda weighted: MECHANISMS[chosen].select(weighted, noise, replace(options, progress=None)),
                iterations=_BALANCING_STEPS[noise],
                bound_of=lambda weighted: _bound_after(weighted, noise, options),
                progress=progress,
            )
        else:
            certificate = _bounded(certificate, _svd_bound(asked, noise, certificate))
    return Selection(
        workload, plan, chosen, noise, neighbours, certificate, reason, objective, dict(targets or {})
    )


def _asks_something(group: Group) -> bool:
    """Return whether a query of a group is not zero."""
    if isinstance(group, DenseGroup):
        return bool(group.rows().any())
    pairs = zip(group.predicates, group.sizes, strict=True)
    return all(bool(predicates.squares(size).any()) for predicates, size in pairs)


def _bounded(certificate: Certificate, bound: tuple[float, str] | None) -> Certificate:
    """Return the certificate with the larger of its own lower bound and another."""
    if bound is None or (certificate.lower_bound is not None and certificate.lower_bound >= bound[0]):
        return certificate
    return replace(certificate, lower_bound=bound[0], scope=bound[1])


def _whole_bound(workload: Workload, noise: str, options: Options) -> tuple[float, str] | None:
    """Return the dual bound of the whole table; it holds for Laplace noise too, as an L1 norm is larger."""
    try:
        certificate = MECHANISMS["dense"].select(workload, "gaussian", options)[1]
    except TooLargeError:
        return None
    assert certificate.lower_bound is not None
    return variance_factor(noise) * certificate.lower_bound, f"every strategy with {noise} noise"


def _bound_after(workload: Workload, noise: str, options: Options) -> tuple[float, str] | None:
    """Return a lower bound for a mechanism that has none of its own."""
    if direct_shape(workload).cells <= MAX_COMPARED_CELLS:
        return _whole_bound(workload, noise, replace(options, progress=None))
    bound = svd_bound_workload(workload)
    if bound is None:
        return None
    return variance_factor(noise) * bound, f"every strategy with {noise} noise (the SVD bound)"


def _svd_bound(workload: Workload, noise: str, certificate: Certificate) -> tuple[float, str] | None:
    if certificate.lower_bound is not None:
        return None
    bound = svd_bound_workload(workload)
    if bound is None:
        return None
    return variance_factor(noise) * bound, f"every strategy with {noise} noise (the SVD bound)"


def _least_error(workload: Workload, noise: str, options: Options) -> tuple[Choice, str, str]:
    """Return the choice with the least loss among those that fit, its mechanism, and why."""
    shape = direct_shape(workload)
    small = shape.cells <= MAX_COMPARED_CELLS
    table = workload.domain.cells((*shape.factored, *shape.joint))
    if noise == "gaussian":
        names = ["residual"]
        if small:
            names.append("dense")
        elif table <= MAX_PRODUCT_CELLS:
            names.append("opt-kron")
    else:
        names = ["residual", "hdmm"]
    found: dict[str, Choice] = {}
    refusals: dict[str, TooLargeError] = {}
    for name in names:
        if options.progress is not None:
            options.progress(f"trying {name}", None)
        try:
            found[name] = MECHANISMS[name].select(workload, noise, options)
        except TooLargeError as error:
            refusals[name] = error
    if not found:
        raise refusals[names[0]]
    bound = None
    if "dense" in found and found["dense"][1].lower_bound is not None:
        bound = found["dense"][1].lower_bound, found["dense"][1].scope
    elif small and noise == "laplace":
        bound = _whole_bound(workload, noise, options)
    # as accurate as dense within rounding, the decomposition measures each marginal apart
    losses = {name: choice[1].loss for name, choice in found.items()}
    best = min(losses, key=lambda name: losses[name] * (1.0 + 2e-6 * (name == "dense")))
    if best == "residual" and "dense" in losses and not shape.joint:
        best = "dense"
    plan, certificate = found[best]
    return (plan, _bounded(certificate, bound)), best, _reason(best, losses, refusals)


def _reason(best: str, losses: dict[str, float], refusals: dict[str, TooLargeError]) -> str:
    others = [
        f"{share:.3g} % less error than {name}" if share >= _EVEN else f"as little error as {name}"
        for name, loss in sorted(losses.items(), key=lambda item: item[1])
        if name != best
        for share in [100 * (1 - (losses[best] / loss) ** 0.5)]
    ]
    others += [f"{name} does not fit: {error}" for name, error in refusals.items()]
    return "; ".join(others) or "the only one that fits a table of this size"
