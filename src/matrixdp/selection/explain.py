"""What ``auto`` does with a workload, told from the workload alone: no strategy is searched for it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field

from matrixdp.errors import WorkloadError
from matrixdp.noise import GAUSSIAN, Noise
from matrixdp.queries import Workload
from matrixdp.selection.compose.decomposition import sub_solver_for
from matrixdp.selection.compose.joint_tables import joint_pairs
from matrixdp.selection.compose.sub_solver import NO_METHOD, SubSolver
from matrixdp.selection.compose.weight_vectors import Objective, uniform_weights
from matrixdp.selection.limits import GAP, LIMITS
from matrixdp.selection.problem.residuals import Pieces, SubWorkload, split_workload
from matrixdp.selection.reduce import Merged, Paired
from matrixdp.selection.registry import given_options, mechanism_named
from matrixdp.selection.rules import Facts, reduced_for, rules_for
from matrixdp.selection.selection import Candidate, PartMethod


@dataclass(frozen=True)
class Explanation:
    """Which mechanisms are compared for a workload, and how its parts are solved.

    Attributes
    ----------
    noise : str
    candidates : tuple of Candidate
        In the order in which they are tried; after selection, the chosen one first.
    parts : tuple of PartMethod
        One for each class of marginals of the decomposition, where that is among the candidates; under
        Laplace noise, of the whole table and of attributes, where their strategies are searched.
    merged : dict of str to tuple of int
        For each attribute with values that no query tells apart: its values, and the groups that are left.
    paired : dict of str to tuple of int
        For each attribute with pairs for values that may trade places: those values, and their groups.
    matrices : dict of str to int
        As `PartMethod.matrix`, over all that a mechanism solves: for those that are tried, where it is known.
    bounds : tuple of str
        What a lower bound is taken from, in this order, where the mechanism proves none itself.
    """

    noise: str
    candidates: tuple[Candidate, ...]
    parts: tuple[PartMethod, ...] = ()
    merged: dict[str, tuple[int, int]] = field(default_factory=dict)
    paired: dict[str, tuple[int, int]] = field(default_factory=dict)
    matrices: dict[str, int] = field(default_factory=dict)
    bounds: tuple[str, ...] = ()

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
    >>> [(one.attributes, one.method) for one in found.parts][-1], found.matrices["dense"]
    ((('sex', 'age'), 'closed form, dual'), 200)
    """
    if not any(group.asks for group in workload):
        raise WorkloadError("workload: every query is zero; expected at least one that counts something")
    reduced = reduced_for(mechanism, workload, noise)
    facts = Facts(reduced.workload, noise)
    if mechanism == "auto":
        candidates = _candidates(facts)
    else:
        large = facts.beyond(mechanism_named(mechanism).limits)
        candidates = (Candidate(mechanism, "too large" if large else "tried", large or "asked for"),)
    tried = [one.mechanism for one in candidates if one.status.startswith("tried")]
    parts: dict[PartMethod, None] = {}
    matrices: dict[str, int] = {}
    for name in tried:
        about = mechanism_named(name)
        own = about.parts(facts, given_options(about.options, options or {})) if about.parts else ()
        parts.update(dict.fromkeys(own))
        large = next((part.reason for part in own if part.method == NO_METHOD), "")
        if large:
            refused = Candidate(name, "too large", large)
            candidates = tuple(refused if one.mechanism == name else one for one in candidates)
        elif own:
            matrices[name] = max(part.matrix for part in own)
        elif about.matrices is not None:
            matrices[name] = max(map(facts.size, about.matrices), default=0)
    merged, paired = (
        {
            name: (len(own), int(own.max()) + 1)
            for step in reduced.maps
            if isinstance(step, kind)
            for name, own in step.groups.items()
        }
        for kind in (Merged, Paired)
    )
    bounds = _bounds(facts, tried, mechanism)
    return Explanation(noise.name, candidates, tuple(parts), merged, paired, matrices, bounds)


#: What the lower bound of mechanisms is taken from.
OF_MARGINALS = "the solved marginals, by their covariances"
OF_TABLE = "the dual of the whole table"


def _bounds(facts: Facts, tried: Sequence[str], mechanism: str) -> tuple[str, ...]:
    """Return what a lower bound is taken from: of later candidates first, which need not be searched."""
    found = [mechanism_named(name).proof for name in reversed(tried)]
    whole = mechanism == "auto" and facts.noise.norm == 1 and facts.small
    if whole and not facts.beyond(mechanism_named("dense").limits):
        found.insert(0, OF_TABLE)
    if facts.noise.norm == 1:
        found = [f"{proof} under Gaussian noise" for proof in found if proof == OF_TABLE]
    if facts.noise.norm == 1 or not any(found):
        found.append(
            "the marginals under Gaussian noise, solved for the bound alone where no attribute that is asked "
            f"more than identities has more than {LIMITS.spectral_cells:,} values"
        )
    return (*dict.fromkeys(filter(None, found)), "singular values of the workload")


