"""Models that mbi (private-pgm) fits to the measurements of a release, tuned in its favour.

What it reads is what `matrixdp.Release.to_mbi` hands over: the same noisy answers, standard deviations
and total that the model of the product uses. Its optimizer of mixtures has no defaults, so several settings
are tried and the ones with the least error *against the true table* are shown, which no user could choose.
"""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from matrixdp.measure.measurement import Measurement
from matrixdp.model.mbi_export import to_mbi

__all__ = ["Fit", "fits"]

Array = NDArray[np.float64]
Marginal = Callable[[tuple[str, ...]], Array]

#: Components and learning rates that are tried; rates fall to 0 along a cosine over the steps.
COMPONENTS, RATES, STEPS = (10, 30, 100), (0.03, 0.1, 0.3), 4000
#: Steps of mirror descent on a Markov random field: more change nothing on the bundled table (0.917).
DESCENT_STEPS = 3000
#: Cells of the largest clique that a junction tree may have.
MOST_CLIQUE_CELLS = 1e7


@dataclass(frozen=True)
class Fit:
    """A model: its name, its settings, its marginals as tables, and the processor seconds of the fit."""

    name: str
    settings: str
    marginal: Marginal
    seconds: float


def fits(measurement: Measurement, total: float) -> Iterator[Fit]:
    """Yield the models that mbi can fit: mixtures, and a Markov random field where its cliques are small."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of float32, which is switched off here
        import jax

        jax.config.update("jax_enable_x64", True)  # type: ignore[no-untyped-call, unused-ignore]
        import mbi
        import optax
        from mbi.extensions import MixtureOfProductsEstimator

    domain, measured = to_mbi(measurement)
    measured = [one for one in measured if one.clique]  # a mixture has no marginal of no attributes
    for components in COMPONENTS:
        for rate in RATES:
            started = time.process_time()
            estimator = MixtureOfProductsEstimator(
                optimizer=optax.adam(optax.cosine_decay_schedule(rate, STEPS)), num_components=components
            )
            model = estimator.estimate(domain, measured, known_total=total, iters=STEPS)
            settings = f"{components} components, rate {rate}, {STEPS:,} steps"
            yield Fit("mbi: mixture", settings, _marginal(model, domain), time.process_time() - started)
    tree = mbi.junction_tree.make_junction_tree(domain, [one.clique for one in measured])[0]
    if max(math.prod(domain[name] for name in clique) for clique in tree.nodes) <= MOST_CLIQUE_CELLS:
        started = time.process_time()
        model = mbi.estimation.MirrorDescent().estimate(
            domain, measured, known_total=total, iters=DESCENT_STEPS
        )
        seconds = time.process_time() - started
        yield Fit("mbi: Markov random field", f"{DESCENT_STEPS:,} steps", _marginal(model, domain), seconds)


def _marginal(model: Any, domain: Any) -> Marginal:
    def marginal(names: tuple[str, ...]) -> Array:
        shape = [domain[name] for name in names]
        return np.asarray(model.project(names).datavector(), dtype=np.float64).reshape(shape)

    return marginal
