"""A specification file, read and checked as a whole, without the data."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, final

from pydantic import ValidationError

from matrixdp.domain import Domain, OutOfDomain
from matrixdp.domain.canonical import describe_value
from matrixdp.errors import EntryError, SpecificationError, TooLargeError, WorkloadError, within
from matrixdp.errors import Path as Place
from matrixdp.privacy import Budget, LeastBudget
from matrixdp.queries.targets import group_targets
from matrixdp.queries.workload import Entry, Workload
from matrixdp.specification.models import SpecificationModel
from matrixdp.specification.parts import (
    budget_from,
    domain_from,
    entry_from,
    least_budget_from,
    out_of_domain_from,
    plain,
)
from matrixdp.specification.translation import first_problem
from matrixdp.specification.yaml_text import Document, parse_yaml

__all__ = ["Specification", "entry_from_spec", "json_schema", "load_specification"]

_BUDGETS = "a budget: {rho: 0.5}, {mu: 1.0}, {epsilon: 1.0, delta: 1.0e-6} or {epsilon: 1.0}"


@final
@dataclass(frozen=True, eq=False)
class Specification:
    """What a user asks for: everything that a specification file says, checked.

    Parameters
    ----------
    path : path or None
        The file, absolute; None if the specification was given as text or as a mapping.
    data : path or None
        The table, absolute (or a pattern of files); None if the file does not name one. Whether it is there
        is checked by whoever reads it.
    table : str or None
        The table of a DuckDB database.
    domain : Domain
        The attributes.
    workload : Workload
        What is asked.
    budget : Budget or None
        What may be spent; None if the file does not say, or says which parameter is made least.
    targets : mapping of str to float
        The largest standard errors of query groups; empty where there are none. Then what is spent is the
        least budget that meets them.
    least : LeastBudget or None
        Which parameter is made least, with targets.
    out_of_domain : OutOfDomain
        What happens to values that are out of domain.
    max_records : int
        A public bound on the number of records.
    document : dict
        The same as plain values for JSON, with arrays as lists; `load_specification` reads it.
    """

    path: Path | None
    data: Path | None
    table: str | None
    domain: Domain
    workload: Workload
    budget: Budget | None
    targets: Mapping[str, float]
    least: LeastBudget | None
    out_of_domain: OutOfDomain
    max_records: int
    document: Mapping[str, object]


def load_specification(
    source: str | os.PathLike[str] | Mapping[str, Any],
    *,
    base_path: str | os.PathLike[str] | None = None,
    require_privacy: bool = False,
) -> Specification:
    """Return the specification that a file, a text or a mapping holds.

    Parameters
    ----------
    source : path, str or mapping
        A path; YAML text, told from a path by having more than one line; or a mapping.
    base_path : path, optional
        What the paths in a text or a mapping are relative to; the working directory where it is left out.
        Paths in a file are relative to the file.
    require_privacy : bool
        Whether a budget must be given.

    Returns
    -------
    Specification
        The specification, checked as far as it can be without the data.

    Raises
    ------
    SpecificationError
        If anything is wrong: one error that names the place, what was found and what would be right.
    TooLargeError
        If an entry stands for too many groups, or its explicit queries are too many numbers.

    Examples
    --------
    >>> specification = load_specification('''
    ... domain: {sex: [female, male], age: {min: 0, max: 114}}
    ... workload:
    ...   - marginals: [1, 2]
    ... privacy: {rho: 0.5}
    ... ''')
    >>> specification.workload.queries, specification.budget
    (347, Budget(rho=0.5, neighbours='add_remove'))
    """
    if isinstance(source, Mapping):
        base = Path.cwd() if base_path is None else Path(base_path).resolve()
        with _refused({}):
            return _specification(plain(source), None, base, require_privacy)
    if isinstance(source, str) and "\n" in source:
        document = parse_yaml(source)
        base = Path.cwd() if base_path is None else Path(base_path).resolve()
        with _refused(document.lines):
            return _specification(document.value, None, base, require_privacy)
    path = Path(source).expanduser().resolve()
    document = _read(path)
    with _refused(document.lines):
        return _specification(document.value, path, path.parent, require_privacy)


def entry_from_spec(
    written: Mapping[str, Any], base_path: str | os.PathLike[str] = ".", place: str = "entry"
) -> Entry:
    """Return the workload entry that a mapping describes, in the form of a specification.

    Parameters
    ----------
    written : mapping
        The entry.
    base_path : path
        What the paths of NumPy files are relative to.
    place : str
        What the entry is called in messages.

    Returns
    -------
    Entry
        What ``marginals``, ``kway`` or another builder would return.

    Raises
    ------
    SpecificationError
        If the entry is wrong.
    TooLargeError
        If a matrix is larger than explicit queries may be.

    Examples
    --------
    >>> entry_from_spec({"kway": 2, "predicates": "prefix"}).to_spec()
    {'kway': [2], 'predicates': 'prefix'}
    """
    with _refused({}), within(place):
        return entry_from(plain(written), Path(base_path).resolve())


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema of specification files, which editors use to complete and check them.

    Examples
    --------
    >>> sorted(json_schema()["required"])
    ['domain', 'workload']
    """
    schema = SpecificationModel.model_json_schema()
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema"
    return schema


