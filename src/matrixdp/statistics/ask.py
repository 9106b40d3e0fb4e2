"""The Python face of statistics in workloads: one function for each, with the names of a release's methods.

Every function returns an entry for a `Workload`, whose release then has the statistic under `statistics`, and
raises `EntryError` where an argument is wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar, Unpack

from matrixdp.language.builders import Options
from matrixdp.statistics.attributes import (
    QUARTILES,
    CdfEntry,
    MeanEntry,
    QuantileEntry,
    SumEntry,
    TopEntry,
    VarianceEntry,
)
from matrixdp.statistics.counts import (
    CombinationEntry,
    DifferenceEntry,
    PercentChangeEntry,
    RatioEntry,
    ShareEntry,
    SimultaneousEntry,
)
from matrixdp.statistics.statistic import StatisticEntry, statistics

By = str | Iterable[str] | Mapping[str, Any]
"""Attributes whose values are the strata, or a mapping of attributes to predicate sets."""
Where = Mapping[str, Any] | None
"""A mapping of attributes to a value, a list of values, or ``{"range": [first, last]}``."""
E = TypeVar("E", bound=StatisticEntry)

Question = Any
"""What ``marginals``, ``product`` or another builder returns, or a mapping that says so."""


class Records(Options, total=False):
    """Which records statistics of an attribute are about, and what every entry takes.

    Attributes
    ----------
    by : list of str, or mapping
        Attributes or levels, or predicate sets of attributes: the statistic is asked for each combination.
    where : mapping
        Other attributes, each with the value, the list of values, or the range ``{"range": [first, last]}``
        that a record must have.
    """

    by: By
    where: Where


def __getattr__(name: str) -> Callable[..., StatisticEntry]:
    """Return the function of a statistic that has none of its own below: what it asks, and options."""
    if name not in statistics():
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return lambda asked, **options: statistics()[name].read({name: asked} | options)


def _of_one(attribute: object, asked: object) -> object:
    """Anything but a name is passed on, for the form to reject."""
    return {attribute: asked} if isinstance(attribute, str) else attribute


def _listed(given: object) -> object:
    """Turn any iterable of names into a list."""
    return given if isinstance(given, str | Mapping) or not isinstance(given, Iterable) else list(given)


def _read(form: type[E], asked: object, records: Mapping[str, Any]) -> E:
    return form.read({form.main_key(): asked, **records, "by": _listed(records.get("by", ()))})


def quantile(
    attribute: str, q: float | Sequence[float] = QUARTILES, **records: Unpack[Records]
) -> QuantileEntry:
    """Return an entry that asks for quantiles of a numeric attribute.

    It stands for the counts up to each value.

    Parameters
    ----------
    attribute : str
        A numeric attribute.
    q : float or list of float
        Above 0 and below 1; the quartiles where it is left out.
    **records : Records
        ``by``, ``where``, and the weight and the name of an entry.

    Examples
    --------
    >>> from matrixdp.domain import Domain
    >>> domain = Domain({"sex": ["female", "male"], "age": range(115)})
    >>> entry = quantile("age", 0.5, by=["sex"])
    >>> entry.label, [(group.name, group.queries) for group in entry.expand(domain)]
    ('median of age by sex', [('sex, age: identity x prefix', 230)])
    """
    return _read(QuantileEntry, _of_one(attribute, _listed(q)), records)


def cdf(attribute: str, **records: Unpack[Records]) -> CdfEntry:
    """Return an entry that asks how many records, and which share, are at most each value of an attribute.

    Parameters
    ----------
    attribute : str
        A numeric attribute.
    **records : Records
        ``by``, ``where``, and the weight and the name of an entry.

    Examples
    --------
    >>> cdf("age", where={"sex": "female"}).label
    'CDF of age where sex female'
    """
    return _read(CdfEntry, attribute, records)


def mean(attribute: str, **records: Unpack[Records]) -> MeanEntry:
    """Return an entry that asks for the mean of an attribute of numbers.

    It stands for the sum of the values, less the middle of the domain, and for the count.

    Parameters
    ----------
    attribute : str
        An attribute of integers, codes or bins with ends, for which their middles stand.
    **records : Records
        ``by``, ``where``, and the weight and the name of an entry.

    Examples
    --------
    >>> from matrixdp.domain import Domain
    >>> [group.name for group in mean("age").expand(Domain({"age": range(101)}))]
    ['sum of age less 50', 'total']
    """
    return _read(MeanEntry, attribute, records)


def variance(attribute: str, **records: Unpack[Records]) -> VarianceEntry:
    """Return an entry that asks for the variance of an attribute of numbers.

    Parameters
    ----------
    attribute : str
        An attribute of integers or codes, or an amount with squares.
    **records : Records
        ``by``, ``where``, and the weight and the name of an entry.

    Examples
    --------
    >>> from matrixdp.domain import Domain
    >>> [group.name for group in variance("age").expand(Domain({"age": range(101)}))]
    ['sum of (age less 50) / 50', 'sum of squares of (age less 50) / 50', 'total']
    """
    return _read(VarianceEntry, attribute, records)


def sum(attribute: str, **records: Unpack[Records]) -> SumEntry:  # noqa: A001 - the method's name
    """Return an entry that asks for the sum of an attribute of numbers.

    Of bins it stands for the sums of their lower and upper ends too, between which the sum lies.

    Parameters
    ----------
    attribute : str
        An attribute of integers, codes or bins with ends, for which their middles stand.
    **records : Records
        ``by``, ``where``, and the weight and the name of an entry.

    Examples
    --------
    >>> sum("hours", by=["sex"]).label
    'sum of hours by sex'
    """
    return _read(SumEntry, attribute, records)


def top(attribute: str, k: int, **records: Unpack[Records]) -> TopEntry:
    """Return an entry that asks which values of an attribute most records have.

    Parameters
    ----------
    attribute : str
        Any attribute.
    k : int
        How many values.
    **records : Records
        ``by``, ``where``, and the weight and the name of an entry.

    Examples
    --------
    >>> top("city", 3).label
    'top 3 of city'
    """
    return _read(TopEntry, _of_one(attribute, k), records)


def share(entry: Question, *, of: Question = None, **options: Unpack[Options]) -> ShareEntry:
    """Return an entry that asks for counts as shares.

    Parameters
    ----------
    entry : Entry or mapping
        The counts.
    of : list of str, Entry or mapping, optional
        What they are divided by: the counts of some of the entry's attributes, or of another entry; all
        records where it is left out.
    **options : Options
        The weight, the weights and the name.

    Examples
    --------
    >>> from matrixdp.domain import Domain
    >>> domain = Domain({"sex": ["female", "male"], "age": range(115)})
    >>> entry = share({"marginals": [["sex", "age"]]}, of=["sex"])
    >>> [group.name for group in entry.expand(domain)]
    ['sex, age', 'sex']
    """
    listed = [of] if isinstance(of, str) else _listed(of)
    return ShareEntry.read({"share": entry, "of": listed} | options)


def ratio(numerator: Question, denominator: Question, **options: Unpack[Options]) -> RatioEntry:
    """Return an entry that asks for the counts of an entry over those of another.

    Parameters
    ----------
    numerator, denominator : Entry or mapping
        Of as many queries, or the denominator of one.
    **options : Options
        The weight, the weights and the name.

    Examples
    --------
    >>> ratio({"marginals": [["sex"]]}, {"marginals": 0}, name="per record").label
    'per record'
    """
    return RatioEntry.read({"ratio": {"numerator": numerator, "denominator": denominator}} | options)


def difference(left: Question, right: Question, **options: Unpack[Options]) -> DifferenceEntry:
    """Return an entry that asks for the counts of an entry less those of another.

    Parameters
    ----------
    left, right : Entry or mapping
        Of as many queries.
    **options : Options
        The weight, the weights and the name.

    Examples
    --------
    >>> women, men = ({"product": {"sex": {"sets": [[sex]]}}} for sex in ("female", "male"))
    >>> difference(women, men).kind
    'difference'
    """
    return DifferenceEntry.read({"difference": {"left": left, "right": right}} | options)


def percent_change(entry: Question, over: str = "period", **options: Unpack[Options]) -> PercentChangeEntry:
    """Return an entry that asks how much counts by period changed, in per cent.

    Parameters
    ----------
    entry : Entry or mapping
        Counts by day, week, month, quarter or year: of single periods, a level of them, the year to date, or
        a number of periods up to each.
    over : {"period", "year"}
        Whether each is compared with what lies just before it, or with the same of the year before.
    **options : Options
        The weight, the weights and the name.

    Examples
    --------
    >>> from matrixdp.domain import Domain
    >>> domain = Domain({"month": {"from": "2024-01-01", "to": "2025-12-31", "by": "month"}})
    >>> entry = percent_change({"marginals": [["month"]]}, over="year")
    >>> entry.label, [group.name for group in entry.expand(domain)]
    ('per cent change on a year before', ['month'])
    """
    return PercentChangeEntry.read({"percent_change": entry, "over": over} | options)


def combination(terms: Iterable[tuple[object, Question]], **options: Unpack[Options]) -> CombinationEntry:
    """Return an entry that asks for a linear combination of counts.

    Parameters
    ----------
    terms : list of (float or list of float, Entry or mapping)
        Entries, each with the number that its queries are multiplied by, or one for each of them.
    **options : Options
        The weight, the weights and the name.

    Examples
    --------
    >>> combination([(1, {"marginals": 0}), ([-1, 0], {"marginals": [["sex"]]})]).to_spec()
    {'combination': [[1.0, {'marginals': [0]}], [[-1.0, 0.0], {'marginals': [['sex']]}]]}
    """
    return CombinationEntry.read({"combination": _listed(terms)} | options)


def simultaneous(entry: Question, **options: Unpack[Options]) -> SimultaneousEntry:
    """Return an entry that asks for the answers to another with intervals that hold all at once.

    Parameters
    ----------
    entry : Entry or mapping
        The counts.
    **options : Options
        The weight, the weights and the name.

    Examples
    --------
    >>> simultaneous({"marginals": [["sex"]]}).kind
    'simultaneous'
    """
    return SimultaneousEntry.read({"simultaneous": entry} | options)
