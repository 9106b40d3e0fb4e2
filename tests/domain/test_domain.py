import pytest

from matrixdp.domain import Coded, Domain, OutOfDomain

DOMAIN = Domain({"sex": ["female", "male"], "age": range(115), "income": {"edges": [0, 1e4]}, "code": 40})
COUNTED = Domain({"count": 3, "age": 5})


def test_a_domain_in_numbers():
    assert (DOMAIN.names, DOMAIN.shape) == (("sex", "age", "income", "code"), (2, 115, 1, 40))
    assert (len(DOMAIN), [attribute.name for attribute in DOMAIN]) == (4, list(DOMAIN.names))
    assert (DOMAIN.cells(), DOMAIN.cells(["code", "sex"]), DOMAIN.cells(())) == (2 * 115 * 40, 80, 1)
    assert Domain([Coded(f"a{i}", 1000) for i in range(10)]).cells() == 10**30
    assert (DOMAIN.index("income"), "age" in DOMAIN, "aeg" in DOMAIN) == (2, True, False)
    assert (DOMAIN.sort(["code", "sex"]), DOMAIN.sort([])) == (("sex", "code"), ())


def test_a_domain_is_a_value():
    again = Domain.from_spec(DOMAIN.to_spec())
    assert (again, hash(again)) == (DOMAIN, hash(DOMAIN))
    assert Domain(DOMAIN.attributes) == DOMAIN != Domain(reversed(DOMAIN.attributes))
    with pytest.raises(AttributeError):
        DOMAIN.attributes = ()  # type: ignore[misc]


SEVERAL = {"sex": {"other": "male"}, "income": {"other": 0}, "age": "drop", "code": {"other": 39}}
CODES = {"sex": 1, "income": 0, "code": 39}


@pytest.mark.parametrize(
    ("domain", "spec", "counts", "codes"),
    [
        (DOMAIN, "drop", (), {}),
        (DOMAIN, SEVERAL, (), CODES),
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
def test_rules_of_what_is_out_of_domain(domain, spec, counts, codes):
    rule = OutOfDomain.from_spec(domain, spec)
    rule.check(domain)
    assert rule.counts == counts
    assert [rule.code(name) for name in domain.names] == [codes.get(name) for name in domain.names]
    again = OutOfDomain.from_spec(domain, rule.to_spec(domain))
    assert (again, hash(again)) == (rule, hash(OutOfDomain(codes, counts[::-1])))
    assert (rule.to_spec(domain) == "drop") == (rule == OutOfDomain.drop() == OutOfDomain())
