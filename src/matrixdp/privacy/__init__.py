"""Privacy budgets, and proved conversions between the definitions of differential privacy."""

from matrixdp.privacy.budget import NEIGHBOURS, Budget
from matrixdp.privacy.conversions import delta_of, epsilon_of, mu_of_rho, rho_of_mu
from matrixdp.privacy.least import BUDGET_KINDS, LeastBudget

__all__ = [
    "BUDGET_KINDS",
    "NEIGHBOURS",
    "Budget",
    "LeastBudget",
    "delta_of",
    "epsilon_of",
    "mu_of_rho",
    "rho_of_mu",
]
