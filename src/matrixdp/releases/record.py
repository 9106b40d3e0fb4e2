"""What `release.json` says of a release."""

from __future__ import annotations

import math
import os
import platform
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any, final
from urllib.parse import quote

import numpy as np

from matrixdp.answers.intervals import Intervals
from matrixdp.answers.table import (
    AnswerColumns,
    Estimated,
)
from matrixdp.domain import Domain
from matrixdp.errors import StorageError, UnsupportedQueryError
from matrixdp.exact import MeasuredMatrix
from matrixdp.language import marginals, product
from matrixdp.language.periods import group_through
from matrixdp.ledger.ledger import version
from matrixdp.measure.calibration import NoiseScale, row_variances
from matrixdp.measure.measurement import Measurement, Periods
from matrixdp.plans import Analysis, Part
from matrixdp.queries import Entry, Group
from matrixdp.queries.groups import subtracts
from matrixdp.statistics.intervals import EVERY
from matrixdp.storage.archive import read_strictly

if TYPE_CHECKING:
    from matrixdp.releases.release import Release

# What ``release.json`` says of the parts that were measured, each with its exact noise.

_WARNING = "NOT PRIVATE: anyone who knows the seed of the noise can remove it; no ledger was debited"
#: What the exact sensitivity is called that costs are computed from, by the norm of the noise.
_SENSITIVITY = {1: "sensitivity", 2: "squared_sensitivity"}


def exact_scale(scale: Fraction) -> dict[str, Any]:
    """Return an exact scale of noise as JSON has it: numerator / 2^exponent, and as text.

    Examples
    --------
    >>> exact_scale(Fraction(3, 4)), exact_scale(Fraction(6))
    ({'numerator': 3, 'exponent': 2, 'text': '3/4'}, {'numerator': 3, 'exponent': -1, 'text': '6'})
    """
    zeros = (scale.numerator & -scale.numerator).bit_length() - 1
    exponent = scale.denominator.bit_length() - 1 - zeros
    return {"numerator": scale.numerator >> zeros, "exponent": exponent, "text": str(scale)}


def on_integers(scale: NoiseScale) -> dict[str, int]:
    """Return what a record says of integer noise; nothing of noise that was rounded."""
    return {} if scale.multiple is None else {"multiples_of": scale.multiple}


@final
@dataclass(frozen=True)
class PartKind:
    """Parts of a plan that differ in their attributes alone: the first of them, and all of them.

    Attributes
    ----------
    first : Part
    scale : NoiseScale
    matrices : tuple of int
        The places of its matrices in the list of all.
    parts : list of Part
    variance : float
        The mean variance of a row's noise.
    charged : Fraction
        By how much what one of them costs counts; under a radius 0 where others stand for it.
    """

    first: Part
    scale: NoiseScale
    matrices: tuple[int, ...]
    parts: list[Part]
    variance: float
    charged: Fraction = Fraction(1)

    @property
    def cost(self) -> Fraction:
        """What all of these parts cost, exact."""
        norm = self.scale.noise.norm
        count = len(self.parts) if self.first.width is None else self.charged
        return count * self.first.column_power_sum(norm) / self.scale.exact**norm


def parts_summary(measurement: Measurement) -> tuple[list[MeasuredMatrix], list[PartKind]]:
    """Return the distinct matrices and kinds of parts of a measurement, in the order of the plan.

    A plan can have ten thousand parts that share three matrices and a few scales.
    """
    plan = measurement.plan
    norm, charged = plan.noise.norm, {place: plan.charged_share(place) for place in plan.charged}
    matrices: dict[object, tuple[int, MeasuredMatrix]] = {}
    kinds: dict[object, PartKind] = {}
    noise = row_variances(plan, measurement.scales)
    for place, (part, scale) in enumerate(zip(plan.parts, measurement.scales, strict=True)):
        own = [block.matrix for block in part.blocks]
        places = tuple(
            matrices.setdefault((_kind(one), one.digest()), (len(matrices), one))[0] for one in own
        )
        alike = places, part.multipliers is None, part.column_power_sum(norm), scale, part.width
        if alike not in kinds:
            variance = noise[place] * part.spread
            kinds[alike] = PartKind(part, scale, places, [], variance, charged.get(place, Fraction(0)))
        kinds[alike].parts.append(part)
    return [matrix for _, matrix in matrices.values()], list(kinds.values())


