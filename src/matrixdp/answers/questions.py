"""What is asked of a strategy or a release: entries as query groups, and covariances of two queries."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from matrixdp.domain import Domain
from matrixdp.errors import WorkloadError
from matrixdp.plan import Analysis
from matrixdp.queries import Entry, Group
from matrixdp.specification import entry_from_spec

__all__ = ["Question", "covariance", "groups_of", "question"]

Question = Entry | Mapping[str, Any]
"""What ``marginals``, ``kway``, ``product``, ``pairwise`` or ``dense`` return, or a mapping that says so."""


def groups_of(entry: Question, domain: Domain, base_path: str | os.PathLike[str] = ".") -> list[Group]:
    """Return the query groups that an entry stands for."""
    return question(entry, base_path).expand(domain)


def question(entry: Question, base_path: str | os.PathLike[str] = ".") -> Entry:
    """Return the entry that was asked, or that a mapping describes."""
    made = entry_from_spec(entry, base_path, "query") if isinstance(entry, Mapping) else entry
    if not callable(getattr(made, "expand", None)):
        raise WorkloadError(
            f"query: found a {type(entry).__name__}; expected what marginals, kway, product, pairwise or "
            "dense return, or a mapping with the keys of a specification"
        )
    return made


def covariance(
    analysis: Analysis, domain: Domain, left: tuple[Question, int], right: tuple[Question, int]
) -> float:
    """Return the covariance of the estimates of two queries, each a place in the one group of an entry."""
    return analysis.covariance(*_query(analysis, domain, *left), *_query(analysis, domain, *right))


def _query(analysis: Analysis, domain: Domain, entry: Question, query: int) -> tuple[Group, int]:
    groups = groups_of(entry, domain)
    if len(groups) != 1:
        raise WorkloadError(f"covariance: found an entry of {len(groups)} groups; expected one group")
    [group] = groups
    if isinstance(query, bool) or not hasattr(query, "__index__") or not 0 <= int(query) < group.queries:
        raise WorkloadError(
            f"covariance: found query {query!r}; expected 0 to {group.queries - 1} of {group.name}"
        )
    analysis.check_support(group)
    return group, int(query)
