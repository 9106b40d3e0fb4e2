"""What ``auto`` does with a workload, told from the workload alone: no strategy is searched for it."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass

from matrixdp.errors import WorkloadError
from matrixdp.exact.resources import most_cells
from matrixdp.noise import Noise
from matrixdp.queries import Workload
from matrixdp.selection.compose.joint_tables import joint_pairs
from matrixdp.selection.compose.sub_solver import MAX_JOINT_ROWS, MAX_ROW_CELLS
from matrixdp.selection.limits import MAX_JOINT_CELLS
from matrixdp.selection.problem.residuals import Split, SubWorkload, split_workload
from matrixdp.selection.registry import mechanism_named
from matrixdp.selection.rules import RULES, Facts
from matrixdp.selection.selection import Candidate

__all__ = ["Explanation", "PartMethod", "explain", "part_methods"]


@dataclass(frozen=True)
class PartMethod:
    """How one class of sub-workloads of the decomposition is solved; its marginals have one strategy.

    Attributes
    ----------
    attributes : tuple of str
        Of the first of its marginals.
    marginals : int
        How many marginals the class has.
    cells : int
        Of the largest table that is solved at once.
    method : {"closed form", "optimum", "product", "joint tables"}
        ``product`` is one product with weighted rows, which need not be the optimum.
    reason : str
        What decided, with the limit that did.
    """

    attributes: tuple[str, ...]
    marginals: int
    cells: int
    method: str
    reason: str


@dataclass(frozen=True)
class Explanation:
    """Which mechanisms are compared for a workload, and how its parts are solved.

    Attributes
    ----------
    noise : str
    candidates : tuple of Candidate
        In the order in which they are tried; of a strategy that was selected, the chosen one first.
    parts : tuple of PartMethod
        Of the decomposition ``residual``, where it is among the candidates: one for each class of marginals.
    """

    noise: str
    candidates: tuple[Candidate, ...]
    parts: tuple[PartMethod, ...] = ()

    def as_dict(self) -> dict[str, object]:
        """Return it as plain values."""
        return asdict(self)


def explain(workload: Workload, noise: Noise, mechanism: str = "auto") -> Explanation:
    """Return what selection will do with a workload, without solving anything.

    Parameters
    ----------
    workload : Workload
    noise : Noise
    mechanism : str
        ``auto``, or the mechanism that is asked for.

    Raises
    ------
    WorkloadError
        If every query is zero, or there is no such mechanism.

    Examples
    --------
    >>> import matrixdp as mdp
    >>> from matrixdp.noise import GAUSSIAN
    >>> domain = mdp.Domain({"sex": ["female", "male"], "age": range(100)})
    >>> found = explain(mdp.Workload(domain, mdp.kway([1, 2], "prefix")), GAUSSIAN)
    >>> [(one.mechanism, one.status) for one in found.candidates][:2]
    [('residual', 'tried'), ('dense', 'tried if needed')]
    >>> [(one.attributes, one.method) for one in found.parts][-1]
    (('sex', 'age'), 'optimum')
    """
    if not any(group.asks for group in workload):
        raise WorkloadError("workload: every query is zero; expected at least one that counts something")
    facts = Facts(workload, noise)
    if mechanism == "auto":
        candidates = _candidates(facts)
    else:
        large = facts.beyond(mechanism_named(mechanism).limits)
        candidates = (Candidate(mechanism, "too large" if large else "tried", large or "asked for"),)
    tried = {one.mechanism for one in candidates if one.status.startswith("tried")}
    parts = part_methods(facts.asked) if tried & {"residual", "querysmasher"} and noise.norm == 2 else ()
    return Explanation(noise.name, candidates, parts)


def _candidates(facts: Facts) -> tuple[Candidate, ...]:
    """Return what the rules say of every mechanism; of two rules for one, that which has it tried."""
    found: dict[str, Candidate] = {}
    alone = ""
    for rule in RULES[facts.noise.norm]:
        status, why = rule.refusal(facts)
        if alone and not status:
            status, why = "skipped", f"{alone} has the least error"
        elif not status:
            status, why = "tried" if rule.gap is None and rule.gain is None else "tried if needed", rule.when
            alone = rule.mechanism if rule.alone else ""
        known = found.get(rule.mechanism)
        if known is None or not known.status.startswith("tried"):
            found.pop(rule.mechanism, None)
            found[rule.mechanism] = Candidate(rule.mechanism, status, why)
    return tuple(sorted(found.values(), key=lambda one: not one.status.startswith("tried")))


def part_methods(workload: Workload) -> tuple[PartMethod, ...]:
    """Return how the decomposition solves each class of sub-workloads under Gaussian noise.

    Examples
    --------
    >>> import matrixdp as mdp
    >>> domain = mdp.Domain({"a": 50, "b": 50})
    >>> crossed = mdp.product(a="prefix", b="identity"), mdp.product(a="identity", b="prefix")
    >>> [(one.attributes, one.method) for one in part_methods(mdp.Workload(domain, *crossed))]
    [((), 'closed form'), (('a',), 'optimum'), (('a', 'b'), 'product')]
    """
    split = split_workload(workload)
    pairs = joint_pairs(workload)
    held = {(), *pairs, *((name,) for pair in pairs for name in pair)} if pairs else set()
    found = []
    for sub in split.classes:
        first = sub.marginals[0]
        if held.issuperset(sub.marginals):
            cells = math.prod(sub.sizes)
            method, why = "joint tables", "pairs with explicit queries are designed together"
        else:
            cells, method, why = _method(split, sub)
        found.append(PartMethod(first, len(sub.marginals), cells, method, why))
    return tuple(found)


def _method(split: Split, sub: SubWorkload) -> tuple[int, str, str]:
    """Return the cells that are solved at once, the method, and what decided."""
    if not sub.types:
        return 1, "closed form", "the total is one number"
    if sub.rows:
        return _of_rows(split, sub)
    asked = [{_role(split, term.kept[axis]) for term in sub.products} for axis in range(len(sub.types))]
    mixed = [size for size, roles in zip(sub.sizes, asked, strict=True) if len(roles) > 1]
    cells = math.prod(mixed)
    if len(mixed) > 1 and cells > min(MAX_JOINT_CELLS, most_cells()):
        return cells, "product", f"{cells:,} cells do not factor; the limit is {MAX_JOINT_CELLS:,}"
    if len(mixed) > 1:
        return cells, "optimum", f"{cells:,} cells that do not factor are solved together"
    if all(role[0] == "symmetric" for roles in asked for role in roles):
        return max(sub.sizes), "closed form", "nothing tells the values of an attribute apart"
    return max(sub.sizes), "optimum", "attributes factor out, each is solved alone"


def _role(split: Split, number: int) -> tuple[str, int]:
    """Return what tells pieces apart that are not proportional."""
    slot = split.slots[number]
    if slot.symmetric is not None and not split.free[slot.type]:
        return "symmetric", slot.type
    # what is left of two values without their mean is one number
    return ("difference", slot.type) if slot.size == 2 else ("slot", number)


def _of_rows(split: Split, sub: SubWorkload) -> tuple[int, str, str]:
    sizes: Iterable[int] = sub.sizes
    if sub.groups is not None:
        sizes = (int(group.max()) + 1 for group in sub.groups)
    cells, most = math.prod(sizes), most_cells()
    queries = sum(len(split.explicit[item.explicit].rows) for item in sub.rows)
    whole = math.prod(sub.sizes) <= min(MAX_ROW_CELLS, most)
    measurable = cells <= most and (sub.groups is None or whole)
    if not sub.products and queries < cells <= MAX_ROW_CELLS and queries <= MAX_JOINT_ROWS and measurable:
        return cells, "optimum", f"{queries:,} explicit queries are fewer than cells"
    if cells <= MAX_JOINT_CELLS and measurable:
        return cells, "optimum", f"{cells:,} cells of explicit queries are solved together"
    return cells, "product", f"explicit queries on {cells:,} cells; the limit is {MAX_JOINT_CELLS:,}"
