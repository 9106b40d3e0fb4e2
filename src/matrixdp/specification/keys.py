"""The keys of a specification file, and the form of what stands under each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, final

import matrixdp.statements  # adds the entries that are SQL to the language
import matrixdp.statistics  # noqa: F401 - adds statistics
from matrixdp import forms
from matrixdp.domain import Domain, OutOfDomain
from matrixdp.domain.parsing import attribute_schema, with_paths
from matrixdp.errors import DomainError, EntryError, PrivacyError, Problem, SpecificationError
from matrixdp.forms import Form, FormError, MappingOf, Record, Schema, Verbatim, key, record
from matrixdp.language import ENTRY, Entry
from matrixdp.language.entries import NAMES
from matrixdp.language.invariants import IMPOSSIBLE, PUBLISHED, ImpossibleBox, Published
from matrixdp.privacy import Budget, LeastBudget, Unit
from matrixdp.privacy.budget import BUDGET_KINDS, DEFAULT_MAX_RECORDS
from matrixdp.privacy.unit import MOST_RECORDS
from matrixdp.queries.workload import TARGETS, Target
from matrixdp.texts import NO_PUBLICATION, Publication


def _number(written: object) -> int | float | None:
    return written if isinstance(written, int | float) and not isinstance(written, bool) else None


_TEXT = forms.text("text that is not empty")
_RECORDS = forms.whole("an integer from 1 to 2^53 - 1", least=1, most=MOST_RECORDS)
_NAMES: forms.Form[tuple[str, ...]] = forms.AnyOf(
    ((lambda value: isinstance(value, forms.LISTS), replace(NAMES, least=1)),), forms.Unbracketed(NAMES.item)
)
_PARAMETER = forms.Accepted("a number", _number, {"type": "number", "exclusiveMinimum": 0})
_BELOW_ONE = {"exclusiveMaximum": 1}
_ATTRIBUTES = MappingOf(
    Verbatim(attribute_schema), "a mapping", named="text as a key", least=1, count="at least 1 attribute"
)


@final
class _DomainForm(Form[Domain]):
    """A domain; the names of files of values are relative to the specification."""

    def read(self, written: object, resolve: forms.ResolvePath) -> Domain:
        if isinstance(written, Domain):
            return written
        listed = _ATTRIBUTES.read(written, resolve)
        return Domain({name: with_paths(spec, resolve) for name, spec in listed.items()})

    def write(self, value: Domain, write_array: forms.WriteArray = forms.as_lists) -> object:
        return value.to_spec()

    def schema(self, definitions: Schema) -> Schema:
        return _ATTRIBUTES.schema(definitions)


@final
class _CodeBookForm(Form[object]):
    """The name of a file, relative to the specification."""

    def read(self, written: object, resolve: forms.ResolvePath) -> object:
        return resolve(_TEXT.read(written, resolve))

    def schema(self, definitions: Schema) -> Schema:
        return _TEXT.schema(definitions)


@final
@record
class PrivacyPart(Record):
    """The budget: one of rho, mu, or epsilon with delta; or, with targets, which of them to minimize."""

    minimize: str | None = key(forms.OneOf(BUDGET_KINDS), default=None)
    rho: float | None = key(_PARAMETER, default=None)
    mu: float | None = key(_PARAMETER, default=None)
    epsilon: float | None = key(_PARAMETER, default=None)
    delta: float | None = key(_PARAMETER, default=None)
    neighbours: str = key(forms.OneOf(("add_remove", "replace")), default="add_remove")
    ledger: str | None = key(_TEXT, default=None, about="the ledger that is debited", blank=False)

    @classmethod
    def unknown_key(cls, name: object) -> Problem:
        """Return the problem of a key that it does not have; one of the file's belongs beside `privacy`."""
        if name in set(WrittenSpecification.keys()):
            expected = f"`{name}` beside `privacy`, not in it"
            return Problem((str(name),), f"the key {name!r}", expected, code="unknown-key")
        return super().unknown_key(name)

    def check(self) -> None:
        for name in BUDGET_KINDS if self.minimize is not None else ():
            if getattr(self, name) is not None:
                expected = "one of them: minimize, or a budget not to exceed"
                raise FormError.at((name,), f"{name} beside minimize", expected, code="conflict")
        try:
            self.least_budget()
        except PrivacyError as error:
            if error.problem is None:
                raise
            raise FormError(replace(error.problem, path=error.problem.path[1:])) from None

    @classmethod
    def schema(cls, definitions: Schema) -> Schema:
        """Return a reference to the JSON Schema: one of the definitions, of which two have no delta."""
        found = super().schema(definitions)
        alone = [{"required": [name]} for name in ("rho", "mu")]
        definitions[cls.__name__] |= {
            "oneOf": [*alone, {"required": ["epsilon"]}, {"required": ["minimize"]}],
            "dependentSchemas": {"delta": {"not": {"anyOf": alone}, "properties": {"delta": _BELOW_ONE}}},
        }
        return found

    def budget(self, unit: Unit | None = None) -> Budget | None:
        """Return the budget for a unit; None if it says which parameter is made least."""
        if self.minimize is not None:
            return None
        between: Any = self.neighbours
        return Budget(
            rho=self.rho, mu=self.mu, epsilon=self.epsilon, delta=self.delta, neighbours=between, unit=unit
        )

    def least_budget(self, unit: Unit | None = None) -> LeastBudget:
        """Return which budget is made least beside targets: the one named, or one within the budget."""
        budget = self.budget(unit)
        if budget is not None:
            return LeastBudget.within(budget)
        between: Any = self.neighbours
        return LeastBudget(str(self.minimize), self.delta, between, Unit.of(unit))


