"""A specification file, read and checked as a whole, without the data."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, final

from matrixdp.domain import Domain, OutOfDomain
from matrixdp.errors import MatrixDPError, SpecificationError, TooLargeError, format_place, within
from matrixdp.errors import Path as Place
from matrixdp.forms import Given, Record, has_scheme, names_secret, shown
from matrixdp.language import read_entry
from matrixdp.language.public import ImpossibleBox, Published, check_public
from matrixdp.privacy import Budget, LeastBudget, Unit
from matrixdp.queries.targets import group_targets
from matrixdp.queries.workload import Entry, Workload
from matrixdp.specification.written import WrittenSpecification
from matrixdp.specification.yaml_text import UNFILLED, Document, parse_yaml

__all__ = [
    "Specification",
    "entry_from_spec",
    "files_under",
    "json_schema",
    "load_specification",
    "read_document",
    "refused",
    "schema_of",
]

_BUDGETS = "a budget: {rho: 0.5}, {mu: 1.0}, {epsilon: 1.0, delta: 1.0e-6} or {epsilon: 1.0}"


@final
@dataclass(frozen=True, eq=False)
class Specification:
    """What a user asks for: everything that a specification file says, checked.

    Parameters
    ----------
    path : path or None
        The file, absolute; None if the specification was given as text or as a mapping.
    data : path, str or None
        The table: a path, absolute (or a pattern of files), or an address; None if the file does not name
        one. Whether it is there is checked by whoever reads it.
    table : str or None
        The table of a database.
    quoted_newlines : bool
        Whether quotes in CSV files may hold line ends.
    domain : Domain
        The attributes.
    workload : Workload
        What is asked.
    budget : Budget or None
        What may be spent; None if the file does not say, or says which parameter is made least.
    ledger : path or None
        The ledger that a release is debited to, absolute; None if the file does not name one.
    unit : Unit
        How many records a person has at most; the budget has it too.
    targets : mapping of str to float
        The largest standard errors of query groups; empty where there are none. Then what is spent is the
        least budget that meets them.
    least : LeastBudget or None
        Which parameter is made least, with targets.
    out_of_domain : OutOfDomain
        What happens to values that are out of domain.
    max_records : int
        A public bound on the number of records.
    totals : tuple of Published
        Published counts, which models of a release keep exactly.
    impossible : tuple of mapping
        Combinations of values that no record has, for models of a release.
    document : dict
        The same as plain values for JSON, with arrays as lists; `load_specification` reads it.
    files : frozenset of path
        The files that it names besides; what they hold is public, and part of it.
    """

    path: Path | None
    data: Path | str | None
    table: str | None
    quoted_newlines: bool
    domain: Domain
    workload: Workload
    budget: Budget | None
    ledger: Path | None
    unit: Unit
    targets: Mapping[str, float]
    least: LeastBudget | None
    out_of_domain: OutOfDomain
    max_records: int
    totals: tuple[Published, ...]
    impossible: tuple[ImpossibleBox, ...]
    document: Mapping[str, object]
    files: frozenset[Path]

    def check_table(self, table: str | os.PathLike[str]) -> None:
        """Check that a table is none of the files whose contents are public.

        Raises
        ------
        SpecificationError
            If it is one: a release would publish its records.
        """
        named = os.fspath(table)
        for found in filter(os.path.isfile, (named, *glob.glob(named, recursive=True))):  # noqa: PTH207
            for file in self.files:
                if os.path.samefile(found, file):  # noqa: PTH121
                    told = f"{file.name!r}, which the specification names as a file of public values, too"
                    raise SpecificationError.at(("data",), told, "a table whose records are not published")


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
    path, document = None, Document(source, {})
    base = Path.cwd() if base_path is None else Path(base_path).resolve()
    if not isinstance(source, Mapping):
        if isinstance(source, str) and "\n" in source:
            document = parse_yaml(source)
        else:
            path = _path(source)
            document, base = read_document(path), path.parent
    with refused(document.lines):
        _check_filled(document)
        return _specification(document.value, path, base, require_privacy)


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
    with refused({}), within(place):
        return read_entry(written, files_under(Path(base_path).resolve()))


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema of specification files, which editors use to complete and check them.

    Examples
    --------
    >>> sorted(json_schema()["required"])
    ['domain', 'workload']
    """
    return schema_of(WrittenSpecification)


def schema_of(written: type[Record]) -> dict[str, Any]:
    """Return the JSON Schema of files that hold a record."""
    definitions: dict[str, Any] = {}
    written.schema(definitions)
    top = definitions.pop(written.__name__)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **top, "$defs": definitions}


