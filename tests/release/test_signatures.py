import base64
import hashlib
import json
import os
import shutil
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_pem_public_key

import matrixdp as mdp
from matrixdp.errors import MatrixDPError, SignatureError, StorageError
from matrixdp.releases import signatures
from matrixdp.releases.signatures import SIGNED

WORKLOAD = mdp.Workload(mdp.Domain({"sex": ["female", "male"], "age": 4}), mdp.marginals([0, 1]))


@pytest.fixture(scope="module")
def release() -> mdp.Release:
    table = {"sex": ["male", "female"], "age": [1, 2]}
    return mdp.select(WORKLOAD).measure(table, mdp.Budget(rho=0.5)).reconstruct()


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return mdp.make_keys(tmp_path_factory.mktemp("keys") / "office")


@pytest.fixture(scope="module")
def key(pair: tuple[Path, Path]) -> mdp.SigningKey:
    return mdp.SigningKey.load(pair[0])


@pytest.fixture(scope="module")
def signed(release: mdp.Release, key: mdp.SigningKey, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return mdp.save_release(release, tmp_path_factory.mktemp("signed") / "out", csv=True, key=key)


@pytest.fixture
def folder(signed: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(signed, tmp_path / "out"))


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_signed_release(signed: Path, pair: tuple[Path, Path]):
    assert names(signed) == [
        "answers.csv",
        "answers.parquet",
        "measurement.mdp",
        "release.json",
        "signature.json",
    ]
    record = mdp.check_signature(signed, pair[1])
    assert record == json.loads((signed / "release.json").read_text())
    assert record["private"] is True
    assert mdp.check_signature(str(signed), mdp.PublicKey.load(pair[1])) == record
    assert mdp.load_release(signed).private


def test_every_byte_of_the_record_is_signed(folder: Path, pair: tuple[Path, Path]):
    path = folder / "release.json"
    content = path.read_bytes()
    step = max(1, len(content) // 200)
    for place in [*range(0, len(content), step), len(content) - 1]:
        changed = bytearray(content)
        changed[place] ^= 1
        path.write_bytes(changed)
        with pytest.raises(SignatureError, match="not a signature of this"):
            mdp.check_signature(folder, pair[1])
    for other in (b"", content + b" ", content[:-1], content.replace(b"\n", b"\r\n")):
        path.write_bytes(other)
        with pytest.raises(SignatureError, match="not a signature of this"):
            mdp.check_signature(folder, pair[1])
    path.write_bytes(content)
    mdp.check_signature(folder, pair[1])


@pytest.mark.parametrize("name", ["measurement.mdp", "answers.parquet", "answers.csv"])
def test_every_file_is_the_one_that_was_signed(
    name: str, folder: Path, pair: tuple[Path, Path], tmp_path: Path
):
    path = folder / name
    content = path.read_bytes()
    for other in (b"", content[:-1] + bytes([content[-1] ^ 1]), content + b"\0"):
        path.write_bytes(other)
        with pytest.raises(StorageError, match="checksum is another"):
            mdp.check_signature(folder, pair[1])
    path.unlink()
    with pytest.raises(StorageError, match="no such file"):
        mdp.check_signature(folder, pair[1])
    (tmp_path / "elsewhere").write_bytes(content)
    path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(StorageError, match="is a link"):
        mdp.check_signature(folder, pair[1])
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(StorageError, match="something else than a file"):
        mdp.check_signature(folder, pair[1])


@pytest.mark.parametrize("name", ["release.json", "signature.json"])
def test_links_are_no_files_of_a_release(name: str, folder: Path, pair: tuple[Path, Path], tmp_path: Path):
    (folder / name).rename(tmp_path / name)
    with pytest.raises(StorageError, match="no such file"):
        mdp.check_signature(folder, pair[1])
    (folder / name).symlink_to(tmp_path / name)
    with pytest.raises(StorageError, match="is a link"):
        mdp.check_signature(folder, pair[1])


def test_answers_that_the_record_does_not_list(
    release: mdp.Release, key: mdp.SigningKey, pair: tuple[Path, Path], tmp_path: Path
):
    out = mdp.save_release(release, tmp_path / "out", key=key)
    (out / "answers.csv").write_text("group,estimate\n")
    with pytest.raises(StorageError, match="is not listed"):
        mdp.check_signature(out, pair[1])


def test_another_key(folder: Path, pair: tuple[Path, Path], tmp_path: Path):
    other, public = mdp.make_keys(tmp_path / "other")
    with pytest.raises(SignatureError, match="another key"):
        mdp.check_signature(folder, public)
    # a forger signs with a key of their own and says that it is the office's
    path = folder / "signature.json"
    written = json.loads(path.read_text())
    forged = mdp.SigningKey.load(other).sign(SIGNED + (folder / "release.json").read_bytes())
    path.write_text(json.dumps({**written, "signature": base64.b64encode(forged).decode()}))
    with pytest.raises(SignatureError, match="not a signature of this"):
        mdp.check_signature(folder, pair[1])


def test_signatures_of_other_releases_and_of_other_things(
    release: mdp.Release, key: mdp.SigningKey, folder: Path, pair: tuple[Path, Path], tmp_path: Path
):
    other = mdp.save_release(release, tmp_path / "other", key=key)
    shutil.copy(other / "signature.json", folder)
    with pytest.raises(SignatureError, match="made for another release"):
        mdp.check_signature(folder, pair[1])
    # what the key signed elsewhere, without the line that says what it is, is no signature of a release
    path = folder / "signature.json"
    written = json.loads(path.read_text())
    elsewhere = key.sign((folder / "release.json").read_bytes())
    path.write_text(json.dumps({**written, "signature": base64.b64encode(elsewhere).decode()}))
    with pytest.raises(SignatureError, match="not a signature of this"):
        mdp.check_signature(folder, pair[1])


def changed(**fields: object):
    return lambda written: {**written, **fields}


@pytest.mark.parametrize(
    "change",
    [
        changed(format="other"),
        changed(format_version=2),
        changed(format_version=True),
        changed(format_version=1.0),
        changed(algorithm="none"),
        changed(signs="other.json"),
        changed(signature=""),
        changed(signature="!!"),
        changed(signature=3),
        changed(signature=[]),
        changed(signature="é"),
        changed(key=3),
        changed(key="x" * 500),
        changed(more=1),
        lambda written: {name: written[name] for name in written if name != "key"},
        lambda written: [written],
        lambda written: None,
        lambda written: "x" * 20_000,
    ],
)
def test_damaged_signatures(change, folder: Path, pair: tuple[Path, Path]):
    path = folder / "signature.json"
    path.write_text(json.dumps(change(json.loads(path.read_text()))))
    with pytest.raises(MatrixDPError) as error:
        mdp.check_signature(folder, pair[1])
    assert len(str(error.value)) < 600


@pytest.mark.parametrize("content", [b"", b"\xff", b"{", b"[" * 5000, b"null"])
def test_files_that_are_no_signature(content: bytes, folder: Path, pair: tuple[Path, Path]):
    (folder / "signature.json").write_bytes(content)
    with pytest.raises(SignatureError, match="damaged"):
        mdp.check_signature(folder, pair[1])


@pytest.mark.parametrize(
    "record",
    ["[]", "x", '{"format": "other"}', '{"format": "matrixdp release"}', '{"a": 1, "a": 2}', '{"a": NaN}',
     '{"format": "matrixdp release", "files": {"measurement.mdp": {}, "../x": {}}}',
     '{"format": "matrixdp release", "files": {"answers.csv": {}}}'],
)  # fmt: skip
def test_what_is_signed_must_be_a_record(
    record: str, key: mdp.SigningKey, pair: tuple[Path, Path], tmp_path: Path
):
    (tmp_path / "release.json").write_text(record)
    signatures.write_signature(tmp_path, key)
    with pytest.raises(StorageError):
        mdp.check_signature(tmp_path, pair[1])


def test_signing_a_release_that_is_there(release: mdp.Release, pair: tuple[Path, Path], tmp_path: Path):
    key = mdp.SigningKey.load(pair[0])
    out = mdp.save_release(release, tmp_path / "out")
    with pytest.raises(StorageError, match=r"signature\.json: no such file"):
        mdp.check_signature(out, pair[1])
    assert mdp.sign_release(out, key) == out / "signature.json"
    mdp.check_signature(out, pair[1])
    with pytest.raises(SignatureError, match="already"):
        mdp.sign_release(out, key)
    with pytest.raises(SignatureError, match="already"):
        signatures.write_signature(out, key)
    other, public = mdp.make_keys(tmp_path / "other")
    mdp.sign_release(out, other, force=True)
    mdp.check_signature(out, public)
    # a link is replaced, and what it leads to is not written to
    (tmp_path / "mine").write_text("mine")
    (out / "signature.json").unlink()
    (out / "signature.json").symlink_to(tmp_path / "mine")
    mdp.sign_release(out, key, force=True)
    assert (tmp_path / "mine").read_text() == "mine"
    mdp.check_signature(out, pair[1])


def test_only_whole_releases_are_signed(release: mdp.Release, key: mdp.SigningKey, tmp_path: Path):
    out = mdp.save_release(release, tmp_path / "out", csv=True)
    with (out / "answers.csv").open("a") as stream:
        stream.write("one more\n")
    with pytest.raises(StorageError, match="checksum"):
        mdp.sign_release(out, key)
    with pytest.raises(StorageError, match=r"no release\.json"):
        mdp.sign_release(tmp_path, key)
    assert not (out / "signature.json").exists()


def test_a_signature_that_cannot_be_written(
    release: mdp.Release, key: mdp.SigningKey, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    out = mdp.save_release(release, tmp_path / "out")

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(SignatureError, match="No space left"):
        mdp.sign_release(out, key)
    assert "signature.json" not in names(out)


def test_a_signed_release_is_replaced_whole(
    release: mdp.Release, key: mdp.SigningKey, folder: Path, pair: tuple[Path, Path]
):
    mdp.save_release(release, folder, force=True)
    assert names(folder) == ["answers.parquet", "measurement.mdp", "release.json"]
    mdp.save_release(release, folder, force=True, key=key)
    mdp.check_signature(folder, pair[1])


def test_other_programs_check_the_signature(signed: Path, pair: tuple[Path, Path]):
    written = json.loads((signed / "signature.json").read_text())
    message = b"matrixdp release.json, signature version 1\n" + (signed / "release.json").read_bytes()
    public = load_pem_public_key(pair[1].read_bytes())
    assert isinstance(public, Ed25519PublicKey)
    public.verify(base64.b64decode(written["signature"]), message)
    der = public.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    assert written["key"] == hashlib.sha256(der).hexdigest()
