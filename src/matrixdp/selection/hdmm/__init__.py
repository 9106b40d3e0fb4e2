"""The High-Dimensional Matrix Mechanism: OPT_0, OPT_kron, OPT_plus, OPT_M, and the best of them."""
