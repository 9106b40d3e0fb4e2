"""The optimal Gaussian strategy on explicit domains, certified."""

from matrixdp.selection.convex.problem import ConvexSolver, solve_gram, solve_rows
from matrixdp.selection.convex.solver import DEFAULT_GAP, solve_dual

__all__ = ["DEFAULT_GAP", "ConvexSolver", "solve_dual", "solve_gram", "solve_rows"]
