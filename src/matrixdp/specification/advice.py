"""Likely mistakes of a specification, told before anything is spent."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator

from matrixdp.domain import Bins, Dates, Domain, Integers, OutOfDomain
from matrixdp.domain.rules import number_text
from matrixdp.privacy import delta_warnings
from matrixdp.privacy.budget import DEFAULT_MAX_RECORDS, weak_privacy
from matrixdp.specification.load import Specification
from matrixdp.specification.names import is_code, is_identifier
from matrixdp.statistics.attributes import MeanEntry, SumEntry

#: Parts of dates that come again and again.
_CYCLES = ("hour", "weekday")
#: From this many values on, an attribute with a sum or a mean should be an amount.
_MANY_VALUES = 1_000
#: From this many values on, an attribute with the name of an identifier is one.
_MANY_IDENTIFIERS = 100


def advice(written: Specification, expect: int | None = None) -> tuple[str, ...]:
    """Return likely mistakes of a specification, in its domain and in its budget, in sentences.

    Parameters
    ----------
    written : Specification
    expect : int, optional
        How many records the table should have, a public figure; `max_records` stands for it where it is set.

    Examples
    --------
    >>> import matrixdp as mdp
    >>> asked = {"domain": {"sex": ["f"]}, "workload": [{"marginals": [1]}], "privacy": {"mu": 1}}
    >>> print(*mdp.advice(mdp.load_specification(asked)))
    domain.sex: 'f' is the only value; every record with another one is out of domain
    """
    budget = written.reference_budget
    own = (
        () if budget is None else (*delta_warnings(budget, declared(written, expect)), *weak_privacy(budget))
    )
    found = _domain_warnings(written.domain, written.out_of_domain)
    return (*found, *_names(written), *_amounts(written), *_order(written), *own)


def declared(written: Specification, expect: int | None = None) -> int | None:
    """Return how many records there are at most, as far as that is public."""
    return expect or (None if written.max_records == DEFAULT_MAX_RECORDS else written.max_records)


def _names(written: Specification) -> Iterator[str]:
    """Yield which attributes are identifiers, or codes that are read as numbers, by their names."""
    for attribute in written.domain.attributes:
        place, name = f"domain.{attribute.name}", attribute.column
        if attribute.codebook.derivation is not None:
            continue
        if is_identifier(name) and attribute.size > _MANY_IDENTIFIERS:
            told = f"{attribute.size:,} values of an identifier, by its name, are nearly all noise"
            yield f"{place}: {told}; leave it out, or name it in `unit: {{id: {name}, max_records: N}}`"
        elif is_code(name) and isinstance(attribute, Bins | Integers):
            yield f"{place}: codes, by its name, are read as numbers; list them, [code, ...], or group them"


def _order(written: Specification) -> Iterator[str]:
    """Yield why counts over time fall where only the first records of a person count."""
    dates = [own.name for own in written.domain if isinstance(own, Dates) and own.by not in _CYCLES]
    asked = {name for group in written.workload for name in group.attributes}
    if written.unit.id is None or written.unit.per or not asked & set(dates):
        return
    [first, *_] = [name for name in dates if name in asked]
    yield (
        f"unit: of each person the first {written.unit.records} in the order of the table count; if that is "
        f"the order of {first}, later ones are missing: add `per: {first}`, or shuffle the table once"
    )


def _amounts(written: Specification) -> Iterator[str]:
    """Yield which attributes should be amounts: sums and means of them are asked."""
    asked = (entry.attribute for entry in written.workload.entries if isinstance(entry, SumEntry | MeanEntry))
    for name in dict.fromkeys(asked):
        attribute = written.domain[name]
        if isinstance(attribute, Bins) and all(map(math.isfinite, attribute.edges)):
            ends, why = (attribute.edges[0], attribute.edges[-1]), "its sum is by the middles of bins"
        elif isinstance(attribute, Integers) and attribute.size > _MANY_VALUES:
            ends, why = (attribute.minimum, attribute.maximum), f"it has {attribute.size:,} values"
        else:
            continue
        amount = f"{{amount: [{', '.join(map(number_text, ends))}]}}"
        yield f"domain.{name}: {why}; {amount} gives exact sums and means with two values"


def _domain_warnings(domain: Domain, rule: OutOfDomain) -> Iterator[str]:
    read = [attribute for attribute in domain.attributes if attribute.codebook.derivation is None]
    for attribute in read:
        if attribute.size - (attribute.null_code is not None) == 1:
            only = f"{attribute.label(0)!r} is the only value"
            becomes = "is out of domain" if rule.code(attribute.name) is None else "counts as it"
            yield f"domain.{attribute.name}: {only}; every record with another one {becomes}"
    whole = [attribute for attribute in read if not attribute.divided]
    for column, times in Counter(attribute.column for attribute in whole).items():
        if times > 1:
            names = ", ".join(attribute.name for attribute in whole if attribute.column == column)
            told = "which no rule relates: make a coarser one a level of the other"
            yield f"domain: {names} read one column, {column!r}, {told}"
