"""What a mechanism cannot do is refused, with what to take instead."""

import sys

import numpy as np
import pytest

import matrixdp as mdp
from matrixdp.errors import MatrixDPError
from matrixdp.noise import GAUSSIAN, LAPLACE
from matrixdp.selection.auto import select
from matrixdp.selection.mechanisms.table import MECHANISMS

DOMAIN = mdp.Domain({"a": 6, "b": 5, "c": 2})
PRODUCT = mdp.product({"a": "prefix", "b": "range"})
MIXED = (PRODUCT, mdp.product({"a": "range", "b": "identity"}), mdp.product({"b": "prefix"}))
JOINT = (mdp.product({"a": "prefix", "b": "range"}), mdp.product({"a": "range", "b": "prefix"}))
MARGINALS = (mdp.marginals([1, 2]),)
EXPLICIT = (mdp.dense([[1.0] * 30, [0.0] * 29 + [1.0]], ["a", "b"]),)


@pytest.fixture
def limit(monkeypatch: pytest.MonkeyPatch):
    """Set a limit wherever it is looked at."""

    def set_limit(name: str, value: int) -> None:
        found = [m for key, m in sys.modules.items() if key.startswith("matrixdp.") and name in vars(m)]
        assert found, f"no module has {name}"
        for module in found:
            monkeypatch.setattr(module, name, value)

    return set_limit


def refused(entries, mechanism: str, says: str, noise=GAUSSIAN, **options) -> None:
    with pytest.raises(MatrixDPError, match=says):
        select(mdp.Workload(DOMAIN, *entries), mechanism=mechanism, noise=noise, **options)


@pytest.mark.parametrize(
    ("name", "entries", "mechanism", "says"),
    [
        ("MAX_TABLE_CELLS", [PRODUCT], "opt-kron", "opt-kron: a x b has 30 cells; the limit is 4"),
        ("MAX_TABLE_CELLS", [PRODUCT], "identity", "identity: .* has .* cells; the limit is 4"),
        ("MAX_AXIS_CELLS", [PRODUCT], "wavelet", "wavelet: attribute 'a' has 6 values; the limit is 4"),
        ("MAX_AXIS_CELLS", [PRODUCT], "quadtree", "quadtree: a x b has 6 x 5 cells; the limit is 4"),
        ("MAX_QUERY_ENTRIES", MIXED, "workload", "workload: .* queries over 30 cells would be written out"),
        ("MAX_QUERY_ENTRIES", [PRODUCT], "workload", "workload: .* predicates over .* would be written out"),
        ("MAX_PIECES", MARGINALS, "opt-m", "marginals of up to . attributes are asked about"),
        ("MAX_AXIS_PIECES", MIXED, "generalized-marginals", "products have more than 4 pieces on marginals"),
        (
            "MAX_AXIS_CELLS",
            [PRODUCT],
            "generalized-marginals",
            "other queries than identities on an attribute",
        ),
        ("MAX_WRITTEN_ENTRIES", EXPLICIT, "generalized-marginals", "entries would be written out"),
        ("MAX_COUNTED_CELLS", MARGINALS, "opt-m", "asks about a marginal of 30 cells; the limit is"),
        ("MAX_COUNTED_CELLS", MARGINALS, "datacube", "asks about a marginal of 30 cells; the limit is"),
        ("MAX_ASKED_MARGINALS", MARGINALS, "datacube", "more than 2 marginals are asked about"),
        ("MAX_AXIS_CELLS", [PRODUCT], "fourier-thresholds", "attribute 'a' has 6 values; the limit is 4"),
        ("MAX_FOURIER_CELLS", JOINT, "fourier", "fourier: a sub-workload of .* cells that does not factor"),
    ],
)
def test_what_is_too_large_is_refused(limit, name: str, entries, mechanism: str, says: str):
    assert MECHANISMS[mechanism]  # its modules are read when it is asked for
    limit(name, 2 if name in ("MAX_PIECES", "MAX_ASKED_MARGINALS") else 4)
    refused(entries, mechanism, says)


def test_hb_is_a_tree_over_one_or_two_numeric_attributes():
    domain = mdp.Domain({name: range(3) for name in "abc"})
    with pytest.raises(
        MatrixDPError, match="hb: the workload asks about 3 numeric attributes; expected 1 or"
    ):
        select(mdp.Workload(domain, *MARGINALS), mechanism="hb", noise=GAUSSIAN)


@pytest.mark.parametrize(
    ("entries", "mechanism", "noise", "options", "says"),
    [
        ([PRODUCT], "datacube", GAUSSIAN, {}, "datacube answers marginals only, which are products of"),
        ([mdp.dense(np.eye(6), ["a"])], "datacube", GAUSSIAN, {}, "datacube answers marginals only; use"),
        (MIXED, "fourier-thresholds", GAUSSIAN, {}, "fourier-thresholds: the workload is not one product"),
        (MARGINALS, "quadtree", GAUSSIAN, {}, "quadtree: the workload asks about 3 attributes; expected 2"),
        ([PRODUCT], "residualplanner", GAUSSIAN, {}, "residualplanner answers marginals only; use"),
        ([PRODUCT], "residual", GAUSSIAN, {"objective": "least"}, "found 'least'; expected sum or max"),
        ([PRODUCT], "residual", GAUSSIAN, {"neighbours": "any"}, "found 'any'; expected 'add_remove'"),
        ([PRODUCT], "residual", LAPLACE, {"sub_solver": "fourier"}, "is for Gaussian noise"),
        ([PRODUCT], "opt-0", GAUSSIAN, {"gap": -1.0}, "gap: found -1.0; expected a finite number above 0"),
        ([PRODUCT], "opt-0", GAUSSIAN, {"gap": float("inf")}, "gap: found inf; expected a finite number"),
        ([PRODUCT], "opt-m", LAPLACE, {"restarts": -1}, "found -1; expected a whole number of at least 0"),
        ([PRODUCT], "dense", LAPLACE, {}, "dense selects for gaussian noise alone; found laplace"),
        ([PRODUCT], "dawa", GAUSSIAN, {}, "'dawa', whose error depends on the data"),
    ],
)
def test_what_a_mechanism_does_not_do_is_refused(entries, mechanism, noise, options, says: str):
    refused(entries, mechanism, says, noise, **options)
