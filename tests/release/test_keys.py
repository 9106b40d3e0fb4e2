import builtins
import os
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ed25519, rsa, x25519

import matrixdp as mdp
from matrixdp.errors import SignatureError
from matrixdp.releases import read_passphrase
from matrixdp.releases import signatures as keys_module


@pytest.fixture
def pair(tmp_path: Path) -> tuple[Path, Path]:
    return mdp.make_keys(tmp_path / "office")


def test_only_the_owner_reads_a_private_key(pair: tuple[Path, Path]):
    private, public = pair
    assert [path.name for path in pair] == ["office", "office.pub"]
    assert private.stat().st_mode & 0o777 == 0o600
    assert private.read_bytes().startswith(b"-----BEGIN PRIVATE KEY-----")
    assert public.read_bytes().startswith(b"-----BEGIN PUBLIC KEY-----")
    key = mdp.SigningKey.load(private)
    message = b"a message"
    assert mdp.PublicKey.load(public).holds(key.sign(message), message)
    assert not mdp.PublicKey.load(public).holds(key.sign(message), message + b"!")
    assert key.sign(message) == key.sign(message)
    assert b"PRIVATE" not in public.read_bytes()


def test_a_private_key_is_never_readable_by_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    modes: list[int] = []
    fsync = os.fsync

    def watched(descriptor: int) -> None:
        modes.extend(path.stat().st_mode & 0o777 for path in tmp_path.iterdir() if path.name == "office")
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", watched)
    mdp.make_keys(tmp_path / "office")
    assert modes
    assert set(modes) == {0o600}


def test_keys_are_never_replaced(pair: tuple[Path, Path], tmp_path: Path):
    before = [path.read_bytes() for path in pair]
    with pytest.raises(SignatureError, match="never replaced"):
        mdp.make_keys(pair[0])
    (tmp_path / "other.pub").write_text("mine")
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    for name in ("other", "link"):
        with pytest.raises(SignatureError, match="never replaced"):
            mdp.make_keys(tmp_path / name)
    assert not (tmp_path / "other").exists()
    assert not (tmp_path / "elsewhere").exists()
    assert [path.read_bytes() for path in pair] == before
    for place in (tmp_path / "none" / "office", tmp_path / ("x" * 300), "a\0b"):
        with pytest.raises(SignatureError, match=r"cannot be written|not a path"):
            mdp.make_keys(place)


def test_a_public_key_that_cannot_be_written_leaves_no_private_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    write = keys_module._write

    def full(path: Path, content: bytes, mode: int) -> None:
        if path.suffix == ".pub":
            raise SignatureError("the disk is full")
        write(path, content, mode)

    monkeypatch.setattr(keys_module, "_write", full)
    with pytest.raises(SignatureError, match="full"):
        mdp.make_keys(tmp_path / "office")
    assert list(tmp_path.iterdir()) == []


def test_passphrases(tmp_path: Path):
    private, public = mdp.make_keys(tmp_path / "office", b"a long one")
    assert b"ENCRYPTED" in private.read_bytes()
    key = mdp.SigningKey.load(private, b"a long one")
    assert key.public.fingerprint == mdp.PublicKey.load(public).fingerprint
    with pytest.raises(SignatureError, match="another passphrase"):
        mdp.SigningKey.load(private, b"another")
    with pytest.raises(SignatureError, match="an encrypted key, and no passphrase"):
        mdp.SigningKey.load(private)
    plain, _ = mdp.make_keys(tmp_path / "plain")
    with pytest.raises(SignatureError, match="a key without one"):
        mdp.SigningKey.load(plain, b"a long one")
    for refused in (b"", b"x" * 2000):
        with pytest.raises(SignatureError, match="empty or too long"):
            mdp.make_keys(tmp_path / "third", refused)
    assert not (tmp_path / "third").exists()


def test_the_passphrase_is_the_first_line_of_a_file(tmp_path: Path):
    for content, expected in ((b"one", b"one"), (b"two words\r\nrest", b"two words"), (b" \n", b" ")):
        (tmp_path / "passphrase").write_bytes(content)
        assert read_passphrase(tmp_path / "passphrase") == expected
    for content in (b"", b"\nsecond", b"\r\n"):
        (tmp_path / "passphrase").write_bytes(content)
        with pytest.raises(SignatureError, match="empty first line"):
            read_passphrase(tmp_path / "passphrase")
    with pytest.raises(SignatureError, match="cannot be read"):
        read_passphrase(tmp_path / "nowhere")


def pem(key: Any) -> bytes:
    form = serialization.PrivateFormat.PKCS8
    return key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption())


def public_pem(key: Any) -> bytes:
    form = serialization.PublicFormat.SubjectPublicKeyInfo
    return key.public_key().public_bytes(serialization.Encoding.PEM, form)


def test_keys_of_another_kind(tmp_path: Path):
    path = tmp_path / "key"
    others = (x25519.X25519PrivateKey.generate(), rsa.generate_private_key(65537, 2048))
    for other in others:
        path.write_bytes(pem(other))
        with pytest.raises(SignatureError, match="of another kind"):
            mdp.SigningKey.load(path)
        path.write_bytes(public_pem(other))
        with pytest.raises(SignatureError, match="of another kind"):
            mdp.PublicKey.load(path)


@pytest.mark.parametrize("content", [b"", b"\0" * 10, b"-----BEGIN PRIVATE KEY-----\n", b"x" * 70_000])
def test_files_that_hold_no_key(content: bytes, tmp_path: Path):
    path = tmp_path / "key"
    path.write_bytes(content)
    for load in (mdp.SigningKey.load, mdp.PublicKey.load):
        with pytest.raises(SignatureError, match="expected the PEM file"):
            load(path)
        for nowhere in (tmp_path, tmp_path / "nowhere", "a\0b"):
            with pytest.raises(SignatureError, match="cannot be read"):
                load(nowhere)


def test_without_the_package_the_error_names_the_extra(
    pair: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    importer = builtins.__import__

    def without(name: str, *arguments: Any) -> Any:
        if name.startswith("cryptography"):
            raise ImportError(name)
        return importer(name, *arguments)

    monkeypatch.setattr(builtins, "__import__", without)
    for use in (
        lambda: mdp.make_keys(tmp_path / "other"),
        lambda: mdp.SigningKey.load(pair[0]),
        lambda: mdp.PublicKey.load(pair[1]),
    ):
        with pytest.raises(SignatureError, match=r"pip install 'matrixdp\[signatures\]'"):
            use()


def test_other_programs_read_the_keys(pair: tuple[Path, Path]):
    loaded = serialization.load_pem_private_key(pair[0].read_bytes(), None)
    assert isinstance(loaded, ed25519.Ed25519PrivateKey)
    assert public_pem(loaded) == pair[1].read_bytes()


def test_one_key_in_the_place_of_the_other_is_named(tmp_path: Path):
    private, public = mdp.make_keys(tmp_path / "office")
    with pytest.raises(SignatureError, match=r"office: found a private key, .*; expected .* KEY\.pub of"):
        mdp.PublicKey.load(private)
    with pytest.raises(SignatureError, match=r"office\.pub: found a public key; expected .* private key"):
        mdp.SigningKey.load(public)
