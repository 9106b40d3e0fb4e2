"""A workload: query groups over a domain."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from matrixdp.display import MAX_ROWS, Displayed, Preview, counted, listed, shown_text
from matrixdp.domain import Domain
from matrixdp.errors import WorkloadError, within
from matrixdp.queries.groups import Group

__all__ = ["Entry", "Workload"]


class Entry(Protocol):
    """One entry of a workload, which a domain turns into query groups."""

    def expand(self, domain: Domain) -> list[Group]:
        """Return the query groups that the entry stands for.

        Parameters
        ----------
        domain : Domain
            The attributes.

        Raises
        ------
        WorkloadError
            If the entry does not fit the domain.
        """
        ...

    def to_spec(self) -> dict[str, object]:
        """Return the entry as a mapping with the keys of a specification, arrays as lists."""
        ...


@dataclass(frozen=True, init=False, eq=False, repr=False)
class Workload(Displayed):
    """Query groups over a domain; a repeated query counts as often as it stands.

    Parameters
    ----------
    domain : Domain
        The attributes.
    *entries : Entry
        ``marginals``, ``kway``, ``product``, ``pairwise``, ``dense``, ``disjunction`` or ``cells`` entries.

    Attributes
    ----------
    groups : tuple of Group
        The groups of all entries.
    places : tuple of range
        For each entry the places of its groups.

    Raises
    ------
    WorkloadError
        If there is no query at all, or an entry does not fit the domain.

    Examples
    --------
    >>> from matrixdp.language import marginals, product
    >>> domain = Domain({"sex": ["female", "male"], "age": range(115)})
    >>> workload = Workload(domain, marginals(2), product(sex="identity", age="prefix"))
    >>> [group.name for group in workload], workload.queries
    (['sex, age', 'sex, age: identity x prefix'], 460)
    """

    domain: Domain
    entries: tuple[Entry, ...]
    groups: tuple[Group, ...]
    places: tuple[range, ...]

    def __init__(self, domain: Domain, *entries: Entry) -> None:
        groups: list[Group] = []
        places: list[range] = []
        for position, entry in enumerate(entries):
            if not hasattr(entry, "expand"):
                listed = "; write Workload(domain, *entries)" if isinstance(entry, list | tuple) else ""
                raise WorkloadError(
                    f"workload: found a {type(entry).__name__}; expected what marginals, kway, product or "
                    f"another builder returns{listed}"
                )
            with within("workload", position):
                groups += entry.expand(domain)
            places.append(range(places[-1].stop if places else 0, len(groups)))
        if not groups:
            raise WorkloadError("workload: found no queries; expected at least one entry that asks something")
        object.__setattr__(self, "domain", domain)
        object.__setattr__(self, "entries", entries)
        object.__setattr__(self, "groups", tuple(groups))
        object.__setattr__(self, "places", tuple(places))

    @property
    def queries(self) -> int:
        """The number of queries."""
        return sum(group.queries for group in self.groups)

    def __iter__(self) -> Iterator[Group]:
        return iter(self.groups)

    def __len__(self) -> int:
        return len(self.groups)

    def _lines(self) -> tuple[str, str]:
        number = len(self.groups)
        queries, over = counted(self.queries, "query", "queries"), counted(len(self.domain), "attribute")
        first = f"Workload of {queries} in {counted(number, 'group')}, over {over}"
        return first, listed((f"{shown_text(g.name)} ({g.queries:,})" for g in self.groups), number)

    def _preview(self) -> Preview:
        rows = [
            (g.name, ", ".join(g.attributes) or "(none)", f"{g.queries:,}", f"{g.weight:g}")
            for g in self.groups[:MAX_ROWS]
        ]
        columns = ("group", "attributes", "queries", "weight")
        return Preview(columns, rows, len(self.groups), frozenset((2, 3)))
