"""Keys that sign releases: Ed25519 (RFC 8032), in PEM files that other programs read too."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Self, final

from matrixdp.errors import SignatureError
from matrixdp.storage.archive import sync_folder

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

__all__ = ["PublicKey", "SigningKey", "make_keys", "read_passphrase"]

_LARGEST_FILE = 1 << 16
_PRIVATE = "the PEM file of an Ed25519 private key, the file KEY of `matrixdp keys KEY`"
_PUBLIC = "the PEM file of an Ed25519 public key, the file KEY.pub of `matrixdp keys KEY`"


def _library() -> tuple[ModuleType, ModuleType]:
    """Return what signs, and what reads keys."""
    try:
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.asymmetric import ed25519
    except ImportError:
        raise SignatureError(
            "signatures need the package cryptography, which is not installed: pip install "
            "'matrixdp[signatures]'"
        ) from None
    return ed25519, serialization


def _content(path: Path, expected: str) -> bytes:
    try:
        with path.open("rb") as stream:
            content = stream.read(_LARGEST_FILE + 1)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "a name that is not a path"
        raise SignatureError(f"{path}: cannot be read ({reason}); expected {expected}") from None
    if len(content) > _LARGEST_FILE:
        raise SignatureError(f"{path}: found more than {_LARGEST_FILE} bytes; expected {expected}")
    return content


def _read(load: Callable[[bytes], Any], kind: type[Any], path: Path, expected: str) -> Any:
    """Return the key of a kind that a file holds; whatever is wrong with it is one error."""
    from cryptography.exceptions import UnsupportedAlgorithm

    content = _content(path, expected)
    try:
        key = load(content)
    except (ValueError, UnsupportedAlgorithm):
        found = "no such key" if expected == _PUBLIC else "no such key, or another passphrase"
        if expected == _PUBLIC and b"PRIVATE KEY-----" in content:
            found = "a private key, which stays with its owner"
        if expected == _PRIVATE and b"PUBLIC KEY-----" in content:
            found = "a public key"
        raise SignatureError(f"{path}: found {found}; expected {expected}") from None
    if not isinstance(key, kind):
        raise SignatureError(f"{path}: found a key of another kind; expected {expected}")
    return key


@final
class PublicKey:
    """A key that tells whether its private half signed something.

    Attributes
    ----------
    fingerprint : str
        The SHA-256 of the key (of its DER form, RFC 8410), by which people compare keys.
    """

    def __init__(self, key: Ed25519PublicKey) -> None:
        _, serialization = _library()
        self._key = key
        form = serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
        self.fingerprint = hashlib.sha256(key.public_bytes(*form)).hexdigest()

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Return the public key that a PEM file holds.

        Raises
        ------
        SignatureError
            If there is no such file, or it holds something else, such as a private key or one of another
            kind.
        """
        ed25519, serialization = _library()
        load = serialization.load_pem_public_key
        return cls(_read(load, ed25519.Ed25519PublicKey, Path(path), _PUBLIC))

    def holds(self, signature: bytes, message: bytes) -> bool:
        """Return whether the private half signed a message."""
        from cryptography.exceptions import InvalidSignature

        try:
            self._key.verify(signature, message)
        except InvalidSignature:
            return False
        return True


@final
class SigningKey:
    """A private key in memory, ready to sign.

    Attributes
    ----------
    public : PublicKey
        Its public half.
    """

    def __init__(self, key: Ed25519PrivateKey) -> None:
        self._key = key
        self.public = PublicKey(key.public_key())

    @classmethod
    def load(cls, path: str | os.PathLike[str], passphrase: bytes | None = None) -> Self:
        """Return the private key that a PEM file holds.

        Parameters
        ----------
        path : str or path
            The file.
        passphrase : bytes, optional
            What the file is encrypted with.

        Raises
        ------
        SignatureError
            If there is no such file, it holds something else, or the passphrase is missing or another.
        """
        ed25519, serialization = _library()
        place = Path(path)

        def load(content: bytes) -> Any:
            try:
                return serialization.load_pem_private_key(content, passphrase)
            except TypeError:
                found = "an encrypted key, and no passphrase" if passphrase is None else "a key without one"
                raise SignatureError(
                    f"{place}: found {found}; expected a passphrase where there is one"
                ) from None

        return cls(_read(load, ed25519.Ed25519PrivateKey, place, _PRIVATE))

    def sign(self, message: bytes) -> bytes:
        """Return the signature of a message, 64 bytes; the same one every time."""
        return self._key.sign(message)


def make_keys(path: str | os.PathLike[str], passphrase: bytes | None = None) -> tuple[Path, Path]:
    """Make a pair of keys, and write each to a PEM file of its own.

    Parameters
    ----------
    path : str or path
        Where the private key goes, readable by its owner alone; the public one gets the ending ``.pub``.
    passphrase : bytes, optional
        What the private key is encrypted with; without it whoever reads the file can sign.

    Returns
    -------
    tuple of Path
        The private and the public key.

    Raises
    ------
    SignatureError
        If one of the files is there already, cannot be written, or the passphrase cannot be used.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     private, public = make_keys(f"{folder}/office")
    ...     private.name, public.name, oct(private.stat().st_mode & 0o777)
    ...     SigningKey.load(private).public.fingerprint == PublicKey.load(public).fingerprint
    ('office', 'office.pub', '0o600')
    True
    """
    ed25519, serialization = _library()
    private = Path(path)
    public = private.with_name(f"{private.name}.pub")
    key = ed25519.Ed25519PrivateKey.generate()
    pem = serialization.Encoding.PEM
    try:
        how = (
            serialization.NoEncryption()
            if passphrase is None
            else serialization.BestAvailableEncryption(passphrase)
        )
        secret = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, how)
    except ValueError:
        raise SignatureError(
            "passphrase: found one that is empty or too long; expected 1 to 1,023 bytes"
        ) from None
    for path_ in (private, public):
        if os.path.lexists(path_):
            raise SignatureError(f"{path_}: is there already, and keys are never replaced")
    _write(private, secret, 0o600)
    try:
        form = serialization.PublicFormat.SubjectPublicKeyInfo
        _write(public, key.public_key().public_bytes(pem, form), 0o644)
    except BaseException:
        private.unlink(missing_ok=True)
        raise
    return private, public


def _write(path: Path, content: bytes, mode: int) -> None:
    """Write a new file, durably; it is never readable by more than the mode says."""
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        sync_folder(path.parent)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "a name that is not a path"
        raise SignatureError(f"{path}: cannot be written ({reason})") from None


def read_passphrase(path: str | os.PathLike[str]) -> bytes:
    """Return the first line of a file.

    Raises
    ------
    SignatureError
        If the file cannot be read, or its first line is empty.
    """
    expected = "a file whose first line is a passphrase"
    line = _content(Path(path), expected).split(b"\n", 1)[0].removesuffix(b"\r")
    if not line:
        raise SignatureError(f"{path}: found an empty first line; expected {expected}")
    return line
