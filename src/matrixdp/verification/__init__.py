"""What a stranger does with a release: check what it says, and read how it came about."""

from matrixdp.verification.explain import explain_release
from matrixdp.verification.verify import Finding, Verification, verify_model, verify_release

__all__ = ["Finding", "Verification", "explain_release", "verify_model", "verify_release"]
