"""The shape of a specification file: which keys it has and what kind of value stands under each.

The models check shape alone and feed the JSON Schema. What a value must be beyond its kind is checked by the
domain, the builders of `matrixdp.queries` and the budget, which serve Python users too.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    Discriminator,
    Field,
    PlainValidator,
    Tag,
    WithJsonSchema,
)
from pydantic_core import PydanticCustomError

from matrixdp.domain.suggestions import nearest
from matrixdp.specification import schemas

__all__ = [
    "DEFAULT_MAX_RECORDS",
    "ENTRY_KINDS",
    "MODELS",
    "AnyModel",
    "CellsModel",
    "DenseModel",
    "KwayModel",
    "MarginalsModel",
    "PairwiseModel",
    "ProductModel",
    "SpecificationModel",
    "entry_kind",
]

DEFAULT_MAX_RECORDS = 2**33
"""The number of records that a table may have, where a specification does not say."""

ENTRY_KINDS = ("marginals", "kway", "product", "pairwise", "dense", "any", "cells")
"""The keys that tell what kind of entry a workload entry is."""

_ATTRIBUTE_KEYS = ("min", "max", "bins", "edges", "closed")


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)


def _scalar(value: object) -> object:
    if isinstance(value, str | bool | int | float):
        return value
    raise PydanticCustomError("scalar", "expected")


Scalar = Annotated[Any, PlainValidator(_scalar), WithJsonSchema(schemas.SCALAR)]
"""One value as YAML has it."""


class IntegersModel(_Strict):
    """Consecutive integers, both ends included."""

    min: int
    max: int


class EqualBinsModel(_Strict):
    """Equal half-open bins, the last one closed."""

    min: float
    max: float
    bins: int = Field(ge=1)


class EdgesModel(_Strict):
    """Half-open bins between edges."""

    edges: list[float] = Field(min_length=2)
    closed: bool = False


def _attribute_form(written: object) -> str | None:
    if isinstance(written, Mapping):
        keys = {key if key in _ATTRIBUTE_KEYS else _meant(str(key)) for key in written}
        if "edges" in keys:
            return "form:edges"
        if "bins" in keys:
            return "form:bins"
        return "form:integers" if keys & {"min", "max"} else None
    if isinstance(written, int | float) and not isinstance(written, bool):
        return "form:size"
    return "form:categories" if isinstance(written, list) else None


def _meant(key: str) -> str:
    return next(iter(nearest(key, _ATTRIBUTE_KEYS)), key)


AttributeForm = Annotated[
    Annotated[list[Scalar], Field(min_length=1), Tag("form:categories")]
    | Annotated[int, Field(ge=1), Tag("form:size")]
    | Annotated[IntegersModel, Tag("form:integers")]
    | Annotated[EqualBinsModel, Tag("form:bins")]
    | Annotated[EdgesModel, Tag("form:edges")],
    Discriminator(_attribute_form, custom_error_type="attribute_form", custom_error_message="expected"),
]


class _Options(_Strict):
    weight: Annotated[Any, WithJsonSchema(schemas.POSITIVE)] = 1.0
    weights: Annotated[Any, WithJsonSchema(schemas.ARRAY)] = None
    name: Annotated[Any, WithJsonSchema(schemas.TEXT)] = None


class MarginalsModel(_Options):
    """Every cell of combinations of attributes."""

    marginals: Annotated[Any, WithJsonSchema(schemas.WHICH)]
    attributes: Annotated[Any, WithJsonSchema(schemas.NAMES)] = None
    max_cells: Annotated[Any, WithJsonSchema(schemas.COUNT)] = None


class KwayModel(_Options):
    """Products of predicate sets on every so many attributes."""

    kway: Annotated[Any, WithJsonSchema(schemas.NUMBERS)]
    predicates: Annotated[Any, WithJsonSchema(schemas.PREDICATES_BY_KIND)] = "identity"
    attributes: Annotated[Any, WithJsonSchema(schemas.NAMES)] = None
    max_cells: Annotated[Any, WithJsonSchema(schemas.COUNT)] = None


class ProductModel(_Options):
    """One product of predicate sets; attributes that are not named are totals."""

    product: Annotated[Any, WithJsonSchema(schemas.PRODUCT)]


class PairwiseModel(_Options):
    """A comparison of every two numeric attributes."""

    pairwise: Annotated[Any, WithJsonSchema(schemas.PAIRWISE)]
    attributes: Annotated[Any, WithJsonSchema(schemas.NAMES)] = None


class DenseModel(_Options):
    """A matrix over the cells of a few attributes, row-major."""

    dense: Annotated[Any, WithJsonSchema(schemas.ARRAY)]
    attributes: Annotated[Any, WithJsonSchema(schemas.NAMES)]
    by: Annotated[Any, WithJsonSchema(schemas.PRODUCT)] = None


class AnyModel(_Options):
    """Every combination of one predicate of each set, joined by OR."""

    any: Annotated[Any, WithJsonSchema(schemas.PRODUCT)]
    by: Annotated[Any, WithJsonSchema(schemas.PRODUCT)] = None


class CellsModel(_Options):
    """Predicates over merged attributes, each a union of boxes of cells."""

    cells: Annotated[Any, WithJsonSchema(schemas.CELLS)]
    by: Annotated[Any, WithJsonSchema(schemas.PRODUCT)] = None


def entry_kind(written: object) -> str | None:
    """Return the first key of a workload entry that tells its kind, or None.

    Parameters
    ----------
    written : object
        What stands in the file.

    Examples
    --------
    >>> entry_kind({"weight": 2, "kway": 3}), entry_kind({"kwya": 3})
    ('kway', None)
    """
    if not isinstance(written, Mapping):
        return None
    return next((key for key in written if key in ENTRY_KINDS), None)


def _entry_tag(written: object) -> str | None:
    kind = entry_kind(written)
    return None if kind is None else f"entry:{kind}"


EntryForm = Annotated[
    Annotated[MarginalsModel, Tag("entry:marginals")]
    | Annotated[KwayModel, Tag("entry:kway")]
    | Annotated[ProductModel, Tag("entry:product")]
    | Annotated[PairwiseModel, Tag("entry:pairwise")]
    | Annotated[DenseModel, Tag("entry:dense")]
    | Annotated[AnyModel, Tag("entry:any")]
    | Annotated[CellsModel, Tag("entry:cells")],
    Discriminator(_entry_tag, custom_error_type="entry_form", custom_error_message="expected"),
]


class PrivacyModel(_Strict):
    """The budget: one of rho, mu, or epsilon with delta; or, with targets, which of them is made least."""

    least: Literal["rho", "mu", "epsilon"] | None = None
    rho: float | None = None
    mu: float | None = None
    epsilon: float | None = None
    delta: float | None = None
    neighbours: Literal["add_remove", "replace"] = "add_remove"


class OtherModel(_Strict):
    """The value in whose place values out of domain are counted."""

    other: Scalar


def _rule_tag(written: object) -> str | None:
    if isinstance(written, Mapping):
        return "rule:other"
    return "rule:drop" if written == "drop" else None


def _rules_tag(written: object) -> str | None:
    if isinstance(written, Mapping):
        return "rule:attributes"
    return "rule:drop" if written == "drop" else None


Rule = Annotated[
    Annotated[Literal["drop"], Tag("rule:drop")] | Annotated[OtherModel, Tag("rule:other")],
    Discriminator(_rule_tag, custom_error_type="rule_form", custom_error_message="expected"),
]

Rules = Annotated[
    Annotated[Literal["drop"], Tag("rule:drop")] | Annotated[dict[str, Rule], Tag("rule:attributes")],
    Discriminator(_rules_tag, custom_error_type="rules_form", custom_error_message="expected"),
]


class SpecificationModel(_Strict):
    """A whole specification file."""

    data: str | None = Field(None, min_length=1, description="CSV, Parquet (a glob too) or a DuckDB database")
    table: str | None = Field(None, min_length=1, description="the table of a DuckDB database")
    domain: dict[str, AttributeForm] = Field(min_length=1, description="the attributes, in order")
    workload: list[EntryForm] = Field(min_length=1, description="what is asked")
    privacy: PrivacyModel | None = Field(None, description="what may be spent")
    targets: dict[str, float] | None = Field(None, description="the largest standard error of query groups")
    out_of_domain: Rules = Field("drop", description="what happens to values that are out of domain")
    max_records: int = Field(DEFAULT_MAX_RECORDS, ge=1, description="a public bound on the number of records")


MODELS: Mapping[str, type[BaseModel]] = {
    "form:integers": IntegersModel,
    "form:bins": EqualBinsModel,
    "form:edges": EdgesModel,
    "entry:marginals": MarginalsModel,
    "entry:kway": KwayModel,
    "entry:product": ProductModel,
    "entry:pairwise": PairwiseModel,
    "entry:dense": DenseModel,
    "entry:any": AnyModel,
    "entry:cells": CellsModel,
    "rule:other": OtherModel,
}
"""The models behind the tags that pydantic puts into the places of errors."""
