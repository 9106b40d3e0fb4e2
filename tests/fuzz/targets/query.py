"""The text that the command ``answer`` takes, on saved releases of both noises."""

import json
import os
from pathlib import Path

from matrixdp.cli.options import entries_of
from matrixdp.releases import load_release
from matrixdp.statistics import statistics
from tests.fuzz.documents import ENTRIES, keys, released, write_arrays
from tests.fuzz.forms import finite_answers
from tests.fuzz.oracle import Case
from tests.fuzz.recipe import Recipe, mutated

#: Entries that the first release can answer, which recipes change.
_ANSWERED = (
    {"marginals": [0, 1, 2]},
    {"kway": 2, "predicates": {"categorical": "identity", "numeric": "prefix"}},
    {"product": {"sex": "identity", "age": {"ranges": [[0, 1], [2, 3]]}}, "weight": 2, "name": "x"},
    {"product": {"age": [{"width": 2}, {"permuted": "range", "seed": 1}], "code": {"sets": [[0], [0, 1]]}}},
    {"product": {"age": {"matrix": [[1, 0.5, 0, -1]]}}, "weights": [1]},
    {"pairwise": "abs", "attributes": ["age", "code"]},
    {"dense": [[1, 0, 0, 2]], "attributes": ["age"], "by": {"sex": "identity"}},
    {"any": {"age": {"ranges": [[1, 2]]}, "sex": {"sets": [["female"]]}}},
    {
        "cells": [[{"sex": "female", "age": {"range": [0, 1]}}, {"sex": "male", "age": [3]}]],
        "by": {"code": "total"},
    },
    {"quantile": {"age": [0.25, 0.5]}, "by": ["sex"], "where": {"code": {"range": [0, 1]}}},
    {"mean": "age", "by": {"code": {"sets": [[0], [1]]}}},
    {"share": {"marginals": [["sex", "code"]]}, "of": ["sex"]},
    {"combination": [[[1, -1], {"marginals": [["sex"]]}], [2, {"marginals": 0}]]},
)


def seeds() -> list[bytes]:
    """Return entries of every form, and recipes that leave each as it is."""
    flow = ["product: {age: {ranges: [[0, 4]]}}", "marginals: [[age]]", "{kway: 1, predicates: prefix}"]
    texts = [b"\0" + text.encode() for text in (*ENTRIES, *flow)] + [b"\1" + text.encode() for text in flow]
    return texts + [bytes([128, place]) for place in range(len(_ANSWERED))]


def opened(folder: Path) -> Case:
    """Return what answers one: every answer is finite, with a standard error."""
    write_arrays(folder)
    releases = [load_release(path) for path in released(folder)]
    os.chdir(folder)

    def case(data: bytes) -> None:
        release = releases[data[0] % len(releases) if data else 0]
        text = data[1:].decode("utf-8", "surrogateescape")
        if data[:1] >= b"\x80":
            release, recipe = releases[0], Recipe(data[1:])
            text = json.dumps(mutated(recipe.choice(_ANSWERED), recipe, keys()))
        for entry, base in entries_of(text):
            answers = release.answer(entry, base_path=base)
            if set(entry).isdisjoint(statistics()):  # where an end that there is not is null
                finite_answers(answers)

    return case
