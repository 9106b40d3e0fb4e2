"""The other workloads on which papers compare mechanisms, in sizes that every mechanism may try."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from schemas import adult, cps, loans
from workload_families import (
    all_marginals,
    permuted_ranges,
    prefixes,
    small_products,
    w_discrete,
    w_marginal,
    w_range,
    w_related,
    width_ranges,
)

import matrixdp as mdp
from matrixdp.queries import Entry

__all__ = ["OTHER", "SWEEPS"]

Make = Callable[[], mdp.Workload]


def _grid(*sizes: int) -> mdp.Domain:
    return mdp.Domain({name: range(size) for name, size in zip("abcdefgh", sizes, strict=False)})


def _of(domain: mdp.Domain, entry: Entry) -> mdp.Workload:
    return mdp.Workload(domain, entry)


def _unions() -> mdp.Workload:
    identity_first = mdp.product(a="identity", b="prefix")
    return mdp.Workload(_grid(16, 16), mdp.product(a="prefix", b="identity"), identity_first)


#: name, what it is, the workload
OTHER: dict[str, tuple[str, Make]] = {
    "width-32": ("width-32 ranges, n = 256", lambda: _of(_grid(256), width_ranges("a", 32))),
    "permuted": ("permuted ranges, n = 256", lambda: _of(_grid(256), permuted_ranges("a", 1))),
    "prefix-2d": ("2-d prefix, 64 x 64", lambda: _of(_grid(64, 64), prefixes("a", "b"))),
    "prefix-3d": (
        "3-d prefix, 32 x 32 x 32",
        lambda: _of(_grid(32, 32, 32), prefixes("a", "b", "c")),
    ),
    "prefix-identity": ("prefix x identity and identity x prefix, 16 x 16", _unions),
    "ranges-3-way": ("all 3-way ranges, n = 10, d = 8", lambda: _of(_grid(*[10] * 8), mdp.kway(3, "range"))),
    "range-marginals": (
        "range-marginals of CPS",
        lambda: _of(cps(), all_marginals(cps(), "range")),
    ),
    "adult-marginals": (
        "small marginals of Adult (at most 5,000 cells)",
        lambda: _of(adult(), small_products(adult())),
    ),
    "adult-prefixes": (
        "small prefix-marginals of Adult (at most 5,000 cells)",
        lambda: _of(adult(), small_products(adult(), "prefix")),
    ),
    "loans-marginals": (
        "small marginals of Loans (at most 5,000 cells)",
        lambda: _of(loans(), small_products(loans())),
    ),
    "loans-prefixes": (
        "small prefix-marginals of Loans (at most 5,000 cells)",
        lambda: _of(loans(), small_products(loans(), "prefix")),
    ),
}


def _discrete(size: int, queries: int) -> mdp.Workload:
    return _of(_grid(size), w_discrete(_grid(size), queries, seed=1))


def _range(size: int, queries: int) -> mdp.Workload:
    return _of(_grid(size), w_range(_grid(size), queries, seed=1))


def _related(size: int, queries: int, ratio: float = 0.2) -> mdp.Workload:
    return _of(_grid(size), w_related(_grid(size), queries, ratio, seed=1))


def _marginal(size: int, queries: int) -> mdp.Workload:
    domain = _grid(4, 4, 4, *([size // 64] if size > 64 else []))
    return mdp.Workload(domain, *w_marginal(domain, queries, seed=1))


_BASE = 64
_SIZES, _QUERIES, _RATIOS = (32, 64, 128), (32, 64, 128), (0.1, 0.2, 0.4, 0.8)

#: family -> what is varied and its value -> the workload
SWEEPS: dict[str, dict[str, Make]] = {
    name: {
        **{f"n = {n}, {_BASE} queries": partial(make, n, _BASE) for n in _SIZES},
        **{f"n = {_BASE}, {m} queries": partial(make, _BASE, m) for m in _QUERIES if m != _BASE},
    }
    for name, make in (("WDiscrete", _discrete), ("WRange", _range), ("WRelated", _related))
}
SWEEPS["WRelated"] |= {
    f"n = {_BASE}, {_BASE} queries, rank {int(_BASE * ratio + 1e-9)}": partial(_related, _BASE, _BASE, ratio)
    for ratio in _RATIOS
    if ratio != 0.2  # which is among those above
}
SWEEPS["WMarginal"] = {
    **{f"n = {n}, 32 queries": partial(_marginal, n, 32) for n in (64, 128, 256)},
    **{f"n = 128, {m} queries": partial(_marginal, 128, m) for m in (16, 64)},
}
