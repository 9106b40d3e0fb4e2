"""Linear queries on one attribute, asked in every stratum of others and within conditions."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar, final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from matrixdp.answers.columns import FIGURES, AnswerColumns
from matrixdp.domain import Attribute, Domain
from matrixdp.errors import DomainError, EntryError, MatrixDPError, TooLargeError, within
from matrixdp.forms import Form, as_given, describe_value
from matrixdp.language.distributions import MAX_VALUES
from matrixdp.language.entry import NAMES, PREDICATES_BY_ATTRIBUTE, AttributeSets, find_attribute
from matrixdp.language.merged import BOX, Condition, allowed_values
from matrixdp.language.statistic import BY_AND_WHERE, IDENTITY
from matrixdp.queries import Matrix, Predicates, ProductGroup, Sets, Total
from matrixdp.queries.arrays import Array
from matrixdp.statistics.inference import Inference

__all__ = ["By", "Strata", "Where", "label_columns", "read_argument"]

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
