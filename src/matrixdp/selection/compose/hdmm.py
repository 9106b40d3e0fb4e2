"""OPT_HDMM: all of its strategies, and the one with the least error."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from matrixdp.errors import TooLargeError
from matrixdp.noise import Noise
from matrixdp.plan import Plan
from matrixdp.queries import Workload
from matrixdp.selection.compose.kron import AS_MANY_AS_PAY, select_kron
from matrixdp.selection.compose.marginals import select_marginals
from matrixdp.selection.compose.union import select_union
from matrixdp.selection.compose.whole_table import select_directly, solve_table
from matrixdp.selection.gram import DEFAULT_GAP
from matrixdp.selection.gram.factor import Factor
from matrixdp.selection.gram.opt_0 import Rows, solve_axis
from matrixdp.selection.problem.kron_sum import MAX_AXIS_CELLS
from matrixdp.selection.selection import Certificate

__all__ = ["KINDS", "select_hdmm", "select_whole"]

Array = NDArray[np.float64]
Progress = Callable[[str, float | None], None]
Choice = tuple[Plan, Certificate]

#: The strategies that are compared, in the order in which ties are decided.
KINDS = ("opt-kron", "opt-m", "opt-plus", "opt-0")
#: Within the comparison the whole table is searched up to this many cells that do not factor.
MAX_SEARCHED_CELLS = 256


def select_whole(
    workload: Workload,
    noise: Noise,
    *,
    gap: float = DEFAULT_GAP,
    seed: int = 0,
    progress: Progress | None = None,
    max_cells: int | None = None,
    rows: Rows = AS_MANY_AS_PAY,
) -> Choice:
    """Select one explicit strategy on the table of all attributes that are asked about.

    Attributes on which every group asks proportional queries factor out; ``max_cells`` limits the rest. The
    bound is that of the Gaussian optimum, which holds under any noise as L1 norms are at least L2 norms.

    References
    ----------
    McKenna et al. 2018, section 5 (OPT_0).

    Examples
    --------
    >>> import matrixdp as mdp
    >>> from matrixdp.noise import LAPLACE
    >>> workload = mdp.Workload(mdp.Domain({"a": 64}), mdp.product(a="range"))
    >>> _, certificate = select_whole(workload, LAPLACE)
    >>> (certificate.loss / workload.queries) ** 0.5 < 5.555  # McKenna et al., Table 4: 5.55
    True
    """
    if noise.norm == 2:
        return select_directly(workload, noise, gap)

    def search(gram: Array, _: Sequence[int]) -> Factor:
        again = rows.restarts or None
        p = rows.of(len(gram))
        return solve_axis(gram, noise, gap=gap, seed=seed, restarts=again, progress=progress, p=p)

    return solve_table(
        workload,
        noise,
        "opt-0",
        search,
        MAX_AXIS_CELLS if max_cells is None else max_cells,
        max_axis=math.inf,
        instead="opt-kron, opt-plus or opt-m",
        certified=f"every strategy with {noise} noise",
    )


def _choice(workload: Workload, noise: Noise, gap: float, seed: int, rows: Rows, kind: str) -> Choice:
    """Return what one of the strategies is; raises TooLargeError if it does not fit."""
    if kind == "opt-kron":
        return select_kron(workload, noise, gap=gap, seed=seed, rows=rows)
    if kind == "opt-m":
        return select_marginals(workload, noise, seed=seed)
    if kind == "opt-plus":
        return select_union(workload, noise, gap=gap, seed=seed, rows=rows)
    return select_whole(workload, noise, gap=gap, seed=seed, max_cells=MAX_SEARCHED_CELLS, rows=rows)


def select_hdmm(
    workload: Workload,
    noise: Noise,
    *,
    gap: float = DEFAULT_GAP,
    seed: int = 0,
    progress: Progress | None = None,
    rows: Rows = AS_MANY_AS_PAY,
) -> tuple[Plan, Certificate, str]:
    """Select with all strategies of HDMM and keep the one with the least error.

    References
    ----------
    McKenna et al. 2018, section 6.4 (OPT_HDMM).

    Examples
    --------
    >>> import matrixdp as mdp
    >>> from matrixdp.noise import LAPLACE
    >>> domain = mdp.Domain({"a": 2, "b": 5, "c": 50, "d": 100})
    >>> select_hdmm(mdp.Workload(domain, mdp.marginals(2)), LAPLACE)[2]
    'opt-m'
    """
    found: dict[str, Choice] = {}
    refused: list[str] = []
    for done, kind in enumerate(KINDS):
        if progress is not None:
            progress(f"trying {kind}", done / len(KINDS))
        try:
            found[kind] = _choice(workload, noise, gap, seed, rows, kind)
        except TooLargeError as error:
            refused.append(str(error))
    if not found:
        raise TooLargeError(" ".join(refused))
    best = min(found, key=lambda kind: (found[kind][1].loss, KINDS.index(kind)))
    plan, certificate = found[best]
    bounds = [
        (choice[1].lower_bound, choice[1].scope)
        for choice in found.values()
        if choice[1].lower_bound is not None
    ]
    if bounds:
        bound, scope = max(bounds)
        certificate = Certificate(certificate.loss, bound, scope)
    return plan, certificate, best
