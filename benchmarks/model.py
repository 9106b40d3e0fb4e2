"""Models of releases against the true tables: errors beside those of unbiased answers and simple repairs.

    python benchmarks/model.py bundled
    python benchmarks/model.py adult-coarse --adult adult.csv
    python benchmarks/model.py adult-coarse --adult adult.csv --epsilon 0.1
    python benchmarks/model.py adult-whole --adult adult.csv
    python benchmarks/model.py adult-pairs --adult adult.csv
    python benchmarks/model.py bundled --mbi          with models that mbi fits to the same measurements

`adult.csv` is UCI Adult with every value coded from 0, a column each. Measured with seeded noise, so that a
run can be repeated; nothing of it is private. The processor seconds are those of the fits alone.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import numpy as np
from harness import emit
from numpy.typing import NDArray
from private_pgm import Fit, fits
from repairs import local_nonnegative, projected

import matrixdp as mdp
from matrixdp.errors import UnsupportedQueryError
from matrixdp.measure.noisy_answers import maximal_marginals
from matrixdp.model.likelihood import Evidence
from matrixdp.model.mixture_fit import FITS, choose
from matrixdp.model.pair_fit import fit_local
from matrixdp.queries import Group, Identity, ProductGroup, Workload
from matrixdp.sources import open_source

Array = NDArray[np.float64]

HERE = Path(__file__).parent
#: The values of each attribute of Adult, and into how many equal bins those that are numbers are put.
ADULT = {
    "age": 85,
    "workclass": 9,
    "fnlwgt": 100,
    "education-num": 16,
    "marital-status": 7,
    "occupation": 15,
    "relationship": 6,
    "race": 5,
    "sex": 2,
    "capital-gain": 100,
    "capital-loss": 100,
    "hours-per-week": 99,
    "native-country": 42,
    "income>50K": 2,
}
COARSE = {"age": 17, "fnlwgt": 10, "capital-gain": 10, "capital-loss": 10, "hours-per-week": 10}
CASES = ("bundled", "adult-coarse", "adult-whole", "adult-pairs")


def read_adult(path: Path, coarse: bool) -> tuple[dict[str, NDArray[np.int64]], mdp.Domain]:
    header = path.read_text(encoding="utf-8").partition("\n")[0].split(",")
    columns = np.loadtxt(path, dtype=np.int64, delimiter=",", skiprows=1).T
    values = dict(zip(header, columns, strict=True))
    if not coarse:
        return values, mdp.Domain(
            {n: {"min": 0, "max": s - 1} if n in COARSE else s for n, s in ADULT.items()}
        )
    table = {n: values[n] * COARSE.get(n, size) // size for n, size in ADULT.items()}
    return table, mdp.Domain({name: COARSE.get(name, size) for name, size in ADULT.items()})


def _case(name: str, adult: Path | None) -> tuple[object, Workload, mdp.OutOfDomain]:
    if name == "bundled":
        given = mdp.load_specification(HERE.parent / "examples" / "randhie.yaml")
        return HERE.parent / "examples" / "randhie.parquet", given.workload, given.out_of_domain
    assert adult is not None, "give the path of adult.csv by --adult"
    table, domain = read_adult(adult, name == "adult-coarse")
    if name == "adult-coarse":
        return table, Workload(domain, mdp.marginals([0, 1, 2, 3])), mdp.OutOfDomain.drop()
    if name == "adult-pairs":
        return table, Workload(domain, mdp.marginals([0, 1, 2])), mdp.OutOfDomain.drop()
    prefixes = mdp.kway([0, 1, 2], {"categorical": "identity", "numeric": "prefix"})
    return table, Workload(domain, prefixes), mdp.OutOfDomain.drop()


def _truth(table: object, workload: Workload, rules: mdp.OutOfDomain) -> dict[tuple[str, ...], Array]:
    """Return the true marginal of every combination of attributes that is asked about."""
    asked = sorted({group.attributes for group in workload}, key=len)
    holders = maximal_marginals(asked)
    found: dict[tuple[str, ...], Array] = {}
    unit = mdp.Budget(mu=1).unit
    for subset, counts in open_source(table).marginals(workload.domain, list(holders), rules, unit):
        for own in holders.get(subset, []):
            others = tuple(axis for axis, name in enumerate(subset) if name not in own)
            found[own] = np.asarray(counts.sum(axis=others), dtype=np.float64)
    return found


def _asked(group: Group, tensor: Array) -> Array:
    assert isinstance(group, ProductGroup)
    for axis, name in enumerate(group.attributes):
        moved = np.moveaxis(tensor, axis, 0)
        out = group.sets[name].apply(np.ascontiguousarray(moved).reshape(moved.shape[0], -1))
        tensor = np.moveaxis(out.reshape(out.shape[0], *moved.shape[1:]), 0, axis)
    return np.asarray(tensor.ravel())


def _errors(
    answers: Callable[[Group], Array], groups: Sequence[Group], truth: dict[tuple[str, ...], Array]
) -> Array:
    return np.concatenate([answers(group) - _asked(group, truth[group.attributes]) for group in groups])


def _from_marginal(fit: Fit, total: float, group: Group) -> Array:
    return _asked(group, fit.marginal(group.attributes) if group.attributes else np.array(total))


def _ratios(own: Array, unbiased: Array) -> dict[str, float]:
    return {
        "rmse": float(np.sqrt((own**2).mean() / (unbiased**2).mean())),
        "l1": float(np.abs(own).mean() / np.abs(unbiased).mean()),
        "largest": float(np.abs(own).max() / np.abs(unbiased).max()),
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("case", choices=CASES)
    parser.add_argument("--adult", type=Path, metavar="FILE")
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--mbi", action="store_true", help="fit the models of mbi, too (minutes)")
    given = parser.parse_args()
    table, workload, rules = _case(given.case, given.adult)
    strategy = mdp.select(workload)
    budget = mdp.Budget(epsilon=given.epsilon, delta=1e-6)
    measured = strategy.measure(table, budget, out_of_domain=rules, seed_not_private=1)
    estimates, groups = measured.measurement.estimates, list(workload)
    truth = _truth(table, workload, rules)
    unbiased = _errors(estimates.answers, groups, truth)
    started = time.process_time()
    evidence = Evidence.of(measured.measurement)
    chosen = choose(evidence)
    seconds = time.process_time() - started

    def each_projected(group: Group) -> Array:
        assert isinstance(group, ProductGroup)
        own = estimates.answers(group)
        cells = all(isinstance(predicates, Identity) for predicates in group.predicates)
        return projected(own, evidence.total) if cells else own

    figures = {
        "clipped at 0": _ratios(
            _errors(lambda group: np.maximum(estimates.answers(group), 0.0), groups, truth), unbiased
        ),
        "each marginal projected": _ratios(_errors(each_projected, groups, truth), unbiased),
    }
    others: dict[str, float] = {}
    if all(len(group.attributes) <= 2 for group in groups):
        started = time.process_time()
        marginals = local_nonnegative(measured.measurement, evidence.total)
        if marginals is not None:
            others["local non-negativity"] = time.process_time() - started
            holders = {own: top for top, owns in maximal_marginals(list(truth)).items() for own in owns}

            def consistent(group: Group) -> Array:
                top = holders[group.attributes]
                others = tuple(axis for axis, name in enumerate(top) if name not in group.attributes)
                return _asked(group, np.asarray(marginals[top].sum(axis=others)))

            figures["local non-negativity"] = _ratios(_errors(consistent, groups, truth), unbiased)
    try:
        started = time.process_time()
        local = fit_local(evidence)
        others["tables of pairs (`local`)"] = time.process_time() - started
        figures["tables of pairs (`local`)"] = _ratios(_errors(local.answers, groups, truth), unbiased)
    except UnsupportedQueryError:
        pass  # more than two attributes were measured together
    figures["mixture"] = _ratios(_errors(chosen.mixture.answers, groups, truth), unbiased)
    settings: dict[str, str] = {}
    for fit in fits(measured.measurement, evidence.total) if given.mbi else ():
        answers = partial(_from_marginal, fit, evidence.total)
        errors = _errors(answers, groups, truth)
        ratios = _ratios(errors, unbiased)
        if fit.name not in figures or ratios["rmse"] < figures[fit.name]["rmse"]:
            figures[fit.name], others[fit.name], settings[fit.name] = ratios, fit.seconds, fit.settings
    emit(
        {
            "epsilon": given.epsilon,
            "queries": workload.queries,
            "unbiased_rmse": float(np.sqrt((unbiased**2).mean())),
            "fit_cpu_seconds": seconds,
            "components": chosen.components,
            "steps": chosen.steps,
            "fits": FITS,
            "tests": chosen.tests.as_dict(),
            "other_cpu_seconds": others,
            "settings": settings,
            "table": figures,
        }
    )


if __name__ == "__main__":
    main()
