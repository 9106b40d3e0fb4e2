"""Shares, ratios, differences and other combinations of answers, from their exact covariances."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike, NDArray

from matrixdp.answers.questions import Question, groups_of
from matrixdp.answers.table import FIGURES, AnswerColumns
from matrixdp.domain import Domain
from matrixdp.errors import EntryError, within
from matrixdp.forms import LISTS, describe_value
from matrixdp.language.entries import find_attribute
from matrixdp.queries import DenseGroup, Group, Matrix, MatrixRows, ProductGroup
from matrixdp.queries.predicates import real_array
from matrixdp.statistics.means import Ratios, ratios
from matrixdp.statistics.strata import Inference, statistic_table

Array = NDArray[np.float64]

_FIELLER = "Fieller's, pointwise: each holds the true ratio with this confidence, taken alone"
_POINTWISE = "pointwise: each holds the true value with this confidence, taken alone"


def one_group(domain: Domain, entry: Question, *path: str) -> Group:
    """Return the one query group that an entry stands for."""
    with within(*path):
        groups = groups_of(entry, domain)
        if len(groups) != 1:
            raise EntryError.at((), f"an entry of {len(groups)} groups", "one that stands for one group")
        return groups[0]


@final
@dataclass(frozen=True, eq=False)
class Pairs:
    """Two groups, query by query, or the queries of one with a single one; as the measurement has them."""

    left: Group
    right: Group

    @classmethod
    def of(cls, inference: Inference, left: Group, right: Group, path: Sequence[str]) -> Pairs:
        if right.queries not in (1, left.queries):
            expected = f"1 query, or {left.queries} as there"
            raise EntryError.at(tuple(path), f"{right.queries} queries", expected)
        return cls(inference.spread(left), inference.spread(right))

    def known(self, inference: Inference) -> tuple[Array, Array, Array, Array, Array]:
        """Return both estimates, both variances and the covariances, shape (queries of the left,) each."""
        own, other = inference.estimates(self.left), inference.estimates(self.right)
        variance, second = inference.variances(self.left), inference.variances(self.right)
        count = self.left.queries
        paired = self.right.queries == count
        found = inference.analysis.covariances(self.left, self.right, paired=paired)
        covariance = found if paired else found[:, 0]
        return own, np.broadcast_to(other, count), variance, np.broadcast_to(second, count), covariance


def _ratios(inference: Inference, pairs: Pairs) -> Ratios:
    with inference.computing([pairs.left, pairs.right]):
        own, other, variance, second, covariance = pairs.known(inference)
    return ratios(own, other, (variance, second), covariance, inference.multiplier)


def share(inference: Inference, entry: Question, of: Question | Iterable[str] | None) -> pa.Table:
    """Return the shares of an entry's answers; see `matrixdp.Release.share`."""
    domain = inference.domain
    group = one_group(domain, entry, "share")
    if of is None or isinstance(of, str) or (isinstance(of, Iterable) and not isinstance(of, Mapping)):
        numerator = inference.spread(group)
        names = () if of is None else (of,) if isinstance(of, str) else tuple(of)
        pairs = Pairs(numerator, _denominator(domain, numerator, names))
        said = f"those alike in {', '.join(names)}" if names else "all records"
    else:
        whole = one_group(domain, of, "share", "of")
        pairs = Pairs.of(inference, group, whole, ("share", "of"))
        said = whole.name
    found = _ratios(inference, pairs)
    table = question_table(domain, group)
    metadata = {"statistic": "share", "of": said, "confidence": inference.confidence, "intervals": _FIELLER}
    return statistic_table(table, found.columns(), metadata)


def _denominator(domain: Domain, group: Group, names: tuple[Any, ...]) -> Group:
    """Return for each query the one that asks the same of the attributes named, and nothing of others."""
    for place, name in enumerate(names):
        with within("share", "of", place):
            if not isinstance(name, str):
                raise EntryError.at((), describe_value(name), "the name of an attribute, or an entry")
            find_attribute(domain, name)
            if name not in group.attributes:
                expected = f"an attribute that the entry asks about: {', '.join(group.attributes)}"
                raise EntryError.at((), repr(name), expected)
    if isinstance(group, ProductGroup):
        sets = tuple(
            own if name in names else Matrix(np.ones((own.count(size), size)))
            for name, own, size in zip(group.attributes, group.predicates, group.sizes, strict=True)
        )
        return ProductGroup(group.name, group.attributes, sets, group.sizes)
    if names:
        found = "explicit queries, which are no products"
        raise EntryError.at(("share", "of"), found, "an entry in the place of attributes")
    return DenseGroup(group.name, group.attributes, MatrixRows(np.ones(group.rows().shape)), group.sizes)


