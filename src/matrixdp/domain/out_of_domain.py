"""What happens to values that are out of domain."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Self, final

from matrixdp.domain.domain import Domain
from matrixdp.errors import DomainError, Problem, within
from matrixdp.forms import Record, Schema, describe_value, flag, key, record, scalar, unknown_name

__all__ = ["OutOfDomain"]


_EXPECTED = "drop, {other: value} or {count: true}"


@final
@record
class RuleForm(Record):
    """The value in whose place values out of domain are counted, or that their number is measured."""

    error = DomainError
    other: object = key(scalar("text, a number, true or false"), default=None)
    count: bool = key(flag(), default=False, about="measure how many values were out of domain, with noise")

    def check(self) -> None:
        if (self.other is None) != self.count:
            found = "neither other nor count" if self.other is None else "other and count"
            raise DomainError.at(
                (), found, "one of them: what is counted as another value is not out of domain"
            )


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
        for name, code in (codes or {}).items():
            if isinstance(code, bool) or not isinstance(code, int) or code < 0:
                raise DomainError(f"out_of_domain of {name!r} must be a code, 0 or above; found {code!r}")
        counted = dict.fromkeys(counts)
        for asked in counted:
            if not (asked is None or isinstance(asked, str)) or asked in (codes or {}):
                raise DomainError.at(
                    ("out_of_domain",),
                    f"a count of {asked!r}",
                    "an attribute whose values out of domain are dropped",
                )
        object.__setattr__(self, "codes", tuple(sorted((codes or {}).items())))
        whole = (None,) if None in counted else ()
        object.__setattr__(self, "counts", (*whole, *sorted(name for name in counted if name is not None)))

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
            ``drop``, or a mapping of attributes to ``drop``, ``{other: value}`` or ``{count: true}``, beside
            which ``count: true`` asks for the number of records that are dropped.

        Raises
        ------
        DomainError
            If it is neither, or names an attribute or a value that the domain does not have.
        """
        if spec is None or spec == "drop":
            return cls()
        if not isinstance(spec, Mapping):
            raise DomainError.at((), describe_value(spec), f"drop, or for each attribute {_EXPECTED}")
        codes: dict[str, int] = {}
        counts: list[str | None] = []
        for name, rule in spec.items():
            if name == "count" and isinstance(rule, bool):
                counts += [None] * rule
                continue
            if name not in domain and name == "count":
                raise DomainError.at((name,), describe_value(rule), "true or false")
            if name not in domain:
                raise DomainError(unknown_name((name,), name, "an attribute of the domain", domain.names))
            if rule == "drop":
                continue
            if not isinstance(rule, Mapping):
                raise DomainError.at((name,), describe_value(rule), _EXPECTED)
            with within(name):
                form = RuleForm.read(rule)
                if form.count:
                    counts.append(name)
                    continue
                with within("other"):
                    try:
                        codes[name] = domain[name].code_of(form.other)
                    except DomainError as error:
                        found = error.problem or Problem((), "", "")
                        expected = f"{found.expected}, which must list the value that stands for others"
                        raise DomainError(replace(found, expected=expected)) from None
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
        """Return what a specification says about the rule; the inverse of `from_spec`."""
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
        for counted in self.counts:
            if counted is not None:
                domain.index(counted)
        if None in self.counts and ("count" in dict(self.codes) or "count" in self.counts):
            # Both would be written under one key.
            raise DomainError.at(
                ("out_of_domain", "count"),
                "an attribute of that name",
                "another name of it beside count: true",
            )
