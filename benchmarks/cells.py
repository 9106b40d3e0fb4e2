"""One cell of a table: one mechanism on one workload, in a process of its own, within a limit of time."""

from __future__ import annotations

import json
import math
import os
import resource
import select as waiting
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import scipy  # its parts are read when they are first used
from harness import WIDE
from losses import apart_loss, identity_error, unreconstructed_error
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

import matrixdp as mdp
from matrixdp.mechanisms.products import axis_gram
from matrixdp.noise import GAUSSIAN, Noise, noise_named
from matrixdp.papers.fourier import Characters
from matrixdp.papers.greedy_h import greedy_rows
from matrixdp.papers.residual_planner import GivenBases, own_bases, select_residual_planner_plus
from matrixdp.papers.trees import best_branching, tree_rows
from matrixdp.papers.wavelet import haar_rows
from matrixdp.selection.auto import Trials
from matrixdp.selection.compose.decomposition import solve_classes, sub_solver_for
from matrixdp.selection.compose.product import solve_kron
from matrixdp.selection.compose.sub_solver import Construction
from matrixdp.selection.compose.weight_vectors import uniform_weights
from matrixdp.selection.gram import solve_gram
from matrixdp.selection.gram.opt_0 import solve_axis
from matrixdp.selection.limits import GAP
from matrixdp.selection.problem.kron_sum import KronSum
from matrixdp.selection.problem.residuals import Pieces, split_workload

# one thread for every mechanism, so that their times compare
threadpool_limits(limits=1)

__all__ = [
    "APART",
    "AS_ASKED",
    "KIND_BASIS",
    "ONE_COVER",
    "PREFIX_BASIS",
    "SPECIAL",
    "asked_gram",
    "attempt",
    "error_alone",
    "select_cell",
    "warm_up",
]

#: Noise on the queries of the workload, reported as they are: no least squares, so it is no strategy.
AS_ASKED = "workload-as-asked"
#: ResidualPlanner+ with a basis made for prefixes on every attribute, whatever is asked.
PREFIX_BASIS = "residualplanner-plus, prefix bases"
#: The same on numeric attributes, and the identity on categorical ones, whose names begin with c.
KIND_BASIS = "residualplanner-plus, bases by kind"
#: OPT_plus as published in the journal version: a product for each group, answered from it alone.
APART = "opt-plus, a product each"
#: DataCube as HDMM is compared with it: one greedy cover.
ONE_COVER = "datacube, once"
#: What is no mechanism by that name in the library.
SPECIAL = (AS_ASKED, PREFIX_BASIS, KIND_BASIS, APART, ONE_COVER)
#: QuerySmasher's sub-workloads are solved jointly up to this many cells where no plan is made. The library
#: has, past its own limit, a product.
_JOINT_CELLS = 2_500
_UNIT = 1e6 if sys.platform == "darwin" else 1e6 / 1024


def warm_up() -> None:
    """Load what selection needs, so that no mechanism pays for it."""
    workload = mdp.Workload(mdp.Domain({"a": range(4)}), mdp.product(a="prefix"))
    for noise in ("gaussian", "laplace"):
        analysis = mdp.select(workload, noise=noise).selection.analysis
        analysis.group(workload.groups[0])


