"""Privacy budgets, conversions between definitions, the gate before noise, and the statement in words."""

from matrixdp.privacy.budget import NEIGHBOURS, Budget
from matrixdp.privacy.conversions import delta_of, epsilon_of, mu_of_rho, rho_of_mu
from matrixdp.privacy.gate import Authorization, authorize
from matrixdp.privacy.least import BUDGET_KINDS, LeastBudget, least_budget
from matrixdp.privacy.statement import PrivacyStatement, statement

__all__ = [
    "BUDGET_KINDS",
    "NEIGHBOURS",
    "Authorization",
    "Budget",
    "LeastBudget",
    "PrivacyStatement",
    "authorize",
    "delta_of",
    "epsilon_of",
    "least_budget",
    "mu_of_rho",
    "rho_of_mu",
    "statement",
]
