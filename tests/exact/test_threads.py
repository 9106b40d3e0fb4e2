"""BLAS threads are limited within a context and as before after it, however often it is entered."""

import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from matrixdp.exact.threads import one_blas_thread


def _threads() -> set[int]:
    return {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"}


def test_limits_are_those_of_the_context() -> None:
    with threadpool_limits(limits=2, user_api="blas"):
        for _ in range(2):
            with one_blas_thread():
                with one_blas_thread():
                    assert _threads() == {1}
                assert _threads() == {1}
            assert _threads() == {2}


def test_libraries_are_looked_for_once() -> None:
    with one_blas_thread():
        pass
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("threadpoolctl.ThreadpoolController", None)
        with one_blas_thread():
            pass
