"""The whole chain of one release, in words and numbers for a reviewer."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any, final

from matrixdp.domain import Attribute, Domain, OutOfDomain
from matrixdp.exact import CenteredMatrix, IdentityMatrix, MeasuredMatrix
from matrixdp.ledger import LedgerEntry
from matrixdp.measure.measurement import Measurement, NoiseScale
from matrixdp.measure.statement import PrivacyStatement
from matrixdp.plan import Part
from matrixdp.releases.record import RELEASE_FILES, brief
from matrixdp.releases.release import Release, load_release
from matrixdp.selection.mechanisms.table import MECHANISMS
from matrixdp.storage.archive import read_strictly

# Markdown that reads well as it stands, whatever the names in it are.

_ESCAPED = str.maketrans({mark: f"\\{mark}" for mark in "\\|`*_<>[]#~"})
_LONGEST = 80


def printable(text: str) -> str:
    """Return a text without what would control a terminal.

    Examples
    --------
    >>> printable("a" + chr(27) + "[1mb")
    'a\N{REPLACEMENT CHARACTER}[1mb'
    """
    return "".join(mark if mark.isprintable() else "\N{REPLACEMENT CHARACTER}" for mark in text)


def cell(text: object, longest: int = _LONGEST) -> str:
    r"""Return a text that stands in a cell of a table, or in a sentence, as it is.

    Examples
    --------
    >>> print(cell("a|b\n*c*"))
    a\|b \*c\*
    """
    line = printable(" ".join(str(text).split()))
    return (line if len(line) <= longest else f"{line[: longest - 3]}...").translate(_ESCAPED)


def table(heads: Sequence[str], rows: Iterable[Sequence[object]]) -> list[str]:
    """Return the lines of a table, whose cells are Markdown."""
    lines = [heads, ["---"] * len(heads), *rows]
    return ["| " + " | ".join(map(str, line)) + " |" for line in lines]


def items(sentences: Iterable[str]) -> list[str]:
    """Return the lines of a list of sentences."""
    return [f"- {cell(sentence, 10_000)}" for sentence in sentences]


def about(value: Fraction) -> str:
    """Return an exact number with the decimal that is near it.

    Examples
    --------
    >>> about(Fraction(3)), about(Fraction(1, 3))
    ('3', '1/3 (about 0.333333)')
    """
    return str(value) if value.denominator == 1 and value < 10**9 else f"{value} (about {float(value):.6g})"


def above(value: Fraction) -> str:
    """Return a number with nine digits, rounded up.

    Examples
    --------
    >>> above(Fraction(1, 3)), above(Fraction(1, 2)), above(Fraction(1, 10**9)), above(Fraction(100))
    ('0.333333334', '0.5', '1E-9', '100')
    """
    context = Context(prec=9, rounding=ROUND_CEILING)
    written = context.divide(Decimal(value.numerator), Decimal(value.denominator)).normalize()
    return f"{written:f}" if 0 < written.adjusted() < 9 else str(written)


# What was measured and with which noise, in words: equal parts together, so that it stays short.

#: Rows of a table at most: those that cost most.
_MOST = 25
#: Marginals of one row that are named.
_NAMED = 3
_SUMS = {
    1: "the largest sum of absolute entries over a column (L1)",
    2: "the largest sum of squared entries over a column (squared L2)",
}


@final
@dataclass
class _Kind:
    """Parts that differ in their attributes alone."""

    part: Part
    scale: NoiseScale
    matrices: tuple[int, ...]
    marginals: list[tuple[str, ...]] = field(default_factory=list)

    def cost(self, norm: int) -> Fraction:
        """Return what one of them costs."""
        return self.part.column_power_sum(norm) / self.scale.exact**norm


def measured_parts(measurement: Measurement) -> list[str]:
    """Return lines about the matrices and the parts of a measurement.

    Examples
    --------
    >>> import matrixdp as mdp
    >>> workload = mdp.Workload(mdp.Domain({"sex": ["f", "m"]}), mdp.marginals([0, 1]))
    >>> strategy = mdp.select(workload, mechanism="identity")
    >>> release = strategy.measure({"sex": ["f"]}, mdp.Budget(rho=0.5)).reconstruct()
    >>> for line in measured_parts(release.measurement)[-3:]:
    ...     print(line)
    | parts | on | measured | rows of each | s | b, exact | variance of a row | cost of each | of the cost |
    | --- | --- | --- | --- | --- | --- | --- | --- | --- |
    | 1 | sex | M1 | 2 | 1 | 1 | 1 | 1 | 100 % |
    """
    norm = measurement.plan.noise.norm
    matrices: dict[object, tuple[int, MeasuredMatrix]] = {}
    kinds: dict[object, _Kind] = {}
    for part, scale in zip(measurement.plan.parts, measurement.scales, strict=True):
        places = []
        for block in part.blocks:
            key = (type(block.matrix), block.matrix.digest())
            places.append(matrices.setdefault(key, (len(matrices) + 1, block.matrix))[0])
        factors = None if part.multipliers is None else part.multipliers.tobytes()
        own = (*places, factors, scale.steps, scale.power)
        kinds.setdefault(own, _Kind(part, scale, tuple(places))).marginals.append(part.attributes)
    total = sum((kind.cost(norm) * len(kind.marginals) for kind in kinds.values()), Fraction(0))
    ordered = sorted(kinds.values(), key=lambda kind: kind.cost(norm) * len(kind.marginals), reverse=True)
    lines = [f"The sensitivity s of a part is {_SUMS[norm]}: an exact integer. {_computed(ordered)}", ""]
    lines += _matrices(list(matrices.values()), norm)
    heads = ("parts", "on", "measured", "rows of each", "s", "b, exact", "variance of a row", "cost of each")
    lines += ["", *table((*heads, "of the cost"), _rows(ordered[:_MOST], norm, total))]
    if len(ordered) > _MOST:
        rest = ordered[_MOST:]
        share = sum((kind.cost(norm) * len(kind.marginals) for kind in rest), Fraction(0)) / total
        count = sum(len(kind.marginals) for kind in rest)
        lines += [
            "",
            f"{count:,} more parts of {len(rest):,} more kinds have {float(share):.3%} of the cost.",
        ]
    return lines


def _computed(kinds: list[_Kind]) -> str:
    text = "That of a Kronecker product is the product of those of its matrices."
    if any(kind.part.multipliers is not None for kind in kinds):
        text += (
            " Where each row has an integer factor, the sums are formed exactly for every column of the "
            "product, one matrix after the other."
        )
    return text


def _matrices(matrices: list[tuple[int, MeasuredMatrix]], norm: int) -> list[str]:
    if not matrices:
        return ["Totals alone are measured: the matrix is 1, its sensitivity 1."]
    rows = [
        (f"M{place}", f"{matrix.rows} x {matrix.columns}", matrix.column_power_sum(norm), _how(matrix))
        for place, matrix in matrices[:_MOST]
    ]
    lines = table(("matrix", "rows x cells", "s", "how it is known"), rows)
    if len(matrices) > _MOST:
        lines += ["", f"{len(matrices) - _MOST:,} more matrices are in the file of the measurement."]
    return lines


def _how(matrix: MeasuredMatrix) -> str:
    if isinstance(matrix, IdentityMatrix):
        return "the identity: one 1 in each column"
    if isinstance(matrix, CenteredMatrix):
        return "n I - 11': each column has n - 1 once and -1 the other n - 1 times"
    return f"integers, summed over each of the {matrix.columns:,} columns"


def _rows(kinds: list[_Kind], norm: int, total: Fraction) -> Iterator[tuple[object, ...]]:
    for kind in kinds:
        names = [", ".join(marginal) or "the total" for marginal in kind.marginals[:_NAMED]]
        more = len(kind.marginals) - _NAMED
        on = "; ".join(cell(name) for name in names) + (f"; {more:,} more" if more > 0 else "")
        product = " (x) ".join(f"M{place}" for place in kind.matrices) or "1"
        cost = kind.cost(norm)
        yield (
            f"{len(kind.marginals):,}",
            on,
            f"{product}, rows weighted" if kind.part.multipliers is not None else product,
            f"{kind.part.rows:,}",
            kind.part.column_power_sum(norm),
            about(kind.scale.exact),
            f"{kind.scale.variance:.6g}",
            f"{float(cost):.6g}",
            f"{float(cost * len(kind.marginals) / total):.3%}".replace(".000%", "%").replace("%", " %"),
        )


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
    "the files are true is what `matrixdp verify` checks. What only the program that wrote them knew is "
    "marked *as said*."
)


def explain_release(out: str | os.PathLike[str]) -> str:
    """Return the whole chain of one release, in Markdown.

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
    record = read_strictly((folder / "release.json").read_bytes(), "release.json")
    sections = {
        "The promise": _promise(release),
        "The domain": _domain(release.domain, release.measurement.out_of_domain),
        "Who is protected": _protected(release),
        "What was asked": _asked(release, record),
        "How the strategy was chosen": _strategy(release),
        "What was measured, and with which noise": _measured(release),
        "What it costs": _cost(release),
        "What that means in each definition": _guarantees(release),
        "Other releases of the same data": _ledger(release),
        "What is assumed": items(_clauses(release.statement, "assumed")),
        "What is covered": items(_clauses(release.statement, "covered")),
        "What is out of scope": items(_clauses(release.statement, "not_covered")),
        "Software and files": _files(folder, record),
    }
    lines = ["# How a release came about, and what it promises", "", _INTRODUCTION]
    for title, own in sections.items():
        lines += ["", f"## {title}", "", *own]
    return "\n".join(lines) + "\n"


