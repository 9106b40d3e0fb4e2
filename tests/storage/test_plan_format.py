"""Matrices that cannot be saved, and saved ones that do not fit."""

from pathlib import Path

import numpy as np
import pytest

from matrixdp.errors import StorageError
from matrixdp.exact import IntegerMatrix
from matrixdp.storage import plan_format
from matrixdp.storage.archive import ArchiveReader, ArchiveWriter

KIND = "matrixdp thing"


def read_back(tmp_path: Path, matrix: IntegerMatrix) -> IntegerMatrix:
    with ArchiveWriter(tmp_path / "x.mdp") as archive:
        form = plan_format._write_matrix(matrix, archive)
        archive.close({"format": KIND, "format_version": 1, "form": form})
    with ArchiveReader(tmp_path / "x.mdp", KIND, 1) as archive:
        again = plan_format._read_matrix(archive.header["form"], archive)
    assert isinstance(again, IntegerMatrix)
    return again


def test_what_is_measured_too_weakly_is_kept_with_a_matrix(tmp_path: Path):
    outside = np.array([[0.6, 0.8]])
    again = read_back(tmp_path, IntegerMatrix(np.array([[3, 1], [0, 2]]), outside))
    np.testing.assert_array_equal(again.unsupported, outside)
    np.testing.assert_array_equal(again.entries, [[3, 1], [0, 2]])


@pytest.mark.parametrize("outside", [np.ones((1, 3)), np.ones(2)])
def test_directions_that_do_not_fit_their_matrix_are_refused(tmp_path: Path, outside: np.ndarray):
    with pytest.raises(StorageError, match="the unsupported directions of a matrix do not fit it"):
        read_back(tmp_path, IntegerMatrix(np.array([[3, 1], [0, 2]]), outside))


def test_a_matrix_of_a_strangers_kind_cannot_be_saved(tmp_path: Path):
    with (
        ArchiveWriter(tmp_path / "x.mdp") as archive,
        pytest.raises(StorageError, match="a matrix of kind int cannot be saved"),
    ):
        plan_format._write_matrix(3, archive)  # type: ignore[arg-type]  # stands for a stranger's class
    assert not list(tmp_path.iterdir())
