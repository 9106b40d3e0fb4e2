"""Arrays that a user gives."""

from pathlib import Path

import numpy as np
import pytest
import scipy.sparse

from matrixdp.errors import EntryError, TooLargeError, WorkloadError
from matrixdp.forms import FormError, as_given
from matrixdp.language import product
from matrixdp.language.predicates import ArrayForm, load_array
from matrixdp.queries import predicates as arrays
from matrixdp.queries.predicates import real_array


def test_load_array(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.array([[True, False]]))
    loaded = load_array(tmp_path / "a.npy")
    assert loaded.tolist() == [[1.0, 0.0]]
    assert not loaded.flags.writeable


def test_files_refused(tmp_path: Path) -> None:
    with pytest.raises(WorkloadError, match="found no such file"):
        load_array(tmp_path / "missing.npy")
    with pytest.raises(WorkloadError, match="found no such file"):
        load_array(tmp_path)
    (tmp_path / "text.npy").write_text("1,2")
    np.save(tmp_path / "pickle.npy", np.array([{}], dtype=object), allow_pickle=True)
    (tmp_path / "cut.npy").write_bytes((tmp_path / "pickle.npy").read_bytes()[:20])
    np.savez(tmp_path / "many.npz", a=np.eye(2), b=np.eye(2))
    (tmp_path / "zip.npz").write_bytes((tmp_path / "many.npz").read_bytes()[:90])
    headers = {"open.npy": b"[[", "deep.npy": b"-" * 9000 + b"1", "long.npy": b"+".join([b"1"] * 4500)}
    for name, header in headers.items():
        content = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header
        (tmp_path / name).write_bytes(content)
    for name in ("text.npy", "pickle.npy", "cut.npy", "zip.npz", *headers):
        with pytest.raises(WorkloadError, match="cannot be read as NumPy"):
            load_array(tmp_path / name)
    with pytest.raises(WorkloadError, match="a file of 2 arrays; expected one array, or a sparse matrix"):
        load_array(tmp_path / "many.npz")
    np.save(tmp_path / "words.npy", np.array(["a"]))
    with pytest.raises(WorkloadError, match="expected an array of real numbers"):
        load_array(tmp_path / "words.npy")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("1,2\n\n3,x\n", "'x' in line 3, column 2; expected numbers alone, separated by commas"),
        ("age,sex\n1,2\n", "'age' in line 1, column 1"),
        ("1,2\n3\n", "1 numbers in line 2, and 2 before"),
        ('1,"2\n', "cannot be read as CSV"),
        ("1\xa0;\x00", "line 1, column 1|cannot be read as CSV"),
    ],
)
def test_csv_files_refused(tmp_path: Path, text: str, found: str) -> None:
    (tmp_path / "a.csv").write_text(text)
    with pytest.raises(WorkloadError, match=found):
        load_array(tmp_path / "a.csv")
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
        ArrayForm("a matrix").read(np.eye(3), as_given)


@pytest.mark.parametrize(
    ("value", "found"),
    [
        (3, "found 3"),
        (None, "found nothing"),
        ([[1], [1, 2]], "not real numbers"),
        ([["a"]], "not real numbers"),
        ([1, 2], r"shape \(2,\)"),
        ([[]], r"shape \(1, 0\)"),
        ([[float("nan")]], "NaN or infinite"),
        ("nowhere.npy", "no such file at nowhere.npy"),
    ],
)
def test_given_array_refused(value: object, found: str) -> None:
    with pytest.raises(FormError, match=found) as caught:
        ArrayForm("a matrix", axes=2).read(value, as_given)
    assert "a matrix" in caught.value.problem.expected
    with pytest.raises(EntryError, match=found) as placed:
        product(age={"matrix": value})
    assert placed.value.problem.path == ("product", "age", "matrix")


def test_real_array_copies() -> None:
    values = np.ones(2)
    copy = real_array(values, "x")
    values[0] = 5
    assert copy.tolist() == [1.0, 1.0]
