"""Attributes from what a specification or a few lines of Python say about them."""

from collections.abc import Iterable, Mapping

from matrixdp.domain.attributes import Attribute, Bins, Categorical, Coded, Integers
from matrixdp.errors import DomainError

__all__ = ["attribute_from_spec"]

FORMS = "a list of categories, {min, max}, {min, max, bins}, {edges: [...]}, or a number of codes"


def attribute_from_spec(name: str, spec: object) -> Attribute:
    """Return the attribute that a specification describes.

    Parameters
    ----------
    name : str
        The attribute's name.
    spec : object
        A list of categories; ``{min, max}`` or a Python range for integers, ends inclusive;
        ``{edges: [...]}`` for half-open bins; ``{min, max, bins}`` for equal ones, the last one closed; an
        integer for the number of codes; or an `Attribute` of the same name.

    Returns
    -------
    Attribute
        The attribute.

    Raises
    ------
    DomainError
        If the description is none of these, or wrong in itself.

    Examples
    --------
    >>> attribute_from_spec("hours", {"min": 0, "max": 100, "bins": 20}).label(0)
    '[0, 5)'
    >>> attribute_from_spec("age", range(115))
    Integers(name='age', minimum=0, maximum=114)
    """
    if isinstance(spec, Attribute):
        if spec.name != name:
            raise DomainError(f"attribute {name!r} is described by an attribute named {spec.name!r}")
        return spec
    if isinstance(spec, Mapping):
        return _from_mapping(name, spec)
    if isinstance(spec, range):
        if spec.step != 1 or len(spec) == 0:
            raise DomainError(f"attribute {name!r} needs a non-empty range of step 1; found {spec!r}")
        return Integers(name, spec.start, spec.stop - 1)
    if isinstance(spec, str | bytes) or spec is None or isinstance(spec, bool):
        raise DomainError(f"attribute {name!r} must be {FORMS}; found {spec!r}")
    if isinstance(spec, set | frozenset):
        raise DomainError(f"attribute {name!r} needs its categories in an order: a list, not a set")
    if isinstance(spec, Iterable):
        return Categorical(name, tuple(spec))
    if hasattr(spec, "__index__") or isinstance(spec, float):
        return Coded(name, spec)  # type: ignore[arg-type]  # checked by Coded
    raise DomainError(f"attribute {name!r} must be {FORMS}; found {type(spec).__name__}")


def _from_mapping(name: str, spec: Mapping[object, object]) -> Attribute:
    keys = set(spec)
    if keys == {"min", "max"}:
        return Integers(name, spec["min"], spec["max"])  # type: ignore[arg-type]  # checked by Integers
    if keys == {"min", "max", "bins"}:
        return Bins.equal(name, spec["min"], spec["max"], spec["bins"])
    if keys in ({"edges"}, {"edges", "closed"}):
        edges = spec["edges"]
        if isinstance(edges, str | bytes) or not isinstance(edges, Iterable):
            raise DomainError(f"the edges of attribute {name!r} must be a list of numbers; found {edges!r}")
        return Bins(name, tuple(edges), spec.get("closed", False))  # type: ignore[arg-type]  # checked by Bins
    found = ", ".join(str(key) for key in spec) or "nothing"
    raise DomainError(f"attribute {name!r} must be {FORMS}; found a mapping with {found}")
