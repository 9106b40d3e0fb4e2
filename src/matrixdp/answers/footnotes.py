"""What a publication says of rows of tables: footnotes, and the rows that it chooses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from matrixdp.answers.publication import PublishedTable
from matrixdp.answers.shown import Shown
from matrixdp.answers.table import TITLE
from matrixdp.errors import WorkloadError, within
from matrixdp.forms import unknown_name

if TYPE_CHECKING:
    from matrixdp.releases.release import Release


@final
@dataclass(frozen=True)
class Mark:
    """A footnote: its number, what it is of (columns with their values; nothing: the table), and its text."""

    number: int
    of: frozenset[tuple[str, str]]
    text: str


def footnotes(release: Release, tables: Sequence[PublishedTable]) -> dict[str, list[Mark]]:
    """Return the footnotes of the publication by the names of tables, numbered in the order of these.

    Raises
    ------
    WorkloadError
        If a footnote is of rows that do not exist.
    """
    found, number = dict[str, list[Mark]](), 0
    for one in tables:
        for place, own in enumerate(release.publication.footnotes):
            if release.chosen["footnotes", place, "table"] != one.name:
                continue
            of: frozenset[tuple[str, str]] = frozenset()
            if own.where:
                with within("publication", "footnotes", place):
                    rows = chosen_rows(release, one, own.where)
                if not rows.places:
                    continue  # of a series, not yet
                asked = {rows.shown.head(field) for field in rows.columns}
                of = frozenset(pair for pair in rows.shown.rows()[rows.places[0]] if pair[0] in asked)
            number += 1
            text = own.text.within(release.domain.language)
            found.setdefault(one.name, []).append(Mark(number, of, text))
    return found


@final
@dataclass(frozen=True)
class Chosen:
    """Rows of a table that are of some values: the table as readers see it, their places, and the columns."""

    shown: Shown
    places: list[int]
    columns: list[pa.Field]


def chosen_rows(release: Release, one: PublishedTable, where: Mapping[str, object]) -> Chosen:
    """Return the rows of a table of some values; of a table by time the newest, where nothing says which.

    Columns are called by their names or titles, values as the table has them: in the language of files, of
    the publication, or of the release.

    Raises
    ------
    WorkloadError
        If rows are not of that, or there are no such rows.
    """
    written = (release.in_language(own) for own in (None, release.publication.language))
    others = [_shown(own, one.name) for own in (release, *written)]
    shown, mask, columns = others[0], np.ones(others[0].total, dtype=bool), list[pa.Field]()
    for name, value in where.items():
        places = (place for own in others for place, field in enumerate(own.keys) if _is(field, name))
        if (place := next(places, None)) is None:
            names = [own.name for own in shown.keys]
            raise WorkloadError(unknown_name(("where", name), name, "what the rows are of", names))
        columns.append(shown.keys[place])
        raw = others[1].table.column(others[1].keys[place].name).cast(pa.utf8()).to_pylist()
        texts = zip(*(own.texts(own.keys[place].name) for own in others), map(str, raw), strict=True)
        mask &= [str(value).casefold() in map(str.casefold, row) for row in texts]
    found = np.flatnonzero(mask)
    if not len(found):
        if release.series is not None:
            return Chosen(shown, [], columns)  # perhaps not yet
        said = ", ".join(f"{name}: {value}" for name, value in where.items())
        raise WorkloadError.at(("where",), said, "values of a row of the table", code="unknown-name")
    latest = None if any(shown.dated(own.name) for own in columns) else newest(shown, found)
    return Chosen(shown, found.tolist() if latest is None else latest, columns)


def _shown(release: Release, name: str) -> Shown:
    one = next(own for own in release.tables if own.name == name)
    return Shown(release.table(one).to_arrow(), one.measures, release.presentation)


def _is(field: pa.Field, name: str) -> bool:
    return name in (field.name, (field.metadata or {}).get(TITLE, b"").decode())


def newest(shown: Shown, among: NDArray[np.intp] | None = None) -> list[int] | None:
    """Return the places of the rows, among some, of the last day; None of a table that is not by time."""
    for field in shown.keys:
        if shown.dated(field.name):
            ends = shown.ends_of(field.name)
            assert ends is not None
            days = ends[1].cast(pa.int32()).to_numpy()
            known = np.arange(len(days)) if among is None else among
            return [int(place) for place in known if days[place] == days[known].max()]
    return None
