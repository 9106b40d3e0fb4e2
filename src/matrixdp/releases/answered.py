"""Answers to single areas, read from the files that a release has for each level of areas."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from matrixdp.answers.table import levels_of
from matrixdp.domain import Attribute
from matrixdp.errors import StorageError, reading
from matrixdp.exact.linear import Array
from matrixdp.mapped import may_hold
from matrixdp.plans.plan import Batch, Estimates
from matrixdp.queries import Group, Labelled, Predicates, ProductGroup, Sets, Total, Workload
from matrixdp.releases.record import RECORD, level_folder
from matrixdp.storage.archive import arrow_file, entry

#: More answers at once are computed.
_MOST_ROWS = 1 << 20


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
        found = self._read(groups[0]) if len(groups) == 1 else None
        yield from self._own.batches(groups) if found is None else [(0, 0, groups[0], found)]

    @cached_property
    def _asked(self) -> tuple[Attribute, dict[tuple[str, Hashable], str | None]]:
        """The attribute of areas, and which group asks something at a level; None where two share a name."""
        known = levels_of(self._workload.domain, self._workload.groups)
        assert known is not None
        area, levels = known
        places = [*zip(levels, (group.name for group in self._workload), strict=True)]
        names = {
            (place[0], _beside(group, area)): place[1] if places.count(place) == 1 else None
            for place, group in zip(places, self._workload, strict=True)
        }
        return self._workload.domain[area], names

    @cached_property
    def _larger(self) -> dict[Sequence[int], tuple[str, str | None]]:
        """The level and the text of each of the larger areas, by its codes."""
        attribute = self._asked[0]
        return {
            tuple(sorted(codes)): (level.name, text)
            for level in attribute.codebook.levels
            for codes, text in zip(level.sets, level.labels(attribute), strict=True)
        }

    def _areas(self, asked: Predicates) -> list[tuple[str, str | None]]:
        """Return the level and the text of each area that is asked; of what is no area without a level."""
        attribute, sets = self._asked[0], asked.predicates if isinstance(asked, Labelled) else asked
        if not isinstance(sets, Sets):
            return [("total" if isinstance(sets, Total) else "", None)]
        return [
            (attribute.name, attribute.label(codes[0]))
            if len(codes) == 1
            else self._larger.get(tuple(sorted(codes)), ("", None))
            for codes in sets.sets
        ]

    def _read(self, group: Group) -> Array | None:
        """Return the estimates of a group from the files; None where they do not have them at hand."""
        attribute, names = self._asked
        area = attribute.name
        if not isinstance(group, ProductGroup) or group.queries > _MOST_ROWS:
            return None
        levels, texts = zip(*self._areas(group.sets.get(area, Total())), strict=True)
        name = names.get((levels[0], _beside(group, area)))
        if name is None or len(set(levels)) > 1 or len(set(texts)) < len(texts):
            return None
        with reading(self._folder / level_folder(levels[0]), "answers"):
            rows = self._rows(level_folder(levels[0]), name, pa.array(texts, pa.utf8()))
            if len(rows) != group.queries:
                raise ValueError("another number of answers than follow")
            own = rows["estimate"].to_numpy()[np.argsort(rows["place"].to_numpy(), kind="stable")]
        counts = dict(zip(group.attributes, group.counts, strict=True))
        place = [*counts].index(area) if area in counts else 0
        beside = [count for one, count in counts.items() if one != area]
        return np.asarray(np.moveaxis(own.reshape(len(texts), *beside), 0, place).ravel())

    def _rows(self, level: str, name: str, texts: pa.Array) -> pa.Table:
        """Return the estimates of a group in some areas, and the place of each area among these."""
        column = self._written["answers"]["attributes"][self._asked[0].name]
        ends = {"group": (name, name)}
        if texts.null_count < len(texts):
            ends[column] = pc.min(texts).as_py(), pc.max(texts).as_py()
        found = []
        for part in sorted(one for one in self._written["files"] if one.startswith(f"{level}/")):
            try:
                with arrow_file(self._folder / part) as file:
                    held = pq.ParquetFile(file, pre_buffer=False)
                    groups = map(held.metadata.row_group, range(held.num_row_groups))
                    for place in [place for place, own in enumerate(groups) if may_hold(own, ends)]:
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
            told = f"{path}: does not belong to {RECORD}: its checksum is another"
            raise StorageError(told, "damaged-file")
        self._checked.add(part)


def _beside(group: Group, area: str) -> Hashable:
    """Return what a group asks of all other attributes."""
    if not isinstance(group, ProductGroup):
        return group.key()
    asked = zip(group.attributes, group.predicates, group.sizes, strict=True)
    return tuple((name, own.key(n)) for name, own, n in asked if name != area and not isinstance(own, Total))
