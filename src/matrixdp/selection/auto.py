"""The front of selection: a mechanism by name, or the one with the least expected error."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from threadpoolctl import threadpool_limits

from matrixdp.errors import MatrixDPError, PrivacyError, TooLargeError, WorkloadError
from matrixdp.selection.convex import DEFAULT_GAP
from matrixdp.selection.direct import direct_shape, select_directly
from matrixdp.selection.residual.mechanism import select_by_decomposition
from matrixdp.selection.selection import Certificate, Selection
from matrixdp.strategy import Plan
from matrixdp.workload import DenseGroup, Group, Workload

__all__ = ["MECHANISMS", "select"]

#: What ``mechanism`` may be.
MECHANISMS = ("auto", "dense", "residual", "querysmasher", "fourier")

#: ``auto`` solves the whole table too up to this many cells that do not factor, and ``residual`` takes its
#: lower bound from it.
MAX_COMPARED_CELLS = 1_100
Progress = Callable[[str, float | None], None]


def select(
    workload: Workload,
    *,
    mechanism: str = "auto",
    noise: str = "gaussian",
    neighbours: str = "add_remove",
    gap: float = DEFAULT_GAP,
    progress: Progress | None = None,
) -> Selection:
    """Choose the strategy that answers a workload with the least expected squared error.

    Never reads data. The objective is the sum of weight times variance over all queries.

    Parameters
    ----------
    workload : Workload
    mechanism : str
        ``dense``: the certified optimum on the whole table (a few thousand cells, more where attributes
        factor out). ``residual``: the decomposition with optimized weight vectors. ``querysmasher``: the
        same with uniform ones. ``fourier``: uniform, in the Fourier basis. ``auto``: the least expected
        error among ``residual`` and, where it fits, ``dense``.
    noise : str
        ``"gaussian"``.
    neighbours : str
        ``"add_remove"`` or ``"replace"``. Selection optimizes add_remove in both cases.
    gap : float
        Relative gap of every explicit problem.
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
        If noise or neighbours are unknown.
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
    """
    if mechanism not in MECHANISMS:
        raise WorkloadError(f"mechanism: found {mechanism!r}; expected one of {', '.join(MECHANISMS)}")
    if noise != "gaussian":
        raise PrivacyError(f"noise: found {noise!r}; expected 'gaussian'")
    if neighbours not in ("add_remove", "replace"):
        raise PrivacyError(f"neighbours: found {neighbours!r}; expected 'add_remove' or 'replace'")
    if not any(_asks_something(group) for group in workload):
        raise WorkloadError("workload: every query is zero; expected at least one that counts something")
    # problems of a few hundred rows lose by several threads; the large ones take them back
    with threadpool_limits(limits=1, user_api="blas"):
        plan, certificate, chosen, reason = _choose(workload, mechanism, gap, progress)
    return Selection(workload, plan, chosen, noise, neighbours, certificate, reason)


def _asks_something(group: Group) -> bool:
    """Return whether a query of a group is not zero."""
    if isinstance(group, DenseGroup):
        return bool(group.rows().any())
    pairs = zip(group.predicates, group.sizes, strict=True)
    return all(bool(predicates.squares(size).any()) for predicates, size in pairs)


def _choose(
    workload: Workload, mechanism: str, gap: float, progress: Progress | None
) -> tuple[Plan, Certificate, str, str]:
    if mechanism == "dense":
        plan, certificate = select_directly(workload, gap)
        return plan, certificate, "dense", "asked for"
    if mechanism in ("querysmasher", "fourier"):
        plan, certificate = select_by_decomposition(workload, mechanism, gap, progress)
        return plan, certificate, mechanism, "asked for"
    shape = direct_shape(workload)
    whole: tuple[Plan, Certificate] | None = None
    if shape.cells <= MAX_COMPARED_CELLS:
        if progress is not None:
            progress("solving the whole table", None)
        try:
            whole = select_directly(workload, gap)
        except TooLargeError:
            whole = None
    refusal: MatrixDPError | None = None
    apart: tuple[Plan, Certificate] | None = None
    try:
        apart = select_by_decomposition(workload, "residual", gap, progress)
    except TooLargeError as error:
        refusal = error
    if apart is None:
        if whole is None or mechanism == "residual":
            assert refusal is not None
            raise refusal
        return *whole, "dense", f"the decomposition does not fit: {refusal}"
    plan, certificate = apart
    if whole is None:
        return plan, certificate, "residual", f"{shape.cells} cells do not factor: too many for dense"
    if certificate.lower_bound is None:
        certificate = replace(certificate, lower_bound=whole[1].lower_bound, scope=whole[1].scope)
    if mechanism == "residual":
        return plan, certificate, "residual", "asked for"
    ratio = (certificate.loss / whole[1].loss) ** 0.5
    if ratio <= 1.0 + 1e-6 and len(shape.joint) > 0:
        return plan, certificate, "residual", "as accurate as dense, and each marginal is measured apart"
    return *whole, "dense", f"{100 * (ratio - 1):.3g} % less error than residual"