def measured(measurement: Measurement) -> dict[str, Any]:
    """Return the matrices and parts as a record lists them; parts of one kind are one row."""
    plan = measurement.plan
    sensitivity, norm = _SENSITIVITY[plan.noise.norm], plan.noise.norm
    matrices, kinds = parts_summary(measurement)
    return {
        "split": plan.words,
        "noise": plan.noise.name,
        "matrices": [
            {
                "kind": _kind(own),
                "shape": [own.rows, own.columns],
                sensitivity: str(own.column_power_sum(norm)),
            }
            for own in matrices
        ],
        "parts": [
            {
                "matrices": list(kind.matrices),
                "row_multipliers": kind.first.multipliers is not None,
                "rows": kind.first.rows,
                sensitivity: str(kind.first.column_power_sum(norm)),
                "scale": exact_scale(kind.scale.exact),
                "lattice_exponent": -kind.scale.power,
                **on_integers(kind.scale),
                **({} if kind.first.width is None else {"radius_width": kind.first.width}),
                "noise_stddev": math.sqrt(kind.variance),
                "attributes": [[list(block.attributes) for block in part.blocks] for part in kind.parts],
            }
            for kind in kinds
        ],
        "measured_rows": sum(part.rows for part in plan.parts),
    }


def _kind(matrix: MeasuredMatrix) -> str:
    if matrix.walk is not None:
        return "walk"
    own = {"identity": "identity", "centered": "centered identity", "tree": "tree", "row-trees": "tree"}
    return own.get(matrix.kind, "integer")


# What a release says of the table as a whole: whether it looks as if the domain did not fit. Of a series it
# is about the records of the periods that were measured last.
#
# All of it is computed from the noisy measurement and public figures, so it costs nothing and tells nothing
# more than the answers do.

#: What noise alone exceeds with this probability at most is taken for more than noise.
_CHANCE = 1e-4
#: The most queries of a group that is looked at, and of all such groups together.
_QUERIES, _QUERIES_OF_ALL = 10_000, 200_000
_NAMED = 3
_ADVICE = "check the domain against the values and the spelling in the table"
_TO_COUNT = "; `out_of_domain: {count: true}` measures how many records are dropped, at no further cost"


@final
@dataclass(frozen=True)
class SizeCheck:
    """The number of records in the domain, as released, beside what was expected.

    Attributes
    ----------
    total : Estimated or None
        The estimate of the number of records, of a series in the periods that were measured last; None where
        the measurement does not determine it.
    expect : int or None
        The number that was expected: a public figure.
    far : float
        How many standard errors noise alone exceeds with a probability of at most 1 in 10,000.
    groups_within_noise : tuple of str
        Groups of which no answer can be told from noise, among those that were looked at: of at most 10,000
        queries, and 200,000 in all.
    counted : bool
        Whether records out of domain were counted, or, in a series, cannot be.
    contrasts : frozenset of str
        Groups whose queries add and subtract: nothing but noise is no sign of a mistake there.
    periods : tuple of str
        Of a series, the first and the last period that were measured last.
    out_of_domain : Estimated or None
        Where they were counted beside it, how many records of the table are out of domain.
    bounding : str
        Which records of a person count; empty where all do.

    Examples
    --------
    >>> check = SizeCheck(Estimated.within(175, 10, 1.96), 1461, 4.0, ())
    >>> check.agrees, check.warnings[0][:76]
    (False, 'the whole table is estimated at 175 ± 20 records, and 1,461 were expected: a')
    """

    total: Estimated | None
    expect: int | None
    far: float
    groups_within_noise: tuple[str, ...]
    counted: bool = False
    contrasts: frozenset[str] = frozenset()
    periods: tuple[str, ...] = ()
    out_of_domain: Estimated | None = None
    bounding: str = ""

    @property
    def subject(self) -> str:
        """What the total is of, in words."""
        named = " to ".join(dict.fromkeys(self.periods))
        return f"the table for {named}" if named else "the whole table"

    @property
    def agrees(self) -> bool | None:
        """Whether the total is as expected, up to its noise; None where there is nothing to compare."""
        if self.total is None or self.expect is None:
            return None
        return abs(self.total.estimate - self.expect) <= self.far * self.total.stddev

    @property
    def warnings(self) -> tuple[str, ...]:
        """Sentences about what looks wrong."""
        return tuple(self._warnings())

    def _warnings(self) -> Iterator[str]:
        total, expect = self.total, self.expect
        quiet = [name for name in self.groups_within_noise if name not in self.contrasts]
        advice = _ADVICE if self.counted else _ADVICE + _TO_COUNT
        if self.bounding:
            advice = f"{self.bounding}; else {advice}"
        if total is not None and expect is not None and not self.agrees:
            off = Estimated(abs(total.estimate - expect), total.stddev, 0.0, total.upper - total.lower)
            which = "too few" if total.estimate < expect else "too many"
            yield (
                f"{self.subject} is estimated at {total} records, and {expect:,} were expected: about "
                f"{str(off).split(' ')[0]} {which}; {advice}"
            )
        elif total is not None and total.estimate < self.far * total.stddev:
            yield (
                f"{self.subject} is estimated at {total} records, which cannot be told from none: "
                f"{advice}, and a larger budget or fewer queries make the noise smaller"
            )
        elif total is None and expect is not None:
            yield f"{expect:,} records were expected, and how many there are does not follow from the release"
        if quiet:
            more = "" if len(quiet) <= _NAMED else f" and {len(quiet) - _NAMED:,} more"
            named = f"{'; '.join(quiet[:_NAMED])}{more}"
            yield f"no answer can be told from noise in {len(quiet):,} of the groups: {named}"

    def as_dict(self) -> dict[str, object]:
        """Return it as JSON has it."""
        of = {"periods": list(self.periods)} if self.periods else {}
        return of | {
            "total": None if self.total is None else self.total.as_dict(),
            "expect": self.expect,
            "agrees": self.agrees,
            "groups_within_noise": list(self.groups_within_noise),
        }