def _promise(release: Release) -> Iterator[str]:
    if not release.private:
        yield "**NOT PRIVATE: the noise was seeded. Nothing below protects anybody.**"
        yield ""
    yield cell(release.statement.text, 10_000)


def _origin(attribute: Attribute) -> str:
    """Return what an attribute is read from, where that is not the column of its name."""
    derivation = attribute.codebook.derivation
    if derivation is not None:
        parents = ", ".join((*derivation.of, *(column.column for column in derivation.columns)))
        return f", derived from {cell(parents)}"
    return f", of the column {cell(attribute.column)}" if attribute.column != attribute.name else ""


def _domain(domain: Domain, rule: OutOfDomain) -> Iterator[str]:
    cells = domain.cells()
    shown = f"{cells:,}" if cells < 10**12 else f"about {cells:.3g}"
    yield f"{len(domain)} attributes, public and chosen without the data; {shown} cells in all."
    yield ""
    rows = []
    for name in domain.names[:_ATTRIBUTES]:
        attribute, code = domain[name], rule.code(name)
        kind = ("ordered numbers" if attribute.numeric else "categories") + _origin(attribute)
        values = (
            attribute.label(0)
            if attribute.size == 1
            else (f"{attribute.label(0)} .. {attribute.label(attribute.size - 1)}")
        )
        other = "the record is dropped" if code is None else f"counted as {cell(attribute.label(code))}"
        rows.append((cell(name), kind, f"{attribute.size:,}", cell(values), other))
    yield from table(("attribute", "kind", "values", "from .. to", "a value out of domain"), rows)
    if len(domain) > _ATTRIBUTES:
        yield ""
        yield f"{len(domain) - _ATTRIBUTES} more attributes are in release.json."
    yield ""
    if rule.counts:
        yield (
            "Values out of domain are handled record by record, by this rule alone. How many records were "
            "dropped was measured, with noise of its own, as the section on what was measured says."
        )
    else:
        yield (
            "Values out of domain are handled record by record, by this rule alone, and how many there were "
            "is nowhere shown."
        )


