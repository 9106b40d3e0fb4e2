"""Noise on the queries of the workload themselves."""

from __future__ import annotations

import math
from collections.abc import Hashable

import numpy as np
from numpy.typing import NDArray

from matrixdp.errors import TooLargeError, WorkloadError
from matrixdp.noise import Noise
from matrixdp.queries import Group, Identity, Predicates, ProductGroup, Total, Workload
from matrixdp.selection.compose.marginals import marginals_plan
from matrixdp.selection.compose.rounding import check_measurable
from matrixdp.selection.compose.whole_table import product_choice
from matrixdp.selection.mechanisms.explicit import factor_of
from matrixdp.selection.mechanisms.options import Options
from matrixdp.selection.mechanisms.products import Choice, product_of
from matrixdp.selection.mechanisms.table import Mechanism, Task, register
from matrixdp.selection.selection import Certificate
from matrixdp.selection.view.marginal_spectrum import asked_attributes, marginal_spectrum
from matrixdp.selection.view.product_terms import product_terms
from matrixdp.selection.view.table_shape import MAX_TABLE_CELLS, check_table, joint_gram
from matrixdp.selection.weights.incidence import problem_of

__all__ = [
    "MAX_QUERY_ENTRIES",
    "marginals_asked",
    "query_rows",
    "uniform_marginals",
    "unreconstructed_error",
]

Array = NDArray[np.float64]

#: The queries are written out over the cells of the attributes up to this many entries.
MAX_QUERY_ENTRIES = 4_000_000
#: Of an attribute with more different values none are compared with one another.
_MOST_COMPARED = 2_000
_SCOPE = "no bound: the workload itself is measured"


def marginals_asked(workload: Workload) -> list[tuple[str, ...]] | None:
    """Return the different marginals that a workload consists of, or None if it asks anything else.

    Examples
    --------
    >>> import matrixdp as mdp
    >>> domain = mdp.Domain({"a": 2, "b": 3})
    >>> marginals_asked(mdp.Workload(domain, mdp.marginals([0, 2])))
    [(), ('a', 'b')]
    >>> marginals_asked(mdp.Workload(domain, mdp.product(b="prefix"))) is None
    True
    """
    found: dict[tuple[str, ...], None] = {}
    for group in workload:
        if not isinstance(group, ProductGroup) or group.query_weights is not None:
            return None
        names = []
        for name, predicates, size in zip(group.attributes, group.predicates, group.sizes, strict=True):
            key = predicates.key(size)
            if key == Total().key(size):  # also the identity on an attribute of one value
                continue
            if key != Identity().key(size):
                return None
            names.append(name)
        found[workload.domain.sort(names)] = None
    return list(found)


def query_rows(workload: Workload, names: tuple[str, ...]) -> Array:
    """Return all queries over the cells of some attributes, shape (queries, cells), weights left out."""
    sizes = tuple(workload.domain[name].size for name in names)
    cells = math.prod(sizes)
    if workload.queries * cells > MAX_QUERY_ENTRIES:
        raise TooLargeError(
            f"workload: {workload.queries} queries over {cells} cells would be written out; the limit is "
            f"{MAX_QUERY_ENTRIES:,} entries. Use identity, hdmm or residual"
        )
    return np.vstack([_spread(group, names, sizes) for group in workload])


def _spread(group: Group, names: tuple[str, ...], sizes: tuple[int, ...]) -> Array:
    rows = group.rows()
    tensor = rows.reshape(len(rows), *group.sizes)
    # attributes that nobody asks about are totals: constant along their axis
    for axis in range(len(group.attributes), 0, -1):
        if group.attributes[axis - 1] not in names:
            tensor = np.take(tensor, 0, axis=axis)
    shape = [size if name in group.attributes else 1 for name, size in zip(names, sizes, strict=True)]
    spread = np.broadcast_to(tensor.reshape(len(rows), *shape), (len(rows), *sizes))
    return spread.reshape(len(rows), math.prod(sizes))


def _queries(task: Task[Options]) -> Choice:
    """Select the queries of the workload as the strategy, with least squares over their answers.

    The published mechanism reports the noisy answers as they are; least squares can only lower the error
    (`unreconstructed_error` is without). A workload of one product is measured as a product, one of
    marginals by its marginals, each once; anything else is written out. Weights are left out of what is
    measured.

    References
    ----------
    Dwork, McSherry, Nissim, Smith: Calibrating noise to sensitivity in private data analysis, TCC 2006,
    section 3 (the Laplace mechanism). Dwork and Roth 2014, appendix A (the Gaussian mechanism).
    """
    workload, noise = task.workload, task.noise
    terms = product_terms(workload.domain, workload.groups)
    check_table(workload, terms.attributes, "workload")
    weighted = any(group.query_weights is not None for group in workload)
    if terms.sizes and terms.proportional() and not weighted:
        rows: list[Array | None] = []
        for axis, size in enumerate(terms.sizes):
            [predicates] = terms.sets[axis].values()
            assert isinstance(predicates, Predicates)  # a pair of different products has another beside it
            if predicates.key(size) == Identity().key(size):
                rows.append(None)
            elif predicates.count(size) * size > MAX_QUERY_ENTRIES:
                raise TooLargeError(
                    f"workload: {predicates.count(size)} predicates over {size} values of "
                    f"{terms.attributes[axis]!r} would be written out; the limit is {MAX_QUERY_ENTRIES:,} "
                    "entries. Use identity, hdmm or residual"
                )
            else:
                rows.append(predicates.rows(size))
        return product_of(workload, noise, terms, rows, _SCOPE)
    asked = marginals_asked(workload)
    if asked is not None:
        return uniform_marginals(workload, noise, asked, _SCOPE)
    return _written_out(workload, noise, asked_attributes(workload))


