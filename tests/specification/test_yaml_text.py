"""YAML as it is read: its limits, words that are no truth values, and values to be filled in."""

import pytest
import yaml

import matrixdp as mdp
from matrixdp.errors import SpecificationError
from matrixdp.specification import load as yaml_text
from matrixdp.specification.load import parse_yaml


@pytest.mark.parametrize(("owner", "name"), [(yaml_text._Builder, "build"), (yaml, "compose")])
def test_values_nested_too_deeply_are_refused_wherever_they_are_found(owner, name, monkeypatch):
    def exhausted(*_: object) -> None:
        raise RecursionError

    monkeypatch.setattr(owner, name, exhausted)
    with pytest.raises(SpecificationError) as caught:
        parse_yaml("a: 1")
    assert caught.value.code == "too-large"


def test_too_many_values_are_refused(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(yaml_text, "MAX_NODES", 3)
    assert parse_yaml("[1, 2]").value == [1, 2]
    with pytest.raises(SpecificationError) as caught:
        parse_yaml("[1, 2, 3]")
    assert caught.value.code == "too-large"


def test_texts_are_read_by_the_core_schema_and_todo_in_quotes_is_a_text():
    text = "domain: {sex: [yes, TODO]}\nworkload: [marginals: [1]]\nprivacy: {epsilon: 1, delta: 1e-6}\n"
    with pytest.raises(SpecificationError) as caught:
        mdp.load_specification(text)
    assert caught.value.path == ("domain", "sex", 1)
    specification = mdp.load_specification(text.replace("TODO", "'TODO'"))
    assert [specification.domain["sex"].label(code) for code in (0, 1)] == ["yes", "TODO"]
    assert specification.budget is not None
    assert float(specification.budget.delta) == 1e-6
