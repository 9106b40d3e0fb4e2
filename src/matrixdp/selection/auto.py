"""The front of selection: a mechanism by name, or ``auto``, which searches for the least expected error."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from matrixdp.errors import NumericalError, PrivacyError, TooLargeError, UnsupportedQueryError, WorkloadError
from matrixdp.exact.resources import one_blas_thread, rare_collections
from matrixdp.noise import GAUSSIAN, NOISES, Noise
from matrixdp.plans import Plan, Split
from matrixdp.privacy.unit import Unit
from matrixdp.queries import DenseGroup, Group, Workload
from matrixdp.queries.workload import Targets, as_plain
from matrixdp.selection.bounds.lower_bound import product_bound, svd_bound_workload
from matrixdp.selection.compose.whole_table import dense_bound
from matrixdp.selection.limits import GAP, LIMITS
from matrixdp.selection.minimax import select_minimax, uniform_variance
from matrixdp.selection.persons import select_for_persons, select_ranges
from matrixdp.selection.problem.gather_groups import GivenGroups
from matrixdp.selection.registry import Task, check_options, given_options, mechanism_named, silent
from matrixdp.selection.rules import Facts, Rule, reduced_for, rules_for
from matrixdp.selection.selection import Candidate, Certificate, Choice, Selection, charged
from matrixdp.selection.targets import of_figures, targeted

_LOG = logging.getLogger(__name__)

#: Reweightings for the objective ``max``, by norm; searches in the L1 norm are dear and not certified.
_BALANCING_STEPS = {2: 60, 1: 8}

Bound = tuple[float, str] | None
Drawn = Callable[[Plan], Sequence[float] | None] | None
"""What returns a plan's noise variances at privacy cost 1 under a budget, where they are not the plan's."""

#: Weights this far apart are too much for one selection. Small ones are then raised to some shares of the
#: largest, of which the last is taken that lets the objective grow by no more than `_FREE`.
_FAR_APART, _RAISED, _FREE = 1e-6, (1e-10, 1e-6, 1e-3), 1e-5

#: Weights are scaled where the largest, or its inverse, is below this: their squares and cubes are formed.
_EXTREME = 1e-50

#: Of equals others are chosen: parts of others say more than one table, and joint noise has no lower bound.
_LAST = {"dense": 1, "walk": 1, "walk-marginals": 2, "radius": 1}
#: What was proved for a workload, as long as it is used, by the way of its proof.
_PROVED: WeakKeyDictionary[Workload, dict[str, Bound]] = WeakKeyDictionary()
#: Losses of fast trials without options, as long, and what the mechanisms remember of them.
_Trial = tuple[float, dict[str, Any]]
_TRIED: WeakKeyDictionary[Workload, dict[tuple[Noise, str], _Trial]] = WeakKeyDictionary()
#: A bound with a larger gap than this may be a poor one: another is looked for.
_DOUBTED = 0.5
#: No search is hoped to end below a fast trial of generalized marginals divided by this: 1.10 was the most on
#: the workloads on which they were compared.
_HOPE = 1.15
#: The same of searches for joint noise: 1.01 and 1.03 were the most of walks, and 1 of one radius.
_HOPES = {"walk": 1.02, "walk-marginals": 1.05, "radius": 1.0}
#: Percent less error that another strategy may have, from which trying others is advised.
_MUCH = 5.0


@dataclass(frozen=True)
class Trials:
    """Selections for one workload and noise; each mechanism takes those of the options that it has."""

    workload: Workload
    noise: Noise
    given: Mapping[str, object]
    progress: Callable[[str, float | None], None] = silent
    bounded: bool = True
    certify: bool = False
    memory: dict[str, dict[str, Any]] = field(default_factory=dict)
    drawn: Drawn = None
    #: Whether choices are compared at what a replacement costs.
    replaced: bool = False
    #: What a plan costs all records of a person, where choices are compared at that.
    charge: Callable[[Plan], float] | None = None

    @cached_property
    def facts(self) -> Facts:
        """The facts about the workload that rules read before anything is searched."""
        return Facts(self.workload, self.noise)

    def _task(self, name: str) -> Task[Any]:
        options = given_options(mechanism_named(name).options, self.given)
        memory = self.memory.setdefault(name, {})
        return Task(self.facts.asked, self.noise, options, self.progress, self.bounded, memory)

    def choose(self, name: str) -> Choice:
        """Select by a mechanism."""
        found = mechanism_named(name).select(self._task(name))
        if name == "residual" and self.bounded and self.noise.norm == 2 and isinstance(found[0], Split):
            self._note_bound(found[1])
        return found

    def priced(self, choice: Choice) -> float:
        """Return the loss of a choice with the noise that is drawn for a budget; see `Selection.priced`.

        Under ``replaced`` at the cost of a replacement, which for joint noise is always that of two records,
        and with ``charge`` at that of a person's records.
        """
        plan, certificate = choice
        drawn = None if self.drawn is None else self.drawn(plan)
        factor = plan.replacement_cost if self.replaced else 1.0
        if self.charge is not None:
            factor = self.charge(plan)
        if drawn is None:
            return certificate.loss * factor
        own, other = (
            math.fsum(analysis.group(group).weighted for group in self.workload)
            for analysis in (plan.analysed(drawn), plan.analysis)
        )
        return certificate.loss * factor * own / other

    def trial(self, name: str) -> float:
        """Return the loss of a fast trial of a mechanism, or 0 where it has none."""
        trial = mechanism_named(name).trial
        if trial is None:
            return 0.0
        # what a noise may hope for rests on the trials that a search with it begins with
        known = {} if self.given else _TRIED.setdefault(self.workload, {})
        if (key := (self.noise, name)) not in known:
            known[key] = trial(self._task(name)), self.memory[name]
        loss, self.memory[name] = known[key]
        return loss

    def quietly(self, workload: Workload) -> Trials:
        """Return the same for another workload, telling nobody of the progress, bounds left out."""
        return replace(self, workload=workload, progress=silent, bounded=False)

    # Lower bounds that do not depend on the mechanism; each is proved once for all of them.

    def _note_bound(self, certificate: Certificate) -> None:
        """Keep what the decomposition proved, or that it proved nothing: it need not be solved again."""
        bound, gap = certificate.lower_bound, certificate.gap
        if {"sub_solver", "gap"}.isdisjoint(self.given) and (gap is None or gap <= _DOUBTED):
            known = _PROVED.setdefault(self.workload, {})
            known["decomposition"] = None if bound is None else (bound, f"every {GAUSSIAN.title} strategy")

    def whole_bound(self) -> Bound:
        """Return the dual bound of the whole table, for noise of any norm: an L1 norm is larger."""
        gap = given_options(mechanism_named("dense").options, self.given).gap
        found = self._proved(f"dense {gap}", partial(self._dense_bound, gap))
        return None if found is None else (found[0], self._every)

    def _dense_bound(self, gap: float) -> Bound:
        if self.facts.beyond(mechanism_named("dense").limits):
            return None
        return dense_bound(self.facts.asked, gap), self._every

    def lower_bound(self) -> Bound:
        """Return the bound that the Gaussian decomposition proves, or else the SVD bound, if known."""
        way = "certified decomposition" if self.certify else "decomposition"
        found = self._proved(way, lambda: product_bound(self.facts.asked, self.certify))
        if found is not None:
            return found[0], self._every + found[1].removeprefix(f"every {GAUSSIAN.title} strategy")
        found = self._proved("spectrum", self._svd_bound)
        return None if found is None else (found[0], self._every + found[1])

    def _svd_bound(self) -> Bound:
        bound = svd_bound_workload(self.facts.asked)
        return None if bound is None else (bound, " (the SVD bound)")

    def certified(self, certificate: Certificate) -> Certificate:
        """Return a certificate with a lower bound where one is wanted and known."""
        if self.certify or (self.bounded and certificate.lower_bound is None):
            certificate = with_bound(certificate, self.lower_bound())
            if self.facts.small and certificate.gap is not None and certificate.gap > _DOUBTED:
                certificate = with_bound(certificate, self.whole_bound())
        return certificate

    @property
    def _every(self) -> str:
        return f"every strategy with {self.noise} noise"

    def _proved(self, way: str, prove: Callable[[], Bound]) -> Bound:
        """Return a bound on every Gaussian strategy, in the error of this noise."""
        known = _PROVED.setdefault(self.workload, {})
        if way not in known:
            known[way] = prove()
        found = known[way]
        return None if found is None else (self.noise.variance_factor * found[0], found[1])


def _joint(plan: Plan) -> bool:
    """Return whether rows share their noise: what is proved of strategies does not hold for them."""
    return bool(plan.under_radius) or any(part.walk is not None for part in plan.parts)


def bound_of(certificate: Certificate) -> Bound:
    """Return the lower bound of a certificate with what it is of."""
    return None if certificate.lower_bound is None else (certificate.lower_bound, certificate.scope)


def with_bound(certificate: Certificate, bound: Bound) -> Certificate:
    """Return the certificate with the larger of its own lower bound and another."""
    if bound is None or (certificate.lower_bound is not None and certificate.lower_bound >= bound[0]):
        return certificate
    return replace(certificate, lower_bound=bound[0], scope=bound[1])


class _Search:
    """What ``auto`` has tried, and what came of it."""

    def __init__(self, trials: Trials) -> None:
        self.trials = trials
        self.found: dict[str, Choice] = {}
        self.losses: dict[str, float] = {}
        self.errors: list[Exception] = []
        self.candidates: list[Candidate] = []

    def note(self, mechanism: str, status: str, reason: str) -> None:
        self.candidates.append(Candidate(mechanism, status, reason))

    def attempt(self, rule: Rule, what: Callable[[str], Any]) -> Any:
        """Run `what` for the mechanism of a rule; None if the mechanism does not fit after all."""
        try:
            return what(rule.mechanism)
        except MemoryError as error:  # what no declared limit foresaw
            self.errors.append(error)
            self.note(rule.mechanism, "too large", str(error))
        except np.linalg.LinAlgError as error:
            self.errors.append(NumericalError(f"{rule.mechanism}: {error}"))
            self.note(rule.mechanism, "skipped", f"it has no answer: {error}")
        return None

    def choose(self, rule: Rule) -> bool:
        """Select by a mechanism, if it fits."""
        self.trials.progress(f"trying {rule.mechanism}", None)
        _LOG.info("trying %s", rule.mechanism)
        choice = self.attempt(rule, self.trials.choose)
        if choice is not None:
            self.found[rule.mechanism] = choice
            self.losses[rule.mechanism] = self.trials.priced(choice)
        return choice is not None

    @property
    def least(self) -> float:
        # a replacement costs joint noise as much as two records, and may cost others less
        found = [choice for choice in self.found.values() if not (self.trials.replaced and _joint(choice[0]))]
        return min((choice[1].loss for choice in found), default=math.inf)

    @property
    def best(self) -> str:
        """The mechanism with the least loss; of equals another than `_LAST`."""
        return self._best(self.losses)

    def _best(self, names: Iterable[str]) -> str:
        return min(names, key=lambda name: self.losses[name] * (1.0 + 2.0 * GAP * _LAST.get(name, 0)))

    def certificate(self, name: str) -> Certificate:
        """Return what is proved of what a mechanism found."""
        plan, certificate = self.found[name]
        if _joint(plan):
            return certificate
        for other in ("dense", "residual"):
            if other in self.found:
                certificate = with_bound(certificate, bound_of(self.found[other][1]))
        if "dense" in self.found:
            return certificate
        if self.trials.facts.small and self.trials.noise.norm == 1:
            return with_bound(certificate, self.trials.whole_bound())
        return certificate

    @property
    def gap(self) -> float:
        """The least gap that is proved."""
        return min((own.gap for _, own in self.found.values() if own.gap is not None), default=math.inf)

    def run(self) -> None:
        """Go through the rules; those that wait for a fast trial come later, the most hopeful first.

        Last come those that a size leaves out, where what was found is far from the lower bound.
        """
        waiting: list[tuple[float, Rule]] = []
        large: list[Rule] = []
        for rule in rules_for(self.trials.noise):
            status, why = rule.refusal(self.trials.facts)
            if not status and rule.gap and self.gap <= (enough := float(getattr(LIMITS, rule.gap))):
                status, why = "skipped", f"the best so far is within {100 * enough:.2g}% of the lower bound"
            if status == "tried if needed":
                large.append(rule)
                self.note(rule.mechanism, "skipped", why)
            elif status:
                self.note(rule.mechanism, status, why)
            elif rule.gain is None:
                if self.choose(rule) and rule.alone:
                    break
            elif (loss := self.attempt(rule, self.trials.trial)) is not None:
                waiting.append((loss / rule.gain, rule))
        for hope, rule in sorted(waiting, key=lambda item: item[0]):
            if hope < self.least:
                self.choose(rule)
            else:
                self.note(rule.mechanism, "passed", "a fast trial had more error")
        for rule in large:
            rest = [name for name, (plan, _) in self.found.items() if not _joint(plan)]
            gap = self.trials.certified(self.certificate(self._best(rest))).gap if rest else math.inf
            if gap is not None and gap > LIMITS.far:
                self.choose(rule)

    def outcome(self) -> tuple[Choice, str, tuple[Candidate, ...]]:
        """Return the choice with the least loss, its mechanism, and what came of every candidate."""
        if not self.found:
            for error in self.errors:
                if not isinstance(error, TooLargeError):  # of these the candidates tell all
                    raise error
            told = "; ".join(f"{one.mechanism}: {one.reason}" for one in self.candidates)
            noise = self.trials.noise
            raise TooLargeError(f"auto: no mechanism takes this workload with {noise} noise: {told}")
        losses, best = self.losses, self.best
        tried = [
            Candidate(name, "chosen" if name == best else "compared", _excess(losses[best], loss), loss)
            for name, loss in sorted(losses.items(), key=lambda item: (item[0] != best, item[1]))
        ]
        others = {one.mechanism: one for one in self.candidates if one.mechanism not in losses}
        return (self.found[best][0], self.certificate(best)), best, (*tried, *others.values())


def _excess(least: float, loss: float) -> str:
    """Return how much less error the choice has than another."""
    share = 100 * (1 - (least / loss) ** 0.5)
    return f"{share:.3g}% less error than" if share >= 0.005 else "as little error as"


def _reason(candidates: tuple[Candidate, ...], gap: float | None, facts: Facts) -> str:
    """Return in words why a mechanism was chosen, and what its size left out where that may matter."""
    told = [f"{one.reason} {one.mechanism}" for one in candidates if one.status == "compared"]
    passed = sorted(one.mechanism for one in candidates if one.status == "passed")
    if passed:
        several = f"{', '.join(passed[:-1])} and {passed[-1]}" if len(passed) > 1 else passed[0]
        told.append(f"a fast trial of {several} had more")
    if gap is None or gap > LIMITS.rules_worthwhile:
        large = [one for one in candidates if one.status == "too large"]
        told += [f"{one.mechanism} does not fit: {one.reason}" for one in large]
        whole = facts.beyond({"strategy": "axis_cells"}) if facts.noise.norm == 1 else ""
        if whole:
            told.append(f"measured value by value: {whole}")
    if told:
        return "; ".join(told)
    if gap is None:
        return "no other fits"
    if gap <= LIMITS.rules_settled:
        return "at the lower bound, before rounding to integers"
    share = 100 * (1 - (1 + gap) ** -0.5)
    near = f"within {share:.2g}% of the lower bound before rounding to integers; no other was tried"
    return near + ("; `matrixdp compare` tries others" if share >= _MUCH else "")


def check_mechanism(name: str, options: Mapping[str, object]) -> None:
    """Raise WorkloadError if there is no such mechanism, or it does not have options of these values."""
    names = [name]
    if name == "auto":
        names = [rule.mechanism for noise in NOISES.values() for rule in rules_for(noise)]
    tried = [mechanism_named(one).options for one in names]
    check_options(name, tried, options)
    for kind in tried:
        given_options(kind, options)


@rare_collections()
def select(
    workload: Workload,
    *,
    noise: Noise,
    mechanism: str = "auto",
    neighbours: str = "add_remove",
    unit: Unit | None = None,
    objective: str = "sum",
    targets: Targets | None = None,
    progress: Callable[[str, float | None], None] | None = None,
    certify: bool = False,
    bounded: bool = True,
    drawn: Drawn = None,
    **options: object,
) -> Selection:
    """Choose the strategy that answers a workload with the least expected squared error.

    Never reads data. The objective is the sum of weight times variance over all queries, or the largest
    weight times variance of a query.

    Parameters
    ----------
    workload : Workload
    mechanism : str
        ``auto``, or one of `matrixdp.selection.MECHANISMS`. ``auto`` is the least expected error among those
        that `matrixdp.selection.rules.RULES` lists for the noise; those that take long are searched only if a
        fast trial leaves hope that they win.
    noise : Noise
    neighbours : str
        ``"add_remove"`` or ``"replace"``. Mechanisms optimize add_remove in both cases; the plan is scaled to
        cost 1 for these.
    unit : Unit, optional
        What is one person's. With `per` the plan is scaled to cost 1 for it, and ``auto`` compares what
        mechanisms found at that cost with a strategy that is made for it.
    objective : {"sum", "max"}
        ``max`` reweights the queries around the mechanism that is best for the sum, until the largest
        variance meets its lower bound or no longer falls.
    targets : mapping, optional
        The largest standard error that groups may have; see `matrixdp.selection.targets`. What is made least
        is the budget that meets them, whatever the objective and the weights.
    progress : callable, optional
        Called with what is being done and the share done, if known.
    certify : bool
        Take longer for a higher lower bound.
    bounded : bool
        Whether to prove a lower bound where that takes work of its own.
    drawn : callable, optional
        From a plan to its noise variances at privacy cost 1 under the budget to be spent, or None where they
        are the plan's: ``auto`` compares what mechanisms found with these.
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
    persons = unit if unit is not None and unit.per else None
    if persons is not None:
        persons.on(workload.domain)
    asked, objective = (workload, objective) if targets is None else (targeted(workload, targets), "max")
    reduced = reduced_for(mechanism, asked, noise, objective)
    # what amounts and entries are is known of the plan over all values
    over = None if drawn is None else lambda plan: drawn(reduced.over_values(plan))
    trials = Trials(reduced.workload, noise, options, progress or silent, bounded, certify, drawn=over)
    if neighbours == "replace" and noise.norm == 1:
        trials = replace(trials, replaced=True)
    if persons is not None and noise.norm == 2:
        trials = replace(trials, charge=lambda plan: replace(reduced.over_values(plan), persons=persons).cost)
    _LOG.info("selecting by %s for %d groups of queries", mechanism, len(workload))
    # problems of a few hundred rows lose by several threads; the large ones take them back
    with one_blas_thread():
        (plan, certificate), chosen, reason, candidates = _supporting(trials, mechanism, objective)
    _LOG.info("selected %s with %s noise, %d parts: %s", chosen, noise, len(plan.parts), reason)
    price, plan = trials.priced((plan, certificate)), reduced.over_values(plan)
    certificate = of_figures(certificate, workload, targets, plan.analysis)
    if persons is not None and mechanism == "auto" and objective == "sum":
        with one_blas_thread():
            own = (select_for_persons if noise.norm == 2 else select_ranges)(workload, persons, noise)
        factor = 0.0 if own is None else own[0].replacement_cost if trials.replaced else own[0].cost
        if own is not None and (cost := own[1].loss * factor) < price:
            tried = Candidate("persons", "chosen", _excess(cost, price), cost)
            # what is proved of single records holds for every strategy, but not for joint noise
            certificate = own[1] if _joint(own[0]) else with_bound(own[1], bound_of(certificate))
            plan, chosen, reason = own[0], "persons", f"{tried.reason} {chosen}"
            candidates = (tried, *(replace(one, status="compared") for one in candidates if one.loss))
    what = objective, as_plain(targets), candidates
    plan = replace(plan, persons=persons)
    return charged(Selection(workload, plan, chosen, neighbours, certificate, reason, *what))


