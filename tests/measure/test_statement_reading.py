"""Rules of reading in the statement: said where they are declared, and free for what they promise."""

import matrixdp as mdp
from matrixdp.measure.statement import clauses


def test_a_statement_says_how_numbers_beyond_the_ends_count() -> None:
    def released(clip: bool) -> mdp.Release:
        domain = mdp.Domain(
            {"age": {"min": 0, "max": 9, "clip": clip}, "pay": {"amount": [0, 50], "step": 5}}
        )
        workload = mdp.Workload(domain, mdp.marginals([["age"]]))
        return mdp.select(workload).measure({"age": [1], "pay": [5]}, mdp.Budget(rho=1)).reconstruct()

    plain, clipped = released(False).statement, released(True).statement
    assert "Numbers beyond the ends, and other values, of age, pay are read by public rules." in clipped.text
    assert "of pay are read by public rules" in plain.text
    [said] = [one for one in clauses(clipped)["covered"] if one.id == "out-of-domain"]
    assert "age: Numbers below 0 count as 0, above 9 as 9." in said
    [before] = [one for one in clauses(plain)["covered"] if one.id == "out-of-domain"]
    assert "age:" not in before
    assert said.meaning == before.meaning  # statements of earlier versions verify
