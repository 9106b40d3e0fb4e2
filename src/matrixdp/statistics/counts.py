"""Shares, ratios, differences and linear combinations of counts, and intervals that hold together."""

from __future__ import annotations

import os
from abc import abstractmethod
from dataclasses import dataclass
from numbers import Real
from typing import TYPE_CHECKING, Any, ClassVar, final

import numpy as np

from matrixdp.domain import Domain
from matrixdp.errors import EntryError, within
from matrixdp.forms import (
    LISTS,
    AnyOf,
    Form,
    FormError,
    ListOf,
    Record,
    RecordForm,
    ResolvePath,
    Schema,
    WriteArray,
    as_lists,
    as_written,
    describe_value,
    key,
    number,
    record,
)
from matrixdp.language.entries import ENTRY, NAMES, Entry, Path, entry_form, find_attribute
from matrixdp.language.predicates import ArrayForm, load_array
from matrixdp.queries.groups import DenseGroup, Group, MatrixRows, ProductGroup
from matrixdp.queries.predicates import Array, Matrix
from matrixdp.statistics.intervals import ratios
from matrixdp.statistics.statistic import POINTWISE, Column, OfEntries, Table, figures, in_words, symmetric

if TYPE_CHECKING:
    from matrixdp.answers.inference import Inference

_FIELLER = "Fieller's, pointwise: each holds the true ratio with this confidence, taken alone"
#: Queries of which correlations are computed.
_MOST_CORRELATED = 500


Known = tuple[Array, Array, Array, Array, Array]
"""Both estimates, both variances and the covariances of pairs of queries, shape (pairs,) each."""


def _pairs(inference: Inference, left: Group, right: Group) -> Known:
    """Return what is known of the queries of a group, each beside one of as many others, or beside one."""
    left, right = inference.spread(left), inference.spread(right)
    paired = right.queries == left.queries
    found = inference.analysis.covariances(left, right, paired=paired)
    return _known(inference, left, right, found if paired else found[:, 0])


def _known(inference: Inference, left: Group, right: Group, covariance: Array, places: Any = ...) -> Known:
    count = left.queries
    own, variance = inference.estimates(left), inference.variances(left)
    other, second = (
        np.broadcast_to(values[places], count)
        for values in (inference.estimates(right), inference.variances(right))
    )
    return own, other, variance, second, covariance


def _quotients(inference: Inference, known: Known) -> list[Column]:
    own, other, variance, second, covariance = known
    found = ratios(own, other, (variance, second), covariance, inference.multiplier)
    shown = figures(found.estimates, found.deviations, found.lower, found.upper)
    return [*shown, Column("warning", found.warnings)]


@final
@entry_form
@record
class ShareEntry(OfEntries):
    """Counts as shares: of all records, of those of some attributes' values, or of another entry."""

    share: Entry = key(ENTRY)
    of: tuple[str, ...] | Entry | None = key(
        AnyOf(((lambda value: isinstance(value, LISTS), NAMES),), ENTRY),
        default=None,
        about="the attributes whose counts are divided by, or an entry; all records where it is left out",
    )

    @property
    def text(self) -> str:
        if self.of is None or self.of == ():
            return f"share: {in_words(self.share)}"
        of = in_words(self.of) if isinstance(self.of, Entry) else ", ".join(self.of)
        return f"share: {in_words(self.share)} of {of}"

    def parts(self) -> list[tuple[Path, Entry]]:
        divided: list[tuple[Path, Entry]] = [(("share",), self.share)]
        return [*divided, (("of",), self.of)] if isinstance(self.of, Entry) else divided

    def asked(self, domain: Domain) -> list[Group]:
        """Return the counts, and what they are divided by."""
        if isinstance(self.of, Entry):
            return list(self.paired(domain))
        [counts] = super().asked(domain)
        for place, name in enumerate(self.of or ()):
            with within("of", place):
                find_attribute(domain, name)
        with within("of"):
            return [counts, denominator(counts, self.of or ())]

    def evaluate(self, inference: Inference) -> Table:
        group, divisor = self.asked(inference.domain)
        said = "all records"
        if isinstance(self.of, Entry):
            said = divisor.name
        elif self.of:
            said = f"those alike in {', '.join(self.of)}"
        with inference.computing([group, divisor]):
            if self.of and not isinstance(self.of, Entry):
                known = _alike(inference, group, divisor, self.of)
            else:
                known = _pairs(inference, group, divisor)
            columns = _quotients(inference, known)
        labels = inference.labels([group], group=True)
        return inference.table(labels, columns, _FIELLER, statistic="share", of=said)


