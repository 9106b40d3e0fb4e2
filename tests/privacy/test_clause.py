import copy
import pickle

import pytest

from matrixdp.errors import PrivacyError
from matrixdp.privacy import Clause


def test_a_clause_is_its_sentence():
    clause = Clause("randomness", "The generator is sound.", {"bits": 3})
    assert clause == "The generator is sound."
    assert clause.as_dict() == {"id": "randomness", "parameters": {"bits": 3}, "text": str(clause)}
    assert clause.meaning == Clause("randomness", "In other words.", {"bits": 3}).meaning
    assert clause.meaning != Clause("randomness", str(clause), {"bits": 4}).meaning
    assert Clause.of("One.").meaning != Clause.of("Another.").meaning
    assert Clause.of(clause) is clause
    for same in (copy.deepcopy(clause), pickle.loads(pickle.dumps(clause))):  # noqa: S301
        assert (same, same.meaning) == (clause, clause.meaning)


@pytest.mark.parametrize("name", ["", "Randomness", "two words", "a--b", "-a", "a-", "a\n", 3, None])
def test_identifiers_of_another_form(name):
    with pytest.raises(PrivacyError, match="small letters"):
        Clause(name, "A sentence.")
