"""Whether runs on two neighbouring tables keep a promise, by how often events were seen."""

import math

import numpy as np
from scipy import stats

#: That limits of a probability miss it.
_FALSE_ALARM = 1e-6


def promise_kept(one: np.ndarray, other: np.ndarray, runs: int, epsilon: float) -> bool:
    """Return whether no event is surely more than e^epsilon times as likely on either table.

    `one` and `other` say how many of the runs on each table each event was seen in. Limits are Clopper and
    Pearson's.
    """
    for k, m in ((one, other), (other, one)):
        low = np.where(k > 0, stats.beta.ppf(_FALSE_ALARM, np.maximum(k, 1), runs - k + 1), 0.0)
        high = np.where(m < runs, stats.beta.ppf(1 - _FALSE_ALARM, m + 1, np.maximum(runs - m, 1)), 1.0)
        if (low > math.exp(epsilon) * high).any():
            return False
    return True
