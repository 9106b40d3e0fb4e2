"""The mechanisms by name, what each can be told, and the one way to add another.

A mechanism is a file that ends with `register`. The table knows in which file each of ours is, and reads it
when the mechanism is first asked for; those of installed packages are found by their entry points in the
group ``matrixdp.mechanisms``, each named as the mechanism that its module registers. Nothing heavy is
imported here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import Field, dataclass, field, fields
from typing import TYPE_CHECKING, Any, Generic, TypeVar, final

from matrixdp.errors import WorkloadError
from matrixdp.plugins import Table

if TYPE_CHECKING:
    from matrixdp.domain import OutOfDomain
    from matrixdp.noise import Noise
    from matrixdp.plans import Plan
    from matrixdp.privacy import Budget
    from matrixdp.queries import Workload
    from matrixdp.selection.rules import Facts
    from matrixdp.selection.selection import Certificate, PartMethod


@dataclass(frozen=True)
class Options:
    """What a mechanism can be told: nothing. Those that can be told something derive a class from this one.

    Examples
    --------
    >>> @dataclass(frozen=True)
    ... class Searched(Options):
    ...     seed: int = option(0, "of the random starting points")
    >>> Searched(seed=3)
    Searched(seed=3)
    """


O = TypeVar("O", bound=Options)  # noqa: E741
O_co = TypeVar("O_co", bound=Options, covariant=True)


def option(
    default: Any,
    description: str,
    choices: tuple[str, ...] = (),
    least: int = 0,
    read: Callable[[object], object] | None = None,
) -> Any:
    """Return the field of an option: a whole number, a number above 0 (as its default is), or a text.

    Parameters
    ----------
    default : int, float, str or None
    description : str
    choices : tuple of str
        What a text must be one of.
    least : int
        What a whole number must be at least.
    read : callable, optional
        What reads and checks an option of another kind; its errors name the option.
    """
    about = {"description": description, "choices": choices, "least": least, "read": read}
    return field(default=default, metadata=about)


def check_options(owner: str, kinds: Iterable[type[Options]], given: Mapping[str, object]) -> None:
    """Raise WorkloadError if an option that is given is in none of some classes.

    Examples
    --------
    >>> check_options("identity", [Options], {"seed": 1})
    Traceback (most recent call last):
    matrixdp.errors.WorkloadError: seed: found an option that identity does not have; expected none
    """
    from matrixdp.forms import nearest

    known = list(dict.fromkeys(f.name for kind in kinds for f in fields(kind)))
    for name in given:
        if name not in known:
            found, has = f"an option that {owner} does not have", " or ".join(known) or "none"
            raise WorkloadError.at((name,), found, has, nearest(name, known))


def given_options(kind: type[O], given: Mapping[str, object]) -> O:
    """Return the options of a class, those that are given among them; texts are read as numbers.

    Examples
    --------
    >>> given_options(Options, {"seed": 1})  # an option of another mechanism that is tried too
    Options()
    """
    chosen = {f.name: _value(f, given[f.name]) for f in fields(kind) if f.name in given}
    return kind(**chosen)


def _value(about: Field[Any], value: object) -> Any:
    choices, default = about.metadata["choices"], about.default
    if about.metadata["read"] is not None:
        return about.metadata["read"](value)
    if choices:
        if value not in choices:
            raise WorkloadError.at((about.name,), repr(value), f"one of {', '.join(choices)}")
        return value
    read: object = value
    whole = not isinstance(default, float)
    if isinstance(value, str):
        with suppress(ValueError):
            read = int(value) if whole else float(value)
    if isinstance(read, bool) or not isinstance(read, int if whole else (int, float)):
        raise WorkloadError.at((about.name,), repr(value), "a whole number" if whole else "a number")
    least = about.metadata["least"]
    if whole and read < least:
        raise WorkloadError.at((about.name,), repr(value), f"a whole number of at least {least}")
    if not (whole or 0 < read < math.inf):
        raise WorkloadError.at((about.name,), repr(value), "a finite number above 0")
    return read


#: The group of entry points by which installed packages offer mechanisms.
ENTRY_POINTS = "matrixdp.mechanisms"

_OPTIMIZED = "selection.builtin"
#: Those that take long wherever they apply.
_SLOW = {
    "low-rank": "papers.low_rank",
    "exponential-smoothing": "papers.exponential_smoothing",
    "rotation": "papers.matrix_mechanism",
    "min-sensitivity": "papers.matrix_programs",
    "min-error": "papers.matrix_programs",
    "coa": "papers.coa",
    "dawa": "papers.dawa.simulation",
    "privbayes": "papers.privbayes.simulation",
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
    "tree": _OPTIMIZED,
    "residual": _OPTIMIZED,
    "querysmasher": _OPTIMIZED,
    "fourier": "papers.fourier",
    "walk": _OPTIMIZED,
    "walk-marginals": _OPTIMIZED,
    "radius": _OPTIMIZED,
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
#: What some are, in a line, as the help of commands has it.
IN_WORDS = {
    "dense": "the optimum on the whole domain, for a few thousand cells",
    "tree": "every node of a tree of values, such as areas, with its own precision",
    "residual": "one part for each marginal, with optimized weight vectors",
    "querysmasher": "the same with uniform ones",
    "fourier": "the same in the Fourier basis",
    "hdmm": "the best of opt-0 (one explicit table), opt-kron (one product), opt-plus (a union of products) "
    "and opt-m (weighted marginals)",
    "generalized-marginals": "weighted marginals with one optimized strategy for each attribute",
    "weighted-product": "one product of bases with weighted rows",
    "walk": "counts up to each value of one ordered attribute, or of nested sets, which share their noise",
    "walk-marginals": "weighted marginals, one ordered attribute of each with such counts",
    "radius": "many small tables, which share their noise",
}
#: Those with joint noise: what is proved of strategies with independent noise does not hold for them.
OF_JOINT_NOISE = "walk", "walk-marginals", "radius"
#: Those whose strategies others than we optimize too, and what only simulates: no baselines of comparisons.
_OF_OURS = ("hdmm", "fourier", "dawa", "privbayes")
#: The mechanisms of other papers, which others are compared to.
OF_OTHERS = tuple(name for name, file in _FILES.items() if file != _OPTIMIZED and name not in _OF_OURS)


Progress = Callable[[str, float | None], None]
"""Is called with what is being done and the share that is done, if known."""


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
    progress: Progress = silent
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
    limits : mapping of str to str or float
        How large a workload it takes, by the names of `matrixdp.selection.rules.SIZES`: ``auto`` does not try
        it on a larger one. Each is a number, or the name of one of `matrixdp.selection.limits.Limits`.
    trial : callable, optional
        From a task to the loss that a fast search finds; its full search takes long.
    parts : callable, optional
        From what is known of a workload and its options to how it would solve each class of its problems.
    matrices : tuple of str, optional
        The `matrixdp.selection.rules.SIZES` of the matrices that it decomposes, where ``parts`` do not say.
    proof : str
        What its own lower bound under Gaussian noise is taken from; empty where it proves none.
    reduces : {"", "groups", "pairs"}
        What it may be given instead of all values, as `selection.reduce` makes them: groups of those
        that no query tells apart; pairs for those that may trade places too, under Gaussian noise. A strategy
        that a paper defines over all values is given these. Under ``auto`` all candidates see pairs.
    """

    name: str
    source: str
    norms: tuple[int, ...]
    options: type[O]
    select: Callable[[Task[O]], tuple[Plan, Certificate]]
    limits: Mapping[str, str | float] = field(default_factory=dict)
    trial: Callable[[Task[O]], float] | None = None
    parts: Callable[[Facts, O], tuple[PartMethod, ...]] | None = None
    matrices: tuple[str, ...] | None = None
    proof: str = ""
    reduces: str = ""


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
M = TypeVar("M", bound=Listed)

MECHANISMS: Table[Listed] = Table(
    ENTRY_POINTS,
    "mechanism",
    {name: f"matrixdp.{file}" for name, file in _FILES.items()},
    last=_SLOW,
    taken=("auto",),
    error=WorkloadError,
)
"""Every mechanism by name, ``auto`` aside, in the order in which `compare` tries them.

Those of installed packages come before ours that take long.
"""


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
    MECHANISMS.register(mechanism.name, mechanism)
    return mechanism


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
