"""Detached signatures of releases: nobody without the private key can sign in its holder's name.

What is signed is ``release.json``, which holds the digests of all other files, after a line that says so:
no signature made for anything else is one of a release.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Self, final

from matrixdp.errors import SignatureError, StorageError, file_problem, needing
from matrixdp.releases.record import MEASUREMENT, RECORD, SIGNATURE, listed_in, may_list, read_record
from matrixdp.storage.archive import entry, plain_content, write_durably

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

# Keys that sign releases: Ed25519 (RFC 8032), in PEM files that other programs read too.

_LARGEST_FILE = 1 << 16
_PRIVATE = "the PEM file of an Ed25519 private key, the file KEY of `matrixdp keys KEY`"
_PUBLIC = "the PEM file of an Ed25519 public key, the file KEY.pub of `matrixdp keys KEY`"


def _library() -> tuple[ModuleType, ModuleType]:
    """Return the modules of cryptography that sign and that read keys."""
    with needing("cryptography", "signatures", error=SignatureError):
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.asymmetric import ed25519
    return ed25519, serialization


def _content(path: Path, expected: str) -> bytes:
    try:
        with path.open("rb") as stream:
            content = stream.read(_LARGEST_FILE + 1)
    except (OSError, ValueError) as error:
        raise SignatureError(f"{path}: cannot be read ({file_problem(error)}); expected {expected}") from None
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
        The private key is encrypted with it; without it, anyone who can read the file can sign.

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
        how = serialization.NoEncryption()
        if passphrase is not None:
            how = serialization.BestAvailableEncryption(passphrase)
        secret = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, how)
    except ValueError:
        words = "passphrase: found one that is empty or too long; expected 1 to 1,023 bytes"
        raise SignatureError(words) from None
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
        write_durably(path, content, mode)
    except (OSError, ValueError) as error:
        raise SignatureError(f"{path}: cannot be written ({file_problem(error)})") from None


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


# The files of a release as they stand on disk, held against the record that lists them.


def check_files(folder: Path, content: bytes) -> dict[str, Any]:
    """Return the record of a release, given its bytes, after checking every file that it lists.

    Raises
    ------
    StorageError
        If it is no record, or a file is missing, another one, a link, or one of a release and not listed.
    """
    record = folder / RECORD
    written = read_record(content, record)
    listed = written.get("files")
    if not isinstance(listed, dict) or MEASUREMENT not in listed or not all(map(may_list, listed)):
        raise StorageError(f"{record}: damaged: it does not list the files of a release", "damaged-file")
    there = listed_in(folder)
    for name in sorted({*listed, *there}):
        path = folder / name
        if name not in listed:
            raise StorageError(f"{path}: is not listed in {RECORD}")
        if name not in there:
            raise StorageError(f"{path}: no such file", "file-missing")
        if entry(path, plain=True, like=listed[name]) != listed[name]:
            raise StorageError(f"{path}: does not belong to {RECORD}: its checksum is another")
    return written


#: Comes before the bytes of ``release.json`` in the message that is signed.
SIGNED = b"matrixdp release.json, signature version 1\n"
_LARGEST_SIGNATURE = 10_000
_FORM = {"format": "matrixdp signature", "format_version": 1, "algorithm": "Ed25519", "signs": RECORD}


def write_signature(folder: Path, key: SigningKey) -> Path:
    """Sign the record in a folder, and write the signature beside it, durably."""
    message = SIGNED + plain_content(folder / RECORD)
    signature = base64.b64encode(key.sign(message)).decode("ascii")
    written = {**_FORM, "key": key.public.fingerprint, "signature": signature}
    path = folder / SIGNATURE
    if os.path.lexists(path):
        raise SignatureError(f"{path}: is there already; replace it with --force (in Python: force=True)")
    _write(path, (json.dumps(written, indent=2) + "\n").encode(), 0o666)
    return path


def check_signature(
    folder: str | os.PathLike[str], key: PublicKey | str | os.PathLike[str]
) -> dict[str, Any]:
    """Check that the holder of a key signed a release, and that its files are those that were signed.

    It tells who made the release, and that nothing was changed since. It does not tell that what the signer
    says is true: that the noise was random, say.

    Parameters
    ----------
    folder : str or path
        The folder of the release.
    key : PublicKey or path
        The public key, which must come from a place that you trust; never from the folder.

    Returns
    -------
    dict
        The record that was signed, as it stands in ``release.json``.

    Raises
    ------
    SignatureError
        If there is no signature, or it is not one of this key for this record.
    StorageError
        If the record was signed, and a file is not the one that it names.

    Examples
    --------
    >>> import tempfile
    >>> import matrixdp as mdp
    >>> workload = mdp.Workload(mdp.Domain({"sex": ["female", "male"]}), mdp.marginals(1))
    >>> release = mdp.select(workload).measure({"sex": ["male"]}, mdp.Budget(rho=0.5)).reconstruct()
    >>> with tempfile.TemporaryDirectory() as parent:
    ...     private, public = mdp.make_keys(f"{parent}/office")
    ...     folder = mdp.save_release(release, f"{parent}/out", key=mdp.SigningKey.load(private))
    ...     check_signature(folder, public)["private"]
    True
    """
    public = key if isinstance(key, PublicKey) else PublicKey.load(key)
    place = Path(folder)
    signature = _read_signature(place / SIGNATURE, public)
    content = plain_content(place / RECORD)
    if not public.holds(signature, SIGNED + content):
        raise SignatureError(
            f"{place / SIGNATURE}: not a signature of this {RECORD}: one of the two was changed, or it was "
            "made for another release"
        )
    return check_files(place, content)


def _read_signature(path: Path, public: PublicKey) -> bytes:
    """Return the signature that a file holds, if it says that it is of this key."""
    content = plain_content(path, _LARGEST_SIGNATURE)
    try:
        written = json.loads(content)
        key, signature = written.pop("key"), base64.b64decode(written.pop("signature"), validate=True)
        # as text: 1.0 and true are not 1
        if json.dumps(written, sort_keys=True) != json.dumps(_FORM, sort_keys=True):
            raise ValueError("form")
    except (AttributeError, LookupError, ValueError, TypeError, RecursionError):
        raise SignatureError(f"{path}: not a signature of a release, or a damaged one") from None
    if key != public.fingerprint:
        raise SignatureError(
            f"{path}: made with another key, {key!r:.80}; expected one of {public.fingerprint}"
        )
    return signature
