"""A reader of saved files that shares no line with the package: zip, JSON, NumPy and fractions."""

from __future__ import annotations

import io
import json
import math
import zipfile
from collections.abc import Iterable
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

#: Sensitivity is the largest sum over a column of |entry| to this power; costs add up.
NORMS = {"gaussian": 2, "laplace": 1}
#: Each part's cost is rounded up in this binary place (docs/measurement.md).
COST_BITS = 160

Integers = NDArray[Any]


@dataclass(frozen=True)
class ReadPart:
    """The Kronecker product of integer matrices, each on the attributes at some positions of the domain."""

    positions: tuple[tuple[int, ...], ...]
    matrices: tuple[Integers | int, ...]  # a number is the size of an identity
    multipliers: Integers | None
    variance: float
    under_radius: bool = False
    tree: tuple[int, ...] | None = None  # the positions of the attributes of a block that sums over nodes

    @property
    def order(self) -> list[int]:
        """The positions of the attributes in the order of the blocks."""
        return [position for block in self.positions for position in block]

    @property
    def rows(self) -> tuple[int, ...]:
        return tuple(m if isinstance(m, int) else m.shape[0] for m in self.matrices)

    def column_sums(self, power: int) -> Integers:
        """Return the sum over each column of |entry|^power: Python integers, one axis for each block."""
        weights = np.ones(self.rows, dtype=object)
        if self.multipliers is not None:
            weights = self.multipliers.astype(object).reshape(self.rows) ** power
        for axis, matrix in enumerate(self.matrices):
            if isinstance(matrix, int):
                continue
            entries = np.abs(matrix.astype(object)) ** power
            weights = np.moveaxis(np.tensordot(weights, entries, axes=(axis, 0)), -1, axis)
        return np.asarray(weights, dtype=object)

    def dense(self) -> Integers:
        """Return the matrix written out, over the cells of its blocks in their order: Python integers."""
        rows = np.ones((1, 1), dtype=object)
        for matrix in self.matrices:
            entries = np.eye(matrix, dtype=np.int64) if isinstance(matrix, int) else matrix
            rows = np.kron(rows, entries.astype(object))
        return rows if self.multipliers is None else rows * self.multipliers.astype(object).reshape(-1, 1)


