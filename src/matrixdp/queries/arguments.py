"""The arguments of the builders, checked."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from matrixdp.domain.canonical import describe_value
from matrixdp.domain.suggestions import nearest
from matrixdp.errors import EntryError, Path
from matrixdp.queries.arrays import given_array
from matrixdp.queries.entry_options import Options
from matrixdp.queries.predicate_form import PredicateForm

__all__ = [
    "attribute_names",
    "cell_limit",
    "entry_options",
    "number_of_attributes",
    "predicate_forms",
    "predicates_by_kind",
    "sequence_of",
    "which_marginals",
]

_KINDS = ("categorical", "numeric")


def sequence_of(value: object, path: Path, expected: str) -> list[object]:
    """Return the items of a list, tuple, range or array.

    Parameters
    ----------
    value : object
        What the user gave.
    path : tuple of str or int
        Where it stands, for messages.
    expected : str
        What is expected, in words.

    Raises
    ------
    EntryError
        If it is none of these.
    """
    if isinstance(value, list | tuple | range | np.ndarray):
        return list(value)
    raise EntryError.at(path, describe_value(value), expected)


def number_of_attributes(value: object, path: Path) -> int:
    """Return how many attributes to combine.

    Parameters
    ----------
    value : object
        What the user gave.
    path : tuple of str or int
        Where it stands, for messages.

    Raises
    ------
    EntryError
        If it is not an integer of at least 0.
    """
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 0:
        raise EntryError.at(path, describe_value(value), "a number of attributes, an integer of at least 0")
    return int(value)


def which_marginals(which: object) -> tuple[tuple[int, ...], tuple[tuple[str, ...], ...]]:
    """Return numbers of attributes and listed combinations of them; one of the two is empty.

    Parameters
    ----------
    which : object
        What the user gave.

    Raises
    ------
    EntryError
        If it is neither a number, nor a list of numbers, nor a list of lists of names.
    """
    path: Path = ("marginals",)
    expected = "a number of attributes, a list of numbers, or a list of lists of attributes"
    if isinstance(which, int | np.integer):
        return (number_of_attributes(which, path),), ()
    items = sequence_of(which, path, expected)
    if not items:
        raise EntryError.at(path, "an empty list", expected)
    if any(isinstance(item, str) for item in items):
        raise EntryError.at(path, describe_value(items), "a list of lists: [[first, second], ...]")
    if isinstance(items[0], list | tuple):
        listed = (attribute_names(item, (*path, position)) for position, item in enumerate(items))
        return (), tuple(names or () for names in listed)
    return tuple(number_of_attributes(item, (*path, position)) for position, item in enumerate(items)), ()


def attribute_names(value: object, path: Path) -> tuple[str, ...] | None:
    """Return listed names of attributes.

    Parameters
    ----------
    value : object
        What the user gave.
    path : tuple of str or int
        Where it stands, for messages.

    Raises
    ------
    EntryError
        If it is not a list of different names.
    """
    if value is None:
        return None
    names: list[str] = []
    for position, name in enumerate(sequence_of(value, path, "a list of attributes")):
        if not isinstance(name, str):
            raise EntryError.at((*path, position), describe_value(name), "the name of an attribute")
        if name in names:
            raise EntryError.at((*path, position), f"{name!r} a second time", "each attribute once")
        names.append(str(name))
    return tuple(names)


def cell_limit(value: object) -> int | None:
    """Return the largest number of cells allowed.

    Parameters
    ----------
    value : object
        What the user gave.

    Raises
    ------
    EntryError
        If it is not an integer of at least 1.
    """
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
        raise EntryError.at(("max_cells",), describe_value(value), "an integer of at least 1")
    return int(value)


def predicate_forms(
    written: object, path: Path, more: Mapping[str, object] | None = None
) -> dict[str, PredicateForm]:
    """Return the predicate sets of attributes.

    Parameters
    ----------
    written : object
        What the user gave: a mapping of attributes to predicate sets.
    path : tuple of str or int
        Where it stands, for messages.
    more : mapping of str to object, optional
        Sets of further attributes.

    Raises
    ------
    EntryError
        If it is not such a mapping, or an attribute is given twice.

    Examples
    --------
    >>> list(predicate_forms({"age": "prefix"}, ("product",), {"sex": "identity"}))
    ['age', 'sex']
    """
    if not isinstance(written, Mapping):
        raise EntryError.at(path, describe_value(written), "a mapping of attributes to predicate sets")
    forms: dict[str, PredicateForm] = {}
    for attribute, form in [*written.items(), *(more or {}).items()]:
        if not isinstance(attribute, str):
            raise EntryError.at(path, f"the key {describe_value(attribute)}", "the name of an attribute")
        if attribute in forms:
            raise EntryError.at((*path, attribute), "the attribute a second time", "each attribute once")
        forms[attribute] = PredicateForm.parse(form, (*path, attribute))
    return forms


def predicates_by_kind(written: object) -> PredicateForm | Mapping[str, PredicateForm]:
    """Return one predicate set for all attributes, or one for each kind of attribute.

    Parameters
    ----------
    written : object
        What the user gave.

    Raises
    ------
    EntryError
        If it is neither.
    """
    path: Path = ("predicates",)
    if not isinstance(written, Mapping):
        return PredicateForm.parse(written, path)
    if not written:
        raise EntryError.at(path, "an empty mapping", "predicate sets for categorical, numeric or both")
    if not any(key in _KINDS for key in written):
        key = str(next(iter(written)))
        close = nearest(key, _KINDS)
        if close:
            raise EntryError.at(path, f"the key {key!r}", "categorical or numeric", close)
        return PredicateForm.parse(written, path)
    for key in written:
        if key not in _KINDS:
            raise EntryError.at(path, f"the key {describe_value(key)}", "categorical or numeric")
    identity = PredicateForm("identity")
    return {
        kind: PredicateForm.parse(written[kind], (*path, kind)) if kind in written else identity
        for kind in _KINDS
    }


def entry_options(weight: object, weights: object, name: object) -> Options:
    """Return the checked options of an entry.

    Parameters
    ----------
    weight : object
        The weight of the entry.
    weights : object
        An array or a path, one weight for each query.
    name : object
        What the groups are called.

    Raises
    ------
    EntryError
        If a weight is not a finite number above 0, or the name is not text.
    """
    expected = "a finite number above 0"
    if isinstance(weight, bool) or not isinstance(weight, int | float | np.integer | np.floating):
        raise EntryError.at(("weight",), describe_value(weight), expected)
    try:
        factor = float(weight)
    except OverflowError:
        factor = math.inf
    if not (math.isfinite(factor) and factor > 0):
        raise EntryError.at(("weight",), describe_value(weight), expected)
    if name is not None and (not isinstance(name, str) or not name.strip()):
        raise EntryError.at(("name",), describe_value(name), "text that is not empty")
    array = None
    if weights is not None:
        array = given_array(weights, ("weights",), "a finite number above 0 for each query").ravel()
        if not (array > 0).all():
            raise EntryError.at(
                ("weights",), "a weight that is 0 or negative", "numbers above 0, one for each query"
            )
        with np.errstate(over="ignore", under="ignore"):
            joint = array * factor
        if not (np.isfinite(joint).all() and (joint > 0).all()):
            raise EntryError.at(
                ("weights",), "a weight that overflows or vanishes with `weight`", "numbers within range"
            )
    return Options(factor, array, name)
