"""What a figure is: its state, its letter, its digits, and what readers see of it.

An estimate is *known*, *unbounded* where it has no bounded interval, *absent* where there is none, or
*hidden* by a rule of the publication. Rules are post-processing, at no privacy cost; files for machines keep
every estimate as it is.
"""

from __future__ import annotations

import datetime as dt
import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Self, final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from matrixdp.answers.inference import METADATA
from matrixdp.answers.table import BOUND, FIGURES, REMARKS, figure_of, subject_of
from matrixdp.exact.linear import Array
from matrixdp.selection.rounds import CV
from matrixdp.statistics.attributes import ALL_VALUES
from matrixdp.statistics.statistic import DIFFERENCE, PERCENT_CHANGE
from matrixdp.texts import Publication, Words, words_in

Mask = NDArray[np.bool_]

GRADES = (("A", 0.05), ("B", 0.15), ("C", 1 / CV))
"""Letters with the largest coefficient of variation (standard error over estimate) that each stands for."""
UNRELIABLE = "F"
"""The letter of figures beyond all grades, and what stands in place of a hidden figure."""
MISSING = "-"
"""What stands in place of a figure that does not exist."""

COUNTS = ("records", DIFFERENCE)
"""What figures measure that are whole."""
_LIMITS = {"records": (0.0, math.inf), "share": (0.0, 1.0)}


@final
@dataclass(frozen=True)
class Presentation:
    """The rules and the language by which readers see figures.

    Parameters
    ----------
    suppress_above : float, optional
        ``F`` takes the place of figures whose coefficient of variation is larger, or which are unbounded.
    within_range : bool
        Whether figures beyond what is possible are shown as the nearer end, such as counts below 0; the ends
        of their intervals, too.
    round_to : int, optional
        Counts are shown as multiples of it, ends of intervals rounded outward.
    language : str
        Of the words around figures.
    counted : str
        Which records count of a person, in a sentence; empty where all do.

    Examples
    --------
    >>> len(Presentation(suppress_above=0.33, round_to=5).rules("records"))
    3
    """

    suppress_above: float | None = None
    within_range: bool = False
    round_to: int | None = None
    language: str = "en"
    counted: str = ""

    @classmethod
    def of(cls, publication: Publication, language: str | None = None) -> Self:
        """Return what a publication declares, in a language or in its own."""
        most = None if publication.suppress is None else publication.suppress.cv_above
        rules = most, publication.within_range, publication.round_to
        return cls(*rules, language or publication.language)

    @property
    def say(self) -> Words:
        """The words around figures."""
        return words_in(self.language)

    @property
    def words(self) -> list[str]:
        """The rules that are applied, in sentences."""
        return self.rules("records")

    def rules(self, measures: str) -> list[str]:
        """Return the rules that are applied to figures of what they measure, in sentences."""
        say = self.say
        found = [say("grades"), *filter(None, [self.counted])]
        if self.suppress_above is not None:
            found.append(say("suppressed", most=say.number(100 * self.suppress_above), mark=UNRELIABLE))
        if self.round_to is not None and measures in COUNTS:
            found.append(say("rounded", base=say.number(self.round_to)))
        if self.within_range and measures not in (DIFFERENCE, "values"):
            found.append(say("within_range"))
        return found


PLAIN = Presentation()
"""No rules, in English."""


