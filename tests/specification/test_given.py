"""Files that give a strategy: lists of what is measured, and matrices."""

import json
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse
from jsonschema import Draft202012Validator

import matrixdp as mdp
from matrixdp.errors import WorkloadError
from matrixdp.specification import load_given, strategy_schema

DOMAIN = mdp.Domain({"sex": ["female", "male"], "age": range(4), "other": 3})
WORKLOAD = mdp.Workload(DOMAIN, mdp.product(sex="identity", age="prefix"))
ROWS = np.arange(16.0).reshape(2, 8)


def test_a_list_of_parts_names_files_beside_it(tmp_path: Path):
    np.savetxt(tmp_path / "halves.csv", np.eye(4)[:2], delimiter=",")
    written = [
        {"product": {"age": {"matrix": "halves.csv"}, "sex": "identity"}, "share": 2},
        {"marginals": [["age"]]},
    ]
    assert not list(Draft202012Validator(strategy_schema()).iter_errors({"strategy": written}))
    for wrong in ({"marginals": 1, "share": 0}, {"marginals": 1, "shares": 1}):
        assert list(Draft202012Validator(strategy_schema()).iter_errors({"strategy": [wrong]}))
    for name in ("own.json", "own.yaml", "own.YML"):
        (tmp_path / name).write_text(json.dumps({"strategy": written}))
        first, second = load_given(tmp_path / name, WORKLOAD)
        assert (first.share, second.share) == (2.0, 1.0)
        [group] = first.entry.expand(DOMAIN)
        assert group.queries == 4


def test_a_matrix_is_over_the_attributes_that_are_asked_about(tmp_path: Path):
    np.save(tmp_path / "own.npy", ROWS)
    np.savez(tmp_path / "own.npz", ROWS)
    scipy.sparse.save_npz(tmp_path / "sparse.npz", scipy.sparse.csr_array(ROWS))
    np.savetxt(tmp_path / "own.csv", ROWS, delimiter=",")
    for name in ("own.npy", "own.npz", "sparse.npz", "own.csv"):
        [part] = load_given(tmp_path / name, WORKLOAD)
        [group] = part.entry.expand(DOMAIN)
        assert group.attributes == ("sex", "age")
        np.testing.assert_array_equal(group.rows(), ROWS)


def test_parts_in_python_are_named_where_they_stand():
    with pytest.raises(WorkloadError) as caught:
        mdp.Strategy.from_parts(DOMAIN, [mdp.marginals(1), mdp.product(agee="prefix")])
    assert (caught.value.code, caught.value.path) == ("unknown-name", ("parts", 1, "product", "agee"))
