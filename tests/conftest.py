"""For every test: one BLAS thread for each process, as pytest runs one process for each core."""

import scipy.linalg  # noqa: F401  loads both BLAS libraries: only those that are loaded can be limited
from threadpoolctl import threadpool_limits

LIMITS = threadpool_limits(limits=1, user_api="blas")
