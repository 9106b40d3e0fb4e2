"""Which mechanisms ``auto`` compares on a workload: one list for each kind of noise, read from top to bottom.

Everything here is known from the workload alone, before any strategy is searched.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property

from matrixdp.display import size_in_words
from matrixdp.errors import TooLargeError, WorkloadError
from matrixdp.exact.resources import most_cells
from matrixdp.noise import Noise
from matrixdp.plugins import values_offered
from matrixdp.queries import Group, ProductGroup, Workload
from matrixdp.selection.compose.whole_table import few_products
from matrixdp.selection.limits import LIMITS
from matrixdp.selection.problem.entries import distinct_cells
from matrixdp.selection.problem.gather_groups import gather_groups
from matrixdp.selection.problem.grams import gram_terms
from matrixdp.selection.problem.kron_sum import KronSum
from matrixdp.selection.problem.levels import one_product, tree_for
from matrixdp.selection.reduce import Reduced, reduce
from matrixdp.selection.registry import mechanism_named
from matrixdp.selection.searches.radius import no_radius
from matrixdp.selection.searches.walks import no_walk, ordered_axes

#: The group of entry points by which installed packages offer candidates: each a `Rule`.
CANDIDATES = "matrixdp.candidates"


def reduced_for(mechanism: str, workload: Workload, noise: Noise, objective: str = "sum") -> Reduced:
    """Return a workload as a mechanism is given it: over few values, if it takes them."""
    reduces = "pairs" if mechanism == "auto" else mechanism_named(mechanism).reduces
    if not reduces:
        return Reduced(workload)
    levels = tree_for(workload) if mechanism in ("auto", "tree") else None
    but = () if levels is None else (levels.name,)
    return reduce(workload, reduces == "pairs" and noise.norm == 2, objective == "max", but)


class Facts:
    """What the rules ask of a workload and a noise; the sizes are computed when a limit is about them.

    Parameters
    ----------
    workload : Workload
    noise : Noise
    """

    def __init__(self, workload: Workload, noise: Noise) -> None:
        self.noise = noise
        #: The workload after groups over equal attributes were gathered.
        self.asked = gather_groups(workload)
        self._known: dict[str, int] = {}

    @cached_property
    def terms(self) -> KronSum:
        """The workload as a sum of Kronecker products."""
        return KronSum.whole(self.asked)

    @property
    def small(self) -> bool:
        """Whether the optimum on the whole table is within reach."""
        return self.terms.columns <= LIMITS.max_compared_cells

    @cached_property
    def few_products(self) -> bool:
        """Whether it is a sum of a few products on the two or three attributes that do not factor."""
        return few_products(self.terms)

    def size(self, name: str) -> int:
        """Return one of the `SIZES`."""
        if name not in self._known:
            self._known[name] = SIZES[name][1](self)
        return self._known[name]

    def beyond(self, limits: Mapping[str, str | float], memory: bool = True) -> str:
        """Return which of some limits the workload exceeds, or nothing; by default those of memory too."""
        for name, limit in limits.items():
            most = float(getattr(LIMITS, limit)) if isinstance(limit, str) else limit
            if memory and name in _MATRICES:
                most = min(most, most_cells())
            if self.size(name) > most:
                return f"{size_in_words(self.size(name))} {SIZES[name][0]}; the limit is {most:,.0f}"
        return ""

    def check(self, mechanism: str, limits: Mapping[str, str | float]) -> None:
        """Raise TooLargeError if the workload exceeds a limit of a mechanism, those of memory aside."""
        excess = self.beyond(limits, memory=False)
        if excess:
            raise TooLargeError(f"{mechanism}: {excess}. Use auto, which compares those that fit")


def _largest_attribute(facts: Facts) -> int:
    return max((facts.asked.domain[name].size for name in facts.terms.joint), default=1)


def _largest_weighted(facts: Facts) -> int:
    """Return the largest width of an attribute that does not factor out: see `Domain.width`."""
    return max((facts.asked.domain.width(name) for name in facts.terms.joint), default=1)


def _largest_factor(facts: Facts) -> int:
    """Return the most values of an attribute that factors out, other than by the identity."""
    grams = [gram for gram in facts.terms.factored.values() if (gram.symmetric or (0.0, 1.0))[1] != 0.0]
    return max((gram.size for gram in grams), default=1)


def _largest_strategy(facts: Facts) -> int:
    """Return the most values of an attribute whose strategy is searched where each has one."""
    sizes = enumerate(facts.terms.sizes)
    return max((size for axis, size in sizes if not facts.terms.symmetric(axis)), default=1)


def _marginals(facts: Facts) -> dict[tuple[str, ...], None]:
    """Return the sets of attributes of which a group asks more than the total."""
    asked = set(facts.terms.attributes)

    def varies(group: Group, name: str, size: int) -> bool:
        symmetric = group.sets[name].symmetric(size) if isinstance(group, ProductGroup) else None
        return name in asked and (symmetric is None or symmetric[0] > 0)

    return dict.fromkeys(
        tuple(n for n, size in zip(group.attributes, group.sizes, strict=True) if varies(group, n, size))
        for group in facts.asked
    )


def _subsets(facts: Facts) -> int:
    lengths = [len(names) for names in _marginals(facts)]
    return int(max(3 ** max(lengths), sum(2**length for length in lengths)))


def _written(facts: Facts) -> int:
    """Return the most entries of a group whose queries are written out."""
    groups = (group for group in facts.asked if gram_terms(group) is None)
    return max((group.queries * math.prod(group.sizes) for group in groups), default=0)


def _told_apart(facts: Facts) -> int:
    """Return the cells of what does not factor, as far as queries tell them apart; one for few queries."""
    cells = facts.terms.cells
    if cells <= LIMITS.searched_cells or cells > LIMITS.axis_cells:
        return cells
    if sum(group.queries for group in facts.asked) <= LIMITS.max_searched_queries:
        return 1
    if all(isinstance(group, ProductGroup) for group in facts.asked):
        return cells  # products tell nearly all of their cells apart
    return len(distinct_cells(facts.terms.dense(facts.terms.joint))[0])


#: What limits are about: how messages call it, and its size for a workload.
SIZES: dict[str, tuple[str, Callable[[Facts], int]]] = {
    "table": (
        "cells of the attributes asked about",
        lambda facts: facts.asked.domain.counted((*facts.terms.factored, *facts.terms.joint)),
    ),
    "cells": ("cells that do not factor", lambda facts: facts.terms.cells),
    "joint": ("cells that do not factor", lambda facts: facts.terms.columns),
    "searched": ("cells that do not factor, told apart by many queries", _told_apart),
    "attribute": ("values of an attribute that does not factor out", _largest_attribute),
    "weighted": ("values of an attribute in rows with a weight each", _largest_weighted),
    "factor": ("values of an attribute that factors out", _largest_factor),
    "strategy": ("values of an attribute that is asked more than identities", _largest_strategy),
    "marginal": (
        "cells of a marginal that is asked about",
        lambda facts: max(map(facts.asked.domain.counted, _marginals(facts))),
    ),
    "subsets": ("pairs of a marginal and one in it", _subsets),
    "written": ("entries of queries that would be written out", _written),
}


#: Those that matrices are made of, which must fit in memory.
_MATRICES = ("cells", "joint", "factor", "strategy")


@dataclass(frozen=True)
class Rule:
    """When ``auto`` tries a mechanism.

    Attributes
    ----------
    mechanism : str
    unless : callable
        Why it cannot win on a workload, or nothing.
    limits : mapping of str to str or float
        `SIZES` up to which it is compared, beside the limits of the mechanism itself: names of `Limits`, or
        numbers.
    far : mapping of str to str or float
        Larger limits of some of these sizes, for where nothing that was found is proved to be within a factor
        of 1 + `Limits.far` of the lower bound: what takes long is then worth it.
    gap : str
        It is left out where the best strategy so far is proved within this limit of the lower bound.
    alone : str
        Why nothing else is tried where it fits; empty where others are.
    gain : float, optional
        It is searched only if a fast trial's loss, divided by this, is below the least loss found: factors
        that held on the workloads on which they were compared, and are proved for none.
    """

    mechanism: str
    unless: Callable[[Facts], str] = lambda _: ""
    limits: Mapping[str, str | float] = field(default_factory=dict)
    far: Mapping[str, str | float] = field(default_factory=dict)
    gap: str = ""
    alone: str = ""
    gain: float | None = None

    @property
    def when(self) -> str:
        """When it is searched, for those who read a choice before it is made."""
        if self.alone:
            return f"alone: {self.alone}"
        if self.gap:
            share = 100 * float(getattr(LIMITS, self.gap))
            return f"unless the best so far is proved within {share:.2g}% of the lower bound"
        if self.gain is not None:
            least = f"{self.gain:g} times the least squared error" if self.gain > 1 else "the least error"
            return f"if a fast trial has less than {least} found"
        return "in any case"

    def refusal(self, facts: Facts) -> tuple[str, str]:
        """Return the status of a candidate that is not tried at first and why; both empty where it is tried.

        The status is ``tried if needed`` where a size leaves it out that is within ``far``.
        """
        why = self.unless(facts)
        if why:
            return "skipped", why
        large = facts.beyond({**self.limits, **self.far}, memory=False)
        beyond = facts.beyond(mechanism_named(self.mechanism).limits)
        if large:  # what it takes if it is asked for by name is worth telling
            return "skipped" if beyond else "too large", large
        if beyond:
            return "too large", beyond
        why = facts.beyond(self.limits, memory=False)
        if why:
            times = f"{1.0 + LIMITS.far:g}"
            why = f"if nothing else is proved within {times} times the lower bound: {why}"
        return ("tried if needed", why) if why else ("", "")


def _no_large_tree(facts: Facts) -> str:
    levels = tree_for(facts.asked)
    large = levels is not None and len(levels.groups[0]) > LIMITS.search_joint_cells
    return "" if large else _no_small_tree(facts) or "few values: compared with residual"


def _no_small_tree(facts: Facts) -> str:
    return (
        ""
        if tree_for(facts.asked) is not None
        else "no attribute of many values whose sets are levels of a tree"
    )


def _no_tree_of_a_product(facts: Facts) -> str:
    levels = tree_for(facts.asked)
    if levels is not None and one_product(facts.asked, levels) is None:
        return "levels ask different queries of other attributes"
    return "" if levels is not None else "no attribute of many values whose sets are levels of a tree"


def _a_product(facts: Facts) -> str:
    return "some attributes do not factor out" if facts.terms.joint else ""


def _joint_small(facts: Facts) -> str:
    return "" if facts.terms.joint else "every attribute factors out"


def _weighted(facts: Facts) -> str:
    if facts.small:
        return "dense is compared: it contains all products"
    return "" if facts.few_products else "it is no sum of a few products on two or three attributes"


def _one_product(facts: Facts) -> str:
    if facts.small:
        return "dense is compared: it contains all products"
    weighted = not _weighted(facts) and facts.size("table") <= LIMITS.max_table_rows
    return "weighted-product is compared: it contains it" if weighted else ""


def _one_attribute(facts: Facts) -> str:
    long = len(facts.terms.sizes) == 1 and facts.terms.sizes[0] > LIMITS.few_values
    return "" if long else f"not one attribute of more than {LIMITS.few_values} values"


def _several_joint(facts: Facts) -> str:
    return "" if len(facts.terms.joint) > 1 else "at most one attribute does not factor out"


def _marginals_of_strategies(facts: Facts) -> str:
    if len(facts.terms.sizes) < 2:
        return "one attribute has one strategy"
    return "only identities and totals are asked: opt-m weights them" if facts.terms.plain() else ""


def _no_walk(facts: Facts) -> str:
    several = len(ordered_axes(facts.terms)) > 1 and not facts.terms.proportional()
    if several:
        return "several attributes are asked in their order, in groups that are not alike"
    return no_walk(facts.asked, facts.noise, facts.terms)


def _no_walk_marginals(facts: Facts) -> str:
    if len(facts.terms.sizes) < 2:
        return "one attribute has one strategy"
    if facts.terms.proportional() and not facts.beyond(mechanism_named("walk").limits):
        return "one product is asked: walk is compared"
    return no_walk(facts.asked, facts.noise, facts.terms)


def _no_radius(facts: Facts) -> str:
    marginals = facts.size("subsets")
    if marginals > LIMITS.radius_marginals:
        return f"marginals in marginals: {marginals}; the limit is {LIMITS.radius_marginals}"
    return no_radius(facts.asked, facts.noise)


def _products(facts: Facts) -> str:
    plain = facts.terms.plain() and not facts.beyond(mechanism_named("opt-m").limits)
    return "opt-m contains the products of identities and totals" if plain else ""


def _several_groups(facts: Facts) -> str:
    return _products(facts) or ("" if len(facts.asked) > 1 else "one group is one product")


#: What is tried, by the norm of the noise, in this order; where rules have a `gain` the most hopeful first.
RULES: dict[int, tuple[Rule, ...]] = {
    2: (
        Rule("tree", unless=_no_large_tree, alone="no other mechanism takes a tree node by node"),
        # one product is measured as it is: its strategy has one part
        Rule("dense", unless=_a_product, alone="no other strategy has less error"),
        Rule("residual"),
        Rule("tree", unless=_no_small_tree, gap="rules_settled"),
        Rule(
            "dense",
            unless=_joint_small,
            limits={"joint": "max_compared_cells", "table": "max_marginal_cells"},
            far={"joint": "far_cells"},
            gap="rules_settled",
        ),
        Rule(
            "weighted-product",
            unless=_weighted,
            limits={"table": "max_table_rows"},
            gap="rules_worthwhile",
        ),
        Rule("opt-kron", unless=_one_product, limits={"table": "max_product_cells"}, gap="rules_worthwhile"),
    ),
    1: (
        Rule("tree", unless=_no_tree_of_a_product),
        Rule("opt-m"),
        Rule("walk", unless=_no_walk, gain=1.02),
        Rule("walk-marginals", unless=_no_walk_marginals, gain=1.05),
        Rule("radius", unless=_no_radius, gain=1.0),
        Rule(
            "opt-kron",
            unless=_one_attribute,
            alone="one attribute has one strategy; its search is local",
        ),
        # one strategy of the table contains all others
        Rule(
            "opt-0",
            unless=_several_joint,
            limits={"searched": "searched_cells", "table": "max_marginal_cells"},
            far={"searched": "far_cells"},
        ),
        Rule("generalized-marginals", unless=_marginals_of_strategies, gain=1.05),
        Rule("opt-plus", unless=_several_groups, gain=1.15),
        Rule("opt-kron", unless=_products, gain=1.15),
    ),
}


def rules_for(noise: Noise) -> tuple[Rule, ...]:
    """Return what is tried under a noise: `RULES`, then the rules of installed packages.

    Raises WorkloadError if an entry point in the group ``matrixdp.candidates`` is no `Rule`.
    """
    theirs = (rule for rule in offered_rules() if noise.norm in mechanism_named(rule.mechanism).norms)
    return (*RULES[noise.norm], *theirs)


@cache
def offered_rules() -> tuple[Rule, ...]:
    """Return the rules of installed packages, which are looked for once in a process."""
    found = []
    for address, rule in values_offered(CANDIDATES).items():
        if not isinstance(rule, Rule):
            raise WorkloadError(f"{CANDIDATES}: {address} is no Rule of a candidate")
        found.append(rule)
    return tuple(found)