def records_in(domain: Domain, attribute: str, codes: range) -> Entry:
    """Return what asks for the number of records in some periods of a series, one after the other.

    Examples
    --------
    >>> domain = Domain({"month": {"from": "2025-01-01", "to": "2025-04-30", "by": "month"}})
    >>> [group] = records_in(domain, "month", range(1, 3)).expand(domain)
    >>> group.rows()
    array([[0., 1., 1., 0.]])
    """
    first, last = (domain[attribute].value(code) for code in (codes[0], codes[-1]))
    return product({attribute: {"ranges": [[first, last]]}})


def total_of(analysis: Analysis, domain: Domain, periods: tuple[str, range] | None = None) -> Group | None:
    """Return the query for the number of records, in all or in some periods of a series.

    None where what is measured does not determine it.
    """
    (group,) = (marginals(0) if periods is None else records_in(domain, *periods)).expand(domain)
    try:
        analysis.check_support(group)
    except UnsupportedQueryError:
        return None
    return group


def groups_within_noise(measurement: Measurement, groups: Sequence[Group]) -> Iterator[str]:
    """Yield the names of the groups of which no answer can be told from noise."""
    left = _QUERIES_OF_ALL
    for group in groups:
        if group.queries > min(_QUERIES, left):
            continue
        left -= group.queries
        deviations = np.sqrt(measurement.analysis.variances(group))
        far = measurement.tails.largest_quantile(1 - _CHANCE / group.queries)
        if (np.abs(measurement.estimates.answers(group)) < far * deviations).all():
            yield group.name


def check_size(
    measurement: Measurement, groups: Sequence[Group], confidence: float, expect: int | None
) -> SizeCheck:
    """Compare what was released with what was expected; the interval of the total has a confidence.

    Of a series, of the periods that were measured last, and of the answers that came with them.
    """
    total: Estimated | None = None
    domain, last, named = measurement.plan.domain, measurement.newest, tuple[str, ...]()
    if last is not None:
        name, codes = last
        named = domain[name].label(codes[0]), domain[name].label(codes[-1])
        size, through = domain[name].size, codes[-1] + 1
        groups = [own for group in groups for own in group_through(group, name, through, size, codes[0])]
    query = total_of(measurement.analysis, domain, last)
    if query is not None:
        deviation = float(np.sqrt(measurement.analysis.variances(query))[0])
        value = float(measurement.estimates.answers(query)[0])
        # of its own: those of the answers depend on which were asked for before
        intervals = Intervals(measurement.analysis, measurement.tails, confidence)
        multiplier = float(np.ravel(intervals.multipliers((1.0, query, EVERY)))[0])
        total = Estimated.within(value, deviation, multiplier)
    far = measurement.tails.largest_quantile(1 - _CHANCE)
    quiet = tuple(groups_within_noise(measurement, groups))
    contrasts = frozenset(group.name for group in groups if subtracts(group))
    told = measurement.out_of_domain_counts is not None or measurement.periods is not None
    unit, bounding = measurement.authorization.budget.unit, ""
    if unit.id is not None:
        most = f"{unit.records:,} record{'s' * (unit.records > 1)} of a person{unit.spread}"
        bounding = f"at most {most} count, so others are missing"
    # with `per` there are no counts out of domain
    told = told or bool(unit.per)
    return SizeCheck(total, expect, far, quiet, told, contrasts, named, bounding=bounding)


