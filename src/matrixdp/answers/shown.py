"""A table as readers see it: terminals, notebooks, pages, workbooks and pictures lay out what it says."""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import cached_property
from typing import Any, final

import pyarrow as pa
import pyarrow.compute as pc

from matrixdp.answers.figures import (
    PLAIN,
    Figures,
    Presentation,
    figures_of,
    with_digits,
)
from matrixdp.answers.inference import METADATA
from matrixdp.answers.table import BOUND, FIGURES, REMARKS, TITLE, figure_of, heading, is_key, subject_of
from matrixdp.display import printable

QUALITY = "quality"
"""The column of the letters."""
#: Columns of shares that are no estimates.
_SHARES = ("quantile", "confidence")


@final
class Shown:
    """A table as readers see it.

    Parameters
    ----------
    table : pyarrow.Table
        Answers, a statistic, or the result of a SQL statement, with all digits.
    measures : str
        What its figures are of, as `PublishedTable` says it; empty where that is not known.
    rules : Presentation
        What readers see of figures.
    first : int, optional
        How many rows are shown; digits are those of the whole table.

    Attributes
    ----------
    table : pyarrow.Table
        The rows that are shown.
    total : int
        The number of all rows.
    figures : dict of str to Figures
        By what they are of.

    Examples
    --------
    >>> table = pa.table({"sex": ["f", "m"], "estimate": [1032.4, 2.2], "stddev": [5.0, 5.0]})
    >>> shown = Shown(table, "records", Presentation(suppress_above=0.33))
    >>> shown.texts("sex"), shown.texts("estimate"), shown.letters
    (['f', 'm'], ['1,032', 'F'], ['A', 'F'])
    """

    def __init__(
        self,
        table: pa.Table,
        measures: str = "",
        rules: Presentation = PLAIN,
        first: int | None = None,
    ) -> None:
        if "binning" in table.column_names and not any(table.column("binning").to_pylist()):
            table = table.drop_columns(["binning"])  # nothing was binned
        if "group" in table.column_names and len(table.column("group").unique()) <= 1:
            table = table.drop_columns(["group"])  # the name of one says nothing
        self.measures, self.rules, self.say = measures, rules, rules.say
        self.figures = figures_of(table, measures, rules, first)
        if "warning" in table.column_names and self.say.language != "en":
            place, column = table.column_names.index("warning"), table.column("warning").to_pylist()
            known = {text: self.say.warning(text) for text in {*column} - {None}}
            said = [known.get(text) for text in column]
            table = table.set_column(place, table.schema.field(place), pa.array(said, pa.utf8()))
        self.table, self.total = table.slice(0, first), table.num_rows

    @property
    def fields(self) -> list[pa.Field]:
        """The columns that readers see, but that of the letters: no ends of values, which their texts say."""
        return [field for field in self.table.schema if BOUND not in (field.metadata or {})]

    @property
    def keys(self) -> list[pa.Field]:
        """Those that say what a row is of."""
        return [field for field in self.fields if is_key(field)]

    def ends_of(self, name: str) -> tuple[pa.ChunkedArray, pa.ChunkedArray] | None:
        """Return where the values of a key begin and end, of numbers and days; None of any other key."""
        place = self.table.column_names.index(name) + 1  # they stand behind it
        behind = self.table.schema.field(place).metadata if place < self.table.num_columns else None
        return (self.table.column(place), self.table.column(place + 1)) if BOUND in (behind or {}) else None

    def dated(self, name: str) -> bool:
        """Whether a key is of days, or of periods."""
        ends = self.ends_of(name)
        return ends is not None and pa.types.is_date(ends[1].type) and not ends[1].null_count

    @property
    def main(self) -> Figures | None:
        """The figures of the statistic, or of the counts; None of a SQL result, which has several alike."""
        return self.figures.get("")

    @cached_property
    def letters(self) -> list[str]:
        """The letter of each row; empty where there are none."""
        letters = [] if self.main is None else self.main.letters
        return letters if any(letters) else []

    @property
    def hidden(self) -> list[bool]:
        """Which rows are hidden by a rule."""
        return [False] * len(self.table) if self.main is None else self.main.hidden.tolist()

    def head(self, field: pa.Field, confidence: float | None = None) -> str:
        """Return what readers call a column; the ends of intervals begin with their confidence if given."""
        level = "" if confidence is None else self.say.number(100 * confidence)
        return printable(heading(field, self.say, level))

    def texts(self, name: str) -> list[str]:
        """Return a column as texts: ``F`` stands for a hidden figure, ``-`` for one that does not exist."""
        field, column = self.table.schema.field(name), self.table.column(name).to_pylist()
        if figure := figure_of(field):
            return self.figures[subject_of(field)].texts(figure)
        none = "" if name in REMARKS else "NULL" if self.main is None else self.say("all")
        return [none if value is None else self._text(name, value) for value in column]

    def _text(self, name: str, value: object) -> str:
        if isinstance(value, float):
            return self.say.percent(value) if name in _SHARES else self.say.number(value)
        return printable(str(value))

    def rows(self) -> list[list[tuple[str, str]]]:
        """Return what each row is of: what its keys are called, and their values, but those that are all."""
        columns = [(self.head(own), self.texts(own.name), self.table.column(own.name)) for own in self.keys]
        return [
            [(head, texts[place]) for head, texts, column in columns if column[place].is_valid]
            for place in range(len(self.table))
        ]

    @cached_property
    def numbers(self) -> pa.Table:
        """The same with numbers as numbers: what is hidden is null, and letters are the last column."""
        made = with_digits(self.table, {name: own.decimals for name, own in self.figures.items()})
        for place, field in enumerate(self.table.schema):
            if figure := figure_of(field):
                own: Any = self.figures[subject_of(field)]
                if pa.types.is_floating(field.type):
                    values = pa.array(own.shown[FIGURES.index(figure)], from_pandas=True)
                else:
                    values = pc.if_else(pa.array(own.hidden), None, made.column(place))
                made = made.set_column(place, field, values)
        if self.letters:
            titled = pa.field(QUALITY, pa.utf8(), metadata={TITLE: self.say(QUALITY)})
            made = made.append_column(titled, pa.array(self.letters))
        return made

    @property
    def warnings(self) -> dict[str, list[int]]:
        """What is to be known of rows before they are used, with their numbers from 1."""
        found: dict[str, list[int]] = {}
        told: Iterable[str | None] = ()
        if "warning" in self.table.column_names:
            told = self.table.column("warning").to_pylist()
        for place, words in enumerate(told, 1):
            if words:
                found.setdefault(words, []).append(place)
        return found

    @property
    def notes(self) -> list[str]:
        """What else is to be known: how the numbers of an attribute count, what a statement did."""
        said = json.loads((self.table.schema.metadata or {}).get(METADATA, b"{}"))
        return [*filter(None, [said.get("note")]), *said.get("notes", [])]
