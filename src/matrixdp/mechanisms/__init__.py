"""What a file with a mechanism is written with: the class, the one way to add it, and building blocks.

A mechanism turns a task (a workload, a kind of noise, options) into a plan and its certificate::

    from matrixdp.mechanisms import Mechanism, Options, Task, register

    def select(task):
        ...
        return plan, Certificate(loss, None, "no bound: the method has none")

    register(Mechanism("my-mechanism", "Who and when", (2,), Options, select))

A package that is installed with an entry point in the group ``matrixdp.mechanisms``, named ``my-mechanism``,
whose value is the module, is found by `matrixdp.select`, the command line and ``matrixdp compare``. With one
in the group ``matrixdp.candidates`` too, whose value is a `Rule` in it, ``auto`` tries it after ours.
"""

from matrixdp.mechanisms.products import (
    NO_BOUND,
    Spectrum,
    axis_gram,
    best_factor,
    configured_mechanism,
    explicit_mechanism,
    factor_of,
    numeric_mechanism,
    numeric_product,
    product_of,
    roots_of,
    spectrum_of,
)
from matrixdp.selection.builtin import ConvexOptions, PIdentityOptions
from matrixdp.selection.compose.decomposition import select_by_decomposition
from matrixdp.selection.compose.product import Product
from matrixdp.selection.compose.rounding import check_measurable, product_blocks
from matrixdp.selection.compose.sub_solver import Construction
from matrixdp.selection.compose.whole_table import product_choice
from matrixdp.selection.gram import solve_gram
from matrixdp.selection.gram.factor import Factor, right_inverse
from matrixdp.selection.gram.opt_0 import rotated
from matrixdp.selection.limits import GAP, LIMITS
from matrixdp.selection.problem.grams import ExplicitGram, Gram, QueryGram
from matrixdp.selection.problem.kron_sum import KronSum, check_table
from matrixdp.selection.problem.residual_traces import marginal_spectrum
from matrixdp.selection.problem.residuals import Split, split_workload
from matrixdp.selection.registry import (
    MECHANISMS,
    DataDependent,
    Mechanism,
    Options,
    Simulation,
    Task,
    given_options,
    option,
    register,
)
from matrixdp.selection.rules import Rule
from matrixdp.selection.searches.coverage import Coverage
from matrixdp.selection.searches.marginals import pooled_products
from matrixdp.selection.selection import Certificate, Choice
from matrixdp.selection.starting_points import generator

__all__ = [
    "GAP",
    "LIMITS",
    "MECHANISMS",
    "NO_BOUND",
    "Certificate",
    "Choice",
    "Construction",
    "ConvexOptions",
    "Coverage",
    "DataDependent",
    "ExplicitGram",
    "Factor",
    "Gram",
    "KronSum",
    "Mechanism",
    "Options",
    "PIdentityOptions",
    "Product",
    "QueryGram",
    "Rule",
    "Simulation",
    "Spectrum",
    "Split",
    "Task",
    "axis_gram",
    "best_factor",
    "check_measurable",
    "check_table",
    "configured_mechanism",
    "explicit_mechanism",
    "factor_of",
    "generator",
    "given_options",
    "marginal_spectrum",
    "numeric_mechanism",
    "numeric_product",
    "option",
    "pooled_products",
    "product_blocks",
    "product_choice",
    "product_of",
    "register",
    "right_inverse",
    "roots_of",
    "rotated",
    "select_by_decomposition",
    "solve_gram",
    "spectrum_of",
    "split_workload",
]
