"""Where searches for p-Identity strategies start: trees over ordered cells, and random rows."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from matrixdp.selection.starting_points import Generator, generator

__all__ = ["SMALL", "random_start", "starts", "tree_start"]

Array = NDArray[np.float64]

#: Up to this many cells every start is followed to its end.
SMALL = 128


def tree_start(size: int, branching: int, weight: float = 0.5) -> Array:
    """Return the inner nodes of a tree over ordered cells, all with one weight, shape (p, size).

    Examples
    --------
    >>> tree_start(4, 2, 1.0).tolist()
    [[1.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 1.0], [1.0, 1.0, 1.0, 1.0]]
    """
    rows = []
    width = branching
    while True:
        for first in range(0, size, width):
            row = np.zeros(size)
            row[first : first + width] = weight
            rows.append(row)
        if width >= size:
            return np.array(rows)
        width *= branching


def random_start(size: int, rows: int, rng: Generator) -> Array:
    """Return rows with entries uniform between 0 and 1, shape (rows, size)."""
    return rng.random((rows, size))


def starts(size: int, rows: int | None, seed: int, restarts: int, fast: bool) -> list[list[Array]]:
    """Return the starts of a search, in families of which each deserves a search of its own."""
    rng = generator(seed)
    if rows is not None:
        return [[random_start(size, rows, rng)] for _ in range(max(restarts, 1))]
    if fast:
        widths = [16, 32] if size > 64 else [12, 4]
    elif size <= SMALL:
        widths = [4, 8, 10, 12, 16, 20, 25, 32]
    else:
        widths = [16, 32, 12, 24] if size <= 512 else [16, 32]
    kinds = list(dict.fromkeys(max(2, min(width, size)) for width in widths))
    trees = [tree_start(size, branching) for branching in kinds]
    apart = not fast and (size <= SMALL or size > 512)
    families = [[tree] for tree in trees] if apart else [trees]
    shares = [16] if fast else [32, 24, 16, 12, 8] if size <= SMALL else [16]
    for count in dict.fromkeys(max(1, size // share) for share in shares):
        many = [random_start(size, count, rng) for _ in range(restarts)]
        families += [[start] for start in many] if size <= SMALL and not fast else [many]
    return families
