"""Counting a relation: DuckDB encodes it once, and what it encodes is counted as it comes.

Where the marginals take too much memory together, the codes are kept in a table, and one marginal is counted
after the other.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from functools import partial
from itertools import product
from typing import Any, final

import duckdb
import numpy as np
from numpy.typing import NDArray

from matrixdp.domain import Amount, Domain
from matrixdp.domain.rules import BOOLEANS, NUMBERS, Kind, Listed, Rule, Texts
from matrixdp.errors import SourceError
from matrixdp.sources.base import OUT_OF_DOMAIN, Marginal, Request, Values, guarded, started, strides
from matrixdp.sources.engines import connect, connect_to_kept
from matrixdp.sources.sql import DUCKDB, by_bytes, identifier, literal, outside

# Bounding the records of one person in DuckDB: the first ones in the order of the table, and no others.
#
# Which records of a person are kept follows from their ids and their order alone, and no record of one
# person has an influence on those of another; docs/privacy.md has the proof. Ids are compared by canonical
# value, like categories (`matrixdp.domain.rules`), so that a storage type that was inferred from values
# does not change who is one person.

_IDS = (*NUMBERS, Kind.DATE)
#: Canonical texts of categories as they are read where both numbers and booleans are listed.
_CANONICAL = Listed((*BOOLEANS, "0"))


def _expressions(what: str, name: str, column: str, stored: str, rule: Rule = _CANONICAL) -> list[str]:
    """Return the expressions from a raw value, in a quoted column, to its canonical text and its number."""
    if DUCKDB.kind(stored) not in _IDS:
        expected = f"{what}s are texts, numbers, booleans or dates, so convert it first"
        raise SourceError(f"column {name!r} holds values of another kind; {expected}", code="wrong-kind")
    found = DUCKDB.values(rule, column, stored)
    text, number = found.get("t", "CAST(NULL AS VARCHAR)"), found.get("n", "CAST(NULL AS DOUBLE)")
    return [f"{text} AS {what}_text", f"{number} AS {what}_number"]


#: Longer texts are not listed as values.
_LONGEST = 1_000


def _readable(what: str) -> list[str]:
    """Return the columns that tell ids or values apart.

    A text that is empty, or holds U+FFFD in place of what cannot be read, names nobody, and is no value. The
    two zeros are one number.
    """
    text = f"{what}_text"
    readable = f"{what}_number IS NULL AND {text} <> '' AND NOT contains({text}, chr(65533))"
    short = f" AND length({text}) <= {_LONGEST}" if what == "value" else ""
    return [f"CASE WHEN {readable}{short} THEN {text} END AS {text}", f"{what}_number + 0.0 AS {what}_number"]


_PERSON = "id_text, id_number"
_NAMED = "id_text IS NOT NULL OR id_number IS NOT NULL"


def bounded(relation: duckdb.DuckDBPyRelation, request: Request) -> duckdb.DuckDBPyRelation:
    """Return the records of each person that count; all where no id is named.

    The relation is what `matrixdp.sources.counting.encode` makes: codes, whether a record is `inside` the
    domain, which counts of records out of domain it is in, what tells persons apart, and the `place` of each
    record.
    """
    unit = request.unit
    if unit.id is None:
        return relation
    kept = ", ".join(relation.columns[: relation.columns.index("id_text")])
    return _first_records(relation, request).project(kept)


def _first_records(relation: duckdb.DuckDBPyRelation, request: Request) -> duckdb.DuckDBPyRelation:
    named = relation.filter(_NAMED)
    if request.unit.per:
        named = _in_few_values(named, request)
    return _ranked(named, request.unit.records)


def _ranked(relation: duckdb.DuckDBPyRelation, most: int) -> duckdb.DuckDBPyRelation:
    """Return the first so many rows of each person."""
    rank = f"row_number() OVER (PARTITION BY {_PERSON} ORDER BY place) AS rank"
    return relation.project(f"*, {rank}").filter(f"rank <= {most}")


#: The name of a column that is listed, where it is handed over beside its codes.
LISTED = ""
_PRESENT = "value_text IS NOT NULL OR value_number IS NOT NULL"


def _listed(relation: duckdb.DuckDBPyRelation, request: Request) -> duckdb.DuckDBPyRelation:
    """Return each person's values in the first of her records, numbered, in the order of these.

    With `per` these are her first values, in whichever records. Without an id every record is a person.
    """
    person, first, order = "row_number() OVER ()", relation, "person"
    if request.unit.id is not None:
        grouped = "id_text, id_number, value_text, value_number"
        person, order = "dense_rank() OVER (ORDER BY id_text, id_number)", "person, place"
        named = relation.filter(_NAMED) if request.unit.per else _first_records(relation, request)
        first = named.filter(_PRESENT).aggregate(f"{grouped}, min(place) AS place", grouped)
        if request.unit.per:
            first = _ranked(first, request.unit.max_values)
    value = "dense_rank() OVER (ORDER BY value_number NULLS LAST, value_text NULLS FIRST)"
    numbered = first.filter(_PRESENT).project(f"*, {person} AS person, {value} - 1 AS value")
    return numbered.order(order).project("person, value, value_text, value_number")


def _values(request: Request, read: Read, reading: str, hint: str, *, few: bool) -> Iterator[Any]:
    with closing(connect_to_kept() if few else connect()) as connection:
        listed = guarded(lambda: _listed(read(connection), request), reading)
        yield None
        held = guarded(lambda: listed.to_arrow_table(), _COUNTING, hint)
    persons, places = (held.column(name).to_numpy().astype(np.int64) for name in ("person", "value"))
    _, first = np.unique(places, return_index=True)
    told = held.select(["value_text", "value_number"]).take(first).to_pydict().values()
    texts = tuple(number if text is None else text for text, number in zip(*told, strict=True))
    yield (), Values(persons, places, texts)


def _in_few_values(named: duckdb.DuckDBPyRelation, request: Request) -> duckdb.DuckDBPyRelation:
    """Return the records in the domain that agree with the first of their person in what is constant.

    Of these the first ones in each value, and of these those in the first values, by their first records.
    """
    unit = request.unit
    every = ", ".join(named.columns)
    column = {name: f"c{position}" for position, name in enumerate(request.used)}
    first = f"OVER (PARTITION BY {_PERSON} ORDER BY place)"
    value = f"PARTITION BY {_PERSON}, {', '.join(column[name] for name in unit.per)}"
    inside = named.filter("inside")
    if unit.constant:
        same = (f"first_value({column[name]}) {first} = {column[name]}" for name in unit.constant)
        inside = inside.project(f"{every}, {' AND '.join(same)} AS same").filter("same")
    each = f"row_number() OVER ({value} ORDER BY place) AS rank, min(place) OVER ({value}) AS begun"
    few = inside.project(f"{every}, {each}").filter(f"rank <= {unit.max_records_each}")
    values = f"dense_rank() OVER (PARTITION BY {_PERSON} ORDER BY begun) AS number"
    return few.project(f"{every}, {values}").filter(f"number <= {unit.max_values}").project(every)


Read = Callable[[duckdb.DuckDBPyConnection], duckdb.DuckDBPyRelation]
"""Returns the codes of a table, as `encode` makes them, in a database that it is given."""

Groups = tuple[tuple[str, ...], NDArray[np.int64], NDArray[Any]]
"""The attributes of a marginal, the row-major positions of its cells that hold records, and their counts.