def denominator(group: Group, names: tuple[str, ...], repeated: bool = False) -> ProductGroup:
    """Return what a group asks of some of its attributes; of the others nothing.

    ``repeated`` to ask it once for each query of the group, else once for each that differs.
    """
    if not isinstance(group, ProductGroup):
        if names:
            found = f"{group.name!r}, whose queries are over merged attributes"
            raise EntryError.at((), found, "an entry to divide by", code="wrong-kind")
        return ProductGroup("total", (), (), ())
    missing = [name for name in names if name not in group.attributes]
    if missing:
        found = f"{missing[0]!r}, which {group.name!r} does not ask about"
        raise EntryError.at((), found, "attributes of the entry", code="unknown-name")
    asked = zip(group.attributes, group.predicates, group.sizes, strict=True)
    kept = [
        (name, own if name in names else Matrix(np.ones((own.count(size), size))), size)
        for name, own, size in asked
        if repeated or name in names
    ]
    attributes, predicates, sizes = zip(*kept, strict=True) if kept else ((), (), ())
    return ProductGroup(", ".join(attributes) or "total", attributes, predicates, sizes, group.weight)


def _alike(inference: Inference, group: Group, divisor: Group, names: tuple[str, ...]) -> Known:
    """Return the same of a product and of its denominators, each of which is that of several queries.

    Their estimates are those of the counts that were planned for. Only where sums of estimates are the
    estimates of sums may covariances be with the denominator as a sum over the other attributes.
    """
    assert isinstance(group, ProductGroup)
    shape = [
        count if name in names else 1 for name, count in zip(group.attributes, group.counts, strict=True)
    ]
    places = np.broadcast_to(np.arange(divisor.queries).reshape(shape), group.counts).ravel()
    left, right = inference.spread(group), inference.spread(divisor)
    if inference.analysis.additive:
        repeated = inference.spread(denominator(group, names, repeated=True))
        covariance = inference.analysis.covariances(left, repeated, paired=True)
    else:
        covariance = inference.analysis.covariances(left, right)[np.arange(group.queries), places]
    return _known(inference, left, right, covariance, places)


# Ratios and differences of two entries, query by query.


@final
@record
class RatioParts(Record):
    """The two entries of a ratio."""

    numerator: Entry = key(ENTRY, missing="an entry")
    denominator: Entry = key(ENTRY, missing="an entry")


@final
@record
class DifferenceParts(Record):
    """The two entries of a difference."""

    left: Entry = key(ENTRY, missing="an entry")
    right: Entry = key(ENTRY, missing="an entry")


@record
class _OfTwo(OfEntries):
    """A statistic of the counts of an entry and of those of another, query by query."""

    joined: ClassVar[str]
    intervals: ClassVar[str]

    @abstractmethod
    def columns(self, inference: Inference, known: Known) -> list[Column]:
        """Return the figures."""

    @property
    def text(self) -> str:
        left, right = (in_words(entry) for _, entry in self.parts())
        return f"{self.kind}: {left} {self.joined} {right}"

    def parts(self) -> list[tuple[Path, Entry]]:
        both: Record = getattr(self, self.kind)
        names = both.keys()
        return [((self.kind, name), getattr(both, name)) for name in names]

    def asked(self, domain: Domain) -> list[Group]:
        return list(self.paired(domain))

    def evaluate(self, inference: Inference) -> Table:
        groups = self.asked(inference.domain)
        with inference.computing(groups):
            columns = self.columns(inference, _pairs(inference, *groups))
        names = (str(place[-1]) for place, _ in self.parts())
        labels = _names(inference, **dict(zip(names, groups, strict=True)))
        return inference.table(labels, columns, self.intervals, statistic=self.kind)