def _protected(release: Release) -> Iterator[str]:
    budget = release.measurement.authorization.budget
    unit = budget.unit
    yield f"Two tables are neighbours if {_NEIGHBOURS[budget.neighbours]} (`{budget.neighbours}`)."
    most = "1 record" if unit.records == 1 else f"{unit.records:,} records"
    if unit.id is None:
        yield f"A person has at most {most}: that is assumed."
    else:
        yield (
            f"Of the records of a person, whom the column {cell(unit.id)} names, at most {most} are "
            "counted, by a rule that looks at no attribute."
        )
    yield f"So m = {budget.moved:,} records differ between neighbours, each of which moves one count by 1."


def _asked(release: Release, record: Mapping[str, Any]) -> Iterator[str]:
    workload = release.workload
    yield f"{workload.queries:,} counting queries in {len(list(workload)):,} groups:"
    yield ""
    rows = []
    for entry, places in list(zip(workload.entries, workload.places, strict=True))[:_ENTRIES]:
        groups = workload.groups[places.start : places.stop]
        words = json.dumps(brief(entry.to_spec()), ensure_ascii=False)
        rows.append((cell(words, 120), f"{len(groups):,}", f"{sum(group.queries for group in groups):,}"))
    yield from table(("entry", "groups", "queries"), rows)
    if len(workload.entries) > _ENTRIES:
        yield ""
        yield f"{len(workload.entries) - _ENTRIES} more entries are in release.json."
    yield ""
    yield (
        f"The root mean square of the standard errors is {_figure(record.get('rmse'))} records, the largest "
        f"{_figure(record.get('max_stddev'))}. Intervals of confidence {release.confidence:g} are "
        f"{cell(release.intervals.description, 1000)}."
    )