def attempt(run: Callable[[], dict[str, Any]], limit: float) -> dict[str, Any]:
    """Return what a function returns, its peak memory, and under ``note`` why there is nothing.

    It runs in a fork of this process, so that a failure or a limit costs nothing but itself; the memory
    includes what this process holds, the libraries above all. The limit is in seconds of processor time,
    which other work on the machine does not use up.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        used = resource.getrusage(resource.RUSAGE_SELF)
        end = math.ceil(used.ru_utime + used.ru_stime + limit)
        resource.setrlimit(resource.RLIMIT_CPU, (end, end + 1))
        try:
            answer = run()
        except mdp.MatrixDPError as error:
            answer = {"note": str(error)}
        except MemoryError:
            answer = {"note": "out of memory"}
        except BaseException as error:  # noqa: BLE001 - the other cells have to go on
            answer = {"note": f"failed: {error!r}", "failed": True}
        with os.fdopen(writer, "w") as pipe:
            pipe.write(json.dumps(answer))
        os._exit(0)
    os.close(writer)
    text, late = _read(reader, time.monotonic() + WIDE * limit)
    if late:
        os.kill(child, signal.SIGKILL)
    _, status, usage = os.wait4(child, 0)
    if late or os.waitstatus_to_exitcode(status) == -signal.SIGXCPU:
        answer = {"note": f"not within {limit:g} s", "late": True}
    else:
        answer = json.loads(text) if text else {"note": "out of memory, or killed", "failed": True}
    return answer | {"peak_mb": usage.ru_maxrss / _UNIT}


def _read(reader: int, end: float) -> tuple[str, bool]:
    """Return what a pipe holds until it is closed, and whether that took too long."""
    pieces: list[bytes] = []
    with os.fdopen(reader, "rb") as pipe:
        while True:
            left = end - time.monotonic()
            if left <= 0 or not waiting.select([pipe], [], [], left)[0]:
                return "", True
            piece = os.read(pipe.fileno(), 65536)
            if not piece:
                return b"".join(pieces).decode(), False
            pieces.append(piece)


def _bases(workload: mdp.Workload, mechanism: str) -> dict[str, NDArray[np.float64]]:
    """Return the best strategy for centred prefixes and the total, or the identity, for each attribute."""
    bases = {}
    for name in workload.domain.names:
        size = workload.domain[name].size
        centred = np.tri(size) @ (np.eye(size) - 1 / size)
        categorical = mechanism == KIND_BASIS and name.startswith("c")
        bases[name] = np.eye(size) if categorical else solve_gram(centred.T @ centred + 1.0).rows
    return bases


def error_alone(workload: mdp.Workload, mechanism: str, noise: Noise) -> float:
    """Return the error of a mechanism without its plan or a lower bound.

    Of large pairs and attributes these take most of the time, and beyond some size they do not fit.
    """
    if mechanism in _COMPUTED:
        return _COMPUTED[mechanism](workload, noise)
    if mechanism == "walk":
        return mdp.select(workload, noise=noise.name, mechanism=mechanism).certificate.loss
    if mechanism == "opt-0":
        return noise.variance_factor * solve_axis(asked_gram(workload), noise).loss
    if mechanism in _LINES:
        return _line_error(workload, mechanism, noise)
    split = split_workload(workload)
    pieces = Pieces(split, uniform_weights(split))
    construction: Construction | None = Characters() if mechanism == "fourier" else None
    if mechanism not in ("querysmasher", "fourier"):
        own = mechanism == "residualplanner-plus"
        given = {} if own else _bases(workload, mechanism)
        bases = own_bases(split, GAP) | {split.types[name]: basis for name, basis in given.items()}
        construction = GivenBases(bases)
    solver = sub_solver_for(pieces, GAUSSIAN, GAP, construction=construction)
    solver.limits = replace(solver.limits, joint_cells=max(solver.limits.joint_cells, _JOINT_CELLS))
    solved = solve_classes(split, solver)
    counts = [len(sub.marginals) for sub, _ in solved]
    return GAUSSIAN.total_loss([solution.loss for _, solution in solved], counts)


def asked_gram(workload: mdp.Workload) -> NDArray[np.float64]:
    """Return the Gram matrix of a workload about one attribute."""
    return axis_gram(KronSum.of(workload.domain, workload.groups), 0)


#: Strategies over one attribute: from the Gram matrix of what is asked.
_LINES: dict[str, Callable[[NDArray[np.float64]], NDArray[np.float64]]] = {
    "hierarchical": lambda gram: tree_rows(len(gram), 2, root=True),
    "hb": lambda gram: tree_rows(len(gram), best_branching(len(gram)), root=False),
    "wavelet": lambda gram: haar_rows(len(gram)),
    "greedy-h": greedy_rows,
}


def _line_error(workload: mdp.Workload, mechanism: str, noise: Noise) -> float:
    """Return the error of a strategy over one attribute, by the inverse of its Gram matrix."""
    gram = asked_gram(workload)
    rows = _LINES[mechanism](gram)
    sensitivity = float(noise.column_norms(rows).max())
    sparse = scipy.sparse.csr_array(rows)
    factor = scipy.linalg.cholesky((sparse.T @ sparse).toarray(), lower=True, check_finite=False)
    # the lower half of a symmetric matrix, and zeros
    inverse, _ = scipy.linalg.lapack.dpotri(factor, lower=1)
    trace = 2.0 * float(np.vdot(gram, inverse)) - float(np.vdot(np.diagonal(gram), np.diagonal(inverse)))
    return noise.variance_factor * sensitivity**2 * trace


def _kron_error(workload: mdp.Workload, noise: Noise) -> float:
    """Return the error of OPT_kron on a table of any size."""
    terms = KronSum.of(workload.domain, workload.groups)
    return noise.variance_factor * solve_kron(terms, noise, max_cells=math.inf).loss


#: Mechanisms whose error is known where their table is too large to be measured.
_COMPUTED: dict[str, Callable[[mdp.Workload, Noise], float]] = {
    "identity": identity_error,
    "opt-kron": _kron_error,
}


def select_cell(
    make: Callable[[], mdp.Workload],
    mechanism: str,
    noise: str,
    limit: float,
    *,
    plans: bool = True,
    bounded: bool = True,
) -> dict[str, Any]:
    """Select for a workload and return the figures at privacy cost 1 (mu = 1, or epsilon = 1).

    Where ``bounded`` is False, no bound is proved but that of the mechanism itself: it is the same for all.

    Returns
    -------
    dict
        ``loss`` and ``rounded``: total squared error before and after rounding to integers (None where
        there are too many queries); ``bound`` or None; ``seconds`` and ``cpu_seconds`` of selection alone;
        ``peak_mb``; ``chosen``, the mechanism that ``auto`` chose. Or ``note``, why there is nothing.
    """

    def run() -> dict[str, Any]:
        if not bounded:  # this process ends with the cell
            setattr(Trials, "lower_bound", lambda _: None)  # noqa: B010
        workload = make()
        started, used = time.perf_counter(), time.process_time()
        bound, chosen, selection = None, mechanism, None
        if mechanism == AS_ASKED:
            loss = unreconstructed_error(workload, noise_named(noise))
        elif mechanism == APART:
            loss = apart_loss(workload, noise_named(noise))
        elif mechanism == ONE_COVER:
            loss = mdp.select(workload, noise=noise, mechanism="datacube", search="once").certificate.loss
        elif not plans:
            loss = error_alone(workload, mechanism, noise_named(noise))
        elif mechanism in SPECIAL:
            bases = _bases(workload, mechanism)
            loss = select_residual_planner_plus(workload, noise_named(noise), bases)[1].loss
        else:
            try:
                selection = mdp.select(workload, noise=noise, mechanism=mechanism).selection
                chosen, bound = selection.mechanism, selection.certificate.lower_bound
            except mdp.TooLargeError:
                if mechanism not in _COMPUTED:
                    raise
                loss = _COMPUTED[mechanism](workload, noise_named(noise))
        seconds, cpu_seconds = time.perf_counter() - started, time.process_time() - used
        rounded = None
        if selection is not None:
            try:
                loss, rounded = selection.squared_error_before_rounding, selection.total_squared_error
            except mdp.TooLargeError:  # too many queries to list; none of these workloads has weights
                loss = selection.certificate.loss
        figures = {"loss": loss, "rounded": rounded, "bound": bound, "chosen": chosen}
        return figures | {"seconds": seconds, "cpu_seconds": cpu_seconds}

    found = attempt(run, limit)
    said = found.get("note") or f"{found['loss']:.6g}, {found['cpu_seconds']:.1f} s"
    print(f"    {mechanism} ({noise}): {said[:110]}", file=sys.stderr, flush=True)
    return found
