"""What selection rejects: what a mechanism cannot do, what is too large, and options that are wrong."""

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

import matrixdp as mdp
from matrixdp.measure.calibration import calibrate
from matrixdp.noise import GAUSSIAN, LAPLACE, Cost
from matrixdp.papers.workload import uniform_marginals
from matrixdp.privacy import LeastBudget
from matrixdp.selection.auto import select
from matrixdp.selection.custom import evaluate_given
from matrixdp.selection.gram import solve_rows
from tests.refusals import Refusal
from tests.selection.oracle import lowered

DOMAIN = mdp.Domain({"a": 6, "b": 5, "c": 2})
PRODUCT = (mdp.product({"a": "prefix", "b": "range"}),)
MIXED = (*PRODUCT, mdp.product({"a": "range", "b": "identity"}), mdp.product({"b": "prefix"}))
JOINT = (*PRODUCT, mdp.product({"a": "range", "b": "prefix"}))
MARGINALS = (mdp.marginals([1, 2]),)
PAIRS = mdp.Workload(DOMAIN, mdp.kway(2, "prefix"))
"""Asks about both of any two attributes."""


def asked(mechanism: str, *entries, noise=GAUSSIAN, domain=DOMAIN, **options) -> Callable[[], Any]:
    return lambda: select(mdp.Workload(domain, *entries), mechanism=mechanism, noise=noise, **options)


def limited(name: str, value: int, attempt: Callable[[], Any]) -> Callable[[], Any]:
    """Return an attempt with a limit that is set wherever it is looked at."""

    def tried() -> None:
        with lowered({name: value}):
            attempt()

    return tried


def given(*entries, shares=None, **options) -> Callable[[], Any]:
    """Return an attempt to evaluate a strategy of one group an entry."""

    def evaluated() -> None:
        groups = [group for entry in entries for group in entry.expand(DOMAIN)]
        ranges = mdp.Workload(DOMAIN, mdp.product(a="range"))
        evaluate_given(ranges, groups, shares or [1.0] * len(groups), noise=GAUSSIAN, **options)

    return evaluated


SIZES: tuple[tuple[str, str, tuple[Any, ...]], ...] = (
    ("max_table_cells", "opt-kron", PRODUCT),
    ("max_table_cells", "identity", PRODUCT),
    ("axis_cells", "wavelet", PRODUCT),
    ("axis_cells", "quadtree", PRODUCT),
    ("MAX_QUERY_ENTRIES", "workload", MIXED),
    ("MAX_QUERY_ENTRIES", "workload", PRODUCT),
    ("max_pieces", "opt-m", MARGINALS),
    ("max_axis_pieces", "generalized-marginals", MIXED),
    ("axis_cells", "generalized-marginals", PRODUCT),
    (
        "max_axis_entries", "generalized-marginals",
        (mdp.dense([[1.0] * 30, [0.0] * 29 + [1.0]], ["a", "b"]),),
    ),
    ("max_table_cells", "opt-m", MARGINALS),
    ("max_table_cells", "datacube", MARGINALS),
    ("MAX_ASKED_MARGINALS", "datacube", MARGINALS),
    ("axis_cells", "fourier-thresholds", PRODUCT),
    ("MAX_FOURIER_CELLS", "fourier", JOINT),
    ("max_measured_cells", "dense", (mdp.product(a="prefix"),)),
)  # fmt: skip


def too_large(name: str, mechanism: str, entries: tuple[Any, ...]) -> Refusal:
    value = 2 if name in ("max_pieces", "MAX_ASKED_MARGINALS") else 4
    said = f"{name} of {mechanism}, {len(entries)} entries"
    return Refusal(said, "too-large", "", limited(name, value, asked(mechanism, *entries)))


def planned(cost: Any, noise: Any = GAUSSIAN) -> Callable[[], Any]:
    return lambda: calibrate(asked("residual", *MARGINALS)().plan, Cost(cost, noise), 2**33)


def aimed(**targets: Any) -> Callable[[], Any]:
    small = mdp.product(a="prefix", name="small")
    return lambda: mdp.select(mdp.Workload(DOMAIN, small), targets=targets)


def aimed_at(targets: dict[str, Any], *entries: Any) -> Callable[[], Any]:
    return lambda: mdp.select(mdp.Workload(mdp.Domain({"a": range(4)}), *entries), targets=targets)


def sharing(share: float, queries: Any = "identity", **beside: Any) -> Callable[[], Any]:
    entries = mdp.marginals([["a"]]), mdp.product(b=queries, budget_share=share, name="b")
    return lambda: mdp.select(mdp.Workload(DOMAIN, *entries), **beside)


PRECISE = {"cv": 0.1, "for": {"records_above": 200}}


def based(bases: Any, *entries, domain=DOMAIN) -> Callable[[], Any]:
    return asked("residualplanner-plus", *(entries or (mdp.kway(2, "prefix"),)), domain=domain, bases=bases)