# The files of a release.

RELEASE_FORMAT = "matrixdp release"
RECORD = "release.json"
MEASUREMENT = "measurement.mdp"
ANSWERS, ANSWERS_CSV = "answers.parquet", "answers.csv"
#: The folder of many answers at several levels of areas, and what its files are called.
ANSWERS_FOLDER = "answers"
ANSWERS_PART: re.Pattern[str] = re.compile(rf"{ANSWERS_FOLDER}/level=[^/\\]+/[^/\\]+\.parquet")
#: What follows for the statistics that the workload asks for, where it does.
STATISTICS = "statistics.parquet"
#: Over the record; the last file to be written.
SIGNATURE = "signature.json"
#: Of a series: what was debited when it began, how it is published, and the answers that came last.
SERIES, SERIES_RECORD, NEW_ANSWERS = "series.mdp", "series.json", "new.csv"
#: The files whose digests the record lists, as far as they are there.
LISTED = (ANSWERS_CSV, ANSWERS, MEASUREMENT, NEW_ANSWERS, SERIES_RECORD, SERIES, STATISTICS)
#: Says in a folder that is not in its place yet which budget was spent for it.
SPENT = "spent.txt"
#: Says in such a folder what was asked for besides the measurement.
REQUEST = "request.json"
#: Is locked in such a folder by the process that fills it.
RUNNING = "running"
#: What a discovery writes beside these marks, before it takes its place as a file.
FOUND = "found.yaml"
#: What a release has only as long as it is not in its place.
MARKS = (SPENT, REQUEST, RUNNING)
#: What a release consists of, the record first; nothing else is ever replaced.
RELEASE_FILES = (RECORD, *LISTED, ANSWERS_FOLDER, SIGNATURE, *MARKS)


def level_folder(level: str) -> str:
    """Return the name of the folder of the answers at a level.

    Examples
    --------
    >>> level_folder("census tract")
    'answers/level=census%20tract'
    """
    return f"{ANSWERS_FOLDER}/level={quote(level, safe='')}"


def parts_in(folder: Path) -> list[str]:
    """Return the names of all that lies in the folder of answers of a release: links are not followed."""
    found = sorted((folder / ANSWERS_FOLDER).rglob("*"))
    if os.path.islink(folder / ANSWERS_FOLDER):  # noqa: PTH114 - no error where the path is none
        return [ANSWERS_FOLDER]
    return [one.relative_to(folder).as_posix() for one in found if one.is_symlink() or not one.is_dir()]


def listed_in(folder: Path) -> list[str]:
    """Return the names of the files in a folder that a record lists, or ought to."""
    return sorted([*(name for name in LISTED if os.path.lexists(folder / name)), *parts_in(folder)])


def may_list(name: str) -> bool:
    """Return whether a record may list a file of this name."""
    return name in LISTED or ANSWERS_PART.fullmatch(name) is not None


# What ``release.json`` says: what was measured, the promise, and how to check the files.

GroupErrors = Sequence[tuple[float, float]]
"""For each group the sum of its queries' variances and the largest of them."""

_PACKAGES = ("matrixdp", "numpy", "scipy", "pyarrow", "duckdb", "narwhals", "python-flint")
#: Of ``release.json``.
RELEASE_VERSION = 4
_ARRAYS = ("dense", "matrix", "weights")
_ROUNDING = (
    "every row has exactly the distribution of its true answer plus continuous noise of the stated scale, "
    "rounded to the nearest multiple of a power of two"
)


