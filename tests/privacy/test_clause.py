import copy
import pickle

import pytest

from matrixdp.errors import PrivacyError
from matrixdp.privacy import Clause


def test_a_clause_is_its_sentence():
    clause = Clause("randomness", "The generator is sound.")
    assert clause == "The generator is sound."
    assert (clause.id, clause.as_dict()) == ("randomness", {"id": "randomness", "text": str(clause)})
    assert Clause.of(clause) is clause
    for same in (copy.deepcopy(clause), pickle.loads(pickle.dumps(clause))):  # noqa: S301
        assert (same, same.id) == (clause, "randomness")


@pytest.mark.parametrize("name", ["", "Randomness", "two words", "a--b", "-a", "a-", "a\n", 3, None])
def test_identifiers_of_another_form(name):
    with pytest.raises(PrivacyError, match="small letters"):
        Clause(name, "A sentence.")