def searched_attributes(facts: Facts) -> tuple[PartMethod, ...]:
    """Return how a strategy of each attribute is found under Laplace noise."""
    if facts.noise.norm != 1:
        return ()
    terms = facts.terms
    found: dict[tuple[int, str, str], list[str]] = {}
    for axis, (name, size) in enumerate(zip(terms.attributes, terms.sizes, strict=True)):
        method, why = "p-Identity", "more is asked than identities and totals"
        if terms.large(axis):
            method, why = "identity", f"{size:,} values; the limit is {LIMITS.axis_cells:,}"
        elif terms.symmetric(axis):
            method, why = "identity", "identities and totals are weighted"
        found.setdefault((size, method, why), []).append(name)
    return tuple(
        PartMethod((names[0],), (size,), len(names), size, size if method == "p-Identity" else 0, method, why)
        for (size, method, why), names in found.items()
    )


def searched_table(facts: Facts) -> tuple[PartMethod, ...]:
    """Return the table that is searched as a whole under Laplace noise, of attributes that do not factor."""
    terms = facts.terms
    if facts.noise.norm != 1 or not terms.joint:
        return ()
    sizes = tuple(facts.asked.domain[name].size for name in terms.joint)
    why = "attributes that do not factor are one table"
    return (PartMethod(terms.joint, sizes, 1, terms.cells, terms.cells, "p-Identity", why),)


def _candidates(facts: Facts) -> tuple[Candidate, ...]:
    """Return what the rules say of every mechanism; of two rules for one, that which has it tried."""
    found: dict[str, Candidate] = {}
    alone = ""
    for rule in rules_for(facts.noise):
        status, why = rule.refusal(facts)
        if alone and status in ("", "tried if needed"):
            status, why = "skipped", alone
        elif not status:  # what is tried if needed says when itself
            status, why = "tried" if not rule.gap and rule.gain is None else "tried if needed", rule.when
            alone = f"{rule.mechanism} is tried {rule.when}" if rule.alone else ""
        known = found.get(rule.mechanism)
        if known is None or not known.status.startswith("tried"):
            found.pop(rule.mechanism, None)
            found[rule.mechanism] = Candidate(rule.mechanism, status, why)
    return tuple(sorted(found.values(), key=lambda one: not one.status.startswith("tried")))


def part_methods(
    workload: Workload, sub_solver: str = "auto", noise: Noise = GAUSSIAN, *, tables: bool = True
) -> tuple[PartMethod, ...]:
    """Return how the decomposition solves each class of sub-workloads.

    With ``tables``, as ``residual`` does: weights are searched, and tables of explicit pairs are designed
    together where the sub-solver allows it.

    Examples
    --------
    >>> import matrixdp as mdp
    >>> domain = mdp.Domain({"a": 50, "b": 50})
    >>> crossed = mdp.product(a="prefix", b="identity"), mdp.product(a="identity", b="prefix")
    >>> [(one.attributes, one.method) for one in part_methods(mdp.Workload(domain, *crossed))]
    [((), 'closed form'), (('a',), 'dual'), (('a', 'b'), 'product')]
    """
    split = split_workload(workload)
    pieces = Pieces(split, uniform_weights(split))
    solver = sub_solver_for(pieces, noise, GAP, sub_solver)
    searching = Objective(split).solver(pieces, GAP) if tables and split.searched else None
    pairs = joint_pairs(workload) if tables and sub_solver != "product" else ()
    held = {(), *pairs, *((name,) for pair in pairs for name in pair)} if pairs else set()
    found = []
    for sub in split.classes:
        sizes, search = sub.sizes, ""
        if held.issuperset(sub.marginals):
            cells = math.prod(sizes)
            how = cells, cells, "joint tables", "pairs of explicit queries: designed at once"
        else:
            how = _method(solver, sub)
            if searching is not None and len(sizes) > 1:
                *_, method, why = _method(searching, sub)
                search = "" if method == how[2] else f"{method} ({why})"
        found.append(PartMethod(sub.marginals[0], sizes, len(sub.marginals), *how, search))
    return tuple(found)


def _method(solver: SubSolver, sub: SubWorkload) -> tuple[int, int, str, str]:
    """Return the cells of the largest block, of its largest matrix, the methods, and what decided."""
    cells, matrix, passed = 1, 0, list[str]()
    names: dict[str, None] = {}
    for axes, method, limits in solver.methods(sub):
        own = [sub.sizes[axis] for axis in axes]
        cells = max(cells, math.prod(own))
        if method not in ("closed form", "chain"):
            matrix = max(matrix, max(own) if method == "product" else math.prod(own))
            searched = solver.noise.norm == 1 and method not in ("product", NO_METHOD)
            method = "p-Identity" if searched else method
        names[method] = None
        passed += [why if method == NO_METHOD else f"not {name}: {why}" for name, why in limits.items()]
        if len(axes) > 1 and not limits:
            passed.append(f"up to {solver.limits.joint_cells:,} cells that do not factor are solved together")
    alone = (
        "each attribute apart" if matrix else "identities, totals or one query" if sub.sizes else "one number"
    )
    return cells, matrix, ", ".join(names) or "closed form", "; ".join(dict.fromkeys(passed)) or alone
