"""YAML that is refused, each with its place."""

from pathlib import Path

import pytest
import yaml

import matrixdp as mdp
from matrixdp.errors import SpecificationError
from matrixdp.specification import load as yaml_text
from matrixdp.specification.load import parse_yaml


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("a: [1", "text that is not YAML"),
        ("a: \x01", "text that is not YAML"),
        ("[" * 5000, "values nested too deeply|text that is not YAML"),
        ("a: &x [*x]", "an alias of what it stands in; expected a value that does not hold itself"),
        ("? [1, 2]\n: 3", "a key that is a list or a mapping; expected a key that is text"),
        ("{? : 4}", "a key that is empty; expected text as a key"),
        ("3: 4\n'3': 5", "the key '3' a second time; expected each key once"),
        ("a: 1\na: 2", "the key 'a' a second time; expected each key once"),
        ("a: !!int x", "the tag .*int on 'x'; expected a value without a tag"),
        ("a: !thing [1]", "the tag !thing; expected a value without a tag"),
        ("a: " + "1" * 401, "an integer of 401 digits; expected one of at most 400"),
    ],
)
def test_what_is_refused(text: str, says: str):
    with pytest.raises(SpecificationError, match=says):
        parse_yaml(text)


def test_values_nested_too_deeply_are_refused_wherever_they_are_found(monkeypatch: pytest.MonkeyPatch):
    def exhausted(*_: object) -> None:
        raise RecursionError

    monkeypatch.setattr(yaml_text._Builder, "build", exhausted)
    with pytest.raises(SpecificationError, match="values nested too deeply; expected a flatter document"):
        parse_yaml("a: 1")
    monkeypatch.setattr(yaml, "compose", exhausted)
    with pytest.raises(SpecificationError, match="values nested too deeply; expected a flatter document"):
        parse_yaml("a: 1")


def test_too_many_values_are_refused(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(yaml_text, "MAX_NODES", 3)
    assert parse_yaml("[1, 2]").value == [1, 2]
    with pytest.raises(SpecificationError, match="more than 3 values"):
        parse_yaml("[1, 2, 3]")


def test_files_that_are_no_text_are_refused(tmp_path: Path):
    (tmp_path / "latin.yaml").write_bytes("größe: 1".encode("latin-1"))
    for path, says in (
        (tmp_path / "absent.yaml", "no such file; expected a specification file"),
        (tmp_path / "latin.yaml", "text that is not UTF-8; expected a YAML file in UTF-8"),
        (tmp_path, "a file that cannot be read"),
    ):
        with pytest.raises(SpecificationError, match=says):
            mdp.load_specification(path)


def test_what_is_still_to_be_filled_in_is_refused_by_name(tmp_path: Path):
    text = """
    domain:
      age: {min: 0, max: TODO}
      state: [TODO, done]
    workload: [marginals: 1]
    """
    says = (
        r"domain.age.max \(line 3\): found TODO \(and at domain.state\[0\] \(line 4\)\); expected "
        "what the table may hold, from public knowledge; in quotes where it is a text of the table"
    )
    with pytest.raises(SpecificationError, match=says):
        mdp.load_specification(text)
    with pytest.raises(SpecificationError, match=r"domain.state\[0\] \(line 4\): found TODO; expected"):
        mdp.load_specification(text.replace("max: TODO", "max: 9"))
    quoted = mdp.load_specification(text.replace("max: TODO", "max: 9").replace("[TODO", "['TODO'"))
    assert quoted.domain["state"].label(0) == "TODO"