def _figure(value: object) -> str:
    return f"{value:.6g}" if isinstance(value, int | float) else "not said"


def _strategy(release: Release) -> Iterator[str]:
    origin = release.origin
    yield (
        "No privacy rests on this section: the cost below is computed from what was measured, however it "
        "was chosen, as long as it was chosen without the data."
    )
    yield ""
    rows = [
        (name, cell(origin[name], 300)) for name in ("mechanism", "reason", "objective") if name in origin
    ]
    if origin.get("mechanism") in MECHANISMS:
        rows.insert(1, ("which is", MECHANISMS[str(origin["mechanism"])].source))
    certificate = origin.get("certificate")
    if isinstance(certificate, Mapping):
        rows += [(f"certificate: {cell(name)}", cell(value, 300)) for name, value in certificate.items()]
    rows.append(("how answers follow", cell(release.measurement.plan.words)))
    yield from table(("*as said*", ""), rows)


def _measured(release: Release) -> Iterator[str]:
    noise = release.measurement.plan.noise
    variance = "b^2" if noise.variance_factor == 1 else f"{noise.variance_factor:g} b^2"
    yield (
        f"Each part is an integer matrix times the counts of one marginal, with independent {noise} noise "
        f"of scale b on every row: its variance is {variance}, and a little for rounding "
        f"to a lattice. A part costs {'s / b' if noise.norm == 1 else 's / b^2'}, for a record that is added "
        "or removed; replacing one by another costs as much as the two differ."
    )
    yield ""
    yield from measured_parts(release.measurement)
    yield from _counts(release)


def _counts(release: Release) -> Iterator[str]:
    """Say how many records were out of domain, and why that costs nothing more."""
    counts = release.measurement.out_of_domain_counts
    if counts is None:
        return
    number, cost = len(counts.attributes), counts.cost.value
    both = "so the cost of both is the larger of the two, which is that of the parts."
    if release.statement.neighbours == "replace":
        both = "replacing one by the other costs the sum of the two, which the cost below covers."
    yield ""
    yield (
        f"Beside them {number:,} counts of records out of domain, each with {counts.scale.noise} noise of "
        f"scale b = {about(counts.scale.exact)}, which cost a record that is in all of them {about(cost)}. A "
        f"record is in the domain, and moves the parts above, or out of it, and moves these counts: {both}"
    )
    yield ""
    rows = []
    for name, found in release.out_of_domain_counts.items():
        of = "records that were dropped" if name is None else f"records whose {cell(name)} was out of domain"
        rows.append((of, str(found), f"{found.stddev:.4g}"))
    yield from table(("count", f"estimate, {release.confidence:g}", "standard error"), rows)


