"""Linear reconstruction: consistent, unbiased estimates of any marginal from the noisy answers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from matrixdp.errors import UnsupportedQueryError
from matrixdp.plan import ErrorAnalysis, Local, Plan, Pooled, ViewAnalysis
from matrixdp.plan.pooled_values import pooled_values
from matrixdp.queries import DenseGroup, Group, Identity, ProductGroup

__all__ = ["Estimates", "ViewEstimates"]

Array = NDArray[np.float64]


class Estimates:
    """Estimates of marginals and of query answers under any plan.

    All answers follow linearly from the noisy measurements and are unbiased. They are consistent with one
    another, except under a ``local`` plan, where each query is averaged from the parts that determine it.

    Parameters
    ----------
    plan : Plan
    values : sequence of ndarray
        The noisy answers of each part, flat.
    """

    def __init__(self, plan: Plan, values: Sequence[Array]) -> None:
        self.plan = plan
        self.values = tuple(values)
        self._analysis = ErrorAnalysis(plan)
        plans = [view.plan for view in self._analysis.views]
        if isinstance(plan, Local):
            held: list[tuple[Array, ...]] = [(value,) for value in self.values]
        elif isinstance(plan, Pooled):
            held = [pooled_values(plan, plans[0], self.values)]
        else:
            held = [self.values]
        self._views = [
            ViewEstimates(view, own, analysis)
            for view, own, analysis in zip(plans, held, self._analysis.views, strict=True)
        ]

    def marginal(self, attributes: tuple[str, ...]) -> Array:
        """Return the estimate of a marginal, in the shape of the attributes' sizes.

        What was not measured is taken as zero, so only queries that the plan supports may be asked of it.
        Under a ``local`` plan the marginal itself must be supported.
        """
        if len(self._views) == 1:
            return self._views[0].marginal(attributes)
        sizes = tuple(self.plan.domain[name].size for name in attributes)
        cells = ProductGroup("marginal", attributes, tuple(Identity() for _ in attributes), sizes)
        return self.answers(cells).reshape(sizes)

    def answers(self, group: Group) -> Array:
        """Return the estimates of a group's queries, flat, row-major.

        Raises
        ------
        UnsupportedQueryError
            If the plan does not determine a query of the group.
        """
        if len(self._views) == 1:
            return self._views[0].answers(group)
        total = np.zeros(group.queries)
        for view, share in zip(self._views, self._analysis.shares(group), strict=True):
            if share is not None:
                total += share * view.answers(group)
        return total


class ViewEstimates:
    """Estimates of marginals and of query answers under a plan that is ``direct`` or ``split``.

    A marginal is estimated as the sum over its subsets A' of what part A' measured, its weighted mean
    removed along A' and spread by the weight vectors over the other attributes. All answers follow
    linearly, so they are consistent with one another and unbiased.

    Parameters
    ----------
    plan : Plan
    values : sequence of ndarray
        The noisy answers of each part, flat.
    analysis : ViewAnalysis
        Of the same plan.
    """

    def __init__(self, plan: Plan, values: Sequence[Array], analysis: ViewAnalysis) -> None:
        self.plan = plan
        self.values = tuple(values)
        self._residuals: dict[int, Array] = {}
        self._analysis = analysis

    def _residual(self, index: int) -> Array:
        """Return the estimate of part ``index`` with its weighted mean removed along every attribute."""
        if index not in self._residuals:
            part = self.plan.parts[index]
            tensor = part.estimate(self.values[index], self.plan.domain)
            if self._analysis.weights is not None:
                for axis, name in enumerate(part.attributes):
                    shape = [-1 if i == axis else 1 for i in range(tensor.ndim)]
                    sums = tensor.sum(axis=axis, keepdims=True)
                    tensor = tensor - sums * self._analysis.weights[name].reshape(shape)
            self._residuals[index] = tensor
        return self._residuals[index]

    def marginal(self, attributes: tuple[str, ...]) -> Array:
        """Return the estimate of a marginal, in the shape of the attributes' sizes.

        What was not measured is taken as zero, so only queries that the plan supports may be asked of it.
        """
        domain = self.plan.domain
        if self._analysis.weights is None:
            part = self.plan.parts[0]
            missing = [name for name in attributes if name not in part.attributes]
            if missing:
                raise UnsupportedQueryError(f"attribute {missing[0]!r} was not measured")
            others = tuple(i for i, name in enumerate(part.attributes) if name not in attributes)
            return np.asarray(self._residual(0).sum(axis=others))
        estimate = self._spread(attributes, len(attributes), attributes)
        if estimate is None:
            return np.zeros([domain[name].size for name in attributes])
        return estimate

    def _spread(self, attributes: tuple[str, ...], position: int, kept: tuple[str, ...]) -> Array | None:
        """Return the sum over subsets that agree with ``kept`` from ``position`` on, spread before it.

        Shape: the sizes of the first ``position`` attributes, then of those in ``kept`` after them.
        """
        if position == 0:
            index = self.plan.index.get(kept)
            return None if index is None else self._residual(index)
        axis = position - 1
        name = attributes[axis]
        assert self._analysis.weights is not None
        weights = self._analysis.weights[name]
        within = self._spread(attributes, axis, kept)
        without = self._spread(attributes, axis, tuple(n for n in kept if n != name))
        if without is None:
            return within
        shape = [1] * (without.ndim + 1)
        shape[axis] = len(weights)
        spread = np.expand_dims(without, axis) * weights.reshape(shape)
        return spread if within is None else spread + within

    def answers(self, group: Group) -> Array:
        """Return the estimates of a group's queries, flat, row-major.

        Raises
        ------
        UnsupportedQueryError
            If the plan does not determine a query of the group.
        """
        attributes = self._analysis.asked(group)
        if isinstance(group, DenseGroup):
            return np.asarray(group.rows() @ self.marginal(attributes).ravel())
        assert isinstance(group, ProductGroup)
        self._analysis.check_support(group)
        sets = dict(zip(group.attributes, group.predicates, strict=True))
        tensor = self.marginal(attributes)
        for axis, name in enumerate(attributes):
            moved = np.moveaxis(tensor, axis, 0)
            out = sets[name].apply(np.ascontiguousarray(moved).reshape(moved.shape[0], -1))
            tensor = np.moveaxis(out.reshape(out.shape[0], *moved.shape[1:]), 0, axis)
        return np.asarray(tensor.ravel())
