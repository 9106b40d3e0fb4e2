"""Forms: each way to write a value down reads it, writes it back, and describes itself as JSON Schema."""

from matrixdp.forms.form import Form, FormError, Given, Kept, Schema, as_given, as_lists
from matrixdp.forms.record import Record, RecordForm, key, record, register
from matrixdp.forms.values import (
    LISTS,
    Accepted,
    Alone,
    Either,
    ListOf,
    MappingOf,
    OneOf,
    Raw,
    Turned,
    flag,
    number,
    scalar,
    text,
    whole,
)
from matrixdp.forms.wording import closest, describe_value, nearest, unknown_name

__all__ = [
    "LISTS",
    "Accepted",
    "Alone",
    "Either",
    "Form",
    "FormError",
    "Given",
    "Kept",
    "ListOf",
    "MappingOf",
    "OneOf",
    "Raw",
    "Record",
    "RecordForm",
    "Schema",
    "Turned",
    "as_given",
    "as_lists",
    "closest",
    "describe_value",
    "flag",
    "key",
    "nearest",
    "number",
    "record",
    "register",
    "scalar",
    "text",
    "unknown_name",
    "whole",
]
