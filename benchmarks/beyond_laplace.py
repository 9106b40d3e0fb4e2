"""Pure differential privacy with other noise than independent Laplace noise, at epsilon = 1 where not said.

python benchmarks/beyond_laplace.py
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from cells import asked_gram, select_cell, warm_up
from closed_forms import binary_tree, from_below, one_walk, staircase
from harness import emit_sections
from losses import identity_error
from numpy.typing import NDArray
from programs import box, least_of_all_noise
from published.hdmm import PAPER
from schemas import adult, cps, loans, small_products, two_way_kinds
from workload_families import all_marginals
from workloads import Make

import matrixdp as mdp
from matrixdp.noise import LAPLACE
from matrixdp.plans import Split
from matrixdp.selection.searches.radius import select_radius

__all__ = ["DELTAS", "KINDS", "LARGE", "PUBLISHED", "SECTIONS", "gaussian_noise"]

#: What is asked of an ordered attribute, and for how many values.
KINDS = {"prefixes": "prefix", "all ranges": "range"}
SIZES = (*(2**k for k in range(3, 11)), 4096)
#: Mechanisms of others, and the size at which their errors are those that stand beside HDMM's Table 4.
PUBLISHED, LARGE = ("opt-0", "hb", "wavelet", "hierarchical"), 4096
#: Of the Gaussian noise beside which pure guarantees are put.
DELTAS = (1e-6, 1e-10)
QUESTIONS = (2, 3, 5, 7, 10, 15, 20, 30, 40, 50, 70, 100)
_LIMIT = 240.0
#: Of which the best is the strategy with independent Laplace noise.
_LAPLACE = ("opt-m", "opt-plus", "generalized-marginals")


def _error(make: Make, mechanism: str, *, plans: bool = True) -> tuple[float | None, str]:
    """Return the RMSE of a mechanism at epsilon 1, and which one it is that `auto` chose."""
    cell = select_cell(make, mechanism, "laplace", _LIMIT, plans=plans, bounded=False)
    if "loss" not in cell:
        return None, cell["note"]
    least = min(cell["loss"], cell["rounded"] or math.inf)
    return math.sqrt(least / make().queries), cell["chosen"]


def _printed(kind: str, size: int) -> str | None:
    """Return what HDMM's journal version prints for OPT_0."""
    names = {"prefixes": "prefix", "all ranges": "all ranges"}
    for table in PAPER.tables:
        if table.name in ("table-4", "table-4-large"):
            place = [column.title for column in table.columns].index("OPT_0")
            for row in table.rows:
                if row.name == f"{names[kind]}, n = {size:,}":
                    return row.figures[place]
    return None


def ordered(kind: str, size: int) -> dict[str, Any]:
    """Return the errors of all ways to answer one kind of queries about an ordered attribute."""

    def make() -> mdp.Workload:
        return mdp.Workload(mdp.Domain({"a": range(size)}), mdp.product(a=KINDS[kind]))

    workload = make()
    auto, chosen = _error(make, "auto")
    row: dict[str, Any] = {
        "kind": kind,
        "values": size,
        "walk": math.sqrt(one_walk(asked_gram(workload)) / workload.queries),
        "auto": auto,
        "chosen": chosen,
        "identity": math.sqrt(identity_error(workload, LAPLACE) / workload.queries),
        "printed": _printed(kind, size),
    }
    if size < LARGE:
        row |= {mechanism: _error(make, mechanism, plans=False)[0] for mechanism in PUBLISHED}
    if kind == "prefixes":
        row |= {"binary tree": binary_tree(size), "from below": from_below(size)}
    return row


def _without_widths(workload: mdp.Workload) -> float | None:
    """Return the RMSE of K-norm noise: one radius, and no widths."""
    plan, _ = select_radius(workload, LAPLACE)
    assert isinstance(plan, Split)
    if any(part.width is None for part in plan.parts):
        return None
    plain = replace(plan, parts=tuple(replace(part, width=0) for part in plan.parts))
    return math.sqrt(math.fsum(plain.analysis.group(own).weighted for own in workload) / workload.queries)


def gaussian_noise(delta: float) -> str:
    """Return what Gaussian noise of a budget of epsilon 1 is called.

    Examples
    --------
    >>> gaussian_noise(1e-6)
    'Gaussian, delta = 1e-6'
    """
    return f"Gaussian, delta = {delta:.0e}".replace("e-0", "e-")


def tables(name: str, make: Make) -> dict[str, Any]:
    """Return the errors of all ways to answer many small tables."""
    gaussian = mdp.select(make(), noise="gaussian")
    radius = _error(make, "radius")[0]
    auto, chosen = _error(make, "auto")
    return {
        "name": name,
        "queries": make().queries,
        "radius": radius,
        "k-norm": _without_widths(make()),
        "auto": auto,
        "chosen": chosen,
        "laplace": _error(make, "opt-m")[0],
        **{gaussian_noise(delta): gaussian.rmse(mdp.Budget(epsilon=1, delta=delta)) for delta in DELTAS},
    }


