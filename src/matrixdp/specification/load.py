"""A specification file, read and checked as a whole, without the data."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar, final

import numpy as np
import yaml
from numpy.typing import NDArray
from yaml.nodes import Node, ScalarNode, SequenceNode

from matrixdp import errors, forms
from matrixdp.domain import Domain, OutOfDomain
from matrixdp.domain.book import with_code_book
from matrixdp.errors import MatrixDPError, Problem, SpecificationError, TooLargeError, WorkloadError, within
from matrixdp.errors import Path as Place
from matrixdp.forms import Form, ListOf, Record, ResolvePath, Schema, key, record
from matrixdp.language import dense, read_entry
from matrixdp.language.entries import (
    ENTRY,
    PREDICATES_BY_ATTRIBUTE,
    AttributeSets,
    entry_beside,
    find_attribute,
)
from matrixdp.language.entries import Entry as LanguageEntry
from matrixdp.language.invariants import ImpossibleBox, Published, check_public
from matrixdp.language.predicates import ARRAY_FILE, PredicateForm, calendar_dates, load_array
from matrixdp.privacy import Budget, LeastBudget, Unit
from matrixdp.privacy.persons import check_persons
from matrixdp.privacy.unit import only_per
from matrixdp.queries.workload import Entry, Target, Workload, budget_shares, check_names, group_targets
from matrixdp.specification.discovery import WrittenDiscovery, with_found
from matrixdp.specification.keys import SeriesRule, WrittenSpecification
from matrixdp.statements import SqlEntry, SqlFileEntry
from matrixdp.texts import Publication

# YAML as specifications use it: the core schema of YAML 1.2, and each key once.
#
# ``yes``, ``no``, ``on`` and ``off`` are words, ``1e-6`` is a number, ``010`` is ten, and dates are text.
# There are no merge keys and no tags beyond the core ones. Every value remembers its line.

R = TypeVar("R", bound=Record)

UNFILLED = "TODO"
"""What stands, without quotes, where a value is still to be filled in."""

MAX_NODES = 2_000_000
"""A document may stand for at most this many values, counted after aliases are replaced."""

_SCALARS: Mapping[str, tuple[str, list[str], Callable[[str], object]]] = {
    "null": (r"~|null|Null|NULL|", ["~", "n", "N", ""], lambda text: None),  # noqa: ARG005
    "bool": (r"true|True|TRUE|false|False|FALSE", list("tTfF"), lambda text: text.lower() == "true"),
    "int": (
        r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+",
        list("-+0123456789"),
        lambda text: int(text, {"0x": 16, "0o": 8}.get(text[:2], 10)),
    ),
    "float": (
        r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)",
        list("-+.0123456789"),
        lambda text: float(text.lower().replace(".inf", "inf").replace(".nan", "nan")),
    ),
}
"""The scalars without quotes that are no text: what they match, their first letters, and their values."""

_TAG = "tag:yaml.org,2002:"


@final
@dataclass(frozen=True)
class Document:
    """A parsed YAML document.

    Parameters
    ----------
    value : object
        Dictionaries, lists, strings, integers, floats, booleans and None.
    lines : mapping of path to int
        The line, from 1, on which the value of each path starts.
    unfilled : tuple of path
        Where ``TODO`` stands without quotes.
    """

    value: object
    lines: Mapping[Place, int]
    unfilled: tuple[Place, ...] = ()


class _Loader(yaml.SafeLoader):
    """Resolves plain scalars by the core schema of YAML 1.2, section 10.3.2; `_Builder` makes the values."""

    yaml_implicit_resolvers = {}  # noqa: RUF012 - declared by the base class


for _name, (_pattern, _first, _) in _SCALARS.items():
    _Loader.add_implicit_resolver(_TAG + _name, re.compile(rf"(?:{_pattern})\Z"), _first)


def parse_yaml(text: str) -> Document:
    r"""Parse a YAML text by the core schema of YAML 1.2.

    Parameters
    ----------
    text : str
        One YAML document.

    Returns
    -------
    Document
        The value, and the lines on which its parts start.

    Raises
    ------
    SpecificationError
        If the text is not YAML, holds several documents, or a mapping has a key twice or a key that is not
        a scalar; the place names line and column.

    References
    ----------
    YAML 1.2.2, section 10.3: the core schema.

    Examples
    --------
    >>> parse_yaml("smokes: [yes, no]\ndelta: 1e-6").value
    {'smokes': ['yes', 'no'], 'delta': 1e-06}
    """
    builder = _Builder()
    try:
        node = yaml.compose(text, _Loader)
        value = None if node is None else builder.build(node, ())
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise _no_yaml(_at(mark), " ".join(filter(None, (error.context, error.problem)))) from None
    except yaml.YAMLError as error:
        raise _no_yaml("the file", str(error).splitlines()[0]) from None
    except RecursionError:
        found, expected = "values nested too deeply", "a flatter document"
        raise SpecificationError.at(("the file",), found, expected, code="too-large") from None
    return Document(value, builder.lines or {(): 1}, tuple(builder.unfilled))


def _no_yaml(place: str, why: str) -> SpecificationError:
    found = f"text that is not YAML ({why})"
    return SpecificationError.at((place,), found, "one YAML document", code="bad-yaml")


def _at(mark: yaml.Mark | None) -> str:
    return "the file" if mark is None else f"line {mark.line + 1}, column {mark.column + 1}"


class _Builder:
    """Makes values of nodes."""

    def __init__(self) -> None:
        self.lines: dict[Place, int] = {}
        self.unfilled: list[Place] = []
        self._open: set[int] = set()

    def build(self, node: Node, path: Place) -> object:
        self.lines[path] = node.start_mark.line + 1
        if len(self.lines) > MAX_NODES:
            found, expected = f"more than {MAX_NODES} values", "fewer; large arrays go in .npy files"
            raise SpecificationError.at(("the file",), found, expected, code="too-large")
        if id(node) in self._open:
            expected = "a value that does not hold itself"
            raise self._error(node, path, "an alias of what it stands in", expected)
        if isinstance(node, ScalarNode):
            if node.value == UNFILLED and node.style is None:
                self.unfilled.append(path)
            return self._scalar(node, path)
        if node.tag not in (_TAG + ("seq" if isinstance(node, SequenceNode) else "map"), "!"):
            raise self._error(node, path, f"the tag {node.tag}", "a value without a tag")
        self._open.add(id(node))
        try:
            if isinstance(node, SequenceNode):
                return [self.build(item, (*path, position)) for position, item in enumerate(node.value)]
            return self._mapping(node.value, path)
        finally:
            self._open.discard(id(node))

    def _mapping(self, items: Sequence[tuple[Node, Node]], path: Place) -> dict[str, object]:
        result: dict[str, object] = {}
        for key_node, value_node in items:
            if not isinstance(key_node, ScalarNode):
                raise self._error(key_node, path, "a key that is a list or a mapping", "a key that is text")
            # A key is text; one that would be a number, a boolean or null elsewhere is so as it is written.
            if not isinstance(self._scalar(key_node, path), str) and not key_node.value:
                raise self._error(key_node, path, "a key that is empty", "text as a key")
            key: str = key_node.value
            if key in result:
                found = f"the key {key!r} a second time"
                raise self._error(key_node, (*path, key), found, "each key once", "duplicate")
            result[key] = self.build(value_node, (*path, key))
        return result

    def _scalar(self, node: ScalarNode, path: Place) -> object:
        text: str = node.value
        tag = node.tag.removeprefix(_TAG)
        if tag == "str":
            return text
        pattern, _, convert = _SCALARS.get(tag, ("(?!)", [], str))
        if not re.fullmatch(pattern, text):
            raise self._error(node, path, f"the tag {node.tag} on {text!r}", "a value without a tag")
        if tag == "int" and len(text) > 400:
            raise self._error(node, path, f"an integer of {len(text)} digits", "one of at most 400")
        return convert(text)

    @staticmethod
    def _error(
        node: Node, path: Place, found: str, expected: str, code: str = "bad-yaml"
    ) -> SpecificationError:
        return SpecificationError(Problem(path, found, expected, position=_at(node.start_mark), code=code))


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
        one. The code that reads it checks whether it is there.
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
    targets : mapping
        The largest standard errors of query groups, and the precision of figures; empty where there are
        none. Then what is spent is the least budget that meets them.
    least : LeastBudget or None
        Which parameter is made least, with targets.
    out_of_domain : OutOfDomain
        What happens to values that are out of domain.
    max_records : int
        A public bound on the number of records.
    invariants : tuple of Published
        Published counts, which models of a release keep exactly.
    structural_zeros : tuple of mapping
        Combinations of values that no record has, for models of a release.
    publication : Publication
        Texts for readers of a release.
    series : SeriesRule or None
        The attribute whose values are the periods of a series; None for a release.
    rounds : {1, 2}
        In how many rounds the table is measured.
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
    targets: Mapping[str, Target]
    least: LeastBudget | None
    out_of_domain: OutOfDomain
    max_records: int
    invariants: tuple[Published, ...]
    structural_zeros: tuple[ImpossibleBox, ...]
    publication: Publication
    series: SeriesRule | None
    rounds: int
    document: Mapping[str, object]
    files: frozenset[Path]

    @property
    def reference_budget(self) -> Budget | None:
        """The budget, or where targets decide it one of the same form: it decides the noise."""
        return self.budget if self.least is None else self.least.reference()

    def check_table(self, table: str | os.PathLike[str]) -> None:
        """Check that a table is none of the files whose contents are public.

        Raises
        ------
        SpecificationError
            If it is one: a release would publish its records.
        """
        with within("data"):
            for file in self.files:
                _check_apart(file, table)


def _check_apart(file: Path, table: str | os.PathLike[str]) -> None:
    """Check that a file whose contents are public is no table of records."""
    if forms.share_files(file, table):
        told = f"{file.name!r} as the table and as a file of public values"
        expected = "two: what is in the file is published"
        raise SpecificationError.at((), told, expected, code="privacy")


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


def load_discovery(
    source: str | os.PathLike[str] | Mapping[str, Any],
) -> tuple[WrittenDiscovery, Path | str | None, Path | None]:
    """Return the specification of a discovery, the table that it names, and its ledger.

    Raises
    ------
    SpecificationError
        If anything is wrong: one error that names the place, what was found and what would be right.

    Examples
    --------
    >>> written, _, _ = load_discovery({"domain": {"word": {"discover": "values"}},
    ...                                 "privacy": {"epsilon": 1, "delta": 1e-6}})
    >>> written.shares
    {'word': Fraction(1, 1)}
    """
    document, base = Document(source, {}), Path.cwd()
    if not isinstance(source, Mapping):
        path = _path(source)
        document, base = read_document(path), path.parent
    with refused(document.lines):
        _check_filled(document)
        written = WrittenDiscovery.read(document.value)
        table = None if written.data is None else _table_under(base, written.data)
    ledger = written.privacy.ledger
    return written, table, None if ledger is None else _under(base, ledger)


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
    >>> json_schema()["required"]
    ['workload']
    """
    return schema_of(WrittenSpecification)


