"""Changes in the text of a specification: one value is another, and all else is as it was written."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from matrixdp.design.text import REMOVED, changed, parts
from matrixdp.errors import SpecificationError
from matrixdp.specification import parse_yaml

EXAMPLE = Path("examples/randhie.yaml").read_text(encoding="utf-8")
INDENTED = (
    "workload:\n- marginals: 1  # one\n- product:\n    a: prefix\n\n  weight: 2\n# end\nprivacy:\n  mu: 1\n"
)
JSON = json.dumps({"domain": {"a": 3, "b": [1, 2]}, "workload": [{"marginals": 1}], "privacy": {"mu": 1}})
TEXTS = [EXAMPLE, INDENTED, JSON, "domain:\nworkload: []\nprivacy: {mu: 1,\n  ledger: l.ledger}  # ours\n"]


def comments(text):
    return [line.partition("#")[2] for line in text.splitlines() if "#" in line]


def lines_of(text):
    return {line.rstrip(" ,") for line in text.splitlines()}


CHANGES: list[tuple[tuple[Any, ...], Any]] = [
    (("privacy", "mu"), 0.25),
    (("privacy", "epsilon"), 0.25),
    (("workload", 0), REMOVED),
    (("workload", 0, "weight"), 3),
    (("domain", "new"), ["x", "y"]),
    (("domain", "a"), {"min": 0, "max": 4}),
    (("domain", "coinsurance"), ["x", "y"]),
    (("domain", "limitation"), REMOVED),
    (("unit", "max_records"), 3),
]


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize(("path", "value"), CHANGES)
def test_one_value_changes_and_no_comment_is_lost(text, path, value):
    before: Any = parse_yaml(text).value
    if value is REMOVED and not (
        before.get(path[0]) and path[1] in [*range(9), *(before.get(path[0]) or [])]
    ):
        return
    if path == ("workload", 0, "weight") and not before["workload"]:
        pytest.skip("no entry to weigh")
    made = changed(text, path, value)
    after: Any = parse_yaml(made).value
    held = after
    for step in path[:-1]:
        held = held[step]
    if value is REMOVED:
        place = path[1]
        kept = before[path[0]]
        rest = (
            kept[:place] + kept[place + 1 :]
            if isinstance(kept, list)
            else {name: own for name, own in kept.items() if name != place}
        )
        assert after == before | {path[0]: rest}
    else:
        assert held[path[-1]] == value
        assert {name: own for name, own in after.items() if name != path[0]} == {
            name: own for name, own in before.items() if name != path[0]
        }
        assert comments(made) == comments(text)
        touched = lines_of(text) - lines_of(made)
        assert len(touched) <= 4


@pytest.mark.parametrize("text", [EXAMPLE, INDENTED, JSON, "workload:\n"])
def test_an_entry_is_added_behind_the_last_and_removed_without_a_trace(text):
    before: Any = parse_yaml(text).value
    number, entry = len(before["workload"] or []), {"mean": "visits", "by": ["health"]}
    made = changed(text, ("workload", number), entry)
    after: Any = parse_yaml(made).value
    assert after["workload"][number] == entry
    if number:
        assert changed(made, ("workload", number)) == text


def test_values_stay_as_they_are_written():
    made = changed(EXAMPLE, ("domain", "visits"), written="{min: 0, max: TODO}  ")
    assert "  visits: {min: 0, max: TODO}\n" in made
    assert parse_yaml(made).unfilled == (("domain", "visits", "max"),)
    assert parts(made, "domain")["visits"] == "{min: 0, max: TODO}"
    assert parts(EXAMPLE, "nothing") == {}


@pytest.mark.parametrize(
    ("text", "path", "given"),
    [
        ("a: &x {b: 1}\nc: *x\n", ("c", "b"), {"value": 2}),
        ("a: &x {b: 1}\nc: *x\n", ("a",), {}),
        ("a: 1\n", ("a", "b"), {"value": 2}),
        ("a: [1]\n", ("a", 3), {"value": 2}),
        ("a: [1]\n", ("a", "b"), {"value": 2}),
        ("- 1\n", ("a",), {"value": 2}),
        ("a: {b: 1}\n", ("a", "b"), {"written": "2, c: 3"}),
        ("a: {b: 1}\n", ("a", "b"), {"written": "2 # note"}),
        ("a: 1\n", ("a",), {"written": "2\nb: 3"}),
    ],
)
def test_what_would_change_something_else_is_refused(text, path, given):
    with pytest.raises(SpecificationError):
        changed(text, path, **given)


keys = st.sampled_from(["a", "b", "true", "1", "x y", "ü"])
values = st.recursive(
    st.sampled_from([1, 0.5, "no", "007", "a: b", "#", True, ""]),
    lambda own: st.lists(own, max_size=3) | st.dictionaries(keys, own, max_size=3),
    max_leaves=6,
)


@settings(max_examples=150)
@given(st.dictionaries(keys, values, min_size=1, max_size=4), keys, keys, values)
def test_whatever_is_there_only_one_value_changes(document, outer, inner, value):
    import yaml

    for text in (json.dumps(document), yaml.safe_dump(document, sort_keys=False)):
        before: Any = parse_yaml(text).value
        try:
            after = parse_yaml(changed(text, (outer, inner), value)).value
        except SpecificationError:
            continue
        assert after == before | {outer: dict(before.get(outer) or {}) | {inner: value}}
