"""A workload: query groups over a domain."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import Any, Protocol, Self, final

import numpy as np

from matrixdp.display import MAX_ROWS, Displayed, Preview, counted, listed, shown_text
from matrixdp.domain import Domain
from matrixdp.errors import EntryError, WorkloadError, placed, within
from matrixdp.exact.resources import rare_collections
from matrixdp.forms import (
    AnyOf,
    FormError,
    MappingOf,
    Record,
    RecordForm,
    as_written,
    key,
    number,
    record,
    unknown_name,
)
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


# Targets: the largest standard error that the queries of a group may have, or the figures of a statistic.


@final
@record
class Figures(Record):
    """Which figures a target is about, by what is public of them."""

    records_above: float = key(number("a number of records above 0", above=0), about="of so many records")
    mean_above: float | None = key(
        number("a number above 0, in the unit of the attribute", above=0),
        default=None,
        about="of means: of at least so much",
    )


@final
@record
class FigureTarget(Record):
    """The precision that figures of at least so many records have."""

    cv: float | None = key(
        number("a number above 0, such as 0.15", above=0),
        default=None,
        about="the largest coefficient of variation: the standard error over the figure",
    )
    stddev: float | None = key(
        number("a finite number above 0", above=0),
        default=None,
        about="the largest standard error of a mean or a share",
    )
    of: Figures = key(RecordForm(Figures), name="for", missing="{records_above: 200}, or another number")

    def check(self) -> None:
        """Check that one of both is bounded."""
        if (self.cv is None) == (self.stddev is None):
            code = "missing-key" if self.cv is None else "conflict"
            found = "neither" if self.cv is None else "both"
            raise FormError.at((), found, "one of cv and stddev", code=code)
        if self.of.mean_above is not None and self.cv is None:
            expected = "it beside cv; a standard error is the same for every mean"
            raise FormError.at(("for", "mean_above"), "it beside stddev", expected, code="conflict")

    @property
    def most(self) -> float:
        """The largest coefficient of variation, or the largest standard error."""
        return float(self.stddev if self.cv is None else self.cv)  # type: ignore[arg-type]  # one is given


Target = float | FigureTarget
Targets = Mapping[str, Any]
"""Targets by what they are about, as they are read or written: numbers, or mappings."""
TARGETS: MappingOf[Target] = MappingOf(
    AnyOf(
        ((lambda said: isinstance(said, Mapping | FigureTarget), RecordForm(FigureTarget)),),
        number("a finite number above 0, in records", above=0),
    ),
    "{group: standard error, ...}",
    named="the name of a group",
    least=1,
)
"""The form of targets."""

EVERY_GROUP = "all"
"""The name that stands for all groups without a target of their own."""


@final
@dataclass(frozen=True, eq=False)
class Precision:
    """What gives figures X / N a target: bounds on the standard errors of X - r N, for some ratios r.

    Attributes
    ----------
    left, right : Group
        X and N: one query, or as many as X has.
    limits : tuple of (float, float)
        Ratios r, each with the largest standard error of X - r N.
    planned : tuple of (Group, float)
        Query groups with standard errors that come near: what is selected for.
    slack : float
        How many times these errors the groups can have and still meet the bounds.
    """

    left: Group
    right: Group
    limits: tuple[tuple[float, float], ...]
    planned: tuple[tuple[Group, float], ...]
    slack: float = 1.0


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


def group_targets(workload: Workload, targets: Targets) -> list[float | None]:
    """Return the largest standard error of every group, None for those without a target.

    Those of statistics are `figure_targets`.

    Examples
    --------
    >>> import matrixdp as mdp
    >>> workload = mdp.Workload(mdp.Domain({"sex": 2, "age": 5}), mdp.marginals([0, 1]))
    >>> [group.name for group in workload], group_targets(workload, {"age": 3.0})
    (['total', 'sex', 'age'], [None, None, 3.0])
    """
    places: dict[str, list[int]] = {}
    for entry, own in zip(workload.entries, workload.places, strict=True):
        name = getattr(entry, "name", None)
        if name is not None and len(own) > 1:
            places.setdefault(name, []).extend(own)
        for place in own:
            places.setdefault(workload.groups[place].name, []).append(place)
    found: list[float | None] = [None] * len(workload)
    figures = figure_targets(workload, targets)
    bounds = {name: own for name, own in _read(targets).items() if name not in figures}
    for name, target in bounds.items():
        if name not in places and name != EVERY_GROUP:
            expected = f"a group's name as `select --all` shows it, the name of an entry, or {EVERY_GROUP}"
            told = "no query group of that name"
            raise EntryError(unknown_name(("targets", name), name, expected, places, told))
        for place in places.get(name, []):
            bound, known = _of_group(workload.groups[place], name, target), found[place]
            found[place] = bound if known is None else min(known, bound)
    if EVERY_GROUP in bounds and EVERY_GROUP not in places:
        for place, group in enumerate(workload.groups):
            if found[place] is None and largest_value(group) is None:
                found[place] = _of_group(group, EVERY_GROUP, bounds[EVERY_GROUP])
    if not any(found) and not figures:
        expected = "names of groups, as none counts records"
        raise EntryError.at(("targets",), f"{EVERY_GROUP} alone", expected, code="not-supported")
    return found


def _read(targets: Targets) -> Mapping[str, Target]:
    try:
        return TARGETS.read(targets, as_written)
    except FormError as error:
        raise EntryError(placed(error, "targets").problem or "", code=error.code) from None


def _of_group(group: Group, name: str, target: Target) -> float:
    """Return the largest standard error of counts of at least so many records."""
    if not isinstance(target, FigureTarget):
        return target
    if target.cv is None or target.of.mean_above is not None or largest_value(group):
        found = "a sum of values" if largest_value(group) else "stddev or mean_above for counts"
        expected = "{cv: 0.15, for: {records_above: 200}} for counts, or a standard error as a number"
        raise EntryError.at(("targets", name), found, expected, code="not-supported")
    return target.cv * target.of.records_above


def as_plain(targets: Targets | None) -> dict[str, object]:
    """Return targets as JSON has them.

    Examples
    --------
    >>> as_plain({"age": 3})
    {'age': 3.0}
    """
    return TARGETS.write(_read(targets)) if targets is not None else {}


def figure_targets(workload: Workload, targets: Targets) -> dict[str, tuple[FigureTarget, Precision]]:
    """Return the targets of statistics by their names, and what gives their figures these.

    Examples
    --------
    >>> import matrixdp as mdp
    >>> workload = mdp.Workload(mdp.Domain({"age": range(11)}), mdp.ask.mean("age", name="mean age"))
    >>> target = {"stddev": 0.2, "for": {"records_above": 100}}
    >>> [(_, precision)] = figure_targets(workload, {"mean age": target}).values()
    >>> precision.limits  # the sum of how far ages are from 5, less -5 or 5 a record
    ((-5.0, 20.0), (5.0, 20.0))
    """
    computed: dict[str, tuple[Any, range]] = {
        str(getattr(entry, "name", None)): (entry, own)
        for entry, own in zip(workload.entries, workload.places, strict=True)
        if getattr(entry, "name", None) is not None and not getattr(entry, "direct", True)
    }
    found = {}
    for name, target in _read(targets).items():
        if name not in computed:
            continue
        entry, own = computed[name]
        with within("targets", name):
            if not isinstance(target, FigureTarget):
                of_it = ", ".join(repr(workload.groups[place].name) for place in own)
                known = "{stddev: 0.2, for: {records_above: 1000}} for a mean or a share"
                expected = f"{known}; or numbers for its counts and sums, {of_it}"
                raise EntryError.at((), "a number for a statistic", expected, code="not-supported")
            found[name] = target, entry.precision(workload.domain, target)
    return found
