"""The baselines by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from matrixdp.queries import Workload
from matrixdp.selection.baselines.answers import select_workload
from matrixdp.selection.baselines.coa import select_coa
from matrixdp.selection.baselines.datacube import select_datacube
from matrixdp.selection.baselines.eigen_query import select_eigen_query
from matrixdp.selection.baselines.embedded_fourier import select_embedded_fourier
from matrixdp.selection.baselines.greedy_h import select_greedy_h
from matrixdp.selection.baselines.identity import select_identity
from matrixdp.selection.baselines.low_rank import select_low_rank
from matrixdp.selection.baselines.matrix_mechanism import (
    select_l2_approximation,
    select_rotation,
    select_singular_value,
)
from matrixdp.selection.baselines.products import Choice
from matrixdp.selection.baselines.smoothing import select_smoothing
from matrixdp.selection.baselines.trees import select_hb, select_hierarchical, select_quadtree
from matrixdp.selection.baselines.wavelet import select_wavelet

__all__ = ["BASELINES"]

_BOTH = ("gaussian", "laplace")
_GAUSSIAN = ("gaussian",)

#: How each is selected, its paper, and the kinds of noise that it selects for.
BASELINES: Mapping[str, tuple[Callable[[Workload, str], Choice], str, tuple[str, ...]]] = MappingProxyType(
    {
        "identity": (select_identity, "Dwork et al. 2006: noise on every cell", _BOTH),
        "workload": (select_workload, "Dwork et al. 2006: noise on every query", _BOTH),
        "hierarchical": (select_hierarchical, "Hay et al. 2010: binary trees (H2)", _BOTH),
        "hb": (select_hb, "Qardaji et al. 2013: trees of the best branching", _BOTH),
        "wavelet": (select_wavelet, "Xiao et al. 2010: the Haar wavelet (Privelet)", _BOTH),
        "quadtree": (select_quadtree, "Cormode et al. 2012: a quadtree over two attributes", _BOTH),
        "greedy-h": (select_greedy_h, "Li et al. 2014: binary trees with greedy weights", _BOTH),
        "datacube": (select_datacube, "Ding et al. 2011: marginals by greedy covering", _BOTH),
        "l2-approximation": (
            select_l2_approximation,
            "Li et al. 2010, section 5.2: the matrix mechanism in the L2 norm",
            _BOTH,
        ),
        "singular-value": (
            select_singular_value,
            "Li et al. 2015, section 5: the singular value bound approximation",
            _BOTH,
        ),
        "rotation": (
            select_rotation,
            "Li et al. 2015, section 5: the L2 approximation rotated for the L1 norm",
            _BOTH,
        ),
        "low-rank": (select_low_rank, "Yuan et al. 2012: the low-rank mechanism", _BOTH),
        "eigen-query": (
            select_eigen_query,
            "Li and Miklau 2012: weighted eigenvectors (the adaptive mechanism)",
            _BOTH,
        ),
        "exponential-smoothing": (
            select_smoothing,
            "Yuan et al. 2015: exponential smoothing",
            _GAUSSIAN,
        ),
        "fourier-thresholds": (
            select_embedded_fourier,
            "Weighted Fourier Factorizations: thresholds as half circles, for one product",
            _GAUSSIAN,
        ),
        "coa": (select_coa, "Yuan et al. 2016: the optimum by Newton steps", _GAUSSIAN),
    }
)