@final
@dataclass(frozen=True, eq=False)
class Figures:
    """Figures of one kind, with their errors.

    Parameters
    ----------
    values : ndarray, shape (4, n)
        Estimates, standard errors, and lower and upper ends of intervals; NaN where there is none. Days are
        counted from 1970.
    measures : str
        What they are of, as `PublishedTable` says it; empty where that is not known.
    decimals : int or None
        The digits behind the point that errors justify.
    unbounded : ndarray of bool
        Which estimates have no bounded interval.
    reach : float
        Standard errors from an estimate to the ends of its interval; NaN where letters follow the standard
        errors alone.
    limits : tuple of float
        Between what the true figures are, as is public; counts and shares have theirs anyway.
    rules : Presentation
    dates : bool
        Whether they are days.
    hiding : ndarray of bool, optional
        Which are hidden; by the rules where it is left out.

    Examples
    --------
    >>> values = np.array([[1032.4, 2.2], [5.0, 5.0], [1022.6, -7.6], [1042.2, 12.0]])
    >>> shown = Figures(values, "records", 1, np.zeros(2, dtype=bool), rules=Presentation(0.33))
    >>> shown.letters, shown.texts("estimate"), shown.texts("stddev"), shown.margins()
    (['A', 'F'], ['1,032', 'F'], ['5.0', 'F'], ['± 10', ''])
    """

    values: Array
    measures: str
    decimals: int | None
    unbounded: Mask
    reach: float = math.nan
    limits: tuple[float, float] = (-math.inf, math.inf)
    rules: Presentation = PLAIN
    dates: bool = False
    hiding: Mask | None = None

    @property
    def absent(self) -> Mask:
        """Which figures there are none of."""
        return np.asarray(np.isnan(self.values[0]))

    @property
    def outside(self) -> Mask:
        """Which estimates are beyond what is possible."""
        least, most = _LIMITS.get(self.measures, self.limits)
        return np.asarray((self.values[0] < least) | (self.values[0] > most))

    @property
    def variation(self) -> Array:
        """The coefficients of variation; NaN where a figure has no error, or none that tells its quality.

        By the standard error, or by half of the interval where that is wider, as standard errors are counted.
        Infinite where noise leaves no bounds.
        """
        estimates, stddevs, low, high = self.values
        halves = (high - low) / 2 / self.reach
        errors = np.where(np.isnan(stddevs) | (halves > stddevs * (1 + 1e-9)), halves, stddevs)
        with np.errstate(divide="ignore", invalid="ignore"):
            found = np.where(errors == 0, 0.0, np.abs(errors / estimates))
        # near 0 a change is small, and no worse for it
        other = self.dates or self.measures in (DIFFERENCE, PERCENT_CHANGE)
        found = np.where(np.isnan(errors) | self.absent | other, np.nan, found)
        return np.where(self.unbounded, np.inf, found)

    @property
    def letters(self) -> list[str]:
        """The letter of each figure; nothing where it has no error."""
        bounds = [most for _, most in GRADES]
        names = np.array([*(letter for letter, _ in GRADES), UNRELIABLE, ""])
        known = np.where(np.isnan(self.variation), len(names) - 1, np.searchsorted(bounds, self.variation))
        return [UNRELIABLE if gone else str(own) for own, gone in zip(names[known], self.hidden, strict=True)]

    @property
    def hidden(self) -> Mask:
        """Which figures are not shown."""
        if self.hiding is not None:
            return self.hiding
        most = math.inf if self.rules.suppress_above is None else self.rules.suppress_above
        return np.asarray(np.nan_to_num(self.variation, nan=0.0, posinf=np.inf) > most)

    def places(self, figure: str = "estimate") -> int | None:
        """Return how many digits stand behind the point: counts are whole, whatever their errors are."""
        if self.dates:
            return None
        if self.decimals is not None and figure != "stddev":
            if self.measures == PERCENT_CHANGE:
                return min(self.decimals, 1)
            if self.measures == "share":
                # one digit of the error is enough for per cent, and no less than whole ones
                return max(self.decimals - 1, min(self.decimals, 2))
        return self.decimals if figure == "stddev" or self.measures not in COUNTS else 0

    def rounded(self, values: Array, figure: str) -> Array:
        """Return values with the digits of one of `FIGURES`, ends of intervals rounded outward."""
        base = self.rules.round_to
        if base is None or figure == "stddev" or self.measures not in COUNTS:
            return directed(values, figure, self.places(figure))
        return directed(values / base, figure, 0) * base

    @property
    def shown(self) -> Array:
        """What is shown, shape (4, n): rounded and within limits; NaN for nothing.

        No limit holds an unbounded estimate: at the end of it the estimate would look exact.
        """
        made = np.array([self.rounded(own, kind) for own, kind in zip(self.values, FIGURES, strict=True)])
        if self.rules.within_range:
            free = self.unbounded | np.array([[False], [True], [False], [False]])
            made = np.where(free, made, np.clip(made, *_LIMITS.get(self.measures, self.limits)))
        made[:, self.hidden] = np.nan
        return made

    def text(self, value: float, figure: str = "estimate") -> str:
        """Return a figure that is shown as text."""
        say, places = self.rules.say, self.places(figure)
        if math.isnan(value):
            return MISSING
        if self.dates and figure != "stddev":
            return say.day(dt.date(1970, 1, 1) + dt.timedelta(days=value))
        if self.measures == "share":
            return say.percent(value, None if places is None else places - 2)
        text = say.number(value, places)
        if self.measures == PERCENT_CHANGE:
            text = say("percent", number=f"+{text}" if value > 0 and figure != "stddev" else text)
        return text

    def texts(self, figure: str) -> list[str]:
        """Return one of `FIGURES` as texts: ``F`` where it is hidden, ``-`` where it does not exist."""
        pairs = zip(self.shown[FIGURES.index(figure)].tolist(), self.hidden, strict=True)
        return [UNRELIABLE if gone else self.text(value, figure) for value, gone in pairs]

    def intervals(self) -> list[str]:
        """Return the intervals as texts."""
        ends = zip(self.texts("lower"), self.texts("upper"), strict=True)
        return [
            MISSING if MISSING in pair else pair[0] if UNRELIABLE in pair
            else self.rules.say("range", low=pair[0], high=pair[1])
            for pair in ends
        ]  # fmt: skip

    def margins(self) -> list[str]:
        """Return half of each interval as text, or its ends where the estimate is not in its middle.

        Nothing where there is no interval, or a figure is hidden.
        """
        estimates, _, low, high = self.values
        halves = (high - low) / 2
        middle = np.abs(low + high - 2 * estimates) <= 1e-9 * (halves + np.abs(estimates))
        texts = zip(self.rounded(halves, "upper").tolist(), self.intervals(), middle, strict=True)
        return [
            "" if spread in (MISSING, UNRELIABLE) else f"± {self.text(half, 'upper')}" if same else spread
            for half, spread, same in texts
        ]

    def take(self, places: NDArray[np.intp]) -> Figures:
        """Return the figures at some places, -1 for none, with the digits that all of them have."""
        values = np.column_stack([self.values, np.full(4, np.nan)])
        return replace(self, values=values[:, places], unbounded=np.append(self.unbounded, False)[places])


