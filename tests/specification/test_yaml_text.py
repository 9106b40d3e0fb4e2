"""YAML that is refused, each with its place."""

import pytest
import yaml

import matrixdp as mdp
from matrixdp.errors import SpecificationError
from matrixdp.specification import load as yaml_text
from matrixdp.specification.load import parse_yaml


def test_values_nested_too_deeply_are_refused_wherever_they_are_found(monkeypatch: pytest.MonkeyPatch):
    def exhausted(*_: object) -> None:
        raise RecursionError

    monkeypatch.setattr(yaml_text._Builder, "build", exhausted)
    with pytest.raises(SpecificationError) as caught:
        parse_yaml("a: 1")
    assert caught.value.code == "too-large"
    monkeypatch.setattr(yaml, "compose", exhausted)
    with pytest.raises(SpecificationError) as caught:
        parse_yaml("a: 1")
    assert caught.value.code == "too-large"


def test_too_many_values_are_refused(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(yaml_text, "MAX_NODES", 3)
    assert parse_yaml("[1, 2]").value == [1, 2]
    with pytest.raises(SpecificationError) as caught:
        parse_yaml("[1, 2, 3]")
    assert caught.value.code == "too-large"


def test_what_is_still_to_be_filled_in_is_refused_by_name():
    text = """
    domain:
      age: {min: 0, max: TODO}
      state: [TODO, done]
    workload: [marginals: 1]
    """
    with pytest.raises(SpecificationError) as caught:
        mdp.load_specification(text.replace("max: TODO", "max: 9"))
    assert caught.value.path == ("domain", "state", 0)
    quoted = mdp.load_specification(text.replace("max: TODO", "max: 9").replace("[TODO", "['TODO'"))
    assert quoted.domain["state"].label(0) == "TODO"
