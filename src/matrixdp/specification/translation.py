"""From what pydantic reports to one error in plain words: a place, what was found, what would be right."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from matrixdp.domain.canonical import describe_value
from matrixdp.domain.suggestions import nearest
from matrixdp.errors import EntryError, Path
from matrixdp.specification.models import ENTRY_KINDS, MODELS, PrivacyModel, SpecificationModel

__all__ = ["first_problem", "unknown_entry"]

ENTRY_FORMS = "an entry with one of the keys marginals, kway, product, pairwise, dense, any, cells"
_RULES = "drop, or {other: value}"
_EXPECTED = {
    "attribute_form": "a list of categories, {min, max}, {min, max, bins}, {edges: [...]} or a size",
    "entry_form": ENTRY_FORMS,
    "rule_form": _RULES,
    "rules_form": f"drop, or for each attribute {_RULES}",
    "scalar": "text, a number, true or false",
    "int_type": "an integer",
    "float_type": "a number",
    "string_type": "text",
    "string_too_short": "text that is not empty",
    "bool_type": "true or false",
    "list_type": "a list",
    "dict_type": "a mapping",
    "model_type": "a mapping",
    "model_attributes_type": "a mapping",
    "finite_number": "a finite number",
}

_ITEMS = {"domain": "attribute", "workload": "entry that asks something", "edges": "edges"}

_REQUIRED = {
    "domain": "the attributes: a name and its values for each",
    "workload": "a list of entries that ask something",
    "attributes": "the list of attributes whose cells the matrix is over",
}


def first_problem(error: ValidationError, root: type[BaseModel] = SpecificationModel) -> EntryError:
    """Return the most useful of the errors that pydantic found.

    A key that does not exist comes first, since it explains what seems to be missing; then the first error
    in the order of the models.

    Parameters
    ----------
    error : ValidationError
        What pydantic raised.
    root : type of BaseModel
        The model that was validated.

    Returns
    -------
    EntryError
        The place, what was found and what would be right.
    """
    details = error.errors(include_url=False)
    chosen = next((detail for detail in details if detail["type"] == "extra_forbidden"), details[0])
    return _translate(chosen, root)


def unknown_entry(written: object) -> EntryError:
    """Return the error for a workload entry of no known kind.

    Parameters
    ----------
    written : object
        What stands in the file.

    Examples
    --------
    >>> unknown_entry({"kwya": 3}).problem.suggestion
    'kway'
    """
    return EntryError.at((), describe_value(written), ENTRY_FORMS, _meant(written, ENTRY_KINDS))


def _translate(detail: ErrorDetails, root: type[BaseModel]) -> EntryError:
    kind, context = detail["type"], detail.get("ctx", {})
    loc = detail["loc"]
    path = _without_tags(loc)
    value: object = detail["input"]
    if kind == "extra_forbidden":
        return _unknown_key(path, str(loc[-1]), _model_at(loc[:-1], root))
    if kind == "missing":
        key = str(loc[-1])
        return EntryError.at(path, "nothing", _REQUIRED.get(key, f"a value: `{key}` is required"))
    suggestions = _meant(value, ENTRY_KINDS) if kind == "entry_form" else ()
    return EntryError.at(path, describe_value(value), _expected(kind, context, path), suggestions)


def _expected(kind: str, context: Mapping[str, Any], path: Path) -> str:
    if kind == "literal_error":
        return str(context["expected"]).replace("'", "")
    if kind == "greater_than_equal":
        return f"an integer of at least {context['ge']}"
    if kind == "too_short":
        return f"at least {context['min_length']} {_ITEMS.get(str(path[-1]), 'category')}"
    return _EXPECTED.get(kind, "a value of another kind")


def _meant(value: object, keys: tuple[str, ...]) -> tuple[str, ...]:
    close = (nearest(str(key), keys) for key in value) if isinstance(value, Mapping) else ()
    return next((names for names in close if names), ())


def _unknown_key(path: Path, key: str, model: type[BaseModel]) -> EntryError:
    names = sorted(model.model_fields, key=lambda name: name not in ENTRY_KINDS)
    if key in ENTRY_KINDS and model in MODELS.values():
        kind = next(name for name in names if name in ENTRY_KINDS)
        return EntryError.at(
            path, f"the key {key!r} beside {kind!r}", "one kind an entry; make them two entries"
        )
    return EntryError.at(path, f"the unknown key {key!r}", f"one of {', '.join(names)}", nearest(key, names))


_TAG_POSITIONS = {"domain": (2,), "workload": (2,), "out_of_domain": (1, 3)}
"""Where pydantic puts the tag of a form into a place, by the first key."""


def _without_tags(loc: tuple[str | int, ...]) -> Path:
    """Return the place in the file, without the tags of forms."""
    tags = _TAG_POSITIONS.get(str(loc[0]), ()) if loc else ()
    return tuple(step for position, step in enumerate(loc) if position not in tags)


def _model_at(loc: tuple[str | int, ...], root: type[BaseModel]) -> type[BaseModel]:
    if loc and isinstance(loc[-1], str) and loc[-1] in MODELS:
        return MODELS[loc[-1]]
    return PrivacyModel if loc == ("privacy",) else root
