import copy
import pickle

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