_UNIT_FORMS = (
    "{records: 3}, or {id: person, max_records: 3} with the column that names the person, or with per: "
    "{id: person, per: month, max_values: 12}"
)


@final
@record
class UnitPart(Record):
    """How many records a person has at most, and in how many values of an attribute."""

    records: int | None = key(
        _RECORDS, default=None, about="the most records of a person, which is assumed", blank=False
    )
    id: str | None = key(_TEXT, default=None, about="the column that names the person", blank=False)
    max_records: int | None = key(
        _RECORDS, default=None, about="with id: the most records of a person that count", blank=False
    )
    per: tuple[str, ...] = key(
        _NAMES, default=(), about="the attributes in whose values records are bounded", blank=False
    )
    max_values: int | None = key(
        _RECORDS, default=None, about="in how many values of per a person has records at most", blank=False
    )
    max_records_each: int | None = key(
        _RECORDS, default=None, about="the most records of a person in each value of per", blank=False
    )
    constant: tuple[str, ...] = key(
        _NAMES, default=(), about="attributes that all records of a person that count agree in", blank=False
    )

    def check(self) -> None:
        given = [name for name in self.keys() if getattr(self, name)]
        most, other = ("records", "max_records") if self.id is None else ("max_records", "records")
        if other in given or not (most in given or (self.id is not None and self.per)):
            code = "conflict" if given else "missing-key"
            raise FormError.at((), " and ".join(given) or "nothing", _UNIT_FORMS, code=code)
        try:
            self.unit()
        except PrivacyError as error:
            if error.problem is None:
                raise
            raise FormError(replace(error.problem, path=self._written(error.problem.path))) from None

    def _written(self, path: tuple[str | int, ...]) -> tuple[str | int, ...]:
        """Return where a problem of a unit is here."""
        place = path[-1:]
        return ("max_records",) if place == ("records",) and self.records is None else place

    @classmethod
    def schema(cls, definitions: Schema) -> Schema:
        """Return a reference to the JSON Schema: one of the forms."""
        found = super().schema(definitions)
        bounds = (["records"], ["max_records"], ["per", "max_values"])
        definitions[cls.__name__] |= {
            "oneOf": [{"required": ["records"]}, {"required": ["id"]}],
            "anyOf": [{"required": names} for names in bounds],
            "dependentRequired": {
                "max_records": ["id"],
                "max_values": ["per"],
                "max_records_each": ["per"],
                "constant": ["id", "per"],
            },
        }
        return found

    def unit(self, domain: Domain | None = None, out_of_domain: OutOfDomain | None = None) -> Unit:
        """Return the unit of privacy, for a domain if one is given.

        Raises
        ------
        DomainError, PrivacyError
            If the domain has no such attributes, or what is given does not go together.
        """
        most = self.max_records if self.records is None else self.records
        bounds = self.per, self.max_values, self.max_records_each, self.constant
        unit = Unit(most, self.id, *bounds)
        if domain is None:
            return unit
        found = unit.on(domain, out_of_domain)
        if most is not None and self.max_records_each is None and found.records < unit.records:
            place = "records" if self.id is None else "max_records"
            told = f"{most} in {found.max_values} values of {', '.join(self.per)}"
            expected = f"at most {found.max_values}, or max_records_each: how many of them in each"
            raise DomainError.at(("unit", place), told, expected, code="out-of-range")
        return found


