"""OPT_HDMM: all of its strategies, and the one with the least error."""

from __future__ import annotations

import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from matrixdp.errors import TooLargeError
from matrixdp.exact import IdentityMatrix, MeasuredMatrix
from matrixdp.noise import Noise
from matrixdp.plan import Block, Direct, Part, Plan
from matrixdp.queries import Workload
from matrixdp.selection.convex import DEFAULT_GAP
from matrixdp.selection.direct import check_table, direct_shape, joint_gram, select_directly
from matrixdp.selection.hdmm.axis import MAX_AXIS_CELLS, solve_axis
from matrixdp.selection.hdmm.kron import select_kron
from matrixdp.selection.hdmm.opt_marginals import select_marginals
from matrixdp.selection.hdmm.terms import product_terms
from matrixdp.selection.hdmm.union import select_union
from matrixdp.selection.rounding import measured_factor
from matrixdp.selection.selection import Certificate

__all__ = ["KINDS", "select_hdmm", "select_whole"]

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
    max_cells: int = MAX_AXIS_CELLS,
) -> Choice:
    """Select one explicit strategy on the table of all attributes that are asked about.

    Attributes on which every group asks proportional queries factor out.

    Parameters
    ----------
    workload : Workload
    noise : Noise
        Gaussian: the certified optimum.
    gap : float
        Relative gap, where it is certified.
    seed : int
        Of the search.
    progress : callable, optional
    max_cells : int
        Limit for the cells that do not factor.

    Returns
    -------
    plan : Plan
        One part.
    certificate : Certificate
        Under Laplace noise with the bound of the Gaussian optimum, which holds for it too.

    Raises
    ------
    TooLargeError
        If there are more cells.

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
    shape = direct_shape(workload)
    check_table(workload, (*shape.factored, *shape.joint), "opt-0")
    if shape.cells > max_cells:
        raise TooLargeError(
            f"opt-0: {' x '.join(shape.joint)} has {shape.cells} cells that do not factor; the limit is "
            f"{max_cells}. Use opt-kron, opt-plus or opt-m"
        )
    terms = product_terms(workload.domain, workload.groups)
    blocks = []
    loss = bound = 1.0
    for names in [*((name,) for name in shape.factored), *([shape.joint] if shape.joint else [])]:
        if len(names) == 1 and names[0] in shape.factored:
            axis = terms.attributes.index(names[0])
            gram = terms.gram(axis, next(iter(terms.sets[axis])))
        else:
            gram = joint_gram(workload, names)
        factor = solve_axis(gram, noise, gap=gap, seed=seed, progress=progress)
        whole = len(factor.rows) == len(gram) and np.array_equal(factor.rows, np.eye(len(gram)))
        matrix: MeasuredMatrix = IdentityMatrix(len(gram)) if whole else measured_factor(factor.rows, noise)
        blocks.append(Block(names, matrix))
        loss *= factor.loss
        bound *= factor.bound or 0.0
    if not shape.joint:
        weight = math.fsum(group.weight for group in workload)
        loss, bound = loss * weight, bound * weight
    part = Part(workload.domain.sort([*shape.factored, *shape.joint]), tuple(blocks), 1.0).at_cost(noise)
    scale = noise.variance_factor
    return Direct(workload.domain, (part,), noise), Certificate(
        scale * loss, scale * bound, f"every strategy with {noise} noise"
    )


def select_hdmm(
    workload: Workload,
    noise: Noise,
    *,
    gap: float = DEFAULT_GAP,
    seed: int = 0,
    progress: Progress | None = None,
    jobs: int = 1,
) -> tuple[Plan, Certificate, str]:
    """Select with all strategies of HDMM and keep the one with the least error.

    Parameters
    ----------
    workload : Workload
    noise : Noise
    gap : float
        Relative gap, where it is certified.
    seed : int
        Of the searches. The result does not depend on ``jobs``.
    progress : callable, optional
    jobs : int
        How many are searched at the same time.

    Returns
    -------
    plan : Plan
    certificate : Certificate
        Its bound is the largest of those found.
    kind : str
        Which of ``KINDS``.

    Raises
    ------
    TooLargeError
        If none of them fits.

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
    runs: dict[str, Callable[[], Choice]] = {
        "opt-kron": lambda: select_kron(workload, noise, gap=gap, seed=seed),
        "opt-m": lambda: select_marginals(workload, noise, seed=seed),
        "opt-plus": lambda: select_union(workload, noise, gap=gap, seed=seed),
        "opt-0": lambda: select_whole(workload, noise, gap=gap, seed=seed, max_cells=MAX_SEARCHED_CELLS),
    }
    found: dict[str, Choice] = {}
    refused: list[str] = []
    with ThreadPoolExecutor(max_workers=jobs) as pool:
        futures = {kind: pool.submit(runs[kind]) for kind in KINDS}
        for done, (kind, future) in enumerate(futures.items()):
            if progress is not None:
                progress(f"trying {kind}", done / len(futures))
            try:
                found[kind] = future.result()
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
