"""AIM and MWEM+PGM as private-pgm publishes them, run with the `mbi` that is installed.

Their files are in no package: they are read from the folder ``mechanisms`` of a checkout. They are of an
`mbi` before 2.0, so that two names are adapted here: what was ``potentials`` is now ``warm_start``, and what
prints progress is left out. Neither changes a figure. Marginals outside of a model's cliques come from the
same elimination of variables in NumPy: as compiled programs, hundreds of them would be made in every round.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import os
import sys
import time
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["MECHANISMS", "Run", "eliminated", "run_mechanism"]

Array = NDArray[np.float64]
Names = tuple[str, ...]
#: What is run, and the file that holds it.
MECHANISMS = {"AIM": "aim", "MWEM+PGM": "mwem+pgm"}
#: Compiled programs are forgotten after this many fits: each holds memory maps, of which a process has few.
_FORGET = 10
#: One thread; compiling costs more than all else, and the programs are hardly slower without these passes.
_FLAGS = (
    "--xla_cpu_multi_thread_eigen=false --xla_backend_optimization_level=0 "
    "--xla_llvm_disable_expensive_passes=true"
)


class Run:
    """The model that a mechanism ends with, as marginals, and what it took."""

    def __init__(self, model: Any, fits: int, seconds: float) -> None:
        self._model, self.fits, self.seconds = model, fits, seconds

    def marginal(self, names: Names) -> Array:
        own = self._model.project(names)
        return np.asarray(own.datavector(flatten=False), dtype=np.float64)


def run_mechanism(
    name: str,
    folder: Path,
    table: dict[str, NDArray[np.int64]],
    sizes: dict[str, int],
    workload: Sequence[Names],
    epsilon: float,
    delta: float,
    seed: int,
    **settings: Any,
) -> Run:
    """Run one of `MECHANISMS` on a table of codes, with a seed, and return its model.

    Parameters
    ----------
    settings
        Those of the mechanism: ``rounds``, ``max_model_size``, ``max_iters`` or ``maxsize_mb``.
    """
    os.environ["XLA_FLAGS"] = _FLAGS
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of float32, which is switched off here
        import jax

        jax.config.update("jax_enable_x64", True)  # type: ignore[no-untyped-call, unused-ignore]
        import mbi
    jax.config.update("jax_enable_compilation_cache", False)  # type: ignore[no-untyped-call, unused-ignore]
    fits = _adapted(jax, mbi)
    sys.path.insert(0, str(folder))
    module: Any = importlib.import_module(MECHANISMS[name])
    make: Any = mbi.Domain
    domain = make(list(sizes), list(sizes.values()))
    data = mbi.Dataset({n: np.asarray(table[n]) for n in sizes}, domain)
    np.random.seed(seed)  # noqa: NPY002 - the generator that the mechanisms draw from
    started = time.process_time()
    with contextlib.redirect_stdout(io.StringIO()):
        if name == "AIM":
            mechanism = module.AIM(epsilon, delta, **settings)
            mechanism.run(data, [(own, 1.0) for own in workload], num_synth_rows=1)
        else:
            module.mwem_pgm(data, epsilon, delta, workload=list(workload), **settings)
    # MWEM+PGM returns synthetic records of its last model, which comes closer than they do
    return Run(fits.last, fits.count, time.process_time() - started)


class _Fits:
    """How many models were fitted, and the last."""

    count: int = 0
    last: Any = None


def _adapted(jax: Any, mbi: Any) -> _Fits:
    """Let the mechanisms run with this `mbi`, once in a process; return what becomes known of their fits."""
    fits, original = _Fits(), mbi.estimation.MirrorDescent.estimate

    def estimate(self: Any, *given: Any, potentials: Any = None, **options: Any) -> Any:
        fits.count += 1
        if fits.count % _FORGET == 0:
            jax.clear_caches()
        fits.last = original(self, *given, warm_start=potentials, **options)
        return fits.last

    mbi.estimation.MirrorDescent.estimate = estimate
    mbi.callbacks.default = lambda *_: None
    mbi.marginal_oracles.variable_elimination = eliminated
    return fits


def eliminated(potentials: Any, names: Names, total: float = 1.0) -> Any:
    """Return the marginal of a model from the logarithms of its potentials: variable by variable."""
    import mbi

    domain = potentials.domain
    left = [(tuple(own), np.asarray(potentials[own].values)) for own in potentials.cliques]
    others = {n for own, _ in left for n in own} - set(names)
    while others:
        joined = {n: set().union(*(own for own, _ in left if n in own)) for n in others}
        name = min(sorted(others), key=lambda n: domain.size(tuple(joined[n])))
        held = [(own, values) for own, values in left if name in own]
        kept = (*sorted(joined[name] - {name}), name)
        values = sum((_expanded(values, own, kept) for own, values in held), np.zeros([1] * len(kept)))
        most = values.max(axis=-1, keepdims=True)
        summed = np.log(np.exp(values - most).sum(axis=-1)) + most[..., 0]
        left = [(own, values) for own, values in left if name not in own] + [(kept[:-1], summed)]
        others.remove(name)
    values = sum((_expanded(values, own, tuple(names)) for own, values in left), np.zeros([1] * len(names)))
    values = np.broadcast_to(values, [domain.size((n,)) for n in names])
    shares = np.exp(values - values.max())
    return mbi.Factor(domain.project(names), total * shares / shares.sum())


def _expanded(values: Array, own: Names, names: Names) -> Array:
    """Return a table with axes in the order of other names, of length 1 where it has none."""
    order = sorted(range(len(own)), key=lambda i: names.index(own[i]))
    sizes = dict(zip(own, values.shape, strict=True))
    return values.transpose(order).reshape([sizes.get(n, 1) for n in names])
