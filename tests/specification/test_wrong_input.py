"""Wrong specifications get one error that names the place, what was found and what would be right."""

import pytest

from matrixdp.errors import SpecificationError
from matrixdp.specification import load_specification

DOMAIN = """domain:
  sex: [female, male]
  age: {min: 0, max: 9}
  income: {edges: [0, 10, 20]}
"""
WORKLOAD = "workload:\n  - marginals: [1]\n"
PRIVACY = "privacy: {rho: 0.5}\n"


def _entry(text):
    return DOMAIN + "workload:\n  - " + text.replace("\n", "\n    ") + "\n" + PRIVACY


WRONG = {
    "unknown attribute": (_entry("product: {sexx: identity}"), "workload[0].product.sexx", "'sexx'", "'sex'"),
    "overlapping bins": (
        DOMAIN.replace("10, 20", "10, 5") + WORKLOAD + PRIVACY,
        "domain.income.edges[2]", "5", "overlap",
    ),
    "a category twice": (
        DOMAIN.replace("female, male", "female, female") + WORKLOAD + PRIVACY,
        "domain.sex[1]", "'female' a second time", "once",
    ),
    "a range outside": (
        _entry("product: {age: {ranges: [[0, 12]]}}"),
        "workload[0].product.age.ranges[0]", "[0, 12]", "0 to 9",
    ),
    "a range off the edges": (
        _entry("product: {income: {ranges: [[0, 15]]}}"),
        "workload[0].product.income.ranges[0]", "[0, 15]", "edges",
    ),
    "a NaN weight": (_entry("product: {age: prefix}\nweight: .nan"), "workload[0].weight", "nan", "above 0"),
    "a negative weight": (
        _entry("product: {age: prefix}\nweight: -1"), "workload[0].weight", "-1", "above 0",
    ),
    "a zero weight": (_entry("product: {age: prefix}\nweight: 0"), "workload[0].weight", "0", "above 0"),
    "a misspelled set": (_entry("product: {age: prefx}"), "workload[0].product.age", "'prefx'", "'prefix'"),
    "a misspelled kind": (_entry("margnals: [1]"), "workload[0]", "margnals", "'marginals'"),
    "a key of the file in the budget": (
        DOMAIN + WORKLOAD + "privacy: {rho: 1, unit: {records: 2}}",
        "privacy.unit", "unit", "beside `privacy`",
    ),
    "a value for others that is not listed": (
        DOMAIN + WORKLOAD + PRIVACY + "out_of_domain: {sex: {other: other}}\n",
        "out_of_domain.sex.other", "'other'", "must list",
    ),
    "an attribute in by and where": (
        _entry("mean: age\nby: [sex]\nwhere: {sex: male}"), "workload[0].by", "'sex'", "sets: [[value]",
    ),
    "too many ways": (_entry("kway: 7"), "workload[0].kway", "7", "at most 3"),
    "a matrix that is not there": (
        _entry("dense: nothere.npy\nattributes: [age]"), "workload[0].dense", "no such file", ".npy",
    ),
    "weights that are not there": (
        _entry("product: {age: prefix}\nweights: nothere.npy"), "workload[0].weights", "no such file", ".npy",
    ),
    "a name that cannot be written": (
        _entry('product: {age: prefix}\nname: "a\\ud800"'), "workload[0].name", "'a\\ud800'", "not empty",
    ),
    "a category that cannot be written": (
        DOMAIN.replace("female,", '"\\udc8f",') + WORKLOAD + PRIVACY,
        "domain.sex[0]", "'\\udc8f'", "text, a finite number",
    ),
    "an attribute that cannot be written": (
        DOMAIN.replace("sex:", '"\\udfff":') + WORKLOAD + PRIVACY, "domain", "'\\udfff'", "string",
    ),
    "an empty workload": (DOMAIN + "workload: []\n" + PRIVACY, "workload", "empty", "at least 1"),
    "a key twice": (DOMAIN + "  age: 5\n" + WORKLOAD + PRIVACY, "domain.age", "a second time", "once"),
    "an unknown key": (DOMAIN + WORKLOAD + PRIVACY + "privcy: 3\n", "privcy", "unknown key", "'privacy'"),
    "delta above 1": (
        DOMAIN + WORKLOAD + "privacy: {epsilon: 1, delta: 1.5}\n", "privacy.delta", "1.5", "below 1",
    ),
    "no budget": (DOMAIN + WORKLOAD, "privacy", "", "rho"),
    "not YAML": ("domain: [1,\n", "line 2", "not YAML", "YAML document"),
}  # fmt: skip


@pytest.mark.parametrize(("text", "place", "found", "expected"), WRONG.values(), ids=WRONG)
def test_wrong_specifications(text, place, found, expected):
    with pytest.raises(SpecificationError) as caught:
        load_specification(text, require_privacy=True)
    assert caught.value.problem.place.startswith(place)
    assert found in caught.value.problem.found
    assert expected in str(caught.value).partition("; expected ")[2]
    assert str(caught.value).count("\n") == 0


@pytest.mark.parametrize("value", ["0", "-1", ".nan", ".inf", "true", "'1'"])
@pytest.mark.parametrize("name", ["rho", "mu", "epsilon"])
def test_wrong_budgets(name, value):
    delta = ", delta: 1e-6" if name == "epsilon" else ""
    with pytest.raises(SpecificationError) as caught:
        load_specification(DOMAIN + WORKLOAD + f"privacy: {{{name}: {value}{delta}}}\n")
    assert caught.value.problem.place.startswith(f"privacy.{name}")


def test_the_core_schema():
    text = DOMAIN.replace("female, male", "yes, no") + WORKLOAD + "privacy: {epsilon: 1, delta: 1e-6}\n"
    specification = load_specification(text)
    assert specification.domain["sex"].label(0) == "yes"
    assert specification.budget is not None
    assert float(specification.budget.delta) == 1e-6
    assert specification.workload.queries == 2 + 10 + 2