def _check_filled(document: Document) -> None:
    """Check that nothing is still to be filled in."""
    if document.unfilled:
        first, *others = document.unfilled
        more = ", ".join(f"{format_place(path)} (line {document.lines[path]})" for path in others)
        found = f"{UNFILLED} (and at {more})" if others else UNFILLED
        expected = "what the table may hold, from public knowledge; in quotes where it is a text of the table"
        raise SpecificationError.at(first, found, expected)


def _path(source: str | os.PathLike[str]) -> Path:
    try:
        return Path(source).expanduser().resolve()
    except (OSError, ValueError, RuntimeError):
        raise SpecificationError.at((), "a name that is not a path", "a specification file (YAML)") from None


def read_document(path: Path) -> Document:
    """Return what a YAML file says."""
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


def files_under(base: Path, named: set[Path] | None = None) -> Given:
    """Return how paths of files are read, and added to those that were named: relative to a folder."""

    def under(written: object) -> object:
        if not isinstance(written, str):
            return written
        if named is not None:
            named.add(base / written)
        return base / written

    return under


def _under(base: Path, written: str) -> Path:
    """Return a path that is relative to a folder; the home of nobody is a folder of that name."""
    try:
        return base / Path(written).expanduser()
    except RuntimeError:
        return base / written


def _table_under(base: Path, written: str) -> Path | str:
    """Return where the table is: a path that is relative to a folder, or an address, as it was written."""
    if not has_scheme(written):
        return _under(base, written)
    if names_secret(written):
        expected = (
            "an address without a password, as others read specifications; PGPASSWORD or ~/.pgpass has it"
        )
        raise SpecificationError.at(("data",), f"a password for {shown(written)}", expected)
    start, _, path = written.partition(":///")
    return f"{start}:///{_under(base, path)}" if has_scheme(written, "sqlite") and path else written


@contextmanager
def refused(lines: Mapping[Place, int]) -> Iterator[None]:
    """Turn errors inside parts into errors of the specification, with the line where it is known."""
    try:
        yield
    except MatrixDPError as error:
        problem = error.problem
        if problem is None:
            raise
        path = problem.path
        while path not in lines and path:
            path = path[:-1]
        position = f"line {lines[path]}" if path in lines else None
        kind = TooLargeError if isinstance(error, TooLargeError) else SpecificationError
        raise kind(replace(problem, path=problem.path or ("the specification",), position=position)) from None


def _specification(value: object, path: Path | None, base: Path, require_privacy: bool) -> Specification:
    files: set[Path] = set()
    written = WrittenSpecification.read(value, files_under(base, files))
    with within("out_of_domain"):
        rule = OutOfDomain.from_spec(written.domain, written.out_of_domain)
    workload = Workload(written.domain, *written.workload)
    privacy, targets = written.privacy, dict(written.targets or {})
    if privacy is None and require_privacy:
        raise SpecificationError.at(("privacy",), "nothing", _BUDGETS)
    if targets:
        group_targets(workload, targets)
    debited = None if privacy is None else privacy.ledger
    unit = Unit() if written.unit is None else written.unit.unit()
    budget = None if privacy is None else privacy.budget(unit)
    spec = written.to_spec()
    document: dict[str, object] = {
        name: spec[name]
        for name in ("data", "table", "quoted_newlines", "domain", "workload")
        if name in spec
    }
    if privacy is not None:
        exact = {} if budget is None else budget.as_dict()
        kept = {} if debited is None else {"ledger": debited}
        named = {key: exact[key] for key in exact if key != "unit"}
        document["privacy"] = named | kept if named else privacy.to_spec()
    if written.unit is not None:
        document["unit"] = written.unit.to_spec()
    if targets:
        document["targets"] = targets
    document["out_of_domain"] = rule.to_spec(written.domain)
    document["max_records"] = written.max_records
    check_public(written.domain, written.totals or (), written.impossible or ())
    document |= {name: spec[name] for name in ("totals", "impossible") if spec.get(name) is not None}
    specification = Specification(
        path=path,
        data=None if written.data is None else _table_under(base, written.data),
        table=written.table,
        quoted_newlines=written.quoted_newlines,
        domain=written.domain,
        workload=workload,
        budget=budget,
        ledger=None if debited is None else _under(base, debited),
        unit=unit,
        targets=targets,
        least=privacy.least_budget(unit) if privacy is not None and targets else None,
        out_of_domain=rule,
        max_records=written.max_records,
        totals=written.totals or (),
        impossible=written.impossible or (),
        document=document,
        files=frozenset(files),
    )
    if specification.data is not None:
        specification.check_table(specification.data)
    return specification
