"""Workloads of every kind of entry come back from an archive as they were."""

import json
from pathlib import Path

import numpy as np
import pytest
import workload_families as families

import matrixdp as mdp
from matrixdp.errors import StorageError
from matrixdp.statements import sql
from matrixdp.storage.archive import ArchiveWriter
from matrixdp.storage.formats import write_workload
from tests.storage.archives import reread_workload

DOMAIN = mdp.Domain({"sex": ["female", "male"], "matrix": 4, "weights": {"min": 0, "max": 2}, "dense": 2})
MATRIX = {"matrix": [[0.1, 0, 0, 1 / 3]]}
ENTRIES = {
    "stacks": mdp.product(sex=["identity", "total"], matrix=["prefix", MATRIX]),
    "attributes that are called like keys": mdp.product(
        {"weights": ["identity", "total"], "dense": ["total"], "matrix": MATRIX}, weights=[1, 2, 3, 4]
    ),
    "permuted": mdp.product(matrix={"permuted": ["range", MATRIX], "seed": 4}),
    "permuted by a list": mdp.product({"weights": {"permuted": "range", "order": [2, 0, 1]}}),
    "sets by kind": mdp.kway(1, {"categorical": ["identity", "total"], "numeric": [{"sliding": 2}, "total"]}),
    "one set": mdp.kway(1, {"permuted": MATRIX, "seed": 2}, attributes=["matrix"]),
    "disjunctions": mdp.disjunction(
        {"sex": "identity", "weights": "prefix"}, by={"matrix": MATRIX}, weight=2
    ),
    "cells": mdp.cells(
        [[{"sex": "male", "weights": [0, 1]}, {"dense": 0}]], by={"matrix": ["total", MATRIX]}
    ),
    "a matrix by": mdp.dense(np.array([[0.1, 0.7]]), ["dense"], by={"matrix": [MATRIX]}, weights=[3]),
    "named": mdp.product(sex={"sets": {"b": ["male"], "a": ["female"]}}, matrix={"ranges": {"low": [0, 1]}}),
    "statements": sql("SELECT sex, COUNT(*) FROM t WHERE matrix < weights GROUP BY CUBE (sex)", weight=2),
    "related": families.w_related(DOMAIN, 6, 0.5, attributes=["sex", "matrix"], seed=2),
    "marginal": families.w_marginal(DOMAIN, 4, seed=2)[0],
}


@pytest.mark.parametrize("name", ENTRIES)
def test_entries_come_back_the_same(name: str, tmp_path: Path) -> None:
    workload = mdp.Workload(DOMAIN, ENTRIES[name])
    again = reread_workload(workload, tmp_path)
    assert [entry.to_spec() for entry in again.entries] == [entry.to_spec() for entry in workload.entries]
    for one, two in zip(workload, again, strict=True):
        for name in ("name", "attributes", "weight"):
            assert getattr(one, name) == getattr(two, name)
        assert one.key() == two.key()
        np.testing.assert_array_equal(one.rows(), two.rows())
        np.testing.assert_array_equal(one.query_weights, two.query_weights)


def test_expressions_of_an_archive_are_not_evaluated(tmp_path: Path) -> None:
    domain = mdp.Domain({"age": 3, "old": {"of": ["age"], "sql": "age > 1"}})
    workload = mdp.Workload(domain, mdp.product(old="identity"))
    another = "age > another expression"
    again = reread_workload(workload, tmp_path, lambda form: form["domain"][1][1].update(sql=another))
    derived = again.domain["old"].codebook.derivation
    assert derived is not None
    assert (derived.codes, derived.sql) == ((0, 0, 1), another)
    with pytest.raises(StorageError, match="its domain has an expression that was not evaluated"):
        reread_workload(workload, tmp_path, lambda form: form["domain"][1][1].pop("codes"))


def test_numbers_are_kept_out_of_the_header(tmp_path: Path) -> None:
    names = ("stacks", "permuted", "disjunctions", "cells", "a matrix by", "related")
    with ArchiveWriter(tmp_path / "w.mdp") as archive:
        header = write_workload(mdp.Workload(DOMAIN, *(ENTRIES[name] for name in names)), archive)
        archive.close({"format": "workload", "format_version": 1})
    text = json.dumps(header)
    assert text.count("$array") >= 7
    assert "0.333" not in text