def _cost(release: Release) -> Iterator[str]:
    authorization = release.measurement.authorization
    cost, budget = authorization.cost, authorization.budget
    norm, allowed = cost.noise.norm, cost.noise.allowed(budget)
    between = cost.value * budget.moved**norm
    power = "m" if norm == 1 else "m^2"
    first = "cost, the sum over all parts, each rounded up in the 160th binary digit"
    if budget.neighbours == "replace":
        first = f"cost, {'half' if norm == 1 else 'a quarter'} of what replacing one record costs at most"
    yield from table(
        ("quantity", "value"),
        [
            (first, about(cost.value)),
            (f"{power} cost, between neighbours", about(between)),
            ("budget", cell(repr(budget), 300)),
            (f"largest {power} cost that the budget allows", about(allowed)),
            ("spent of it, at most", f"{above(100 * between / allowed)} %"),
            ("compared, exactly, before any data were read", cell(authorization.time)),
        ],
    )


def _guarantees(release: Release) -> Iterator[str]:
    norm = release.measurement.plan.noise.norm
    rows = []
    for row in release.statement.guarantees:
        exact = {name: Fraction(text) for name, text in row["exact"].items()}
        figures = ", ".join(f"{name} = {above(value)}" for name, value in exact.items())
        bounds = ", ".join(f"{name} = {value}" for name, value in exact.items())
        rows.append((row["definition"], figures, cell(bounds, 300), _WHY[row["definition"], norm]))
    yield from table(("definition", "rounded up", "exact bound", "why"), rows)
    yield ""
    yield (
        "The theorems are those of docs/privacy.md; m records move answers at most m times as far "
        "(theorem 4). Every bound was proved, by ball arithmetic where it is not rational."
    )


def _ledger(release: Release) -> Iterator[str]:
    authorization = release.measurement.authorization
    entry: LedgerEntry | None = authorization.ledger
    yield cell(authorization.note, 1000)
    if entry is not None:
        before, after = (
            ", ".join(f"{k} {v}" for k, v in sums.items()) for sums in (entry.before, entry.after)
        )
        rows = [
            ("dataset", cell(entry.dataset)),
            ("entry", entry.entry),
            ("total", cell(repr(entry.total), 300)),
            ("spent before", cell(before, 300)),
            ("spent after", cell(after, 300)),
            ("digest of the entry", entry.digest),
        ]
        yield ""
        yield from table(("ledger", ""), rows)


def _clauses(statement: PrivacyStatement, name: str) -> list[str]:
    return [str(clause["text"]) for clause in statement.as_dict()[name]]


def _files(folder: Path, record: Mapping[str, Any]) -> Iterator[str]:
    said = record.get("privacy")
    versions = said.get("versions") if isinstance(said, Mapping) else None
    if isinstance(versions, Mapping):
        yield f"*As said*: {', '.join(f'{cell(name)} {cell(value)}' for name, value in versions.items())}."
        yield ""
    rows = []
    for name in RELEASE_FILES:
        path = folder / name
        if path.is_file():
            with path.open("rb") as stream:
                digest = hashlib.file_digest(stream, "sha256").hexdigest()
            rows.append((name, f"{path.stat().st_size:,}", digest))
    yield from table(("file, as it is now", "bytes", "SHA-256"), rows)
    yield ""
    yield (
        "To check: `matrixdp verify` computes everything again; `verifier/verify_cost.py`, one file of "
        "Python's standard library, checks the cost without this package."
    )
