"""The domain of a table: its attributes."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar, Self, final

from matrixdp.display import MAX_ROWS, Displayed, Preview, counted, listed, shown_text
from matrixdp.domain.attribute import Attribute, Discovered
from matrixdp.domain.derived import is_derived, named_parents
from matrixdp.domain.kinds import Integers
from matrixdp.domain.parsing import attribute_from_spec
from matrixdp.domain.rules import wrong_value
from matrixdp.errors import DomainError, Problem, within
from matrixdp.forms import Record, Schema, flag, key, record, scalar, unknown_name


@final
@dataclass(frozen=True, init=False, repr=False)
class Domain(Displayed):
    """The attributes of a table, in order. A *cell* is one combination of their values.

    Parameters
    ----------
    attributes : mapping of str to object, or sequence of Attribute
        Names with what describes them (see `attribute_from_spec`), or the attributes themselves.

    Raises
    ------
    DomainError
        If there are none, a name is empty or occurs twice, or a description is wrong.

    Examples
    --------
    >>> domain = Domain({"sex": ["female", "male"], "age": range(115), "income": {"edges": [0, 1e4, 5e4]}})
    >>> domain.shape, domain.cells(), domain.sort(["age", "sex"])
    ((2, 115, 2), 460, ('sex', 'age'))
    """

    attributes: tuple[Attribute, ...]

    #: All values, of a domain in which others stand for some; and what `width` says of these.
    _values: ClassVar[Domain | None] = None
    _widths: ClassVar[Mapping[str, int]] = {}

    def __init__(self, attributes: Mapping[str, object] | Iterable[Attribute]) -> None:
        listed = _described(attributes) if isinstance(attributes, Mapping) else tuple(attributes)
        if not listed:
            raise DomainError("a domain needs at least one attribute", code="empty")
        for attribute in listed:
            if not isinstance(attribute, Attribute):
                raise wrong_value(attribute, "an attribute")
        _check_once([attribute.name for attribute in listed])
        object.__setattr__(self, "attributes", listed)
        self._check_derived()

    def _check_derived(self) -> None:
        """Check that derived attributes have parents, and a code for each combination of their values."""
        read = {a.name: a for a in self.attributes if a.codebook.derivation is None}
        for attribute in self.attributes:
            derivation = attribute.codebook.derivation
            if derivation is None:
                continue
            with within(attribute.name):
                parents = [*named_parents(derivation.of, read), *derivation.columns]
                derivation.check(parents, attribute.size)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The names of the attributes."""
        return tuple(attribute.name for attribute in self.attributes)

    @cached_property
    def shape(self) -> tuple[int, ...]:
        """The sizes of the attributes."""
        return tuple(attribute.size for attribute in self.attributes)

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """The columns of a table that the attributes are read from, each once."""
        return tuple(dict.fromkeys(attribute.column for attribute in self.readings))

    @cached_property
    def readings(self) -> Self:
        """The attributes that are read from a table, in place of those that are derived from them.

        Those that are not derived, and the columns that are read for derived ones under names of their own.
        """
        if all(attribute.codebook.derivation is None for attribute in self.attributes):
            return self
        return type(self)([attribute for found in self._read.values() for attribute in found])

    @cached_property
    def parents(self) -> Mapping[str, tuple[str, ...]]:
        """The names among the `readings` that each derived attribute is derived from."""
        derived = {a.name: a.codebook.derivation for a in self.attributes}
        return {
            name: (*found.of, *(column.name for column in self._read[name]))
            for name, found in derived.items()
            if found is not None
        }

    @cached_property
    def _read(self) -> Mapping[str, list[Attribute]]:
        """For each attribute the columns that are read: itself, or those that it is derived from."""
        taken, found = set(self.names), {a.name: [a] for a in self.attributes}
        for attribute in self.attributes:
            if attribute.codebook.derivation is not None:
                found[attribute.name] = columns = []
                for column in attribute.codebook.derivation.columns:
                    name = f"{attribute.name}: {column.name}"
                    while name in taken:
                        name += "*"
                    taken.add(name)
                    columns.append(replace(column, name=name).read_from(column.column))
        return found

    @property
    def discovered(self) -> dict[str, Discovered]:
        """What was paid for the attributes whose values were found in a private table."""
        found = {own.name: own.codebook.discovered for own in self.attributes}
        return {name: own for name, own in found.items() if own is not None}

    @cached_property
    def levels(self) -> Mapping[str, Attribute]:
        """The attributes of the levels that go by a name of their own, by this name.

        A level that is called like an attribute, or like a level of another attribute, is not among them.
        """
        listed = [(level.name, a) for a in self.attributes for level in a.codebook.levels]
        names = [name for name, _ in listed]
        return {name: a for name, a in listed if names.count(name) == 1 and name not in self.names}

    @property
    def language(self) -> str | None:
        """The language of texts; None for the first of each."""
        return self.attributes[0].codebook.language

    @cached_property
    def languages(self) -> tuple[str, ...]:
        """The languages that texts of attributes are written in."""
        return tuple(dict.fromkeys(name for a in self.attributes for name in a.codebook.languages))

    def in_language(self, language: str | None) -> Self:
        """Return the same domain with texts in a language; None for the first of each.

        Examples
        --------
        >>> sex = {"labels": {"f": {"en": "female", "fr": "femme"}, "m": {"en": "male", "fr": "homme"}}}
        >>> domain = Domain({"sex": sex})
        >>> domain.in_language("fr")["sex"].label(0), domain.in_language("fr") == domain
        ('femme', True)
        """
        return type(self)([attribute.in_language(language) for attribute in self.attributes])

    @cached_property
    def _positions(self) -> Mapping[str, int]:
        return {name: position for position, name in enumerate(self.names)}

    def index(self, name: str) -> int:
        """Return the position of an attribute.

        Raises
        ------
        DomainError
            If there is no attribute of that name.
        """
        if not isinstance(name, str) or name not in self._positions:
            raise DomainError(unknown_name((), str(name), "an attribute of the domain", self.names))
        return self._positions[name]

    def sort(self, names: Iterable[str]) -> tuple[str, ...]:
        """Return names of attributes in the order of the domain.

        Raises
        ------
        DomainError
            If a name is unknown or occurs twice, or `names` is one string.
        """
        if isinstance(names, str):
            raise wrong_value(names, "a list of names of attributes")
        positions = [self.index(name) for name in names]
        _check_once([self.names[position] for position in positions])
        return tuple(self.names[position] for position in sorted(positions))

    def cells(self, names: Iterable[str] | None = None) -> int:
        """Return the exact number of cells of the domain, or of the marginal on some attributes.

        Parameters
        ----------
        names : iterable of str, optional
            The attributes; all of them where it is left out. No attribute at all has one cell, the total.
        """
        if names is None:
            return math.prod(self.shape)
        return math.prod(self[name].size for name in self.sort(names))

    def counted(self, names: Iterable[str]) -> int:
        """Return the number of cells of a marginal that measuring counts: over values, not over groups."""
        return self.cells(names) if self._values is None else self._values.counted(names)

    def width(self, name: str) -> int:
        """Return how many values an attribute has in a matrix over several attributes: see `reduced`."""
        return self._widths.get(name, self[name].size)

    def reduced(self, sizes: Mapping[str, int], widths: Mapping[str, int] | None = None) -> Domain:
        """Return the domain in which fewer values, such as groups, stand for those of some attributes.

        Parameters
        ----------
        sizes : mapping of str to int
            How many there are, for these attributes; the others keep all of their values. Both are numbered,
            and have no labels.
        widths : mapping of str to int, optional
            The values that an attribute still has in a matrix over several attributes; as many as it has by
            itself where they are left out.

        Examples
        --------
        >>> groups = Domain({"age": range(100), "sex": 2}).reduced({"age": 3})
        >>> groups.cells(), groups.counted(["age"])
        (6, 100)
        """
        made = Domain([Integers(one.name, 0, sizes.get(one.name, one.size) - 1) for one in self.attributes])
        object.__setattr__(made, "_values", self)
        object.__setattr__(made, "_widths", {**self._widths, **(widths or {})})
        return made

    def weight(self, names: Iterable[str]) -> int:
        """Return the weight of one record in the counts of the marginal on some attributes: see `Amount`."""
        return math.prod(self[name].weight for name in names)

    def to_spec(self) -> dict[str, object]:
        """Return the domain as a specification writes it, in plain Python values."""
        return {attribute.name: attribute.to_spec() for attribute in self.attributes}

    @classmethod
    def from_spec(cls, spec: object) -> Self:
        """Return the domain that a specification describes; the inverse of `to_spec`.

        Raises
        ------
        DomainError
            If it is not a mapping of names to descriptions, or a description is wrong.
        """
        if not isinstance(spec, Mapping):
            raise wrong_value(spec, "a mapping of names to attributes")
        return cls(spec)

    def __getitem__(self, name: str) -> Attribute:
        return self.attributes[self.index(name)]

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and name in self._positions

    def __iter__(self) -> Iterator[Attribute]:
        return iter(self.attributes)

    def __len__(self) -> int:
        return len(self.attributes)

    def _lines(self) -> tuple[str, str]:
        number = len(self.attributes)
        first = f"Domain of {counted(number, 'attribute')}, {counted(self.cells(), 'cell')}"
        return first, listed((f"{shown_text(a.name)} ({a.size:,})" for a in self), number)

    def _preview(self) -> Preview:
        rows = [(a.name, _kind(a), f"{a.size:,}", _values(a)) for a in self.attributes[:MAX_ROWS]]
        columns = ("attribute", "kind", "number", "values")
        return Preview(columns, rows, len(self.attributes), frozenset((2,)))