def figures_of(
    table: pa.Table, measures: str = "", rules: Presentation = PLAIN, first: int | None = None
) -> dict[str, Figures]:
    """Return the figures of a table by what they are of: the statistic itself has no name.

    Parameters
    ----------
    table : pyarrow.Table
        Answers, a statistic, or the result of a SQL statement.
    measures : str
        What its figures are of, where the table does not say so.
    rules : Presentation
    first : int, optional
        The number of rows; digits are those of the whole table.

    Examples
    --------
    >>> ends = {"lower": [2.0, None], "upper": [6.0, None]}
    >>> figures_of(pa.table({"estimate": [4.0, 1.4], "stddev": [1.0, None], **ends}))[""].letters
    ['C', 'F']
    """
    said = json.loads((table.schema.metadata or {}).get(METADATA, b"{}"))
    decimals, top = decimals_by_subject(table), table.slice(0, first)
    columns: dict[str, dict[str, pa.ChunkedArray]] = {}
    for field, column in zip(top.schema, top.columns, strict=True):
        if kind := figure_of(field):
            columns.setdefault(subject_of(field), {})[kind] = column
    none, found = np.full(len(top), np.nan), dict[str, Figures]()
    for subject, own in columns.items():
        values = np.array([_numbers(own[kind]) if kind in own else none for kind in FIGURES])
        unbounded = ~np.isnan(values[0]) & np.isnan(values[2:]).any(axis=0) & ("upper" in own)
        named = said.get("measures", {}).get(subject, subject) or measures
        least, most = said.get("within", {}).get(subject, (None, None))
        limits = (-math.inf if least is None else least, math.inf if most is None else most)
        found[subject] = Figures(
            values, named, decimals[subject], unbounded, said.get("multiplier") or math.nan,
            limits, rules, "estimate" in own and pa.types.is_date(own["estimate"].type),
        )  # fmt: skip
    return _together(found, top) if "" in found else found


def _together(found: dict[str, Figures], table: pa.Table) -> dict[str, Figures]:
    """Return the figures of a statistic, whose rows are judged as a whole."""
    unbounded = np.logical_or.reduce([own.unbounded for own in found.values()])
    if "warning" in table.column_names:
        free = pc.equal(table.column("warning"), ALL_VALUES).fill_null(False).to_numpy()
        unbounded |= free & ~found[""].absent
    main = replace(found[""], unbounded=unbounded)
    beside = {name: replace(own, unbounded=unbounded, hiding=main.hidden) for name, own in found.items()}
    return {**beside, "": main}


def _numbers(column: pa.ChunkedArray) -> Array:
    """Return a column as numbers: days are counted from 1970."""
    if pa.types.is_date(column.type):
        column = column.cast(pa.int32())
    return np.asarray(column.cast(pa.float64()).to_numpy(), dtype=np.float64)


def reliable(estimates: Array, variances: Array) -> int:
    """Return how many figures have one of the letters of `GRADES`: a standard error of at most a third.

    Examples
    --------
    >>> reliable(np.array([1000.0, 30.0, 3.0, -2.0]), np.array([144.0, 81.0, 81.0, 81.0]))
    2
    """
    return int((np.sqrt(variances) <= GRADES[-1][1] * np.abs(estimates)).sum())