def _questions(count: int, values: int = 2, ways: Sequence[int] = (1,)) -> Make:
    domain = mdp.Domain({f"q{k}": values for k in range(count)})
    return lambda: mdp.Workload(domain, mdp.marginals(list(ways)))


def _eight() -> mdp.Workload:
    sizes = (2, 5, 4, 7, 3, 2, 6, 2)
    return mdp.Workload(mdp.Domain({f"a{k}": size for k, size in enumerate(sizes)}), mdp.marginals(1))


def _cps_one_way() -> mdp.Workload:
    return mdp.Workload(cps(), mdp.kway(1, {"categorical": "identity", "numeric": "prefix"}))


SMALL: dict[str, Make] = {
    "eight attributes of 2, 5, 4, 7, 3, 2, 6 and 2 values": _eight,
    **{f"{count} questions with five answers": _questions(count, 5) for count in (10, 20, 40)},
    "10 yes/no questions, up to 2-way": _questions(10, 2, (0, 1, 2)),
}
#: Of these some attributes are ordered; and the best figure that is printed.
MIXED: dict[str, tuple[Make, str | None]] = {
    "CPS, 1-way, prefixes of numeric attributes": (_cps_one_way, None),
    "CPS, all prefix-marginals": (lambda: mdp.Workload(cps(), all_marginals(cps(), "prefix")), "40.59"),
    "Adult, 2-way prefix-marginals": (lambda: two_way_kinds(adult(), "prefix"), "484.07"),
    "Loans, small prefix-marginals": (lambda: small_products(loans(), "prefix"), "288.29"),
}


def mixed(name: str) -> dict[str, Any]:
    """Return the errors where walks are parts of larger strategies."""
    make, printed = MIXED[name]
    auto, chosen = _error(make, "auto")
    found = [_error(make, mechanism)[0] for mechanism in _LAPLACE]
    laplace = min(error for error in found if error is not None)
    return {
        "name": name,
        "queries": make().queries,
        "auto": auto,
        "chosen": chosen,
        "laplace": laplace,
        "printed": printed,
    }


def _by_month(months: int, others: dict[str, int], *, alone: bool = False, each: bool = False) -> Make:
    """Return what makes a workload of months by other attributes: by all at once, or by each of them."""
    domain = mdp.Domain({"month": months} | others)
    asked = [["month"]] if alone or not others else []
    asked += [["month", name] for name in others] if each else [["month", *others]] if others else []
    return lambda: mdp.Workload(domain, mdp.marginals(asked))


def _of_questions(count: int) -> dict[str, int]:
    return {f"q{k}": 2 for k in range(count)}


TIMES = {"4 months": 4, "12 months": 12, "52 weeks": 52, "365 days": 365}
#: Of persons with a record in each month: the months in which they have one, and the tables.
PERSONS: dict[str, tuple[int, Make]] = {
    **{name: (count, _by_month(count, {})) for name, count in TIMES.items()},
    "4 of 12 months": (4, _by_month(12, {})),
    "6 of 12 months": (6, _by_month(12, {})),
    "12 months by sex": (12, _by_month(12, {"sex": 2})),
    "12 months, and by sex": (12, _by_month(12, {"sex": 2}, alone=True)),
    "12 months by 50 regions": (12, _by_month(12, {"region": 50})),
    "12 months by each of 5 questions": (12, _by_month(12, _of_questions(5), each=True)),
    "12 months by each of 10 questions": (12, _by_month(12, _of_questions(10), each=True)),
}


def persons(name: str) -> dict[str, Any]:
    """Return the errors for persons with a record in each of some months, other attributes constant."""
    values, make = PERSONS[name]
    workload = make()
    constant = [own for own in workload.domain.names if own != "month"]
    unit = mdp.Unit(id="person", per="month", max_values=values, constant=constant)
    errors: dict[str, Any] = {}
    for key, mechanism, given in (
        ("auto", "auto", {"epsilon": 1}),
        ("laplace", "opt-m", {"epsilon": 1}),
        (gaussian_noise(DELTAS[0]), "auto", {"epsilon": 1, "delta": DELTAS[0]}),
    ):
        budget = mdp.Budget(**given, unit=unit)
        noise = "laplace" if "delta" not in given else "gaussian"
        strategy = mdp.select(workload, budget=budget, noise=noise, mechanism=mechanism)
        errors[key] = strategy.rmse(budget)
    return {"name": name, "queries": workload.queries, **errors}


def histograms(epsilon: float) -> dict[str, Any]:
    """Return the standard deviations of single counts."""
    workload = mdp.Workload(mdp.Domain({"a": 16}), mdp.marginals(1))
    strategy = mdp.select(workload, noise="laplace", mechanism="identity")
    return {
        "epsilon": epsilon,
        "integers": strategy.rmse(mdp.Budget(epsilon=epsilon)),
        "laplace": math.sqrt(2) / epsilon,
        "staircase": staircase(epsilon),
    }


Points = NDArray[np.int64]


def _walk_heights(noise: Points, widths: Sequence[int]) -> NDArray[np.int64]:
    """Return the exponents of exp(-epsilon) in the probabilities of a walk's noise on prefixes."""
    total = before = np.zeros(len(noise), dtype=np.int64)
    for own, width in zip(noise.T, widths, strict=True):
        step = np.sign(own - before) * np.maximum(np.abs(own - before) - width, 0)
        total, before = total + np.abs(step), before + step
    return total


