"""From a release to a model of it: the method, what is publicly known, and the tests that it must pass."""

from __future__ import annotations

from collections.abc import Callable

from matrixdp.errors import SpecificationError, TooLargeError, UnsupportedQueryError
from matrixdp.forms import describe_value, unknown_name
from matrixdp.measure.measurement import Measurement
from matrixdp.model.archive import Tables
from matrixdp.model.choice import FitTests, choose, judged
from matrixdp.model.constraints import Constraints
from matrixdp.model.local import LocalTables, check_answered, fit_local
from matrixdp.model.model import Model
from matrixdp.model.parts import Parts
from matrixdp.model.records import check_seed
from matrixdp.queries import Workload

__all__ = ["METHODS", "Modelled", "tests_of"]

METHODS = ("auto", "mixture", "local")
"""How a model is made."""


class Modelled:
    """What a release makes models of."""

    measurement: Measurement
    workload: Workload
    confidence: float

    def model(
        self,
        method: str = "auto",
        *,
        seed: int = 0,
        components: int | None = None,
        steps: int | None = None,
        totals: object = None,
        impossible: object = None,
        accept_anyway: bool = False,
        progress: Callable[[int, int], None] | None = None,
    ) -> Model:
        """Return a model of the release: non-negative, consistent answers and records, at no privacy cost.

        Its answers are biased; the unbiased ones stay beside them. See docs/model.md.

        Parameters
        ----------
        method : {'auto', 'mixture', 'local'}
            ``mixture``: a mixture of products, which answers every query and has records. ``local``: a table
            for each pair of attributes, in seconds, for queries of at most two attributes; without records.
            ``auto``: ``mixture``; where its tests reject it and the tables of pairs serve and pass the same
            tests, ``local``. `made` then has the tests of both, the mixture's under ``rejected``.
        seed : int
            Of the fits, and of records that are drawn without a seed of their own. No privacy depends on it.
        components, steps : int, optional
            Of each fit of a mixture. Without them the fewest components of a few numbers are taken with which
            noise explains what is left.
        totals, impossible : optional
            What is publicly known and kept exactly: see `Constraints.of`.
        accept_anyway : bool
            Whether a model that its own tests reject is returned too; ``accepted`` says so. ``auto`` then
            returns the mixture in every case.
        progress : callable, optional
            Is called with the steps done and those that there are known to be.

        Raises
        ------
        NumericalError
            If the model does not fit what was measured; it says how far, and what can be done.
        SpecificationError
            If there is no such method, number or seed, or what is publicly known contradicts itself.
        UnsupportedQueryError
            If the number of records does not follow from what was measured, or a method does not serve.
        TooLargeError
            If the measured tables have too many cells.

        Examples
        --------
        >>> import matrixdp as mdp
        >>> workload = mdp.Workload(mdp.Domain({"sex": ["female", "male"]}), mdp.marginals([0, 1]))
        >>> people = {"sex": ["male", "female"] * 45}
        >>> release = mdp.select(workload).measure(people, mdp.Budget(mu=1)).reconstruct()
        >>> model = release.model(components=2, steps=100)
        >>> model.accepted, min(model.answers["modelled"].to_pylist()) >= 0
        (True, True)
        """
        if method not in METHODS:
            listed = ", ".join(METHODS[:-1]) + f" or {METHODS[-1]}"
            raise SpecificationError(unknown_name(("method",), str(method), listed, METHODS))
        check_seed(seed)
        for name, number in (("components", components), ("steps", steps)):
            if number is not None and (type(number) is not int or not 1 <= number <= _MOST):
                raise SpecificationError.at(
                    (name,), describe_value(number), f"an integer from 1 to {_MOST:,}"
                )
        known = Constraints.of(self.measurement.plan.domain, totals, impossible)
        parts = Parts.of(self.measurement, constraints=known)
        tables: Tables
        if method == "local":
            tables, tests = self._local(parts, known)
            made, remedy = _made_locally(seed, tests), "Use method='mixture'"
        else:
            chosen = choose(parts, seed, components=components, steps=steps, seen=progress)
            tables, tests, made = chosen.mixture, chosen.tests, chosen.as_dict()
            remedy = f"Ask for more than {chosen.components:,} `components` or {chosen.steps:,} `steps`"
            if method == "auto" and not tests.accepted and not accept_anyway:
                try:
                    local, own = self._local(parts, known)
                except (UnsupportedQueryError, TooLargeError):
                    tests.check(remedy)
                if own.accepted:
                    tables, tests, made = local, own, {**_made_locally(seed, own), "rejected": made}
        if not accept_anyway:
            tests.check(remedy)
        made |= known.written
        return Model(self.measurement, self.workload, tables, made, self.confidence)

    def _local(self, parts: Parts, known: Constraints) -> tuple[LocalTables, FitTests]:
        """Return tables of pairs and their tests; refuse where they do not serve what is asked."""
        for group in self.workload:
            check_answered(self.workload.domain, group)
        tables = fit_local(self.measurement, known)
        return tables, judged(parts, parts.losses(tables))


def tests_of(model: Model) -> FitTests:
    """Return the tests of a model, computed again from its measurement and its tables."""
    known = Constraints.of(model.domain, model.made.get("totals"), model.made.get("impossible"))
    parts = Parts.of(model.measurement, constraints=known)
    return judged(parts, parts.losses(model.tables))


def _made_locally(seed: int, tests: FitTests) -> dict[str, object]:
    return {"method": "local", "seed": seed, "accepted": tests.accepted, "tests": tests.as_dict()}


_MOST = 1_000_000
