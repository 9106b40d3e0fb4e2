"""Privacy budgets, conversions between definitions, the gate before noise, and the statement in words."""

from matrixdp.privacy.budget import NEIGHBOURS, Budget
from matrixdp.privacy.conversions import delta_of, epsilon_of, mu_of_rho, rho_of_mu
from matrixdp.privacy.gate import Authorization, authorize
from matrixdp.privacy.statement import PrivacyStatement, statement

__all__ = [
    "NEIGHBOURS",
    "Authorization",
    "Budget",
    "PrivacyStatement",
    "authorize",
    "delta_of",
    "epsilon_of",
    "mu_of_rho",
    "rho_of_mu",
    "statement",
]
