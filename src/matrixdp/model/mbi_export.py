"""What was measured, as mbi has it: for its own estimators, without the data and at no privacy cost."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from matrixdp.domain import Domain
from matrixdp.errors import UnsupportedQueryError, needing
from matrixdp.measure.measurement import Measurement
from matrixdp.model.likelihood import check_ended
from matrixdp.plans import Part


def measured_query(part: Part, domain: Domain) -> Callable[[Any], Any]:
    """Return a part's integer queries as a function of what has ``datavector()``, a marginal's flat cells.

    It is made of reshapes, transpositions and products alone, so arrays of JAX pass through it.

    Examples
    --------
    >>> import matrixdp as mdp
    >>> from types import SimpleNamespace
    >>> plan = mdp.select(mdp.Workload(mdp.Domain({"age": 3}), mdp.marginals(1))).selection.plan
    >>> measured_query(plan.parts[0], plan.domain)(SimpleNamespace(datavector=lambda: np.arange(3.0)))
    array([0., 1., 2.])
    """
    shape = tuple(domain[name].size for name in part.attributes)
    order = tuple(part.attributes.index(name) for name in part.listed)
    blocks = [block.matrix for block in part.blocks]
    matrices = [None if own.kind == "identity" else own.written() for own in blocks]
    multipliers = None if part.multipliers is None else part.multipliers.ravel().astype(np.float64)

    def answers(factor: Any) -> Any:
        table = factor.datavector().reshape(shape).transpose(order)
        table = table.reshape([own.columns for own in blocks])
        for matrix in matrices:  # each takes the first axis and puts its own last
            first, rest = table.shape[0], table.shape[1:]
            flat = table.reshape((first, math.prod(rest))).transpose()
            flat = flat if matrix is None else flat @ matrix.T
            table = flat.reshape((*rest, flat.shape[1]))
        return table.reshape(-1) if multipliers is None else table.reshape(-1) * multipliers

    return answers


def to_mbi(measurement: Measurement) -> tuple[Any, list[Any]]:
    """Return the measurement as objects of mbi; see `matrixdp.Release.to_mbi`."""
    check_ended(measurement)
    if measurement.tails.joint:
        told = "a release whose rows share their noise, which mbi does not have"
        raise UnsupportedQueryError(
            f"{told}; select with another mechanism, such as opt-kron", "not-supported"
        )
    with needing("mbi", "mbi", error=UnsupportedQueryError):
        import mbi
    domain, made = measurement.plan.domain, []
    for part, variance, values in measurement.answered:
        cells = part.multipliers is None and part.listed == part.attributes
        cells = cells and all(block.matrix.kind == "identity" for block in part.blocks)
        query = {} if cells else {"query": measured_query(part, domain)}
        made.append(mbi.LinearMeasurement(values, part.attributes, math.sqrt(variance), **query))
    return mbi.Domain(domain.names, domain.shape), made  # type: ignore[arg-type, unused-ignore]
