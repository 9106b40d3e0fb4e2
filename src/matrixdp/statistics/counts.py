"""Shares, ratios, differences and linear combinations of counts, and intervals that hold together."""

from __future__ import annotations

import itertools
import math
import os
from abc import abstractmethod
from dataclasses import dataclass, replace
from numbers import Real
from typing import TYPE_CHECKING, Any, ClassVar, final

import numpy as np
from numpy.typing import NDArray

from matrixdp import forms
from matrixdp.domain import Attribute, Domain
from matrixdp.errors import EntryError, within
from matrixdp.exact.linear import along
from matrixdp.forms import key, record
from matrixdp.language.entries import ENTRY, NAMES, Entry, Path, entry_form, find_attribute, of_records
from matrixdp.language.periods import comparisons, each_known_after
from matrixdp.language.predicates import ArrayForm, load_array
from matrixdp.queries import Chosen, DenseGroup, Group, Matrix, MatrixRows, ProductGroup
from matrixdp.queries.groups import subtracts
from matrixdp.queries.predicates import Array
from matrixdp.queries.workload import FigureTarget, Precision
from matrixdp.statistics.intervals import EVERY, Pairs, Ratios
from matrixdp.statistics.statistic import (
    DIFFERENCE,
    PERCENT_CHANGE,
    POINTWISE,
    Column,
    Named,
    OfEntries,
    Table,
    figures,
    symmetric,
)
from matrixdp.texts import Words

if TYPE_CHECKING:
    from matrixdp.answers.inference import Inference

_FIELLER = "Fieller's, pointwise: each holds the true ratio with this confidence, taken alone"
#: Queries of which correlations are computed.
_MOST_CORRELATED = 500


def _ratios(inference: Inference, left: Group, right: Group) -> Ratios:
    """Return ratios of a group's queries to as many others, or to a single one."""
    return inference.ratios(_pairs(inference, left, right), [(1.0, left, EVERY)], [(1.0, right, EVERY)])


def _pairs(inference: Inference, left: Group, right: Group) -> Pairs:
    """Pair the estimates of a group with as many others, or with a single one."""
    paired = right.queries == left.queries
    found = inference.analysis.covariances(left, right, paired=paired)
    return _known(inference, left, right, found if paired else found[:, 0])


def _known(inference: Inference, left: Group, right: Group, covariance: Array, places: Any = ...) -> Pairs:
    other, variance = inference.estimates(right)[places], inference.variances(right)[places]
    return Pairs(inference.estimates(left), other, inference.variances(left), variance, covariance)


@final
@entry_form
@record
class ShareEntry(OfEntries):
    """Counts as shares: of all records, of those of some attributes' values, or of another entry."""

    share: Entry = key(ENTRY)
    of: tuple[str, ...] | Entry | None = key(
        forms.AnyOf(((lambda value: isinstance(value, forms.LISTS), NAMES),), ENTRY),
        default=None,
        about="the attributes whose counts are divided by, or an entry; all records where it is left out",
    )

    @property
    def measures(self) -> str:
        return "share"

    def spoken(self, domain: Domain, say: Words, named: Named) -> str:
        if self.name is not None or self.of:
            return super().spoken(domain, say, named)
        return say("share_of_all", of=named(self.asked(domain)[0]))

    def parts(self) -> list[tuple[Path, Entry]]:
        divided: list[tuple[Path, Entry]] = [(("share",), self.share)]
        return [*divided, (("of",), self.of)] if isinstance(self.of, Entry) else divided

    def asked(self, domain: Domain) -> list[Group]:
        """Return the counts, and what they are divided by."""
        if isinstance(self.of, Entry):
            return self.paired(domain)
        [counts] = super().asked(domain)
        for place, name in enumerate(self.of or ()):
            with within("of", place):
                find_attribute(domain, name)
        with within("of"):
            return [counts, denominator(counts, self.of or ())]

    def precision(self, domain: Domain, target: FigureTarget) -> Precision:
        """Return bounds on the errors of A - p N at the least and the largest share p = A / N.

        Over N they are those of shares, and over A those relative to shares; they are convex in p. Those of A
        and of A - N bound that of N to their sum.
        """
        counts, divisor = self.asked(domain)
        if isinstance(self.of, Entry) or not _of_each_once(counts):
            expected = "one of counts among all records, or among those alike in attributes"
            raise EntryError.at(
                (), "a target for a share that may be above 1 or below 0", expected, code="not-supported"
            )
        if target.of.mean_above is not None:
            expected = "records_above alone for a share"
            raise EntryError.at(("for", "mean_above"), "it for a share", expected, code="not-supported")
        limit = target.most * target.of.records_above
        repeated = denominator(counts, self.of, repeated=True) if self.of else divisor
        return Precision(
            counts, repeated, ((0.0, limit), (1.0, limit)), ((counts, limit), (divisor, limit)), slack=2.0
        )

    def known_after(self, domain: Domain, attribute: Attribute) -> NDArray[np.intp]:
        counts, divisor = self.asked(domain)
        if self.of and not isinstance(self.of, Entry):
            divisor = denominator(counts, self.of, repeated=True)
        return np.maximum(each_known_after(counts, attribute), each_known_after(divisor, attribute))

    def evaluate(self, inference: Inference) -> Table:
        group, divisor = self.asked(inference.domain)
        said = divisor.name if isinstance(self.of, Entry) else "all records"
        with inference.computing(group, divisor) as [left, right]:
            if self.of and not isinstance(self.of, Entry):
                said = f"those alike in {', '.join(self.of)}"
                found = _alike(inference, group, left, right, self.of)
            else:
                found = _ratios(inference, left, right)
        labels = inference.labels([group], group=True)
        return inference.table(labels, found.columns(), _FIELLER, statistic="share", of=said)


