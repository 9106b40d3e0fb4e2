"""An archive that is damaged in any place is refused, each time with what is wrong."""

import hashlib
import io
import json
import zipfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from matrixdp.errors import StorageError
from matrixdp.storage.archive import ArchiveReader, ArchiveWriter

KIND = "matrixdp thing"
Members = dict[str, bytes]


def npy(array: np.ndarray, version: tuple[int, int] = (1, 0)) -> bytes:
    stream = io.BytesIO()
    np.lib.format.write_array(stream, array, version=version)
    return stream.getvalue()


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    with ArchiveWriter(tmp_path / "x.mdp") as archive:
        name = archive.add(np.arange(6.0).reshape(2, 3))
        archive.close({"format": KIND, "format_version": 1, "array": name})
    return tmp_path / "x.mdp"


def altered(path: Path, change: Callable[[Members], None]) -> Path:
    with zipfile.ZipFile(path) as source:
        members = {name: source.read(name) for name in source.namelist()}
    change(members)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as out:
        for name, content in members.items():
            out.writestr(name, content)
    return path


def header(members: Members, text: bytes) -> None:
    members["header.json"] = text
    members["header.sha256"] = hashlib.sha256(text).hexdigest().encode()


def summed(members: Members, name: str, content: bytes) -> None:
    """Put another array in, and make its checksum right."""
    members[name] = content
    found = json.loads(members["header.json"])
    found["checksums"][name] = hashlib.sha256(content).hexdigest()
    header(members, json.dumps(found).encode())


def read(path: Path, shape: tuple[int, ...] | None = None) -> np.ndarray:
    with ArchiveReader(path, KIND, 1) as archive:
        return archive.array(archive.header["array"], shape)


def array_of(members: Members) -> str:
    return str(json.loads(members["header.json"])["array"])


def headed(text: bytes) -> bytes:
    """Return a NumPy file whose header is a text."""
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text


def replaced_array(members: Members, content: bytes) -> None:
    """Put another array in, under the checksum of the first."""
    members[array_of(members)] = content


def test_an_array_comes_back(saved: Path):
    np.testing.assert_array_equal(read(saved, (2, 3)), np.arange(6.0).reshape(2, 3))


def test_numpy_reads_archives_without_pickle(saved: Path):
    with np.load(saved, allow_pickle=False) as arrays:
        np.testing.assert_array_equal(arrays["arrays/0"], np.arange(6.0).reshape(2, 3))


@pytest.mark.parametrize(("version", "says"), [(2, "newer matrixdp"), (4, "make it anew")])
def test_other_versions_are_refused(tmp_path: Path, version: int, says: str):
    with ArchiveWriter(tmp_path / "x.mdp") as archive:
        archive.close({"format": KIND, "format_version": 3})
    with pytest.raises(StorageError, match=f"version 3; this matrixdp reads version {version}: .*{says}"):
        ArchiveReader(tmp_path / "x.mdp", KIND, version)


def test_every_changed_byte_of_an_array_is_found(saved: Path):
    """The checksum of the zip file's own is made right, so that ours alone can tell."""
    with zipfile.ZipFile(saved) as archive:
        content = archive.read(json.loads(archive.read("header.json"))["array"])
    for place in range(len(content)):
        changed = bytearray(content)
        changed[place] ^= 1
        altered(saved, partial(replaced_array, content=bytes(changed)))
        with pytest.raises(StorageError, match=r"the checksum of .* is wrong"):
            read(saved)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda m: header(m, b"{"), "its header is not JSON"),
        (lambda m: header(m, b"[" * 100_000), "its header is not JSON"),
        (lambda m: header(m, b"[]"), "holds something else"),
        (lambda m: m.update({"header.sha256": b"0" * 65}), "header.sha256 has 65 bytes"),
        (lambda m: m.pop("header.sha256"), "header.sha256 is missing"),
        (lambda m: m.pop(array_of(m)), "is missing"),
        (lambda m: summed(m, array_of(m), b"no array at all"), "is not an array"),
        (lambda m: summed(m, array_of(m), npy(np.arange(6.0), (2, 0))), "is not an array"),
        (lambda m: summed(m, array_of(m), headed(b"[[")), "is not an array"),
        (lambda m: summed(m, array_of(m), headed(b"-" * 9000 + b"1")), "is not an array"),
        (lambda m: summed(m, array_of(m), headed(b"+".join([b"1"] * 4500))), "is not an array"),
        (lambda m: summed(m, array_of(m), npy(np.arange(6.0))[:-1]), "numbers of its stated size"),
        (lambda m: summed(m, array_of(m), npy(np.arange(6.0)) + b"0"), "numbers of its stated size"),
        (lambda m: summed(m, array_of(m), npy(np.arange(6) * 1j)), "numbers of its stated size"),
        (lambda m: summed(m, array_of(m), npy(np.eye(3, 2).T)), "numbers of its stated size"),
        (lambda m: summed(m, array_of(m), npy(np.arange(6.0))), r"has the shape \(6,\); expected \(2, 3\)"),
    ],
)
def test_damaged_archives_are_refused(saved: Path, change: Callable[[Members], None], says: str):
    altered(saved, change)
    with pytest.raises(StorageError, match=says):
        read(saved, (2, 3))


@pytest.mark.parametrize("name", ["absent", None, 3, ["a0.npy"]])
def test_arrays_that_the_header_does_not_list_are_refused(saved: Path, name: object):
    with ArchiveReader(saved, KIND, 1) as archive, pytest.raises(StorageError, match="that is not there"):
        archive.array(name)


def test_a_member_that_claims_more_than_the_file_has_is_refused(saved: Path):
    content = bytearray(saved.read_bytes())
    place = content.rindex(b"PK\x01\x02", 0, content.rindex(b"header.json"))
    for field in (20, 24):  # the sizes in the directory of the zip file
        content[place + field : place + field + 4] = (1 << 20).to_bytes(4, "little")
    saved.write_bytes(bytes(content))
    with pytest.raises(StorageError, match=r"header.json is larger than the file"):
        ArchiveReader(saved, KIND, 1)


def test_members_that_no_header_lists_are_refused(saved: Path):
    """Nobody can carry a table in a measurement that is checked whole."""
    altered(saved, lambda members: members.update(table=b"sex,age"))
    with pytest.raises(StorageError, match="members are not those that its header lists"):
        read(saved)


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_two_members_of_one_name_are_refused(saved: Path):
    with zipfile.ZipFile(saved, "a") as archive:
        archive.writestr("arrays/0.npy", archive.read("arrays/0.npy"))
    with pytest.raises(StorageError, match="each once"):
        read(saved)


def test_a_key_that_is_given_twice_is_refused(saved: Path):
    def twice(members: Members) -> None:
        header(members, b'{"private": false, "private": true,' + members["header.json"][1:])

    with pytest.raises(StorageError, match="not JSON"):
        read(altered(saved, twice))
