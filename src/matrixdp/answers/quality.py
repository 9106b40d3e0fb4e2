"""How reliable figures are, and what readers see of them: post-processing, at no privacy cost."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self, final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from matrixdp.answers.inference import METADATA
from matrixdp.answers.intervals import decimals_by_subject, directed, for_people
from matrixdp.answers.table import BOUND, FIGURES, REMARKS, TITLE, figure_of, subject_of
from matrixdp.display import figure, printable, rounded
from matrixdp.errors import SpecificationError
from matrixdp.forms import describe_value
from matrixdp.selection.rounds import CV
from matrixdp.statistics.attributes import ALL_VALUES
from matrixdp.texts import LARGEST_BASE, Publication, Words, words_in

Array = NDArray[np.float64]

GRADES = (("A", 0.05), ("B", 0.15), ("C", 1 / CV))
"""Letters with the largest coefficient of variation (standard error over estimate) that each stands for."""
UNRELIABLE = "F"
"""The letter of figures beyond all grades, and what stands in place of a suppressed figure."""
MISSING = "-"
"""What stands in place of a figure that does not exist."""
QUALITY = "quality"
"""The column of the letters in a table for readers."""


def grades(estimates: Sequence[float | None], deviations: Sequence[float | None]) -> list[str]:
    """Return the letter of each figure, given its deviation; see `deviations_of`.

    Examples
    --------
    >>> grades([1000.0, 100.0, 30.0, 3.0, -2.0, 7.0, 1.4], [12.0, 12.0, 9.0, 9.0, 9.0, None, math.inf])
    ['A', 'B', 'C', 'F', 'F', '', 'F']
    """
    return [
        "" if own is None else next((letter for letter, most in GRADES if own <= most), UNRELIABLE)
        for own in map(_variation, estimates, deviations)
    ]


def deviations_of(table: pa.Table) -> Array:
    """Return how far the estimates of a table may be off, as their letters judge it.

    The standard error, or half of the interval by the number of standard errors that intervals reach, where
    that is wider. Infinite where noise leaves an estimate of the row without a bounded interval, or hides
    which of all values a quantile is; not a number where the kind of figure has no error.

    Examples
    --------
    >>> ends = {"lower": [2.0, None], "upper": [6.0, None]}
    >>> deviations_of(pa.table({"estimate": [4.0, 1.4], "stddev": [1.0, None], **ends}))
    array([ 1., inf])
    """
    made = dict.fromkeys(FIGURES, np.full(len(table), np.nan))
    missing = dict.fromkeys(FIGURES, np.ones(len(table), dtype=bool))
    unbounded = np.zeros(len(table), dtype=bool)
    for field, column in zip(table.schema, table.columns, strict=True):
        if field.name in FIGURES and pa.types.is_floating(field.type):
            made[field.name] = column.to_numpy()
        if kind := figure_of(field):
            missing[kind] = column.is_null(nan_is_null=True).to_numpy()
        if kind == "upper":  # the last of what belongs together
            unbounded |= ~missing["estimate"] & missing["lower"] & missing["upper"]
    if "warning" in table.column_names:
        hidden = pc.equal(table.column("warning"), ALL_VALUES).fill_null(False)
        unbounded |= ~missing["estimate"] & hidden.to_numpy()
    stddevs = made["stddev"]
    if reach := json.loads((table.schema.metadata or {}).get(METADATA, b"{}")).get("multiplier"):
        halves = (made["upper"] - made["lower"]) / 2 / reach
        stddevs = np.where(halves > stddevs * (1 + 1e-9), halves, stddevs)
    return np.where(unbounded, np.inf, stddevs)


def reliable(estimates: Array, variances: Array) -> int:
    """Return how many figures have one of the letters of `GRADES`: a standard error of at most a third.

    Examples
    --------
    >>> reliable(np.array([1000.0, 30.0, 3.0, -2.0]), np.array([144.0, 81.0, 81.0, 81.0]))
    2
    """
    return int((np.sqrt(variances) <= GRADES[-1][1] * np.abs(estimates)).sum())


def _variation(estimate: float | None, deviation: float | None) -> float | None:
    """Return the coefficient of variation of a figure; None where it has no error."""
    if deviation == math.inf:
        return math.inf
    if estimate is None or deviation is None or math.isnan(estimate + deviation):
        return None
    return abs(deviation / estimate) if estimate else (math.inf if deviation else 0.0)


@final
@dataclass(frozen=True)
class Presentation:
    """What readers see of figures; files for machines keep every estimate as it is.

    Parameters
    ----------
    suppress_above : float, optional
        ``F`` takes the place of figures whose coefficient of variation is larger, or which are unbounded.
    within_range : bool
        Whether counts below 0 are shown as 0, and shares outside [0, 1] as the nearer end; the ends of their
        intervals, too.
    round_to : int, optional
        Counts are shown as multiples of it, ends of intervals rounded outward.
    language : str
        Of the words around figures.

    Raises
    ------
    SpecificationError
        If the coefficient of variation is no number above 0, or the base no integer from 1 to 10^9.

    Examples
    --------
    >>> Presentation(suppress_above=0.33).suppressed([100.0, 3.0], [5.0, 5.0])
    [False, True]
    """

    suppress_above: float | None = None
    within_range: bool = False
    round_to: int | None = None
    language: str = "en"

    def __post_init__(self) -> None:
        most, base = self.suppress_above, self.round_to
        if most is not None and (
            isinstance(most, bool) or not isinstance(most, int | float) or not 0 < most < math.inf
        ):
            expected = "a coefficient of variation above 0, such as 0.33"
            raise SpecificationError.at(("suppress_above",), describe_value(most), expected)
        if base is not None and (type(base) is not int or not 1 <= base <= LARGEST_BASE):
            expected = f"an integer from 1 to {LARGEST_BASE}, such as 5"
            raise SpecificationError.at(("round_to",), describe_value(base), expected)

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

    def suppressed(self, estimates: Sequence[float | None], deviations: Sequence[float | None]) -> list[bool]:
        """Return which figures are not shown."""
        most = math.inf if self.suppress_above is None else self.suppress_above
        return [own is not None and own > most for own in map(_variation, estimates, deviations)]

    def shown(self, values: Array, figure: str, unit: str, decimals: int | None, free: Any = False) -> Array:
        """Return what is shown of figures of a unit, given the digits that their errors justify.

        No range holds those that are ``free``, the unbounded ones: at an end of it they would look exact.

        Examples
        --------
        >>> Presentation(within_range=True, round_to=5).shown(np.array([-3.2, 12.6]), "upper", "records", 0)
        array([ 0., 15.])
        """
        base = self._base(unit, decimals)
        if figure == "stddev" or base is None:
            made = directed(values, figure, decimals)
        else:
            made = directed(values / base, figure, 0) * base
        if self.within_range and unit in ("records", "share") and figure != "stddev":
            made = np.where(free, made, np.clip(made, 0.0, 1.0 if unit == "share" else None))
        return made

    def text(self, value: float | None, unit: str, decimals: int | None) -> str:
        """Return a figure that is shown as text."""
        if value is None or math.isnan(value):
            return MISSING
        digits = self.digits(unit, decimals)
        return f"{value:,.4g}" if digits is None else rounded(value, max(digits, 0))

    def margins(self, figures: Array, unit: str, decimals: int | None) -> list[str]:
        """Return half of each interval as text, or its ends where the estimate is not in its middle.

        Parameters
        ----------
        figures : ndarray, shape (4, n)
            Estimates, standard errors, lower and upper ends.

        Examples
        --------
        >>> Presentation().margins(np.array([[10.0], [1.0], [8.04], [11.96]]), "records", 1)
        ['± 2.0']
        """
        estimates, _, low, high = figures
        halves = (high - low) / 2
        middle = np.abs(low + high - 2 * estimates) <= 1e-9 * (halves + np.abs(estimates))
        shown = [
            self.shown(own, figure, unit, decimals).tolist()
            for own, figure in ((halves, "upper"), (low, "lower"), (high, "upper"))
        ]
        found = []
        for same, *own in zip(middle.tolist(), *shown, strict=True):
            half, *ends = (self.text(value, unit, decimals) for value in own)
            spread = self.say("range", low=ends[0], high=ends[1])
            found.append("" if MISSING in ends else f"\N{PLUS-MINUS SIGN} {half}" if same else spread)
        return found

    def digits(self, unit: str, decimals: int | None) -> int | None:
        """Return how many digits behind the point are shown of a unit's estimates and ends of intervals."""
        return decimals if self._base(unit, decimals) is None else 0

    def _base(self, unit: str, decimals: int | None) -> int | None:
        """Return what counts are multiples of, unless their digits make them so anyway."""
        if self.round_to is None or unit not in ("records", "difference"):
            return None
        fits = decimals is not None and decimals <= 0 and 10**-decimals % self.round_to == 0
        return None if fits else self.round_to

    @property
    def words(self) -> list[str]:
        """The rules that are applied, in sentences."""
        return self.rules("records")

    def rules(self, unit: str) -> list[str]:
        """Return the rules that are applied to figures of a unit, in sentences."""
        say, found = self.say, [self.say("grades")]
        if self.suppress_above is not None:
            found.append(say("suppressed", most=f"{100 * self.suppress_above:g}", mark=UNRELIABLE))
        if self.round_to is not None and unit == "records":
            found.append(say("rounded", base=f"{self.round_to:,}"))
        if self.within_range and unit in ("records", "share"):
            found.append(say("within_range"))
        return found


