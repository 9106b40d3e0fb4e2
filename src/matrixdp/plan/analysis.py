"""Error analysis of a plan: variances and covariances of queries, known before any data."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from matrixdp.errors import UnsupportedQueryError
from matrixdp.plan.error import ViewAnalysis
from matrixdp.plan.plan import Plan, Pooled
from matrixdp.plan.pooled import pooled_plan
from matrixdp.plan.quadratic_forms import GroupError
from matrixdp.plan.repeats import COMPRESSED_QUERIES, representatives
from matrixdp.queries.groups import Group, ProductGroup

__all__ = ["ErrorAnalysis"]

Array = NDArray[np.float64]


def _views(plan: Plan) -> tuple[Plan, ...]:
    return (pooled_plan(plan),) if isinstance(plan, Pooled) else plan.views()


@dataclass(eq=False)
class ErrorAnalysis:
    """Variances and covariances of queries under a plan.

    Parameters
    ----------
    plan : Plan
        What will be measured.

    Attributes
    ----------
    views : tuple of ViewAnalysis
        The analysis of each estimate that answers are averaged from.
    """

    plan: Plan
    views: tuple[ViewAnalysis, ...] = field(init=False)
    _groups: dict[Hashable, GroupError] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.views = tuple(ViewAnalysis(view) for view in _views(self.plan))

    def check_support(self, group: ProductGroup) -> None:
        """Raise UnsupportedQueryError if a query of a product group is not determined."""
        refusal: UnsupportedQueryError | None = None
        for view in self.views:
            try:
                view.check_support(group)
            except UnsupportedQueryError as error:
                refusal = refusal or error
            else:
                return
        assert refusal is not None
        raise refusal

    def view_variances(self, group: Group) -> list[Array | None]:
        """Return the variances under each view, None where it does not determine a query of the group.

        Raises
        ------
        UnsupportedQueryError
            If no view determines all queries of the group.
        """
        if len(self.views) == 1:
            return [self.views[0].variances(group)]
        found: list[Array | None] = []
        refusal: UnsupportedQueryError | None = None
        for view in self.views:
            try:
                found.append(view.variances(group))
            except UnsupportedQueryError as error:
                found.append(None)
                refusal = refusal or error
        if all(values is None for values in found):
            assert refusal is not None
            raise refusal
        return found

    def shares(self, group: Group) -> list[Array | None]:
        """Return for each view the share that its estimates have in the answers, shape (queries,).

        Inverse variances over their sum: the unbiased average with the least variance. They sum to 1.
        """
        found = self.view_variances(group)
        known = [values for values in found if values is not None]
        if len(known) == 1:
            return [None if values is None else np.ones(group.queries) for values in found]
        least = np.min(known, axis=0)
        # a query that is zero has no variance: every view estimates it as 0
        ratios = [None if v is None else np.divide(least, v, out=np.ones_like(v), where=v > 0) for v in found]
        total = np.sum([ratio for ratio in ratios if ratio is not None], axis=0)
        return [None if ratio is None else ratio / total for ratio in ratios]

    def variances(self, group: Group) -> Array:
        """Return the variance of every query of a group, flat, row-major.

        Raises
        ------
        UnsupportedQueryError
            If a query of the group is not determined by what the plan measures.
        TooLargeError
            If the group has more queries than can be held.
        """
        known = [values for values in self.view_variances(group) if values is not None]
        if len(known) == 1:
            return known[0]
        total = np.zeros(group.queries)
        zero = np.zeros(group.queries, dtype=bool)
        for values in known:
            zero |= values <= 0.0
            total += np.divide(1.0, values, out=np.zeros_like(values), where=values > 0)
        return np.divide(1.0, total, out=np.zeros_like(total), where=~zero)

    def covariance(self, left: Group, i: int, right: Group, j: int) -> float:
        """Return the covariance of query i of one group and query j of another."""
        if len(self.views) == 1:
            return self.views[0].covariance(left, i, right, j)
        total = 0.0
        for view, own, other in zip(self.views, self.shares(left), self.shares(right), strict=True):
            if own is not None and other is not None:
                total += float(own[i]) * float(other[j]) * view.covariance(left, i, right, j)
        return total

    def _key(self, group: Group) -> Hashable:
        keys: list[Hashable] = []
        for view in self.views:
            try:
                keys.append(view.group_key(group))
            except UnsupportedQueryError:
                keys.append(None)
        if all(key is None for key in keys):
            self.views[0].group_key(group)
        return tuple(keys)

    def group(self, group: Group) -> GroupError:
        """Return the error of a group, at privacy cost 1; equal groups are analysed once."""
        key = self._key(group)
        if key not in self._groups and group.query_weights is None:
            self._summed_over_repeats(key, group)
        if key not in self._groups:
            values = self.variances(group)
            total = float(values.sum())
            weighted = total if group.query_weights is None else float(values @ group.query_weights)
            self._groups[key] = GroupError(total, weighted * group.weight, float(values.max()))
        return self._groups[key]

    def _summed_over_repeats(self, key: Hashable, group: Group) -> None:
        """Analyse a large product group by its different queries alone, if there are fewer."""
        if len(self.views) > 1 or not isinstance(group, ProductGroup) or group.queries <= COMPRESSED_QUERIES:
            return
        view = self.views[0]
        view.check_support(group)
        found = representatives(view, group)
        if found is None:
            return
        small, counts = found
        values = view.variances(small).reshape(small.counts)
        largest = float(values.max())
        for repeats in reversed(counts):
            values = values @ repeats
        total = float(values)
        self._groups[key] = GroupError(total, total * group.weight, largest)