def _of_each_once(group: Group) -> bool:
    """Return whether queries count no record more than once, and none negatively."""
    if isinstance(group, ProductGroup):
        known = [own.matrix for own in group.predicates if isinstance(own, Matrix)]
    else:
        known = [group.content.values] if isinstance(group.content, MatrixRows) else []
    return not subtracts(group) and all(own.max(initial=0.0) <= 1.0 for own in known)


def denominator(group: Group, names: tuple[str, ...], repeated: bool = False) -> ProductGroup:
    """Return a group's queries on some of its attributes, with totals of the others.

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


def _alike(inference: Inference, group: Group, left: Group, right: Group, names: tuple[str, ...]) -> Ratios:
    """Return the same of a product and of its denominators, each of which is that of several queries.

    Their estimates are those of the counts that were planned for. Only where sums of estimates are the
    estimates of sums may covariances be with the denominator as a sum over the other attributes.
    """
    assert isinstance(group, ProductGroup)
    shape = [
        count if name in names else 1 for name, count in zip(group.attributes, group.counts, strict=True)
    ]
    places = np.broadcast_to(np.arange(right.queries).reshape(shape), group.counts).ravel()
    if inference.analysis.additive:
        repeated = inference.embed(denominator(group, names, repeated=True))
        covariance = inference.analysis.covariances(left, repeated, paired=True)
    else:
        covariance = inference.analysis.covariances(left, right)[np.arange(group.queries), places]
    pairs = _known(inference, left, right, covariance, places)
    return inference.ratios(pairs, [(1.0, left, EVERY)], [(1.0, right, places)])


# Ratios and differences of two entries, query by query.


@final
@record
class RatioParts(forms.Record):
    """The two entries of a ratio."""

    numerator: Entry = key(ENTRY, missing="an entry")
    denominator: Entry = key(ENTRY, missing="an entry")


@final
@record
class DifferenceParts(forms.Record):
    """The two entries of a difference."""

    left: Entry = key(ENTRY, missing="an entry")
    right: Entry = key(ENTRY, missing="an entry")


@record
class _OfTwo(OfEntries):
    """A statistic of the counts of an entry and of those of another, query by query."""

    intervals: ClassVar[str]

    @abstractmethod
    def columns(self, inference: Inference, left: Group, right: Group) -> list[Column]:
        """Return the figures."""

    def parts(self) -> list[tuple[Path, Entry]]:
        both: forms.Record = getattr(self, self.kind)
        return [((self.kind, name), getattr(both, name)) for name in both.keys()]  # noqa: SIM118

    def asked(self, domain: Domain) -> list[Group]:
        return self.paired(domain)

    def evaluate(self, inference: Inference) -> Table:
        groups = self.asked(inference.domain)
        with inference.computing(*groups) as used:
            columns = self.columns(inference, *used)
        labels = {}
        for (place, _), group in zip(self.parts(), groups, strict=True):
            words = inference.words(group)
            labels[str(place[-1])] = words * (groups[0].queries // len(words))
        return inference.table(labels, columns, self.intervals, statistic=self.kind)


@final
@entry_form
@record
class RatioEntry(_OfTwo):
    """The counts of an entry over those of another, query by query."""

    ratio: RatioParts = key(forms.RecordForm(RatioParts))

    intervals = _FIELLER

    @property
    def measures(self) -> str:
        return "ratio"

    def limits(self, domain: Domain) -> tuple[float, float]:
        return (-math.inf if any(map(subtracts, self.asked(domain))) else 0.0), math.inf

    def columns(self, inference: Inference, left: Group, right: Group) -> list[Column]:
        return _ratios(inference, left, right).columns()


@final
@entry_form
@record
class DifferenceEntry(_OfTwo):
    """The counts of an entry less those of another, query by query."""

    difference: DifferenceParts = key(forms.RecordForm(DifferenceParts))

    intervals = POINTWISE

    @property
    def measures(self) -> str:
        return DIFFERENCE

    def columns(self, inference: Inference, left: Group, right: Group) -> list[Column]:
        pairs = _pairs(inference, left, right)
        multiplier = inference.multipliers((1.0, left, EVERY), (-1.0, right, EVERY))
        variances = pairs.left_variance + pairs.right_variance - 2.0 * pairs.covariance
        return symmetric(pairs.left - pairs.right, np.sqrt(np.maximum(variances, 0.0)), multiplier)


# Changes over time, in per cent.


@final
@entry_form
@record
class PercentChangeEntry(OfEntries):
    """How much the counts of an entry by period changed, in per cent of those of an earlier period."""

    percent_change: Entry = key(ENTRY)
    over: str = key(
        forms.OneOf(("period", "year")),
        default="period",
        about="on the period before, or on the same period of the year before",
    )

    @property
    def measures(self) -> str:
        return PERCENT_CHANGE

    @property
    def text(self) -> str:
        return "per cent change on " + ("a year before" if self.over == "year" else "the period before")

    def limits(self, domain: Domain) -> tuple[float, float]:
        return -100.0, math.inf

    def spoken(self, domain: Domain, say: Words, named: Named) -> str:
        if self.name is not None:
            return self.name
        words = "percent_change_year" if self.over == "year" else "percent_change_period"
        return say(words, of=named(self.asked(domain)[0]))

    def parts(self) -> list[tuple[Path, Entry]]:
        return [(("percent_change",), self.percent_change)]

    def groups(self, domain: Domain) -> list[Group]:
        self.compared(domain)  # what cannot be compared is rejected before anything is measured
        return super().groups(domain)

    def compared(self, domain: Domain) -> tuple[ProductGroup, ProductGroup]:
        """Return the counts of the periods that have an earlier one, and those of the earlier ones."""
        [group] = self.asked(domain)
        axis, pairs = comparisons(group, domain, self.over, "percent_change")
        assert isinstance(group, ProductGroup)
        made = []
        for places in zip(*((later, earlier) for earlier, later in pairs), strict=True):
            sets = list(group.predicates)
            sets[axis] = Chosen(sets[axis], places)
            made.append(replace(group, predicates=tuple(sets), query_weights=None))
        return made[0], made[1]

    def known_after(self, domain: Domain, attribute: Attribute) -> NDArray[np.intp]:
        later, earlier = (each_known_after(group, attribute) for group in self.compared(domain))
        return np.maximum(later, earlier)

    def evaluate(self, inference: Inference) -> Table:
        later, earlier = self.compared(inference.domain)
        with inference.computing(later, earlier) as [left, right]:
            found = _ratios(inference, left, right)
        estimates, lower, upper = (100.0 * (own - 1.0) for own in (found.estimates, found.lower, found.upper))
        columns = [
            *figures(estimates, 100.0 * found.deviations, lower, upper),
            Column("warning", found.warnings),
        ]
        labels = inference.labels([later])
        return inference.table(labels, columns, _FIELLER, statistic=self.kind, over=self.over)


# Linear combinations of counts.

Coefficients = Any
"""One number for all queries of an entry, one for each of them, or a row of such for each combination."""

_NUMBER: forms.Form[Any] = forms.number("a finite number")
_LISTED = ArrayForm("a finite number, a list of one for each query, or a list of such lists")
_ROWS = ArrayForm(_LISTED.expected, axes=2)


@final
@dataclass(frozen=True)
class _Term(forms.Form[tuple[Coefficients, Entry]]):
    """Coefficients, and the entry whose queries they multiply."""

    def read(self, written: object, resolve: forms.ResolvePath) -> tuple[Coefficients, Entry]:
        if not isinstance(written, forms.LISTS) or len(written) != 2:
            expected = "[coefficients, entry]: a number, or a list of one for each query, and an entry"
            raise forms.FormError.at((), forms.describe_value(written), expected, code="wrong-type")
        factor, entry = written
        with within(0):
            coefficients = _coefficients(factor, resolve)
        with within(1):
            return coefficients, ENTRY.read(entry, resolve)

    def write(
        self, value: tuple[Coefficients, Entry], write_array: forms.WriteArray = forms.as_lists
    ) -> object:
        factor, entry = value
        return [factor if isinstance(factor, float) else write_array(factor), ENTRY.write(entry, write_array)]

    def schema(self, definitions: forms.Schema) -> forms.Schema:
        factor = {"anyOf": [_NUMBER.schema(definitions), _LISTED.schema(definitions)]}
        items = [factor, ENTRY.schema(definitions)]
        return {"type": "array", "prefixItems": items, "minItems": 2, "maxItems": 2}


def _coefficients(written: object, resolve: forms.ResolvePath) -> Coefficients:
    if isinstance(written, Real):
        return _NUMBER.read(written, resolve)
    value = resolve(written)
    if isinstance(value, os.PathLike):
        value = load_array(value)
    nested = isinstance(value, forms.LISTS) and len(value) > 0 and isinstance(value[0], forms.LISTS)
    return (_ROWS if nested else _LISTED).read(value, forms.as_written)


@final
@entry_form
@record
class CombinationEntry(OfEntries):
    """A linear combination of counts: of each entry, a number times its queries, or one number for each."""

    combination: tuple[tuple[Coefficients, Entry], ...] = key(
        forms.ListOf(_Term(), "a list of at least one [coefficients, entry]", least=1)
    )

    @property
    def measures(self) -> str:
        if any((rows % 1 != 0).any() for rows in self._rows):
            return "values"
        return DIFFERENCE if any((rows < 0).any() for rows in self._rows) else "records"

    def parts(self) -> list[tuple[Path, Entry]]:
        return [(("combination", place, 1), entry) for place, (_, entry) in enumerate(self.combination)]

    def asked(self, domain: Domain) -> list[Group]:
        groups = super().asked(domain)
        first = len(self._rows[0])
        for place, (rows, group) in enumerate(zip(self._rows, groups, strict=True)):
            found = expected = ""
            if rows.shape[1] != group.queries:
                found, expected = f"{rows.shape[1]} coefficients", f"one for each of {group.queries} queries"
            elif len(rows) != first:
                found = f"{len(rows)} rows of coefficients"
                expected = f"{first}, as many as of the first entry"
            if found:
                raise EntryError.at(("combination", place, 0), found, expected, code="wrong-size")
        return groups

    @property
    def _rows(self) -> list[Array]:
        """The coefficients of each entry, shape (combinations, queries)."""
        return [np.atleast_2d(factor) for factor, _ in self.combination]

    def known_after(self, domain: Domain, attribute: Attribute) -> NDArray[np.intp]:
        known = np.full(len(self._rows[0]), -1)
        for group, factors in zip(self.asked(domain), self._rows, strict=True):
            each = each_known_after(group, attribute)
            known = np.maximum(known, np.where(factors != 0, each, -1).max(axis=1))
        return known

    def evaluate(self, inference: Inference) -> Table:
        rows: dict[tuple[str, ...], Array] = {}  # one group for all terms on the same attributes
        for group, factors in zip(self.asked(inference.domain), self._rows, strict=True):
            rows[group.attributes] = rows.get(group.attributes, 0.0) + _over_cells(group, factors)
        groups = []
        for names, own in rows.items():
            sizes = tuple(inference.domain[name].size for name in names)
            groups.append(DenseGroup("combination", names, MatrixRows(own), sizes))
        with inference.computing(*groups) as used:
            estimates = np.sum([inference.estimates(group) for group in used], axis=0)
            pairs = itertools.product(used, repeat=2)
            covariance = np.sum([inference.analysis.covariances(*pair) for pair in pairs], axis=0)
            multiplier = inference.multipliers(*((1.0, group, EVERY) for group in used))
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
        tensor = along(tensor, axis, predicates.rows(size).T)
    return tensor.reshape(len(coefficients), -1)


# Intervals that hold for a whole table at once.


@final
@entry_form
@record
class SimultaneousEntry(OfEntries):
    """The answers to an entry with intervals that all hold at once."""

    direct = True

    simultaneous: Entry = key(ENTRY)

    def parts(self) -> list[tuple[Path, Entry]]:
        return [(("simultaneous",), self.simultaneous)]

    def asked(self, domain: Domain) -> list[Group]:
        """Return all groups of the entry."""
        with within("simultaneous"):
            return of_records(self.simultaneous, domain)

    def known_after(self, domain: Domain, attribute: Attribute) -> NDArray[np.intp]:
        return np.concatenate([each_known_after(group, attribute) for group in self.asked(domain)])

    def evaluate(self, inference: Inference) -> Table:
        asked = self.asked(inference.domain)
        with inference.computing(*asked) as used:
            estimates = np.concatenate([inference.estimates(group) for group in used])
            deviations = np.sqrt(np.concatenate([inference.variances(group) for group in used]))
            multiplier = inference.joint_multiplier(len(estimates), *used)
            if inference.tails.stable and len(estimates) <= _MOST_CORRELATED:
                blocks = [[inference.analysis.covariances(one, other) for other in used] for one in used]
                multiplier = inference.correlated_multiplier(np.block(blocks))
        return inference.table(
            inference.labels(asked, group=True),
            symmetric(estimates, deviations, multiplier),
            "simultaneous: all of them hold the true answers together with this confidence",
            statistic="answers",
            multiplier=multiplier,
        )
