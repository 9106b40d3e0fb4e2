"""Signing a release that is there already."""

from __future__ import annotations

import os
from pathlib import Path

from matrixdp.errors import SignatureError
from matrixdp.release.files import check_files
from matrixdp.release.folders import load_release
from matrixdp.release.keys import SigningKey
from matrixdp.release.leftovers import RECORD, SIGNATURE
from matrixdp.release.signatures import write_signature
from matrixdp.storage.files import plain_content

__all__ = ["sign_release"]


def sign_release(
    folder: str | os.PathLike[str], key: SigningKey | str | os.PathLike[str], *, force: bool = False
) -> Path:
    """Sign a release that is there already, after checking that it is whole.

    Its record must say what its measurement is, and every file must be the one that the record lists. What a
    signer vouches for beyond that is the signer's own: see the page on privacy.

    Parameters
    ----------
    folder : str or path
        The folder of the release.
    key : SigningKey or path
        Signs it; a path is that of a private key without a passphrase.
    force : bool
        Whether a signature that is there may be replaced.

    Returns
    -------
    Path
        The file of the signature, ``signature.json`` in the folder.

    Raises
    ------
    StorageError
        If the folder does not hold a whole release.
    SignatureError
        If there is a signature already, or it cannot be written.
    """
    place = Path(folder)
    key = key if isinstance(key, SigningKey) else SigningKey.load(key)
    load_release(place)
    check_files(place, plain_content(place / RECORD))
    path = place / SIGNATURE
    if os.path.lexists(path):
        if not force:
            raise SignatureError(f"{path}: is there already; replace it by force=True, or --force")
        path.unlink()
    return write_signature(place, key)