@dataclass(frozen=True)
class ReadFile:
    """What a file says: parts, and of a measurement the exact noise scales and the noisy lattice steps.

    ``multiples`` are those of which noise on integers is, 0 where noise is continuous.
    """

    header: dict[str, Any]
    parts: tuple[ReadPart, ...]
    steps: tuple[Fraction, ...] = ()
    powers: tuple[int, ...] = ()
    multiples: tuple[int, ...] = ()
    values: tuple[NDArray[np.int64], ...] = ()

    @property
    def norm(self) -> int:
        return NORMS[self.header["plan"]["noise"]]

    @property
    def scales(self) -> tuple[Fraction, ...]:
        """The exact scale of each part's noise, in records."""
        pairs = zip(self.steps, self.powers, strict=True)
        return tuple(steps * Fraction(2) ** power for steps, power in pairs)

    @property
    def charged(self) -> list[tuple[ReadPart, Fraction]]:
        """What costs add up of, with scales: parts under one radius move by 1 together for every record."""
        pairs = list(zip(self.parts, self.scales, strict=True))
        found = [(part, scale) for part, scale in pairs if not part.under_radius]
        under = [(part, scale) for part, scale in pairs if part.under_radius]
        if under:
            positions = tuple(sorted({position for part, _ in under for position in part.order}))
            cells = math.prod(self.header["plan"]["sizes"][position] for position in positions)
            [scale] = {scale for _, scale in under}
            found.append((ReadPart((positions,), (cells,), None, under[0][0].variance), scale))
        return found

    @property
    def stated(self) -> Fraction:
        """The cost that the file says was authorized."""
        return Fraction(self.header["authorization"]["cost"])

    def cost(self) -> Fraction:
        """Return the cost, recomputed as docs/measurement.md says it is: parts add up, each rounded up.

        With trees over one block of attributes they add up for each of its cells.
        """
        trees = {part.tree for part, _ in self.charged if part.tree is not None}
        values: Any = 0
        for part, scale in self.charged:
            sums = part.column_sums(self.norm)
            if len(trees) == 1 and part.tree is not None:
                axis = part.positions.index(part.tree)
                own = [int(sums.take(value, axis).max()) for value in range(sums.shape[axis])]
            else:
                own = [int(sums.max())]
            shares = [math.ceil(Fraction(one) / scale**self.norm * 2**COST_BITS) for one in own]
            values = values + np.array(shares, dtype=object)
        total = max(values)
        return max(Fraction(total, 2**COST_BITS), self.cost_outside(rounded=True))

    @property
    def agrees(self) -> bool:
        """Whether the stated cost may be that of what the file holds: for replace from half of it on."""
        cost = self.cost()
        if self.header["authorization"]["budget"]["neighbours"] == "add_remove":
            return self.stated == cost
        return cost / 2**self.norm <= self.stated <= cost

    def largest_replacement(self, sizes: Iterable[int]) -> Fraction:
        """Return the exact cost of the worst replacement of a record by another, or by one out of domain."""
        shape = tuple(sizes)
        cells = math.prod(shape)
        apart = np.zeros((cells, cells), dtype=object)
        for part, scale in self.charged:
            wide = spread(part.dense(), part.order, shape).reshape(-1, cells)
            moved = [(np.abs(wide - wide[:, [j]]) ** self.norm).sum(axis=0) for j in range(cells)]
            apart = apart + np.array(moved, dtype=object) * (1 / scale**self.norm)
        alone = replace(self, header={**self.header, "out_of_domain_counts": None}).largest_move(shape)
        return max(Fraction(apart.max()), alone + self.cost_outside())

    def cost_outside(self, *, rounded: bool = False) -> Fraction:
        """Return what a record costs that is out of domain by every attribute: it is in every count."""
        counts = self.header.get("out_of_domain_counts")
        if counts is None:
            return Fraction(0)
        steps, power, *_ = counts["noise"]
        each = 1 / (Fraction(steps) * Fraction(2) ** power) ** self.norm
        if rounded:
            each = Fraction(math.ceil(each * 2**COST_BITS), 2**COST_BITS)
        return each * len(counts["attributes"])

    def largest_move(self, sizes: Iterable[int]) -> Fraction:
        """Return the exact cost of the record that moves the answers most: no part's maximum on its own.

        A record is a cell of the domain, or out of it, where it moves nothing but the counts of such records.
        """
        shape = tuple(sizes)
        total = np.zeros(shape, dtype=object)
        for part, scale in self.charged:
            [sums] = spread(part.column_sums(self.norm), part.order, shape)
            total = total + sums * (1 / scale**self.norm)
        return max(Fraction(total.max()), self.cost_outside())


def spread(rows: Integers, order: list[int], shape: tuple[int, ...]) -> Integers:
    """Return rows over the cells of the attributes at some positions as rows over all cells of a shape."""
    rows = rows.reshape(-1, *(shape[position] for position in order))
    rows = np.transpose(rows, [0, *(1 + place for place in np.argsort(order))])
    rows = rows.reshape(-1, *(size if axis in order else 1 for axis, size in enumerate(shape)))
    return np.broadcast_to(rows, (len(rows), *shape))


