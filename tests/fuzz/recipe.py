"""Bytes as recipes: what a fuzzer makes of bytes decides how a valid document is changed.

A coverage-guided fuzzer mutates bytes. Read as a recipe, they reach behind the checks of a format: values of
a document are replaced by hostile ones, taken out, moved and copied, and everything else stays valid.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from typing import Any, TypeVar, final

T = TypeVar("T")

#: Values that stand for whole classes of mistakes.
HOSTILE: tuple[object, ...] = (
    None, True, False, 0, 1, -1, 2, 3, 1.0, 0.5, -0.0, 7, 62, 63, 64, 1000, 1001, 2**31 - 1, 2**31, 2**32,
    2**53, 2**63 - 1, 2**63, 2**64, -(2**63), 10**15, 10**18, 10**40, 10**400, -(10**400), 1e308, -1e308,
    5e-324, 1e-300, 1e16, math.inf, -math.inf, math.nan, "", " ", "a", "0", "1", "-1", "1/0", "1/3", "0/1",
    "1e999999999", "1e-400", "nan", "inf", "1_000", "\0", "\n", "\ud800", "\u202e", "é" * 3, "x" * 10_000,
    "9" * 400, "9" * 5000, "../x", "/", "/dev/zero", "identity", "prefix", "range", "total", "auto", [],
    [[]], [None], [0], [1, 1], [[0, 1]], [[1, 0]], [[0, 10**9]], [0.5, 0.5], {}, {"": 0}, {"a": {}},
    {"range": [0, 10**12]}, {"sets": [[]]}, {"ranges": []}, {"matrix": [[1e308, -1e308]]},
    {"permuted": "prefix", "seed": 2**70}, {"$array": "arrays/0.npy"}, "2026-01-01",
    {"min": 0, "max": 10**15}, {"min": -1e308, "max": 1e308, "bins": 3}, {"edges": [0, 5e-324]},
    999_999_937,
)  # fmt: skip


@final
class Recipe:
    """Numbers, choices and texts, one after the other, from bytes; zeros when there are no more."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    @property
    def left(self) -> int:
        """How many bytes there are still."""
        return max(0, len(self._data) - self._at)

    def rest(self) -> bytes:
        """Return all bytes that are left."""
        return self.take(self.left)

    def take(self, count: int) -> bytes:
        """Return this many bytes, or as many as there are."""
        taken = self._data[self._at : self._at + count]
        self._at += count
        return taken

    def below(self, bound: int) -> int:
        """Return a number from 0 to the bound, without it."""
        width = max(1, ((bound - 1).bit_length() + 7) // 8)
        return int.from_bytes(self.take(width), "little") % bound

    def choice(self, options: Sequence[T]) -> T:
        """Return one of several things."""
        return options[self.below(len(options))]

    def text(self) -> str:
        """Return a short text of any characters."""
        return self.take(self.below(24)).decode("utf-8", "surrogateescape")

    def number(self) -> int | float:
        """Return a number of any size: small, of 64 bits, or a float of any bits."""
        kind = self.below(4)
        if kind == 0:
            return self.below(256) - 128
        if kind == 1:
            return int.from_bytes(self.take(8), "little", signed=True)
        if kind == 2:
            return self.below(2**16) / 256
        (found,) = memoryview(self.take(8).ljust(8, b"\0")).cast("d")
        return float(found)

    def value(self) -> Any:
        """Return a value that a document can hold."""
        kind = self.below(8)
        if kind < 5:
            return copy.deepcopy(self.choice(HOSTILE))
        return self.text() if kind == 5 else self.number()


def places(value: object, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    """Return the paths of all values in a document, itself first."""
    found = [path]
    if isinstance(value, dict):
        for key, item in value.items():
            found += places(item, (*path, key))
    elif isinstance(value, list):
        for key, item in enumerate(value):
            found += places(item, (*path, key))
    return found


def at(value: Any, path: Sequence[str | int]) -> Any:
    """Return what stands at a path."""
    for key in path:
        value = value[key]
    return value


def mutated(document: Any, recipe: Recipe, keys: Sequence[str], most: int = 6) -> Any:
    """Return a copy of a document with up to this many changes; ``keys`` are words for its keys."""
    root = [copy.deepcopy(document)]
    for _ in range(most):
        if not recipe.left:
            break
        _change(root, recipe, keys)
    return root[0]


def _change(root: list[Any], recipe: Recipe, keys: Sequence[str]) -> None:
    paths = places(root)[1:]
    if not paths:
        return
    path = recipe.choice(paths)
    holder, key = at(root, path[:-1]), path[-1]
    value = holder[key]
    kind = recipe.below(12)
    if kind <= 3:
        holder[key] = recipe.value()
    elif kind == 4 and holder is not root:
        del holder[key]
    elif kind == 5:
        holder[key] = copy.deepcopy(at(root, recipe.choice(paths)))
    elif kind == 6 and isinstance(value, int | float) and not isinstance(value, bool):
        holder[key] = _moved(value, recipe)
    elif kind == 7 and isinstance(value, str):
        cut = recipe.below(len(value) + 1)
        holder[key] = value[:cut] + recipe.text() + value[cut + recipe.below(2) :]
    elif kind == 8 and isinstance(value, list):
        value.insert(recipe.below(len(value) + 1), recipe.value())
    elif kind == 9 and isinstance(value, dict):
        value[recipe.choice(keys) if recipe.below(4) else recipe.text()] = recipe.value()
    elif kind == 10 and isinstance(holder, dict):
        holder[recipe.choice(keys)] = holder.pop(key)
    elif isinstance(value, list) and value:
        value.append(copy.deepcopy(recipe.choice(value)))
    else:
        holder[key] = [value]


def _moved(value: float, recipe: Recipe) -> int | float:
    try:
        return (value + 1, value - 1, -value, value * 2, value / 2, value**2, value * 1e300)[recipe.below(7)]
    except OverflowError:
        return math.inf