def _read(path: Path) -> Document:
    try:
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise SpecificationError.at((str(path),), "no such file", "a specification file (YAML)") from None
    except UnicodeDecodeError:
        raise SpecificationError.at((str(path),), "text that is not UTF-8", "a YAML file in UTF-8") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "a name that is not a path"
        found = f"a file that cannot be read ({reason})"
        raise SpecificationError.at((str(path),), found, "a YAML file") from None
    return parse_yaml(text)


@contextmanager
def _refused(lines: Mapping[Place, int]) -> Iterator[None]:
    """Turn errors inside parts into errors of the specification, with the line where it is known."""
    try:
        yield
    except EntryError as error:
        problem = error.problem
        if problem is None:
            raise
        path = problem.path
        while path not in lines and path:
            path = path[:-1]
        position = f"line {lines[path]}" if path in lines else None
        place = problem.path or ("the specification",)
        raise SpecificationError(replace(problem, path=place, position=position)) from None


def _specification(value: object, path: Path | None, base: Path, require_privacy: bool) -> Specification:
    if not isinstance(value, Mapping):
        raise EntryError.at((), describe_value(value), "a mapping with the keys domain, workload and privacy")
    try:
        model = SpecificationModel.model_validate(value)
    except ValidationError as error:
        raise first_problem(error) from None
    domain = domain_from(value["domain"])
    rule = out_of_domain_from(domain, value.get("out_of_domain", "drop"))
    entries = [_entry(written, position, base) for position, written in enumerate(value["workload"])]
    workload = _workload(domain, entries)
    privacy = value.get("privacy")
    if privacy is None and require_privacy:
        raise EntryError.at(("privacy",), "nothing", _BUDGETS)
    targets, least = _targets(workload, value.get("targets"), privacy)
    budget = None if privacy is None or privacy.get("least") is not None else budget_from(privacy)
    document: dict[str, object] = {key: value[key] for key in ("data", "table") if value.get(key) is not None}
    document["domain"] = domain.to_spec()
    document["workload"] = [entry.to_spec() for entry in entries]
    if privacy is not None:
        document["privacy"] = dict(privacy) if budget is None else budget.as_dict()
    if targets:
        document["targets"] = targets
    document["out_of_domain"] = rule.to_spec(domain)
    document["max_records"] = model.max_records
    return Specification(
        path=path,
        data=None if model.data is None else base / Path(model.data).expanduser(),
        table=model.table,
        domain=domain,
        workload=workload,
        budget=budget,
        targets=targets,
        least=least,
        out_of_domain=rule,
        max_records=model.max_records,
        document=document,
    )


def _targets(
    workload: Workload, written: Mapping[str, float] | None, privacy: Mapping[str, object] | None
) -> tuple[dict[str, float], LeastBudget | None]:
    """Return the targets and which budget is made least for them."""
    if written is None:
        if privacy is not None and privacy.get("least") is not None:
            raise EntryError.at(
                ("privacy", "least"), "no targets", "it beside targets: {group: standard error}"
            )
        return {}, None
    group_targets(workload, written)
    if privacy is None:
        raise EntryError.at(("privacy",), "nothing", "{least: rho} beside targets, or a budget not to exceed")
    return {name: float(target) for name, target in written.items()}, least_budget_from(privacy)


def _workload(domain: Domain, entries: list[Entry]) -> Workload:
    try:
        return Workload(domain, *entries)
    except (WorkloadError, TooLargeError):
        for position, entry in enumerate(entries):
            with within("workload", position):
                entry.expand(domain)
        raise


def _entry(written: object, position: int, base: Path) -> Entry:
    with within("workload", position):
        return entry_from(written, base)
