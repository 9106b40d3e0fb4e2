"""Keys, and the signatures that they make of releases."""

import base64
import builtins
import hashlib
import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ed25519

import matrixdp as mdp
from matrixdp.errors import SignatureError
from matrixdp.releases import read_passphrase, signatures
from matrixdp.releases.signatures import SIGNED
from tests.builders import copied, key, keys, names, release, signed


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return copied(tmp_path)


def check(folder: Path) -> dict[str, Any]:
    return mdp.check_signature(folder, keys()[1])


def refused(function: Any, *arguments: Any, **options: Any) -> str:
    with pytest.raises(SignatureError) as caught:
        function(*arguments, **options)
    return str(caught.value)


def test_only_the_owner_reads_a_private_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    modes: list[int] = []
    fsync = os.fsync

    def watched(descriptor: int) -> None:
        modes.extend(path.stat().st_mode & 0o777 for path in tmp_path.iterdir() if path.name == "office")
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", watched)
    private, public = mdp.make_keys(tmp_path / "office")
    assert (private.name, public.name) == ("office", "office.pub")
    assert {*modes, private.stat().st_mode & 0o777} == {0o600}
    assert modes
    assert private.read_bytes().startswith(b"-----BEGIN PRIVATE KEY-----")
    assert public.read_bytes().startswith(b"-----BEGIN PUBLIC KEY-----")
    assert b"PRIVATE" not in public.read_bytes()


def test_a_key_signs_one_message():
    signature = key().sign(b"a message")
    assert mdp.PublicKey.load(keys()[1]).holds(signature, b"a message")
    assert not mdp.PublicKey.load(keys()[1]).holds(signature, b"a message!")
    assert key().sign(b"a message") == signature


def test_keys_are_never_replaced(tmp_path: Path):
    pair = mdp.make_keys(tmp_path / "office")
    before = [path.read_bytes() for path in pair]
    (tmp_path / "other.pub").write_text("mine")
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    for name in ("office", "other", "link"):
        assert "never replaced" in refused(mdp.make_keys, tmp_path / name)
    assert names(tmp_path) == ["link", "office", "office.pub", "other.pub"]
    assert [path.read_bytes() for path in pair] == before


def test_a_public_key_that_cannot_be_written_leaves_no_private_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    write = signatures._write

    def full(path: Path, content: bytes, mode: int) -> None:
        if path.suffix == ".pub":
            raise SignatureError("the disk is full")
        write(path, content, mode)

    monkeypatch.setattr(signatures, "_write", full)
    assert "full" in refused(mdp.make_keys, tmp_path / "office")
    assert names(tmp_path) == []


def test_passphrases(tmp_path: Path):
    private, public = mdp.make_keys(tmp_path / "office", b"a long one")
    assert b"ENCRYPTED" in private.read_bytes()
    own = mdp.SigningKey.load(private, b"a long one")
    assert own.public.fingerprint == mdp.PublicKey.load(public).fingerprint
    for content, expected in ((b"one", b"one"), (b"two words\r\nrest", b"two words"), (b" \n", b" ")):
        (tmp_path / "passphrase").write_bytes(content)
        assert read_passphrase(tmp_path / "passphrase") == expected


def test_without_the_package_the_error_names_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    importer, (private, public) = builtins.__import__, keys()

    def without(name: str, *arguments: Any) -> Any:
        if name.startswith("cryptography"):
            raise ImportError(name)
        return importer(name, *arguments)

    monkeypatch.setattr(builtins, "__import__", without)
    uses = (mdp.make_keys, tmp_path / "other"), (mdp.SigningKey.load, private), (mdp.PublicKey.load, public)
    for function, path in uses:
        assert "pip install '.[signatures]'" in refused(function, path)


def test_a_signed_release():
    files = ["answers.csv", "answers.parquet", "measurement.mdp", "release.json", "signature.json"]
    assert names(signed()) == files
    record = check(signed())
    assert record == json.loads((signed() / "release.json").read_text())
    assert mdp.check_signature(str(signed()), mdp.PublicKey.load(keys()[1])) == record
    assert mdp.load_release(signed()).private


