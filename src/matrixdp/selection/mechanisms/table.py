"""The table of mechanisms: the one place that knows their names, and the one way to add to it.

A mechanism is a file that ends with `register`. The table knows in which file each of ours is, and reads it
when the mechanism is first asked for; those of installed packages are found by their entry points in the
group ``matrixdp.mechanisms``, each named as the mechanism that its module registers. Nothing heavy is
imported here.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any, Generic, TypeVar, final

from matrixdp.errors import WorkloadError
from matrixdp.selection.mechanisms.options import Options

if TYPE_CHECKING:
    from matrixdp.domain import OutOfDomain
    from matrixdp.noise import Noise
    from matrixdp.plan import Plan
    from matrixdp.privacy import Budget
    from matrixdp.queries import Workload
    from matrixdp.selection.selection import Certificate

__all__ = [
    "ENTRY_POINTS",
    "MECHANISMS",
    "OF_OTHERS",
    "DataDependent",
    "Mechanism",
    "Simulation",
    "Task",
    "mechanism_named",
    "register",
    "silent",
]

#: The group of entry points by which installed packages offer mechanisms.
ENTRY_POINTS = "matrixdp.mechanisms"

_OPTIMIZED = "selection.mechanisms.optimized"
#: Those that take long wherever they apply.
_SLOW = {
    "low-rank": "papers.low_rank",
    "exponential-smoothing": "papers.exponential_smoothing",
    "rotation": "papers.matrix_mechanism",
    "min-sensitivity": "papers.matrix_programs",
    "min-error": "papers.matrix_programs",
    "coa": "papers.coa",
    "dawa": "papers.dawa.simulation",
}
#: Where each mechanism is, the quickest first.
_FILES = {
    "identity": "papers.identity",
    "wavelet": "papers.wavelet",
    "hierarchical": "papers.trees",
    "hb": "papers.trees",
    "hb-product": "papers.trees",
    "quadtree": "papers.trees",
    "singular-value": "papers.matrix_mechanism",
    "fourier-thresholds": "papers.embedded_fourier",
    "residualplanner": "papers.residual_planner",
    "residualplanner-plus": "papers.residual_planner",
    "workload": "papers.workload",
    "greedy-h": "papers.greedy_h",
    "datacube": "papers.datacube",
    "l2-approximation": "papers.matrix_mechanism",
    "residual": _OPTIMIZED,
    "querysmasher": _OPTIMIZED,
    "fourier": "papers.fourier",
    "opt-kron": _OPTIMIZED,
    "eigen-query": "papers.eigen_query",
    "weighted-product": _OPTIMIZED,
    "opt-m": _OPTIMIZED,
    "opt-0": _OPTIMIZED,
    "dense": _OPTIMIZED,
    "generalized-marginals": _OPTIMIZED,
    "hdmm": "papers.hdmm",
    "opt-plus": _OPTIMIZED,
    **_SLOW,
}
#: Those whose strategies others than we optimize too, and what only simulates: no baselines of comparisons.
_OF_OURS = ("hdmm", "fourier", "dawa")
#: The mechanisms of other papers, which others are compared to.
OF_OTHERS = tuple(name for name, file in _FILES.items() if file != _OPTIMIZED and name not in _OF_OURS)

O_co = TypeVar("O_co", bound=Options, covariant=True)
O = TypeVar("O", bound=Options)  # noqa: E741


def silent(_what: str, _share: float | None) -> None:
    """Tell nobody of the progress."""


@final
@dataclass(frozen=True)
class Task(Generic[O_co]):
    """What a mechanism is to select for.

    Attributes
    ----------
    workload : Workload
    noise : Noise
    options : Options
        Of the mechanism's own class.
    progress : callable
        Is called with what is being done and the share that is done, if known.
    bounded : bool
        Whether a lower bound is wanted that takes work of its own.
    memory : dict
        What the mechanism left when it selected for the same queries weighted otherwise, to start from.
    """

    workload: Workload
    noise: Noise
    options: O_co
    progress: Callable[[str, float | None], None] = silent
    bounded: bool = True
    memory: dict[Any, Any] = field(default_factory=dict)


@final
@dataclass(frozen=True)
class Mechanism(Generic[O]):
    """A way to choose a strategy without the data.

    Attributes
    ----------
    name : str
    source : str
        The paper, or what it is.
    norms : tuple of int
        It selects for noises of these norms.
    options : type
        The class of its options, each with a default.
    select : callable
        From a task to a plan and its certificate.
    """

    name: str
    source: str
    norms: tuple[int, ...]
    options: type[O]
    select: Callable[[Task[O]], tuple[Plan, Certificate]]


@dataclass(frozen=True)
class Simulation:
    """The error of a data-dependent mechanism on one public table. NOT PRIVATE: computed from exact answers.

    Attributes
    ----------
    rmse, weighted_rmse : float
        Root of the mean over queries and simulations of the (weighted) squared error, bias included.
    rmse_standard_error : float
        Monte Carlo standard error of ``rmse``.
    max_rmse : float
        The largest root mean squared error of a query over the simulations. A largest of noisy figures, it is
        too high rather than too low on average.
    """

    rmse: float
    weighted_rmse: float
    rmse_standard_error: float
    max_rmse: float


@final
@dataclass(frozen=True)
class DataDependent:
    """A mechanism whose error depends on the table: for comparison only, by simulation on a public table.

    Attributes
    ----------
    name, source : str
    noises : tuple of Noise
    simulate : callable
        From a workload, a PUBLIC table (whatever `matrixdp.sources.open_source` takes), a budget, how many
        simulations, and what becomes of records outside the domain, to the errors.
    """

    name: str
    source: str
    noises: tuple[Noise, ...]
    simulate: Callable[[Workload, object, Budget, int, OutOfDomain], Simulation]


Listed = Mechanism[Any] | DataDependent
_registered: dict[str, Listed] = {}
M = TypeVar("M", bound=Listed)


def register(mechanism: M) -> M:
    """Add a mechanism to the table, and return it.

    Raises
    ------
    WorkloadError
        If another mechanism has that name.

    Examples
    --------
    >>> register(MECHANISMS["coa"])
    Traceback (most recent call last):
    matrixdp.errors.WorkloadError: mechanism: found a second one called 'coa'; expected a new name
    """
    name = mechanism.name
    unread = name in _FILES and f"matrixdp.{_FILES[name]}" not in sys.modules
    if name in _registered or unread or name == "auto":
        raise WorkloadError.at(("mechanism",), f"a second one called {name!r}", "a new name")
    _registered[name] = mechanism
    return mechanism


def _installed() -> dict[str, str]:
    """Return the modules of the mechanisms that installed packages offer, by name."""
    from importlib.metadata import entry_points

    return {
        point.name: point.module for point in entry_points(group=ENTRY_POINTS) if point.name not in _FILES
    }


@final
class _Table(Mapping[str, Listed]):
    """Every mechanism by name, ``auto`` aside, in the order in which `compare` tries them.

    Those of installed packages come before ours that take long.
    """

    def __getitem__(self, name: str) -> Listed:
        if name not in _registered:
            module = f"matrixdp.{_FILES[name]}" if name in _FILES else _installed()[name]
            import_module(module)
            if name not in _registered:
                raise WorkloadError(f"mechanism: {module} does not register {name!r}, which it is said to")
        return _registered[name]

    def __iter__(self) -> Iterator[str]:
        known = dict.fromkeys([*_FILES, *_registered, *_installed()])
        yield from sorted(known, key=_SLOW.__contains__)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __contains__(self, name: object) -> bool:
        return name in _FILES or name in _registered or name in _installed()


MECHANISMS: Mapping[str, Listed] = _Table()


def mechanism_named(name: str) -> Mechanism[Any]:
    """Return the mechanism of a name."""
    if not isinstance(name, str):
        raise WorkloadError(f"mechanism: found a {type(name).__name__}; expected the name of a mechanism")
    if name not in MECHANISMS:
        from matrixdp.forms import unknown_name

        known = ["auto", *MECHANISMS]
        raise WorkloadError(unknown_name(("mechanism",), name, "a mechanism", known))
    found = MECHANISMS[name]
    if isinstance(found, DataDependent):
        raise WorkloadError.at(
            ("mechanism",),
            f"{name!r}, whose error depends on the data",
            "one that selects without them; `matrixdp compare --public-table` simulates it",
        )
    return found
