"""Unions of products: several tables, their least squares, or averages where those are too large."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from matrixdp.errors import NumericalError, TooLargeError, UnsupportedQueryError
from matrixdp.exact.linear import Array
from matrixdp.plans.least_squares import Combination, Loss, Schur
from matrixdp.plans.pair import Pair
from matrixdp.plans.pieces import not_measured
from matrixdp.plans.plan import Analysis, Estimates, NoiseTerms, Plan, one_query
from matrixdp.plans.split import TableAnalysis
from matrixdp.queries.groups import DenseGroup, Group, ProductGroup, asked_attributes
from matrixdp.queries.predicates import Identity


@final
@dataclass(frozen=True, eq=False)
class Union(Plan, kind="union"):
    """Several parts, each a product of matrices on single attributes; answers are their least squares.

    A query is answered if one of the parts determines it; what all others say of it counts too. Answers are
    consistent: they follow from one table.
    """

    words: ClassVar[str] = "one part for each union of queries, all combined by least squares"
    walks: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.parts) < 2:
            raise NumericalError("a union has at least two parts")
        for part in self.parts:
            if part.multipliers is not None or any(len(block.attributes) != 1 for block in part.blocks):
                told = "a union measures products over single attributes"
                raise NumericalError(f"part {part.attributes}: {told}")

    def analysed(self, noise: Sequence[float]) -> UnionAnalysis:
        """Return estimates and errors if the parts are measured with given noise variances.

        Raises
        ------
        TooLargeError
            If the parts have too many unknowns in common.

        References
        ----------
        Two parts: the generalized eigenvectors of their Gram matrices on each attribute. Several: the Schur
        complement of what they have in common. See the documentation on mathematics.

        Examples
        --------
        >>> import matrixdp as mdp
        >>> from matrixdp.exact import IdentityMatrix
        >>> from matrixdp.noise import GAUSSIAN
        >>> from matrixdp.plans import Block, Part
        >>> domain = mdp.Domain({"a": 4, "b": 2})
        >>> blocks = Block(("a",), IdentityMatrix(4)), Block(("b",), IdentityMatrix(2))
        >>> cells = Part(("a", "b"), blocks, 2.0)
        >>> plan = Union(domain, (cells, Part((), (), 2.0)), GAUSSIAN)
        >>> [total] = mdp.marginals(0).expand(domain)
        >>> float(plan.analysis.variances(total)[0].round(9))  # 1 / (1/16 + 1/2)
        1.777777778
        """
        tables = _alone(self, noise)
        if Pair.fits(tables):
            return UnionAnalysis(Pair(tables))
        if Schur.fits(tables):
            return UnionAnalysis(Schur(tables))
        told = "products has too many unknowns in common to be answered by least squares"
        raise TooLargeError(f"a union of {len(tables)} {told}")


@final
@dataclass(frozen=True, eq=False)
class Local(Plan, kind="local"):
    """Parts that each determine some queries by themselves.

    A query is estimated from each part that determines it; the estimates are averaged by inverse variance.
    That serves where a `Union` would be too large. Answers are consistent with one another only as far as
    they come from the same parts.
    """

    words: ClassVar[str] = "one part for each union of queries, averages of what they estimate"
    walks: ClassVar[bool] = True

    def analysed(self, noise: Sequence[float]) -> _AverageAnalysis:
        return _AverageAnalysis(Combination(_alone(self, noise)))


def _alone(plan: Plan, noise: Sequence[float]) -> list[TableAnalysis]:
    return [TableAnalysis(plan.domain, part, own) for part, own in zip(plan.parts, noise, strict=True)]


class _SeveralTables(Analysis):
    """Estimates and errors from several tables that are combined, each over attributes of its own."""

    def __init__(self, combination: Combination) -> None:
        super().__init__()
        self.combination = combination

    @abstractmethod
    def shares(self, group: Group) -> Mapping[int, Array]:
        """Return the shares of tables in the answers of a group, by their places; they sum to 1."""

    def determining(self, group: Group) -> Iterator[int]:
        """Yield the places of the tables that determine every query of a group.

        Raises UnsupportedQueryError if none does.
        """
        needed = asked_attributes(group)
        refusal, found = None, False
        for place, table in enumerate(self.combination.alone):
            if set(needed) <= set(table.parts[0].attributes):
                try:
                    table.check_support(group)
                except UnsupportedQueryError as error:
                    refusal = refusal or error
                    continue
                found = True
                yield place
        if not found:
            raise refusal or UnsupportedQueryError(f"{group.name}: {not_measured(needed)}")

    def check_support(self, group: Group) -> None:
        next(self.determining(group))

    def estimates(self, values: Sequence[Array]) -> Estimates:
        return _SeveralEstimates(self, values)

    def _queries(self, group: Group, index: int | None = None) -> dict[int, Array]:
        """Return queries on tables that those of a group, or one of them, are sums of."""
        found, some = {}, group if index is None else one_query(group, index)
        for place, share in self.shares(group).items():
            own = np.broadcast_to(share, group.queries)[slice(None) if index is None else [index]]
            found[place] = own[:, None] * self.combination.alone[place].rows(some)
        return found

    def covariance(self, left: Group, i: int, right: Group, j: int) -> float:
        return float(self.combination.covariances(self._queries(left, i), self._queries(right, j), True)[0])

    def covariances(self, left: Group, right: Group, *, paired: bool = False) -> Array:
        self._check_pairs(left, right, paired)
        return self.combination.covariances(self._queries(left), self._queries(right), paired)

    def noise_terms(self, group: Group, most: int) -> NoiseTerms | None:
        if group.queries * sum(part.rows for part in self.combination.parts) > most:
            return None
        weights = self.combination.weights(self._queries(group))
        pairs = zip(self.combination.alone, weights, strict=True)
        return {t: table.noise_of(own) for t, (table, own) in enumerate(pairs) if own.any()}


class _SeveralEstimates(Estimates):
    def __init__(self, analysis: _SeveralTables, values: Sequence[Array]) -> None:
        self._analysis = analysis
        combination = analysis.combination
        pairs = zip(combination.parts, values, strict=True)
        tables = combination.tables([part.estimate(own, combination.domain) for part, own in pairs])
        self._held = [one.answering(own) for one, own in zip(combination.alone, tables, strict=True)]

    def marginal(self, attributes: tuple[str, ...]) -> Array:
        sizes = tuple(self._analysis.combination.domain[name].size for name in attributes)
        cells = ProductGroup("marginal", attributes, tuple(Identity() for _ in attributes), sizes)
        return self.answers(cells).reshape(sizes)

    def answers(self, group: Group) -> Array:
        shares = self._analysis.shares(group).items()
        return np.asarray(sum(share * self._held[place].answers(group) for place, share in shares))


@final
class UnionAnalysis(_SeveralTables):
    """Estimates and errors of the global least squares of several tables."""

    additive: ClassVar[bool] = True
    combination: Pair | Schur

    def place(self, group: Group) -> int:
        """Return the first part that determines a group; raise UnsupportedQueryError if none does."""
        return next(self.determining(group))

    def shares(self, group: Group) -> dict[int, Array]:
        return {self.place(group): np.ones(())}

    def variances(self, group: Group) -> Array:
        if isinstance(group, DenseGroup):
            queries = self._queries(group)
            return self.combination.covariances(queries, queries, True)
        return self.combination.variances(self.place(group), group)

    def key(self, group: Group) -> Hashable:
        return self.place(group), super().key(group)

    def factors(self, group: ProductGroup) -> Mapping[str, Sequence[Array] | None]:
        return self.combination.factors(self.place(group), group)

    def loss(self, groups: Iterable[Group]) -> Loss:
        """Return the weighted sum of variances as a function of the parts' precisions, and its gradient."""
        return self.combination.loss([(self.place(group), group) for group in groups])

    @property
    def work(self) -> float:
        """About how many multiplications one evaluation of `loss` takes, beyond few."""
        return self.combination.work


@final
class _AverageAnalysis(_SeveralTables):
    """Averages of the estimates of several tables by inverse variance."""

    def _precisions(self, group: Group) -> tuple[dict[int, Array], Array]:
        """Return the precisions of tables that determine a group over the largest; the least variances."""
        alone = self.combination.alone
        found = {place: alone[place].variances(group) for place in self.determining(group)}
        least = np.min([*found.values()], axis=0)
        # a query that is zero has no variance: every table estimates it as 0
        pairs = found.items()
        return {t: np.divide(least, own, out=np.ones_like(own), where=own > 0) for t, own in pairs}, least

    def shares(self, group: Group) -> dict[int, Array]:
        precisions, _ = self._precisions(group)
        total = np.sum([*precisions.values()], axis=0)
        return {place: own / total for place, own in precisions.items()}

    def variances(self, group: Group) -> Array:
        precisions, least = self._precisions(group)
        return np.asarray(least / np.sum([*precisions.values()], axis=0))

    def key(self, group: Group) -> Hashable:
        return tuple((place, self.combination.alone[place].key(group)) for place in self.determining(group))
