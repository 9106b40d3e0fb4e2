"""What happens to values that are out of domain."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self, final

from matrixdp.domain.domain import Domain
from matrixdp.errors import DomainError, within
from matrixdp.forms import Record, Schema, describe_value, key, record, scalar, unknown_name

__all__ = ["OutOfDomain"]


_EXPECTED = "drop, or {other: value}"


@final
@record
class OtherForm(Record):
    """The value in whose place values out of domain are counted."""

    error = DomainError
    other: object = key(scalar("text, a number, true or false"))


@final
@dataclass(frozen=True, init=False)
class OutOfDomain:
    """What happens to a record with a value that is out of domain.

    By default the record is dropped, from every marginal alike. An attribute may name a code of its own
    instead, which then takes the place of its values that are out of domain. How many there were is never
    counted.

    Parameters
    ----------
    codes : mapping of str to int, optional
        The code that replaces the attribute's values that are out of domain; attributes that are not named
        drop the record.

    Examples
    --------
    >>> domain = Domain({"sex": ["female", "male", "unknown"], "age": range(115)})
    >>> rule = OutOfDomain.from_spec(domain, {"sex": {"other": "unknown"}})
    >>> rule.code("sex"), rule.code("age")
    (2, None)
    """

    codes: tuple[tuple[str, int], ...]

    def __init__(self, codes: Mapping[str, int] | None = None) -> None:
        for name, code in (codes or {}).items():
            if isinstance(code, bool) or not isinstance(code, int) or code < 0:
                raise DomainError(f"out_of_domain of {name!r} must be a code, 0 or above; found {code!r}")
        object.__setattr__(self, "codes", tuple(sorted((codes or {}).items())))

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
            ``drop``, or a mapping of attributes to ``drop`` or ``{other: value}``.

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
        for name, rule in spec.items():
            if name not in domain:
                raise DomainError(unknown_name((name,), name, "an attribute of the domain", domain.names))
            if rule == "drop":
                continue
            if not isinstance(rule, Mapping):
                raise DomainError.at((name,), describe_value(rule), _EXPECTED)
            with within(name):
                value = OtherForm.read(rule).other
                with within("other"):
                    codes[name] = domain[name].code_of(value)
        return cls(codes)

    @staticmethod
    def schema(definitions: Schema) -> Schema:
        """Return the JSON Schema of what `from_spec` reads."""
        rule = {"anyOf": [{"const": "drop"}, OtherForm.schema(definitions)]}
        return {"anyOf": [{"const": "drop"}, {"type": "object", "additionalProperties": rule}]}

    def to_spec(self, domain: Domain) -> object:
        """Return what a specification says about the rule; the inverse of `from_spec`."""
        if not self.codes:
            return "drop"
        return {name: {"other": domain[name].value(code)} for name, code in self.codes}

    def code(self, name: str) -> int | None:
        """Return the code in place of an attribute's values out of domain; None to drop the record."""
        return dict(self.codes).get(name)

    def check(self, domain: Domain) -> None:
        """Check that the rule fits a domain."""
        for name, code in self.codes:
            domain[name].label(code)