def graded(table: pa.Table, presentation: Presentation) -> tuple[list[str], NDArray[np.bool_]]:
    """Return the letter of each row of a table, ``F`` where it is suppressed, and whether it is."""
    deviations, estimates = deviations_of(table).tolist(), [None] * len(table)
    if "estimate" in table.column_names and pa.types.is_floating(table.schema.field("estimate").type):
        estimates = table.column("estimate").to_pylist()  # dates have no coefficient of variation
    hidden = presentation.suppressed(estimates, deviations)
    letters = zip(grades(estimates, deviations), hidden, strict=True)
    return [UNRELIABLE if gone else letter for letter, gone in letters], np.array(hidden, dtype=bool)


def for_readers(
    table: pa.Table, unit: str, presentation: Presentation, decimals: Mapping[str, int | None] | None = None
) -> pa.Table:
    """Return a table as readers see it: rounded, without what is suppressed, with a column of letters.

    Suppressed figures are null, and their letter is ``F``. Where nothing has a standard error there is no
    column of letters. Digits are those that the errors of the table justify, where they are left out.

    Examples
    --------
    >>> table = pa.table({"estimate": [103.4, 2.2], "stddev": [5.0, 5.0]})
    >>> for_readers(table, "records", Presentation(suppress_above=0.33)).to_pylist()
    [{'estimate': 103.4, 'stddev': 5.0, 'quality': 'A'}, {'estimate': None, 'stddev': None, 'quality': 'F'}]
    """
    if "binning" in table.column_names and not any(table.column("binning").to_pylist()):
        table = table.drop_columns(["binning"])  # nothing was binned
    decimals = decimals_by_subject(table) if decimals is None else decimals
    made = for_people(table, decimals)
    (letters, hidden), unbounded = graded(table, presentation), np.isinf(deviations_of(table))
    for place, field in enumerate(table.schema):
        figure, subject = figure_of(field), subject_of(field)
        if figure and pa.types.is_floating(field.type):
            values = table.column(place).to_numpy()
            own = subject or unit
            shown = presentation.shown(values, figure, own, decimals[subject], unbounded)
            made = made.set_column(place, field, pa.array(shown, mask=hidden | np.isnan(values)))
        elif figure and hidden.any():
            own = made.column(place)
            made = made.set_column(place, field, pc.if_else(pa.array(hidden), None, own))
    if any(letters):
        titled = pa.field(QUALITY, pa.utf8(), metadata={TITLE: presentation.say(QUALITY)})
        made = made.append_column(titled, pa.array(letters))
    return made


