"""The text of a first specification."""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import cast

from matrixdp.domain import Domain
from matrixdp.draft.proposals import Proposal, Unfilled, propose, propose_listed
from matrixdp.draft.public import code_book, profiles
from matrixdp.errors import MatrixDPError
from matrixdp.forms import names_secret, shown
from matrixdp.sources import open_source
from matrixdp.sources.paths import PathSource
from matrixdp.specification.yaml_text import UNFILLED, parse_yaml

__all__ = ["draft_specification"]

_LARGEST_PAIR = 10_000
_MOST_PAIR_CELLS = 200_000
_MOST_PREFIXES = 415
"""Attributes with more values would take minutes to select for."""

_PLAIN = re.compile(r"[A-Za-z_/][\w ./-]*[\w.]|[A-Za-z_]", re.ASCII)
_MODELINE = "# yaml-language-server: $schema=matrixdp.schema.json"
"""What editors find the schema by."""


def draft_specification(
    data: str | os.PathLike[str],
    *,
    table: str | None = None,
    public_table: str | os.PathLike[str] | None = None,
    quoted_newlines: bool = False,
) -> str:
    """Return the text of a first specification for a table.

    No record of the table is read: what the text says of it follows from the names of its columns and their
    storage types. Values are left as ``TODO``, or taken from a public table.

    Parameters
    ----------
    data : path or str
        The table.
    table : str, optional
        Its name in a database.
    public_table : path, optional
        A table whose records are public, with some of the same columns: last year's, a sample that was
        published; or a code book, with a column that names attributes (`variable`), one of values (`value`)
        and perhaps one of labels (`label`). What it says of values is public in the text.
    quoted_newlines : bool
        Whether quotes in CSV files may hold line ends.

    Returns
    -------
    str
        YAML with comments. What a public table cannot tell is left as ``TODO``: columns that it lacks, and
        columns with one value, and those of few dates as texts that are not ISO 8601: others have others.

    Raises
    ------
    SourceError
        If a table cannot be read, or no attribute can be made of its columns.

    Examples
    --------
    >>> print(draft_specification("examples/randhie.parquet").split("domain:")[1].splitlines()[1])
      visits: {min: TODO, max: TODO}
    """
    source = open_source(data, table_name=table, quoted_newlines=quoted_newlines)
    kinds = source.columns()
    known: dict[str, Proposal] = {}
    if public_table is not None:
        public = PathSource(public_table)
        book = code_book(public, list(kinds))
        if book is not None:
            known = {name: propose_listed(values) for name, values in book.items()}
        else:
            known = {
                name: propose(name, kinds[name], of) for name, of in profiles(public, list(kinds)).items()
            }
    proposals = {name: known.get(name) or propose(name, kind) for name, kind in kinds.items()}
    named = os.fspath(data)
    # others read specifications, which are refused where they hold a password
    named = shown(named) if names_secret(named) else named
    unfilled = any(UNFILLED in _flow(proposal.spec) for proposal in proposals.values())
    lines = [*_heading(named, public_table, unfilled), "", f"data: {_scalar(named)}"]
    lines += [f"table: {_scalar(table)}"] if table is not None else []
    lines += ["quoted_newlines: true"] if quoted_newlines else []
    lines += ["", "domain:", *_domain(proposals, known, public_table), ""]
    lines += _ending(proposals)
    return "\n".join(lines) + "\n"


def _heading(data: str, public_table: str | os.PathLike[str] | None, unfilled: bool) -> list[str]:
    lines = [
        _MODELINE,
        "# (Editors check by that file once you make it here: matrixdp schema > matrixdp.schema.json)",
        f"# Drafted from the names and the storage types of the columns of {Path(data).name};",
        "# no record of it was read. Check that they are names, and not a first record: all can read them.",
    ]
    if public_table is not None:
        lines += [
            f"# Values are those of {Path(public_table).name}, which is taken to be public; here they are.",
            "# Records of the table with other values are out of domain: widen what may have changed.",
        ]
    if not unfilled:
        return lines
    return [
        *lines,
        f"# {UNFILLED}: fill in from public knowledge, never by a look at the table; `matrixdp validate`",
        "# names each that is left.",
    ]


