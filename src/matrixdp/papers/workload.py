"""Noise on the queries of the workload themselves."""

from __future__ import annotations

import math

import numpy as np

from matrixdp.errors import TooLargeError, WorkloadError
from matrixdp.exact.linear import Array
from matrixdp.mechanisms import (
    Certificate,
    Choice,
    Coverage,
    KronSum,
    Mechanism,
    Options,
    Product,
    Task,
    check_measurable,
    check_table,
    factor_of,
    marginal_spectrum,
    pooled_products,
    product_choice,
    product_of,
    register,
)
from matrixdp.noise import Noise
from matrixdp.queries import Group, Identity, ProductGroup, Total, Workload

#: The queries are written out over the cells of the attributes up to this many entries.
MAX_QUERY_ENTRIES = 4_000_000
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

    The published mechanism reports the noisy answers as they are; least squares can only lower the error. A
    workload of one product is measured as a product, one of marginals by its marginals, each once; anything
    else is written out. Weights are left out of what is measured.

    References
    ----------
    Dwork, McSherry, Nissim, Smith: Calibrating noise to sensitivity in private data analysis, TCC 2006,
    section 3 (the Laplace mechanism). Dwork and Roth 2014, appendix A (the Gaussian mechanism).
    """
    workload, noise = task.workload, task.noise
    terms = KronSum.of(workload.domain, workload.groups)
    check_table(workload, terms.attributes, "workload")
    weighted = any(group.query_weights is not None for group in workload)
    if terms.sizes and terms.proportional() and not weighted:
        rows: list[Array | None] = []
        for axis, size in enumerate(terms.sizes):
            [asked_of] = terms.sets[axis].values()
            [predicates] = asked_of.asked  # a pair of different products has another beside it
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
    return _written_out(workload, noise, terms)


def uniform_marginals(
    workload: Workload, noise: Noise, measured: list[tuple[str, ...]], scope: str
) -> Choice:
    """Return the plan that measures some marginals alike, with global least squares over them."""
    spectrum = marginal_spectrum(workload)
    places = {name: place for place, name in enumerate(spectrum.attributes)}
    known = [workload.domain.sort(name for name in names if name in places) for names in measured]
    marginals = {tuple(places[name] for name in names): names for names in known}
    problem = Coverage.of(list(marginals), spectrum.residuals, spectrum.weights, spectrum.sizes)
    precision = 1.0 / len(marginals) ** (2.0 / noise.norm)
    loss = problem.loss(np.full(len(marginals), precision))
    if not math.isfinite(loss):
        raise WorkloadError("marginals: those that are measured do not determine every query; add others")
    plan = pooled_products(workload.domain, {}, dict.fromkeys(marginals.values(), precision), noise)
    return plan, Certificate(noise.variance_factor * loss, None, scope)


def _written_out(workload: Workload, noise: Noise, terms: KronSum) -> Choice:
    names = terms.attributes
    rows = query_rows(workload, names)
    check_measurable(rows / float(noise.column_norms(rows).max()))  # before their Gram matrix takes its time
    factor = factor_of(rows, terms.dense(names), noise)
    return product_choice(workload, noise, [names], Product((factor,), factor.loss), _SCOPE)


register(
    Mechanism(
        "workload",
        "Dwork et al. 2006: noise on every query; then least squares (Li et al. 2010)",
        (1, 2),
        Options,
        _queries,
    )
)
