"""What plans reject: parts that measure nothing, entries that would wrap, matrices that do not fit."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

import matrixdp as mdp
from matrixdp.exact import CenteredMatrix, DeficientMatrix, IdentityMatrix, IntegerMatrix
from matrixdp.noise import GAUSSIAN, LAPLACE
from matrixdp.plans import Block, Direct, Joint, Local, Part, Plan, Pooled, Split, Union, residual_weights
from matrixdp.plans.pair import Pencil
from matrixdp.selection.auto import select
from matrixdp.selection.searches.marginals import pooled_products
from tests.plans import test_joint, test_unions
from tests.plans.test_plans import plans
from tests.plans.test_unions import CASES, union
from tests.refusals import Refusal
from tests.selection.refusals import limited

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


def unioned(*parts):
    return lambda: union(parts).analysis


def joint(**fields):
    return lambda: replace(test_joint.plan(), **fields).analysis


def marked(*marks):
    return joint(whole={"parts": np.array(marks, dtype=float)})


def selected(*entries, mechanism="residual"):
    return select(mdp.Workload(DOMAIN, *entries), mechanism=mechanism, noise=GAUSSIAN).plan


def asked(plan, entry):
    """Return an attempt to analyse a group by a plan, which a function makes."""
    return lambda: [plan().analysis.variances(group) for group in entry.expand(plan().domain)]


def covariances(*entries, **options):
    groups = [group for entry in entries for group in entry.expand(DOMAIN)]

    def attempt():
        analysis = selected(mdp.marginals(2)).analysis
        return analysis.covariance(groups[0], 0, groups[1], 0), analysis.covariances(*groups, **options)

    return attempt


def covariance(*entries):
    [left, right] = [group for entry in entries for group in entry.expand(DOMAIN)]
    return lambda: selected(mdp.marginals(2)).analysis.covariance(left, 0, right, 0)


def sums_of_a_table():
    """Return a joint plan of a table that determines no more than its margins."""
    outside = np.array([[1.0, -1.0, -1.0, 1.0]]) / 2.0
    domain = mdp.Domain({"a": 2, "b": 2})
    blocks = (Block(("a", "b"), IntegerMatrix(np.eye(4, dtype=np.int64), outside)),)
    even = {name: np.full(2, 0.5) for name in domain.names}
    return Joint(domain, (Part(("a", "b"), blocks, 1.0),), GAUSSIAN, even, {"parts": np.ones(1)})


def weak(kind):
    return lambda: kind(test_unions.DOMAIN, union(CASES["deficient"]).parts, GAUSSIAN)


TABLE, TOTAL, AC = mdp.marginals([["a", "b"]]), mdp.marginals(0), mdp.marginals([["a", "c"]])
STEEP = IntegerMatrix(np.array([[1, 10**8], [0, 1]]))
#: Whole tables of a joint plan, and what may not stand in the place of one.
TABLES = test_joint.plan().parts
SINGULAR = Part(("a", "b"), (Block(("a", "b"), DeficientMatrix(np.ones((1, 12), np.int64))),), 1e9)
FOLLOWS = Part(("b",), (Block(("b",), IdentityMatrix(4)),), 1e9)
#: What a plan does not determine, however it is asked.
UNMEASURED: dict[str, tuple[Callable[[], Plan], Any]] = {
    "another marginal, pooled": (lambda: plans(GAUSSIAN)["pooled"], AC),
    **{f"another marginal, {kind.__name__}": (weak(kind), AC) for kind in (Local, Union)},
    **{f"more of an attribute, {kind.__name__}": (weak(kind), TABLE) for kind in (Local, Union)},
    "an attribute beside a table": (
        lambda: selected(mdp.product(a="prefix"), mechanism="dense"), mdp.marginals([["c"]]),
    ),
    "a matrix on another marginal": (
        lambda: selected(mdp.marginals([["b"]])), mdp.dense([[1, 0, 0]], ["a"]),
    ),
    "a matrix that tells merged values apart": (
        lambda: selected(mdp.product({"b": {"sets": [[0, 1], [2, 3]]}}), mechanism="dense"),
        mdp.dense([[1, 0, 0, 0]], ["b"]),
    ),
    "cells of a table, of which sums are measured": (sums_of_a_table, TABLE),
    "a matrix of such a table": (sums_of_a_table, mdp.dense([[0, 0, 1, 0]], ["a", "b"])),
    "repeated queries": (lambda: selected(mdp.marginals(1)), mdp.product(a="range", b="range")),
}  # fmt: skip
#: By the code of the error, and its place where one is named.
REJECTED: dict[tuple[str, str], dict[str, Callable[[], Any]]] = {
    ("privacy", ""): {
        "a plan for persons without per": lambda: replace(selected(TABLE), persons=mdp.Unit(records=3)),
        "a proof for nobody": lambda: replace(selected(TABLE), proof=np.zeros((9, 3), np.int64)),
        **{f"a variance of {own}": call(identity, variance=own) for own in (0.0, -1.0, np.nan, np.inf)},
        "residuals of one value": lambda: part(("one", CenteredMatrix(1))),
        "no parts": lambda: Direct(DOMAIN, (), GAUSSIAN),
        "an unknown noise": lambda: Direct(DOMAIN, (identity(),), "uniform"),  # type: ignore[arg-type]
        "a cost above 1 under gaussian": call(direct, GAUSSIAN, 0.999),
        "a cost above 1 under laplace": call(direct, LAPLACE, 1.999),
        "multipliers that wrap": multiplied(2**32, 1),
        "multipliers that wrap far": multiplied(2**62, 1),
        "a multiplier of 0": multiplied(0, 1),
        "too many multipliers": multiplied(1, 1, 1),
    },
    ("not-converged", ""): {
        "blocks that do not cover a marginal": lambda: Part(("a", "b"), identity().blocks, 1.0),
        "a marginal that is split twice": lambda: Split(DOMAIN, (identity(),) * 2, GAUSSIAN, {}),
        "two parts of a direct plan": lambda: Direct(DOMAIN, (identity(),) * 2, GAUSSIAN),
        "a direct plan of residuals":
            lambda: Direct(DOMAIN, (part(("a", CenteredMatrix(3)), variance=90.0),), GAUSSIAN).analysis,
        "a marginal that is pooled twice": lambda: pooled(identity(), identity()),
        **{f"weights {wrong}": call(Split, DOMAIN, (identity(),), GAUSSIAN, WEIGHTS | {"a": wrong})
           for wrong in (np.ones(3), np.full(4, 0.25))},
        "a pooled matrix of two attributes": lambda: pooled(part(("ab", IdentityMatrix(12)))),
        "pooled multipliers": lambda: pooled(part(("b", SQUARE), multipliers=np.arange(1, 5))),
        **{f"two pooled matrices of one attribute, {which}":
           call(pooled, part(("b", SQUARE)), part(("b", other), ("c", IdentityMatrix(2))))
           for which, other in (("another", IdentityMatrix(4)), ("with another basis", REFUSING))},
        **{f"{type(unfit).__name__} in a pooled plan": call(pooled, part(("b", unfit)))
           for unfit in (CenteredMatrix(4), DeficientMatrix(np.array([[1, 0, 0, 0]])))},
        **{f"an entry of {entry} in {columns} columns": call(made, np.eye(2, columns, dtype=np.int64) * entry)
           for entry in (2**31, 2**32, 2**62, -(2**63))
           for columns, made in ((2, IntegerMatrix), (3, DeficientMatrix))},
        "a basis of another size": lambda: products(("a",), 1.0, a=np.ones((2, 4)) / 4),
        "names out of order": lambda: products(("b", "a"), 1.0),
        "a precision of 0": lambda: products(("a",), 0.0),
        "a precision that is no number": lambda: products(("a",), np.nan),
        "a union of one part": unioned(CASES["deficient"][0]),
        "a union with a matrix of two attributes":
            unioned(CASES["deficient"][0], part(("ac", IntegerMatrix(np.eye(6, dtype=np.int64))))),
        **{f"matrices close to singular, {len(parts)} parts":
           unioned(test_unions.part(2.0, b=None, c=STEEP), test_unions.part(3.0, c=STEEP), *parts)
           for parts in ([], [test_unions.part(3.0, a=None)])},
        "marks of two parts": marked(1, 1),
        "no whole table": marked(*[0] * 7),
        "half a mark": marked(1, 1, 0, 0, 0, 0, 0.5),
        "a mark that is no number": marked(1, np.nan, 0, 0, 0, 0, 0),
        "a product marked as a whole table": marked(1, 1, 0, 0, 0, 1, 0),
        "a singular whole table": joint(parts=(SINGULAR, *TABLES[1:])),
        "a part that follows from a whole table": joint(parts=(*TABLES[:3], FOLLOWS, *TABLES[4:])),
        "weights that do not sum to 1": joint(weights={**test_joint.plan().weights, "a": np.ones(3)}),
        "tables without noise": lambda: test_joint.plan().analysed([0.0] * 7),
        "matrices of different columns": lambda: Pencil.of(IdentityMatrix(2), IdentityMatrix(3)),
    },
    ("too-large", ""): {
        "variances of a table": limited("MAX_VARIANCES", 11, asked(lambda: selected(TABLE), TABLE)),
        "a covariance over a table": limited("MAX_VARIANCES", 11, covariance(TOTAL, TABLE)),
        "covariances over a table": limited("MAX_COVARIANCES", 143, covariances(TABLE, TOTAL)),
        "a matrix of covariances": limited("MAX_COVARIANCE_ENTRIES", 143, covariances(TABLE, TABLE)),
        "pooled residuals": limited("MAX_PAIRS", 6, lambda: pooled(*map(identity, "abc"), part()).analysis),
        "predicates of a joint plan": limited(
            "MAX_VARIANCES", 30, asked(test_joint.plan, mdp.product(a="prefix", b="range", c="identity"))),
        "unknowns of a joint plan": limited("MAX_UNKNOWNS", 5, joint()),
        **{f"common unknowns of a {name}": limited("MAX_COMMON", 3, unioned(*CASES[f"many: {name}"]))
           for name in ("ring", "star")},
        "parts that do not determine their totals":
            unioned(*CASES["both without the total"], test_unions.part(2.0, a=None, c=None)),
    },
    ("unknown-name", "unit.per"): {
        "a plan for persons per another attribute": lambda: replace(
            selected(TABLE), persons=mdp.Unit(id="person", per="nobody", max_values=2)),
    },
    ("workload", "covariance"): {"pairs of different numbers": covariances(TABLE, TOTAL, paired=True)},
    ("unsupported-query", ""): {
        name: limited("COMPRESSED_QUERIES", 1, asked(*unmeasured)) for name, unmeasured in UNMEASURED.items()
    },
}  # fmt: skip
REFUSALS = [Refusal(name, *key, attempt) for key, own in REJECTED.items() for name, attempt in own.items()]
