"""PrivBayes: a Bayesian network chosen from the table, then noisy tables of its families.

Privacy
-------
Three steps read the table, each given what came out of those before, and their costs add up to the budget:

1. the number of records with Laplace noise of scale 1 / epsilon_0;
2. d - 1 choices by the exponential mechanism, each at epsilon_1 / (d - 1): scores and their sensitivities are
   those of `matrixdp.papers.privbayes.scores`, the sampler is exact (docs/noise.md);
3. M marginals with Laplace noise of scale M / epsilon_2: one record moves one cell of each by one, so that
   the M tables together have sensitivity M.

All else is a function of what came out: the limit on cells, the candidates of each choice, which marginals
are read and measured, conditional distributions and answers. Drawn records take further random bits and no
data. The cost is that of one record added or removed; the budget says what that is of what it promises.

Where the paper uses the number of records n, which it takes to be public:

- the limit on cells (theta-usefulness) and the number of records of the answers take the noisy number, for
  which `COUNT_SHARE` of the budget is spent;
- scores are multiplied by n, and need none. I needs a public bound on n, and pays for it;
- marginals are counts. Their sums are divided by, not n.

With one attribute nothing is chosen, and the share of the network goes to the marginal.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from matrixdp.domain import OutOfDomain
from matrixdp.errors import PrivacyError, TooLargeError, WorkloadError, withholding
from matrixdp.exact.linear import Array
from matrixdp.forms import unknown_name
from matrixdp.ledger import Ledger
from matrixdp.measure.measurement import Authorization
from matrixdp.measure.noisy_answers import maximal_marginals, random_source
from matrixdp.measure.statement import PrivacyStatement
from matrixdp.noise import LAPLACE, Cost, RandomSource
from matrixdp.papers.door import Asked, lattice_scale, noisy_quotients, paid_statement, paid_table
from matrixdp.papers.privbayes.network import (
    MOST_CELLS,
    Family,
    Network,
    PrivateCounts,
    greedy_families,
    maximal_sets,
)
from matrixdp.papers.privbayes.scores import SCORES
from matrixdp.papers.spending import Spent
from matrixdp.privacy import Budget
from matrixdp.queries import Workload

Integers = NDArray[np.int64]
Marginal = tuple[str, ...]

#: Of the budget, for the number of records, which the paper takes to be public.
COUNT_SHARE = Fraction(1, 20)
#: Of the rest, for the network: beta in the paper.
NETWORK_SHARE = Fraction(3, 10)
#: How often the mean count of a cell must hold the scale of its noise: theta in the paper.
USEFULNESS = 4
#: Of the marginals that are read to choose the network from.
_MOST_SETS = 3_000
#: F takes time and memory in proportion to the number of records; from here on R stands in for it.
_MOST_DOMINANCE = 1 << 20
#: log2 of the step of noisy counts lies between: counts and noise fit 62 bits.
_POWERS = -14, 20


@dataclass(frozen=True, eq=False)
class PrivBayes:
    """PrivBayes for one workload and budget, ready to run on counts.

    Attributes
    ----------
    workload : Workload
    sizes : dict of str to int
        The attributes that are asked about, d of them.
    score : str
        F, R or I; R stands in for F where there are too many records.
    count, network, marginals : Fraction
        Epsilon of each step, between tables that differ by one record.
    """

    workload: Workload
    sizes: Mapping[str, int]
    score: str
    count: Fraction
    network: Fraction
    marginals: Fraction

    @property
    def binary(self) -> bool:
        """Whether every attribute has two values."""
        return set(self.sizes.values()) == {2}

    def noisy_records(self, counts: PrivateCounts, random: RandomSource) -> float:
        """Return the noisy number of records, at least 1: step 1."""
        counts.fetch([(), *((name,) for name in self.sizes)])  # what cannot be read at all stops before noise
        scale = lattice_scale(1, self.count, *_POWERS)
        (found,) = noisy_quotients(counts.of(()).ravel(), 0, scale, random)
        counts.spent.append(Spent("records", Fraction(1), scale.exact))
        return max(math.ldexp(int(found), scale.power), 1.0)

    def most_cells(self, records: float) -> int:
        """Return how many cells a family may have: theta-usefulness, given the noisy number of records.

        References
        ----------
        Zhang et al., TODS 2017. With two values each, all families have the same number k of parents and
        d - k marginals are measured; else at most d are. Here the scale of the noise is half of theirs, as
        neighbours differ by one record that is added or removed, not replaced.

        Examples
        --------
        >>> import matrixdp as mdp
        >>> workload = mdp.Workload(mdp.Domain({"a": 5, "b": 3}), mdp.marginals(2))
        >>> prepared(workload, Budget(epsilon=1)).most_cells(100)
        8
        """
        d = len(self.sizes)
        useful = Fraction(records) * self.marginals / USEFULNESS
        if self.binary:
            limit = 2 ** (1 + max((k for k in range(d) if (d - k) * 2 ** (k + 1) <= useful), default=0))
        else:
            limit = math.floor(useful / d)
        limit = int(min(limit, MOST_CELLS))
        while len(list(islice(maximal_sets(self.sizes, limit), _MOST_SETS + 1))) > _MOST_SETS:
            limit //= 2
        return limit

    def families(
        self, counts: PrivateCounts, records: float, limit: int, random: RandomSource
    ) -> list[Family]:
        """Return the network: step 2."""
        score = SCORES["R" if self.score == "F" and records > _MOST_DOMINANCE else self.score]
        if self.network:
            counts.fetch(list(maximal_sets(self.sizes, limit)))
        return greedy_families(counts, self.sizes, limit, score, self.network, random)

    def measured(
        self, counts: PrivateCounts, families: Sequence[Family], random: RandomSource
    ) -> tuple[Array, ...]:
        """Return the conditional distribution of each family from the noisy marginals: step 3.

        A family within another one is taken from its marginal. Noisy counts below 0 become 0; a child whose
        parents have no noisy count is uniform.
        """
        sets = [tuple(name for name in self.sizes if name in (child, *own)) for child, own in families]
        measured = maximal_marginals(dict.fromkeys(sets))  # in an order that a seed repeats
        scale = lattice_scale(len(measured), self.marginals, *_POWERS)
        if not len(measured) / scale.exact <= self.marginals:
            raise PrivacyError("privbayes: the noise is too small for its share of the budget")
        counts.spent.append(Spent("marginals", Fraction(len(measured)), scale.exact))
        found: dict[Marginal, Array] = {}
        for holder, held in measured.items():
            exact = counts.of(holder)
            noisy = np.ldexp(noisy_quotients(exact.ravel(), 0, scale, random).astype(float), scale.power)
            table = np.maximum(noisy, 0.0).reshape(exact.shape)
            for own in held:
                found[own] = table.sum(axis=tuple(a for a, name in enumerate(holder) if name not in own))
        return tuple(
            _conditional(found[own].transpose([own.index(name) for name in (*parents, child)]))
            for own, (child, parents) in zip(sets, families, strict=True)
        )

    def run(self, counts: PrivateCounts, random: RandomSource) -> Network:
        """Return the network with its distributions: all three steps."""
        records = self.noisy_records(counts, random)
        families = self.families(counts, records, self.most_cells(records), random)
        return Network(tuple(families), self.measured(counts, families, random), records)


def _conditional(joint: Array) -> Array:
    sums = joint.sum(axis=-1, keepdims=True)
    uniform = np.full(joint.shape, 1.0 / joint.shape[-1])
    return np.asarray(np.divide(joint, sums, out=uniform, where=sums > 0))


def prepared(workload: Workload, budget: Budget, score: str | None = None) -> PrivBayes:
    """Return PrivBayes for a workload and a budget, all checked; no data are needed.

    Examples
    --------
    >>> import matrixdp as mdp
    >>> workload = mdp.Workload(mdp.Domain({"a": 4, "b": 2}), mdp.marginals(2))
    >>> ready = prepared(workload, Budget(epsilon=1))
    >>> ready.count, ready.network, ready.marginals
    (Fraction(1, 20), Fraction(57, 200), Fraction(133, 200))
    """
    if score is not None and score not in SCORES:
        raise WorkloadError(unknown_name(("score",), score, "a score", SCORES), "unknown-name")
    names = workload.domain.sort({name for group in workload for name in group.attributes})
    sizes = {name: workload.domain[name].size for name in names}
    if not sizes:
        raise WorkloadError("privbayes: the workload asks about no attribute; expected at least one")
    if score == "F" and set(sizes.values()) != {2}:
        expected = "R or I where an attribute has more or fewer than two values"
        raise WorkloadError.at(("score",), repr(score), expected, code="not-supported")
    for group in workload:
        cells = math.prod(group.sizes)
        if cells > MOST_CELLS:
            told = f"privbayes: {' x '.join(group.attributes)} has {cells} cells"
            raise TooLargeError(f"{told}; the limit is {MOST_CELLS}")
    allowed = LAPLACE.cost(budget).value
    count = COUNT_SHARE * allowed
    network = NETWORK_SHARE * (allowed - count) if len(sizes) > 1 else Fraction(0)
    score = score or ("F" if set(sizes.values()) == {2} else "R")
    return PrivBayes(workload, sizes, score, count, network, allowed - count - network)


@dataclass(frozen=True, eq=False)
class PrivBayesRelease:
    """What PrivBayes publishes of one table.

    Attributes
    ----------
    workload : Workload
    network : Network
        The families, their conditional distributions, and the noisy number of records.
    estimates : ndarray, shape (queries,)
        Answers to the workload, in its order. They are biased, and come without standard errors: their errors
        depend on the table, which must not be told.
    sampled : bool
        Whether some answers are counts of records drawn from the network, as exact ones would have taken too
        large tables.
    spent : tuple of Spent
        The exact sensitivity and scale of all noise and choices, from which the cost can be computed again.
    authorization : Authorization
        What was authorized, and debited to a ledger, before any record was read: the whole budget.
    private : bool
        False if the noise was seeded: then nothing is protected.
    assumptions : tuple of str
        What the promise assumes of the table, in sentences.
    """

    workload: Workload
    network: Network
    estimates: Array
    sampled: bool
    spent: tuple[Spent, ...]
    authorization: Authorization
    private: bool
    assumptions: tuple[str, ...] = ()

    @property
    def privacy(self) -> PrivacyStatement:
        """The promise in words and figures."""
        return paid_statement(self.authorization, self.private, self.assumptions, "the network was")


@withholding
def privbayes(
    workload: Workload,
    table: object,
    budget: Budget,
    *,
    table_name: str | None = None,
    out_of_domain: OutOfDomain | None = None,
    score: str | None = None,
    seed_not_private: int | None = None,
    ledger: Ledger | str | os.PathLike[str] | None = None,
) -> PrivBayesRelease:
    """Run PrivBayes on a table, which spends the whole budget.

    A ledger is debited with all of it before any record is read, but not where the noise is seeded.

    References
    ----------
    J. Zhang, G. Cormode, C. Procopiuc, D. Srivastava and X. Xiao: PrivBayes: private data release via
    Bayesian networks, ACM TODS 42(4), 2017.

    Examples
    --------
    >>> import matrixdp as mdp
    >>> workload = mdp.Workload(mdp.Domain({"a": 2, "b": 3}), mdp.marginals(2))
    >>> table = {"a": [0, 1] * 500, "b": [0, 1] * 500}
    >>> release = privbayes(workload, table, mdp.Budget(epsilon=1))
    >>> release.estimates.shape, release.sampled, release.privacy.pure_epsilon
    ((6,), False, 1.0)
    """
    ready = prepared(workload, budget, score)
    random = random_source(seed_not_private)
    asked = Asked("privbayes", workload.domain, tuple(ready.sizes), budget, out_of_domain, table_name)
    cost = Cost(ready.count + ready.network + ready.marginals, LAPLACE)
    with paid_table(table, asked, cost, ledger, random.private) as (opened, authorization):
        counts = PrivateCounts(opened.counts)
        network = ready.run(counts, random)
        estimates, sampled = network.answers(workload, random)
    known = authorization, random.private, opened.assumptions
    return PrivBayesRelease(workload, network, estimates, sampled, tuple(counts.spent), *known)
