"""Privacy budgets, and proved conversions between the definitions of differential privacy."""

from matrixdp.privacy.advice import LARGE_DELTA, delta_warnings
from matrixdp.privacy.budget import NEIGHBOURS, Budget
from matrixdp.privacy.clause import Clause
from matrixdp.privacy.conversions import delta_of, epsilon_of, mu_of_rho, rho_of_mu
from matrixdp.privacy.least import BUDGET_KINDS, LeastBudget
from matrixdp.privacy.unit import Unit

__all__ = [
    "BUDGET_KINDS",
    "LARGE_DELTA",
    "NEIGHBOURS",
    "Budget",
    "Clause",
    "LeastBudget",
    "Unit",
    "delta_of",
    "delta_warnings",
    "epsilon_of",
    "mu_of_rho",
    "rho_of_mu",
]
