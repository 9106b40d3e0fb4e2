"""What ``auto`` does with a workload, told from the workload alone: no strategy is searched for it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass

from matrixdp.errors import WorkloadError
from matrixdp.noise import GAUSSIAN, Noise
from matrixdp.queries import Workload
from matrixdp.selection.compose.decomposition import sub_solver_for
from matrixdp.selection.compose.joint_tables import joint_pairs
from matrixdp.selection.compose.sub_solver import NO_METHOD, SubSolver
from matrixdp.selection.compose.weight_vectors import uniform_weights
from matrixdp.selection.limits import GAP
from matrixdp.selection.problem.reduce import reduce
from matrixdp.selection.problem.residuals import Pieces, SubWorkload, split_workload
from matrixdp.selection.registry import given_options, mechanism_named
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
    method : str
        How its blocks are solved: ``closed form``, ``chain``, ``dual`` and others are the optimum;
        ``product`` is one product with weighted rows, which need not be; ``joint tables`` are designed
        together.
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


def explain(
    workload: Workload, noise: Noise, mechanism: str = "auto", options: Mapping[str, object] | None = None
) -> Explanation:
    """Return what selection will do with a workload, without solving anything.

    Parameters
    ----------
    workload : Workload
    noise : Noise
    mechanism : str
        ``auto``, or the mechanism that is asked for.
    options : mapping of str to object, optional
        Of the mechanism. ``sub_solver`` decides how the parts are solved; the others steer searches, and
        change neither which mechanisms are compared nor how parts are solved.

    Raises
    ------
    WorkloadError
        If every query is zero, there is no such mechanism, or an option has a wrong value.

    Examples
    --------
    >>> import matrixdp as mdp
    >>> from matrixdp.noise import GAUSSIAN
    >>> domain = mdp.Domain({"sex": ["female", "male"], "age": range(100)})
    >>> found = explain(mdp.Workload(domain, mdp.kway([1, 2], "prefix")), GAUSSIAN)
    >>> [(one.mechanism, one.status) for one in found.candidates][:2]
    [('residual', 'tried'), ('dense', 'tried if needed')]
    >>> [(one.attributes, one.method) for one in found.parts][-1]
    (('sex', 'age'), 'closed form, dual')
    """
    if not any(group.asks for group in workload):
        raise WorkloadError("workload: every query is zero; expected at least one that counts something")
    over_groups = mechanism == "auto" or mechanism_named(mechanism).reduces
    facts = Facts(reduce(workload).workload if over_groups else workload, noise)
    if mechanism == "auto":
        candidates = _candidates(facts)
    else:
        large = facts.beyond(mechanism_named(mechanism).limits)
        candidates = (Candidate(mechanism, "too large" if large else "tried", large or "asked for"),)
    tried = {one.mechanism for one in candidates if one.status.startswith("tried")}
    [name] = tried & {"residual", "querysmasher"} or {""}
    if not name or noise.norm == 1:
        return Explanation(noise.name, candidates)
    sub_solver = given_options(mechanism_named(name).options, options or {}).sub_solver
    parts = part_methods(facts.asked, sub_solver, tables=name == "residual")
    large = next((part.reason for part in parts if part.method == NO_METHOD), "")
    if large:
        refused = Candidate(name, "too large", large)
        candidates = tuple(refused if one.mechanism == name else one for one in candidates)
    return Explanation(noise.name, candidates, parts)


def _candidates(facts: Facts) -> tuple[Candidate, ...]:
    """Return what the rules say of every mechanism; of two rules for one, that which has it tried."""
    found: dict[str, Candidate] = {}
    alone = ""
    for rule in RULES[facts.noise.norm]:
        status, why = rule.refusal(facts)
        if alone and not status:
            status, why = "skipped", alone
        elif not status:
            status, why = "tried" if not rule.gap and rule.gain is None else "tried if needed", rule.when
            alone = f"{rule.mechanism} is tried {rule.when}" if rule.alone else ""
        known = found.get(rule.mechanism)
        if known is None or not known.status.startswith("tried"):
            found.pop(rule.mechanism, None)
            found[rule.mechanism] = Candidate(rule.mechanism, status, why)
    return tuple(sorted(found.values(), key=lambda one: not one.status.startswith("tried")))


def part_methods(
    workload: Workload, sub_solver: str = "auto", *, tables: bool = True
) -> tuple[PartMethod, ...]:
    """Return how the decomposition solves each class of sub-workloads under Gaussian noise.

    With ``tables``, tables of explicit pairs are designed together where the sub-solver allows it.

    Examples
    --------
    >>> import matrixdp as mdp
    >>> domain = mdp.Domain({"a": 50, "b": 50})
    >>> crossed = mdp.product(a="prefix", b="identity"), mdp.product(a="identity", b="prefix")
    >>> [(one.attributes, one.method) for one in part_methods(mdp.Workload(domain, *crossed))]
    [((), 'closed form'), (('a',), 'dual'), (('a', 'b'), 'product')]
    """
    split = split_workload(workload, pair=True)
    solver = sub_solver_for(Pieces(split, uniform_weights(split)), GAUSSIAN, GAP, sub_solver)
    pairs = joint_pairs(workload) if tables and sub_solver != "product" else ()
    held = {(), *pairs, *((name,) for pair in pairs for name in pair)} if pairs else set()
    found = []
    for sub in split.classes:
        cells, method, why = (
            math.prod(split.values(sub)),
            "joint tables",
            "pairs of explicit queries: designed at once",
        )
        if not held.issuperset(sub.marginals):
            cells, method, why = _method(solver, sub)
        found.append(PartMethod(sub.marginals[0], len(sub.marginals), cells, method, why))
    return tuple(found)


def _method(solver: SubSolver, sub: SubWorkload) -> tuple[int, str, str]:
    """Return the cells of the largest block, the methods of the blocks, and what decided."""
    blocks = solver.methods(sub)
    names = dict.fromkeys(method for _, method, _ in blocks) or {"closed form": None}
    sizes = solver.pieces.split.values(sub)
    cells = max((math.prod(sizes[axis] for axis in axes) for axes, *_ in blocks), default=1)
    passed = [
        why if method == NO_METHOD else f"not {name}: {why}"
        for _, method, limits in blocks
        for name, why in limits.items()
    ]
    together = "solved together" if any(len(axes) > 1 for axes, *_ in blocks) else "solved one by one"
    alone = "one number" if cells == 1 else f"its attributes are {together}"
    return cells, ", ".join(names), "; ".join(passed) or alone
