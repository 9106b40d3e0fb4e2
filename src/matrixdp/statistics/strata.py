"""Linear queries on one attribute, asked in every stratum of others and within conditions."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar, final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from matrixdp.answers.intervals import Intervals
from matrixdp.answers.questions import advised, spread
from matrixdp.answers.table import FIGURES, AnswerColumns
from matrixdp.domain import Attribute, Domain
from matrixdp.errors import DomainError, EntryError, MatrixDPError, SpecificationError, TooLargeError, within
from matrixdp.exact.resources import one_blas_thread
from matrixdp.forms import Form, as_given, describe_value
from matrixdp.language.entries import (
    BOX,
    NAMES,
    PREDICATES_BY_ATTRIBUTE,
    AttributeSets,
    Condition,
    allowed_values,
    find_attribute,
)
from matrixdp.language.statistics import BY_AND_WHERE, IDENTITY, MAX_VALUES
from matrixdp.measure.measurement import Measurement
from matrixdp.noise import Noise
from matrixdp.plan import Analysis
from matrixdp.queries import Group, Matrix, Predicates, ProductGroup, Sets, Total, Workload
from matrixdp.statistics.simulation import largest_of_normals

# Tables of statistics: strata, what it is, figures, and in the schema how they were made.

METADATA = b"matrixdp"
"""The key of the schema's metadata: a JSON object that says how the figures were made."""


def statistic_table(
    labels: Mapping[str, pa.ChunkedArray], figures: Mapping[str, pa.Array], said: Mapping[str, object]
) -> pa.Table:
    """Return a table of a statistic.

    Parameters
    ----------
    labels : mapping of str to ChunkedArray
        The columns of what is asked about; where one has the name of a figure it gets the ending
        ``_attribute``.
    figures : mapping of str to Array
        The columns of the statistic.
    said : mapping
        What goes into the metadata, under the key `METADATA`.
    """
    columns: dict[str, pa.Array | pa.ChunkedArray] = {}
    for name, column in labels.items():
        own = name
        while own in figures or (own != name and own in labels):
            own += "_attribute"
        columns[own] = column
    made = pa.table({**columns, **figures})
    return made.replace_schema_metadata({METADATA: json.dumps(dict(said)).encode()})


def said_of(table: pa.Table) -> dict[str, Any]:
    """Return what the metadata of the table of a statistic says."""
    said: dict[str, Any] = json.loads((table.schema.metadata or {}).get(METADATA, b"{}"))
    return said


# What statistics are derived from: estimates, their exact covariances, and how far noise goes.

Array = NDArray[np.float64]


def check_confidence(given: object) -> float:
    """Return a confidence, a number above 0 and below 1.

    Examples
    --------
    >>> check_confidence(0.9)
    0.9
    """
    if isinstance(given, bool) or not isinstance(given, int | float) or not 0 < given < 1:
        raise SpecificationError.at(("confidence",), describe_value(given), "a number above 0 and below 1")
    return float(given)


@final
@dataclass(frozen=True, eq=False)
class Inference:
    """Estimates of queries from one measurement, their covariances, and multiples of standard errors.

    Parameters
    ----------
    measurement : Measurement
        What was measured.
    workload : Workload
        What it was measured for.
    confidence : float
        Of intervals, above 0 and below 1.
    """

    measurement: Measurement
    workload: Workload
    confidence: float

    @property
    def domain(self) -> Domain:
        """The attributes."""
        return self.workload.domain

    @property
    def analysis(self) -> Analysis:
        """Variances and covariances at the noise that was added."""
        return self.measurement.analysis

    @property
    def noise(self) -> Noise:
        """The noise that was added."""
        return self.measurement.plan.noise

    @property
    def multiplier(self) -> float:
        """Standard errors from an estimate to the ends of its interval, enough for every combination."""
        return self.noise.largest_quantile(self.confidence)

    def joint_multiplier(self, count: int) -> float:
        """Return the same for so many intervals that hold together, whatever their covariances.

        By the inequality of Sidak where all combinations are normal, else by that of Bonferroni.
        """
        if self.noise.stable:
            return self.noise.largest_quantile(self.confidence ** (1.0 / count))
        return self.noise.largest_quantile(1.0 - (1.0 - self.confidence) / count)

    def multipliers(self, group: Group) -> float | Array:
        """Return standard errors to the ends of pointwise intervals: exact where that is known."""
        return Intervals(self.analysis, self.noise, self.confidence).multipliers(group)

    def spread(self, group: Group) -> Group:
        """Return the group as the measurement determines it."""
        return spread(self.analysis, self.workload, group)

    def estimates(self, group: Group) -> Array:
        """Return the estimates of a group's queries."""
        return self.measurement.estimates.answers(group)

    def variances(self, group: Group) -> Array:
        """Return their variances."""
        return np.maximum(self.analysis.variances(group), 0.0)

    @contextmanager
    def computing(self, groups: Sequence[Group]) -> Iterator[None]:
        """Compute what is asked of groups; a refusal says what works instead."""
        # many small products: several threads would spend their time waiting for one another
        with one_blas_thread(), advised(self.analysis, self.workload, groups):
            yield

    def correlated_multiplier(self, covariance: Array, known: dict[bytes, float]) -> float:
        """Return standard errors from estimates to the ends of intervals that hold together.

        Parameters
        ----------
        covariance : ndarray, shape (queries, queries)
            Of the estimates.
        known : dict
            Of multipliers that were found, by correlations.

        Notes
        -----
        For normal noise the quantile of the largest standardized error, by 20,000 draws of a fixed public
        seed from the known covariance: the order statistic that is not below the quantile with a probability
        of 0.999 over the seed. Never above the bound that holds for every covariance.
        """
        bound = self.joint_multiplier(len(covariance))
        if not self.noise.stable:
            return bound
        correlation = _correlation(covariance)
        key = np.round(correlation, 9).tobytes()
        if key not in known:
            known[key] = largest_of_normals(correlation, self.confidence)
        return min(bound, known[key])


