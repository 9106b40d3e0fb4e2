"""From strategies for single Gram matrices to plans: products, unions, marginals, the decomposition."""
