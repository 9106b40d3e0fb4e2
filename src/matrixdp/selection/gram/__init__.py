"""The optimal Gaussian strategy on explicit domains, certified."""

from matrixdp.selection.gram.dual import solve_dual
from matrixdp.selection.gram.optimum import ConvexSolver, solve_gram, solve_rows

__all__ = ["ConvexSolver", "solve_dual", "solve_gram", "solve_rows"]
