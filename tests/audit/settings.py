"""How long the audit is, and where what is random in its choices starts (never the noise)."""

import os

#: A longer audit: as many times the cases and the samples (``MATRIXDP_AUDIT=20``, `make audit`).
ROUNDS = int(os.environ.get("MATRIXDP_AUDIT", "1"))
#: Of the choice of plans and budgets: another longer run takes another.
SEED = int(os.environ.get("MATRIXDP_AUDIT_SEED", "0"))
