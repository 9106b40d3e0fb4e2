"""Published tables, impossible combinations and arrays, as they are written."""

import json
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest
import scipy.sparse

import matrixdp as mdp
from matrixdp.errors import MatrixDPError, TooLargeError, WorkloadError
from matrixdp.forms import as_written
from matrixdp.language.invariants import IMPOSSIBLE, PUBLISHED, Published
from matrixdp.language.predicates import ArrayForm, load_array
from matrixdp.queries import predicates as arrays

WRITTEN = [{"product": {"sex": "identity"}, "counts": [[4], [5]]}, {"marginals": 0, "counts": 9}]


def test_what_is_read_is_written_and_read_again():
    found = PUBLISHED.read(WRITTEN, as_written)
    assert [one.counts for one in found] == [(4.0, 5.0), (9.0,)]
    written: Any = PUBLISHED.write(found)
    assert json.loads(json.dumps(written))[1]["counts"] == 9
    ways = [written, found, [(mdp.product(sex="identity"), (4, 5)), (mdp.marginals(0), np.int64(9))]]
    assert [PUBLISHED.write(PUBLISHED.read(way, as_written)) for way in ways] == [written] * 3
    for total in (9, WRITTEN[1], Published(mdp.marginals(0), (9.0,))):
        assert PUBLISHED.write(PUBLISHED.read(total, as_written)) == written[1:]


@pytest.mark.parametrize("counts", [None, "nine", True, [], [float("nan")], [[1], [2, 3]], -1, 10**400])
def test_counts_that_are_none_are_refused(counts):
    with pytest.raises(MatrixDPError, match="expected a count, or a list of counts"):
        PUBLISHED.read([{"marginals": 0, "counts": counts}], as_written)


def test_their_schemas_take_what_is_read_and_no_other():
    definitions: dict[str, object] = {}
    totals = {**PUBLISHED.schema(definitions), "$defs": definitions}
    boxes = {**IMPOSSIBLE.schema(definitions), "$defs": definitions}
    for good in (9, WRITTEN):
        jsonschema.validate(good, totals)
    jsonschema.validate([{"age": {"range": [0, 4]}, "sex": "f"}], boxes)
    for schema, wrong in ((totals, [{"marginals": 0}]), (totals, []), (boxes, [{}]), (boxes, {"age": 3})):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(wrong, schema)


def test_load_array(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.array([[True, False]]))
    loaded = load_array(tmp_path / "a.npy")
    assert loaded.tolist() == [[1.0, 0.0]]
    assert not loaded.flags.writeable


def test_files_of_other_things_are_refused(tmp_path: Path) -> None:
    np.save(tmp_path / "pickle.npy", np.array([{}], dtype=object), allow_pickle=True)
    (tmp_path / "cut.npy").write_bytes((tmp_path / "pickle.npy").read_bytes()[:20])
    np.savez(tmp_path / "many.npz", a=np.eye(2), b=np.eye(2))
    np.save(tmp_path / "words.npy", np.array(["a"]))
    codes = {"pickle.npy": "damaged-file", "cut.npy": "damaged-file", "many.npz": "wrong-size"}
    for name, code in (codes | {"words.npy": "wrong-type", ".": "file-missing"}).items():
        with pytest.raises(WorkloadError) as refused:
            load_array(tmp_path / name)
        assert refused.value.code == code


@pytest.mark.parametrize("indices", [[4, 0], [-1, 0]])
def test_a_sparse_matrix_with_entries_outside_of_it_is_refused(tmp_path: Path, indices: list[int]) -> None:
    sparse = scipy.sparse.csr_array(np.eye(2, 4))
    sparse.indices = np.array(indices, dtype=np.int32)
    scipy.sparse.save_npz(tmp_path / "beyond.npz", sparse)
    with pytest.raises(WorkloadError) as refused:
        load_array(tmp_path / "beyond.npz")
    assert refused.value.code == "damaged-file"


def test_csv_files_hold_numbers(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("1, 2.5\n-3e1,4\n")
    assert load_array(tmp_path / "a.csv").tolist() == [[1.0, 2.5], [-30.0, 4.0]]


def test_too_large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    np.save(tmp_path / "a.npy", np.eye(3))
    monkeypatch.setattr(arrays, "MAX_EXPLICIT_ENTRIES", 8)
    with pytest.raises(TooLargeError, match="9 entries; the limit is 8"):
        load_array(tmp_path / "a.npy")
    np.savetxt(tmp_path / "a.csv", np.eye(3), delimiter=",")
    sparse = scipy.sparse.csr_array(([1.0], ([0], [4])), shape=(3, 9))
    scipy.sparse.save_npz(tmp_path / "wide.npz", sparse, compressed=False)
    np.savez_compressed(tmp_path / "zeros.npz", np.zeros(100))
    for name in ("a.csv", "wide.npz", "zeros.npz"):
        with pytest.raises(TooLargeError, match="entries; the limit is 8"):
            load_array(tmp_path / name)
    monkeypatch.setattr(np, "load", None)  # the sizes in an archive are checked before anything is unpacked
    with pytest.raises(TooLargeError, match="entries; the limit is 8"):
        load_array(tmp_path / "zeros.npz")
    with pytest.raises(TooLargeError):
        ArrayForm("a matrix").read(np.eye(3), as_written)