_Outcome = tuple[Choice, str, str, tuple[Candidate, ...]]


def _supporting(trials: Trials, mechanism: str, objective: str) -> _Outcome:
    """Select a plan that supports the workload.

    Beside far larger weights, solvers lose queries, or leave them error that could be avoided for nothing.
    Small weights are then raised: as far as the objective stays the same, and at least as far as it takes.
    """
    workload = trials.workload
    heaviest = max(_extreme_weight(group, np.max) for group in workload)
    apart = min(_extreme_weight(group, np.min) for group in workload) / heaviest
    scale = 1.0 if _EXTREME < heaviest < 1.0 / _EXTREME else heaviest
    shares = [share for share in _RAISED if apart < min(share, _FAR_APART)]
    kept: _Outcome | None = None
    least, bound, lost = math.inf, None, ""
    for share in (0.0, *shares):
        raised = _raised(workload, share * heaviest, scale) if share or scale != 1.0 else workload
        try:
            found = _outcome(replace(trials, workload=raised), mechanism, objective)
            (plan, certificate), chosen, reason, candidates = found
            certificate = certificate.scaled(scale)
            if not share and certificate.lower_bound is not None:
                bound = certificate.lower_bound, certificate.scope
            for group in workload:
                plan.analysis.check_support(group)
        except UnsupportedQueryError as error:
            lost = str(error)
            continue
        if shares:
            loss = _objective(plan, workload, objective)
            if loss > least * (1.0 + _FREE):
                continue
            least = min(least, loss)
            certificate = with_bound(Certificate(loss, None, certificate.scope), bound)
        kept = (plan, certificate), chosen, reason, candidates
    if kept is None:
        told = f"weights or entries so far apart that queries are lost to rounding ({lost})"
        expected = "weights and entries that are closer together"
        raise WorkloadError.at(("workload",), told, expected, code="out-of-range")
    return kept


