"""Whether what the folder of a model says is true: recomputed from the measurement and the model's arrays."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator
from pathlib import Path

from matrixdp.answers.columns import plain_schema
from matrixdp.errors import MatrixDPError, StorageError, TooLargeError, UnsupportedQueryError
from matrixdp.exact.threads import one_blas_thread
from matrixdp.model import Model
from matrixdp.model.constraints import Constraints
from matrixdp.model.folder import ANSWERS, MODEL_FILES, answers_schema
from matrixdp.model.making import tests_of
from matrixdp.review.answers import STANDARD_ERRORS, ParquetAnswers
from matrixdp.review.finding import Finding, Verification, settled

__all__ = ["verify_model"]

#: Losses are sums in single precision, in an order that may differ, of differences of large numbers.
_LOSS = 1e-2


def verify_model(
    folder: str | os.PathLike[str], *, progress: Callable[[int, int], None] | None = None
) -> Verification:
    """Check all that can be checked of the folder of a model, without the data.

    Parameters
    ----------
    folder : str or path
        The folder.
    progress : callable, optional
        Is called with the number of answers computed again and of all.

    Returns
    -------
    Verification
        A finding for each subject. ``model``: its files have the digests that are listed, the measurement is
        whole and costs what it says, the arrays are shares or tables that agree, the record says what
        follows, and what it says is publicly known is kept; the tests of its fit have the outcome that is
        said. ``answers``: both the unbiased and the modelled
        ones are those that follow, to a millionth of the unbiased standard errors. ``fit`` is not checked:
        that the model was made as it says.

    Raises
    ------
    StorageError
        If there is no such folder.
    """
    path = Path(folder)
    if not os.path.isdir(path):  # noqa: PTH112 - no error where the path is none
        raise StorageError(f"{path}: no such folder; expected that of a model")
    try:
        model = Model.load(path)
    except MatrixDPError as error:
        why = "what is above failed"
        failed = [Finding("model", "failed", str(error)), Finding("answers", "not checked", why)]
        return Verification(str(path), (*failed, _beyond()))
    of = f"a model by method {model.method} of the measurement {model.measurement_digest[:16]}"
    words = f"whole, {of}; {', '.join(MODEL_FILES)}: as listed"
    found = [Finding("model", "ok", words)]
    if not model.accepted:
        found.append(Finding("model", "ok", "it says that its own tests reject it"))
    found += _known(model)
    found += _tested(model)
    schema = answers_schema(model)
    answers = ParquetAnswers(path / ANSWERS, plain_schema(schema))
    answers.check_schema(schema, model.private)
    done = 0
    with one_blas_thread():
        for batch in model.batches(model.workload.groups):
            answers.follow(batch)
            done += batch.num_rows
            if progress is not None:
                progress(done, model.workload.queries)
    answers.end()
    count = f"{model.workload.queries} answers follow, to {STANDARD_ERRORS:g} of their standard errors"
    found += settled("answers", count, answers.problems)
    return Verification(str(path), (*found, _beyond()))


def _known(model: Model) -> Iterator[Finding]:
    """Yield whether a model keeps what its record says is publicly known."""
    totals, impossible = model.made.get("totals"), model.made.get("impossible")
    if totals is None and impossible is None:
        return
    try:
        known = Constraints.of(model.domain, totals, impossible)
        problems = list(known.broken(model.tables.marginal, model.total))
    except (TooLargeError, UnsupportedQueryError) as error:
        yield Finding("model", "not checked", f"what is publicly known: {error}")
        return
    except MatrixDPError as error:
        problems = [str(error)]
    yield from settled(
        "model", "it keeps the published counts and impossible combinations of its record", problems
    )


def _tested(model: Model) -> Iterator[Finding]:
    """Yield whether the tests of a model's fit say what its record has of them."""
    try:
        tests = tests_of(model)
    except (TooLargeError, UnsupportedQueryError) as error:
        yield Finding("model", "not checked", f"the tests of its fit: {error}")
        return
    except MatrixDPError as error:
        yield Finding("model", "failed", f"the tests of its fit: {error}")
        return
    says, loss = model.accepted, model.tests.get("loss", tests.loss)
    problems = []
    if says != tests.accepted:
        words = ("reject", "accept")
        problems = [f"its record says that its tests {words[says]} it; they {words[tests.accepted]} it"]
    elif model.tests.get("degrees", tests.degrees) != tests.degrees:
        counted = f"an earlier version counted {model.tests['degrees']!r:.20} degrees of freedom"
        why = f"the loss in its record: {counted}, for {tests.degrees} now; make the model anew"
        yield Finding("model", "not checked", why)
        return
    elif not isinstance(loss, float) or not math.isclose(loss, tests.loss, rel_tol=_LOSS, abs_tol=_LOSS):
        problems = [f"its record says a loss of {loss}; {tests.loss} follows"]
    yield from settled("model", f"its tests are as it says, with a loss of {tests.loss:,.4g}", problems)


def _beyond() -> Finding:
    return Finding(
        "fit",
        "not checked",
        "that the model was fitted as it says, and that the measurement is that of a release which holds: "
        "verify the release itself, whose measurement has the same digest",
    )
