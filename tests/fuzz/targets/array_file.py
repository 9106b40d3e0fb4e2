"""NumPy files that a specification names: any bytes, and valid ones with another header."""

from io import BytesIO
from pathlib import Path

import numpy as np

from matrixdp.specification import entry_from_spec
from tests.fuzz.archives import changed_array
from tests.fuzz.forms import as_they_are, raw_or_changed
from tests.fuzz.oracle import Case, Finding


def _files() -> list[bytes]:
    files = []
    for array in (np.tri(4), np.eye(4, dtype="i1"), np.zeros((2, 4), dtype=bool), np.ones(4, dtype="u8")):
        stream = BytesIO()
        np.save(stream, array)
        files.append(stream.getvalue())
    return files


def seeds() -> list[bytes]:
    """Return the files, a header that nests deeply, and recipes that leave each as it is."""
    deep = b"\x93NUMPY\x01\x00\x28\x23" + b"-" * 8999 + b"1"
    return as_they_are(len(_files()), [*_files(), deep])


def opened(folder: Path) -> Case:
    """Return what reads one as the matrix of an entry: its numbers are finite."""
    files, path = _files(), folder / "queries.npy"

    def case(data: bytes) -> None:
        path.write_bytes(raw_or_changed(data, files, changed_array))
        entry = entry_from_spec({"product": {"code": {"matrix": "queries.npy"}}}, folder)
        written = entry.to_spec()
        if "nan" in str(written) or "inf" in str(written):
            raise Finding("a matrix with numbers that are none")

    return case
