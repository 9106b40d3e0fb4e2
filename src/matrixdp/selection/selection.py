"""What selection returns: a plan, its certificate, and its error before any data."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from operator import attrgetter

from matrixdp.errors import NumericalError
from matrixdp.exact.resources import one_blas_thread, rare_collections
from matrixdp.noise import Noise
from matrixdp.plans import Analysis, GroupError, Plan
from matrixdp.plans.persons import Histories
from matrixdp.queries import Workload
from matrixdp.selection.gram.persons import prove_charge

#: How far a lower bound may lie above the loss by rounding.
_ROUNDING = 1e-6

_FOLLOWS = ", by the bound for add_remove neighbours: a replacement costs no less than a removal"
_OF_PERSONS = ", by the bound for single records: those of a person may all be in one value of per"
_CHOSEN = "compared for add_remove neighbours: "


@dataclass(frozen=True)
class Certificate:
    """How good a plan is proved to be; all figures at privacy cost 1, in the weighted objective.

    Attributes
    ----------
    loss : float
        Weighted total squared error before the plan was rounded to integers; for the objective
        ``max`` the largest weight times variance, after rounding.
    lower_bound : float or None
        No strategy of the scope can have less; None where there is no certificate.
    scope : str
        What the bound covers, or why there is none.
    """

    loss: float
    lower_bound: float | None
    scope: str

    def __post_init__(self) -> None:
        if self.lower_bound is not None and self.lower_bound > self.loss * (1.0 + _ROUNDING):
            raise NumericalError(f"a lower bound of {self.lower_bound!r} above the loss, {self.loss!r}")

    @property
    def gap(self) -> float | None:
        """The relative gap, loss / lower_bound - 1."""
        return None if self.lower_bound is None else max(self.loss / self.lower_bound - 1.0, 0.0)

    def scaled(self, factor: float) -> Certificate:
        """Return the certificate of the workload with all weights multiplied by a factor."""
        bound = None if self.lower_bound is None else factor * self.lower_bound
        return replace(self, loss=factor * self.loss, lower_bound=bound)


Choice = tuple[Plan, Certificate]
"""What a mechanism returns."""


@dataclass(frozen=True)
class Candidate:
    """A mechanism that ``auto`` considers, and what came of it.

    Attributes
    ----------
    mechanism : str
    status : str
        Before anything is searched ``tried``, ``tried if needed``, ``skipped`` or ``too large``. Afterwards
        ``chosen``, ``compared``, ``passed``, ``skipped`` or ``too large``:
        ``compared`` was searched and had more error; ``passed`` had too much in a fast trial; ``skipped``
        cannot win, or not soon enough; ``too large`` is the workload for it.
    reason : str
        Why.
    loss : float, optional
        What it found: the weighted total squared error at privacy cost 1, before rounding to integers.
    """

    mechanism: str
    status: str
    reason: str
    loss: float | None = None


@dataclass(frozen=True)
class PartMethod:
    """How one class of a mechanism's problems is solved: all in it have one strategy.

    Attributes
    ----------
    attributes : tuple of str
        Of the first in the class.
    sizes : tuple of int
        Their values; or groups of values that no query tells apart, or pairs.
    marginals : int
        How many marginals the class has; where attributes have a strategy each, how many attributes.
    cells : int
        Of the largest table that is solved at once.
    matrix : int
        The number of rows, at most, of the largest matrix decomposed at each step; time grows with its cube.
        0 for closed forms and chains.
    method : str
        How its blocks are solved: ``closed form``, ``chain``, ``dual`` and others are the optimum;
        ``product`` is one product with weighted rows, which need not be; ``joint tables`` are designed
        together; ``p-Identity`` is a local search under Laplace noise; ``identity`` measures every value.
    reason : str
        What decided, with the limit that did.
    search : str
        The methods while weights are searched, and why, where they are others: limits are lower then.
    """

    attributes: tuple[str, ...]
    sizes: tuple[int, ...]
    marginals: int
    cells: int
    matrix: int
    method: str
    reason: str
    search: str = ""


@dataclass(frozen=True, eq=False)
class Selection:
    """A plan that was selected for a workload, without the data, with its certificate.

    It is what the file of a strategy holds; `matrixdp.Strategy` adds to it what a user does with it.

    Attributes
    ----------
    workload : Workload
    plan : Plan
        What will be measured.
    mechanism : str
        Which mechanism was chosen.
    neighbours : str
        ``"add_remove"`` or ``"replace"``: what the plan costs 1 for. Mechanisms optimize add_remove.
    certificate : Certificate
    reason : str
        Why this mechanism.
    objective : {"sum", "max"}
        What was minimized: the sum of weight times variance, or the largest.
    targets : mapping
        The largest standard errors that groups may have, and the precision of figures, as they are written;
        empty if none were set. The certificate is then
        about the largest ratio of variance to squared target, which is the least budget.
    candidates : tuple of Candidate
        The mechanisms that were considered, the chosen one first; empty where a file does not say.
    rounds : {1, 2}
        In how many rounds the plan is measured.
    drawn : sequence of float or None
        The parts' noise variances at privacy cost 1 where they are not the plan's; see `priced`.
    """

    workload: Workload
    plan: Plan
    mechanism: str
    neighbours: str
    certificate: Certificate
    reason: str
    objective: str = "sum"
    targets: Mapping[str, object] = field(default_factory=dict)
    candidates: tuple[Candidate, ...] = ()
    rounds: int = 1
    drawn: Sequence[float] | None = None

    @property
    def noise(self) -> Noise:
        """The noise of the plan."""
        return self.plan.noise

    @cached_property
    def analysis(self) -> Analysis:
        """Variances and covariances at privacy cost 1."""
        return self.plan.analysis if self.drawn is None else self.plan.analysed(self.drawn)

    def priced(self, drawn: Sequence[float] | None, least: float) -> Selection:
        """Return the selection with the errors of other noise variances than the plan's, if there are such.

        Noise on integers has less variance at a budget than its share, by a factor of ``least`` at least: by
        so much the lower bound for Laplace noise is less for it.
        """
        own, certificate = replace(self, drawn=drawn), self.certificate
        loss, bound, scope = certificate.loss, certificate.lower_bound, certificate.scope
        if drawn is not None:
            figure = attrgetter("weighted_squared_error" if self.objective == "sum" else "max_variance")
            loss *= figure(own) / figure(self)
        if least < 1.0 and bound is not None:
            bound, scope = bound * least, f"{scope}, on integers too"
        return replace(own, certificate=Certificate(loss, bound, scope))

    @cached_property
    def errors(self) -> list[GroupError]:
        """The error of each group at privacy cost 1."""
        with rare_collections():
            return [self.analysis.group(group) for group in self.workload]

    @property
    def total_squared_error(self) -> float:
        """Sum of the variances of all queries at privacy cost 1."""
        return math.fsum(error.total for error in self.errors)

    @property
    def weighted_squared_error(self) -> float:
        """Sum of weight times variance at privacy cost 1: what selection minimizes."""
        return math.fsum(error.weighted for error in self.errors)

    @property
    def max_variance(self) -> float:
        """The largest variance of a query at privacy cost 1."""
        return max(error.largest for error in self.errors)

    @property
    def squared_error_before_rounding(self) -> float:
        """``total_squared_error`` less the share that rounding to integers costs the objective."""
        if self.objective == "max":
            return self.total_squared_error  # the certificate is about the largest variance
        return self.total_squared_error * self.certificate.loss / self.weighted_squared_error


def charged(selection: Selection) -> Selection:
    """Return a selection whose plan costs 1 for its neighbours and its unit, with what is then proved.

    A lower bound for add_remove neighbours holds under replace, since replacing a record by one out of domain
    is a removal. That nothing has less error does not follow. Nor does it for a unit with `per`: there the
    bound is that of the records that a person may have in one value.

    Examples
    --------
    >>> import matrixdp as mdp
    >>> workload = mdp.Workload(mdp.Domain({"age": 8}), mdp.marginals(1))
    >>> selection = mdp.select(workload, neighbours="replace").selection
    >>> round(selection.max_variance, 3), round(selection.certificate.gap, 3)
    (2.0, 1.0)
    """
    plan, certificate, replaced = selection.plan, selection.certificate, selection.neighbours == "replace"
    if not replaced and plan.histories is None:
        return selection
    plan = proved(plan)
    factor = plan.replacement_cost if replaced else plan.cost
    if abs(factor - 1.0) <= 1e-9:
        factor = 1.0
    else:
        parts = tuple(replace(part, variance=part.variance * factor) for part in plan.parts)
        plan = replace(plan, parts=parts)
    if certificate.lower_bound is not None and _OF_PERSONS not in certificate.scope:
        bound, scope = bound_for(plan, certificate.lower_bound, certificate.scope)
        certificate = replace(certificate, lower_bound=bound, scope=scope)
    certificate = replace(certificate, loss=certificate.loss * factor)
    if certificate.lower_bound is not None and replaced:
        certificate = replace(certificate, scope=certificate.scope.removesuffix(_FOLLOWS) + _FOLLOWS)
    reason = selection.reason.removeprefix(_CHOSEN)
    if selection.mechanism != "given" and plan.noise.norm == 2 and replaced:
        reason = _CHOSEN + reason
    return replace(selection, plan=plan, certificate=certificate, reason=reason)


def proved(plan: Plan) -> Plan:
    """Return a plan with a proof of a smaller charge, if it has none and there is one."""
    histories = plan.histories
    if not isinstance(histories, Histories) or plan.proof is not None or not histories.wants_proof:
        return plan
    with one_blas_thread():
        proof = prove_charge(histories.table(plan.part_weights).astype(float), histories.most)
    found = replace(plan, proof=proof)
    return found if found.cost < plan.cost else plan


def bound_for(plan: Plan, bound: float, scope: str) -> tuple[float, str]:
    """Return what a lower bound for single records, at cost 1 of each, says of the unit of a plan."""
    if plan.histories is None:
        return bound, scope
    unit = plan.histories.unit
    return bound * (unit.max_records_each / unit.records) ** 2, scope + _OF_PERSONS