def document(
    release: Release,
    errors: GroupErrors,
    files: Mapping[str, Mapping[str, object]],
    columns: AnswerColumns | None,
    limit: int | None,
) -> dict[str, object]:
    """Return the record of a release as plain values for JSON.

    ``files`` says the size and checksum of each; ``columns`` is None where only the measurement is on disk,
    as there are more answers than ``limit``.
    """
    measurement, workload = release.measurement, release.workload
    written: dict[str, object] = {"format": RELEASE_FORMAT, "format_version": RELEASE_VERSION}
    if not release.private:
        written["warning"] = _WARNING
    written |= {
        "private": release.private,
        "privacy": {
            **promise(release),
            "measurement": {"file": MEASUREMENT, "sha256": files[MEASUREMENT]["sha256"]},
            "versions": {"python": platform.python_version()} | {name: version(name) for name in _PACKAGES},
        },
        "authorization": measurement.authorization.as_dict(),
        "domain": workload.domain.to_spec(),
        "workload": [brief(entry.to_spec()) for entry in workload.entries],
        "queries": workload.queries,
        "rmse": math.sqrt(math.fsum(total for total, _ in errors) / workload.queries),
        "max_stddev": math.sqrt(max(largest for _, largest in errors)),
        "confidence": release.confidence,
        "intervals": release.intervals.description,
        "answers": _answers(release, columns, limit),
        "groups": _groups(release, errors, columns),
        "strategy": {**release.origin, **measured(measurement)},
        "size": release.size.as_dict() | {"warnings": list(release.warnings)},
        "files": dict(files),
    }
    if measurement.periods is not None:
        written["series"] = series(measurement.periods, release.domain)
    if release.asked:
        asked: list[dict[str, Any]] = []
        for one in release.asked:
            asked.append(one.as_dict(sum(row["rows"] for row in asked)))
        written["statistics"] = asked
    if told := release.publication.to_spec():
        written["publication"] = told
    counts = measurement.out_of_domain_counts
    if counts is not None:
        written["out_of_domain_counts"] = {
            "scale": exact_scale(counts.scale.exact),
            **on_integers(counts.scale),
            "cost": str(counts.cost.value),
            "counts": [
                {"attribute": name, **estimated.as_dict()}
                for name, estimated in release.out_of_domain_counts.items()
            ],
        }
    return written


def series(periods: Periods, domain: Domain) -> dict[str, object]:
    """Return how far a series is measured, as plain values."""
    attribute = domain[periods.attribute]
    return {
        "attribute": attribute.name,
        "periods": attribute.size,
        "published": [attribute.label(number - 1) for number in periods.published],
        "ended": periods.through == attribute.size,
    }


def read_record(content: bytes, path: Path) -> dict[str, Any]:
    """Return the record of a release, given the bytes of its file; what it says is not checked.

    Raises
    ------
    StorageError
        If it is none.
    """
    written = read_strictly(content, str(path))
    if written.get("format") != RELEASE_FORMAT:
        raise StorageError(f"{path}: holds something else than the record of a release", "damaged-file")
    return written


def promise(release: Release) -> dict[str, object]:
    """Return the privacy statement with the mechanism that it is about: what follows from the measurement."""
    measurement = release.measurement
    return {
        **release.statement.as_dict(),
        "mechanism": {
            "name": "matrix mechanism",
            "sensitivity_norm": measurement.plan.noise.norm,
            "parts": len(measurement.plan.parts),
            "rounding": _ROUNDING,
        },
        "out_of_domain": measurement.out_of_domain.to_spec(release.domain),
        "max_records": measurement.max_records,
        "time": measurement.authorization.time,
    }


def _answers(release: Release, columns: AnswerColumns | None, limit: int | None) -> dict[str, object]:
    if columns is None:
        note = (
            f"{release.workload.queries} answers are more than the limit of {limit}, so only the measurement "
            "is here: ask it with `matrixdp answer`"
        )
        return {"rows": 0, "limit": limit, "note": note}
    bounds = {}
    for name, (low, high) in columns.bounds.items():
        ends = release.domain[name].ends
        bounds[name] = {"from": low, "to": high, "half_open": ends is not None and ends.half_open}
    return {
        "rows": release.workload.queries,
        "columns": columns.schema.names,
        **({} if columns.at is None else {"levels_of": columns.at[0]}),
        "attributes": columns.columns,
        "bounds": bounds,
        "totals": "an attribute's column is null where the query counts every value of the attribute",
    }


def _groups(release: Release, errors: GroupErrors, columns: AnswerColumns | None) -> list[dict[str, object]]:
    firsts = list(accumulate((group.queries for group in release.workload), initial=0))[:-1]
    where: list[dict[str, object]] = [{"first_row": first} for first in firsts]
    if columns is not None and columns.at is not None:
        where = [{"level": level} for level in columns.at[1]]
    return [
        {
            "name": group.name,
            "attributes": list(group.attributes),
            "queries": group.queries,
            **place,
            "rmse": math.sqrt(total / group.queries),
            "max_stddev": math.sqrt(largest),
        }
        for group, place, (total, largest) in zip(release.workload, where, errors, strict=True)
    ]


def brief(value: Any) -> Any:
    """Return an entry with arrays replaced by their shapes; the measurement's file holds them whole."""
    if not isinstance(value, Mapping):
        return value
    return {
        key: {"shape": list(np.shape(item))} if key in _ARRAYS and isinstance(item, list) else brief(item)
        for key, item in value.items()
    }
