"""Valid documents that fuzzing begins with: specifications, entries, tables, a strategy and a release."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import matrixdp as mdp
from matrixdp.specification import json_schema, load_specification, parse_yaml

ENTRIES: tuple[str, ...] = (
    "marginals: [0, 1, 2]",
    "marginals: [[sex, age], [code]]",
    "kway: 2\npredicates: {categorical: identity, numeric: prefix}\nmax_cells: 50\nname: pairs",
    "product: {sex: identity, age: prefix}\nweight: 2\nname: age CDF by sex",
    "product: {age: {ranges: [[0, 4], [5, 9]]}, sex: {sets: [[female], [female, male]]}}",
    "product: {code: {matrix: [[1, 0.5, 0, 0], [0, 0, 1, 2]]}}\nweights: [1, 2]",
    "product: {age: [identity, total], code: {permuted: range, seed: 3}, hours: range}",
    "product: {age: {sliding: 3}, income: affine}",
    "pairwise: abs\nattributes: [age, hours]",
    "pairwise: affine",
    "dense: [[1, 0, 0, 0], [0.5, 0, -1, 2]]\nattributes: [code]",
    "dense: queries.npy\nattributes: [code]\nby: {sex: identity}",
    "any: {age: {ranges: [[5, 9]]}, sex: {sets: [[female]]}}",
    "cells: [[{sex: female, age: {range: [0, 4]}}, {sex: male, age: {range: [0, 7]}}], "
    "{sex: male, age: [1, 2]}]\nby: {code: [identity, total]}",
    "quantile: {age: [0.25, 0.5]}\nby: [sex]\nwhere: {hours: {range: [0, 4]}}",
    "mean: hours\nby: {code: {ranges: [[0, 1]]}}",
    "share: {marginals: [[sex, age]]}\nof: [sex]",
    "combination: [[2, {marginals: 0}], [[1, -1], {marginals: [[sex]]}]]",
)

_DOMAIN = """domain:
  sex: [female, male]
  age: {min: 0, max: 9}
  income: {edges: [0, 10, 25.5], closed: true}
  hours: {min: 0, max: 8, bins: 4}
  code: 4
"""

RELEASED = (
    _DOMAIN
    + """workload:
- marginals: [0, 1, 2]
- product: {sex: identity, age: range}
- pairwise: abs
  attributes: [age, hours]
out_of_domain: {age: {other: 9}}
privacy: {rho: 0.5}
"""
)
"""What the strategies and the release are of."""


def _specification(entry: str, rest: str) -> str:
    return f"{_DOMAIN}workload:\n- " + entry.replace("\n", "\n  ") + f"\n{rest}\n"


SPECIFICATIONS: tuple[str, ...] = (
    RELEASED,
    *(_specification(entry, "privacy: {epsilon: 1.0, delta: 1.0e-6}") for entry in ENTRIES),
    _specification(ENTRIES[0], "privacy: {epsilon: 1.0, neighbours: replace}\nmax_records: 1000"),
    _specification(ENTRIES[3], "privacy: {minimize: rho}\ntargets: {age CDF by sex: 25, all: 60}"),
    _specification(
        ENTRIES[0], "data: t.csv\nquoted_newlines: true\nout_of_domain: {sex: drop, code: {other: 3}}"
    ),
    _specification(ENTRIES[0], "data: t.duckdb\ntable: people\nprivacy: {mu: 0x10}"),
)


@cache
def keys() -> tuple[str, ...]:
    """Return the words of specification files, from their JSON Schema: its keys and constants."""
    found: set[str] = {"sex", "age", "income", "hours", "code", "other", "drop", "null", ".inf", "&a", "*a"}

    def walk(schema: object) -> None:
        if isinstance(schema, dict):
            found.update(schema.get("properties", ()))
            found.update(word for word in schema.get("enum", ()) if isinstance(word, str))
            for part in schema.values():
                walk(part)
        elif isinstance(schema, list):
            for part in schema:
                walk(part)

    walk(json_schema())
    return tuple(sorted(found))


def entries() -> list[Any]:
    """Return the entries as mappings."""
    return [parse_yaml(text).value for text in ENTRIES]


def write_arrays(folder: Path) -> None:
    """Write the NumPy file that an entry names."""
    np.save(folder / "queries.npy", np.tri(4))


@cache
def strategies() -> tuple[bytes, ...]:
    """Return the files of strategies of each kind of plan and each noise."""
    small = load_specification("domain: {sex: [f, m], code: 3}\nworkload: [marginals: [1, 2]]\n").workload
    wide = load_specification(RELEASED).workload
    made = []
    with tempfile.TemporaryDirectory() as folder:
        for workload, mechanism, noise in (
            (wide, "residual", "gaussian"),
            (small, "identity", "laplace"),
            (small, "dense", "gaussian"),
            (small, "workload", "gaussian"),
            (small, "opt-m", "laplace"),
            (small, "datacube", "gaussian"),
        ):
            mdp.select(workload, mechanism=mechanism, noise=noise).save(f"{folder}/strategy.mdp")
            made.append(Path(folder, "strategy.mdp").read_bytes())
    return tuple(made)


@cache
def releases() -> tuple[Mapping[str, bytes], ...]:
    """Return the files of a release of each noise, of one that was seeded, and of one in two rounds."""
    table = {"sex": ["male", "female", "male"], "age": [3, 1, 99], "code": [0, 1, 1]}
    text = "domain: {sex: [male, female], age: 4, code: 2}\nworkload: [marginals: [1, 2], kway: 2]\n"
    wide = load_specification(text).workload
    small = mdp.Workload(mdp.Domain({"age": 10}), mdp.marginals(1), mdp.product(age="prefix"))
    made: list[dict[str, bytes]] = []
    with tempfile.TemporaryDirectory() as folder:
        for workload, noise, budget, seed, rounds in (
            (wide, "gaussian", mdp.Budget(rho=0.5), None, 1),
            (small, "laplace", mdp.Budget(epsilon=1, neighbours="replace"), None, 1),
            (small, "gaussian", mdp.Budget(epsilon=1, delta=1e-6), 1, 1),
            (wide, "gaussian", mdp.Budget(rho=0.5), None, 2),
        ):
            strategy = mdp.select(workload, noise=noise, budget=budget, rounds=rounds)
            rule = mdp.OutOfDomain({"age": 3})
            measured = strategy.measure(table, budget, out_of_domain=rule, seed_not_private=seed)
            out = mdp.save_release(measured.reconstruct(), Path(folder, str(len(made))))
            made.append({path.name: path.read_bytes() for path in out.iterdir()})
    return tuple(made)


def released(folder: Path) -> list[Path]:
    """Write the releases in a folder, and return their own folders."""
    for place, files in enumerate(releases()):
        (folder / str(place)).mkdir()
        for name, content in files.items():
            (folder / str(place) / name).write_bytes(content)
    return [folder / str(place) for place in range(len(releases()))]
