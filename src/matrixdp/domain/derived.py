"""Attributes that are derived from others, from what a specification says of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from datetime import date
from itertools import product
from threading import Event, Thread
from typing import Any, final

import numpy as np

from matrixdp import forms
from matrixdp.domain.attribute import Attribute, Derivation, check_combinations, codes_of_range, names_of
from matrixdp.domain.encoding import encode_value
from matrixdp.domain.rules import BOOLEANS, canonical_text, canonical_value
from matrixdp.errors import DomainError, within
from matrixdp.forms import AnyOf, ListOf, MappingOf, OrFile, Record, describe_value, key, record, text

# SQL over public values: what an expression says of every combination of values of some attributes.

_EXPRESSION = "one expression of the parents' names, which has a value for every combination of theirs"
#: No expression of an ordinary size takes as long at a million combinations.
_MOST_SECONDS = 60.0
_LONGEST = 60


def public_values(attribute: Attribute) -> list[Any]:
    """Return the value of each code as SQL has it: null for missing values, the lower edge for bins.

    Categories are numbers, booleans or dates where all of them are, or their type says so, otherwise texts.

    Examples
    --------
    >>> from matrixdp.domain import Bins, Categorical
    >>> public_values(Categorical("rooms", ("2", "3"))), public_values(Bins("pay", (0.0, 10.0)))
    ([2, 3], [0.0])
    """
    null = attribute.null_code
    values: list[Any] = [attribute.value(code) for code in attribute.all_codes if code != null]
    if values and all(isinstance(value, str) for value in values):
        values = typed(getattr(attribute, "type", None), values)
    return values if null is None else [*values, None]


def typed(declared: str | None, texts: list[str]) -> list[Any]:
    """Return the values of categories as SQL has them, by their declared type or by that of all of them."""
    if declared == "date":
        return [date.fromisoformat(text) for text in texts]
    values = [canonical_value(text) for text in texts]
    if declared == "boolean" or (declared is None and set(texts) <= BOOLEANS.keys()):
        return [value == "true" or value == 1.0 for value in values]
    numbers = [value for value in values if isinstance(value, float)]
    if declared == "text" or len(numbers) < len(values):
        return list(texts)
    # as the reader of a file would type a column of these
    whole = all(number == math.floor(number) and abs(number) < 2**53 for number in numbers)
    return [int(number) for number in numbers] if whole else list(numbers)


def by_expression(parents: Sequence[Attribute], expression: str) -> list[object]:
    """Evaluate an SQL expression on each combination of the parents' values, row-major.

    DuckDB evaluates it in a database of its own, which holds these public values alone and reads no file.

    Raises
    ------
    DomainError
        If it is not one expression of the parents, or fails on a combination.
    """
    import duckdb
    import pyarrow as pa

    from matrixdp.domain.scalars import SETTINGS

    columns = zip(*product(*(public_values(parent) for parent in parents)), strict=True)
    arrays = {parent.name: pa.array(list(column)) for parent, column in zip(parents, columns, strict=True)}
    place = next(name for n in range(len(arrays) + 1) if (name := f"place{n}") not in arrays)
    rows = math.prod(parent.size for parent in parents)
    table: Any = pa.table({**arrays, place: pa.array(range(rows))})
    made = _checked(expression, arrays)
    with duckdb.connect(config={**SETTINGS, "memory_limit": "2GB", "temp_directory": ""}) as connection:
        done = Event()

        def interrupt() -> None:
            while not done.wait(_MOST_SECONDS):
                connection.interrupt()

        clock = Thread(target=interrupt, daemon=True)
        clock.start()
        try:
            held = connection.from_arrow(table)
            found = held.project(f'({made}) AS "value", "{place}"').order(f'"{place}"').fetchall()
        except duckdb.Error as error:
            reason = str(error).partition("\n")[0]
            told = f"an expression that fails ({reason})"
            raise DomainError.at((), told, _EXPRESSION, code="sql-unsupported") from None
        finally:
            done.set()
            clock.join()
    return [row[0] for row in found]


def _checked(expression: str, parents: Collection[str]) -> str:
    """Return an expression, made anew of the parents, and of operators and functions of the list alone."""
    import sqlglot
    from sqlglot import exp

    from matrixdp.domain.scalars import not_allowed

    try:
        # The line end closes a comment; a second statement, or column, is no part of an expression.
        [tree] = sqlglot.parse(f"SELECT ({expression}\n)", dialect="duckdb")
        if not isinstance(tree, exp.Select) or len(tree.expressions) != 1:
            raise ValueError("several statements or columns")
        made: str = tree.expressions[0].sql(dialect="duckdb", comments=False, identify=True)
    except (sqlglot.errors.SqlglotError, RecursionError, ValueError):
        raise DomainError.at((), "what is no such expression", _EXPRESSION, code="sql-syntax") from None
    names = {name.lower() for name in parents}
    for node in tree.walk():
        if isinstance(node, exp.Column):
            expected = None if node.name.lower() in names and not node.table else _EXPRESSION
        else:
            expected = None if node is tree else not_allowed(node)
        if expected is not None:
            found = node.sql(dialect="duckdb", comments=False)
            found = found if len(found) < _LONGEST else f"{found[:_LONGEST]}..."
            raise DomainError.at((), found, expected, code="sql-unsupported")
    return made


_ANY = forms.Verbatim(lambda definitions: {})  # noqa: ARG005 - what describes the values is read with them
_VALUE = forms.scalar("text, a finite number, true or false")
_MAP = "a mapping from values to what they count as"
_LOOKUP = "a mapping from names of columns to their values, all of the same number"
_LISTED_COLUMNS = ListOf(text("the name of a column"), "a list of columns of `values_from`", once="each once")
_RULES = ("sql", "map", "cases", "values_from", "codes")
#: What goes with the values of the derived attribute, and not with the column that a map is read from.
_OWN = ("categories", "labels", "levels", "level_texts", "sha256", "title", "unit", "note", "source")
#: What lists the values of the derived attribute, which are those of its rule where none stands there.
_TELLING = ("categories", "levels_from", "edges", "min", "max", "bins", "size", "from", "to")
_BESIDE_MAP = (*_OWN, *_TELLING, "by", "closed", "clip")
_OF_COLUMNS = ("column", "trim", "case", "round", "missing", "time_zone")


@final
@record
class CaseForm(Record):
    """One case: what holds, and the value where it does."""

    error = DomainError

    when: Mapping[str, object] = key(MappingOf(_ANY, "{attribute: values, ...}", least=1))
    then: str | bool | float = key(_VALUE)


@final
@record
class DerivedForm(Record):
    """How an attribute is derived from others; the keys that describe its values stand beside."""

    error = DomainError

    of: tuple[str, ...] = key(
        ListOf(text("the name of an attribute"), "a list of attributes of the domain", once="each once"),
        default=(),
        about="the attributes of the domain that it is derived from",
    )
    columns: Mapping[str, object] | tuple[str, ...] = key(
        AnyOf(
            ((lambda said: isinstance(said, list | tuple), _LISTED_COLUMNS),),
            MappingOf(_ANY, "a mapping of columns to what describes them", named="the name of a column"),
        ),
        default={},
        about="columns that are read for this attribute alone",
    )
    sql: str | None = key(text("an expression of SQL over the parents"), default=None)
    map: Mapping[str, object] | None = key(
        OrFile(MappingOf(_VALUE, _MAP, named="a value", least=1), _MAP), default=None
    )
    cases: tuple[CaseForm, ...] = key(
        ListOf(forms.RecordForm(CaseForm), "a list of cases {when: {attribute: values}, then: value}"),
        default=(),
    )
    values_from: Mapping[str, tuple[str | bool | float, ...]] | None = key(
        OrFile(
            MappingOf(ListOf(_VALUE, "a list of values"), _LOOKUP, named="the name of a column", least=1),
            _LOOKUP,
        ),
        default=None,
        about="a public table whose rows list the combinations of the parents' values",
    )
    value: str | None = key(
        text("the name of a column of `values_from`"),
        default=None,
        about="the column of `values_from` with the attribute's values; left out, they are the combinations",
    )
    otherwise: str | bool | float | None = key(_VALUE, default=None)
    codes: tuple[int, ...] | None = key(
        ListOf(forms.whole("a code", least=0), "a code for each combination of the parents' values"),
        default=None,
    )

    def check(self) -> None:
        """Check that one thing says how it is derived."""
        given = [name for name in _RULES if getattr(self, name) not in (None, ())]
        if len(given) != 1 and given != ["sql", "codes"]:
            found = " and ".join(given) or "none of them"
            raise DomainError.at((), found, f"one of {', '.join(_RULES)}", code="conflict")
        if self.otherwise is not None and given[0] not in ("map", "cases", "values_from"):
            found = f"it beside {given[0]}"
            expected = "it beside `map`, `cases` or `values_from`"
            raise DomainError.at(("otherwise",), found, expected, code="conflict")
        beside = {"value": self.value is not None, "columns": isinstance(self.columns, tuple)}
        for word in (word for word, said in beside.items() if said and self.values_from is None):
            found = "it" if word == "value" else "a list"
            raise DomainError.at(
                (word,), f"{found} without `values_from`", "it beside `values_from`", code="conflict"
            )


def is_derived(spec: object) -> bool:
    """Return whether a description is that of an attribute that is derived from others."""
    return isinstance(spec, Mapping) and not {"of", "columns", *_RULES}.isdisjoint(spec)


Describe = Callable[[str, object], Attribute]
"""From a name and what describes it to the attribute."""


def derived_attribute(
    name: str, spec: Mapping[str, object], known: Mapping[str, Attribute], describe: Describe
) -> Attribute:
    """Return the derived attribute that a specification describes.

    Parameters
    ----------
    name : str
        Its name.
    spec : mapping
        What is said of it.
    known : mapping of str to Attribute
        The attributes of the domain that are read from the table.
    describe : callable
        From a name and a description to an attribute.

    Raises
    ------
    DomainError
        If a parent is unknown, or a combination of their values has no value.
    """
    keys = DerivedForm.keys()
    with within(name):
        form = DerivedForm.read({word: value for word, value in spec.items() if word in keys})
        rest = {word: value for word, value in spec.items() if word not in keys}
        parents, columns = _parents(name, form, rest, known, describe)
        check_combinations(parents)
        values, order = _values(form, parents)
        for kept in (word for word in rest if word in _OF_COLUMNS):
            expected = "it with a column under `columns`, as a derived attribute has no column of its own"
            raise DomainError.at((kept,), describe_value(rest[kept]), expected)
    if values is None:
        target, codes = describe(name, rest), form.codes or ()
    else:
        if rest.keys().isdisjoint(_TELLING):
            for word in (word for word in rest if word not in (*_OWN, "null")):
                raise DomainError(DerivedForm.unknown_key(word).within(name))
            listed = (value.isoformat() if isinstance(value, date) else value for value in order)
            texts = dict.fromkeys(canonical_text(value) for value in listed if value is not None)
            rest = {"categories": list(texts), **rest}
        if form.values_from is not None and isinstance(rest.get("levels"), list | tuple):
            with within(name, "levels"):
                rest["levels"] = _levels(form.values_from, rest["levels"], order, form.otherwise)
        target = describe(name, rest)
        with within(name):
            places = {value: place for place, value in reversed(list(enumerate(values)))}
            found = {value: _code(target, parents, place, value) for value, place in places.items()}
            codes = tuple(found[value] for value in values)
    derivation = Derivation(form.of, columns, codes, form.sql)
    with within(name):
        derivation.check(parents, target.size)
    return replace(target, codebook=replace(target.codebook, derivation=derivation))


def named_parents(names: Sequence[str], known: Mapping[str, Attribute]) -> list[Attribute]:
    """Return the parents of some names among the attributes that are not derived."""
    for place, parent in enumerate(names):
        if parent not in known:
            expected = "an attribute of the domain that is not derived itself"
            raise DomainError(forms.unknown_name(("of", place), parent, expected, known))
    return [known[parent] for parent in names]


def _parents(
    name: str, form: DerivedForm, rest: dict[str, object], known: Mapping[str, Attribute], describe: Describe
) -> tuple[list[Attribute], tuple[Attribute, ...]]:
    """Return all parents, and those that are columns; what describes the own column leaves the rest."""
    parents = named_parents(form.of, known)
    columns = _listed_columns(form) if isinstance(form.columns, tuple) else dict(form.columns)
    if form.map is not None and not parents and not columns:
        # a map alone is about the attribute's own column, whose values are those that it maps
        if form.otherwise is not None:
            label = describe_value(form.otherwise)
            found = f"{label}, which no value is left for, as the column has those of the map"
            expected = f"{{other: {label}}} for {name!r} in `out_of_domain`, and {label} under `categories`"
            raise DomainError.at(("otherwise",), found, expected, code="conflict")
        read = {kept: rest.pop(kept) for kept in list(rest) if kept not in _BESIDE_MAP}
        columns[name] = {"categories": [value for value in form.map if value != read.get("null")], **read}
    for column, own in columns.items():
        path = ("columns", column)
        if column in form.of:
            found = "an attribute under `of` too"
            raise DomainError.at(path, found, "each parent once", code="duplicate")
        if is_derived(own) or (isinstance(own, Attribute) and own.codebook.derivation is not None):
            raise DomainError.at(path, "a derived attribute", "a column of the table", code="not-supported")
    with within("columns"):
        made = tuple(describe(column, own) for column, own in columns.items())
    return [*parents, *made], made


def _listed_columns(form: DerivedForm) -> dict[str, object]:
    """Return descriptions of columns by the values that a public table lists under the same names."""
    table = form.values_from or {}
    for place, column in enumerate(form.columns):
        if column not in table:
            raise DomainError(
                forms.unknown_name(("columns", place), column, "a column of `values_from`", table)
            )
    return {column: {"categories": list(dict.fromkeys(table[column]))} for column in form.columns}


def _values(form: DerivedForm, parents: Sequence[Attribute]) -> tuple[list[object] | None, list[object]]:
    """Return the value of each combination of the parents, None where codes are given, and their order."""
    if form.codes is not None:
        return None, []
    if form.values_from is not None:
        with within("values_from"):
            return _looked_up(form.values_from, parents, form.value, form.otherwise)
    if form.map is not None:
        with within("map"):
            values = _mapped(form.map, parents, form.otherwise)
    elif form.cases:
        values = by_cases(parents, [(case.when, case.then) for case in form.cases], form.otherwise)
    else:
        with within("sql"):
            values = by_expression(parents, form.sql or "")
    return values, values


def _mapped(written: Mapping[str, object], parents: Sequence[Attribute], otherwise: object) -> list[object]:
    if len(parents) != 1:
        found, expected = f"{len(parents)} parents", "one parent beside `map`; `cases` and `sql` take several"
        raise DomainError.at((), found, expected, code="not-supported")
    [parent] = parents
    says: dict[int | None, object] = {}
    for value, then in written.items():
        with within(value):
            code = parent.find(value)
            if code in says:
                raise DomainError.at((), "the same value a second time", "each value once", code="duplicate")
            says[code] = then
    says.setdefault(parent.null_code, parent.codebook.null)
    for code in parent.all_codes:
        if otherwise is None and code not in says:
            raise _nothing_for(parents, [code])
    return [says.get(code, otherwise) for code in parent.all_codes]


def _looked_up(
    table: Mapping[str, Sequence[object]], parents: Sequence[Attribute], value: str | None, otherwise: object
) -> tuple[list[object], list[object]]:
    """Return the value of each combination of the parents by the rows of a table, and their order."""
    for name in (*(parent.name for parent in parents), *([] if value is None else [value])):
        if name not in table:
            raise DomainError(forms.unknown_name((), name, "a column of it", table))
    rows = len(next(iter(table.values())))
    for name, column in table.items():
        if len(column) != rows:
            raise DomainError.at(
                (name,), f"{len(column)} values", f"{rows}, one in each row", code="wrong-size"
            )
    keys = [table[parent.name] for parent in parents]
    codes = [
        [parent.find(canonical_text(own)) for own in column]
        for parent, column in zip(parents, keys, strict=True)
    ]
    says = (
        [", ".join(map(canonical_text, row)) for row in zip(*keys, strict=True)]
        if value is None
        else table[value]
    )
    sizes = [parent.size for parent in parents]
    found: list[object] = [None] * math.prod(sizes)
    for row, (place, then) in enumerate(zip(np.ravel_multi_index(codes, sizes).tolist(), says, strict=True)):
        if found[place] is not None:
            told = f"{_described(parents, [own[row] for own in codes])} a second time"
            raise DomainError.at((row,), told, "each combination once", code="duplicate")
        found[place] = then
    if otherwise is None and None in found:
        raise _nothing_for(parents, [int(code) for code in np.unravel_index(found.index(None), sizes)])
    return [otherwise if then is None else then for then in found], [*says, otherwise]


def _levels(
    table: Mapping[str, Sequence[object]], named: object, order: Sequence[object], otherwise: object
) -> dict[str, dict[str, list[str]]]:
    """Return the levels that columns of a public table are; other combinations have a value of their own."""
    found: dict[str, dict[str, list[str]]] = {}
    for place, level in enumerate(_LISTED_COLUMNS.read(named, forms.as_written)):
        if level not in table:
            raise DomainError(forms.unknown_name((place,), level, "a column of `values_from`", table))
        groups: dict[str, dict[str, None]] = {}
        for group, value in zip((*table[level], otherwise), order, strict=True):
            if value is not None:
                groups.setdefault(canonical_text(group), {})[canonical_text(value)] = None
        found[level] = {group: list(values) for group, values in groups.items()}
    return found


def _code(target: Attribute, parents: Sequence[Attribute], place: int, value: object) -> int:
    code = target.null_code if value is None else encode_value(target, value)
    if code is None:
        told, more = ("nothing", ", or `null: label`") if value is None else (describe_value(value), "")
        codes = [int(code) for code in np.unravel_index(place, [parent.size for parent in parents])]
        found = f"{told} for {_described(parents, codes)}"
        raise DomainError.at((), found, f"a value of {target.name!r}{more}", code="unknown-name")
    return code


def by_cases(
    parents: Sequence[Attribute], cases: Sequence[tuple[Mapping[str, object], object]], otherwise: object
) -> list[object]:
    """Return the value of the first case that holds, for each combination of the parents' values.

    Raises
    ------
    DomainError
        If a condition is not about the parents, or no case holds and `otherwise` is None.
    """
    decided = np.full([parent.size for parent in parents], len(cases))
    for place, (when, _) in enumerate(cases):
        with within("cases", place, "when"):
            allowed = _allowed(parents, when)
        held = np.ix_(*(allowed.get(parent.name, range(parent.size)) for parent in parents))
        decided[held] = np.minimum(decided[held], place)  # the first case that holds
    if otherwise is None and (decided == len(cases)).any():
        raise _nothing_for(parents, np.argwhere(decided == len(cases))[0].tolist())
    says = [*(then for _, then in cases), otherwise]
    return [says[place] for place in decided.ravel().tolist()]


def _described(parents: Sequence[Attribute], codes: Sequence[int]) -> str:
    """Return a combination of values of the parents in words."""
    pairs = zip(parents, codes, strict=True)
    return " and ".join(f"{parent.name} {parent.label(code)}" for parent, code in pairs)


def _nothing_for(parents: Sequence[Attribute], codes: Sequence[int]) -> DomainError:
    expected = "a value for every combination, or `otherwise` for the rest"
    return DomainError.at((), f"nothing for {_described(parents, codes)}", expected)


def _allowed(parents: Sequence[Attribute], when: Mapping[str, object]) -> dict[str, Sequence[int]]:
    """Return for the names of parents which codes a condition allows."""
    known = {parent.name: parent for parent in parents}
    found: dict[str, Sequence[int]] = {}
    for name, condition in when.items():
        with within(name):
            if name not in known:
                expected = f"one of the parents {names_of(parents)}"
                raise DomainError.at((), repr(name), expected, code="unknown-name")
            if isinstance(condition, Mapping):
                expected = "a value, a list of values, or {range: [first, last]}"
                found[name] = codes_of_range(known[name], condition, expected)
            else:
                listed = condition if isinstance(condition, list | tuple) else [condition]
                found[name] = [known[name].code_of(value) for value in listed]
    return found


def derived_schema(definitions: forms.Schema, values: forms.Schema) -> forms.Schema:
    """Return the JSON Schema: the keys of the derivation, beside those that describe the values."""
    reference = DerivedForm.schema(definitions)
    own = definitions[DerivedForm.__name__]
    own["properties"] = {**values, **own["properties"]}
    columns = {"type": "array", "items": {"type": "string"}, "minItems": 1}
    own["properties"]["levels"] = {"anyOf": [values["levels"], columns]}
    own["anyOf"] = [{"required": [name]} for name in _RULES]
    return reference
