"""What tests of models start from: a measurement of a small table, and tables of pairs fitted to one."""

from typing import Any

import numpy as np

import matrixdp as mdp
from matrixdp.model.constraints import Constraints
from matrixdp.model.likelihood import Evidence
from matrixdp.model.pair_fit import fit_local
from matrixdp.model.tables import LocalTables, Mixture, free_attributes


def measured(
    domain: Any, table: Any, *entries: Any, budget: mdp.Budget | None = None, seed: int = 1, **options: Any
) -> Any:
    """Return what is measured of a table: by the `residual` mechanism unless the options name another."""
    workload = mdp.Workload(mdp.Domain(domain) if isinstance(domain, dict) else domain, *entries)
    if options.get("mechanism") == "given":
        strategy = mdp.Strategy.from_parts(workload.domain, workload.entries)
    else:
        strategy = mdp.select(workload, **({"mechanism": "residual"} | options))
    return strategy.measure(table, budget or mdp.Budget(mu=1), seed_not_private=seed)


def a_mixture(
    domain: mdp.Domain, components: int = 4, total: float = 1000.0, seed: int = 3, even: float = 1.0
) -> Mixture:
    """Return a mixture of random products; the larger `even`, the more alike their shares."""
    random = np.random.default_rng(seed)
    free = free_attributes(domain)
    factors = {name: random.dirichlet(np.full(domain[name].size, even), components) for name in free}
    return Mixture(domain, total, random.dirichlet(np.ones(components)), factors)


def local(measurement: Any, known: Constraints | None = None) -> LocalTables:
    """Return tables of attributes and of pairs that are fitted to a measurement."""
    return fit_local(Evidence.of(measurement, known))