def _correlation(covariance: Array) -> Array:
    """Return the correlations of those that vary."""
    deviations = np.sqrt(np.maximum(np.diagonal(covariance), 0.0))
    kept = deviations > deviations.max(initial=0.0) * 1e-12
    found = covariance[np.ix_(kept, kept)] / np.outer(deviations[kept], deviations[kept])
    return np.asarray((found + found.T) / 2.0)


By = str | Iterable[str] | Mapping[str, Any]
"""Attributes whose values are the strata, or a mapping of attributes to predicate sets."""
Where = Mapping[str, Any] | None
"""A mapping of attributes to a value, a list of values, or ``{"range": [first, last]}``."""

T = TypeVar("T")


def read_argument(form: Form[T], value: object, *path: str) -> T:
    """Return what a form reads, its errors those of entries at a path."""
    with within(*path):
        try:
            return form.read(value, as_given)
        except MatrixDPError as error:
            raise EntryError(error.problem or str(error)) from None


def label_columns(domain: Domain, group: ProductGroup) -> dict[str, pa.ChunkedArray]:
    """Return the columns that say what the queries of a group ask, by their names."""
    columns = AnswerColumns(domain, [group], levels=True)
    figures = np.zeros(group.queries)
    table = pa.Table.from_batches(columns.batches(0, figures, figures, 0.0), schema=columns.schema)
    return {name: table.column(name) for name in table.column_names if name not in ("group", *FIGURES)}


