"""The report of a release: one page that needs nothing else."""

__all__: list[str] = []