# Digits: those that the errors of a table justify.

_ROUNDED: dict[str, Callable[[Array], Array]] = {
    "estimate": np.rint, "stddev": np.rint, "lower": np.floor, "upper": np.ceil,
}  # fmt: skip


def decimals_of(least: float) -> int | None:
    """Return how many digits behind the point a table needs, given its least standard error.

    Two significant digits of the standard error: rounding an estimate so adds at most a thousandth to its
    variance. Negative where digits before the point say nothing; None where there is no error.

    Examples
    --------
    >>> [decimals_of(stddev) for stddev in (0.034, 1.5, 12.3, 99.6, 4_321.0, 0.0)]
    [3, 1, 0, 0, -2, None]
    """
    return None if not 0 < least < math.inf else 1 - math.floor(math.log10(least))


def decimals_by_subject(table: pa.Table) -> dict[str, int | None]:
    """Return how many digits behind the point the figures of a table need, by what they are of.

    Counts and shares of a CDF have digits of their own. Figures without a standard error, such as quantiles,
    have those that half of their shortest interval justifies.

    Examples
    --------
    >>> decimals_by_subject(pa.table({"estimate": [44.9713], "stddev": [0.00234]}))
    {'': 4}
    """
    least: dict[str, dict[str, Array]] = {}
    for shown, column in zip(table.schema, table.columns, strict=True):
        if figure := figure_of(shown):
            least.setdefault(subject_of(shown), {})[figure] = _numbers(column)
    found: dict[str, int | None] = {}
    for subject, figures in least.items():
        errors = figures.get("stddev", np.empty(0))
        if not (errors > 0).any() and "lower" in figures:
            errors = (figures["upper"] - figures["lower"]) / 2
        found[subject] = decimals_of(float(errors[errors > 0].min(initial=np.inf)))
        if "stddev" in figures and not np.isfinite(figures["stddev"]).any():
            known = np.concatenate([own[np.isfinite(own)] for own in figures.values()])
            if (known == np.rint(known)).all():
                found[subject] = 0  # quantiles of whole numbers are whole
    return found


def directed(values: Array, figure: str, decimals: int | None) -> Array:
    """Return rounded figures: ends of intervals outward, so that they hold what they did.

    Examples
    --------
    >>> directed(np.array([10.26]), "lower", 1), directed(np.array([7410.0]), "estimate", -2)
    (array([10.2]), array([7400.]))
    """
    if decimals is None:
        return values
    towards, scale = _ROUNDED[figure], 10.0 ** abs(decimals)
    made = towards(values * scale) / scale if decimals > 0 else towards(values / scale) * scale
    return np.asarray(made + 0)  # for there to be no -0


def with_digits(table: pa.Table, decimals: int | Mapping[str, int | None] | None) -> pa.Table:
    """Return a table as a CSV file has it: figures rounded, plain texts, and nothing where bins are open.

    Estimates and standard errors are rounded to the nearest, ends of intervals outward, so that the intervals
    hold what they did. Digits may differ by what figures are of; see `decimals_by_subject`.

    Examples
    --------
    >>> table = pa.table({"estimate": [10.26], "stddev": [1.46], "lower": [7.41], "upper": [13.11]})
    >>> with_digits(table, 0).to_pylist()
    [{'estimate': 10.0, 'stddev': 1.0, 'lower': 7.0, 'upper': 14.0}]
    """
    fields, columns = [], []
    for shown, column in zip(table.schema, table.columns, strict=True):
        made: Any = column
        figure, floats = figure_of(shown), pa.types.is_floating(shown.type)
        if figure and floats:
            own = decimals[subject_of(shown)] if isinstance(decimals, Mapping) else decimals
            made = pa.array(directed(column.to_numpy(), figure, own), from_pandas=True)
        elif pa.types.is_dictionary(shown.type):
            made = column.cast(pa.utf8())
        elif floats and shown.name in REMARKS:
            few = [None if value is None else float(f"{value:.4g}") for value in column.to_pylist()]
            made = pa.array(few, pa.float64())
        elif floats and BOUND in (shown.metadata or {}):
            made = pa.array(column.to_numpy(), mask=~np.isfinite(column.to_numpy()))
        fields.append(pa.field(shown.name, made.type, metadata=shown.metadata))
        columns.append(made)
    return pa.Table.from_arrays(columns, schema=pa.schema(fields, metadata=table.schema.metadata))
