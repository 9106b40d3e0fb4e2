"""What a file with a mechanism is written with: the class, the one way to add it, and building blocks.

A mechanism turns a task (a workload, a kind of noise, options) into a plan and its certificate::

    from matrixdp.mechanisms import Mechanism, Options, Task, register

    def select(task):
        ...
        return plan, Certificate(loss, None, "no bound: the method has none")

    register(Mechanism("my-mechanism", "Who and when", (2,), Options, select))

A package that is installed with an entry point in the group ``matrixdp.mechanisms``, named ``my-mechanism``,
whose value is the module, is found by `matrixdp.select`, the command line and ``matrixdp compare``.
"""

from matrixdp.selection.compose.marginals import MAX_COUNTED_CELLS, MAX_MARGINAL_CELLS
from matrixdp.selection.compose.rounding import product_blocks
from matrixdp.selection.gram import solve_gram
from matrixdp.selection.gram.factor import Factor
from matrixdp.selection.gram.rotation import rotated
from matrixdp.selection.mechanisms.explicit import (
    Spectrum,
    best_factor,
    configured_mechanism,
    explicit_mechanism,
    factor_of,
    roots_of,
    spectrum_of,
)
from matrixdp.selection.mechanisms.options import Options, option
from matrixdp.selection.mechanisms.products import (
    NO_BOUND,
    axis_gram,
    numeric_mechanism,
    numeric_product,
    product_of,
)
from matrixdp.selection.mechanisms.table import DataDependent, Mechanism, Simulation, Task, register
from matrixdp.selection.mechanisms.trials import Choice
from matrixdp.selection.problem.grams import Question
from matrixdp.selection.problem.kron_sum import MAX_AXIS_CELLS, KronSum, check_table
from matrixdp.selection.problem.residual_traces import asked_attributes
from matrixdp.selection.selection import Certificate
from matrixdp.selection.starting_points import generator

__all__ = [
    "MAX_AXIS_CELLS",
    "MAX_COUNTED_CELLS",
    "MAX_MARGINAL_CELLS",
    "NO_BOUND",
    "Certificate",
    "Choice",
    "DataDependent",
    "Factor",
    "KronSum",
    "Mechanism",
    "Options",
    "Question",
    "Simulation",
    "Spectrum",
    "Task",
    "asked_attributes",
    "axis_gram",
    "best_factor",
    "check_table",
    "configured_mechanism",
    "explicit_mechanism",
    "factor_of",
    "generator",
    "numeric_mechanism",
    "numeric_product",
    "option",
    "product_blocks",
    "product_of",
    "register",
    "roots_of",
    "rotated",
    "solve_gram",
    "spectrum_of",
]
