"""A workload: query groups over a domain."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import Protocol, Self

import numpy as np

from matrixdp.display import MAX_ROWS, Displayed, Preview, counted, listed, shown_text
from matrixdp.domain import Domain
from matrixdp.errors import EntryError, WorkloadError, placed, within
from matrixdp.exact.resources import rare_collections
from matrixdp.forms import FormError, as_written, describe_value, number, unknown_name
from matrixdp.queries.groups import Group
from matrixdp.queries.predicates import Matrix
from matrixdp.queries.structured import Labelled

#: With more queries than this a release has its measurement alone, unless the caller says otherwise.
MAX_ANSWERS = 50_000_000
#: By how much shares may miss their sum.
_ROUNDING = 1e-9


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
    entries : tuple of Entry
        What is asked. SQL that asks statistics stands for one entry for each of them.
    groups : tuple of Group
        The groups of all entries.
    places : tuple of range
        For each entry the places of its groups.
    factors : tuple of float
        For each entry what the weights of its groups were multiplied by; see `reweighted`.

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
    factors: tuple[float, ...]

    @rare_collections()
    def __init__(self, domain: Domain, *entries: Entry) -> None:
        groups: list[Group] = []
        places: list[range] = []
        asked: list[Entry] = []
        for position, entry in enumerate(entries):
            if not hasattr(entry, "expand"):
                listed = "; write Workload(domain, *entries)" if isinstance(entry, list | tuple) else ""
                expected = f"expected what marginals, kway, product or another builder returns{listed}"
                raise WorkloadError(f"workload: found a {type(entry).__name__}; {expected}")
            with within("workload", position):
                # SQL that asks statistics stands for several entries
                for part in entry.split(domain) if hasattr(entry, "split") else [entry]:
                    groups += part.expand(domain)
                    places.append(range(places[-1].stop if places else 0, len(groups)))
                    asked.append(part)
        if not groups:
            told = "workload: found no queries; expected at least one entry that asks something"
            raise WorkloadError(told, code="empty")
        object.__setattr__(self, "domain", domain)
        object.__setattr__(self, "entries", tuple(asked))
        object.__setattr__(self, "groups", tuple(groups))
        object.__setattr__(self, "places", tuple(places))
        object.__setattr__(self, "factors", (1.0,) * len(asked))

    def reweighted(self, factors: Sequence[float]) -> Self:
        """Return the same workload with the weights of each entry multiplied by a factor.

        Examples
        --------
        >>> from matrixdp.language import marginals
        >>> workload = Workload(Domain({"sex": 2}), marginals(0), marginals(1, weight=3)).reweighted([1, 2])
        >>> [group.weight for group in workload]
        [1.0, 6.0]
        """
        made = copy(self)
        groups = [
            replace(group, weight=group.weight * factor)
            for places, factor in zip(self.places, factors, strict=True)
            for group in self.groups[places.start : places.stop]
        ]
        object.__setattr__(made, "groups", tuple(groups))
        known = zip(self.factors, factors, strict=True)
        object.__setattr__(made, "factors", tuple(own * more for own, more in known))
        return made

    def in_language(self, language: str | None) -> Self:
        """Return the same workload with texts in a language; None for the first of each."""
        made = copy(self)
        object.__setattr__(made, "domain", self.domain.in_language(language))
        return made

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


def check_names(workload: Workload) -> None:
    """Reject a name that a user gave to a table where another table has it too.

    Raises
    ------
    EntryError
        If there is one.
    """
    owners: dict[str, list[int]] = {}
    for position, (entry, places) in enumerate(zip(workload.entries, workload.places, strict=True)):
        label = getattr(entry, "label", None)
        names = {workload.groups[place].name for place in places} if label is None else {label}
        for name in names:
            owners.setdefault(name, []).append(position)
    for name, positions in owners.items():
        given = [one for one in positions if getattr(workload.entries[one], "name", None) is not None]
        if given and len(positions) > 1:
            [other, *_] = [one for one in positions if one != given[-1]]
            found = f"{name!r}, which is what a table of workload[{other}] is called"
            path = ("workload", given[-1], "name")
            raise EntryError.at(path, found, "a name that no other table has", code="duplicate")


# Shares of the privacy cost that entries ask for.


def budget_shares(workload: Workload, beside: Mapping[str, object] | None = None) -> list[float | None]:
    """Return the share of the privacy cost that each entry asks for, None for those without.

    Raises
    ------
    EntryError
        If all cannot have theirs together, or what does not go with shares is asked for `beside` them.

    Examples
    --------
    >>> from matrixdp.language import marginals
    >>> budget_shares(Workload(Domain({"sex": 2}), marginals(0), marginals(1, budget_share=0.4)))
    [None, 0.4]
    """
    shares = [getattr(entry, "budget_share", None) for entry in workload.entries]
    asked = [place for place, share in enumerate(shares) if share is not None]
    if not asked:
        return shares
    path = ("workload", asked[-1], "budget_share")
    for name, said in (beside or {}).items():
        if said:
            first = ("workload", asked[0], "budget_share")
            raise EntryError.at(first, f"a share beside {name}", "one of them, or a weight", code="conflict")
    together, whole = math.fsum(shares[place] or 0.0 for place in asked), len(asked) == len(shares)
    expected = "1, as every entry has one" if whole else "less than 1, as other entries share the rest"
    if together > 1.0 + _ROUNDING or (abs(together - 1.0) <= _ROUNDING) != whole:
        raise EntryError.at(path, f"shares of {together:.6g} together", expected, code="out-of-range")
    return shares


# Target errors: the largest standard error that the queries of a group may have.

EVERY_GROUP = "all"
"""The name that stands for all groups without a target of their own."""
_TARGET = number("a finite number above 0, in records", above=0)


def largest_value(group: Group) -> float | None:
    """Return the largest value that a group adds up, in absolute value; None if it counts records.

    Examples
    --------
    >>> import matrixdp as mdp
    >>> workload = mdp.Workload(mdp.Domain({"age": range(20)}), mdp.ask.mean("age"))
    >>> [(group.name, largest_value(group)) for group in workload]
    [('sum of age less 9.5', 9.5), ('total', None)]
    """
    sets = [own.predicates for own in getattr(group, "predicates", ()) if isinstance(own, Labelled)]
    values = [float(np.abs(own.matrix).max()) for own in sets if isinstance(own, Matrix)]
    return math.prod(values) if values else None


def group_targets(workload: Workload, targets: Mapping[str, float]) -> list[float | None]:
    """Return the target of every group, None for those without.

    Examples
    --------
    >>> import matrixdp as mdp
    >>> workload = mdp.Workload(mdp.Domain({"sex": 2, "age": 5}), mdp.marginals([0, 1]))
    >>> [group.name for group in workload], group_targets(workload, {"age": 3.0})
    (['total', 'sex', 'age'], [None, None, 3.0])
    """
    places: dict[str, list[int]] = {}
    computed: dict[str, range] = {}
    for entry, own in zip(workload.entries, workload.places, strict=True):
        name = getattr(entry, "name", None)
        if name is not None and not getattr(entry, "direct", True):
            computed[name] = own
        if name is not None and len(own) > 1:
            places.setdefault(name, []).extend(own)
        for place in own:
            places.setdefault(workload.groups[place].name, []).append(place)
    found: list[float | None] = [None] * len(workload)
    if not isinstance(targets, Mapping) or not targets:
        empty = isinstance(targets, Mapping)
        told, code = ("none", "empty") if empty else (describe_value(targets), "wrong-type")
        raise EntryError.at(("targets",), told, "{group: standard error, ...}", code=code)
    for name, target in targets.items():
        try:
            _TARGET.read(target, as_written)
        except FormError as error:
            raise EntryError(placed(error, "targets", name).problem or "", code=error.code) from None
        if name not in places and name != EVERY_GROUP:
            expected = f"a group's name as `select --all` shows it, the name of an entry, or {EVERY_GROUP}"
            told = "no query group of that name"
            raise EntryError(unknown_name(("targets", name), name, expected, places, told))
        if name in computed:
            of_it = [repr(workload.groups[place].name) for place in computed[name]]
            expected = f"its groups, each with a standard error of its own: {', '.join(of_it)}"
            expected = expected if len(of_it) > 1 else "an entry of counts, such as a cdf, or a sum"
            raise EntryError.at(("targets", name), "a statistic", expected, code="not-supported")
        for place in places.get(name, []):
            known = found[place]
            found[place] = float(target) if known is None else min(known, float(target))
    if EVERY_GROUP in targets and EVERY_GROUP not in places:
        for place, group in enumerate(workload.groups):
            if found[place] is None and largest_value(group) is None:
                found[place] = float(targets[EVERY_GROUP])
    if not any(found):
        expected = "names of groups, as none counts records"
        raise EntryError.at(("targets",), f"{EVERY_GROUP} alone", expected, code="not-supported")
    return found
