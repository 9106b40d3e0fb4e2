"""What must not stay in the process of the tests: libraries whose threads forbid `os.fork` ever after."""

from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context


def apart(function, *arguments):
    """Return what a function of a module returns, run in a process of its own; what it raises is raised."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(function, *arguments).result()
