from typing import cast

import pytest

from matrixdp.domain import Categorical, Coded, Domain, OutOfDomain
from matrixdp.errors import DomainError

DOMAIN = Domain({"sex": ["female", "male"], "age": range(115), "income": {"edges": [0, 1e4]}, "code": 40})


def test_a_domain_in_numbers():
    assert DOMAIN.names == ("sex", "age", "income", "code")
    assert DOMAIN.shape == (2, 115, 1, 40)
    assert len(DOMAIN) == 4
    assert [attribute.name for attribute in DOMAIN] == list(DOMAIN.names)
    assert DOMAIN.cells() == 2 * 115 * 40
    assert DOMAIN.cells(["code", "sex"]) == 80
    assert DOMAIN.cells(()) == 1
    assert DOMAIN.index("income") == 2
    assert "age" in DOMAIN
    assert "aeg" not in DOMAIN


def test_cells_are_exact():
    assert Domain([Coded(f"a{i}", 1000) for i in range(10)]).cells() == 10**30


def test_a_domain_is_a_value():
    again = Domain.from_spec(DOMAIN.to_spec())
    assert again == DOMAIN
    assert hash(again) == hash(DOMAIN)
    assert Domain(DOMAIN.attributes) == DOMAIN
    assert Domain(reversed(DOMAIN.attributes)) != DOMAIN
    with pytest.raises(AttributeError):
        DOMAIN.attributes = ()  # type: ignore[misc]


def test_sort_goes_by_the_domain():
    assert DOMAIN.sort(["code", "sex"]) == ("sex", "code")
    assert DOMAIN.sort([]) == ()


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda: DOMAIN["aeg"], "found 'aeg'; expected an attribute of the domain; did you mean 'age'"),
        (lambda: DOMAIN["AGE"], "did you mean 'age'"),
        (lambda: DOMAIN["zzz"], "there are 'sex', 'age'"),
        (lambda: DOMAIN.index(3), "found '3'; expected an attribute"),  # type: ignore[arg-type]
        (lambda: DOMAIN.sort(["age", "age"]), "'age' a second time"),
        (lambda: DOMAIN.sort("age"), "list of names"),
        (lambda: DOMAIN.cells(["nope"]), "found 'nope'"),
        (lambda: Domain({}), "at least one"),
        (lambda: Domain([Coded("a", 1), Coded("a", 2)]), "'a' a second time"),
        (lambda: Domain(["sex"]), "found 'sex'; expected an attribute"),  # type: ignore[list-item]
        (lambda: Domain({"": 3}), "non-empty"),
        (lambda: Domain.from_spec([1]), "mapping"),
    ],
)
def test_what_a_domain_refuses(act, message):
    with pytest.raises(DomainError, match=message):
        act()


def test_out_of_domain_rules():
    assert OutOfDomain.drop() == OutOfDomain() == OutOfDomain.from_spec(DOMAIN, "drop")
    rule = OutOfDomain.from_spec(
        DOMAIN, {"sex": {"other": "male"}, "income": {"other": 0}, "age": "drop", "code": {"other": 39}}
    )
    assert [rule.code(name) for name in DOMAIN.names] == [1, None, 0, 39]
    assert OutOfDomain.from_spec(DOMAIN, rule.to_spec(DOMAIN)) == rule
    assert OutOfDomain().to_spec(DOMAIN) == "drop"
    hash(rule)


@pytest.mark.parametrize(
    ("spec", "counts"),
    [
        ({"count": True}, (None,)),
        ({"count": False, "age": "drop"}, ()),
        ({"sex": {"count": True}, "age": {"count": True}}, ("age", "sex")),
        ({"sex": {"other": "male"}, "count": True, "age": {"count": True}}, (None, "age")),
    ],
)
def test_counts_of_what_is_out_of_domain(spec, counts):
    rule = OutOfDomain.from_spec(DOMAIN, spec)
    rule.check(DOMAIN)
    assert rule.counts == counts
    assert rule.code("sex") == (1 if "other" in str(spec) else None)
    assert OutOfDomain.from_spec(DOMAIN, rule.to_spec(DOMAIN)) == rule
    assert OutOfDomain(counts=counts[::-1]).counts == counts


def test_an_attribute_called_count():
    domain = Domain({"count": 3, "age": 5})
    for spec, counts, code in (
        ({"count": True}, (None,), None),
        ({"count": {"count": True}}, ("count",), None),
        ({"count": {"other": 2}, "age": {"count": True}}, ("age",), 2),
    ):
        rule = OutOfDomain.from_spec(domain, spec)
        rule.check(domain)
        assert (rule.counts, rule.code("count"), rule.to_spec(domain)) == (counts, code, spec)
    for both in (OutOfDomain({"count": 2}, [None]), OutOfDomain(counts=[None, "count"])):
        with pytest.raises(DomainError, match=r"out_of_domain\.count: found an attribute of that name"):
            both.check(domain)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("keep", "found 'keep'"),
        ({"aeg": "drop"}, "did you mean 'age'"),
        ({"sex": {"other": "femal"}}, "did you mean 'female'"),
        ({"age": {"other": 115}}, "0 to 114"),
        ({"income": {"other": 5}}, "lower edge of a bin of 'income'; near it"),
        ({"income": {"other": 1e4}}, "found 10000.0; expected the lower edge of a bin"),
        ({"sex": "keep"}, "found 'keep'"),
        ({"sex": {"others": "male"}}, "did you mean 'other'"),
        ({"sex": ["male"]}, "other: value"),
        ({"sex": {"other": "male", "count": True}}, "sex: found other and count; expected one of them"),
        ({"sex": {"count": False}}, "sex: found neither other nor count"),
        ({"sex": {}}, "sex: found neither other nor count"),
        ({"count": "yes"}, "^count: found 'yes'; expected true or false$"),
    ],
)
def test_wrong_out_of_domain_rules(spec, message):
    with pytest.raises(DomainError, match=message):
        OutOfDomain.from_spec(DOMAIN, spec)


@pytest.mark.parametrize("code", [-1, True, "male", None])
def test_wrong_codes(code):
    with pytest.raises(DomainError, match="expected a code, 0 or above"):
        OutOfDomain({"sex": code})


def test_rules_are_checked_against_a_domain():
    with pytest.raises(DomainError, match="codes 0 to 1"):
        OutOfDomain({"sex": 2}).check(DOMAIN)
    with pytest.raises(DomainError, match="expected an attribute of the domain"):
        OutOfDomain({"aeg": 2}).check(DOMAIN)
    with pytest.raises(DomainError, match="an attribute of the domain; did you mean 'age'"):
        OutOfDomain(counts=["aeg"]).check(DOMAIN)
    for codes, counts in (({"sex": 1}, ["sex"]), ({}, cast("list[str]", [3]))):
        with pytest.raises(DomainError, match="expected an attribute whose values out of domain are dropped"):
            OutOfDomain(codes, counts)


def test_a_domain_of_one_cell():
    assert Domain([Categorical("a", ("x",))]).cells() == 1