@final
@entry_form
@record
class RatioEntry(_OfTwo):
    """The counts of an entry over those of another, query by query."""

    ratio: RatioParts = key(RecordForm(RatioParts))

    joined, intervals = "over", _FIELLER

    def columns(self, inference: Inference, known: Known) -> list[Column]:
        return _quotients(inference, known)


@final
@entry_form
@record
class DifferenceEntry(_OfTwo):
    """The counts of an entry less those of another, query by query."""

    difference: DifferenceParts = key(RecordForm(DifferenceParts))

    joined, intervals = "less", POINTWISE

    def columns(self, inference: Inference, known: Known) -> list[Column]:
        own, other, variance, minus, covariance = known
        deviations = np.sqrt(np.maximum(variance + minus - 2.0 * covariance, 0.0))
        return symmetric(own - other, deviations, inference.multiplier)


def _names(inference: Inference, **groups: Group) -> dict[str, list[str]]:
    """Return for each group a column with what its queries ask in words, all of the length of the first."""
    count = next(iter(groups.values())).queries
    found = {}
    for name, group in groups.items():
        words = []
        for row in inference.labels([group]).to_pylist() or [{}]:
            asked = [(title, value) for title, value in row.items() if value is not None]
            words.append(", ".join(v if t == "query" else f"{t} {v}" for t, v in asked) or "total")
        found[name] = words * (count // len(words))
    return found


# Linear combinations of counts.

Coefficients = Any
"""One number for all queries of an entry, one for each of them, or a row of such for each combination."""

_NUMBER: Form[Any] = number("a finite number")
_LISTED = ArrayForm("a finite number, a list of one for each query, or a list of such lists")
_ROWS = ArrayForm(_LISTED.expected, axes=2)


@final
@dataclass(frozen=True)
class _Term(Form[tuple[Coefficients, Entry]]):
    """Coefficients, and the entry whose queries they multiply."""

    def read(self, written: object, resolve: ResolvePath) -> tuple[Coefficients, Entry]:
        if not isinstance(written, LISTS) or len(written) != 2:
            expected = "[coefficients, entry]: a number, or a list of one for each query, and an entry"
            raise FormError.at((), describe_value(written), expected, code="wrong-type")
        factor, entry = written
        with within(0):
            coefficients = _coefficients(factor, resolve)
        with within(1):
            return coefficients, ENTRY.read(entry, resolve)

    def write(self, value: tuple[Coefficients, Entry], write_array: WriteArray = as_lists) -> object:
        factor, entry = value
        return [factor if isinstance(factor, float) else write_array(factor), ENTRY.write(entry, write_array)]

    def schema(self, definitions: Schema) -> Schema:
        factor = {"anyOf": [_NUMBER.schema(definitions), _LISTED.schema(definitions)]}
        items = [factor, ENTRY.schema(definitions)]
        return {"type": "array", "prefixItems": items, "minItems": 2, "maxItems": 2}


def _coefficients(written: object, resolve: ResolvePath) -> Coefficients:
    if isinstance(written, Real):
        return _NUMBER.read(written, resolve)
    value = resolve(written)
    if isinstance(value, os.PathLike):
        value = load_array(value)
    nested = isinstance(value, LISTS) and len(value) > 0 and isinstance(value[0], LISTS)
    return (_ROWS if nested else _LISTED).read(value, as_written)


@final
@entry_form
@record
class CombinationEntry(OfEntries):
    """A linear combination of counts: of each entry, a number times its queries, or one number for each."""

    combination: tuple[tuple[Coefficients, Entry], ...] = key(
        ListOf(_Term(), "a list of at least one [coefficients, entry]", least=1)
    )

    @property
    def text(self) -> str:
        terms = []
        for factor, entry in self.combination:
            size = f"{factor:g}" if isinstance(factor, float) else f"({np.size(factor)} coefficients)"
            terms.append(f"{size} {in_words(entry)}")
        return f"combination: {' + '.join(terms)}"

    def parts(self) -> list[tuple[Path, Entry]]:
        return [(("combination", place, 1), entry) for place, (_, entry) in enumerate(self.combination)]

    def asked(self, domain: Domain) -> list[Group]:
        groups = super().asked(domain)
        first = len(self._rows[0])
        for place, (rows, group) in enumerate(zip(self._rows, groups, strict=True)):
            with within("combination", place, 0):
                if rows.shape[1] != group.queries:
                    found, expected = (
                        f"{rows.shape[1]} coefficients",
                        f"one for each of {group.queries} queries",
                    )
                    raise EntryError.at((), found, expected, code="wrong-size")
                if len(rows) != first:
                    found = f"{len(rows)} rows of coefficients"
                    raise EntryError.at(
                        (), found, f"{first}, as many as of the first entry", code="wrong-size"
                    )
        return groups

    @property
    def _rows(self) -> list[Array]:
        """The coefficients of each entry, shape (combinations, queries)."""
        return [np.atleast_2d(factor) for factor, _ in self.combination]

    def evaluate(self, inference: Inference) -> Table:
        rows: dict[tuple[str, ...], Array] = {}  # one group for all terms on the same attributes
        for group, factors in zip(self.asked(inference.domain), self._rows, strict=True):
            rows[group.attributes] = rows.get(group.attributes, 0.0) + _over_cells(group, factors)
        groups = []
        for names, own in rows.items():
            sizes = tuple(inference.domain[name].size for name in names)
            groups.append(inference.spread(DenseGroup("combination", names, MatrixRows(own), sizes)))
        with inference.computing(groups):
            estimates = np.sum([inference.estimates(group) for group in groups], axis=0)
            covariance = np.sum(
                [inference.analysis.covariances(one, other) for one in groups for other in groups], axis=0
            )
            multiplier = inference.multipliers(groups[0]) if len(groups) == 1 else inference.multiplier
        deviations = np.sqrt(np.maximum(np.diagonal(covariance), 0.0))
        return inference.table(
            {"combination": np.arange(len(estimates))},
            symmetric(estimates, deviations, multiplier),
            POINTWISE,
            statistic="combination",
            covariance=covariance.tolist(),
        )


def _over_cells(group: Group, coefficients: Array) -> Array:
    """Return coefficients of queries as coefficients of cells, shape (combinations, cells)."""
    if not isinstance(group, ProductGroup):
        return np.asarray(coefficients @ group.rows())
    tensor = coefficients.reshape(len(coefficients), *group.counts)
    for axis, (predicates, size) in enumerate(zip(group.predicates, group.sizes, strict=True), 1):
        tensor = np.moveaxis(np.tensordot(tensor, predicates.rows(size), axes=(axis, 0)), -1, axis)
    return tensor.reshape(len(coefficients), -1)


# Intervals that hold for a whole table at once.


@final
@entry_form
@record
class SimultaneousEntry(OfEntries):
    """The answers to an entry with intervals that all hold at once."""

    simultaneous: Entry = key(ENTRY)

    @property
    def text(self) -> str:
        return f"simultaneous: {in_words(self.simultaneous)}"

    def parts(self) -> list[tuple[Path, Entry]]:
        return [(("simultaneous",), self.simultaneous)]

    def asked(self, domain: Domain) -> list[Group]:
        """Return all groups of the entry."""
        with within("simultaneous"):
            return self.simultaneous.expand(domain)

    def evaluate(self, inference: Inference) -> Table:
        asked = self.asked(inference.domain)
        groups = [inference.spread(group) for group in asked]
        queries = sum(group.queries for group in groups)
        with inference.computing(groups):
            estimates = np.concatenate([inference.estimates(group) for group in groups])
            deviations = np.sqrt(np.concatenate([inference.variances(group) for group in groups]))
            multiplier = inference.joint_multiplier(queries)
            if inference.noise.stable and queries <= _MOST_CORRELATED:
                blocks = [[inference.analysis.covariances(one, other) for other in groups] for one in groups]
                multiplier = inference.correlated_multiplier(np.block(blocks), {})
        return inference.table(
            inference.labels(asked, group=True),
            symmetric(estimates, deviations, multiplier),
            "simultaneous: all of them hold the true answers together with this confidence",
            statistic="answers",
            multiplier=multiplier,
        )
