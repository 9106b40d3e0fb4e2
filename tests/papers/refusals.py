"""What the code of papers rejects: arguments of families, and what its mechanisms cannot do."""

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from importlib import import_module
from types import SimpleNamespace
from typing import Any

import numpy as np
import workload_families as families
from workload_families import relative_error

import matrixdp as mdp
from matrixdp.measure.calibration import NoiseScale
from matrixdp.mechanisms import factor_of
from matrixdp.noise import GAUSSIAN, LAPLACE, SeededSource
from matrixdp.papers import door, privbayes
from matrixdp.papers.dawa import simulate
from matrixdp.papers.dawa.partition import Partition
from matrixdp.papers.dawa.tree import greedy_tree
from matrixdp.papers.matrix_programs import sensitivity_factor
from matrixdp.papers.privbayes import network
from tests.refusals import Refusal
from tests.selection.oracle import lowered
from tests.selection.refusals import limited

#: The module, whose name is that of its function too.
dawa = import_module("matrixdp.papers.dawa.dawa")
DOMAIN = mdp.Domain(
    {"sex": ["female", "male"], "age": {"min": 10, "max": 14}, "pay": {"edges": [0, 1, 5, 9]}}
)
LINE = mdp.Workload(mdp.Domain({"a": 8}), mdp.product(a="range"))
ONE = mdp.Budget(epsilon=1)


def drawn(*entries, domain=DOMAIN, **options):
    """Return an attempt to simulate DAWA on a table that is never read."""
    return call(simulate, mdp.Workload(domain, *entries), "no such table", ONE, **options)


def call(function, *arguments, **options):
    return lambda: function(*arguments, **options)


def without_noise() -> None:
    mechanism = dawa.prepared(LINE, ONE)
    tree = greedy_tree(mechanism.gram, np.array([4, 4]))
    with lowered({"lattice_scale": lambda *given: NoiseScale(Fraction(1), -4, LAPLACE)}):
        mechanism.sums(tree, np.arange(2), SeededSource(1))


def without_noise_in_families() -> None:
    module = import_module("matrixdp.papers.privbayes.mechanism")
    counts = network.PrivateCounts(lambda asked: {own: np.zeros(8, dtype=np.int64) for own in asked})
    with lowered({"lattice_scale": lambda *given: NoiseScale(Fraction(1), -4, LAPLACE)}):
        module.prepared(LINE, ONE).measured(counts, [("a", ())], SeededSource(1))


def without_a_marginal() -> None:
    opened = door.Asked("dawa", LINE.domain, ("a",), ONE).open({"a": [1]})
    silent: Any = SimpleNamespace(marginals=lambda *own: [])
    replace(opened, source=silent).counts([("a",)])


#: By the code of the error, and its place where one is named.
REJECTED: dict[tuple[str, str], dict[str, Callable[[], Any]]] = {
    ("workload", ""): {
        "no queries": call(families.w_discrete, DOMAIN, 0),
        "a probability above 1": call(families.w_discrete, DOMAIN, 3, 1.5),
        "a ratio of 0": call(families.w_related, DOMAIN, 3, 0),
        "True queries": call(families.w_range, DOMAIN, True),
        "more queries than there are": call(families.w_marginal, DOMAIN, 32),
        "more ways than attributes": call(families.w_marginal, DOMAIN, 3, ways=4),
        "suffixes": call(families.all_marginals, DOMAIN, "suffix"),
        "totals": call(families.small_products, DOMAIN, "total"),
        "a profile of rank 1": call(sensitivity_factor, np.ones((3, 3)), LAPLACE),
        "dawa of two attributes": drawn(mdp.marginals(2)),
        "dawa of no attribute": drawn(mdp.marginals(0)),
        "dawa of a union": drawn(mdp.product(age="prefix"), mdp.product(pay="prefix")),
        "one simulation": drawn(mdp.product(age="range"), simulations=1),
        "privbayes of no attribute": call(
            privbayes.simulate, mdp.Workload(DOMAIN, mdp.marginals(0)), {}, ONE
        ),
    },
    ("not-supported", "score"): {
        "a score of two values for more": call(privbayes.simulate, LINE, {}, ONE, score="F"),
    },
    ("not-supported", "domain.pay"): {
        f"amounts in {simulated.__module__}": call(
            simulated,
            mdp.Workload(mdp.Domain({"pay": {"amount": [0, 100]}}), mdp.ask.sum("pay")),
            {"pay": [1]},
            ONE,
        )
        for simulated in (simulate, privbayes.simulate)
    },
    ("unknown-name", "score"): {"an unknown score": call(privbayes.simulate, LINE, {}, ONE, score="S")},
    ("workload", "attributes"): {
        f"attributes {names}": call(families.w_range, DOMAIN, 3, names) for names in (["agee"], ["sex"] * 2)
    },
    ("workload", "entries[0]"): {
        "relative errors of two groups": call(relative_error, DOMAIN, mdp.marginals([1])),
        "errors relative to 0": call(relative_error, DOMAIN, mdp.dense(np.eye(2, 3) * [1, 0, 0], ["pay"])),
    },
    ("too-large", ""): {
        "too many numbers": limited("MAX_EXPLICIT_ENTRIES", 50, call(families.w_range, DOMAIN, 2)),
        "dawa of many cells": drawn(mdp.product(a="prefix"), domain=mdp.Domain({"a": 5000})),
        "privbayes of many cells": call(
            privbayes.simulate, mdp.Workload(mdp.Domain({"a": 5000, "b": 5000}), mdp.marginals(2)), {}, ONE
        ),
    },
    ("out-of-range", "share"): {
        f"a share of {share}": call(dawa.prepared, LINE, ONE, share=share) for share in (0, 1, -0.5, "half")
    },
    ("privacy", ""): {
        "a scale that is not supported": call(door.lattice_scale, 2, Fraction(1, 10**6), -14, -2),
        "noise too small for its share": without_noise,
        "noise too small for the tables of families": without_noise_in_families,
    },
    ("not-converged", ""): {
        "a strategy that does not support every query": call(factor_of, np.ones((1, 4)), np.eye(4), GAUSSIAN),
        **{f"edges {edges}": call(Partition, np.array(edges)) for edges in ([0], [1, 2], [0, 2, 2])},
    },
    ("source", ""): {"a source that returns nothing": without_a_marginal},
}
REFUSALS = [Refusal(name, *key, attempt) for key, own in REJECTED.items() for name, attempt in own.items()]
