"""Searches for strategies: weighted marginals, and unions of products."""
