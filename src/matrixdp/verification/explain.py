"""How a release came about and what it promises, in words and numbers for a reviewer."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import chain, islice
from pathlib import Path
from typing import Any, final

from matrixdp.display import about, above, counted, listed, printable
from matrixdp.domain import Amount, Attribute, Domain, OutOfDomain
from matrixdp.exact import MeasuredMatrix, MergedMatrix, TreeWalkMatrix
from matrixdp.measure.measurement import Measurement
from matrixdp.plans import Rounds
from matrixdp.releases.record import RELEASE_FILES, PartKind, brief, parts_in, parts_summary
from matrixdp.releases.release import Release, load_release
from matrixdp.selection.registry import MECHANISMS
from matrixdp.storage.archive import entry, read_strictly

_ESCAPED = str.maketrans({mark: f"\\{mark}" for mark in "\\|`*_<>[]#~"})


@final
@dataclass(frozen=True)
class Table:
    """Heads, and rows of texts."""

    heads: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]


@final
@dataclass(frozen=True)
class Items:
    """A list of sentences."""

    texts: tuple[str, ...]


Block = str | Table | Items
"""A paragraph, a table or a list; names in it stand as they are, without what would control a terminal."""


def markdown(title: str, sections: Mapping[str, list[Block]]) -> str:
    """Return sections as Markdown, whatever the names in them are."""
    lines = [f"# {title}"]
    for head, blocks in sections.items():
        lines += ["", f"## {head}"] if head else []
        for block in blocks:
            lines.append("")
            if isinstance(block, Table):
                rows = [block.heads, ("---",) * len(block.heads), *block.rows]
                lines += ["| " + " | ".join(map(_escaped, row)) + " |" for row in rows]
            elif isinstance(block, Items):
                lines += [f"- {_escaped(text)}" for text in block.texts]
            else:
                lines.append(_escaped(block))
    return "\n".join(lines) + "\n"


def _escaped(text: str) -> str:
    return text.translate(_ESCAPED)


def _line(text: object, longest: int = 80) -> str:
    """Return a text as one line, cut where it is long."""
    line = printable(" ".join(str(text).split()))
    return line if len(line) <= longest else f"{line[: longest - 3]}..."


# What was measured and with which noise: equal parts together, so that it stays short.

#: Rows of a table at most: those that cost most.
_MOST = 25
#: Marginals of one row that are named.
_NAMED = 3
_SUMS = {
    1: "the largest sum of absolute entries over a column (L1)",
    2: "the largest sum of squared entries over a column (squared L2)",
}


def _parts(measurement: Measurement) -> Iterator[Block]:
    """Yield the paragraphs about the matrices and parts of a measurement."""
    norm = measurement.plan.noise.norm
    matrices, kinds = parts_summary(measurement)
    costs = [kind.cost for kind in kinds]
    total = sum(costs, Fraction(0))
    ordered = [kinds[i] for i in sorted(range(len(kinds)), key=lambda i: costs[i], reverse=True)]
    plan = measurement.plan
    again = frozenset(map(id, plan.again if isinstance(plan, Rounds) else ()))
    computed = "The sensitivity of a Kronecker product is the product of those of its matrices."
    if any(kind.first.multipliers is not None for kind in kinds):
        computed += (
            " Where each row has an integer factor, the sums are formed exactly for every column of the "
            "product, one matrix after the other."
        )
    yield f"The sensitivity s of a part is {_SUMS[norm]}: an exact integer. {computed}"
    rows = [
        (f"M{place}", f"{own.rows} x {own.columns}", str(own.column_power_sum(norm)), _how(own))
        for place, own in enumerate(matrices[:_MOST], 1)
    ]
    if len(plan.columns) > 1:
        yield (
            "What a record costs depends on its value of the attribute with trees: for each value the costs "
            "of all parts add up, and the largest such sum is the cost. It is at most the sum of what each "
            "part costs by itself, which is what the last columns below are about."
        )
    if rows:
        yield Table(("matrix", "rows x cells", "s", "how it is known"), rows)
    else:
        yield "Totals alone are measured: the matrix is 1, its sensitivity 1."
    if len(matrices) > _MOST:
        yield f"{len(matrices) - _MOST:,} more matrices are in the file of the measurement."
    heads = ("parts", "on", "measured", "rows of each", "s", "b, exact", "variance of a row", "cost of each")
    yield Table((*heads, "of the cost"), list(_rows(ordered[:_MOST], total, again)))
    if rest := ordered[_MOST:]:
        share = sum((kind.cost for kind in rest), Fraction(0)) / total
        count = sum(len(kind.parts) for kind in rest)
        yield f"{count:,} more parts of {len(rest):,} more kinds have {float(share):.3%} of the cost."


def _how(matrix: MeasuredMatrix) -> str:
    if matrix.kind == "identity":
        return "the identity: one 1 in each column"
    if matrix.kind == "centered":
        return "n I - 11': each column has n - 1 once and -1 the other n - 1 times"
    if matrix.kind == "row-trees":
        return f"queries summed over areas with weights, summed over each of the {matrix.columns:,} columns"
    if matrix.kind == "tree":
        return f"weighted sums over areas, summed over those of each of the {matrix.columns:,} values"
    if matrix.walk is not None:
        cost = matrix.sensitivity
        told = f"by their theorem a record costs {cost:,}, a replacement {2 * cost:,}"
        inner = matrix.matrix if isinstance(matrix, MergedMatrix) else matrix
        if isinstance(inner, TreeWalkMatrix):
            return f"counts of nodes of trees with the noise of walks up to their roots: {told}"
        return f"prefix sums with the noise of {'walks' if matrix.parents else 'a walk'}: {told}"
    return f"integers, summed over each of the {matrix.columns:,} columns"


def _rows(kinds: list[PartKind], total: Fraction, again: frozenset[int]) -> Iterator[tuple[str, ...]]:
    for kind in kinds:
        names = [
            _line((", ".join(part.attributes) or "the total") + " (round 2)" * (id(part) in again))
            for part in kind.parts[:_NAMED]
        ]
        more = len(kind.parts) - _NAMED
        product = " (x) ".join(f"M{place + 1}" for place in kind.matrices) or "1"
        yield (
            f"{len(kind.parts):,}",
            "; ".join(names) + (f"; {more:,} more" if more > 0 else ""),
            f"{product}, rows weighted" if kind.first.multipliers is not None else product,
            f"{kind.first.rows:,}",
            str(kind.first.column_power_sum(kind.scale.noise.norm)),
            about(kind.scale.exact),
            f"{kind.variance:.6g}",
            *_costs(kind, total),
        )


def _costs(kind: PartKind, total: Fraction) -> tuple[str, str]:
    """Return what each of some parts costs, and all of them of the total: one radius costs once."""
    share = f"{float(kind.cost / total):.3%}".replace(".000%", "%")
    if kind.first.width is None:
        return f"{float(kind.cost / len(kind.parts)):.6g}", share
    return (f"{float(kind.cost):.6g}, all of the radius", share) if kind.charged else ("in the radius", "-")


_ATTRIBUTES, _ENTRIES = 60, 30
#: Why a guarantee holds, by its definition and the norm of the noise: theorems of docs/privacy.md.
_WHY = {
    ("Gaussian DP", 2): "mu = sqrt(m^2 cost): theorem 1 (2)",
    ("zero-concentrated DP", 2): "rho = m^2 cost / 2: theorem 1 (3)",
    ("approximate DP", 2): "the exact curve of mu-GDP: theorem 1 (4); Balle and Wang 2018, theorem 8",
    ("pure DP", 1): "epsilon = m cost: theorem 3",
    ("Gaussian DP", 1): "(1 + e^epsilon) Phi(-mu / 2) <= 1: theorem 3, what follows",
    ("zero-concentrated DP", 1): "rho = epsilon^2 / 2: Bun and Steinke 2016, proposition 1.4",
    ("approximate DP", 1): "epsilon-DP is (epsilon, delta)-DP for every delta >= 0",
}
_NEIGHBOURS = {
    "add_remove": "one is the other with the records of one person added or removed",
    "replace": "one is the other with the records of one person replaced by those of another",
}
_INTRODUCTION = (
    "All of this is computed from the files of the release, without the data, and costs no privacy. Whether "
    "the files are true is what matrixdp verify checks. What only the program that wrote them knew is marked "
    "as stated."
)


def explain_release(out: str | os.PathLike[str]) -> str:
    """Return how a release came about, in Markdown.

    From the domain to the files: who is protected, what was asked, what was measured with which exact
    sensitivity and noise, what that costs, what it means in each definition and by which theorem, what is
    assumed, and what is out of scope. Equal parts of the measurement are told together.

    Parameters
    ----------
    out : str or path
        The folder of the release.

    Returns
    -------
    str

    Raises
    ------
    StorageError
        If the folder does not hold a release, or its files were damaged or altered.

    Examples
    --------
    >>> import tempfile
    >>> import matrixdp as mdp
    >>> workload = mdp.Workload(mdp.Domain({"sex": ["female", "male"]}), mdp.marginals(1))
    >>> release = mdp.select(workload).measure({"sex": ["male"]}, mdp.Budget(rho=0.5)).reconstruct()
    >>> with tempfile.TemporaryDirectory() as parent:
    ...     text = explain_release(mdp.save_release(release, f"{parent}/out"))
    >>> [line for line in text.splitlines() if line.startswith("## ")][:3]
    ['## The promise', '## The domain', '## Who is protected']
    """
    folder = Path(out)
    release = load_release(folder)
    seeded = "NOT PRIVATE: the noise was seeded. Nothing below protects anybody."
    promise: list[Block] = [*([] if release.private else [seeded]), printable(release.statement.text)]
    sections: dict[str, list[Block]] = {"": [_INTRODUCTION], "The promise": promise}
    sections |= explanation(folder, release)
    return markdown("How a release came about, and what it promises", sections)


def explanation(folder: Path, release: Release) -> dict[str, list[Block]]:
    """Return how a release came about, by the titles of its sections."""
    record = read_strictly((folder / "release.json").read_bytes(), "release.json")
    said = release.statement.as_dict()
    sections: dict[str, Iterable[Block]] = {
        "The domain": _domain(release.domain, release.measurement.out_of_domain),
        "Who is protected": _protected(release),
        "What was asked": _asked(release, record),
        "How the strategy was chosen": _strategy(release),
        "What was measured, and with which noise": chain(
            _measured(release), _parts(release.measurement), _counts(release)
        ),
        "What it costs": _cost(release),
        "What that means in each definition": _guarantees(release),
        "Other releases of the same data": _ledger(release),
        "What is assumed": [_clauses(said["assumed"])],
        "What is covered": [_clauses(said["covered"])],
        "What is out of scope": [_clauses(said["not_covered"])],
        "Software and files": _files(folder, record),
    }
    return {title: list(blocks) for title, blocks in sections.items()}


def _clauses(clauses: Iterable[Mapping[str, Any]]) -> Items:
    return Items(tuple(_line(clause["text"], 10_000) for clause in clauses))


def _origin(attribute: Attribute) -> str:
    """Return the source of an attribute, if it is not the column of the same name."""
    derivation = attribute.codebook.derivation
    if derivation is not None:
        parents = ", ".join((*derivation.of, *(column.column for column in derivation.columns)))
        return f", derived from {_line(parents)}"
    return f", of the column {_line(attribute.column)}" if attribute.column != attribute.name else ""


def _domain(domain: Domain, rule: OutOfDomain) -> Iterator[Block]:
    cells = counted(domain.cells(), "cell")
    found = [own.name for own in domain if own.codebook.discovered is not None]
    how = "public and chosen without the data"
    if found:
        how = (
            f"public; the values of {listed(found, len(found))} were discovered, all else chosen without data"
        )
    yield f"{counted(len(domain), 'attribute')}, {_line(how, 1000)}; {cells} in all."
    rows = []
    for name in domain.names[:_ATTRIBUTES]:
        attribute, code = domain[name], rule.code(name)
        values = attribute.label(0)
        if attribute.size > 1:
            values += f" .. {attribute.label(attribute.size - 1)}"
        kind = ("ordered numbers" if attribute.numeric else "categories") + _origin(attribute)
        if isinstance(attribute, Amount):
            kind = f"an amount{_origin(attribute)}"
        if attribute.reading:
            kind += f": {_line(attribute.reading, 300)}"
        becomes = "the record is dropped" if code is None else f"counted as {_line(attribute.label(code))}"
        rows.append((_line(name), kind, f"{attribute.size:,}", _line(values), becomes))
    yield Table(("attribute", "kind", "values", "from .. to", "a value out of domain"), rows)
    if len(domain) > _ATTRIBUTES:
        yield f"{len(domain) - _ATTRIBUTES} more attributes are in release.json."
    told = "was measured, with noise of its own, as the section on what was measured says"
    shown = f"the number of dropped records {told}" if rule.counts else "how many there were is nowhere shown"
    yield f"Values out of domain are handled record by record, by this rule alone; {shown}."


def _protected(release: Release) -> Iterator[Block]:
    budget = release.measurement.authorization.budget
    unit = budget.unit
    yield f"Two tables are neighbours if {_NEIGHBOURS[budget.neighbours]} ({budget.neighbours})."
    most = "1 record" if unit.records == 1 else f"{unit.records:,} records"
    looks = "no record of another person" if unit.per else "no attribute"
    spread = _line(unit.spread, 300)
    bounded = f"At most {most} of each person are counted{spread}: by a rule that looks at {looks}."
    assumed = f"A person has at most {most}{spread}: that is assumed."
    yield assumed if unit.id is None else f"The column {_line(unit.id)} names the person. {bounded}"
    yield f"So m = {budget.moved:,} records differ between neighbours, each of which moves one count by 1."


def _asked(release: Release, record: Mapping[str, Any]) -> Iterator[Block]:
    workload = release.workload
    yield f"{workload.queries:,} counting queries in {len(workload):,} groups:"
    rows = []
    for asked, places in islice(zip(workload.entries, workload.places, strict=True), _ENTRIES):
        groups = workload.groups[places.start : places.stop]
        words = json.dumps(brief(asked.to_spec()), ensure_ascii=False)
        rows.append((_line(words, 120), f"{len(groups):,}", f"{sum(group.queries for group in groups):,}"))
    yield Table(("entry", "groups", "queries"), rows)
    if len(workload.entries) > _ENTRIES:
        yield f"{len(workload.entries) - _ENTRIES} more entries are in release.json."
    rmse, largest = (
        f"{value:.6g}" if isinstance(value := record.get(name), int | float) else "not stated"
        for name in ("rmse", "max_stddev")
    )
    yield (
        f"The root mean square of the standard errors is {rmse} records, the largest {largest}. Intervals of "
        f"confidence {release.confidence:g} are {_line(release.intervals.description, 1000)}."
    )


def _strategy(release: Release) -> Iterator[Block]:
    origin = release.origin
    how = "it was chosen without the data"
    if isinstance(release.measurement.plan, Rounds):
        how = "the first round was chosen without the data, and the second from the noisy answers to it"
    yield (
        "No privacy rests on this section: the cost below is computed from what was measured, however it "
        f"was chosen, as long as {how}."
    )
    names = ("mechanism", "reason", "objective")
    rows = [(name, _line(origin[name], 300)) for name in names if name in origin]
    if origin.get("mechanism") in MECHANISMS:
        rows.insert(1, ("which is", MECHANISMS[str(origin["mechanism"])].source))
    certificate = origin.get("certificate")
    if isinstance(certificate, Mapping):
        rows += [
            (f"certificate: {_line(name)}", _line("none" if value is None else value, 300))
            for name, value in certificate.items()
        ]
    rows.append(("how answers follow", _line(release.measurement.plan.words)))
    yield Table(("as stated", "value"), rows)


_INTEGERS = (
    " Where all answers of a part are multiples of an integer g and b is at most 2 g, the noise is on the "
    "multiples of g alone, with less variance: k g has a probability in proportion to exp(-|k| g / b), so "
    "that logarithms of probabilities move by as much."
)


_WALK = (
    " The rows of a walk are prefix sums P_k of the values in their order, and share their noise: row k has "
    "P_k + u_(k-1) + p_k, u_k = u_(k-1) + soft(p_k, c_k), with innovations p_k whose density falls as "
    "exp(-max(0, |p_k| - c_k) / b). A record moves the logarithm of their probability by at most 1 / b: "
    "docs/privacy.md has the proof. Variances are the mean over its rows. Where rows are nodes of trees, "
    "P_k is the count of a node, and u_(k-1) the sum of u over the nodes right below it."
)


_RADIUS = (
    " Parts under one radius share their noise: each has numbers z, up to a common summand, and a width "
    "w. With |z| = min over t of sum |z_i - t| its density is in proportion to exp(-max(0, max of |z| - "
    "w) / b). A record moves each |z| by at most 1, and so the logarithm by at most 1 / b: s is 1 for "
    "each of them, and together they cost what one of them does. docs/privacy.md has the proof."
)


_RANGE = (
    " Here z are values beside one that nothing is in, and |z| = max z - min z: all records of a person move "
    "it by no more than her records in one value, so that they cost that many times one record."
)


def _measured(release: Release) -> Iterator[Block]:
    noise = release.measurement.plan.noise
    whole = _INTEGERS if math.isfinite(release.measurement.tails.least) else ""
    variance = "b^2" if noise.variance_factor == 1 else f"{noise.variance_factor:g} b^2"
    told = f"with independent {noise} noise of scale b on every row: its variance is {variance}, and a little"
    told += f" for rounding to a lattice.{whole}"
    walks = len(release.measurement.tails.walks)
    if walks == len(release.measurement.plan.parts):
        told = f"with the joint noise of a walk of scale b.{_WALK}"
    elif walks:
        told += f" Parts of which a matrix is a walk have its joint noise instead.{_WALK}"
    under = len(release.measurement.plan.under_radius)
    if under == len(release.measurement.plan.parts):
        told = f"with noise that all parts share, one radius of scale b.{_RADIUS}"
    elif under:
        told += f" Parts under one radius have noise that they share instead.{_RADIUS}"
    if release.measurement.plan.radius_share < 1:
        told += _RANGE
    yield (
        f"Each part is an integer matrix times the counts of one marginal, {told} "
        f"A part costs {'s / b' if noise.norm == 1 else 's / b^2'}, for a record that is "
        "added or removed; replacing one by another costs as much as the two differ."
    )


def _counts(release: Release) -> Iterator[Block]:
    """Say how many records were out of domain, and why that costs nothing more."""
    counts = release.measurement.out_of_domain_counts
    if counts is None:
        return
    number, cost = len(counts.attributes), counts.cost.value
    both = (
        "Each record affects either the parts or these counts, never both, so the total cost is the larger "
        "of the two (parallel composition), which is that of the parts."
    )
    if release.statement.neighbours == "replace":
        both = (
            "A replacement may take a record from the parts to these counts: it costs the sum of the two, "
            "which the cost below covers."
        )
    yield (
        f"Beside them {number:,} counts of records out of domain, each with {counts.scale.noise} noise of "
        f"scale b = {about(counts.scale.exact)}; a record that is in all of them costs {about(cost)}. {both}"
    )
    rows = []
    for name, found in release.out_of_domain_counts.items():
        of = "records that were dropped" if name is None else f"records whose {_line(name)} was out of domain"
        rows.append((of, str(found), f"{found.stddev:.4g}"))
    yield Table(("count", f"estimate, {release.confidence:g}", "standard error"), rows)


def _cost(release: Release) -> Iterator[Block]:
    authorization = release.measurement.authorization
    cost, budget = authorization.cost, authorization.budget
    norm, allowed = cost.noise.norm, cost.noise.allowed(budget)
    between = cost.value * budget.moved**norm
    power = "m" if norm == 1 else "m^2"
    first = "cost, the sum over all parts, each rounded up in the 160th binary digit"
    if len(release.measurement.plan.columns) > 1:
        first = "cost, the largest sum over all parts for the records with one value, rounded up"
    if isinstance(release.measurement.plan, Rounds):
        first = "cost that both rounds together may have"
    elif release.measurement.plan.histories is not None:
        first = "cost, what all records of a person cost over the square of their number, rounded up"
    elif release.measurement.plan.radius_share < 1:
        first = "cost, what all records of a person cost over their number, rounded up"
    elif budget.neighbours == "replace":
        first = f"cost, {'half' if norm == 1 else 'a quarter'} of what replacing one record costs at most"
    rows = [
        (first, about(cost.value)),
        (f"{power} cost, between neighbours", about(between)),
        ("budget", _line(repr(budget), 300)),
        (f"largest {power} cost that the budget allows", about(allowed)),
        ("spent of it, at most", f"{above(100 * between / allowed)}%"),
        ("compared, exactly, before any data were read", _line(authorization.time)),
    ]
    yield Table(("quantity", "value"), rows)


def _guarantees(release: Release) -> Iterator[Block]:
    norm = release.measurement.plan.noise.norm
    rows: dict[tuple[str, ...], None] = {}
    for row in release.statement.guarantees:
        exact = {name: Fraction(text) for name, text in row["exact"].items()}
        figures = ", ".join(f"{name} = {above(value)}" for name, value in exact.items())
        bounds = ", ".join(f"{name} = {value}" for name, value in exact.items())
        rows[row["definition"], figures, _line(bounds, 300), _WHY[row["definition"], norm]] = None
    yield Table(("definition", "rounded up", "exact bound", "why"), list(rows))
    moved = "m records move answers at most m times as far (theorem 4)"
    if release.measurement.plan.histories is not None:
        moved = "m^2 cost is the charge of the records of a person, by what they have in common"
    elif release.measurement.plan.radius_share < 1:
        moved = "m cost is what the records of a person cost together, under one radius by their range"
    yield (
        f"The theorems are those of docs/privacy.md; {moved}. Every bound was proved, by ball arithmetic "
        "where it is not rational."
    )
    if release.statement.discovered:
        yield f"This is of the release alone. {_line(release.statement.with_discoveries, 1000)}"


def _ledger(release: Release) -> Iterator[Block]:
    authorization = release.measurement.authorization
    debit = authorization.ledger
    yield _line(authorization.note, 1000)
    if debit is not None:
        before, after = (
            ", ".join(f"{k} {v}" for k, v in sums.items()) for sums in (debit.before, debit.after)
        )
        rows = [
            ("dataset", _line(debit.dataset)),
            ("entry", debit.entry),
            ("total", _line(repr(debit.total), 300)),
            ("spent before", _line(before, 300)),
            ("spent after", _line(after, 300)),
            ("digest of the entry", debit.digest),
        ]
        yield Table(("ledger", "value"), rows)


def _files(folder: Path, record: Mapping[str, Any]) -> Iterator[Block]:
    said = record.get("privacy")
    versions = said.get("versions") if isinstance(said, Mapping) else None
    if isinstance(versions, Mapping):
        yield f"As stated: {', '.join(f'{_line(name)} {_line(value)}' for name, value in versions.items())}."
    names = (*RELEASE_FILES, *parts_in(folder))
    found = {name: entry(folder / name) for name in names if (folder / name).is_file()}
    rows = [(name, f"{own['bytes']:,}", str(own["sha256"])) for name, own in found.items()]
    yield Table(("file, as it is now", "bytes", "SHA-256"), rows)
    yield (
        "To check: matrixdp verify computes everything again; verifier/verify_cost.py, one file of Python's "
        "standard library, checks the cost without this package."
    )
