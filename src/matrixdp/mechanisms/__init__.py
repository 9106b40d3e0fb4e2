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

from matrixdp.mechanisms.products import NO_BOUND as NO_BOUND
from matrixdp.mechanisms.products import Spectrum as Spectrum
from matrixdp.mechanisms.products import axis_gram as axis_gram
from matrixdp.mechanisms.products import best_factor as best_factor
from matrixdp.mechanisms.products import explicit_mechanism as explicit_mechanism
from matrixdp.mechanisms.products import factor_of as factor_of
from matrixdp.mechanisms.products import numeric_mechanism as numeric_mechanism
from matrixdp.mechanisms.products import numeric_product as numeric_product
from matrixdp.mechanisms.products import product_of as product_of
from matrixdp.mechanisms.products import roots_of as roots_of
from matrixdp.mechanisms.products import spectrum_of as spectrum_of
from matrixdp.selection.builtin import ConvexOptions as ConvexOptions
from matrixdp.selection.builtin import PIdentityOptions as PIdentityOptions
from matrixdp.selection.compose.decomposition import select_by_decomposition as select_by_decomposition
from matrixdp.selection.compose.product import Product as Product
from matrixdp.selection.compose.rounding import check_measurable as check_measurable
from matrixdp.selection.compose.rounding import product_blocks as product_blocks
from matrixdp.selection.compose.sub_solver import Construction as Construction
from matrixdp.selection.compose.whole_table import product_choice as product_choice
from matrixdp.selection.gram import solve_gram as solve_gram
from matrixdp.selection.gram.factor import Factor as Factor
from matrixdp.selection.gram.factor import right_inverse as right_inverse
from matrixdp.selection.gram.opt_0 import rotated as rotated
from matrixdp.selection.limits import GAP as GAP
from matrixdp.selection.limits import LIMITS as LIMITS
from matrixdp.selection.problem.grams import ExplicitGram as ExplicitGram
from matrixdp.selection.problem.grams import Gram as Gram
from matrixdp.selection.problem.grams import QueryGram as QueryGram
from matrixdp.selection.problem.kron_sum import KronSum as KronSum
from matrixdp.selection.problem.kron_sum import check_table as check_table
from matrixdp.selection.problem.residual_traces import marginal_spectrum as marginal_spectrum
from matrixdp.selection.problem.residuals import Split as Split
from matrixdp.selection.problem.residuals import split_workload as split_workload
from matrixdp.selection.registry import MECHANISMS as MECHANISMS
from matrixdp.selection.registry import DataDependent as DataDependent
from matrixdp.selection.registry import Mechanism as Mechanism
from matrixdp.selection.registry import Options as Options
from matrixdp.selection.registry import Simulation as Simulation
from matrixdp.selection.registry import Task as Task
from matrixdp.selection.registry import given_options as given_options
from matrixdp.selection.registry import option as option
from matrixdp.selection.registry import register as register
from matrixdp.selection.rules import Rule as Rule
from matrixdp.selection.searches.coverage import Coverage as Coverage
from matrixdp.selection.searches.marginals import pooled_products as pooled_products
from matrixdp.selection.selection import Certificate as Certificate
from matrixdp.selection.selection import Choice as Choice
from matrixdp.selection.starting_points import generator as generator
