"""Privacy budgets, and proved conversions between the definitions of differential privacy."""

from matrixdp.privacy.budget import Budget as Budget
from matrixdp.privacy.budget import Clause as Clause
from matrixdp.privacy.budget import LeastBudget as LeastBudget
from matrixdp.privacy.budget import delta_warnings as delta_warnings
from matrixdp.privacy.conversions import delta_of as delta_of
from matrixdp.privacy.conversions import epsilon_of as epsilon_of
from matrixdp.privacy.conversions import mu_of_rho as mu_of_rho
from matrixdp.privacy.conversions import rho_of_mu as rho_of_mu
from matrixdp.privacy.unit import Unit as Unit
