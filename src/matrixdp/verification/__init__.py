"""Checking a release without the data, and reading how it came about."""

from matrixdp.verification.explain import explain_release as explain_release
from matrixdp.verification.verify import Finding as Finding
from matrixdp.verification.verify import Verification as Verification
from matrixdp.verification.verify import verify_model as verify_model
from matrixdp.verification.verify import verify_release as verify_release