def _domain(
    proposals: Mapping[str, Proposal],
    known: Mapping[str, Proposal],
    public_table: str | os.PathLike[str] | None,
) -> list[str]:
    lines = []
    for name, proposal in proposals.items():
        if proposal.spec is None:
            lines.append(f"  # {_scalar(name)} is left out: {proposal.note}")
            continue
        marked = [proposal.note] if proposal.note else []
        if name in known:
            marked.insert(0, f"public, from {Path(str(public_table)).name}")
        comment = f"   # {'; '.join(marked)}" if marked else ""
        lines.append(f"  {_scalar(name)}: {_flow(proposal.spec)}{comment}")
    if all(proposal.spec is None for proposal in proposals.values()):
        lines.append(f"  {UNFILLED}: {UNFILLED}   # no column could be made an attribute")
    return lines


def _ending(proposals: Mapping[str, Proposal]) -> list[str]:
    sizes = {name: size for name, p in proposals.items() if (size := _size(name, p.spec)) is not None}
    complete = len(sizes) == sum(proposal.spec is not None for proposal in proposals.values())
    lines = ["workload:", "  - marginals: [0, 1]   # the total, and every attribute on its own"]
    paired = _paired(sizes) if complete else []
    if len(paired) > 1:
        lines += ["  - marginals: 2   # every pair of these"]
        lines += [] if len(paired) == len(sizes) else [f"    attributes: {_flow(paired)}"]
    for name, size in sizes.items():
        if (
            isinstance(proposals[name].spec, dict)
            and 2 < size <= _MOST_PREFIXES
            and _ordered(name, proposals)
        ):
            lines += [f"  - product: {{{_scalar(name)}: prefix}}", f"    name: {_scalar(f'{name} CDF')}"]
    numbers = [name for name in sizes if isinstance(proposals[name].spec, dict) and _ordered(name, proposals)]
    if numbers:
        lines += [
            "  # Statistics are entries, too; their errors are made least:",
            f"  # - quantile: {{{_scalar(numbers[0])}: [0.25, 0.5, 0.75]}}   # cdf, mean, share, ...",
        ]
    lines += [
        "",
        "# A common choice; decide with whoever answers for the data. {rho: 0.5} is another definition.",
    ]
    lines += ["privacy: {epsilon: 1.0, delta: 1.0e-6}"]
    persons = [name for name, proposal in proposals.items() if proposal.identifies]
    if persons:
        lines += [
            "# If a person may have several records: the column of the person, and how many count at most.",
            f"# unit: {{id: {_scalar(persons[0])}, max_records: 3}}",
        ]
    return [*lines, "out_of_domain: drop"]


def _paired(sizes: Mapping[str, int]) -> list[str]:
    """Return the attributes of which every pair is asked: as many as stay small, in their order."""
    chosen: list[str] = []
    cells = 0
    for name in sorted(sizes, key=lambda name: sizes[name]):
        more = [sizes[name] * sizes[other] for other in chosen]
        if max(more, default=0) > _LARGEST_PAIR or cells + sum(more) > _MOST_PAIR_CELLS:
            break
        chosen, cells = [*chosen, name], cells + sum(more)
    return [name for name in sizes if name in chosen]


def _size(name: str, spec: object) -> int | None:
    """Return the number of values of a proposed attribute; None where it is not all there."""
    if spec is None or UNFILLED in _flow(spec):
        return None
    try:
        return Domain({name: parse_yaml(_flow(spec)).value}).cells()
    except MatrixDPError:
        return None


def _ordered(name: str, proposals: Mapping[str, Proposal]) -> bool:
    return not {"categories", "labels"} & set(cast("dict[str, object]", proposals[name].spec))


def _flow(value: object) -> str:
    """Return a value as YAML on one line."""
    if isinstance(value, Unfilled):
        return UNFILLED
    if isinstance(value, Mapping):
        # Keys are text however they are written.
        keys = (key if key == "null" else _scalar(key) for key in value)
        pairs = zip(keys, value.values(), strict=True)
        return "{" + ", ".join(f"{key}: {_flow(held)}" for key, held in pairs) + "}"
    if isinstance(value, Sequence) and not isinstance(value, str):
        return "[" + ", ".join(map(_flow, value)) + "]"
    return _scalar(value)


def _scalar(value: object) -> str:
    """Return one value as YAML: a text in quotes where it could be read as something else.

    Examples
    --------
    >>> print(_scalar("New York"), _scalar("no"), _scalar("TODO"), _scalar("007"), _scalar(7), _scalar(True))
    New York no "TODO" "007" 7 true
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and math.isinf(value):
        return ".inf" if value > 0 else "-.inf"
    if isinstance(value, int | float):
        return str(value)
    text = str(value)
    read_back = _PLAIN.fullmatch(text) and parse_yaml(text).value == text and text != UNFILLED
    return text if read_back else json.dumps(text, ensure_ascii=False)