@final
@dataclass(frozen=True, eq=False)
class Strata:
    """An attribute, or none, in strata of other attributes.

    Attributes
    ----------
    title : str
        What is asked, for errors.
    domain : Domain
        The attributes.
    attribute : Attribute or None
        The one on which queries are asked.
    codes : ndarray of int, shape (values,)
        The codes of it that are asked about, in order.
    by : dict of str to Predicates
        The strata: every combination of one predicate of each set, the last one fastest.
    where : dict of str to Predicates
        Conditions on other attributes, of one predicate each.
    """

    title: str
    domain: Domain
    attribute: Attribute
    codes: NDArray[np.int64]
    by: dict[str, Predicates]
    where: dict[str, Predicates]

    @classmethod
    def of(cls, domain: Domain, statistic: str, attribute: object, by: By, where: Where) -> Strata:
        """Return the strata that are asked for.

        Raises
        ------
        EntryError
            If an attribute is unknown or named twice, or a condition does not fit it.
        """
        if not isinstance(attribute, str):
            raise EntryError.at((statistic,), describe_value(attribute), "the name of an attribute")
        with within(statistic):
            asked = find_attribute(domain, attribute)
        strata = _strata(domain, attribute, by)
        allowed = np.ones(asked.size, dtype=bool)
        conditions: dict[str, Predicates] = {}
        for name, condition in ({} if where is None else read_argument(BOX, where, "where")).items():
            with within("where", name):
                inside = _allowed(find_attribute(domain, name), condition)
                if name in strata:
                    raise EntryError.at((), "an attribute of `by`", BY_AND_WHERE)
            if name == attribute:
                allowed = inside
            elif not inside.all():
                conditions[name] = Sets((tuple(int(code) for code in np.flatnonzero(inside)),))
        title = f"{statistic} of {attribute}"
        return cls(title, domain, asked, np.flatnonzero(allowed), strata, conditions)

    def without_null(self) -> Strata:
        """Return them without missing values of the attribute."""
        kept = self.codes[self.codes != self.attribute.null_code] if self.attribute.null_code else self.codes
        if not len(kept):
            found = f"no value of {self.attribute.name!r} but null"
            raise EntryError.at(("where", self.attribute.name), found, "values with an order")
        if len(kept) > MAX_VALUES:
            raise TooLargeError(
                f"{self.title}: {len(kept)} values; the limit is {MAX_VALUES}. Ask for a range of them with "
                f"`where`"
            )
        return Strata(self.title, self.domain, self.attribute, kept, self.by, self.where)

    @property
    def count(self) -> int:
        """The number of strata."""
        return math.prod(own.count(self.domain[name].size) for name, own in self.by.items())

    def group(self, rows: Array) -> ProductGroup:
        """Return queries on the attribute in every stratum; rows have a column for each code asked about."""
        whole = np.zeros((len(rows), self.attribute.size))
        whole[:, self.codes] = rows
        return self.product(Matrix(whole))

    def product(self, predicates: Predicates, stratum: int | None = None) -> ProductGroup:
        """Return a predicate set on the attribute in every stratum, or in one of them."""
        sets = self.where | self.by | {self.attribute.name: predicates}
        if stratum is not None:
            sizes = [own.count(self.domain[name].size) for name, own in self.by.items()]
            places = np.unravel_index(stratum, sizes) if sizes else ()
            for (name, own), place in zip(self.by.items(), places, strict=True):
                row = own.rows(self.domain[name].size)[int(place)]
                sets[name] = Matrix(row[None, :])
        names = self.domain.sort(sets)
        sizes = [self.domain[name].size for name in names]
        return ProductGroup(self.title, names, tuple(sets[name] for name in names), tuple(sizes))

    def with_records(self, inference: Inference, rows: Array) -> Array:
        """Return the covariances of queries with the number of records of their strata, as `arrange` does.

        Cov(X, N) = (Var(X + t N) - Var(X - t N)) / 4t where the estimates of sums are sums of estimates, with
        t such that neither outweighs the other; else from the queries themselves.
        """
        if inference.analysis.additive:
            scale = max(float(np.abs(rows).max()), 1e-300)
            group = self.group(np.vstack([rows + scale, rows - scale]))
            more, less = np.split(
                self.arrange(inference.variances(inference.spread(group)), group), 2, axis=1
            )
            return np.asarray((more - less) / (4.0 * scale))
        group, whole = self.group(rows), self.group(np.ones(rows.shape))
        pair = inference.spread(group), inference.spread(whole)
        return self.arrange(inference.analysis.covariances(*pair, paired=True), group)

    def alone(self, predicates: Predicates) -> ProductGroup:
        """Return a predicate set on the attribute, in no strata and under no conditions."""
        return ProductGroup(self.title, (self.attribute.name,), (predicates,), (self.attribute.size,))

    def said(self, inference: Inference, intervals: str, **more: object) -> dict[str, object]:
        """Return what the metadata of a table says: what was asked, and what the intervals are."""
        where = {name: own.describe(self.domain[name])[0] for name, own in self.where.items()}
        if len(self.codes) < self.attribute.size:
            where[self.attribute.name] = Sets((tuple(self.codes),)).describe(self.attribute)[0]
        return {
            "statistic": self.title,
            "by": list(self.by),
            "where": where,
            "confidence": inference.confidence,
            "intervals": intervals,
            **more,
        }

    def arrange(self, values: Array, group: ProductGroup) -> Array:
        """Return what is known of the queries of a group in the shape (strata, queries on the attribute)."""
        tensor = values.reshape(group.counts)
        tensor = np.moveaxis(tensor, group.attributes.index(self.attribute.name), -1)
        return np.asarray(tensor.reshape(-1, tensor.shape[-1]))

    def labels(self, repeats: int = 1) -> dict[str, pa.ChunkedArray]:
        """Return the columns of the strata, each row so many times."""
        names = tuple(self.by)
        sizes = tuple(self.domain[name].size for name in names)
        group = ProductGroup(self.title, names, tuple(self.by.values()), sizes)
        places = np.repeat(np.arange(group.queries), repeats)
        return {name: column.take(places) for name, column in label_columns(self.domain, group).items()}


def _allowed(attribute: Attribute, condition: Condition) -> NDArray[np.bool_]:
    """Return which values a condition allows."""
    try:
        return np.asarray(allowed_values(attribute, condition)[0] > 0)
    except DomainError as error:
        raise EntryError(error.problem or str(error)) from None


def _strata(domain: Domain, attribute: str, by: By) -> dict[str, Predicates]:
    """Return the predicate sets of the strata, in domain order."""
    if isinstance(by, Mapping):
        forms = read_argument(PREDICATES_BY_ATTRIBUTE, by, "by")
    else:
        listed = [by] if isinstance(by, str) else list(by) if isinstance(by, Iterable) else by
        names = read_argument(NAMES, listed, "by")
        forms = dict.fromkeys(names, IDENTITY)
    sets = AttributeSets.on(domain, forms, "by")
    found = {a.name: own for a, own in zip(sets.attributes, sets.predicates, strict=True)}
    if attribute in found:
        raise EntryError.at(("by",), f"{attribute!r}, the attribute itself", "other attributes")
    return {name: own for name, own in found.items() if not isinstance(own, Total)}
