"""The report of a release: one page that needs nothing else."""

from matrixdp.report.page import report_release

__all__ = ["report_release"]
