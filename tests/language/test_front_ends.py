"""Another front end on the language: it makes entries, and errors point at its own text."""

import re
from collections.abc import Mapping
from dataclasses import replace

import pytest

from matrixdp.domain import Domain
from matrixdp.errors import EntryError, MatrixDPError, Path, SpecificationError
from matrixdp.language import Entry, ProductEntry, read_entry
from matrixdp.queries import Workload

DOMAIN = Domain({"sex": ["female", "male"], "age": range(115), "code": 40})


class Question:
    """``count by sex, age where code in 3 to 7 weight 2``, and where each part of it stands."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.columns: dict[Path, int] = {}
        written: dict[str, object] = {}
        product: dict[str, object] = {}
        by = re.match(r"count by (.*?)(?= where | weight |$)", text)
        assert by is not None
        for word in re.finditer(r"\w+", by[1]):
            self.columns["product", word[0]] = by.start(1) + word.start()
            product[word[0]] = "identity"
        for part in re.finditer(r"where (\w+) in (\w+) to (\w+)", text):
            self.columns["product", part[1]] = part.start(1)
            self.columns["product", part[1], "ranges", 0] = part.start(2)
            product[part[1]] = {"ranges": [[int(part[2]), int(part[3])]]}
        weight = re.search(r"weight (\S+)", text)
        if weight is not None:
            self.columns["weight",] = weight.start(1)
            written["weight"] = float(weight[1])
        self.written: Mapping[str, object] = {"product": product, **written}

    def workload(self, domain: Domain) -> Workload:
        try:
            return Workload(domain, read_entry(self.written))
        except MatrixDPError as error:
            problem = error.problem
            assert problem is not None
            path = problem.path[2:] if problem.path[:1] == ("workload",) else problem.path
            while path not in self.columns and path:
                path = path[:-1]
            position = f"column {self.columns.get(path, 0) + 1}"
            raise SpecificationError(replace(problem, path=("question",), position=position)) from None


def test_questions_become_entries() -> None:
    text = "count by sex, age where code in 3 to 7 weight 2"
    [group] = Question(text).workload(DOMAIN)
    assert (group.name, group.queries, group.weight) == (
        "sex, age, code: identity x identity x ranges",
        230,
        2,
    )


@pytest.mark.parametrize(
    ("text", "message", "at"),
    [
        ("count by sex, aeg", "found 'aeg'; expected an attribute of the domain; did you mean 'age'?", "aeg"),
        ("count by sex where age in 20 to 130", "found [20, 130]; expected two integers", "20 to"),
        ("count by sex where agee in 20 to 30", "found 'agee'; expected an attribute", "agee"),
        ("count by sex weight 0", "found 0.0; expected a finite number above 0", "0"),
    ],
)
def test_errors_point_at_the_text_of_the_question(text: str, message: str, at: str) -> None:
    with pytest.raises(SpecificationError) as caught:
        Question(text).workload(DOMAIN)
    assert str(caught.value).startswith(f"question (column {text.index(at) + 1}): {message}")


def test_entries_are_made_of_typed_values_too() -> None:
    first = read_entry({"product": {"sex": "identity", "age": {"ranges": [[0, 17]]}}, "weight": 2})
    assert isinstance(first, ProductEntry)
    second = ProductEntry(predicates=first.predicates, weight=2.0)
    assert second.to_spec() == first.to_spec()
    assert isinstance(second, Entry)
    with pytest.raises(EntryError, match=r"^weight: found -1\.0; expected a finite number above 0"):
        ProductEntry(predicates=first.predicates, weight=-1.0)
    with pytest.raises(EntryError, match=r"^product: found nothing; expected a value: `product` is required"):
        ProductEntry()  # type: ignore[call-arg]
    with pytest.raises(AttributeError):
        second.weight = 3.0  # type: ignore[misc]
