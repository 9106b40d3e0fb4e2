"""JSON Schemas of values that the builders check themselves."""

from __future__ import annotations

from typing import Any

__all__ = [
    "ARRAY",
    "CELLS",
    "COUNT",
    "NAMES",
    "NUMBERS",
    "PAIRWISE",
    "POSITIVE",
    "PREDICATES_BY_KIND",
    "PRODUCT",
    "SCALAR",
    "TEXT",
    "WHICH",
]

Schema = dict[str, Any]

SCALAR: Schema = {"type": ["string", "number", "boolean"]}
POSITIVE: Schema = {"type": "number", "exclusiveMinimum": 0}
TEXT: Schema = {"type": "string", "minLength": 1}
COUNT: Schema = {"type": "integer", "minimum": 1}
NAMES: Schema = {"type": "array", "items": TEXT, "uniqueItems": True}
ARRAY: Schema = {
    "description": "a NumPy file (.npy), or the numbers themselves",
    "anyOf": [TEXT, {"type": "array"}],
}

_NUMBER: Schema = {"type": "integer", "minimum": 0}
NUMBERS: Schema = {"anyOf": [_NUMBER, {"type": "array", "items": _NUMBER, "minItems": 1}]}
WHICH: Schema = {
    "anyOf": [*NUMBERS["anyOf"], {"type": "array", "items": NAMES, "minItems": 1}],
}
PAIRWISE: Schema = {"enum": ["affine", "abs"]}


def _one(key: str, value: Schema) -> Schema:
    return {"type": "object", "properties": {key: value}, "required": [key], "additionalProperties": False}


_VALUES: Schema = {"type": "array", "items": SCALAR}
_PREDICATES: Schema = {
    "anyOf": [
        {"enum": ["identity", "total", "prefix", "suffix", "range", "circular"]},
        _one("width", COUNT),
        _one("ranges", {"type": "array", "minItems": 1, "items": _VALUES | {"minItems": 2, "maxItems": 2}}),
        _one("sets", {"type": "array", "minItems": 1, "items": _VALUES}),
        _one("matrix", ARRAY),
    ]
}
_SIMPLE: Schema = {"anyOf": [*_PREDICATES["anyOf"]]}
_STACK: Schema = {"type": "array", "minItems": 1, "items": _SIMPLE}
_PERMUTED: Schema = {
    "type": "object",
    "properties": {
        "permuted": {"anyOf": [*_SIMPLE["anyOf"], _STACK]},
        "seed": {"type": "integer"},
        "order": _VALUES,
    },
    "required": ["permuted"],
    "additionalProperties": False,
    "minProperties": 2,
    "maxProperties": 2,
}
_PREDICATES["anyOf"] += [
    _PERMUTED,
    {"type": "array", "minItems": 1, "items": {"anyOf": [*_SIMPLE["anyOf"], _PERMUTED]}},
]
PRODUCT: Schema = {"type": "object", "additionalProperties": _PREDICATES}
_BOX: Schema = {
    "type": "object",
    "minProperties": 1,
    "additionalProperties": {
        "anyOf": [SCALAR, _VALUES | {"minItems": 1}, _one("range", _VALUES | {"minItems": 2, "maxItems": 2})]
    },
}
CELLS: Schema = {
    "type": "array",
    "minItems": 1,
    "items": {"anyOf": [_BOX, {"type": "array", "minItems": 1, "items": _BOX}]},
}
PREDICATES_BY_KIND: Schema = {
    "anyOf": [
        _PREDICATES,
        {
            "type": "object",
            "properties": {"categorical": _PREDICATES, "numeric": _PREDICATES},
            "additionalProperties": False,
            "minProperties": 1,
        },
    ]
}
