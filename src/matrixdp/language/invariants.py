"""What is publicly known of a table beside its domain: published counts, and combinations that cannot be."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import final

import numpy as np

from matrixdp import forms
from matrixdp.domain import Domain
from matrixdp.errors import EntryError, within
from matrixdp.forms import AnyOf, Form, FormError, ListOf, ResolvePath, Schema, WriteArray
from matrixdp.language import entries
from matrixdp.language.builders import marginals
from matrixdp.language.entries import ENTRY, Condition, Entry
from matrixdp.queries.groups import Group

ImpossibleBox = Mapping[str, Condition]
"""A combination of values that no record has."""

_COUNTS = "a count, or a list of counts, one for each query: finite numbers from 0 on"
_LISTED = "a number of records, or a list of entries with their `counts`"


@final
@dataclass(frozen=True)
class Published:
    """A published table: an entry of one query group, and its counts.

    Parameters
    ----------
    entry : Entry
    counts : tuple of float
        One for each query, row-major.
    """

    entry: Entry
    counts: tuple[float, ...]

    def group(self, domain: Domain) -> Group:
        """Return the queries of the table.

        Raises
        ------
        EntryError
            If the entry does not fit the domain, is of several groups, or has another number of queries.
        """
        group = entries.one_group(self.entry, domain)
        if group.queries != len(self.counts):
            expected = f"{group.queries}, one for each query of {group.name}"
            raise EntryError.at(("counts",), f"{len(self.counts)} counts", expected, code="wrong-size")
        return group


@final
class _PublishedForm(Form[Published]):
    """An entry with the key ``counts``, or a number of records alone."""

    def read(self, written: object, resolve: ResolvePath) -> Published:
        if isinstance(written, Published):
            return written
        if isinstance(written, tuple) and len(written) == 2 and isinstance(written[0], Entry):
            return Published(written[0], _counts(written[1]))
        if not isinstance(written, Mapping):
            return Published(marginals(0), _counts(written, single=True))
        if "counts" not in written:
            raise FormError.at(("counts",), "nothing", _COUNTS, code="missing-key")
        return Published(*entries.entry_beside("counts", _counts, written, resolve))

    def write(self, value: Published, write_array: WriteArray = forms.as_lists) -> object:
        counts = list(value.counts)
        return value.entry.to_spec(write_array) | {"counts": counts[0] if len(counts) == 1 else counts}

    def schema(self, definitions: Schema) -> Schema:
        ENTRY.schema(definitions)
        count = {"type": "number", "minimum": 0}
        table = {
            "type": "object",
            "properties": {"counts": {"anyOf": [count, {"type": "array", "minItems": 1}]}},
            "required": ["counts"],
            "minProperties": 2,
        }
        return {"anyOf": [count, table]}


def _counts(written: object, *, single: bool = False) -> tuple[float, ...]:
    try:
        counts = np.asarray(written, dtype=np.float64).ravel()
    except (TypeError, ValueError, OverflowError):
        counts = np.array([math.nan])
    strange = isinstance(written, bool | str) or not counts.size or (single and np.ndim(written) > 0)  # type: ignore[arg-type]
    if strange or not (np.isfinite(counts) & (counts >= 0)).all():
        raise FormError.at((), forms.describe_value(written), _LISTED if single else _COUNTS)
    return tuple(counts.tolist())


_TABLE = _PublishedForm()
PUBLISHED: Form[tuple[Published, ...]] = AnyOf(
    ((lambda value: isinstance(value, int | float | Mapping | Published), forms.Unbracketed(_TABLE, (0,))),),
    ListOf(_TABLE, _LISTED, least=1),
)
"""Published tables: a number of records, or a list of entries with their ``counts``."""
IMPOSSIBLE = ListOf(
    entries.BOX, "a list of combinations that cannot be: [{age: {range: [0, 14]}, married: yes}]", least=1
)
"""Combinations of values that no record has, each a box as ``cells`` has them."""


def check_public(
    domain: Domain, totals: Sequence[Published] = (), impossible: Sequence[ImpossibleBox] = ()
) -> None:
    """Check that published tables and impossible combinations fit a domain.

    Raises
    ------
    EntryError, DomainError
        If they do not; at ``invariants`` or ``structural_zeros``.
    """
    for place, one in enumerate(totals):
        with within("invariants", place):
            one.group(domain)
    for place, box in enumerate(impossible):
        for name, condition in box.items():
            with within("structural_zeros", place, name):
                entries.allowed_values(entries.find_attribute(domain, name), condition)
