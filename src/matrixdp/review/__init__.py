"""What a stranger does with a release: check what it says, and read how it came about."""

from matrixdp.review.explain import explain_release
from matrixdp.review.finding import Finding, Verification
from matrixdp.review.model import verify_model
from matrixdp.review.verify import verify_release

__all__ = ["Finding", "Verification", "explain_release", "verify_model", "verify_release"]
