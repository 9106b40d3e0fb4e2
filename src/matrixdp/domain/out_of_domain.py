"""What happens to values that are out of domain."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self, final

from matrixdp.domain.domain import Domain
from matrixdp.errors import DomainError

__all__ = ["OutOfDomain"]


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
        forms = "'drop', or a mapping of attributes to 'drop' or {other: value}"
        if spec is None or spec == "drop":
            return cls()
        if not isinstance(spec, Mapping):
            raise DomainError(f"out_of_domain must be {forms}; found {spec!r}")
        codes: dict[str, int] = {}
        for name, rule in spec.items():
            attribute = domain[name]
            if isinstance(rule, Mapping) and set(rule) == {"other"}:
                codes[name] = attribute.code_of(rule["other"])
            elif rule != "drop":
                raise DomainError(
                    f"out_of_domain of {name!r} must be 'drop' or {{other: value}}; found {rule!r}"
                )
        return cls(codes)

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