def _check_once(names: list[str]) -> None:
    for name, number in Counter(names).items():
        if number > 1:
            found = f"the attribute {name!r} a second time"
            raise DomainError.at((), found, "each attribute once", code="duplicate")


def _kind(attribute: Attribute) -> str:
    """Return in a word what an attribute is."""
    if attribute.codebook.derivation is not None:
        return "derived"
    return "ordered" if attribute.numeric else "categories"


def _values(attribute: Attribute) -> str:
    """Return the first values of an attribute, and the last one."""
    if attribute.size <= 5:
        return ", ".join(attribute.label(code) for code in range(attribute.size))
    first = [attribute.label(code) for code in range(3)]
    return f"{', '.join(first)}, ..., {attribute.label(attribute.size - 1)}"


def _described(described: Mapping[str, object]) -> tuple[Attribute, ...]:
    """Return the attributes that are described, those that are derived from others after these."""
    found = {n: attribute_from_spec(n, spec) for n, spec in described.items() if not is_derived(spec)}
    known = {name: attribute for name, attribute in found.items() if attribute.codebook.derivation is None}
    return tuple(found.get(n) or attribute_from_spec(n, spec, known) for n, spec in described.items())


# What happens to values that are out of domain.

_EXPECTED = "drop, {other: value} or {count: true}"


