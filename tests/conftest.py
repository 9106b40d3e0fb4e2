"""For every test: one BLAS thread for each process, as pytest runs one process for each core."""

from threadpoolctl import threadpool_limits

LIMITS = threadpool_limits(limits=1, user_api="blas")
