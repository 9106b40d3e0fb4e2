"""What plans reject: parts that measure nothing, entries that would wrap, matrices that do not fit."""

from collections.abc import Callable
from typing import Any

import numpy as np

import matrixdp as mdp
from matrixdp.exact import CenteredMatrix, DeficientMatrix, IdentityMatrix, IntegerMatrix
from matrixdp.noise import GAUSSIAN, LAPLACE
from matrixdp.plan import Block, Direct, Part, Pooled, Split, residual_weights
from matrixdp.plan.pencils import Pencil
from matrixdp.selection.compose.pooled_products import pooled_products
from tests.refusals import Refusal

DOMAIN = mdp.Domain({"a": 3, "b": 4, "c": 2, "one": 1})
SQUARE = IntegerMatrix(2 * np.eye(4, dtype=np.int64) + 1)
#: The same, but for the total.
REFUSING = IntegerMatrix(SQUARE.entries, np.array([[1.0, -1.0, 0.0, 0.0]]) / np.sqrt(2.0))
WEIGHTS = {name: residual_weights(DOMAIN[name].size) for name in DOMAIN.names}


def call(function, *arguments, **options):
    return lambda: function(*arguments, **options)


def part(*blocks, variance=1e6, multipliers=None):
    """Return a part of matrices, each on the attributes that are given with it."""
    own = [((names,) if names in DOMAIN.names else tuple(names), matrix) for names, matrix in blocks]
    names = tuple(name for held, _ in own for name in held)
    return Part(names, tuple(Block(held, matrix) for held, matrix in own), variance, multipliers)


def identity(name="a", variance=9.0, **own):
    return part((name, IdentityMatrix(DOMAIN[name].size)), variance=variance, **own)


def direct(noise, variance):
    return Direct(DOMAIN, (identity("a", variance),), noise)


def pooled(*parts):
    return Pooled(DOMAIN, parts, GAUSSIAN)


def products(names, precision, **bases):
    return pooled_products(DOMAIN, bases or {"a": None, "b": None}, {names: precision}, GAUSSIAN)


def multiplied(*multipliers):
    return lambda: part(("c", IdentityMatrix(2)), multipliers=np.array(multipliers))


#: By the code of the error, and its place where one is named.
REJECTED: dict[tuple[str, str], dict[str, Callable[[], Any]]] = {
    ("privacy", ""): {
        **{
            f"a variance of {variance}": call(identity, variance=variance)
            for variance in (0.0, -1.0, float("nan"), float("inf"))
        },
        "residuals of one value": lambda: part(("one", CenteredMatrix(1))),
        "no parts": lambda: Direct(DOMAIN, (), GAUSSIAN),
        "an unknown noise": lambda: Direct(DOMAIN, (identity(),), "uniform"),  # type: ignore[arg-type]
        **{
            f"a cost above 1 under {noise}": call(direct, noise, v)
            for noise, v in ((GAUSSIAN, 0.999), (LAPLACE, 1.999))
        },
        "multipliers that wrap": multiplied(2**32, 1),
        "multipliers that wrap far": multiplied(2**62, 1),
        "a multiplier of 0": multiplied(0, 1),
        "too many multipliers": multiplied(1, 1, 1),
    },
    ("not-converged", ""): {
        "blocks that do not cover a marginal": lambda: Part(("a", "b"), identity().blocks, 1.0),
        "a marginal that is split twice": lambda: Split(DOMAIN, (identity(),) * 2, GAUSSIAN, {}),
        "two parts of a direct plan": lambda: Direct(DOMAIN, (identity(),) * 2, GAUSSIAN),
        "a direct plan of residuals": lambda: (
            Direct(DOMAIN, (part(("a", CenteredMatrix(3)), variance=90.0),), GAUSSIAN).analysis
        ),
        "a marginal that is pooled twice": lambda: pooled(identity(), identity()),
        **{
            f"weights {wrong}": call(Split, DOMAIN, (identity(),), GAUSSIAN, WEIGHTS | {"a": wrong})
            for wrong in (np.ones(3), np.full(4, 0.25))
        },
        "a pooled matrix of two attributes": lambda: pooled(part(("ab", IdentityMatrix(12)))),
        "pooled multipliers": lambda: pooled(part(("b", SQUARE), multipliers=np.arange(1, 5))),
        **{
            f"two pooled matrices of one attribute, {which}": call(
                pooled, part(("b", SQUARE)), part(("b", other), ("c", IdentityMatrix(2)))
            )
            for which, other in (("another", IdentityMatrix(4)), ("with another basis", REFUSING))
        },
        **{
            f"{unfit.__class__.__name__} in a pooled plan": call(pooled, part(("b", unfit)))
            for unfit in (CenteredMatrix(4), DeficientMatrix(np.array([[1, 0, 0, 0]])))
        },
        **{
            f"an entry of {entry} in {columns} columns": call(
                made, np.eye(2, columns, dtype=np.int64) * entry
            )
            for entry in (2**31, 2**32, 2**62, -(2**63))
            for columns, made in ((2, IntegerMatrix), (3, DeficientMatrix))
        },
        "a basis of another size": lambda: products(("a",), 1.0, a=np.ones((2, 4)) / 4),
        "names out of order": lambda: products(("b", "a"), 1.0),
        "a precision of 0": lambda: products(("a",), 0.0),
        "a precision that is no number": lambda: products(("a",), np.nan),
        "matrices of different columns": lambda: Pencil.of(IdentityMatrix(2), IdentityMatrix(3)),
    },
}
REFUSALS = [
    *(Refusal(name, *key, attempt) for key, own in REJECTED.items() for name, attempt in own.items()),
]