def _means(heights: Iterable[NDArray[np.int64]], squares: NDArray[np.float64], epsilon: float) -> list[float]:
    laws = (np.exp(-epsilon * own) for own in heights)
    return [float(law @ squares / law.sum()) for law in laws]


def program_of_prefixes(size: int, epsilon: float, reach: int) -> dict[str, Any]:
    """Return the least total squared error of all noise for a few prefixes, and that of the best walk."""
    cells = box(reach, size)
    noise = np.cumsum(cells, axis=1)
    squares = (noise**2).sum(axis=1).astype(float)
    least, _ = least_of_all_noise(cells, np.eye(size, dtype=np.int64), squares, epsilon)
    widths = itertools.product(range(3), repeat=size - 1)
    ours = min(_means((_walk_heights(noise, (*own, 0)) for own in widths), squares, epsilon))
    [plain] = _means([_walk_heights(noise, (0,) * size)], squares, epsilon)
    return {"case": f"prefixes, n = {size}", "epsilon": epsilon, "least": least, "ours": ours, "plain": plain}


def program_of_questions(count: int, epsilon: float, reach: int) -> dict[str, Any]:
    """Return the same for the counts of yes/no questions, and that of the best noise under one radius.

    The total and the difference of both counts of each question move by 1 each. So all are even, or all odd.
    """
    points = box(reach, count + 1)
    points = points[(points % 2 == points[:, :1] % 2).all(axis=1)]
    moves = np.array(list(itertools.product((1,), *[(-1, 1)] * count)))
    sizes = np.abs(points)
    squares = (count * points[:, 0] ** 2 + (points[:, 1:] ** 2).sum(axis=1)) / 2.0
    least, _ = least_of_all_noise(points, moves, squares, epsilon, np.abs)

    def height(width: int) -> Any:
        return np.clip(np.maximum(sizes[:, 0], sizes[:, 1:].max(axis=1) - width), 0, None)

    means = _means(map(height, range(8)), squares, epsilon)
    case = f"{count} yes/no question{'s' if count > 1 else ''}"
    return {"case": case, "epsilon": epsilon, "least": least, "ours": min(means), "plain": means[0]}


#: The Gram matrix over two cells for which the best noise has ridges.
RIDGED = ((0.096, -0.294), (-0.294, 0.904))


def ridges(epsilon: float = 0.5, reach: int = 24) -> dict[str, Any]:
    """Return where the best noise of a program has local maxima, in powers of exp(-epsilon)."""
    cells = box(reach, 2)
    squares = np.einsum("pi,ij,pj->p", cells, np.array(RIDGED), cells)
    least, law = least_of_all_noise(cells, np.eye(2, dtype=np.int64), squares, epsilon)
    heights = -np.log(law / law.max()) / epsilon
    whole = np.pad(np.rint(heights).astype(int).reshape(2 * reach + 1, -1), 1, constant_values=10**6)
    middle = whole[1:-1, 1:-1]
    beside = np.min([whole[2:, 1:-1], whole[:-2, 1:-1], whole[1:-1, 2:], whole[1:-1, :-2]], axis=0)
    lowest = middle[(beside >= middle) & (middle > 0)]
    return {
        "epsilon": epsilon,
        "gram": RIDGED,
        "least": least,
        "off_integers": float(np.abs(heights - np.rint(heights)).max()),
        "levels": sorted(set(lowest.tolist())),
    }


Measured = tuple[str, Callable[..., dict[str, Any]], tuple[Any, ...]]

#: Of each section of the page: rows by name, in the order in which they are shown.
SECTIONS: dict[str, list[Measured]] = {
    "single": [
        (f"histogram, epsilon {epsilon:g}", histograms, (epsilon,)) for epsilon in (0.5, 1.0, 2.0, 4.0)
    ],
    "questions": [
        (f"{count} yes/no questions", tables, (str(count), _questions(count))) for count in QUESTIONS
    ],
    "small": [(name, tables, (name, make)) for name, make in SMALL.items()],
    "persons": [(name, persons, (name,)) for name in PERSONS],
    "programs": [
        *[
            (f"program, {case[0]} prefixes, epsilon {case[1]:g}", program_of_prefixes, case)
            for case in ((2, 1.0, 20), (2, 0.5, 40), (3, 1.0, 12), (4, 1.2, 5))
        ],
        *[
            (f"program, {case[0]} questions, epsilon {case[1]:g}", program_of_questions, case)
            for case in ((1, 1.0, 40), (2, 1.0, 24), (3, 1.0, 14))
        ],
    ],
    "ridges": [("ridges", ridges, ())],
    "mixed": [(name, mixed, (name,)) for name in MIXED],
    "ordered": [
        (f"{kind}, n = {size:,}", ordered, (kind, size)) for size, kind in itertools.product(SIZES, KINDS)
    ],
}


def main() -> None:
    warm_up()
    emit_sections(SECTIONS)


if __name__ == "__main__":
    main()