@final
@record
class RuleForm(Record):
    """The value in whose place values out of domain are counted, or that their number is measured."""

    error, expected = DomainError, _EXPECTED
    other: object = key(scalar("text, a number, true or false"), default=None)
    count: bool = key(flag(), default=False, about="measure how many values were out of domain, with noise")

    def check(self) -> None:
        if (self.other is None) != self.count:
            found = "neither other nor count" if self.other is None else "other and count"
            expected = "one of them: what is counted as another value is not out of domain"
            raise DomainError.at((), found, expected, code="conflict")


@final
@dataclass(frozen=True, init=False)
class OutOfDomain:
    """What happens to a record with a value that is out of domain.

    By default the record is dropped, from every marginal alike. An attribute may name a code of its own
    instead, which then takes the place of its values that are out of domain. How many there were is not
    counted, unless that is asked for: it is then measured, with noise, at no further cost (docs/privacy.md).

    Parameters
    ----------
    codes : mapping of str to int, optional
        The code that replaces the attribute's values that are out of domain; attributes that are not named
        drop the record.
    counts : sequence of str or None, optional
        What is measured besides: None stands for the number of records that are dropped, the name of an
        attribute for the number of records whose value of it is out of domain.

    Examples
    --------
    >>> domain = Domain({"sex": ["female", "male", "unknown"], "age": range(115)})
    >>> rule = OutOfDomain.from_spec(domain, {"sex": {"other": "unknown"}, "count": True})
    >>> rule.code("sex"), rule.code("age"), rule.counts
    (2, None, (None,))
    """

    codes: tuple[tuple[str, int], ...]
    counts: tuple[str | None, ...]

    def __init__(self, codes: Mapping[str, int] | None = None, counts: Sequence[str | None] = ()) -> None:
        given = dict(codes or {})
        for name, code in given.items():
            if isinstance(code, bool) or not isinstance(code, int) or code < 0:
                raise wrong_value(code, f"a code, 0 or above, as out_of_domain of {name!r}")
        for asked in counts:
            if not (asked is None or isinstance(asked, str)) or asked in given:
                expected = "an attribute whose values out of domain are dropped"
                raise DomainError.at(("out_of_domain",), f"a count of {asked!r}", expected, code="conflict")
        object.__setattr__(self, "codes", tuple(sorted(given.items())))
        # The number of records that are dropped comes first.
        object.__setattr__(self, "counts", tuple(sorted(set(counts), key=lambda name: name or "")))

    @classmethod
    def drop(cls) -> Self:
        """Return the rule that drops every record with a value that is out of domain."""
        return cls()

    @classmethod
    def from_spec(cls, domain: Domain, spec: object) -> Self:
        """Return the rule that a specification describes.

        Parameters
        ----------
        domain : Domain
            The domain.
        spec : object
            A rule; ``drop``; or a mapping of attributes to ``drop``, ``{other: value}`` or ``{count: true}``,
            beside which ``count: true`` asks for the number of records that are dropped.

        Raises
        ------
        DomainError
            If it is neither, or names an attribute or a value that the domain does not have.
        """
        if isinstance(spec, cls):
            return spec
        if spec is None or spec == "drop":
            return cls()
        if not isinstance(spec, Mapping):
            raise wrong_value(spec, f"drop, or for each attribute {_EXPECTED}")
        codes: dict[str, int] = {}
        counts: list[str | None] = []
        for name, rule in spec.items():
            if name == "count" and isinstance(rule, bool):
                counts += [None] * rule
                continue
            if name not in domain:
                if name == "count":
                    raise wrong_value(rule, "true or false", name)
                raise DomainError(unknown_name((name,), name, "an attribute of the domain", domain.names))
            if rule == "drop":
                continue
            with within(name):
                form = RuleForm.read(rule)
            if form.count:
                counts.append(name)
                continue
            try:
                codes[name] = domain[name].code_of(form.other)
            except DomainError as error:
                found = error.problem or Problem((), "", "")
                expected = f"{found.expected}, which must list the value that stands for others"
                raise DomainError(replace(found, expected=expected).within(name, "other")) from None
        return cls(codes, counts)

    @staticmethod
    def schema(definitions: Schema) -> Schema:
        """Return the JSON Schema of what `from_spec` reads."""
        rule = {"anyOf": [{"const": "drop"}, RuleForm.schema(definitions)]}
        count = {"type": "boolean", "description": "measure how many records are dropped, with noise"}
        mapping = {
            "type": "object",
            "properties": {"count": {"anyOf": [count, *rule["anyOf"]]}},
            "additionalProperties": rule,
        }
        return {"anyOf": [{"const": "drop"}, mapping]}

    def to_spec(self, domain: Domain) -> object:
        """Return the rule as a specification writes it; the inverse of `from_spec`."""
        if not self.codes and not self.counts:
            return "drop"
        written: dict[str, object] = {name: {"other": domain[name].value(code)} for name, code in self.codes}
        for asked in self.counts:
            written[asked or "count"] = True if asked is None else {"count": True}
        return written

    def code(self, name: str) -> int | None:
        """Return the code in place of an attribute's values out of domain; None to drop the record."""
        return dict(self.codes).get(name)

    def check(self, domain: Domain) -> None:
        """Check that the rule fits a domain."""
        for name, code in self.codes:
            domain[name].label(code)
        for name in filter(None, self.counts):
            domain.index(name)
        if None in self.counts and ("count" in dict(self.codes) or "count" in self.counts):
            # Both would be written under one key.
            found, expected = "an attribute of that name", "another name of it beside count: true"
            raise DomainError.at(("out_of_domain", "count"), found, expected, code="conflict")
