"""OPT_HDMM: all of its strategies, and the one with the least error."""

from __future__ import annotations

from dataclasses import asdict, replace

from matrixdp.errors import TooLargeError
from matrixdp.mechanisms import (
    MECHANISMS,
    Choice,
    KronSum,
    Mechanism,
    PIdentityOptions,
    Task,
    given_options,
    register,
)

#: The strategies that are compared, in the order in which ties are decided.
_KINDS = ("opt-kron", "opt-m", "opt-plus", "opt-0")
#: Within the comparison the whole table is searched up to this many cells that do not factor.
MAX_SEARCHED_CELLS = 256


def _hdmm(task: Task[PIdentityOptions]) -> Choice:
    """Select with all strategies of HDMM and keep the one with the least error.

    References
    ----------
    McKenna et al. 2018, section 6.4 (OPT_HDMM).
    """
    found: dict[str, Choice] = {}
    refused: list[str] = []
    told = asdict(task.options)
    for done, kind in enumerate(_KINDS):
        task.progress(f"trying {kind}", done / len(_KINDS))
        mechanism = MECHANISMS[kind]
        assert isinstance(mechanism, Mechanism)
        own = {"seed": told["seed"]} if kind == "opt-m" else told  # its restarts are of another search
        try:
            if kind == "opt-0" and task.noise.norm == 1:
                cells = KronSum.of(task.workload.domain, task.workload.groups).cells
                if cells > MAX_SEARCHED_CELLS:
                    raise TooLargeError(f"opt-0: {cells} cells; the limit is {MAX_SEARCHED_CELLS}.")
            found[kind] = mechanism.select(
                Task(task.workload, task.noise, given_options(mechanism.options, own))
            )
        except TooLargeError as error:
            refused.append(str(error))
    if not found:
        raise TooLargeError(" ".join(refused))
    plan, certificate = min(found.values(), key=lambda choice: choice[1].loss)
    bounds = [(own.lower_bound, own.scope) for _, own in found.values() if own.lower_bound is not None]
    if bounds:
        bound, scope = max(bounds)
        certificate = replace(certificate, lower_bound=bound, scope=scope)
    return plan, certificate


register(
    Mechanism(
        "hdmm",
        "McKenna et al. 2018: the best of opt-0, opt-kron, opt-plus and opt-m, with searches of ours",
        (1, 2),
        PIdentityOptions,
        _hdmm,
        reduces="groups",
    )
)
