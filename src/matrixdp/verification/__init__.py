"""Checking a release without the data, and reading how it came about."""

from matrixdp.verification.explain import explain_release
from matrixdp.verification.verify import Finding, Verification, verify_model, verify_release

__all__ = ["Finding", "Verification", "explain_release", "verify_model", "verify_release"]
