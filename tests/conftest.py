"""For every test: one BLAS thread, as pytest runs one process for each core."""

import os
import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import hypothesis
import pytest
import scipy.linalg  # noqa: F401  loads both BLAS libraries: only those that are loaded can be limited
from threadpoolctl import threadpool_limits

from tests.limits import Override
from tests.report.browser import BROWSER

THREADS = threadpool_limits(limits=1, user_api="blas")
# How long an example takes depends on what else the machine does.
hypothesis.settings.register_profile(
    "any machine", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("any machine")


JAVA = shutil.which("java") is not None or "JAVA_HOME" in os.environ
#: Modin needs a pandas of its own, in which `.ci/versions` runs these.
collect_ignore = [
    "sources/modin_frames.py",
    *([] if JAVA else ["sources/test_spark.py"]),
    *([] if BROWSER else ["report/test_browser.py", "design/test_browser.py"]),
]


@pytest.fixture
def limits() -> Iterator[Override]:
    """Return what changes limits of selection until the test ends."""
    from tests.selection.oracle import lowered

    with ExitStack() as stack:
        yield lambda **values: stack.enter_context(lowered(values))


def pytest_terminal_summary(terminalreporter: Any) -> None:
    if not JAVA:
        terminalreporter.write_line("Frames of Spark were not tested: there is no Java on this machine.")
    if not BROWSER:
        words = "no Chromium on this machine, or no Playwright with the axe check"
        terminalreporter.write_line(f"The page of a report was not opened in a browser: there is {words}.")
