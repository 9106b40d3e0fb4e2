"""Arrays that a user gives."""

from pathlib import Path

import numpy as np
import pytest
import scipy.sparse

from matrixdp.errors import TooLargeError, WorkloadError
from matrixdp.forms import as_written
from matrixdp.language.predicates import ArrayForm, load_array
from matrixdp.queries import predicates as arrays


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
    with pytest.raises(TooLargeError):
        ArrayForm("a matrix").read(np.eye(3), as_written)
