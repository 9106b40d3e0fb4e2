"""Another front end on the language: it makes entries, and errors point at its own text."""

import re
from dataclasses import replace
from typing import Any

import pytest

import matrixdp as mdp
from matrixdp.errors import EntryError, MatrixDPError, SpecificationError
from matrixdp.language import ProductEntry, read_entry

DOMAIN = mdp.Domain({"sex": ["female", "male"], "age": range(115), "code": 40})


def asked(text: str) -> mdp.Workload:
    """Return the workload of a question such as ``sex age:3-7``; errors tell the column of the word."""
    words = {found[1]: found for found in re.finditer(r"(\w+)(?::(\d+)-(\d+))?", text)}
    sets: dict[str, object] = {name: "identity" for name, word in words.items() if word[2] is None}
    ranges = {name: [[int(word[2]), int(word[3])]] for name, word in words.items() if name not in sets}
    entry = read_entry({"product": sets | {name: {"ranges": own} for name, own in ranges.items()}})
    try:
        return mdp.Workload(DOMAIN, entry)
    except MatrixDPError as error:
        _workload, _place, _product, name, *inside = error.path
        column = words[str(name)].start(2 if inside else 1) + 1
        problem: Any = error.problem
        told = replace(problem, path=("question",), position=f"column {column}")
        raise SpecificationError(told) from None


def test_questions_become_entries() -> None:
    [group] = asked("sex age code:3-7")
    assert (group.name, group.queries) == ("sex, age, code: identity x identity x ranges", 230)


@pytest.mark.parametrize(
    ("text", "message", "at"),
    [
        ("sex aeg", "found 'aeg'; expected an attribute of the domain; did you mean 'age'?", "aeg"),
        ("sex age:20-130", "found [20, 130]; expected two integers", "20-"),
    ],
)
def test_errors_point_at_the_text_of_the_question(text: str, message: str, at: str) -> None:
    with pytest.raises(SpecificationError) as caught:
        asked(text)
    assert str(caught.value).startswith(f"question (column {text.index(at) + 1}): {message}")


def test_entries_are_made_of_typed_values_too() -> None:
    first = read_entry({"product": {"sex": "identity", "age": {"ranges": [[0, 17]]}}, "weight": 2})
    assert isinstance(first, ProductEntry)
    second = ProductEntry(predicates=first.predicates, weight=2.0)
    assert second.to_spec() == first.to_spec()
    with pytest.raises(EntryError, match=r"^weight: found -1\.0; expected a finite number above 0"):
        ProductEntry(predicates=first.predicates, weight=-1.0)
    with pytest.raises(EntryError, match=r"^product: found nothing; expected a value: `product` is required"):
        ProductEntry()  # type: ignore[call-arg]
    with pytest.raises(AttributeError):
        second.weight = 3.0  # type: ignore[misc]
