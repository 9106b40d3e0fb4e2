"""Models of a release: non-negative, consistent, integer estimates, and records."""

__all__: list[str] = []