def ratio(inference: Inference, numerator: Question, denominator: Question) -> pa.Table:
    """Return ratios of answers; see `matrixdp.Release.ratio`."""
    left = one_group(inference.domain, numerator, "ratio", "numerator")
    right = one_group(inference.domain, denominator, "ratio", "denominator")
    pairs = Pairs.of(inference, left, right, ("ratio", "denominator"))
    found = _ratios(inference, pairs)
    labels = _names(inference.domain, numerator=left, denominator=right)
    said = {"statistic": "ratio", "confidence": inference.confidence, "intervals": _FIELLER}
    return statistic_table(labels, found.columns(), said)


def difference(inference: Inference, left: Question, right: Question) -> pa.Table:
    """Return differences of answers; see `matrixdp.Release.difference`."""
    first = one_group(inference.domain, left, "difference", "left")
    second = one_group(inference.domain, right, "difference", "right")
    pairs = Pairs.of(inference, first, second, ("difference", "right"))
    with inference.computing([pairs.left, pairs.right]):
        own, other, variance, minus, covariance = pairs.known(inference)
    deviations = np.sqrt(np.maximum(variance + minus - 2.0 * covariance, 0.0))
    said = {"statistic": "difference", "confidence": inference.confidence, "intervals": _POINTWISE}
    labels = _names(inference.domain, left=first, right=second)
    return statistic_table(labels, figures(own - other, deviations, inference.multiplier), said)


def figures(estimates: Array, deviations: Array, multiplier: float | Array) -> dict[str, pa.Array]:
    """Return the columns of estimates with intervals of so many standard errors to either side."""
    width = multiplier * deviations
    columns = (estimates, deviations, estimates - width, estimates + width)
    return {name: pa.array(own, pa.float64()) for name, own in zip(FIGURES, columns, strict=True)}


def covariances(inference: Inference, entry: Question, other: Question | None) -> Array:
    """Return the covariances of estimates; see `matrixdp.Release.covariances`."""
    left = inference.spread(one_group(inference.domain, entry, "covariances"))
    right = left if other is None else inference.spread(one_group(inference.domain, other, "covariances"))
    with inference.computing([left, right]):
        return inference.analysis.covariances(left, right)


def question_table(domain: Domain, *groups: Group) -> dict[str, pa.ChunkedArray]:
    """Return the columns that say what the queries of groups ask: group, attributes and texts."""
    columns = AnswerColumns(domain, groups, levels=True)
    batches: list[pa.RecordBatch] = []
    for place, group in enumerate(groups):
        nothing = np.zeros(group.queries)
        batches.extend(columns.batches(place, nothing, nothing, 0.0))
    table = pa.Table.from_batches(batches, schema=columns.schema)
    return {name: table.column(name) for name in table.column_names if name not in FIGURES}


