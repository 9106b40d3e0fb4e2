"""Detached signatures of releases: whoever lacks the key cannot make a release that its holder made.

What is signed is ``release.json``, which holds the digests of all other files, after a line that says so:
no signature made for anything else is one of a release.
"""

from __future__ import annotations

import base64
import json
import os
from pathlib import Path
from typing import Any

from matrixdp.errors import SignatureError
from matrixdp.release.files import check_files
from matrixdp.release.keys import PublicKey, SigningKey
from matrixdp.release.leftovers import RECORD, SIGNATURE
from matrixdp.storage.archive import sync_folder
from matrixdp.storage.files import plain_content

__all__ = ["SIGNED", "check_signature", "write_signature"]

#: Comes before the bytes of ``release.json`` in the message that is signed.
SIGNED = b"matrixdp release.json, signature version 1\n"
_LARGEST_FILE = 10_000
_FORM = {"format": "matrixdp signature", "format_version": 1, "algorithm": "Ed25519", "signs": RECORD}


def write_signature(folder: Path, key: SigningKey) -> Path:
    """Sign the record in a folder, and write the signature beside it, durably."""
    message = SIGNED + plain_content(folder / RECORD)
    signature = base64.b64encode(key.sign(message)).decode("ascii")
    written = {**_FORM, "key": key.public.fingerprint, "signature": signature}
    path = folder / SIGNATURE
    try:
        with path.open("x", encoding="utf-8") as stream:
            stream.write(json.dumps(written, indent=2) + "\n")
            stream.flush()
            os.fsync(stream.fileno())
        sync_folder(folder)
    except FileExistsError:
        raise SignatureError(f"{path}: is there already; replace it by force=True, or --force") from None
    except OSError as error:
        path.unlink(missing_ok=True)
        raise SignatureError(f"{path}: cannot be written ({error.strerror})") from None
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
    content = plain_content(path, _LARGEST_FILE)
    damaged = SignatureError(f"{path}: not a signature of a release, or a damaged one")
    try:
        written = json.loads(content)
        if not isinstance(written, dict) or set(written) != {*_FORM, "key", "signature"}:
            raise damaged
        signature = base64.b64decode(written["signature"], validate=True)
    except (ValueError, TypeError, RecursionError):
        raise damaged from None
    if any(type(written[name]) is not type(value) or written[name] != value for name, value in _FORM.items()):
        raise damaged
    if written["key"] != public.fingerprint:
        raise SignatureError(
            f"{path}: made with another key, {written['key']!r:.80}; expected one of {public.fingerprint}"
        )
    return signature
