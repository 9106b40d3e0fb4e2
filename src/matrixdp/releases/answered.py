"""Answers to single areas, read from the files that a release has for each level of areas."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from matrixdp.answers.table import levels_of
from matrixdp.errors import StorageError, reading
from matrixdp.exact.linear import Array
from matrixdp.plans.plan import Batch, Estimates
from matrixdp.queries import Group, Labelled, Predicates, ProductGroup, Ranges, Sets, Total, Workload
from matrixdp.releases.record import ANSWERS_PART, RECORD, level_folder
from matrixdp.storage.archive import arrow_file, entry

#: Where more rows would have to be read, answers are computed.
_MOST_ROWS = 1 << 23


@final
class Answered(Estimates):
    """Estimates of a release: those in its files for each level are read there, all others are computed.

    Of the files that are read, all must have the digests that the record lists.

    Parameters
    ----------
    folder : Path
        The folder of the release.
    written : mapping
        Its record.
    workload : Workload
        What was answered.
    own : Estimates
        What follows from the measurement.
    """

    def __init__(self, folder: Path, written: Mapping[str, Any], workload: Workload, own: Estimates) -> None:
        self._folder, self._written, self._workload, self._own = folder, written, workload, own
        self._checked: set[str] = set()

    def marginal(self, attributes: tuple[str, ...]) -> Array:
        return self._own.marginal(attributes)

    def answers(self, group: Group) -> Array:
        found = self._read(group)
        return self._own.answers(group) if found is None else found

    def batches(self, groups: Sequence[Group]) -> Iterator[Batch]:
        found = {place: self._read(group) for place, group in enumerate(groups)}
        computed = [place for place, read in found.items() if read is None]
        for place, read in found.items():
            if read is not None:
                yield place, 0, groups[place], read
        for place, first, asked, own in self._own.batches([groups[place] for place in computed]):
            yield computed[place], first, asked, own

    @cached_property
    def _asked(self) -> tuple[str, dict[Hashable, str | None]]:
        """The attribute of areas, and the name of the group that asks something at a level, if one does."""
        known = levels_of(self._workload.domain, self._workload.groups)
        assert known is not None
        area, levels = known
        names: dict[Hashable, str | None] = {}
        called: set[tuple[str, str]] = set()
        for group, level in zip(self._workload.groups, levels, strict=True):
            if isinstance(group, ProductGroup):
                key, again = (level, _beside(group, area)), (level, group.name) in called
                names.setdefault(key, None if again else group.name)
            called.add((level, group.name))
        return area, names

    @cached_property
    def _larger(self) -> dict[tuple[int, ...], tuple[str, str]]:
        """The level and the text of each of the larger areas, by its codes."""
        attribute = self._workload.domain[self._asked[0]]
        return {
            tuple(sorted(codes)): (level.name, text)
            for level in attribute.codebook.levels
            for codes, text in zip(level.sets, level.labels(attribute), strict=True)
        }

    def _areas(self, predicates: Predicates) -> list[tuple[str, str | None]]:
        """Return the level and the text of each area that is asked; none where some are no areas."""
        attribute = self._workload.domain[self._asked[0]]
        own = predicates.predicates if isinstance(predicates, Labelled) else predicates
        sets: Iterable[Sequence[int]] = own.sets if isinstance(own, Sets) else ()
        if isinstance(own, Total):
            return [("total", None)]
        if isinstance(own, Ranges):
            sets = (range(first, last + 1) for first, last in own.intervals)
        found: list[tuple[str, str | None]] = []
        for codes in sets:
            if len(codes) == 1:
                found.append((attribute.name, attribute.label(codes[0])))
            elif (larger := self._larger.get(tuple(sorted(codes)))) is not None:
                found.append(larger)
            else:
                return []
        return found

    def _read(self, group: Group) -> Array | None:
        """Return the estimates of a group from the files; None where they do not have them at hand."""
        area, names = self._asked
        if not isinstance(group, ProductGroup) or group.queries > _MOST_ROWS:
            return None
        asked = self._areas(group.sets.get(area, Total()))
        texts = [text for _, text in asked]
        if len({level for level, _ in asked}) != 1 or len(set(texts)) < len(texts):
            return None
        level = asked[0][0]
        name = names.get((level, _beside(group, area)))
        if name is None:
            return None
        path = self._folder / level_folder(level)
        with reading(path, "answers"):
            rows = self._rows(level, name, pa.array(texts, pa.utf8()))
            if rows is None:
                return None
            if len(rows) != group.queries:
                raise StorageError(
                    f"{path}: {len(rows)} answers to {name!r}; {group.queries} follow", "damaged-file"
                )
            own = rows["estimate"].to_numpy()[np.argsort(rows["place"].to_numpy(), kind="stable")]
        beside = [count for one, count in zip(group.attributes, group.counts, strict=True) if one != area]
        place = group.attributes.index(area) if area in group.attributes else 0
        return np.asarray(np.moveaxis(own.reshape(len(texts), *beside), 0, place).ravel())

    def _rows(self, level: str, name: str, texts: pa.Array) -> pa.Table | None:
        """Return the estimates of a group in some areas, and the place of each area among these."""
        column = self._written["answers"]["attributes"][self._asked[0]]
        listed: Mapping[str, Any] = self._written["files"]
        ends = {"group": (name, name), column: (pc.min(texts).as_py(), pc.max(texts).as_py())}
        found, left = [], _MOST_ROWS
        for part in sorted(filter(ANSWERS_PART.fullmatch, listed)):
            if part.rpartition("/")[0] != level_folder(level):
                continue
            try:
                with arrow_file(self._folder / part) as file:
                    held = pq.ParquetFile(file, pre_buffer=False)
                    for place in range(held.num_row_groups):
                        if not _may_hold(held.metadata.row_group(place), ends):
                            continue
                        left -= held.metadata.row_group(place).num_rows
                        if left < 0:
                            return None
                        self._check(part)
                        rows = held.read_row_group(place, ["group", column, "estimate"])
                        rows = rows.filter(pc.equal(rows["group"].cast(pa.utf8()), name))
                        places = pc.index_in(rows[column].cast(pa.utf8()), texts)
                        found.append(rows.select(["estimate"]).append_column("place", places).drop_null())
            except (OSError, pa.ArrowException):
                self._check(part)
                raise ValueError(part) from None
        return pa.concat_tables(found)

    def _check(self, part: str) -> None:
        """Check the digest of a file, once."""
        path = self._folder / part
        if part not in self._checked and entry(path, plain=True) != self._written["files"][part]:
            raise StorageError(
                f"{path}: does not belong to {RECORD}: its checksum is another", "damaged-file"
            )
        self._checked.add(part)


def _may_hold(rows: pq.RowGroupMetaData, ends: Mapping[str, tuple[str | None, str | None]]) -> bool:
    """Return whether a row group may hold rows with values of columns between two ends."""
    for place in range(rows.num_columns):
        own = rows.column(place)
        low, high = ends.get(own.path_in_schema, (None, None))
        known = own.statistics
        known = known if known is not None and known.has_min_max else None
        if known and low is not None and high is not None and (high < known.min or known.max < low):
            return False
    return True


def _beside(group: ProductGroup, area: str) -> Hashable:
    """Return what a group asks of all other attributes."""
    asked = zip(group.attributes, group.predicates, group.sizes, strict=True)
    return tuple((name, own.key(n)) for name, own, n in asked if name != area and not isinstance(own, Total))
