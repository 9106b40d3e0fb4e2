"""Inputs of targets: the bytes of a file themselves, or a recipe that changes one of several valid files."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np
import pyarrow as pa

from matrixdp.errors import MatrixDPError
from tests.fuzz.oracle import Case, Finding
from tests.fuzz.recipe import Recipe

T = TypeVar("T")

#: Keys of release.json and model.json, beside those of headers.
RECORD_KEYS = (
    "files", "sha256", "bytes", "measurement.mdp", "confidence", "strategy", "mechanism", "privacy", "text",
    "guarantee", "groups", "made", "total", "accepted", "seed",
)  # fmt: skip
#: A text that stands for what no message may quote.
CANARY = "Zq7#canary"


def as_they_are(count: int, raw: Sequence[bytes] = ()) -> list[bytes]:
    """Return some files as their bytes, and recipes that leave each of several as it is."""
    return [*(b"\0" + file for file in raw), *(bytes([1, place]) for place in range(count))]


def raw_or_changed(data: bytes, files: Sequence[T], change: Callable[[T, Recipe], bytes]) -> bytes:
    """Return the bytes after the first, or a file that they change as a recipe."""
    recipe = Recipe(data)
    return recipe.rest() if recipe.below(256) == 0 else change(recipe.choice(files), recipe)


def overwritten(content: bytes, recipe: Recipe, most: int = 2**14) -> bytes:
    """Return a file with other bytes at some places."""
    changed = bytearray(content)
    for _ in range(most):
        if recipe.left:
            changed[recipe.below(len(changed))] = recipe.below(256)
    return bytes(changed)


def finite_answers(answers: pa.Table) -> None:
    """Hold that every answer is a number with an interval."""
    for name in ("estimate", "stddev", "lower", "upper"):
        if not np.isfinite(answers.column(name).to_numpy()).all():
            raise Finding(f"an answer whose {name} is not finite")


def unquoted(case: Case) -> Case:
    """Read tables as a case does; no message may quote them."""

    def read(data: bytes) -> None:
        try:
            case(data)
        except MatrixDPError as error:
            if "canary" in str(error):
                raise Finding(f"a message that quotes the table: {error}") from error
            raise

    return read
