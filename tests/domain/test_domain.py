import pytest

from matrixdp.domain import Coded, Domain, OutOfDomain

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
    assert DOMAIN.sort(["code", "sex"]) == ("sex", "code")
    assert DOMAIN.sort([]) == ()


def test_cells_are_exact():
    assert Domain([Coded(f"a{i}", 1000) for i in range(10)]).cells() == 10**30
    assert Domain({"a": ["x"]}).cells() == 1


def test_a_domain_is_a_value():
    again = Domain.from_spec(DOMAIN.to_spec())
    assert again == DOMAIN
    assert hash(again) == hash(DOMAIN)
    assert Domain(DOMAIN.attributes) == DOMAIN
    assert Domain(reversed(DOMAIN.attributes)) != DOMAIN
    with pytest.raises(AttributeError):
        DOMAIN.attributes = ()  # type: ignore[misc]


def test_out_of_domain_rules():
    assert OutOfDomain.drop() == OutOfDomain() == OutOfDomain.from_spec(DOMAIN, "drop")
    rule = OutOfDomain.from_spec(
        DOMAIN, {"sex": {"other": "male"}, "income": {"other": 0}, "age": "drop", "code": {"other": 39}}
    )
    assert [rule.code(name) for name in DOMAIN.names] == [1, None, 0, 39]
    assert OutOfDomain.from_spec(DOMAIN, rule.to_spec(DOMAIN)) == rule
    assert OutOfDomain().to_spec(DOMAIN) == "drop"
    hash(rule)


COUNTED = Domain({"count": 3, "age": 5})


@pytest.mark.parametrize(
    ("domain", "spec", "counts", "codes"),
    [
        (DOMAIN, {"count": True}, (None,), {}),
        (DOMAIN, {"count": False, "age": "drop"}, (), {}),
        (DOMAIN, {"sex": {"count": True}, "age": {"count": True}}, ("age", "sex"), {}),
        (
            DOMAIN,
            {"sex": {"other": "male"}, "count": True, "age": {"count": True}},
            (None, "age"),
            {"sex": 1},
        ),
        (COUNTED, {"count": True}, (None,), {}),
        (COUNTED, {"count": {"count": True}}, ("count",), {}),
        (COUNTED, {"count": {"other": 2}, "age": {"count": True}}, ("age",), {"count": 2}),
    ],
)
def test_counts_of_what_is_out_of_domain(domain, spec, counts, codes):
    rule = OutOfDomain.from_spec(domain, spec)
    rule.check(domain)
    assert rule.counts == counts
    assert [rule.code(name) for name in domain.names] == [codes.get(name) for name in domain.names]
    assert OutOfDomain.from_spec(domain, rule.to_spec(domain)) == rule
    assert OutOfDomain(counts=counts[::-1]).counts == counts
