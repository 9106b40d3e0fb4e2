"""Complements and repeated totals, against their rows."""

import pytest

from matrixdp.domain import Domain
from matrixdp.queries import Identity, Predicates, Prefix, Sets, Stacked, Total
from matrixdp.queries.structured import Complement, Totals
from matrixdp.testing import check_predicates

AGE = Domain({"age": {"min": 0, "max": 4}})["age"]


@pytest.mark.parametrize(
    "predicates",
    [
        Totals(3),
        Complement(Prefix()),
        Complement(Identity()),
        Complement(Total()),
        Complement(Sets(((0, 2), (), (1,)))),
        Complement(Stacked((Identity(), Prefix(), Total()))),
    ],
)
def test_complements_do_what_predicate_sets_must(predicates: Predicates) -> None:
    check_predicates(predicates, 5)


def test_complements_say_what_they_leave_out() -> None:
    assert Complement(Sets(((1,), (0, 2)))).describe(AGE) == ["not 1", "not 0 | 2"]
    assert Totals(2).describe(AGE) == ["all", "all"]
    assert Complement(Prefix()).key(5) != Complement(Identity()).key(5)
