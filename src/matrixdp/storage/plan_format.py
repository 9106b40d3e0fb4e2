"""Plans in archives: distinct matrices and weight vectors once, parts as a table that refers to them.

A plan can have ten thousand parts that share three matrices. Nothing that follows from the matrices is saved:
sensitivities and the privacy cost are recomputed when a plan is read.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from matrixdp.domain import Domain
from matrixdp.errors import MatrixDPError, StorageError
from matrixdp.exact import (
    CenteredMatrix,
    DeficientMatrix,
    ExplicitMatrix,
    IdentityMatrix,
    IntegerMatrix,
    MeasuredMatrix,
)
from matrixdp.plan import PLAN_KINDS, Block, Part, Plan
from matrixdp.storage.archive import ArchiveReader, ArchiveWriter

__all__ = ["read_plan", "write_plan"]

#: What every kind of plan has.
_COMMON = ("domain", "parts", "noise")


def write_plan(plan: Plan, archive: ArchiveWriter) -> dict[str, object]:
    """Add a plan's arrays to an archive and return the rest for its header.

    Parameters
    ----------
    plan : Plan
        The plan.
    archive : ArchiveWriter
        Where the arrays go.

    Raises
    ------
    StorageError
        If a matrix is of a kind that has no form in archives.
    """
    matrices: list[dict[str, object]] = []
    places: dict[object, int] = {}
    multipliers: dict[bytes, str] = {}
    parts: list[dict[str, object]] = []
    for part in plan.parts:
        blocks = []
        for block in part.blocks:
            key = _matrix_key(block.matrix)
            if key not in places:
                places[key] = len(matrices)
                matrices.append(_write_matrix(block.matrix, archive))
            blocks.append([[plan.domain.index(name) for name in block.attributes], places[key]])
        row: dict[str, object] = {
            "attributes": [plan.domain.index(name) for name in part.attributes],
            "blocks": blocks,
            "variance": part.variance,
        }
        if part.multipliers is not None:
            content = part.multipliers.tobytes()
            if content not in multipliers:
                multipliers[content] = archive.add(part.multipliers.astype(np.int64).ravel())
            row["multipliers"] = multipliers[content]
        parts.append(row)
    return {
        "matrices": matrices,
        "kind": plan.kind,
        "vectors": _write_vectors(plan, archive),
        "noise": plan.noise,
        "parts": parts,
    }


def _matrix_key(matrix: MeasuredMatrix) -> object:
    outside = matrix.outside if isinstance(matrix, IntegerMatrix) else None
    return (matrix.digest(), None if outside is None else outside.tobytes())


def _write_matrix(matrix: MeasuredMatrix, archive: ArchiveWriter) -> dict[str, object]:
    if isinstance(matrix, IdentityMatrix):
        return {"kind": "identity", "size": matrix.size}
    if isinstance(matrix, CenteredMatrix):
        return {"kind": "centered", "size": matrix.size}
    if not isinstance(matrix, ExplicitMatrix):
        raise StorageError(f"a matrix of kind {type(matrix).__name__} cannot be saved")
    kind = "integer" if isinstance(matrix, IntegerMatrix) else "deficient"
    form: dict[str, object] = {"kind": kind, "rows": matrix.rows, "size": matrix.columns}
    form["entries"] = archive.add(_smallest(matrix.entries))
    if isinstance(matrix, IntegerMatrix) and matrix.outside is not None:
        form["unsupported"] = archive.add(np.asarray(matrix.outside, dtype=np.float64))
    return form


def _smallest(values: NDArray[np.int64]) -> NDArray[Any]:
    narrow = int(np.abs(values).max(initial=0)) < 2**31
    return values.astype(np.int32) if narrow else values.astype(np.int64)


def _write_vectors(plan: Plan, archive: ArchiveWriter) -> dict[str, object]:
    """Return what the kind of plan has beside its parts: mappings of names to arrays, equal ones once."""
    places: dict[bytes, str] = {}
    written: dict[str, object] = {}
    for own in fields(plan):
        if own.name in _COMMON:
            continue
        of: dict[str, str] = {}
        for name, values in getattr(plan, own.name).items():
            vector = np.asarray(values, dtype=np.float64)
            key = vector.tobytes()
            if key not in places:
                places[key] = archive.add(vector)
            of[name] = places[key]
        written[own.name] = of
    return written


def read_plan(header: Mapping[str, Any], domain: Domain, archive: ArchiveReader) -> Plan:
    """Return the plan that `write_plan` saved, every size checked and every matrix proved anew.

    Parameters
    ----------
    header : mapping
        What `write_plan` returned, after a round trip through JSON.
    domain : Domain
        The attributes.
    archive : ArchiveReader
        Where the arrays are.

    Raises
    ------
    StorageError
        If it is damaged: sizes that do not fit, a matrix that is singular, a variance that is no positive
        number, weights that do not sum to 1.
    """
    try:
        matrices = [_read_matrix(form, archive) for form in header["matrices"]]
        vectors = _read_vectors(header["vectors"], archive)
        multipliers: dict[str, NDArray[np.int64]] = {}
        parts = [_read_part(row, domain, matrices, multipliers, archive) for row in header["parts"]]
        if header["kind"] not in PLAN_KINDS:
            raise archive.damaged(f"no kind of plan is called {header['kind']!r}")
        return PLAN_KINDS[header["kind"]](domain, tuple(parts), header["noise"], **vectors)
    except StorageError:
        raise
    except MatrixDPError as error:
        raise archive.damaged(f"its strategy is refused ({error})") from None
    except (KeyError, IndexError, TypeError, ValueError, AttributeError, OverflowError):
        raise archive.damaged("its strategy is not in the form that it should have") from None


def _read_matrix(form: Mapping[str, Any], archive: ArchiveReader) -> MeasuredMatrix:
    size = form["size"]
    if isinstance(size, bool) or not isinstance(size, int) or size < 1:
        raise archive.damaged("a matrix has no proper size")
    if form["kind"] == "identity":
        return IdentityMatrix(size)
    if form["kind"] == "centered":
        return CenteredMatrix(size)
    if form["kind"] not in ("integer", "deficient"):
        raise archive.damaged("a matrix is of an unknown kind")
    rows = form.get("rows", size)
    if isinstance(rows, bool) or not isinstance(rows, int) or rows < 1:
        raise archive.damaged("a matrix has no proper size")
    entries = archive.array(form["entries"], (rows, size))
    if entries.dtype.kind != "i":
        raise archive.damaged("a measured matrix does not hold integers")
    if form["kind"] == "deficient":
        return DeficientMatrix(entries.astype(np.int64))
    outside = archive.array(form["unsupported"]) if "unsupported" in form else None
    if outside is not None and (outside.ndim != 2 or outside.shape[1] != size):
        raise archive.damaged("the unsupported directions of a matrix do not fit it")
    with warnings.catch_warnings():
        # a singular matrix is an error of its own
        warnings.simplefilter("ignore", scipy.linalg.LinAlgWarning)
        return IntegerMatrix(entries.astype(np.int64), outside)


def _read_vectors(form: Mapping[str, Any], archive: ArchiveReader) -> dict[str, dict[str, Any]]:
    arrays: dict[str, NDArray[np.float64]] = {}
    for key in {key for of in form.values() for key in of.values()}:
        arrays[key] = np.asarray(archive.array(key), dtype=np.float64)
    return {own: {name: arrays[key] for name, key in of.items()} for own, of in form.items()}


def _read_part(
    row: Mapping[str, Any],
    domain: Domain,
    matrices: list[MeasuredMatrix],
    multipliers: dict[str, NDArray[np.int64]],
    archive: ArchiveReader,
) -> Part:
    def names(positions: list[int]) -> tuple[str, ...]:
        if any(isinstance(position, bool) or position < 0 for position in positions):
            raise archive.damaged("a part names an attribute that there is not")
        return tuple(domain.names[position] for position in positions)

    attributes = names(row["attributes"])
    if domain.sort(attributes) != attributes:
        raise archive.damaged("the attributes of a part are not in the order of the domain")
    blocks = tuple(Block(names(positions), matrices[place]) for positions, place in row["blocks"])
    for block in blocks:
        if domain.cells(block.attributes) != block.matrix.columns:
            raise archive.damaged(f"a matrix does not fit the attributes {', '.join(block.attributes)}")
    factors = None
    if "multipliers" in row:
        key = row["multipliers"]
        shape = tuple(block.matrix.rows for block in blocks)
        if key not in multipliers:
            array = archive.array(key)
            if array.dtype.kind != "i" or array.size == 0 or int(array.min()) < 1:
                raise archive.damaged("row multipliers are not positive integers")
            multipliers[key] = array.astype(np.int64)
        factors = multipliers[key].reshape(shape)
    return Part(attributes, blocks, float(row["variance"]), factors)
