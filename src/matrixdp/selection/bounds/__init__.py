"""Lower bounds on the loss of every Gaussian strategy, where the whole table is too large."""
