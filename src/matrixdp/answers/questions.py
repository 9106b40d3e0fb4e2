"""What is asked of a strategy or a release: entries as query groups, and covariances of two queries."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import combinations
from typing import Any

from matrixdp.answers.titles import head
from matrixdp.domain import Domain
from matrixdp.errors import UnsupportedQueryError, WorkloadError, within
from matrixdp.forms import describe_value
from matrixdp.language.entries import one_group
from matrixdp.plans import Analysis
from matrixdp.queries import Entry, Group, ProductGroup, Workload
from matrixdp.queries.groups import asked_attributes, over
from matrixdp.specification import entry_from_spec

Question = Entry | Mapping[str, Any]
"""What ``marginals``, ``kway``, ``product``, ``pairwise`` or ``dense`` return, or a mapping that says so."""


def question(entry: Question, base_path: str | os.PathLike[str] = ".") -> Entry:
    """Return the entry that was asked, or that a mapping describes."""
    made = entry_from_spec(entry, base_path, "query") if isinstance(entry, Mapping) else entry
    if not callable(getattr(made, "expand", None)):
        expected = "an entry, as `marginals` or `product` return, or a mapping with its keys"
        raise WorkloadError.at(("query",), describe_value(entry), expected, code="wrong-type")
    return made


def covariance(
    analysis: Analysis, domain: Domain, left: tuple[Question, int], right: tuple[Question, int]
) -> float:
    """Return the covariance of the estimates of two queries, each a place in the one group of an entry."""
    return analysis.covariance(*_query(analysis, domain, *left), *_query(analysis, domain, *right))


def _query(analysis: Analysis, domain: Domain, entry: Question, query: int) -> tuple[Group, int]:
    with within("covariance"):
        group = one_group(question(entry), domain)
        if isinstance(query, bool) or not hasattr(query, "__index__") or not 0 <= int(query) < group.queries:
            expected = f"0 to {group.queries - 1} of {group.name}"
            raise WorkloadError.at((), f"query {query!r}", expected, code="out-of-range")
    analysis.check_support(group)
    return group, int(query)


# What to ask in the place of a query that was not measured, and what to measure to have it.

#: Attributes of a query up to which what is left of it without some is looked for; and how many are named.
_MOST_ATTRIBUTES = 10
_MOST_NAMED = 3
#: Entries of explicit queries that are written out over more attributes.
_MOST_ENTRIES = 20_000_000


@contextmanager
def advised(analysis: Analysis, workload: Workload, groups: Sequence[Group]) -> Iterator[None]:
    """Let a refusal of queries that were not measured say what works now, and what to add to the workload.

    Parameters
    ----------
    analysis : Analysis
        What decides whether a query is determined.
    workload : Workload
        What was measured for.
    groups : sequence of Group
        What is asked inside.
    """
    try:
        yield
    except UnsupportedQueryError as error:
        if error.code == "not-yet":
            raise  # what to do is to wait
        refused = next((group for group in groups if not determines(analysis, group)), None)
        advice = ""
        if refused is not None:
            advice = f". {_nearest(analysis, workload, refused)}{_to_add(workload, refused)}"
        raise UnsupportedQueryError(f"{error}{advice}") from None


def embed(analysis: Analysis, workload: Workload, group: Group) -> Group:
    """Return a group that asks the same, as the total over further attributes where that alone is determined.

    A plan may hold an attribute whole: then what does not ask about it is the sum over the marginals that
    have it, as over sex in sex by code.
    """
    if group.query_weights is not None or determines(analysis, group):
        return group
    known, domain = set(group.attributes), workload.domain
    wider = {other.attributes for other in workload if known < set(other.attributes)}
    for names in sorted(wider, key=lambda names: (domain.cells(names), names)):
        sizes = tuple(domain[name].size for name in names)
        if isinstance(group, ProductGroup) or group.queries * math.prod(sizes) <= _MOST_ENTRIES:
            same = over(group, names, sizes)
            if determines(analysis, same):
                return same
    return group


def determines(analysis: Analysis, group: Group) -> bool:
    """Return whether a measurement determines every query of a group."""
    try:
        analysis.check_support(group)
    except UnsupportedQueryError:
        return False
    return True


def _nearest(analysis: Analysis, workload: Workload, group: Group) -> str:
    """Return what works now: the query without as few attributes as can be, else a group of the workload."""
    asked = asked_attributes(group)
    if isinstance(group, ProductGroup) and len(asked) <= _MOST_ATTRIBUTES:
        for left_out in range(1, len(asked)):
            found = [
                without
                for without in combinations(asked, left_out)
                if determines(analysis, _narrowed(group, [name for name in asked if name not in without]))
            ]
            if found:
                named = " or ".join(f"without {', '.join(names)}" for names in found[:_MOST_NAMED])
                return f"What works now: the same {named}. "
    # the first of those that share most with it, and ask least beside
    own = set(asked)
    beside = [(-len(own & set(other.attributes)), len(set(other.attributes) - own)) for other in workload]
    near = workload.groups[beside.index(min(beside))]
    return f"What works now: what the workload asks, such as {near.name!r}. "


def _narrowed(group: ProductGroup, names: Sequence[str]) -> ProductGroup:
    """Return a product asked of some of its attributes alone; the others are totals."""
    sizes = dict(zip(group.attributes, group.sizes, strict=True))
    predicates = tuple(group.sets[name] for name in names)
    return ProductGroup(group.name, tuple(names), predicates, tuple(sizes[name] for name in names))


def _to_add(workload: Workload, group: Group) -> str:
    asked = asked_attributes(group)
    if isinstance(group, ProductGroup):  # a level is coarser, so cheaper to measure
        heads = {name: head(workload.domain[name], (group.sets[name],)) for name in asked}
        asked = tuple(own if own in workload.domain.levels else name for name, own in heads.items())
    names = ", ".join(asked)
    marginals = f"`marginals: [[{names}]]`" if names else "`marginals: 0`"
    return f"To have it in a later release, add {marginals} to its workload, or the query itself"