@final
@record
class SeriesRule(Record):
    """The attribute whose values are the periods of a series, one budget for all of them."""

    expected = "the name of an attribute of dates, or {attribute: month}"

    attribute: str = key(_TEXT, about="the dates whose values are the periods")
    periods: str = key(
        forms.OneOf(("fixed", "may_change")),
        default="fixed",
        about="whether the period of a record may change once it is in the table",
    )

    def check(self) -> None:
        if self.periods != "fixed":
            expected = (
                "fixed: keep the period with which a record first arrives, or make independent releases; "
                "records whose period may change are not covered"
            )
            raise FormError.at(("periods",), repr(self.periods), expected, code="not-supported")


@final
class _SeriesForm(Form[SeriesRule]):
    """The rule of a series, or the name of its attribute alone."""

    def read(self, written: object, resolve: forms.ResolvePath) -> SeriesRule:
        return SeriesRule.read({"attribute": written} if isinstance(written, str) else written, resolve)

    def write(self, value: SeriesRule, write_array: forms.WriteArray = forms.as_lists) -> object:
        return value.to_spec(write_array)

    def schema(self, definitions: Schema) -> Schema:
        return {"anyOf": [_TEXT.schema(definitions), SeriesRule.schema(definitions)]}


@final
@record
class WrittenSpecification(Record):
    """A whole specification file."""

    error = SpecificationError
    expected = "a mapping with the keys domain, workload and privacy"

    data: str | None = key(
        _TEXT, default=None, about="the path of CSV, Parquet (a glob too) or a database, or an address"
    )
    table: str | None = key(_TEXT, default=None, about="the table of a database")
    quoted_newlines: bool = key(forms.flag(), default=False, about="quotes in CSV files may hold line ends")
    domain: Domain = key(
        _DomainForm(),
        missing="the attributes: a name and its values for each",
        about="the attributes, in order",
    )
    domain_from: tuple[str, ...] = key(
        forms.AnyOf(
            ((lambda said: isinstance(said, list | tuple), forms.ListOf(_TEXT, "a list of files", least=1)),),
            forms.Unbracketed(_TEXT),
        ),
        default=(),
        about="files of discovered domains, whose attributes come behind those of `domain`",
    )
    codebook: object = key(
        _CodeBookForm(), default=None, about="a public CSV file with titles, notes and labels of attributes"
    )
    workload: tuple[Entry, ...] = key(
        forms.ListOf(ENTRY, "a list", least=1, count="at least 1 entry that asks something"),
        missing="a list of entries that ask something",
        about="the queries to answer",
    )
    privacy: PrivacyPart | None = key(forms.RecordForm(PrivacyPart), default=None, about="the budget")
    unit: UnitPart | None = key(
        forms.RecordForm(UnitPart), default=None, about="the privacy unit", blank=False
    )
    publication: Publication = key(
        forms.RecordForm(Publication), default=NO_PUBLICATION, about="texts for readers of the release"
    )
    series: SeriesRule | None = key(
        _SeriesForm(), default=None, about="publish period by period, all under one budget", blank=False
    )
    rounds: int = key(
        forms.whole("1 or 2", least=1, most=2),
        default=1,
        about="2 plans half of the budget from noisy answers to the first half, to publish more counts",
    )
    targets: Mapping[str, Target] | None = key(
        TARGETS, default=None, about="the largest standard error of query groups, or the precision of figures"
    )
    out_of_domain: object = key(
        Verbatim(OutOfDomain.schema),
        default="drop",
        always=True,
        about="how values out of domain are treated",
    )
    max_records: int = key(
        forms.whole("an integer of at least 1", least=1),
        default=DEFAULT_MAX_RECORDS,
        always=True,
        about="a public bound on the number of records",
    )
    invariants: tuple[Published, ...] | None = key(
        PUBLISHED, default=None, about="published counts, which models keep exactly"
    )
    structural_zeros: tuple[ImpossibleBox, ...] | None = key(
        IMPOSSIBLE,
        default=None,
        about="combinations of values that no record has, for models",
    )

    def check(self) -> None:
        if self.targets is None and self.privacy is not None and self.privacy.minimize is not None:
            expected = "it beside targets: {group: standard error}"
            raise EntryError.at(("privacy", "minimize"), "no targets", expected, code="missing-key")
        if self.targets is not None and self.privacy is None:
            expected = "{minimize: rho} beside targets, or a budget not to exceed"
            raise EntryError.at(("privacy",), "nothing", expected, code="missing-key")

    @classmethod
    def schema(cls, definitions: Schema) -> Schema:
        """Return a reference to the JSON Schema: with a domain, a discovered one, or both."""
        found = super().schema(definitions)
        definitions[cls.__name__]["required"].remove("domain")
        definitions[cls.__name__]["anyOf"] = [{"required": ["domain"]}, {"required": ["domain_from"]}]
        return found
