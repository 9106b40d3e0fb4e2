"""Statistics that are derived from a release, with right errors: quantiles, means, shares, differences."""

__all__: list[str] = []