#: By the code of the error, and its place where one is named.
REJECTED: dict[tuple[str, str], dict[str, Callable[[], Any]]] = {
    ("workload", ""): {
        "hb of three attributes": asked("hb", *MARGINALS, domain=mdp.Domain({n: range(3) for n in "abc"})),
        "datacube of a product": asked("datacube", *PRODUCT),
        "datacube of a matrix": asked("datacube", mdp.dense(np.eye(6), ["a"])),
        "thresholds of a union": asked("fourier-thresholds", *MIXED),
        "a quadtree of three attributes": asked("quadtree", *MARGINALS),
        "residualplanner of a product": asked("residualplanner", *PRODUCT),
        "residualplanner of differences": asked("residualplanner", mdp.pairwise("affine", ["a", "b"])),
        "an unknown objective": asked("residual", *PRODUCT, objective="least"),
        "queries that are all zero": asked("residual", mdp.product(a={"matrix": [[0.0] * 6]})),
        "marginals that determine too little": lambda: uniform_marginals(
            mdp.Workload(DOMAIN, mdp.marginals(2)), GAUSSIAN, [("a",), ("b",)], "none"
        ),
        "an objective of a given strategy": given(mdp.product(a="identity"), objective="mean"),
        "a basis that has the total alone": based({"a": np.ones((2, 6))}),
        "a basis that does not span": based({"a": np.eye(6)[:3]}),
        "bases of attributes of one role": based(
            {"a": np.eye(4), "b": np.tril(np.ones((4, 4)))},
            mdp.kway(1, "prefix"),
            domain=mdp.Domain({"a": 4, "b": 4}),
        ),
        "a basis that nothing asks about": based({"b": np.eye(5)}, mdp.product(a="prefix")),
    },
    ("privacy", ""): {
        "unknown neighbours": asked("residual", *PRODUCT, neighbours="any"),
        "dense under Laplace noise": asked("dense", *PRODUCT, noise=LAPLACE),
        "the decomposition under Laplace noise": asked("residual", *PRODUCT, noise=LAPLACE),
    },
    ("out-of-range", ""): {
        **{f"a cost of {cost}": planned(cost) for cost in (Fraction(0), Fraction(-1), Fraction(10**12))},
        "an error of 0": lambda: LeastBudget("rho").least(GAUSSIAN.error_scale, 0.0),
    },
    ("wrong-type", ""): {f"a cost of {cost}": planned(cost) for cost in (0.5, float("nan"))},
    ("conflict", ""): {"a cost of another noise": planned(Fraction(1), LAPLACE)},
    ("unknown-name", "mechanism"): {
        "an unknown mechanism": asked("best", *PRODUCT),
    },
    ("workload", "mechanism"): {
        "a mechanism that depends on the data": asked("dawa", *PRODUCT),
    },
    ("unknown-name", "noise"): {
        "an unknown noise": lambda: mdp.select(PAIRS, noise="uniform"),
    },
    ("workload", "sub_solver"): {
        "an unknown sub-solver": asked("residual", *PRODUCT, sub_solver="best"),
    },
    ("workload", "gap"): {
        **{f"a gap of {gap}": asked("opt-0", *PRODUCT, gap=gap) for gap in (-1.0, float("inf"))},
    },
    ("workload", "restarts"): {
        "restarts below 0": asked("opt-m", *PRODUCT, noise=LAPLACE, restarts=-1),
    },
    ("not-converged", ""): {
        "rows that are all zero": lambda: solve_rows(np.zeros((2, 5))),
    },
    ("too-large", ""): {
        "cells that do not factor": asked(
            "dense", mdp.kway(2, "prefix"), mdp.marginals(2), domain=mdp.Domain({"a": 100, "b": 100})
        ),
        "marginals of many attributes": lambda: asked(
            "opt-m", mdp.marginals(22), domain=mdp.Domain({f"a{i}": 2 for i in range(22)})
        )(),
        "a marginal of many cells": asked(
            "opt-m", mdp.marginals(2), domain=mdp.Domain({"a": 20_000, "b": 20_000})
        ),
        "a given strategy of many entries": limited("MAX_GIVEN_ENTRIES", 30, given(mdp.product(a="prefix"))),
        "a given strategy of two attributes": limited(
            "MAX_GIVEN_ENTRIES", 30, given(mdp.dense(np.eye(10), ["b", "c"]))
        ),
    },
    ("workload", "a: prefix"): {
        "a given strategy with a weight": given(mdp.product(a="prefix", weight=2.0)),
        "a given strategy with weights": given(mdp.product(a="prefix", weights=np.ones(6))),
    },
    ("workload", "a: dense"): {
        "a given strategy of zeros": given(mdp.dense(np.zeros((2, 6)), ["a"])),
        "entries of a given strategy": given(mdp.dense(np.diag([1.0] * 5 + [2.0**31 + 1]), ["a"])),
    },
    ("unsupported-query", ""): {
        "a given strategy that determines too little": given(mdp.product(a={"sliding": 3})),
    },
    ("workload", "the strategy"): {
        "shares that are far apart": given(
            mdp.product(a="prefix"), mdp.product(a="identity"), shares=[1.0, 1e24]
        ),
    },
    ("conflict", "workload[1].budget_share"): {
        "shares beside targets": sharing(0.4, targets={"b": 3.0}),
        "shares beside the largest variance": sharing(0.4, objective="max"),
        "shares in two rounds": sharing(0.4, rounds=2),
        "shares of a strategy that is given": lambda: mdp.Strategy.from_parts(
            DOMAIN, [mdp.marginals(1), mdp.marginals(0, budget_share=0.4)]
        ),
    },
    ("out-of-range", "workload[1].budget_share"): {
        "a share that leaves nothing": sharing(1.0),
    },
    ("empty", "workload[1]"): {
        "a share of queries that are all zero": sharing(0.4, queries={"matrix": [[0.0] * 5]}),
    },
    ("not-supported", "workload[0].share.budget_share"): {
        "a share of an entry in another": lambda: mdp.Workload(
            DOMAIN, mdp.ask.share(mdp.marginals([["b"]], budget_share=0.4))
        ),
    },
    ("unknown-name", "targets.smal"): {
        "an unknown target": aimed(smal=1.0),
    },
    ("out-of-range", "targets.small"): {
        **{f"a target of {value}": aimed(small=value) for value in (0, float("nan"))},
    },
    ("wrong-type", "targets.small"): {
        "a target of True": aimed(small=True),
    },
    ("empty", "targets"): {
        "no targets": aimed(),
    },
    ("not-supported", "targets.m"): {
        "a target on a mean": aimed_at({"m": 0.2}, mdp.ask.mean("a", name="m")),
        "a target on a median": aimed_at({"m": 0.2}, mdp.ask.quantile("a", 0.5, name="m")),
    },
    ("not-supported", "targets.n"): {
        "a number for the name of a mean": aimed_at({"n": 0.2}, mdp.ask.mean("a", name="n")),
        "what a quantile cannot have": aimed_at({"n": PRECISE}, mdp.ask.quantile("a", 0.5, name="n")),
        "what a ratio cannot have": aimed_at(
            {"n": PRECISE}, mdp.ask.ratio(mdp.marginals([["a"]]), mdp.marginals(0), name="n")
        ),
        "what a share of an entry cannot have": aimed_at(
            {"n": PRECISE}, mdp.ask.share(mdp.marginals([["a"]]), of=mdp.marginals(0), name="n")
        ),
        "what a share of differences cannot have": aimed_at(
            {"n": PRECISE}, mdp.ask.share(mdp.dense([[1, -1, 0, 0]], ["a"]), name="n")
        ),
        "what a share of weighted counts cannot have": aimed_at(
            {"n": PRECISE}, mdp.ask.share(mdp.product(a={"matrix": [[2, 0, 0, 0]]}), name="n")
        ),
        "a standard error of counts of so many": aimed_at(
            {"n": {"stddev": 3, "for": {"records_above": 9}}}, mdp.product(a="prefix", name="n")
        ),
        "a coefficient of variation of a sum": aimed_at({"n": PRECISE}, mdp.ask.sum("a", name="n")),
    },
    ("out-of-range", "targets.n.for.mean_above"): {
        "means that may be 0, relatively": aimed_at({"n": PRECISE}, mdp.ask.mean("a", name="n")),
        "means that no mean is above": aimed_at(
            {"n": {"cv": 0.1, "for": {"records_above": 9, "mean_above": 3}}}, mdp.ask.mean("a", name="n")
        ),
    },
    ("not-supported", "targets.n.for.mean_above"): {
        "a mean of shares": aimed_at(
            {"n": {"cv": 0.1, "for": {"records_above": 9, "mean_above": 3}}},
            mdp.ask.share(mdp.marginals([["a"]]), name="n"),
        ),
    },
    ("not-supported", "targets"): {
        "a target on all of no counts": aimed_at({"all": 0.2}, mdp.ask.sum("a")),
    },
    ("unknown-name", "budget.least"): {
        "a budget of no kind": lambda: LeastBudget("sigma"),
    },
    ("conflict", "budget.delta"): {
        "a delta beside rho": lambda: LeastBudget("rho", 1e-6),
    },
    ("wrong-type", "bases"): {
        "bases that are no mapping": based(3),
    },
    ("wrong-size", "bases.b.matrix"): {
        "a basis of three columns": based({"b": np.eye(3)}),
    },
    ("unknown-name", "bases.z"): {
        "a basis of an unknown attribute": based({"z": "prefix"}),
    },
}
REFUSALS = [
    *(too_large(*limit) for limit in SIZES),
    *(Refusal(name, *key, attempt) for key, own in REJECTED.items() for name, attempt in own.items()),
]