def _raised(workload: Workload, least: float, scale: float) -> Workload:
    """Return a workload with no query of a weight below the least, and all weights divided by a scale."""
    groups = []
    for group in workload:
        # a weight that vanishes is none
        weights = np.maximum(np.maximum(_weights(group), least) / scale, np.finfo(float).tiny)
        each = group.query_weights is not None
        weight = 1.0 if each else float(weights)
        groups.append(replace(group, weight=weight, query_weights=weights if each else None))
    return Workload(workload.domain, GivenGroups(tuple(groups)))


def _weights(group: Group) -> NDArray[np.float64]:
    """Return the weight of each query of a group, or the one of them all."""
    return np.asarray(group.weight * (1.0 if group.query_weights is None else group.query_weights))


def _extreme_weight(group: Group, of: Callable[[NDArray[np.float64]], np.float64]) -> float:
    return group.weight if group.query_weights is None else float(of(_weights(group)))


def _objective(plan: Plan, workload: Workload, objective: str) -> float:
    analysis = plan.analysis
    if objective == "sum":
        return math.fsum(analysis.group(group).weighted for group in workload)
    return max(float(uniform_variance(analysis.variances(group), group).max()) for group in workload)


def _outcome(trials: Trials, mechanism: str, objective: str) -> _Outcome:
    """Select; return the choice, its mechanism, the reason, and the fate of every candidate."""
    if mechanism == "auto":
        search = _Search(trials)
        search.run()
        (plan, certificate), chosen, candidates = search.outcome()
    else:
        plan, certificate = trials.choose(mechanism)
        chosen, candidates = mechanism, (Candidate(mechanism, "chosen", "asked for", certificate.loss),)
        if mechanism == "residual" and trials.facts.small:
            certificate = with_bound(certificate, trials.whole_bound())
    # of joint noise nothing else is proved, and for a tree of many values nothing else fits
    alone = _joint(plan) or (chosen == "tree" and not trials.facts.small)
    if objective != "max" and not alone:
        certificate = trials.certified(certificate)
    auto = mechanism == "auto"
    reason = _reason(candidates, certificate.gap, trials.facts) if auto else candidates[0].reason
    if objective == "max":
        plan, certificate = select_minimax(
            trials.workload,
            lambda weighted: trials.quietly(weighted).choose(chosen),
            iterations=_BALANCING_STEPS[trials.noise.norm],
            bound_of=None if alone else lambda weighted: _bound_after(replace(trials, workload=weighted)),
            progress=trials.progress,
        )
    return (plan, certificate), chosen, reason, candidates


def _bound_after(trials: Trials) -> Bound:
    """Return a lower bound for a mechanism that has none of its own."""
    return trials.whole_bound() if trials.facts.small else trials.lower_bound()


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
    trials = Trials(reduced_for("auto", workload, noise).workload, noise, {})
    facts = trials.facts
    explicit = any(isinstance(group, DenseGroup) for group in facts.asked)
    if explicit and facts.size("searched") <= LIMITS.searched_cells:
        return 0.0  # strategies of single queries have far less error than those of marginals
    with one_blas_thread():
        joint = (rule for rule in rules_for(noise) if rule.mechanism in _HOPES)
        ways = [rule.mechanism for rule in joint if not any(rule.refusal(facts))]
        least = min((trials.trial(name) / _HOPES[name] for name in ways), default=math.inf)
        if not facts.beyond(mechanism_named("generalized-marginals").limits):
            return min(trials.trial("generalized-marginals") / _HOPE, least)
        rules = [rule for rule in rules_for(noise) if rule.gain is not None and not any(rule.refusal(facts))]
        return min((trials.trial(rule.mechanism) / (rule.gain or 1.0) for rule in rules), default=0.0)
