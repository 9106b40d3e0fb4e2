"""Mechanisms tried on one workload, and the lower bounds that do not depend on which is chosen."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any
from weakref import WeakKeyDictionary

from matrixdp.errors import TooLargeError
from matrixdp.noise import GAUSSIAN, Noise
from matrixdp.plan import Plan, Split
from matrixdp.queries import Workload
from matrixdp.selection.bounds.lower_bound import product_bound, svd_bound_workload
from matrixdp.selection.compose.whole_table import dense_bound
from matrixdp.selection.mechanisms.options import given_options
from matrixdp.selection.mechanisms.table import Task, mechanism_named, silent
from matrixdp.selection.problem.kron_sum import TableShape, table_shape
from matrixdp.selection.problem.merge_groups import merge_groups
from matrixdp.selection.selection import Certificate

__all__ = ["MAX_COMPARED_CELLS", "Bound", "Choice", "Trials", "bounded"]

#: The whole table is solved too up to this many cells that do not factor: other mechanisms take their lower
#: bound from it.
MAX_COMPARED_CELLS = 1_100
Choice = tuple[Plan, Certificate]
Bound = tuple[float, str] | None

#: What was proved for a workload, as long as it is used, by the way of its proof.
_PROVED: WeakKeyDictionary[Workload, dict[str, Bound]] = WeakKeyDictionary()


@dataclass(frozen=True)
class Trials:
    """Selections for one workload and noise; each mechanism takes those of the options that it has."""

    workload: Workload
    noise: Noise
    given: Mapping[str, object]
    progress: Callable[[str, float | None], None] = silent
    bounded: bool = True
    certify: bool = False
    memory: dict[str, dict[str, Any]] = field(default_factory=dict)

    @cached_property
    def asked(self) -> Workload:
        """The workload as selection sees it: many groups over the same attributes as few."""
        return merge_groups(self.workload)

    def choose(self, name: str) -> Choice:
        """Return what a mechanism selects."""
        mechanism = mechanism_named(name)
        options = given_options(mechanism.options, self.given)
        memory = self.memory.setdefault(name, {})
        found = mechanism.select(Task(self.asked, self.noise, options, self.progress, self.bounded, memory))
        if name == "residual" and self.bounded and self.noise.norm == 2 and isinstance(found[0], Split):
            self._note_bound(found[1])
        return found

    def _note_bound(self, certificate: Certificate) -> None:
        """Keep what the decomposition proved, or that it proved nothing: it need not be solved again."""
        if {"sub_solver", "gap"}.isdisjoint(self.given):
            bound = certificate.lower_bound
            known = _PROVED.setdefault(self.workload, {})
            known["decomposition"] = None if bound is None else (bound, f"every {GAUSSIAN.title} strategy")

    def quietly(self, workload: Workload) -> Trials:
        """Return the same for another workload, telling nobody of the progress, bounds left out."""
        return replace(self, workload=workload, progress=silent, bounded=False)

    @cached_property
    def shape(self) -> TableShape:
        """Which attributes factor out of it."""
        return table_shape(self.asked)

    @property
    def small(self) -> bool:
        """Whether the optimum on the whole table is within reach."""
        return self.shape.cells <= MAX_COMPARED_CELLS

    def whole_bound(self) -> Bound:
        """Return the dual bound of the whole table, for noise of any norm: an L1 norm is larger."""
        found = self._proved(f"dense {self.given.get('gap')}", self._dense_bound)
        return None if found is None else (self.noise.variance_factor * found[0], self._every)

    def _dense_bound(self) -> Bound:
        gap = given_options(mechanism_named("dense").options, self.given).gap
        try:
            return dense_bound(self.asked, gap), f"every {GAUSSIAN.title} strategy"
        except TooLargeError:
            return None

    def lower_bound(self) -> Bound:
        """Return the bound that the Gaussian decomposition proves, or else the SVD bound, if known."""
        way = "certified decomposition" if self.certify else "decomposition"
        found = self._proved(way, lambda: product_bound(self.asked, self.certify))
        if found is not None:
            scope = self._every + found[1].removeprefix(f"every {GAUSSIAN.title} strategy")
            return self.noise.variance_factor * found[0], scope
        found = self._proved("spectrum", self._svd_bound)
        return None if found is None else (self.noise.variance_factor * found[0], self._every + found[1])

    def _svd_bound(self) -> Bound:
        bound = svd_bound_workload(self.asked)
        return None if bound is None else (bound, " (the SVD bound)")

    @property
    def _every(self) -> str:
        return f"every strategy with {self.noise} noise"

    def _proved(self, way: str, prove: Callable[[], Bound]) -> Bound:
        """Return a bound on every Gaussian strategy, proved once for all mechanisms and noises."""
        known = _PROVED.setdefault(self.workload, {})
        if way not in known:
            known[way] = prove()
        return known[way]


def bounded(certificate: Certificate, bound: Bound) -> Certificate:
    """Return the certificate with the larger of its own lower bound and another."""
    if bound is None or (certificate.lower_bound is not None and certificate.lower_bound >= bound[0]):
        return certificate
    return replace(certificate, lower_bound=bound[0], scope=bound[1])
