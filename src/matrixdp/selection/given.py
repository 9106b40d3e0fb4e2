"""A strategy that is given: its plan, and how good it is for a workload."""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from matrixdp.errors import WorkloadError
from matrixdp.exact.resources import one_blas_thread
from matrixdp.noise import Noise
from matrixdp.queries import Group, Workload
from matrixdp.selection.compose.given_parts import given_part, given_plan
from matrixdp.selection.mechanisms.trials import Trials, bounded
from matrixdp.selection.minimax import uniform_variance
from matrixdp.selection.selection import Certificate, Selection, charged
from matrixdp.selection.targets import targeted

__all__ = ["GIVEN", "certified", "evaluate_given"]

_LOG = logging.getLogger(__name__)

GIVEN = "given"
"""What strategies that were given, not selected, have in the place of a mechanism."""


def evaluate_given(
    workload: Workload,
    measured: Sequence[Group],
    shares: Sequence[float],
    *,
    noise: Noise,
    neighbours: str = "add_remove",
    objective: str = "sum",
    targets: Mapping[str, float] | None = None,
) -> Selection:
    """Return the strategy that measures query groups, with its error for a workload; see `certified`.

    Parameters
    ----------
    workload : Workload
        What will be asked.
    measured : sequence of Group
        What is measured, each group by itself.
    shares : sequence of float
        Of the privacy cost, one for each group, relative to one another.
    noise : Noise
    neighbours : {"add_remove", "replace"}
    objective : {"sum", "max"}
        What the certificate is about.
    targets : mapping of str to float, optional
        The largest standard errors that groups may have; the certificate is then about the largest ratio.

    Raises
    ------
    UnsupportedQueryError
        If the strategy does not determine a query of the workload.
    WorkloadError
        If a group measures nothing, or its matrix cannot be measured.
    TooLargeError
        If a matrix is too large to be measured.

    Examples
    --------
    >>> import matrixdp as mdp
    >>> from matrixdp.noise import GAUSSIAN
    >>> workload = mdp.Workload(mdp.Domain({"age": 8}), mdp.product(age="prefix"))
    >>> [cells] = mdp.product(age="identity").expand(workload.domain)
    >>> evaluate_given(workload, [cells], [1.0], noise=GAUSSIAN).total_squared_error
    36.0
    """
    if objective not in ("sum", "max"):
        raise WorkloadError(f"objective: found {objective!r}; expected sum or max")
    asked = workload if targets is None else targeted(workload, targets)
    largest = objective == "max" or targets is not None
    with one_blas_thread():
        parts = [given_part(group, share) for group, share in zip(measured, shares, strict=True)]
        plan = given_plan(workload.domain, parts, noise)
        analysis = plan.analysis
        if largest:
            loss = max(float(uniform_variance(analysis.variances(g), g).max()) for g in asked)
        else:
            loss = math.fsum(analysis.group(group).weighted for group in asked)
    _LOG.info("given: %d parts with %s noise", len(plan.parts), noise)
    return charged(
        Selection(
            workload,
            plan,
            GIVEN,
            neighbours,
            Certificate(loss, None, "no bound on all strategies"),
            "a strategy that was given, not selected",
            "max" if largest else "sum",
            dict(targets or {}),
        )
    )


def certified(selection: Selection) -> Selection:
    """Return a strategy with a lower bound on the error of every strategy for its workload.

    Examples
    --------
    >>> import matrixdp as mdp
    >>> from matrixdp.noise import GAUSSIAN
    >>> workload = mdp.Workload(mdp.Domain({"age": 8}), mdp.marginals(1))
    >>> found = certified(evaluate_given(workload, workload.groups, [1.0], noise=GAUSSIAN))
    >>> found.certificate.gap < 1e-9
    True
    """
    workload = selection.workload
    asked = targeted(workload, selection.targets) if selection.targets else workload
    with one_blas_thread():
        trials = Trials(asked, selection.noise, {})
        bound = (trials.whole_bound() if trials.small else None) or trials.lower_bound()
    if bound is not None and selection.objective == "max":
        scope = f"{bound[1]}; about the largest (weighted) variance, from the mean of all"
        bound = bound[0] / workload.queries, scope
    return charged(replace(selection, certificate=bounded(selection.certificate, bound)))
