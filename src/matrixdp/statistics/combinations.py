"""Any linear combination of answers, and intervals that hold for a whole table at once."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike, NDArray

from matrixdp.answers.questions import Question, groups_of
from matrixdp.errors import EntryError, within
from matrixdp.forms import LISTS, describe_value
from matrixdp.queries import DenseGroup, Group, MatrixRows, ProductGroup
from matrixdp.queries.arrays import real_array
from matrixdp.statistics.comparisons import figures, one_group, question_table
from matrixdp.statistics.inference import Inference
from matrixdp.statistics.tables import statistic_table

__all__ = ["Terms", "combination", "simultaneous"]

Array = NDArray[np.float64]
Terms = Iterable[tuple[ArrayLike, Question]]
"""Pairs of coefficients and an entry: a number, one for each query, or a row of them for each combination."""

#: Queries of which correlations are computed.
_MOST_CORRELATED = 500
_POINTWISE = "pointwise: each holds the true value with this confidence, taken alone"


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
