"""The process in which ``compare`` simulates a data-dependent mechanism on a public table."""

from __future__ import annotations

import json
import time
from pathlib import Path

import typer

from matrixdp.cli.app import guarded


@guarded
def simulation(mechanism: str, spec: Path, public_table: Path, simulations: int) -> None:
    """Print the figures of a simulation as JSON; the arguments are those of ``compare``."""
    started = time.perf_counter()
    from matrixdp.cli.console import peak_memory_mb
    from matrixdp.cli.options import specification_with_budget
    from matrixdp.selection.mechanisms.table import MECHANISMS, DataDependent

    written, budget = specification_with_budget(spec)
    found = MECHANISMS[mechanism]
    assert isinstance(found, DataDependent)
    result = found.simulate(written.workload, public_table, budget, simulations, written.out_of_domain)
    note = (
        f"simulated {simulations} times on the public table, whose exact answers were computed: NOT PRIVATE. "
        f"RMSE +- {result.rmse_standard_error:.2g} (Monte Carlo standard error); it is no promise about "
        "other tables"
    )
    figures = {
        "rmse": result.rmse,
        "weighted_rmse": result.weighted_rmse,
        "max_stddev": result.max_rmse,
        "rmse_standard_error": result.rmse_standard_error,
        "simulations": simulations,
        "seconds": time.perf_counter() - started,
        "peak_memory_mb": peak_memory_mb(),
        "note": note,
    }
    typer.echo(json.dumps(figures))


if __name__ == "__main__":
    typer.run(simulation)
