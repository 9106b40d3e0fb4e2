"""Whether a release is signed with a key."""

from __future__ import annotations

import os
from pathlib import Path

from matrixdp.errors import MatrixDPError
from matrixdp.release.keys import PublicKey
from matrixdp.release.leftovers import SIGNATURE
from matrixdp.release.signatures import check_signature
from matrixdp.review.finding import Finding

__all__ = ["signature_finding"]


def signature_finding(folder: Path, key: PublicKey | None) -> Finding:
    """Return whether the holder of a key signed a release as it stands."""
    if key is None:
        signed = os.path.lexists(folder / SIGNATURE)
        words = "there is one, and the public key was not given (--key)" if signed else "there is none"
        return Finding("signature", "not checked", words)
    try:
        check_signature(folder, key)
    except MatrixDPError as error:
        return Finding("signature", "failed", str(error))
    return Finding("signature", "ok", f"record and files are those that the key {key.fingerprint} signed")
