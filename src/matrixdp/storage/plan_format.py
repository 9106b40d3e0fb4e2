"""Plans in archives: distinct matrices and vectors once, parts as a table that refers to them.

A plan can have ten thousand parts that share three matrices. Nothing that follows from the matrices is saved:
sensitivities and the privacy cost are recomputed when a plan is read.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from matrixdp.domain import Domain
from matrixdp.errors import StorageError
from matrixdp.exact import (
    CenteredMatrix,
    DeficientMatrix,
    ExplicitMatrix,
    GridTree,
    IdentityMatrix,
    IntegerMatrix,
    MeasuredMatrix,
    MergedMatrix,
)
from matrixdp.noise import noise_named
from matrixdp.plan import PLAN_KINDS, Block, Part, Plan
from matrixdp.storage.archive import ArchiveReader, ArchiveWriter

__all__ = ["read_plan", "write_plan"]

#: Of the weights of a plan, which are about 1.
_LARGEST = 2.0**53
#: What every kind of plan has.
_COMMON = {field.name for field in fields(Plan)}


def write_plan(plan: Plan, archive: ArchiveWriter) -> dict[str, object]:
    """Add a plan's arrays to an archive and return the rest for its header."""
    matrices: list[dict[str, object]] = []
    places: dict[object, int] = {}
    arrays: dict[tuple[str, bytes], str] = {}
    parts: list[dict[str, object]] = []

    def once(values: NDArray[Any]) -> str:
        content = (values.dtype.str, values.tobytes())
        if content not in arrays:
            arrays[content] = archive.add(values)
        return arrays[content]

    for part in plan.parts:
        blocks = []
        for block in part.blocks:
            written = block.matrix.matrix if isinstance(block.matrix, MergedMatrix) else block.matrix
            outside = written.outside if isinstance(written, IntegerMatrix) else None
            key = (block.matrix.digest(), None if outside is None else outside.tobytes())
            if key not in places:
                places[key] = len(matrices)
                matrices.append(_write_matrix(block.matrix, archive))
            blocks.append([[plan.domain.index(name) for name in block.attributes], places[key]])
        parts.append({"blocks": blocks, "variance": part.variance})
        if part.multipliers is not None:
            parts[-1]["multipliers"] = once(part.multipliers.ravel())
    vectors = {
        own.name: {name: once(np.asarray(values, float)) for name, values in getattr(plan, own.name).items()}
        for own in fields(plan)
        if own.name not in _COMMON
    }
    return {
        "kind": plan.kind,
        "noise": plan.noise.name,
        "sizes": list(plan.domain.shape),
        "matrices": matrices,
        "parts": parts,
        "vectors": vectors,
    }


def _write_matrix(matrix: MeasuredMatrix, archive: ArchiveWriter) -> dict[str, object]:
    if isinstance(matrix, IdentityMatrix | CenteredMatrix):
        return {"kind": "identity" if isinstance(matrix, IdentityMatrix) else "centered", "size": matrix.size}
    if isinstance(matrix, GridTree):
        sizes, weights = list(matrix.sizes), list(matrix.weights)
        return {"kind": "grid-tree", "sizes": sizes, "branching": matrix.branching, "weights": weights}
    if isinstance(matrix, MergedMatrix):
        groups = [archive.add(group.astype(np.int32)) for group in matrix.groups]
        return {"kind": "merged", "groups": groups, "matrix": _write_matrix(matrix.matrix, archive)}
    if not isinstance(matrix, ExplicitMatrix):
        raise StorageError(f"a matrix of kind {type(matrix).__name__} cannot be saved")
    narrow = int(np.abs(matrix.entries).max(initial=0)) < 2**31
    form: dict[str, object] = {
        "kind": "integer" if isinstance(matrix, IntegerMatrix) else "deficient",
        "entries": archive.add(matrix.entries.astype(np.int32 if narrow else np.int64)),
    }
    if isinstance(matrix, IntegerMatrix) and matrix.outside is not None:
        form["unsupported"] = archive.add(np.asarray(matrix.outside, dtype=np.float64))
    return form