Counts are int64, or Python integers where records are divided among cells.
"""

_CODES = "codes"
_COUNTING = "count the table"
#: The most cells of all marginals that are counted at once.
_MOST_AT_ONCE = 2**25
_BATCH = 2**17
#: Bytes of memory that codes are sorted in.
_SORTED = 1e9
_CODE_TYPES = ((8, "UTINYINT"), (16, "USMALLINT"), (32, "UINTEGER"), (64, "BIGINT"))


def encode(
    relation: duckdb.DuckDBPyRelation,
    request: Request,
    encoders: Domain | None = None,
    columns: Sequence[str] | None = None,
) -> duckdb.DuckDBPyRelation:
    """Return the codes of records as a relation that is not yet computed.

    It has one column ``c0``, ``c1``, ... an attribute that is in some subset, in the order of the domain.
    The encoders say how each of the domain's readings is read: as these, or as `Coded` where a column holds
    codes already. The columns are the table's names of those of the relation, where these
    differ. More columns say which records are `inside` the domain, and which in each count of those that are
    not. Where the request bounds what a person contributes, the last column is the place of each record,
    whatever it is called, and the records are those that `bounded` takes.
    """
    person = request.unit.id
    held = relation.columns if person is None else relation.columns[:-1]
    names = list(held if columns is None else columns)
    if columns is None:
        request.check_columns(names)
    stored = {name: str(type_) for name, type_ in zip(names, relation.types, strict=False)}
    own = {name: identifier(column) for name, column in zip(names, held, strict=True)}
    near = None
    if encoders is None:
        near = request.near({name: DUCKDB.kind(held) for name, held in stored.items()})
    if near is not None:
        column, low, high = near
        within = f"{own[column]} BETWEEN {low!r} AND {high!r}"
        if isinstance(low, str):
            within = f"{by_bytes(own[column])} BETWEEN {literal(low)} AND {literal(high)}"
        relation = relation.filter(within)
    values, codes, own_codes = DUCKDB.encoded(request, encoders or request.domain.readings, stored, own)
    inside = " AND ".join(f"{code} IS NOT NULL" for code in own_codes.values())
    used = [
        f"CAST({own_codes[name]} AS {_code_type(request.domain[name].raw_size)}) AS c{position}"
        for position, name in enumerate(request.used)
    ]
    used = [*(used or ["CAST(0 AS UTINYINT) AS c0"]), f"{inside} AS inside"]
    used += [f"{missing} AS out{i}" for i, missing in enumerate(outside(request, own_codes, inside))]
    if person is not None:
        values += _expressions("id", person, own[person], stored[person])
        values.append(f"{identifier(relation.columns[-1])} AS place")
        codes += [*_readable("id"), "place"]
        used += ["id_text", "id_number", "place"]
    if request.listed is not None:
        column = LISTED if LISTED in own else request.listed.column
        rule = request.listed.rule(Kind.TEXT)
        rule = rule if isinstance(rule, Texts) else replace(_CANONICAL, trim=request.listed.codebook.trim)
        values += _expressions("value", request.listed.column, own[column], stored[column], rule)
        codes += _readable("value")
        used += ["value_text", "value_number"]
    encoded = relation.project(", ".join(values)).project(", ".join(codes))
    # DuckDB pushes a filter down, and computes every code twice. It also keeps DuckDB from moving casts into
    # its reader of CSV, which then casts the text of the file, where a user's relation or view reads one.
    if columns is None and person is None and request.listed is None and not request.out_of_domain.counts:
        encoded = encoded.filter(inside)
    return encoded.project(", ".join(used))


def count(
    request: Request, read: Read, reading: str = "read the table", hint: str = "", *, few: bool = False
) -> Iterator[Marginal]:
    """Count the marginals of a request in a database of our own, where `read` makes what `encode` returns.

    The hint is added to the error where counting fails. Few records that `read` only hands over, or codes
    that others compute, are counted where nothing has to be made first.
    """
    if request.listed is not None:
        return started(_values(request, read, reading, hint, few=few))
    found = groups(request, read, reading, hint, few=few)
    return ((subset, request.array(subset, keys, counts)) for subset, keys, counts in found)


def check(request: Request, read: Read) -> None:
    """Reject what the columns of a table make impossible; `read` is given what has them and no records."""
    with connect_to_kept() as connection:
        _read(connection, request, read)


def _read(
    connection: duckdb.DuckDBPyConnection, request: Request, read: Read, reading: str = "read the table"
) -> duckdb.DuckDBPyRelation:
    kept = bounded if request.listed is None else _listed
    return guarded(lambda: kept(read(connection), request), reading)


def groups(
    request: Request,
    read: Read,
    reading: str = "read the table",
    hint: str = "",
    *,
    few: bool = False,
    threads: int | None = None,
) -> Iterator[Groups]:
    """Count the cells that hold records of each marginal; what is impossible is raised by the call."""
    return started(_run(request, read, reading, hint, few=few, threads=threads))


def _run(
    request: Request, read: Read, reading: str, hint: str, *, few: bool, threads: int | None
) -> Iterator[Any]:
    # What is counted at once is written nowhere.
    at_once = request.slices is None and sum(map(request.domain.cells, request.subsets)) <= _MOST_AT_ONCE
    found: list[Groups] = []
    memory = None if request.slices is None else _SORTED
    with closing(connect_to_kept() if few and at_once else connect(threads, memory)) as connection:
        encoded = _read(connection, request, read, reading)
        yield None
        if at_once:
            found = guarded(partial(_at_once, encoded, request, request.counted), _COUNTING, hint)
        elif request.slices is not None:
            yield from _in_slices(encoded, request, hint, *request.slices)
        else:
            yield from _one_by_one(connection, encoded, request, hint)
    # what was counted at once needs no database: a copy of this process could not close it
    del connection, encoded
    yield from found


def _one_by_one(
    connection: duckdb.DuckDBPyConnection, encoded: duckdb.DuckDBPyRelation, request: Request, hint: str
) -> Iterator[Groups]:
    """Keep the codes in a table, and count one marginal after the other."""
    guarded(lambda: encoded.create(_CODES), _COUNTING, hint)
    for subset in request.subsets:
        if request.weighed(subset):
            kept = connection.table(_CODES)
            yield from guarded(partial(_at_once, kept, request, [subset]), _COUNTING)
            continue
        key = " + ".join(f"CAST(c{place} AS BIGINT) * {step}" for place, step in _steps(request, subset))
        # Every name in the statement is made here; none comes from the table or its user.
        query = f"SELECT {key or '0'} AS key, count(*) AS n FROM {_CODES} WHERE inside GROUP BY key"  # noqa: S608
        yield subset, *guarded(partial(_groups, connection, query), _COUNTING)
    if counted := request.out_of_domain.counts:
        columns = ", ".join(f"count(*) FILTER (out{place})" for place in range(len(counted)))
        query = f"SELECT {columns} FROM {_CODES}"  # noqa: S608
        numbers = guarded(lambda: connection.execute(query).fetchone(), _COUNTING)
        yield OUT_OF_DOMAIN, np.arange(len(counted)), np.array(numbers, dtype=np.int64)


def _in_slices(
    encoded: duckdb.DuckDBPyRelation, request: Request, hint: str, name: str, width: int
) -> Iterator[Groups]:
    """Sort the codes by the slice of an attribute, and count one slice after the other as they pass by.

    What is sorted goes to the database's own temporary folder where memory does not hold it.
    """
    place, first_outside = request.used.index(name), encoded.columns.index("inside") + 1
    run = request.run or range(request.domain[name].size)
    code = f"CAST(c{place} AS INTEGER)"
    if request.run is not None:
        encoded = encoded.filter(f"inside AND {code} BETWEEN {run.start} AND {run.stop - 1}")
    number = f"CASE WHEN inside THEN ({code} - {run.start}) // {width} ELSE -1 END AS slice"
    ordered = guarded(lambda: encoded.project(f"*, {number}").order("slice"), _COUNTING, hint)
    batches = guarded(lambda: iter(ordered.to_arrow_reader(_BATCH)), _COUNTING, hint)
    outside = np.zeros(len(request.out_of_domain.counts), dtype=np.int64)
    tallies = [_Tally(request, subset) for subset in request.subsets]
    begun = 0
    while (batch := guarded(lambda: next(batches, None), _COUNTING, hint)) is not None:
        outside += np.array([flags.true_count for flags in batch.columns[first_outside:-1]], dtype=np.int64)
        batch = batch.filter(batch.column("inside"))
        codes = [column.to_numpy().astype(np.int64) for column in batch.columns[: first_outside - 1]]
        numbers = batch.column("slice").to_numpy()
        codes[place] -= numbers.astype(np.int64) * width + run.start
        held, starts = np.unique(numbers, return_index=True)
        for found, start, stop in zip(held, starts, [*starts[1:], batch.num_rows], strict=True):
            for _ in range(begun, found):
                yield from (tally.groups() for tally in tallies)
                tallies = [_Tally(request, subset) for subset in request.subsets]
            begun = int(found)
            for tally in tallies:
                tally.add([own[start:stop] for own in codes], stop - start)
    for _ in range(begun, -(-len(run) // width)):
        yield from (tally.groups() for tally in tallies)
        tallies = [_Tally(request, subset) for subset in request.subsets]
    if request.out_of_domain.counts:
        yield OUT_OF_DOMAIN, np.arange(len(outside)), outside


def _at_once(
    encoded: duckdb.DuckDBPyRelation, request: Request, marginals: Sequence[tuple[str, ...]]
) -> list[Groups]:
    """Count marginals, and what is out of domain if it is among them, while the codes pass by."""
    tallies = [_Tally(request, subset) for subset in marginals if subset != OUT_OF_DOMAIN]
    first_outside = encoded.columns.index("inside") + 1
    outside = np.zeros(len(request.out_of_domain.counts), dtype=np.int64)
    for batch in encoded.to_arrow_reader(_BATCH):
        outside += np.array([flags.true_count for flags in batch.columns[first_outside:]], dtype=np.int64)
        batch = batch.filter(batch.column("inside"))
        codes = [column.to_numpy().astype(np.int64) for column in batch.columns[: first_outside - 1]]
        for tally in tallies:
            tally.add(codes, batch.num_rows)
    found = [tally.groups() for tally in tallies]
    if OUT_OF_DOMAIN in marginals:
        found.append((OUT_OF_DOMAIN, np.arange(len(outside)), outside))
    return found


#: Weights of records are added this many bits at a time: sums stay within 64 bits for 2^39 records.
_LIMB = 24


@final
class _Tally:
    """The counts of one marginal as codes pass by; of weights above 1 in limbs, which add up in 64 bits."""

    def __init__(self, request: Request, subset: tuple[str, ...]) -> None:
        weight = request.domain.weight(subset)
        axes = list(zip((request.domain[name] for name in subset), _steps(request, subset), strict=True))
        self._subset, self._weighed = subset, weight > 1
        self._steps = [axis for attribute, axis in axes if not isinstance(attribute, Amount)]
        self._amounts = [(attribute, *axis) for attribute, axis in axes if isinstance(attribute, Amount)]
        self._wide: Any = np.int64 if weight < 2**62 else object
        limbs = -(-weight.bit_length() // _LIMB)
        self._sums = np.zeros((limbs, math.prod(request.shape(subset))), dtype=np.int64)

    def add(self, codes: Sequence[NDArray[np.int64]], records: int) -> None:
        keys = np.zeros(records, dtype=np.int64)
        for place, step in self._steps:
            keys += codes[place] * step
        if not self._amounts:
            self._add(self._sums[0], keys, None)
            return
        weights = [amount.weights(codes[place].astype(self._wide)) for amount, place, _ in self._amounts]
        for values in product(*(range(len(own)) for own in weights)):
            shares = math.prod(own[value] for own, value in zip(weights, values, strict=True))
            cells = keys + sum(value * step for value, (*_, step) in zip(values, self._amounts, strict=True))
            for place, sums in enumerate(self._sums):
                self._add(sums, cells, (shares >> _LIMB * place) & (2**_LIMB - 1))

    def groups(self) -> Groups:
        """Return the cells that hold records, and their counts."""
        keys = np.flatnonzero(self._sums.any(axis=0))
        if not self._weighed:
            return self._subset, keys, self._sums[0, keys]
        held = [sums[keys].astype(object) << _LIMB * place for place, sums in enumerate(self._sums)]
        return self._subset, keys, sum(held[1:], held[0])

    @staticmethod
    def _add(sums: NDArray[np.int64], keys: NDArray[np.int64], weights: NDArray[Any] | None) -> None:
        if sums.size > _BATCH:
            np.add.at(sums, keys, 1 if weights is None else weights.astype(np.int64))
        elif weights is None:
            sums += np.bincount(keys, minlength=sums.size)
        else:
            # exact: a batch adds up to less than 2^53
            sums += np.bincount(keys, weights.astype(np.float64), minlength=sums.size).astype(np.int64)


def _steps(request: Request, subset: Sequence[str]) -> list[tuple[int, int]]:
    """Return the place of the codes of each attribute, and how far one step of it goes in the marginal."""
    places = map(request.used.index, subset)
    return list(zip(places, strides(request.shape(subset)), strict=True))


def _groups(connection: duckdb.DuckDBPyConnection, query: str) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    columns = connection.execute(query).fetchnumpy()
    return np.asarray(columns["key"], dtype=np.int64), np.asarray(columns["n"], dtype=np.int64)


def _code_type(size: int) -> str:
    return next(name for bits, name in _CODE_TYPES if size <= 2**bits)