def test_every_byte_of_the_record_is_signed(folder: Path):
    path = folder / "release.json"
    content = path.read_bytes()
    others = [content + b" ", content[:-1], content.replace(b"\n", b"\r\n")]
    for place in [*range(0, len(content), max(1, len(content) // 200)), len(content) - 1]:
        changed = bytearray(content)
        changed[place] ^= 1
        others.append(bytes(changed))
    for other in others:
        path.write_bytes(other)
        assert "not a signature of this" in refused(check, folder)
    path.write_bytes(content)
    check(folder)


@pytest.mark.parametrize("name", ["measurement.mdp", "answers.parquet", "answers.csv"])
def test_every_file_is_the_one_that_was_signed(name: str, folder: Path):
    content = (folder / name).read_bytes()
    for other in (content[:-1] + bytes([content[-1] ^ 1]), content + b"\0"):
        (folder / name).write_bytes(other)
        with pytest.raises(mdp.StorageError, match="checksum is another"):
            check(folder)


def test_signatures_of_other_keys_releases_and_things(folder: Path, tmp_path: Path):
    other, public = mdp.make_keys(tmp_path / "other")
    assert "another key" in refused(mdp.check_signature, folder, public)
    path, content = folder / "signature.json", (folder / "release.json").read_bytes()
    written = json.loads(path.read_text())
    for named in (3, "x" * 500):
        path.write_text(json.dumps({**written, "key": named}))
        assert len(refused(check, folder)) < 600
    # a forger signs with a key of their own and says that it is the office's; what the key signed elsewhere,
    # without the line that says what it is, is no signature of a release
    for made in (mdp.SigningKey.load(other).sign(SIGNED + content), key().sign(content)):
        path.write_text(json.dumps({**written, "signature": base64.b64encode(made).decode()}))
        assert "not a signature of this" in refused(check, folder)
    again = mdp.save_release(release(), tmp_path / "again", key=key())
    shutil.copy(again / "signature.json", folder)
    assert "made for another release" in refused(check, folder)


def test_signing_a_release_that_is_there(tmp_path: Path):
    out = mdp.save_release(release(), tmp_path / "out")
    assert mdp.sign_release(out, key()) == out / "signature.json"
    check(out)
    other, public = mdp.make_keys(tmp_path / "other")
    mdp.sign_release(out, other, force=True)
    mdp.check_signature(out, public)
    # a link to the folder leads to it
    (tmp_path / "way").symlink_to(out)
    mdp.sign_release(tmp_path / "way", key(), force=True)
    check(out)
    # a link is replaced, and what it leads to is not written to
    (tmp_path / "mine").write_text("mine")
    (out / "signature.json").unlink()
    (out / "signature.json").symlink_to(tmp_path / "mine")
    mdp.sign_release(out, key(), force=True)
    assert (tmp_path / "mine").read_text() == "mine"
    check(out)


def test_a_signature_that_cannot_be_written(folder: Path, monkeypatch: pytest.MonkeyPatch):
    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    (folder / "signature.json").unlink()
    monkeypatch.setattr(os, "fsync", full)
    assert "No space left" in refused(mdp.sign_release, folder, key())
    assert "signature.json" not in names(folder)


def test_a_signed_release_is_replaced_whole(folder: Path):
    mdp.save_release(release(), folder, force=True)
    assert names(folder) == ["answers.parquet", "measurement.mdp", "release.json"]
    mdp.save_release(release(), folder, force=True, key=key())
    check(folder)


def test_other_programs_read_the_keys_and_check_the_signature():
    private, public = (path.read_bytes() for path in keys())
    assert isinstance(serialization.load_pem_private_key(private, None), ed25519.Ed25519PrivateKey)
    loaded = serialization.load_pem_public_key(public)
    assert isinstance(loaded, ed25519.Ed25519PublicKey)
    written = json.loads((signed() / "signature.json").read_text())
    message = b"matrixdp release.json, signature version 1\n" + (signed() / "release.json").read_bytes()
    loaded.verify(base64.b64decode(written["signature"]), message)
    der = loaded.public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
    assert written["key"] == hashlib.sha256(der).hexdigest()