def uniform_marginals(
    workload: Workload, noise: Noise, measured: list[tuple[str, ...]], scope: str
) -> Choice:
    """Return the plan that measures some marginals alike, with global least squares over them."""
    spectrum = marginal_spectrum(workload)
    places = {name: place for place, name in enumerate(spectrum.attributes)}
    marginals = [tuple(sorted(places[name] for name in names if name in places)) for names in measured]
    problem = problem_of(marginals, spectrum.residuals, spectrum.weights, spectrum.sizes)
    precisions = np.full(len(measured), 1.0 / len(measured) ** (2.0 / noise.norm))
    loss = problem.loss(precisions)
    if not math.isfinite(loss):
        raise WorkloadError("marginals: those that are measured do not determine every query; add others")
    plan = marginals_plan(workload, spectrum.attributes, problem.incidence.marginals, precisions, noise)
    return plan, Certificate(noise.variance_factor * loss, None, scope)


def _written_out(workload: Workload, noise: Noise, names: tuple[str, ...]) -> Choice:
    rows = query_rows(workload, names)
    check_measurable(rows / float(noise.column_norms(rows).max()))  # before their Gram matrix takes its time
    factor = factor_of(rows, joint_gram(workload, names), noise)
    return product_choice(workload, noise, [(names, factor)], _SCOPE)


def unreconstructed_error(workload: Workload, noise: Noise) -> float:
    """Return the weighted total squared error at privacy cost 1 of noisy answers as they are.

    The sensitivity is exact on tables of any size: of each attribute only values are looked at that no other
    value exceeds in what every predicate set asks of it. Raises TooLargeError if too many are left.

    References
    ----------
    McKenna et al. 2018, Tables 6 and 7, columns for noise on the workload itself.

    Examples
    --------
    >>> import matrixdp as mdp
    >>> from matrixdp.noise import LAPLACE
    >>> workload = mdp.Workload(mdp.Domain({"a": 100}), mdp.product(a="prefix"))
    >>> unreconstructed_error(workload, LAPLACE)  # 2 x 100 queries x 100 squared
    2000000.0
    """
    weights = [
        group.weight * (group.queries if group.query_weights is None else float(group.query_weights.sum()))
        for group in workload
    ]
    largest = _largest_column(workload, noise.norm)
    return float(noise.variance_factor * largest ** (2.0 / noise.norm) * math.fsum(weights))


def _largest_column(workload: Workload, power: int) -> float:
    """Return the largest sum over a cell of |entry|^power of all queries."""
    terms = product_terms(workload.domain, workload.groups)
    whole = {name for group in workload if not isinstance(group, ProductGroup) for name in group.attributes}
    sums: list[dict[Hashable, Array]] = []
    kept: list[NDArray[np.intp]] = []
    for name, size in zip(terms.attributes, terms.sizes, strict=True):
        sets = {own.key(size): own for own in (_asked_of(group, name) for group in workload)}
        sums.append({key: own.column_sums(size, power) for key, own in sets.items()})
        every = np.array(list(sums[-1].values())).T
        kept.append(np.arange(size) if name in whole else _unexceeded(every))
    shape = [len(places) for places in kept]
    if math.prod(shape) > MAX_TABLE_CELLS:
        raise TooLargeError(
            f"workload: the sensitivity is the largest over {math.prod(shape):.3g} cells; the limit is "
            f"{MAX_TABLE_CELLS:,}. Use residual"
        )
    norms = np.zeros(shape)
    for group in workload:
        if isinstance(group, ProductGroup):
            column = np.ones(())
            for name, size, own, places in zip(terms.attributes, terms.sizes, sums, kept, strict=True):
                column = np.multiply.outer(column, own[_asked_of(group, name).key(size)][places])
            norms += column
        else:
            rows = _spread(group, terms.attributes, terms.sizes)
            norms += (np.abs(rows) ** power).sum(axis=0).reshape(terms.sizes)[np.ix_(*kept)]
    return float(norms.max())


def _asked_of(group: Group, name: str) -> Predicates:
    """Return what a product asks of an attribute; explicit groups ask nothing of one alone."""
    return group.sets.get(name, Total()) if isinstance(group, ProductGroup) else Total()


def _unexceeded(sums: Array) -> NDArray[np.intp]:
    """Return the places of rows than which no other is at least as large in every column."""
    distinct, first = np.unique(sums, axis=0, return_index=True)
    best = distinct.max(axis=0)
    whole = np.flatnonzero((distinct == best).all(axis=1))
    if len(whole):
        return first[whole[:1]]
    if len(distinct) > _MOST_COMPARED:
        return first
    return np.array(
        [
            place
            for place, row in zip(first, distinct, strict=True)
            if not ((distinct >= row).all(axis=1) & (distinct > row).any(axis=1)).any()
        ]
    )


register(
    Mechanism(
        "workload",
        "Dwork et al. 2006: noise on every query; then least squares (Li et al. 2010)",
        (1, 2),
        Options,
        _queries,
    )
)