def read_plan(header: Mapping[str, Any], domain: Domain, archive: ArchiveReader) -> Plan:
    """Return the plan that `write_plan` saved, every size checked and every matrix proved anew."""
    arrays: dict[str, NDArray[Any]] = {}

    # Parts and weights share arrays, which are never copied; matrices have their own.
    def once(name: str) -> NDArray[Any]:
        if name not in arrays:
            arrays[name] = archive.array(name)
        return arrays[name]

    with archive.reading("its strategy"):
        # for readers that do not know domains; earlier versions did not write them
        if header.get("sizes", list(domain.shape)) != list(domain.shape):
            raise archive.damaged("its sizes of attributes are not those of its domain")
        matrices = [_read_matrix(form, archive) for form in header["matrices"]]
        parts = []
        for row in header["parts"]:
            factors = once(row["multipliers"]) if "multipliers" in row else None
            parts.append(_read_part(row, domain, matrices, factors, archive))
        if len({place for row in header["parts"] for _, place in row["blocks"]}) < len(matrices):
            raise archive.damaged("no part measures one of its matrices")
        vectors = {
            own: {name: _moderate(once(key), archive) for name, key in of.items()}
            for own, of in header["vectors"].items()
        }
        if header["kind"] not in PLAN_KINDS:
            raise archive.damaged(f"no kind of plan is called {header['kind']!r}")
        return PLAN_KINDS[header["kind"]](domain, tuple(parts), noise_named(header["noise"]), **vectors)


def _moderate(vector: NDArray[Any], archive: ArchiveReader) -> NDArray[np.float64]:
    """Return an array of floats as it is; with NaN or huge ones errors could not be told."""
    if vector.dtype != np.float64 or not (np.abs(vector) <= _LARGEST).all():
        raise archive.damaged("its weights hold what is no number of use")
    return vector


def _read_matrix(form: Mapping[str, Any], archive: ArchiveReader) -> MeasuredMatrix:
    if form["kind"] in ("identity", "centered"):
        size = form["size"]
        if type(size) is not int or size < 1:
            raise archive.damaged("a matrix has no proper size")
        return IdentityMatrix(size) if form["kind"] == "identity" else CenteredMatrix(size)
    if form["kind"] == "grid-tree":
        sizes, branching, weights = tuple(form["sizes"]), form["branching"], tuple(form["weights"])
        if len(sizes) != 2 or any(type(number) is not int for number in (*sizes, branching, *weights)):
            raise archive.damaged("a tree over a grid does not consist of integers")
        return GridTree(sizes, branching, weights)
    if form["kind"] == "merged":
        merged = _read_matrix(form["matrix"], archive) if form["matrix"]["kind"] == "integer" else None
        groups = [archive.array(name) for name in form["groups"]]
        if not isinstance(merged, IntegerMatrix) or any(group.dtype.kind != "i" for group in groups):
            raise archive.damaged("a matrix over groups of values does not hold integers")
        return MergedMatrix(merged, tuple(group.astype(np.int64) for group in groups))
    if form["kind"] not in ("integer", "deficient"):
        raise archive.damaged("a matrix is of an unknown kind")
    entries = archive.array(form["entries"])
    if entries.dtype.kind != "i" or entries.ndim != 2 or 0 in entries.shape:
        raise archive.damaged("a measured matrix does not hold integers")
    if form["kind"] == "deficient":
        return DeficientMatrix(entries.astype(np.int64))
    outside = _moderate(archive.array(form["unsupported"]), archive) if "unsupported" in form else None
    if outside is not None and (outside.ndim != 2 or outside.shape[1] != entries.shape[1]):
        raise archive.damaged("the unsupported directions of a matrix do not fit it")
    return IntegerMatrix(entries.astype(np.int64), outside)


def _read_part(
    row: Mapping[str, Any],
    domain: Domain,
    matrices: list[MeasuredMatrix],
    factors: NDArray[Any] | None,
    archive: ArchiveReader,
) -> Part:
    blocks = []
    for positions, place in row["blocks"]:
        if any(type(position) is not int or position < 0 for position in (*positions, place)):
            raise archive.damaged("a part names an attribute or a matrix that there is not")
        names = tuple(domain.names[position] for position in positions)
        matrix = matrices[place]
        sides = tuple(domain[name].size for name in names)
        sided = isinstance(matrix, GridTree | MergedMatrix)
        if domain.cells(names) != matrix.columns or (sided and matrix.sizes != sides):
            raise archive.damaged(f"a matrix does not fit the attributes {', '.join(names)}")
        blocks.append(Block(names, matrix))
    attributes = domain.sort([name for block in blocks for name in block.attributes])
    if factors is not None:
        if factors.dtype != np.int64:
            raise archive.damaged("row multipliers are not integers")
        factors = factors.reshape([block.matrix.rows for block in blocks])
    return Part(attributes, tuple(blocks), float(row["variance"]), factors)
