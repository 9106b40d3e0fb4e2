"""The folders of releases, as functions."""

from __future__ import annotations

import os

from matrixdp.release.release import Release

__all__ = ["load_release"]


def load_release(out: str | os.PathLike[str], *, confidence: float | None = None) -> Release:
    """Return the release that a folder holds, ready for new queries; the data are not needed.

    The measurement is read if its digest is the one that the record lists. Whatever of the record follows
    from the measurement (the statement, the exact scales, the cost) must be what follows from it. The digests
    of the answers are not checked, as they are not read; `check_signature` and ``matrixdp verify`` do.

    Parameters
    ----------
    out : str or path
        The folder.
    confidence : float, optional
        Of the intervals; what the release was written with where it is left out.

    Returns
    -------
    Release
        With the workload that it was made for.

    Raises
    ------
    StorageError
        If the folder does not hold a release, or one that never took its place, or its files were damaged
        or altered, or its record is of another version.
    """
    return Release.load(out, confidence=confidence)
