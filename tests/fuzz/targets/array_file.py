"""NumPy files that a specification names: any bytes, and valid ones with another header."""

from collections.abc import Iterable
from io import BytesIO
from pathlib import Path

import numpy as np

from matrixdp.specification import entry_from_spec
from tests.fuzz.archives import changed_array
from tests.fuzz.oracle import Case, Finding
from tests.fuzz.recipe import Recipe


def _files() -> list[bytes]:
    files = []
    for array in (
        np.tri(4),
        np.eye(4, dtype=np.int8),
        np.zeros((2, 4), dtype=bool),
        np.ones(4, dtype=np.uint64),
    ):
        stream = BytesIO()
        np.save(stream, array)
        files.append(stream.getvalue())
    return files


def seeds(folder: Path) -> Iterable[bytes]:
    """Return the files, a header that nests deeply, and recipes that leave each as it is."""
    deep = b"\x93NUMPY\x01\x00\x28\x23" + b"-" * 8999 + b"1"
    return [
        *(b"\0" + file for file in (*_files(), deep)),
        *(bytes([1, place]) for place in range(len(_files()))),
    ]


def opened(folder: Path) -> Case:
    """Return what reads one as the matrix of an entry: its numbers are finite."""
    files, path = _files(), folder / "queries.npy"

    def case(data: bytes) -> None:
        recipe = Recipe(data)
        raw = recipe.below(256) == 0
        path.write_bytes(recipe.rest() if raw else changed_array(recipe.choice(files), recipe))
        entry = entry_from_spec({"product": {"code": {"matrix": "queries.npy"}}}, folder)
        written = entry.to_spec()
        if "nan" in str(written) or "inf" in str(written):
            raise Finding("a matrix with numbers that are none")

    return case
