"""DAWA: a private partition of one attribute into buckets, then GreedyH on the buckets.

The privacy of stage 1
----------------------
Stage 1 adds independent Laplace noise Z_I to the cost of every interval I whose length is a power of two, and
keeps nothing but the partition that minimizes the sum of the noisy costs. A record lies in many intervals,
but in one bucket of every partition, and that is what counts.

*Claim.* Let D_m bound the change of the cost of an interval of m cells by one record, let D >= D_m for every
m, and let Z_I have scale (D_m + D) / epsilon. Then the partition is epsilon-differentially private.

*Proof.* Let x and x' differ by one record in cell j, in either direction. Let P be a partition, b its bucket
that holds j, m the length of b. Fix all noise but Z_b. Noisy costs are rounded to multiples of a step s;
charges for buckets are public constants; ties are broken by an order of the partitions that does not depend
on the costs. Against a partition that holds b too, P wins or loses for x and x' alike: they differ in
intervals without j alone, whose costs are the same. A partition that does not hold b holds exactly one other
interval with j. Its exact cost is at most D smaller for x' than for x and so, D being a multiple of s, is its
rounded noisy cost. Let T be the largest multiple t of s such that P beats all these partitions for x when the
rounded noisy cost of b is t; then for x' it beats them at T - D. Let r be the rounding, c and c' the exact
costs of b for x and x'. Since c' <= c + D_m, and D_m and D are multiples of s,

    P(P for x') >= P(r(c' + Z_b) <= T - D) >= P(r(c + Z_b + D_m + D) <= T)
                >= exp(-epsilon) P(r(c + Z_b) <= T),

as {z : r(c + z) <= T} is a half-line and P(Z <= t - a) >= exp(-a / scale) P(Z <= t) for Laplace noise; and
the last probability is that of P for x. (Where P never wins for x there is nothing to show; where it always
beats the others T is infinite.) Averaging over the other noise ends the proof.

By `deviations` D_m = 2 - 2/m, a multiple of 1/4 for m <= 8; beyond, 2 is taken, and D = 2. The step is a
power of two of at most 1/4. Counts are cut to a public bound, which one record still changes by at most one.
Single cells always cost 0 and get noise all the same: the proof needs it, and would not survive a truncation
of noisy costs at 0 either, which makes many partitions equally good at once. Without the two the least sum
would prefer many small buckets, however uniform the table is. A further public charge for each bucket,
besides the paper's 1 / epsilon_2, offsets that: `_CHARGE` times the scale of its noise.

Stage 2 adds Laplace noise of scale sensitivity / epsilon_2 to integer multiples of sums of buckets. Given the
partition it is epsilon_2-differentially private, so both stages together are (epsilon_1 + epsilon_2)-private.
All noise is drawn and rounded exactly; docs/noise.md has the proof.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from matrixdp.domain import OutOfDomain
from matrixdp.errors import PrivacyError, withholding
from matrixdp.exact.linear import Array
from matrixdp.ledger import Ledger
from matrixdp.measure.calibration import NoiseScale
from matrixdp.measure.measurement import Authorization
from matrixdp.measure.noisy_answers import random_source
from matrixdp.measure.statement import PrivacyStatement
from matrixdp.noise import LAPLACE, Cost, RandomSource
from matrixdp.papers.dawa.partition import (
    COST_SENSITIVITY,
    Partition,
    bucket_lengths,
    deviations,
    least_cost_partition,
)
from matrixdp.papers.dawa.questions import Questions, questions_of
from matrixdp.papers.dawa.tree import WeightedTree, greedy_tree
from matrixdp.papers.door import Asked, lattice_scale, noisy_quotients, paid_statement, paid_table
from matrixdp.papers.spending import Spent
from matrixdp.privacy import Budget
from matrixdp.privacy.conversions import Number, exact_positive
from matrixdp.queries import Workload

Integers = NDArray[np.int64]

#: Of the budget, for the partition: what the paper's experiments use.
DEFAULT_SHARE = 0.25
#: What a bucket is charged for the noise that may have chosen it, in scales of that noise. With less, uniform
#: tables of 16 to 4096 cells fall into many buckets; with more, smooth ones into fewer than they need.
_CHARGE = 3.5
#: log2 of the step of noisy costs lies between: changes of costs are multiples of 1/4, sums fit 62 bits.
_LEAST_POWER, _MOST_POWER = -14, -2


@dataclass(frozen=True, eq=False)
class Dawa:
    """DAWA for one workload and budget, ready to run on counts.

    Attributes
    ----------
    questions : Questions
    gram : ndarray, shape (n, n)
        Of the workload.
    first, second : Fraction
        Epsilon of the partition and of the measurement, between tables that differ by one record.
    """

    questions: Questions
    gram: Array
    first: Fraction
    second: Fraction

    def partition(self, counts: Integers, random: RandomSource) -> Partition:
        """Return the private partition: stage 1, which costs `first`.

        Counts are at most `matrixdp.papers.door.MOST_RECORDS` each.

        References
        ----------
        Li, Hay, Miklau, Wang: A data- and workload-aware algorithm for range queries under differential
        privacy, PVLDB 2014, section 3. The module says what differs, and proves privacy.
        """
        costs = []
        for length, scale in self.interval_scales().items():
            charge = float(1 / self.second) + _CHARGE * float(scale.exact)
            exact = deviations(counts, length)
            rounded = noisy_quotients(exact, length.bit_length() - 1, scale, random)
            costs.append(rounded + round(charge * 2.0**-scale.power))
        return least_cost_partition(costs)

    def interval_scales(self) -> dict[int, NoiseScale]:
        """Return the noise on the costs of intervals, by their length; all of one step."""
        power = lattice_scale(COST_SENSITIVITY, self.first, _LEAST_POWER, _MOST_POWER).power
        return {
            length: lattice_scale(cost_change(length) + COST_SENSITIVITY, self.first, power, power)
            for length in bucket_lengths(self.questions.cells)
        }

    def tree_scale(self, tree: WeightedTree) -> NoiseScale:
        """Return the noise on the sums of a tree."""
        scale = lattice_scale(tree.sensitivity, self.second, -2, 20)
        if not tree.sensitivity / scale.exact <= self.second:
            raise PrivacyError("dawa: the noise is too small for its share of the budget")
        return scale

    def sums(self, tree: WeightedTree, sums: Integers, random: RandomSource) -> Array:
        """Return estimates of the buckets, shape (k,), from their counts: stage 2, which costs `second`."""
        scale = self.tree_scale(tree)
        measured = noisy_quotients(tree.answers(sums), 0, scale, random)
        return tree.estimate(np.ldexp(measured.astype(np.float64), scale.power))

    def run(self, counts: Integers, random: RandomSource) -> tuple[Partition, WeightedTree, Array]:
        """Return the partition, the tree that was measured, and estimates of all cells, shape (n,)."""
        partition = self.partition(counts, random)
        tree = greedy_tree(self.gram, partition.lengths)
        return partition, tree, partition.spread(self.sums(tree, partition.sums(counts), random))

    def spent(self, tree: WeightedTree) -> tuple[Spent, ...]:
        """Return the budget of both stages."""
        first = [
            Spent("partition", cost_change(length) + COST_SENSITIVITY, scale.exact)
            for length, scale in self.interval_scales().items()
        ]
        return (*first, Spent("tree", Fraction(tree.sensitivity), self.tree_scale(tree).exact))


def cost_change(length: int) -> Fraction:
    """Return the most that one record changes the cost of a bucket, a multiple of 1/4.

    Examples
    --------
    >>> [str(cost_change(length)) for length in (1, 2, 4, 8, 16)]
    ['0', '1', '3/2', '7/4', '2']
    """
    return 2 - Fraction(2, length) if length <= 8 else Fraction(COST_SENSITIVITY)


def prepared(workload: Workload, budget: Budget, share: Number = DEFAULT_SHARE) -> Dawa:
    """Return DAWA for a workload and a budget, all checked; no data are needed.

    Examples
    --------
    >>> import matrixdp as mdp
    >>> workload = mdp.Workload(mdp.Domain({"a": 4}), mdp.product(a="prefix"))
    >>> ready = prepared(workload, Budget(epsilon=1))
    >>> ready.first, ready.second
    (Fraction(1, 4), Fraction(3, 4))
    """
    questions = questions_of(workload, "dawa")
    allowed = LAPLACE.cost(budget).value
    first = exact_positive("share", share, below=1) * allowed
    return Dawa(questions, questions.gram(), first, allowed - first)


@dataclass(frozen=True, eq=False)
class DawaRelease:
    """What DAWA publishes of one table.

    Attributes
    ----------
    workload : Workload
    partition : Partition
        The buckets.
    cells : ndarray, shape (n,)
        Estimated counts of the values of the attribute. They are biased: a bucket is spread evenly.
    estimates : ndarray, shape (queries,)
        Answers to the workload, in its order. They come without standard errors: their errors depend on the
        table, which must not be told.
    tree : WeightedTree
        Which sums of buckets were measured, with which weights.
    spent : tuple of Spent
        The exact sensitivity and scale of all noise, from which the cost can be computed again.
    authorization : Authorization
        What was authorized, and debited to a ledger, before any record was read: the whole budget.
    private : bool
        False if the noise was seeded: then nothing is protected.
    assumptions : tuple of str
        What the promise assumes of the table, in sentences.
    """

    workload: Workload
    partition: Partition
    cells: Array
    estimates: Array
    tree: WeightedTree
    spent: tuple[Spent, ...]
    authorization: Authorization
    private: bool
    assumptions: tuple[str, ...] = ()

    @property
    def privacy(self) -> PrivacyStatement:
        """The promise in words and figures."""
        chosen = "the partition into buckets was"
        return paid_statement(self.authorization, self.private, self.assumptions, chosen)


@withholding
def dawa(
    workload: Workload,
    table: object,
    budget: Budget,
    *,
    table_name: str | None = None,
    out_of_domain: OutOfDomain | None = None,
    share: Number = DEFAULT_SHARE,
    seed_not_private: int | None = None,
    ledger: Ledger | str | os.PathLike[str] | None = None,
) -> DawaRelease:
    """Run DAWA on a table, which spends the whole budget.

    A ledger is debited with all of it before any record is read, but not where the noise is seeded.

    References
    ----------
    Li, Hay, Miklau, Wang: A data- and workload-aware algorithm for range queries under differential privacy,
    PVLDB 2014.

    Examples
    --------
    >>> import matrixdp as mdp
    >>> workload = mdp.Workload(mdp.Domain({"a": range(64)}), mdp.product(a="prefix"))
    >>> release = dawa(workload, {"a": [3] * 900 + [50] * 100}, mdp.Budget(epsilon=1))
    >>> release.estimates.shape, release.privacy.pure_epsilon
    ((64,), 1.0)
    """
    ready = prepared(workload, budget, share)
    random = random_source(seed_not_private)
    attribute = ready.questions.attribute
    asked = Asked("dawa", workload.domain, (attribute,), budget, out_of_domain, table_name)
    cost = Cost(ready.first + ready.second, LAPLACE)
    with paid_table(table, asked, cost, ledger, random.private) as (opened, authorization):
        partition, tree, cells = ready.run(opened.counts([(attribute,)])[attribute,], random)
        estimates, spent = ready.questions.answers(cells), ready.spent(tree)
    known = authorization, random.private, opened.assumptions
    return DawaRelease(workload, partition, cells, estimates, tree, spent, *known)
