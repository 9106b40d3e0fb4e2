"""What serves large tables, held against what serves small ones, on small tables with the limits lowered."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

import matrixdp as mdp
from matrixdp.noise import GAUSSIAN, LAPLACE
from matrixdp.selection.auto import select
from tests.selection.oracle import check, lowered

RNG = np.random.default_rng(3)
TURNED = RNG.permutation(37)
LINE = mdp.Domain({"a": 37})
PAIR = mdp.Domain({"a": 9, "b": 6})
WIDE = mdp.Domain({"a": [f"v{i}" for i in range(12)], "b": range(6)})
LONG = mdp.Domain({"x": range(72), "sex": ["f", "m"], "race": ["a", "b", "c"]})
PREFIX, RANGE = mdp.product(a="prefix"), mdp.product(a="range")
BESIDE = mdp.kway([1, 2], {"numeric": "prefix", "categorical": "identity"})
MIXED = [mdp.kway(2, "prefix"), mdp.marginals(2), mdp.pairwise("affine")]
CROSSED = [mdp.product(a=x, b=y) for x, y in (("prefix", "identity"), ("identity", "prefix"))]
BOXES = [mdp.cells([{"a": [0, 3], "b": 0}, [{"a": 3, "b": [0, 2]}, {"a": 0}]]), mdp.marginals(1)]
RINGED = [mdp.kway(1, "prefix"), mdp.pairwise("affine")]
#: Of how many values an attribute counts as large in chains, and of how many by dense steps.
CHAINS: dict[str, object] = {"min_chain_cells": 4}
GRID: dict[str, object] = {"max_searched_size": 64, "GRID_POINTS": 36}
Path = tuple[Mapping[str, object], mdp.Domain, list[Any], str, Any, float, float]

#: Limits, the domain, what is asked, of whom; and between which shares of the usual error the error may lie.
PATHS: dict[str, Path] = {
    "a chain of prefixes": (CHAINS, LINE, [PREFIX], "dense", GAUSSIAN, 1, 1),
    "a chain of suffixes": (CHAINS, LINE, [mdp.product(a={"matrix": np.tri(37).T}), mdp.marginals(0)], "dense", GAUSSIAN, 1, 1),  # noqa: E501
    "a chain of ranges": (CHAINS, LINE, [RANGE, PREFIX], "dense", GAUSSIAN, 1, 1),
    "a chain in another order": (CHAINS, LINE, [mdp.product(a={"matrix": np.tri(37)[:, TURNED]})], "dense", GAUSSIAN, 1, 1),  # noqa: E501
    "a chain of few values": (CHAINS, LINE, [mdp.product(a={"matrix": np.tri(6)[:, TURNED % 6]})], "dense", GAUSSIAN, 1, 1),  # noqa: E501
    "a chain less its mean": (CHAINS, WIDE, [BESIDE], "residual", GAUSSIAN, 1, 1),
    "weighted prefixes": (CHAINS, LINE, [mdp.product(a={"matrix": np.tri(37) * RNG.random((37, 1))})], "residual", GAUSSIAN, 1, 1),  # noqa: E501
    "a long chain": (CHAINS | {"chains_large_cells": 20}, LINE, [PREFIX], "dense", GAUSSIAN, 1, 1.001),
    "a long chain of ranges": (CHAINS | {"chains_large_cells": 20, "_MIN_REFINED_CELLS": 36}, LINE, [RANGE], "dense", GAUSSIAN, 1, 1.001),  # noqa: E501
    "many values": ({"chains_large_cells": 20}, LINE, [mdp.product(a={"sliding": 5}), mdp.product(a="identity", weights=1.0 + RNG.random(37))], "dense", GAUSSIAN, 1, 1.001),  # noqa: E501
    "threads": ({"THREADED_CELLS": 16} | CHAINS, WIDE, [BESIDE], "residual", GAUSSIAN, 1, 1),
    "many missing": ({"THREADED_CELLS": 16, "_MANY_MISSING": 1}, PAIR, MIXED[2:], "dense", GAUSSIAN, 1, 1.003),  # noqa: E501
    "weights on a grid": (GRID, LONG, [mdp.product(x="prefix", sex="identity"), mdp.marginals(1)], "residual", GAUSSIAN, 1, 1.001),  # noqa: E501
    "two sets on a grid": (GRID, LONG, [mdp.product(x="prefix", sex="identity"), mdp.product(x="range", race="identity")], "residual", GAUSSIAN, 1, 1.001),  # noqa: E501
    "no optimum of the pair": ({"joint_cells": 40}, PAIR, MIXED, "querysmasher", GAUSSIAN, 1.003, 1.3),
    "free bases": ({"joint_cells": 40}, PAIR, CROSSED, "residual", GAUSSIAN, 1, 1.03),
    "no free bases": ({"joint_cells": 40, "max_free_cells": 3}, PAIR, CROSSED, "residual", GAUSSIAN, 1.001, 1.05),  # noqa: E501
    "no whole table": ({"max_compared_cells": 1}, PAIR, CROSSED, "auto", GAUSSIAN, 1, 1.02),
    "no table of pairs": ({"_MAX_DESIGNED_CELLS": 11}, PAIR, RINGED, "residual", GAUSSIAN, 1.01, 1.2),
    "no table of rank": ({"_MAX_TABLE_RANK": 9}, PAIR, RINGED, "residual", GAUSSIAN, 1.01, 1.2),
    "no common unknowns": ({"_MAX_SHARED_UNKNOWNS": 6}, PAIR, RINGED, "residual", GAUSSIAN, 1.01, 1.2),
    "no search of unknowns": ({"_MAX_SEARCHED_UNKNOWNS": 6}, PAIR, RINGED, "residual", GAUSSIAN, 1.01, 1.2),
    "boxes written out": ({"MAX_BOX_TERMS": 2}, PAIR, BOXES, "residual", GAUSSIAN, 0.9, 1.1),
    "single questions as they are": ({"LEAST_GATHERED": 99}, PAIR, [mdp.product(a={"ranges": [[i, i + 2]]}, b="prefix") for i in range(7)] * 2, "dense", GAUSSIAN, 1, 1),  # noqa: E501
    "large categories, whole": ({"_MOST_SYMMETRIC": 10}, WIDE, [BESIDE], "opt-plus", LAPLACE, 0.99, 1.1),
    "averages that are fast": ({"_MOST_UNION_WORK": -1.0}, PAIR, CROSSED, "opt-plus", GAUSSIAN, 1, 1.2),
    "averages that are small": ({"MAX_VALUES": 3, "MAX_COMMON": 0}, PAIR, CROSSED, "opt-plus", GAUSSIAN, 1, 1.2),  # noqa: E501
    "values one by one": ({"FEW_VALUES": 2}, PAIR, [*CROSSED, mdp.marginals(1)], "opt-plus", GAUSSIAN, 1, 1),
    "a search without random starts": ({"_LARGE_CELLS": 30, "searched_cells": 30}, LINE, [PREFIX], "opt-0", LAPLACE, 0.99, 1.05),  # noqa: E501
    "a search without dimensions": ({"_LARGE_CELLS": 30, "searched_cells": 30, "small_cells": 20}, LINE, [PREFIX], "opt-0", LAPLACE, 0.99, 1.05),  # noqa: E501
    "products in steps": ({"_KRON_SUM_ENTRIES": 100, "_MIN_OPERATOR_CELLS": 8}, PAIR, [*CROSSED, mdp.kway(1, "range")], "residual", GAUSSIAN, 1, 1),  # noqa: E501
    "queries that repeat": ({"COMPRESSED_QUERIES": 10}, PAIR, [mdp.product(a="range", b="range", weight=3)], "residual", GAUSSIAN, 1, 1),  # noqa: E501
}  # fmt: skip


@pytest.mark.parametrize("name", PATHS)
def test_what_serves_large_tables_does_as_well(name: str) -> None:
    limits, domain, entries, mechanism, noise, low, high = PATHS[name]
    usual = check(select(mdp.Workload(domain, *entries), mechanism=mechanism, noise=noise))
    with lowered(limits):
        selection = select(mdp.Workload(domain, *entries), mechanism=mechanism, noise=noise)
        found = check(selection)
    assert low * (1 - 3e-4) <= found / usual <= high * (1 + 3e-4)
    if mechanism == "dense":
        assert selection.certificate.gap < max(high - 1, 1e-4) + 1e-6
