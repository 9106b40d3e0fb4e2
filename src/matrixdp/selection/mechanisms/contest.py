"""What ``auto`` tries: mechanisms that may win, those that take long only after a fast trial."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Sequence
from typing import Any

from matrixdp.errors import TooLargeError
from matrixdp.noise import Noise
from matrixdp.queries import DenseGroup, Workload
from matrixdp.selection.compose.generalized_marginals import first_generalized_loss
from matrixdp.selection.compose.product import solve_kron
from matrixdp.selection.compose.union import first_union_loss
from matrixdp.selection.compose.whole_table import few_products
from matrixdp.selection.mechanisms.trials import Bound, Choice, Trials, bounded
from matrixdp.selection.problem.grams import distinct_cells
from matrixdp.selection.problem.kron_sum import MAX_AXIS_CELLS, KronSum, joint_gram, table_shape
from matrixdp.selection.problem.merge_groups import merge_groups

__all__ = ["CANDIDATES", "hoped_for", "least_error"]

_LOG = logging.getLogger(__name__)

#: What may be tried, in the order in which ties are decided.
CANDIDATES = (
    *("residual", "dense", "weighted-product"),
    *("opt-kron", "opt-plus", "opt-m", "generalized-marginals", "opt-0"),
)
#: The whole table is searched where queries tell so many of its cells apart, or where so few are asked.
MAX_SEARCHED_CELLS, MAX_SEARCHED_QUERIES = 400, 64
#: With a proved gap below this no other mechanism is tried.
_SETTLED = 1e-6
#: Percent less error that another strategy may have, from which trying others is advised.
_MUCH = 5.0
#: Products of tables past the optimum's reach are searched where they may have so much less error.
_WORTHWHILE = 1e-3
#: Under Gaussian noise no product has less error than the decomposition at its optimum. Where weights end
#: in a local minimum one may: products are compared up to this many cells, where they take little time.
_COMPARED_CELLS = 100_000
#: One product with weighted rows over the whole table is tried up to this many cells.
MAX_PRODUCT_CELLS = 10_000_000
#: A search is hoped to end at its fast trial's loss divided by this, not below: factors that held on the
#: workloads on which they were compared, and are proved for none.
_HOPES = {"generalized-marginals": 1.05, "opt-kron": 1.15, "opt-plus": 1.15}
#: ... and every search at a fast trial of generalized marginals divided by this (1.10 was the most there).
_HOPE = 1.15
#: Unions, products and parts of one attribute are strategies for its one Gram matrix: with more values than
#: this it is searched once. With few, a total beside differences may win, and all searches are fast.
_FEW_VALUES = 100
#: Less per cent of error than this is no difference.
_EVEN = 0.005

_Found = tuple[dict[str, Choice], dict[str, MemoryError], dict[str, float]]


def least_error(trials: Trials) -> tuple[Choice, str, str]:
    """Return the choice with the least loss among those that fit, its mechanism, and why."""
    found, refusals, passed = (_gaussian if trials.noise.norm == 2 else _searched)(trials)
    if not found:
        raise refusals.get("residual") or next(iter(refusals.values()))
    bound: Bound = None
    if "dense" in found and found["dense"][1].lower_bound is not None:
        bound = found["dense"][1].lower_bound, found["dense"][1].scope
    elif trials.small and trials.noise.norm == 1:
        bound = trials.whole_bound()
    # as accurate as dense within rounding, the decomposition measures each marginal apart
    losses = {name: choice[1].loss for name, choice in found.items()}
    best = min(losses, key=lambda name: losses[name] * (1.0 + 2e-6 * (name == "dense")))
    plan, certificate = found[best][0], bounded(found[best][1], bound)
    return (plan, certificate), best, _reason(best, losses, refusals, passed) or _alone(certificate.gap)


def hoped_for(workload: Workload, noise: Noise) -> float:
    """Return a loss that no mechanism is expected to go below, from a fast trial.

    Examples
    --------
    >>> import matrixdp as mdp
    >>> from matrixdp.noise import LAPLACE
    >>> workload = mdp.Workload(mdp.Domain({"a": 30, "b": 40}), mdp.marginals([1, 2]))
    >>> hope, (_, found), *_ = hoped_for(workload, LAPLACE), *least_error(Trials(workload, LAPLACE, {}))
    >>> 0.7 < hope / found.loss <= 1.0
    True
    """
    asked = merge_groups(workload)
    if any(isinstance(group, DenseGroup) for group in asked) and _is_searched(asked):
        return 0.0  # strategies of single queries have far less error than those of marginals
    try:
        return first_generalized_loss(asked, noise) / _HOPE
    except TooLargeError:
        hopes = _trials(asked, noise, {}, {})
        return min((hope for name, hope in hopes.items() if name != "opt-0"), default=0.0)


def _choose(trials: Trials, names: Sequence[str], found: dict[str, Choice]) -> dict[str, MemoryError]:
    """Select by each of some mechanisms; return what does not fit."""
    refusals = {}
    for name in names:
        trials.progress(f"trying {name}", None)
        _LOG.info("trying %s", name)
        try:
            found[name] = trials.choose(name)
        except MemoryError as error:  # TooLargeError, or what no forecast foresaw
            refusals[name] = error
    return refusals


def _gaussian(trials: Trials) -> _Found:
    """Select by the decomposition, and by the whole table where it fits and may have less error."""
    found: dict[str, Choice] = {}
    refusals: dict[str, MemoryError] = {}
    shape = trials.shape
    if not shape.joint:
        # one product is measured as it is: its strategy has one part, and no other has less error
        refusals |= _choose(trials, ["dense"], found)
        if found:
            return found, refusals, {}
    refusals |= _choose(trials, ["residual"], found)
    gap = found["residual"][1].gap if found else None
    if trials.small:
        if shape.joint and (gap is None or gap > _SETTLED):
            refusals |= _choose(trials, ["dense"], found)
    elif gap is None or gap > _WORTHWHILE:
        table = trials.asked.domain.cells((*shape.factored, *shape.joint))
        if table <= MAX_PRODUCT_CELLS and few_products(trials.asked, shape):
            refusals |= _choose(trials, ["weighted-product"], found)
        elif table <= _COMPARED_CELLS:
            refusals |= _choose(trials, ["opt-kron"], found)
    return found, refusals, {}


def _searched(trials: Trials) -> _Found:
    """Select by every mechanism of L1 norms that may win, going by fast trials."""
    found: dict[str, Choice] = {}
    refusals = _choose(trials, ["opt-m"], found)
    terms = KronSum.of(trials.asked.domain, trials.asked.groups)
    if len(terms.sizes) == 1 and terms.sizes[0] > _FEW_VALUES:
        refusals |= _choose(trials, ["opt-kron"], found)
        if "opt-kron" in found:
            return found, refusals, {}
    hopes = _trials(trials.asked, trials.noise, refusals, trials.memory, "opt-m" in found)
    passed = {}
    for name, hope in sorted(hopes.items(), key=lambda item: item[1]):
        if hope < min((choice[1].loss for choice in found.values()), default=math.inf):
            refusals |= _choose(trials, [name], found)
        else:
            passed[name] = hope
    return found, refusals, passed


def _trials(
    asked: Workload,
    noise: Noise,
    refusals: dict[str, MemoryError],
    memory: dict[str, dict[Any, Any]],
    weighted: bool = False,
) -> dict[str, float]:
    """Return the losses that may be hoped for of searches, from fast trials; note what does not fit.

    ``weighted`` tells that marginals were weighted: they contain the products of identities and totals.
    """
    terms = KronSum.of(asked.domain, asked.groups)
    plain = terms.plain()
    whole: list[float | None] = [None]

    def union() -> float:
        loss, whole[0] = first_union_loss(asked, noise, memory.setdefault("opt-plus", {}))
        return loss

    def product() -> float:
        return whole[0] or noise.variance_factor * solve_kron(terms, noise, effort="fast").loss

    fast: dict[str, Callable[[], float]] = {}
    if len(terms.sizes) > 1 and not plain:
        fast["generalized-marginals"] = lambda: first_generalized_loss(asked, noise)
    if not (weighted and plain):
        # a union for one group is one product
        fast |= {"opt-plus": union, "opt-kron": product} if len(asked) > 1 else {"opt-kron": product}
    hopes = {}
    for name, loss in fast.items():
        try:
            hopes[name] = loss() / _HOPES[name]
        except TooLargeError as error:
            refusals[name] = error
    if len(table_shape(asked).joint) > 1 and _is_searched(asked):
        hopes["opt-0"] = 0.0  # one strategy of the table contains all others
    return hopes


def _is_searched(asked: Workload) -> bool:
    """Return whether the table of what does not factor is searched as a whole."""
    shape = table_shape(asked)
    if shape.cells <= MAX_SEARCHED_CELLS or shape.cells > MAX_AXIS_CELLS:
        return shape.cells <= MAX_SEARCHED_CELLS
    if sum(group.queries for group in asked) <= MAX_SEARCHED_QUERIES:
        return True
    return len(distinct_cells(joint_gram(asked, shape.joint))[0]) <= MAX_SEARCHED_CELLS


def _reason(
    best: str, losses: dict[str, float], refusals: dict[str, MemoryError], passed: dict[str, float]
) -> str:
    others = [
        f"{share:.3g}% less error than {name}" if share >= _EVEN else f"as little error as {name}"
        for name, loss in sorted(losses.items(), key=lambda item: item[1])
        if name != best
        for share in [100 * (1 - (losses[best] / loss) ** 0.5)]
    ]
    if passed:
        others.append(f"a fast trial of {' and '.join(sorted(passed))} had more")
    others += [f"{name} does not fit: {error}" for name, error in refusals.items()]
    return "; ".join(others)


def _alone(gap: float | None) -> str:
    """Return why nothing else was tried."""
    if gap is not None and gap <= _SETTLED:
        return "at the lower bound, before rounding to integers"
    if gap is None:
        return "no other fits"
    share = 100 * (1 - (1 + gap) ** -0.5)
    near = f"within {share:.2g}% of the lower bound before rounding to integers; no other was tried"
    return near + ("; `matrixdp compare` tries others" if share >= _MUCH else "")
