"""Forms: each way to write a value down reads it, writes it back, and describes itself as JSON Schema."""

from matrixdp.forms.addresses import has_scheme, names_secret, shown
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
    OrFile,
    Raw,
    flag,
    number,
    scalar,
    text,
    whole,
)
from matrixdp.forms.wording import closest, describe_value, is_unicode, nearest, unknown_name

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
    "OrFile",
    "Raw",
    "Record",
    "RecordForm",
    "Schema",
    "as_given",
    "as_lists",
    "closest",
    "describe_value",
    "flag",
    "has_scheme",
    "is_unicode",
    "key",
    "names_secret",
    "nearest",
    "number",
    "record",
    "register",
    "scalar",
    "shown",
    "text",
    "unknown_name",
    "whole",
]
