"""The container: arrays come back, numbers alone are in it, and no changed byte passes."""

import io
import zipfile
from pathlib import Path

import numpy as np
import pytest

from matrixdp.errors import StorageError
from matrixdp.storage.archive import ArchiveWriter
from matrixdp.storage.formats import load_strategy, save_strategy
from tests.release.stopping import fail
from tests.storage.archives import altered, read_array, saved_array, saved_strategy, selection


def test_an_array_comes_back_and_numpy_reads_it(tmp_path: Path):
    saved = saved_array(tmp_path)
    np.testing.assert_array_equal(read_array(saved, (2, 3)), np.arange(6.0).reshape(2, 3))
    with np.load(saved, allow_pickle=False) as arrays:
        np.testing.assert_array_equal(arrays["arrays/0"], np.arange(6.0).reshape(2, 3))


def test_nothing_is_pickled(tmp_path: Path):
    with zipfile.ZipFile(saved_strategy(tmp_path)) as archive:
        for name in archive.namelist():
            if name.endswith(".npy"):
                array = np.load(io.BytesIO(archive.read(name)), allow_pickle=False)
                assert array.dtype.kind in "if"


def test_every_changed_byte_of_an_array_is_found(tmp_path: Path):
    """The checksum of the zip file's own is made right, so that ours alone can tell."""
    content = saved_array(tmp_path).read_bytes()
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        array = archive.read("arrays/0.npy")
    for place in range(len(array)):
        changed = bytearray(array)
        changed[place] ^= 1
        member = {"arrays/0.npy": bytes(changed)}
        (tmp_path / "x.mdp").write_bytes(content)
        altered(tmp_path / "x.mdp", lambda _, members: members.update(member), sums=False)  # noqa: B023
        with pytest.raises(StorageError, match=r"the checksum of .* is wrong"):
            read_array(tmp_path / "x.mdp")


def test_every_flipped_byte_is_found_or_harmless(tmp_path: Path):
    path = saved_strategy(tmp_path)
    content = path.read_bytes()
    for position in np.random.default_rng(0).choice(len(content), 60, replace=False):
        changed = bytearray(content)
        changed[position] ^= 0x55
        path.write_bytes(bytes(changed))
        try:
            again = load_strategy(path)
        except StorageError:
            continue
        assert again.weighted_squared_error == pytest.approx(selection().weighted_squared_error, rel=1e-9)
    for length in (0, 10, len(content) // 2, len(content) - 1):
        path.write_bytes(content[:length])
        with pytest.raises(StorageError):
            load_strategy(path)


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_two_members_of_one_name_are_refused(tmp_path: Path):
    with zipfile.ZipFile(saved_array(tmp_path), "a") as archive:
        archive.writestr("arrays/0.npy", archive.read("arrays/0.npy"))
    with pytest.raises(StorageError, match="each once"):
        read_array(tmp_path / "x.mdp")


def test_a_failed_save_leaves_nothing(tmp_path: Path):
    (tmp_path / "s.mdp").write_text("old")
    with pytest.raises(StorageError), ArchiveWriter(tmp_path / "s.mdp") as archive:
        archive.add_pieces([np.zeros(2)], (3,), np.dtype(np.float64))
    with pytest.raises(ValueError, match="JSON"), ArchiveWriter(tmp_path / "n.mdp") as archive:
        archive.close({"format": float("nan")})
    assert [path.name for path in tmp_path.iterdir()] == ["s.mdp"]
    assert (tmp_path / "s.mdp").read_text() == "old"


def test_a_full_disk_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(zipfile.ZipFile, "close", fail)
    with pytest.raises(OSError, match="No space left"), ArchiveWriter(tmp_path / "s.mdp") as archive:
        archive.close({})
    monkeypatch.undo()
    assert list(tmp_path.iterdir()) == []


def test_a_strategy_saves_to_the_same_content_again(tmp_path: Path):
    saved = saved_strategy(tmp_path)
    save_strategy(tmp_path / "again.mdp", load_strategy(saved))
    with zipfile.ZipFile(saved) as first, zipfile.ZipFile(tmp_path / "again.mdp") as second:
        assert {n: first.read(n) for n in first.namelist()} == {n: second.read(n) for n in second.namelist()}