def discovery_schema() -> dict[str, Any]:
    """Return the JSON Schema of specifications of discoveries.

    Examples
    --------
    >>> discovery_schema()["required"]
    ['domain', 'privacy']
    """
    return schema_of(WrittenDiscovery)


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
        more = ", ".join(f"{errors.format_place(path)} (line {document.lines[path]})" for path in others)
        found = f"{UNFILLED} (and at {more})" if others else UNFILLED
        expected = "what the table may hold, from public knowledge; in quotes where it is a text of the table"
        raise SpecificationError.at(first, found, expected, code="missing-key")


def _path(source: str | os.PathLike[str]) -> Path:
    try:
        return Path(source).expanduser().resolve()
    except (OSError, ValueError, RuntimeError):
        expected = "a specification file (YAML)"
        raise SpecificationError.at((), "a name that is not a path", expected, code="file-missing") from None


def read_document(path: Path) -> Document:
    """Read a YAML file."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        found, code = "text that is not UTF-8", "bad-yaml"
    except FileNotFoundError:
        found, code = "no such file", "file-missing"
    except (OSError, ValueError) as error:
        found, code = f"a file that cannot be read ({errors.file_problem(error)})", "file-missing"
    else:
        return parse_yaml(text)
    raise SpecificationError.at((str(path),), found, "a YAML file in UTF-8", code=code)


def files_under(base: Path, named: set[Path] | None = None, table: Path | str | None = None) -> ResolvePath:
    """Return how paths of files are read, and added to those that were named: relative to a folder.

    What is wrong with a file is quoted, so none is opened that is the table.
    """

    def under(written: object) -> object:
        if not isinstance(written, str):
            return written
        if table is not None:
            _check_apart(base / written, table)
        if named is not None:
            named.add(base / written)
        return base / written

    return under


def _under(base: Path, written: str) -> Path:
    """Return a path that is relative to a folder; the home of nobody is a folder of that name."""
    return base / os.path.expanduser(written)  # noqa: PTH111 - no error where there is no such home


def _table_under(base: Path, written: str) -> Path | str:
    """Return where the table is: a path that is relative to a folder, or an address, as it was written."""
    if not forms.has_scheme(written):
        return _under(base, written)
    if forms.names_secret(written):
        found = f"a password for {forms.shown(written)}"
        expected = "an address without a password, as others read the file; PGPASSWORD or ~/.pgpass has it"
        raise SpecificationError.at(("data",), found, expected, code="privacy")
    start, _, path = written.partition(":///")
    return f"{start}:///{_under(base, path)}" if forms.has_scheme(written, "sqlite") and path else written


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


def _of_persons(entries: Sequence[Entry], unit: Unit) -> list[Entry]:
    """Return entries in which SQL that counts ids of persons counts records."""
    found = []
    for position, entry in enumerate(entries):
        with within("workload", position):
            if isinstance(entry, SqlEntry | SqlFileEntry) and unit.id is not None:
                entry = entry.of_persons(unit.id, single=unit.records == 1)
            found.append(entry)
    return found


def _check_series(
    written: WrittenSpecification, name: str, domain: Domain, rule: OutOfDomain, unit: Unit
) -> None:
    """Check that each record of a series is in one period, for ever, and that the rest is supported."""
    with within("series", "attribute"):
        dates = calendar_dates(find_attribute(domain, name))
        if dates.size < 2:
            expected = "dates of at least 2 periods"
            raise SpecificationError.at((), f"{name!r}, which has 1 period", expected, code="wrong-size")
    clipped = "false: a record after the series would count in its last period"
    for said, place, found, expected in (
        (dates.clip, ("domain", name, "clip"), "true", clipped),
        (
            dates.null_code is not None,
            ("domain", name, "null"),
            "a value of missing dates",
            "none in a series",
        ),
        (rule.codes or rule.counts, ("out_of_domain",), "another rule", "drop, the only rule beside series"),
        (written.targets, ("targets",), "targets beside series", "a budget alone"),
        (
            written.privacy is not None and written.privacy.neighbours != "add_remove",
            ("privacy", "neighbours"),
            "replace",
            "add_remove in a series",
        ),
        (written.invariants, ("invariants",), "invariants beside series", "none"),
        (
            unit.per not in ((), (name,)),
            ("unit", "per"),
            ", ".join(unit.per),
            only_per(name),
        ),
        (written.rounds > 1, ("rounds",), "2 beside series", "1, as a series measures each period once"),
    ):
        if said:
            raise SpecificationError.at(place, found, expected, code="not-supported")


def files_beside(value: object, base: Path, named: set[Path] | None = None) -> ResolvePath:
    """Return how files are read that a specification names, the table of which is none of them."""
    data = value.get("data") if isinstance(value, Mapping) else None
    return files_under(base, named, _table_under(base, data) if isinstance(data, str) else None)


def _specification(value: object, path: Path | None, base: Path, require_privacy: bool) -> Specification:
    files: set[Path] = set()
    resolve = files_beside(value, base, files)
    if isinstance(value, Mapping) and "domain_from" in value:
        named = WrittenSpecification.keys()["domain_from"].form
        with within("domain_from"):
            found: list[Any] = list(map(resolve, named.read(value["domain_from"], forms.as_written)))
        value = with_found(value, found, lambda file: read_document(file).value)
    written = WrittenSpecification.read(value, resolve)
    domain, privacy, targets = written.domain, written.privacy, dict(written.targets or {})
    if isinstance(written.codebook, str | Path):
        with within("codebook"):
            domain = with_code_book(domain, written.codebook)
    with within("out_of_domain"):
        rule = OutOfDomain.from_spec(domain, written.out_of_domain)
    unit = Unit() if written.unit is None else written.unit.unit(domain, rule)
    workload = Workload(domain, *_of_persons(written.workload, unit))
    check_names(workload)
    check_persons(workload, unit)
    budget_shares(workload, {"targets": targets, "two rounds": written.rounds > 1})
    if targets:
        group_targets(workload, targets)
    invariants, structural_zeros = written.invariants or (), written.structural_zeros or ()
    check_public(domain, invariants, structural_zeros)
    if unit.per and written.rounds > 1:
        expected = "1 beside a unit with per, which is measured at once"
        raise SpecificationError.at(("rounds",), "2", expected, code="not-supported")
    if targets and written.rounds > 1:
        expected = "1 beside targets, whose errors must be known before anything is measured"
        raise SpecificationError.at(("rounds",), "2", expected, code="conflict")
    if written.series is not None:
        _check_series(written, written.series.attribute, domain, rule, unit)
    document = written.to_spec() | {"domain": domain.to_spec(), "out_of_domain": rule.to_spec(domain)}
    document.pop("codebook", None)
    budget = ledger = least = None
    if privacy is not None:
        budget, ledger = privacy.budget(unit), privacy.ledger
        if written.rounds > 1 and budget is not None and budget.kind == "pure":
            expected = "1 beside epsilon alone: two rounds need Gaussian noise, and so a delta, rho or mu"
            raise SpecificationError.at(("rounds",), "2", expected, code="conflict")
        least = privacy.least_budget(unit) if targets else None
        if budget is not None:
            exact = {name: said for name, said in budget.as_dict().items() if name != "unit"}
            document["privacy"] = exact if ledger is None else exact | {"ledger": ledger}
    elif require_privacy:
        raise SpecificationError.at(("privacy",), "nothing", _BUDGETS, code="missing-key")
    return Specification(
        path=path,
        data=None if written.data is None else _table_under(base, written.data),
        table=written.table,
        quoted_newlines=written.quoted_newlines,
        domain=domain,
        workload=workload,
        budget=budget,
        ledger=None if ledger is None else _under(base, ledger),
        unit=unit,
        targets=targets,
        least=least,
        out_of_domain=rule,
        max_records=written.max_records,
        invariants=invariants,
        structural_zeros=structural_zeros,
        publication=written.publication,
        series=written.series,
        rounds=written.rounds,
        document=document,
        files=frozenset(files),
    )


@contextmanager
def _reading(path: str | os.PathLike[str], kind: type[R]) -> Iterator[R]:
    """Read the record that a YAML file holds; errors while it is in use tell their lines in the file."""
    file = Path(path)
    document = read_document(file)
    with refused(document.lines):
        yield kind.read(document.value, files_under(file.resolve().parent))


# Strategies that are given: what is measured, as entries of the query language with shares, or a matrix.

_SHARE = forms.number("a number above 0, relative to the shares of the other parts", above=0.0)
_TEXTS = (".yaml", ".yml", ".json")


@final
@dataclass(frozen=True, eq=False)
class GivenEntry:
    """A part of a strategy: the queries that are measured, and their share of the privacy cost.

    Attributes
    ----------
    entry : LanguageEntry
        An entry of the query language; its groups share its share evenly.
    share : float
        Relative to the other parts.
    """

    entry: LanguageEntry
    share: float = 1.0


@final
class _GivenEntries(Form[GivenEntry]):
    """An entry with the key ``share`` beside its own."""

    def read(self, written: object, resolve: ResolvePath) -> GivenEntry:
        if isinstance(written, GivenEntry):
            return written
        if isinstance(written, Mapping) and "share" in written:
            return GivenEntry(*entry_beside("share", lambda own: _SHARE.read(own, resolve), written, resolve))
        return GivenEntry(ENTRY.read(written, resolve))

    def schema(self, definitions: Schema) -> Schema:
        found = []
        for reference in ENTRY.schema(definitions)["anyOf"]:
            name = str(reference["$ref"]).rpartition("/")[2]
            own = definitions[name]
            with_share = {**own["properties"], "share": _SHARE.schema(definitions)}
            definitions[f"{name}Part"] = {**own, "properties": with_share}
            found.append({"$ref": f"#/$defs/{name}Part"})
        return {"anyOf": found}


@final
@record
class WrittenStrategy(Record):
    """The file of a strategy that is given."""

    error = SpecificationError

    strategy: tuple[GivenEntry, ...] = key(
        ListOf(_GivenEntries(), "a list of entries, each with a share of the privacy cost", least=1),
        missing="the list of what is measured, each with a share: [{product: {age: prefix}, share: 1}]",
    )


def strategy_schema() -> dict[str, Any]:
    """Return the JSON Schema of files that give a strategy.

    Examples
    --------
    >>> strategy_schema()["required"]
    ['strategy']
    """
    return schema_of(WrittenStrategy)


def given_entries(parts: Sequence[object], shares: Sequence[object] | None = None) -> tuple[GivenEntry, ...]:
    """Return parts of a strategy as they are given in Python: entries or mappings, and their shares.

    Raises
    ------
    MatrixDPError
        If a part is no entry, or a share no number above 0.

    Examples
    --------
    >>> from matrixdp.language import marginals
    >>> [part.share for part in given_entries([marginals(1), {"product": {"age": "prefix"}, "share": 3}])]
    [1.0, 3.0]
    """
    if not isinstance(parts, list | tuple) or not parts:
        expected = "a list of at least one entry"
        raise WorkloadError.at(("parts",), f"a {type(parts).__name__}", expected, code="wrong-type")
    with within("parts"):
        found = ListOf(_GivenEntries(), "a list of entries").read(parts, forms.as_written)
    if shares is None:
        return found
    if len(shares) != len(found):
        expected = f"{len(found)}, one for each part"
        raise WorkloadError.at(("shares",), f"{len(shares)} shares", expected, code="wrong-size")
    with within("shares"):
        own = ListOf(_SHARE, "a list of numbers").read(list(shares), forms.as_written)
    return tuple(GivenEntry(part.entry, share) for part, share in zip(found, own, strict=True))


def load_given(path: str | os.PathLike[str], workload: Workload) -> tuple[GivenEntry, ...]:
    """Return the parts of the strategy that a file gives.

    Parameters
    ----------
    path : path
        YAML or JSON with the key ``strategy``; or a matrix (NumPy, SciPy sparse or CSV) over the cells of all
        attributes that the workload asks about, in domain order, row-major.
    workload : Workload
        What will be asked.

    Raises
    ------
    MatrixDPError
        If it cannot be read, or is wrong: one error that names the place, what was found and what would be
        right.
    """
    file = Path(path)
    if file.suffix.lower() in _TEXTS:
        with _reading(file, WrittenStrategy) as written:
            with within("strategy"):
                errors.each(lambda part: part.entry.expand(workload.domain), written.strategy)
            return written.strategy
    matrix = load_array(file)
    names = workload.domain.sort({name for group in workload for name in group.attributes})
    cells = workload.domain.cells(names)
    if matrix.ndim != 2 or matrix.shape[1] != cells:
        found = f"an array of shape {matrix.shape}"
        expected = (
            f"a matrix of {cells} columns, one for each cell of {', '.join(names)}, which the workload asks "
            "about; for other attributes write a YAML file: `strategy: [{dense: FILE, attributes: [...]}]`"
        )
        raise SpecificationError.at((str(file),), found, expected, code="wrong-size")
    try:
        return (GivenEntry(dense(matrix, list(names))),)
    except MatrixDPError as error:
        found = str(error) if error.problem is None else error.problem.found
        raise SpecificationError.at((str(file),), found, f"real numbers; {ARRAY_FILE}") from None


# Bases of ResidualPlanner+: for each attribute a predicate set, whose predicates are what is measured.


@final
@record
class _WrittenBases(Record):
    """The file of bases."""

    error = WorkloadError

    bases: Mapping[str, PredicateForm] = key(
        PREDICATES_BY_ATTRIBUTE,
        missing="a predicate set for each attribute: {bases: {age: prefix, sex: {matrix: sex.npy}}}",
    )


def read_bases(given: object) -> Mapping[str, PredicateForm]:
    """Return the bases that a YAML or JSON file or a mapping gives.

    Parameters
    ----------
    given : path, str or mapping
        A file with the key ``bases``; or the mapping itself: predicate sets as in a product, or matrices, by
        attribute.

    Raises
    ------
    MatrixDPError
        If it cannot be read, or is wrong.

    Examples
    --------
    >>> {name: form.text for name, form in read_bases({"age": "prefix", "sex": np.eye(2)}).items()}
    {'age': 'prefix', 'sex': 'matrix'}
    """
    if isinstance(given, str | os.PathLike):
        with _reading(given, _WrittenBases) as written:
            return written.bases
    if isinstance(given, Mapping):
        sets = {name: {"matrix": own} if isinstance(own, np.ndarray) else own for name, own in given.items()}
        return _WrittenBases.read({"bases": sets}).bases
    expected = "a file with the key bases, or a predicate set by attribute"
    raise WorkloadError.at(("bases",), f"a {type(given).__name__}", expected, code="wrong-type")


def bases_on(domain: Domain, bases: Mapping[str, PredicateForm]) -> dict[str, NDArray[np.float64]]:
    """Return the bases as matrices over the codes of their attributes.

    Examples
    --------
    >>> bases_on(Domain({"age": 3}), read_bases({"age": "prefix"}))["age"]
    array([[1., 0., 0.],
           [1., 1., 0.],
           [1., 1., 1.]])
    """
    sets = AttributeSets.on(domain, bases, "bases")
    return {
        attribute.name: predicates.apply(np.eye(attribute.size))
        for attribute, predicates in zip(sets.attributes, sets.predicates, strict=True)
    }