def suppressed_rows(shown: pa.Table) -> list[bool]:
    """Return which rows of a table for readers are suppressed, rather than without a figure."""
    if QUALITY not in shown.column_names:
        return [False] * len(shown)
    found = [letter == UNRELIABLE for letter in shown.column(QUALITY).to_pylist()]
    for field, column in zip(shown.schema, shown.columns, strict=True):
        if figure_of(field) == "estimate":
            found = [own and value is None for own, value in zip(found, column.to_pylist(), strict=True)]
    return found


def texts_for_readers(
    table: pa.Table, unit: str, presentation: Presentation, most: int | None = None
) -> dict[str, list[str]]:
    """Return the columns of a table as texts, those of its first rows where ``most`` says how many.

    ``F`` stands for a suppressed figure, ``-`` for one that does not exist.

    Examples
    --------
    >>> table = pa.table({"sex": ["f", "m"], "estimate": [1032.4, 2.2], "stddev": [5.0, 5.0]})
    >>> texts_for_readers(table, "records", Presentation(suppress_above=0.33))["estimate"]
    ['1,032.4', 'F']
    """
    decimals = decimals_by_subject(table)
    shown = for_readers(table.slice(0, most), unit, presentation, decimals)
    gone = suppressed_rows(shown)
    found = {}
    for field, column in zip(shown.schema, shown.columns, strict=True):
        kind, subject = figure_of(field), subject_of(field)
        values = column.to_pylist()
        if kind:
            own = subject or unit if kind != "stddev" else ""
            texts = [_figure_text(presentation, value, own, decimals.get(subject)) for value in values]
            found[field.name] = [UNRELIABLE if own else t for t, own in zip(texts, gone, strict=True)]
        elif BOUND not in (field.metadata or {}):
            none = "" if field.name in REMARKS else presentation.say("all")
            found[field.name] = [_key_text(value, none) for value in values]
    return found


def _figure_text(presentation: Presentation, value: object, unit: str, decimals: int | None) -> str:
    if value is None or isinstance(value, float):
        return presentation.text(value, unit, decimals)
    return printable(str(value))


def _key_text(value: object, none: str) -> str:
    if value is None:
        return none
    return figure(value) if isinstance(value, float) else printable(str(value))
