"""Weights of measured marginals: what each measured one says of each asked residual, and the best shares."""
