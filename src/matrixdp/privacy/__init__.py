"""Privacy budgets, and proved conversions between the definitions of differential privacy."""

from matrixdp.privacy.budget import Budget, Clause, LeastBudget, Unit, delta_warnings
from matrixdp.privacy.conversions import delta_of, epsilon_of, mu_of_rho, rho_of_mu

__all__ = [
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
