"""What ``release.json`` holds, as models; the published JSON Schema is generated from them."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, AllowInfNan, BaseModel, Field, ValidationError
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema

from matrixdp.errors import SpecificationError
from matrixdp.releases.record import ANSWERS_PART, RELEASE_VERSION

_EXACT = "An exact rational number of at least 0: numerator/denominator."
Exact = Annotated[str, Field(pattern="^[0-9]+(/[1-9][0-9]*)?$", description=_EXACT)]
Sha256 = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
_NOISE = "gaussian, laplace, or the name of a registered noise."
Noise = Annotated[str, Field(min_length=1, description=_NOISE)]
_UTC = "^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\\+00:00$"
Time = Annotated[str, Field(pattern=_UTC, description="UTC, ISO 8601.")]
Neighbours = Annotated[
    Literal["add_remove", "replace"],
    Field(description="One record (or all records of one person) more or less; or one replaced by another."),
]
Count = Annotated[int, Field(ge=0)]
Positive = Annotated[int, Field(ge=1)]
NonNegative = Annotated[float, Field(ge=0)]
#: The default of keys that may be left out; they are never null.
LEFT_OUT: Any = None

#: The parameters that state each definition of differential privacy.
_DEFINITIONS = {
    "pure DP": ["epsilon"],
    "Gaussian DP": ["mu"],
    "zero-concentrated DP": ["rho"],
    "approximate DP": ["epsilon", "delta"],
}


def _one_of(*names: str) -> dict[str, Any]:
    return {"oneOf": [{"required": [name]} for name in names]}


_ONE_BUDGET = {**_one_of("rho", "mu", "epsilon"), "dependentRequired": {"delta": ["epsilon"]}}
_ONE_SENSITIVITY = _one_of("sensitivity", "squared_sensitivity")


def _states(definition: str, names: list[str]) -> dict[str, Any]:
    only = {"required": names, "minProperties": len(names), "maxProperties": len(names)}
    return {
        "if": {"properties": {"definition": {"const": definition}}},
        "then": {"properties": {"parameters": only, "exact": only}},
    }


class Model(BaseModel, extra="forbid"):
    """An object without further keys."""


class Unit(Model):
    """Who is protected."""

    id: str = Field(LEFT_OUT, description="The column that names the person.")
    records: Positive = Field(description="How many records of a person count at most.")
    per: list[str] = Field(LEFT_OUT, description="The attributes in whose values records are bounded.")
    max_values: Positive = Field(LEFT_OUT, description="In how many values of per a person counts at most.")
    max_records_each: Positive = Field(LEFT_OUT, description="How many records count in each at most.")
    constant: list[str] = Field(LEFT_OUT, description="The attributes that a person's records agree in.")


class File(Model):
    """The size and the digest of a file."""

    bytes: Count
    sha256: Sha256
    header: Sha256 = Field(LEFT_OUT, description="Of a large measurement: that of its header.json.")


class Parameters(Model, json_schema_extra={"minProperties": 1}):
    """Parameters of a definition of differential privacy."""

    rho: NonNegative = LEFT_OUT
    mu: NonNegative = LEFT_OUT
    epsilon: NonNegative = LEFT_OUT
    delta: NonNegative = LEFT_OUT


class ExactParameters(Model, json_schema_extra={"minProperties": 1}):
    """The same parameters, exact."""

    rho: Exact = LEFT_OUT
    mu: Exact = LEFT_OUT
    epsilon: Exact = LEFT_OUT
    delta: Exact = LEFT_OUT


class ExactBudget(ExactParameters, json_schema_extra=_ONE_BUDGET):
    """The budget, exact."""


class Budget(Parameters, json_schema_extra=_ONE_BUDGET):
    """What might have been spent: rho, mu, or epsilon with delta or without."""

    neighbours: Neighbours
    unit: Unit
    exact: ExactBudget = LEFT_OUT


class StatedBudget(Budget):
    """What might have been spent: rho, mu, or epsilon with delta or without."""

    exact: ExactBudget


class Clause(Model):
    """A sentence of the privacy statement."""

    id: str = Field(
        pattern="^[a-z][a-z0-9]*(-[a-z0-9]+)*$",
        description="Stays when the words change; other for a sentence that came without one.",
    )
    parameters: dict[str, str | int | bool | list[str] | dict[str, Any] | None] = Field(
        description="What the sentence says of this release; it stays when the words change."
    )
    text: str = Field(min_length=1)


Clauses = Annotated[list[Clause], Field(min_length=1)]
Sums = Annotated[dict[str, Exact | None], Field(min_length=1)]


class Ledger(Model):
    """The ledger that was debited."""

    dataset: str
    entry: str = Field(pattern="^[0-9a-f]{32}$")
    total: dict[str, Any] = Field(description="What all releases of the ledger together may spend, exact.")
    spent_before: Sums
    spent_after: Sums
    digest: Sha256


Debit = Annotated[Ledger | None, Field(description="Null where no ledger was debited.")]


class Guarantee(Model, json_schema_extra={"allOf": [_states(*row) for row in _DEFINITIONS.items()]}):
    """A definition of differential privacy that the release satisfies, with upper bounds of parameters."""

    definition: Literal["pure DP", "Gaussian DP", "zero-concentrated DP", "approximate DP"]
    parameters: Parameters = Field(description="Rounded up.")
    exact: ExactParameters


class Mechanism(Model):
    """The mechanism that the statement is about."""

    name: Literal["matrix mechanism"]
    sensitivity_norm: Literal[1, 2]
    parts: Positive
    rounding: str


class MeasurementFile(Model):
    """What all of this is about."""

    file: Literal["measurement.mdp"]
    sha256: Sha256


class Statement(Model):
    """The privacy statement."""

    private: bool
    text: str = Field(min_length=1, description="The promise in words.")
    guarantees: list[Guarantee] = Field(min_length=3)
    neighbours: Neighbours
    unit: Unit
    noise: Noise
    cost: Exact = Field(
        description=(
            "The cost of one record: the sum over parts of (sensitivity / scale)^p, p being the norm of the "
            "mechanism."
        )
    )
    budget: StatedBudget
    ledger: Debit
    covered: Clauses
    assumed: Clauses
    not_covered: Clauses
    mechanism: Mechanism
    out_of_domain: str | dict[str, Any] = Field(
        description="What happens to values out of domain, as a specification writes it."
    )
    max_records: Positive = Field(description="A public bound on the number of records.")
    time: Time = Field(description="When the cost was authorized.")
    measurement: MeasurementFile
    versions: dict[str, str] = Field(json_schema_extra={"required": ["python", "matrixdp"]})


class Authorization(Model):
    """What was authorized before any data were read."""

    noise: Noise
    cost: Exact
    budget: Budget
    time: Time
    ledger: Debit
    note: str


class Bounds(Model):
    """The columns of the bounds of an attribute."""

    from_: str = Field(alias="from")
    to: str
    half_open: bool


class Answers(Model):
    """The table of answers."""

    rows: Positive
    columns: list[str] = Field(min_length=5)
    levels_of: str = Field(
        LEFT_OUT,
        description="Where answers are in files for each level: the attribute whose levels these are.",
    )
    attributes: dict[str, str] = Field(description="The column of each attribute that is asked about.")
    bounds: dict[str, Bounds] = Field(
        description=(
            "The columns of where the values of an attribute of numbers or days begin and end; where half "
            "open, the end is the first number that does not belong to them."
        )
    )
    totals: str


class NoAnswers(Model):
    """Only the measurement was written."""

    rows: Literal[0]
    limit: Count = Field(description="The most answers that are written.")
    note: str


class Group(Model, json_schema_extra=_one_of("first_row", "level")):
    """A query group, and where its answers are."""

    name: str
    attributes: list[str]
    queries: Positive
    first_row: Count = Field(LEFT_OUT, description="Where answers are in one file.")
    level: str = Field(
        LEFT_OUT,
        description="Where they are in files for each level: the level; other: other sets of areas.",
    )
    rmse: NonNegative
    max_stddev: NonNegative


class _Statistic(Model):
    name: str
    statistic: str
    first_row: Count


class Statistic(_Statistic):
    """A statistic, and where its rows are."""

    rows: Positive
    columns: list[str] = Field(min_length=3)
    intervals: str = Field(description="How their intervals are made.")


class NoStatistic(_Statistic):
    """A statistic that does not follow from the answers."""

    rows: Literal[0]
    note: str = Field(description="Why nothing follows.")


def _writable(text: str) -> str:
    text.encode()  # what has no form in UTF-8 could not be written
    return text


Text = Annotated[str, AfterValidator(_writable)]
Finite = Annotated[float, AllowInfNan(False)]


class Certificate(Model):
    """How close the strategy is to the lower bound."""

    loss: Finite = LEFT_OUT
    lower_bound: Finite | None = LEFT_OUT
    gap: Finite | None = LEFT_OUT
    scope: Text = LEFT_OUT
    figures: Text = LEFT_OUT


class Matrix(Model, json_schema_extra=_ONE_SENSITIVITY):
    """A measured matrix."""

    kind: Literal["identity", "centered identity", "integer", "walk", "tree"] = Field(
        description="A walk: rows that share their noise, prefix sums or nodes of trees; its theorem has the "
        "sensitivity. A tree: weighted sums over areas of several levels; what a record costs in all parts "
        "depends on its area."
    )
    shape: list[Positive] = Field(min_length=2, max_length=2)
    sensitivity: Exact = Field(LEFT_OUT, description="L1, for noise of norm 1.")
    squared_sensitivity: Exact = Field(LEFT_OUT, description="L2, for noise of norm 2.")


class Scale(Model):
    """numerator / 2^exponent: the standard deviation of Gaussian noise, the parameter b of Laplace noise."""

    numerator: Positive
    exponent: int
    text: Exact


_MULTIPLES = (
    "Where exact answers and noise are both on the multiples of this integer g: the noise k g has a "
    "probability in proportion to exp(-|k| g / scale). Left out where noise is continuous, and rounded."
)


class Part(Model, json_schema_extra=_ONE_SENSITIVITY):
    """Measured parts that differ in their attributes alone."""

    matrices: list[Count] = Field(description="Places in the list of matrices: the part is their product.")
    row_multipliers: bool = Field(
        description="Whether rows of the product are multiplied by integers of their own."
    )
    rows: Positive
    sensitivity: Exact = LEFT_OUT
    squared_sensitivity: Exact = LEFT_OUT
    scale: Scale
    lattice_exponent: int = Field(description="Noisy answers are multiples of 2 to minus this.")
    multiples_of: Positive = Field(LEFT_OUT, description=_MULTIPLES)
    radius_width: Count = Field(
        LEFT_OUT,
        description="Of parts that share one radius of noise, which together cost what one does: the width, "
        "in parts of 1024 of the scale.",
    )
    noise_stddev: float = Field(gt=0, description="Of a walk the root mean square over its rows.")
    attributes: list[list[list[str]]] = Field(
        min_length=1, description="For each part of this row, the attributes of each of its matrices."
    )


class Origin(Model):
    """How a strategy was chosen: words and figures that nothing is computed from."""

    mechanism: Text = LEFT_OUT
    reason: Text = LEFT_OUT
    objective: Literal["sum", "max"] = LEFT_OUT
    certificate: Certificate = LEFT_OUT


def checked_origin(origin: object) -> dict[str, Any]:
    """Return the known fields of an origin, each of its type; others are left out.

    Raises
    ------
    SpecificationError
        If it is no mapping, or a field is of another type.

    Examples
    --------
    >>> checked_origin({"mechanism": "residual", "reason": "asked for", "seconds": 3})
    {'mechanism': 'residual', 'reason': 'asked for'}
    """
    try:
        read = Origin.model_validate(origin, strict=True, extra="ignore")
    except ValidationError as error:
        (first, *_) = error.errors(include_url=False)
        found, expected = f"a {type(first['input']).__name__}", first["msg"].removeprefix("Input should be ")
        raise SpecificationError.at(("origin", *first["loc"]), found, expected, code="wrong-type") from None
    return read.model_dump(exclude_unset=True)


class Request(Model):
    """What was asked for beside a measurement, as it is kept with it until the release is in its place."""

    confidence: float = Field(default=0.95, gt=0, lt=1)
    csv: bool = False
    max_answers: int
    origin: dict[str, Any] = Field(default_factory=dict)
    expect: Positive | None = None
    publication: dict[str, Any] = Field(default_factory=dict)


class Strategy(Origin):
    """What was measured. Parts that differ in their attributes alone are one row."""

    split: str
    noise: Noise
    matrices: list[Matrix]
    parts: list[Part] = Field(min_length=1)
    measured_rows: Positive


class Estimate(Model):
    """A number of records, with its standard error and interval."""

    estimate: float
    stddev: NonNegative
    lower: float
    upper: float


class OutOfDomainCount(Estimate):
    """How many records were out of domain."""

    attribute: str | None = Field(
        description="Records whose value of it was out of domain; null: all records that were dropped."
    )


class OutOfDomainCounts(Model):
    """Where it was asked for: how many records were out of domain, measured at no further cost."""

    scale: Scale
    multiples_of: Positive = Field(LEFT_OUT, description=_MULTIPLES)
    cost: Exact = Field(
        description="What they cost a record that is in all of them; never more than privacy.cost."
    )
    counts: list[OutOfDomainCount] = Field(min_length=1)


class Size(Model):
    """What the release itself says of the table as a whole: whether it looks as if the domain did not fit.

    Of a series, of the records of the periods that were measured last.
    """

    periods: list[str] = Field(
        LEFT_OUT,
        description="Of a series, the first and the last period that were measured last.",
        min_length=2,
        max_length=2,
    )
    total: Estimate | None = Field(
        description="The number of records in the domain; null where it does not follow from the measurement."
    )
    expect: Positive | None = Field(description="How many were expected: a public figure, given before.")
    agrees: bool | None = Field(description="Whether the total is as expected, up to its noise.")
    groups_within_noise: list[str] = Field(
        description="Groups of which no answer can be told from noise, among those that were looked at."
    )
    warnings: list[str]


def _with_parts(schema: dict[str, Any]) -> None:
    schema["patternProperties"] = {f"^{ANSWERS_PART.pattern}$": schema["properties"]["measurement.mdp"]}


class Files(Model, json_schema_extra=_with_parts):
    """Every other file of the release but the signature, those of answers at each level by their paths."""

    answers_csv: File = Field(LEFT_OUT, alias="answers.csv")
    answers: File = Field(LEFT_OUT, alias="answers.parquet")
    measurement: File = Field(alias="measurement.mdp")
    statistics: File = Field(LEFT_OUT, alias="statistics.parquet")
    new_answers: File = Field(LEFT_OUT, alias="new.csv")
    series: File = Field(LEFT_OUT, alias="series.mdp")
    series_record: File = Field(LEFT_OUT, alias="series.json")


_SEEDED = {
    "if": {"properties": {"private": {"const": True}}},
    "then": {"properties": {"warning": False, "privacy": {"properties": {"private": {"const": True}}}}},
    "else": {
        "required": ["warning"],
        "properties": {
            "privacy": {"properties": {"private": {"const": False}}},
            "authorization": {"properties": {"ledger": {"type": "null"}}},
        },
    },
}


class Series(Model):
    """Only of a series: its periods, and after which of them answers were published."""

    attribute: str
    periods: Positive
    published: list[str] = Field(min_length=1)
    ended: bool


class ReleaseRecord(Model, title="release.json of matrixdp", json_schema_extra=_SEEDED):
    """The record of a release.

    It holds the privacy statement, what was measured and with which exact noise, the groups of answers, and
    the digests of the files. Exact numbers are text; a number beside them is rounded so that it claims no
    more than was proved.
    """

    format: Literal["matrixdp release"]
    format_version: Literal[4]
    warning: str = Field(LEFT_OUT, pattern="^NOT PRIVATE", description="Only where the noise was seeded.")
    private: bool = Field(description="False if the noise was seeded: then nothing is protected.")
    privacy: Statement
    authorization: Authorization
    domain: dict[str, list[Any] | int | dict[str, Any]] = Field(
        min_length=1, description="The attributes, in order, as a specification writes them."
    )
    workload: list[dict[str, Any]] = Field(
        min_length=1, description="The workload, as a specification writes it; arrays by their shapes."
    )
    queries: Positive
    rmse: NonNegative = Field(description="The root mean square of the standard errors of all queries.")
    max_stddev: NonNegative
    confidence: float = Field(gt=0, lt=1, description="Of each interval, taken alone.")
    intervals: str
    answers: Answers | NoAnswers
    groups: list[Group] = Field(min_length=1)
    statistics: list[Statistic | NoStatistic] = Field(
        LEFT_OUT,
        min_length=1,
        description=(
            "Only where the workload asks for statistics of answers: where the rows of each are in "
            "statistics.parquet."
        ),
    )
    strategy: Strategy
    out_of_domain_counts: OutOfDomainCounts = LEFT_OUT
    series: Series = LEFT_OUT
    publication: dict[str, str | bool | int | list[Any] | dict[str, Any]] = Field(
        LEFT_OUT,
        min_length=1,
        description="Texts for readers of the release, as a specification writes them.",
    )
    size: Size
    files: Files


class _Generate(GenerateJsonSchema):
    # No titles made from names, and no defaults: they only say that a key may be left out.

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False

    def default_schema(self, schema: core_schema.WithDefaultSchema) -> JsonSchemaValue:
        return self.generate_inner(schema["schema"])


def release_schema() -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of ``release.json``, to which every release validates.

    Examples
    --------
    >>> release_schema()["properties"]["format"]["const"]
    'matrixdp release'
    """
    schema = ReleaseRecord.model_json_schema(schema_generator=_Generate)
    return {"$schema": _Generate.schema_dialect, "$id": f"urn:matrixdp:release:{RELEASE_VERSION}", **schema}