def _names(domain: Domain, **groups: Group) -> dict[str, pa.ChunkedArray]:
    """Return for each group a column with what its queries ask in words, all of the length of the first."""
    found = {}
    count = next(iter(groups.values())).queries
    for name, group in groups.items():
        table = question_table(domain, group)
        asked = [column.to_pylist() for title, column in table.items() if title != "group"]
        titles = [title for title in table if title != "group"]
        words = []
        for values in zip(*asked, strict=True) if asked else [()] * group.queries:
            pairs = zip(titles, values, strict=True)
            told = [v if t == "query" else f"{t} {v}" for t, v in pairs if v is not None]
            words.append(", ".join(told) or "total")
        found[name] = pa.chunked_array([pa.array(words * (count // len(words)), pa.utf8())])
    return found


# Any linear combination of answers, and intervals that hold for a whole table at once.

Terms = Iterable[tuple[ArrayLike, Question]]
"""Pairs of coefficients and an entry: a number, one for each query, or a row of them for each combination."""

#: Queries of which correlations are computed.
_MOST_CORRELATED = 500


def combination(inference: Inference, terms: Terms) -> pa.Table:
    """Return linear combinations of answers; see `matrixdp.Release.combination`."""
    groups = _combined(inference, terms)
    with inference.computing(groups):
        estimates = np.sum([inference.estimates(group) for group in groups], axis=0)
        covariance = np.sum(
            [inference.analysis.covariances(one, other) for one in groups for other in groups], axis=0
        )
        alone = len(groups) == 1
        multiplier = inference.multipliers(groups[0]) if alone else inference.multiplier
    deviations = np.sqrt(np.maximum(np.diagonal(covariance), 0.0))
    labels = {"combination": pa.chunked_array([pa.array(np.arange(len(estimates)))])}
    said = {
        "statistic": "combination",
        "confidence": inference.confidence,
        "intervals": _POINTWISE,
        "covariance": covariance.tolist(),
    }
    return statistic_table(labels, figures(estimates, deviations, multiplier), said)


def _combined(inference: Inference, terms: Terms) -> list[Group]:
    """Return the combinations as explicit queries: one group for all terms on the same attributes."""
    listed = list(terms) if isinstance(terms, Iterable) and not isinstance(terms, str) else []
    if not listed:
        found = "nothing" if isinstance(terms, Iterable) else describe_value(terms)
        raise EntryError.at(("combination",), found, "a list of pairs (coefficients, entry)")
    rows: dict[tuple[str, ...], Array] = {}
    count: int | None = None
    for place, term in enumerate(listed):
        with within("combination", place):
            if not isinstance(term, LISTS) or len(term) != 2:
                raise EntryError.at((), describe_value(term), "a pair (coefficients, entry)")
            group = one_group(inference.domain, term[1])
            own = _row(group, _coefficients(term[0], group.queries))
            if count not in (None, len(own)):
                expected = f"{count}, as many as of the terms before"
                raise EntryError.at((), f"{len(own)} rows of coefficients", expected)
        count = len(own)
        rows[group.attributes] = rows.get(group.attributes, 0.0) + own
    made = []
    for names, own in rows.items():
        sizes = tuple(inference.domain[name].size for name in names)
        made.append(inference.spread(DenseGroup("combination", names, MatrixRows(own), sizes)))
    return made


def _coefficients(given: object, queries: int) -> Array:
    """Return coefficients as rows, shape (combinations, queries)."""
    found = real_array(given, "coefficients")
    if found.ndim == 0 and queries == 1:
        found = found.reshape(1, 1)
    elif found.ndim == 1:
        found = found[None, :]
    if found.ndim != 2 or found.shape[1] != queries or not np.isfinite(found).all() or not len(found):
        expected = f"a finite number for each of the {queries} queries, or rows of as many"
        raise EntryError.at((0,), f"coefficients of shape {found.shape}", expected)
    return found


def _row(group: Group, coefficients: Array) -> Array:
    """Return coefficients of queries as coefficients of cells, shape (combinations, cells)."""
    if not isinstance(group, ProductGroup):
        return np.asarray(coefficients @ group.rows())
    tensor = coefficients.reshape(len(coefficients), *group.counts)
    for axis, (predicates, size) in enumerate(zip(group.predicates, group.sizes, strict=True), 1):
        tensor = np.moveaxis(np.tensordot(tensor, predicates.rows(size), axes=(axis, 0)), -1, axis)
    return tensor.reshape(len(coefficients), -1)


def simultaneous(inference: Inference, entry: Question) -> pa.Table:
    """Return answers with intervals that hold together; see `matrixdp.Release.simultaneous`."""
    groups = [inference.spread(group) for group in groups_of(entry, inference.domain)]
    queries = sum(group.queries for group in groups)
    with inference.computing(groups):
        estimates = np.concatenate([inference.estimates(group) for group in groups])
        deviations = np.sqrt(np.concatenate([inference.variances(group) for group in groups]))
        multiplier = inference.joint_multiplier(queries)
        if inference.noise.stable and queries <= _MOST_CORRELATED:
            blocks = [[inference.analysis.covariances(one, other) for other in groups] for one in groups]
            multiplier = inference.correlated_multiplier(np.block(blocks), {})
    said = {
        "statistic": "answers",
        "confidence": inference.confidence,
        "multiplier": multiplier,
        "intervals": "simultaneous: all of them hold the true answers together with this confidence",
    }
    labels = question_table(inference.domain, *groups)
    return statistic_table(labels, figures(estimates, deviations, multiplier), said)