def _matrix(form: dict[str, Any], arrays: dict[str, Integers]) -> Integers | int:
    if form["kind"] == "identity":
        return int(form["size"])
    if form["kind"] == "walk":  # costs what the identity does; tests/noise/test_walks.py tries every move
        return len(form["widths"])
    if form["kind"] == "tree-walk":  # as its nodes' own parts do
        return _matrix(form["matrix"], arrays)
    if form["kind"] == "block-walk":
        return sum(form["weights"]) * np.eye(form["size"], dtype=np.int64)
    if form["kind"] == "tree":
        rows = []
        for names, given in (("groups", "weights"), ("beside", "beside_weights")):
            for nodes, weights in zip(form.get(names, ()), form.get(given, ()), strict=True):
                own, count = arrays[weights], len(arrays[weights])
                level = (arrays[nodes] == np.arange(count)[:, None]) * own[:, None]
                rows.append(level[own > 0].astype(np.int64))
        return np.concatenate(rows)
    if form["kind"] == "row-trees":
        rows = []
        for place, query in enumerate(arrays[form["entries"]].astype(np.int64)):
            for nodes, weights in zip(form["groups"], form["weights"], strict=True):
                for node in np.flatnonzero(arrays[weights][:, place]):
                    weight = int(arrays[weights][node, place])
                    rows.append(np.outer(arrays[nodes] == node, weight * query).ravel())
        return np.array(rows)
    if form["kind"] == "centered":
        size = int(form["size"])
        return size * np.eye(size, dtype=np.int64) - 1
    if form["kind"] == "grid-tree":
        return _grid_tree(form["sizes"], form["branching"], form["weights"])
    if form["kind"] == "merged":
        cells = np.zeros((), dtype=np.int64)
        for name in form["groups"]:
            cells = np.add.outer(cells * (arrays[name].max() + 1), arrays[name])
        between = _matrix(form["matrix"], arrays)
        whole = np.eye(between, dtype=np.int64) if isinstance(between, int) else between
        return whole[:, cells.ravel()]
    assert form["kind"] in ("integer", "deficient")
    return arrays[form["entries"]].astype(np.int64)


def _grid_tree(sizes: list[int], branching: int, weights: list[int]) -> Integers:
    """Return the sums over the rectangles of each level of a tree over a grid, times the level's weight."""
    rows: list[Integers] = []
    for level, weight in enumerate(weights):
        width = branching ** (len(weights) - 1 - level)
        inside = [
            np.arange(size)[None, :] // width == np.arange(-(-size // width))[:, None] for size in sizes
        ]
        if weight:
            rows.append(weight * np.kron(inside[0], inside[1]).astype(np.int64))
    return np.concatenate(rows)


def _tree(row: dict[str, Any], forms: list[dict[str, Any]]) -> tuple[int, ...] | None:
    """Return the positions of a part's one block with trees; None without one, or with row factors."""
    kinds = ("tree", "row-trees")
    trees = [tuple(positions) for positions, place in row["blocks"] if forms[place]["kind"] in kinds]
    return trees[0] if len(trees) == 1 and "multipliers" not in row else None


def read(path: Path) -> ReadFile:
    """Read the file of a strategy or of a measurement."""
    with zipfile.ZipFile(path) as archive:
        header = json.loads(archive.read("header.json"))
        names = [name for name in archive.namelist() if name.endswith(".npy")]
        arrays = {name: np.load(io.BytesIO(archive.read(name)), allow_pickle=False) for name in names}
    matrices = [_matrix(form, arrays) for form in header["plan"]["matrices"]]
    parts = tuple(
        ReadPart(
            tuple(tuple(positions) for positions, _ in row["blocks"]),
            tuple(matrices[place] for _, place in row["blocks"]),
            arrays[row["multipliers"]] if "multipliers" in row else None,
            row["variance"],
            "width" in row,
            _tree(row, header["plan"]["matrices"]),
        )
        for row in header["plan"]["parts"]
    )
    if "values" not in header:
        return ReadFile(header, parts)
    ends = np.cumsum([math.prod(part.rows) for part in parts])[:-1]
    values = arrays[header["values"]].astype(np.int64)
    if "beyond" in header:  # what 32 bits do not hold
        places, beyond = (arrays[name] for name in header["beyond"])
        values[places] = beyond
    return ReadFile(
        header,
        parts,
        tuple(Fraction(steps) for steps, *_ in header["noise"]),
        tuple(power for _, power, *_ in header["noise"]),
        tuple(sum(multiple) for _, _, *multiple in header["noise"]),
        tuple(np.split(values, ends)),
    )
