"""Plans in archives: distinct matrices and vectors once, parts as a table that refers to them.

A plan can have ten thousand parts that share three matrices. Nothing that follows from the matrices is saved:
sensitivities and the privacy cost are recomputed when a plan is read.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, fields
from functools import cache
from itertools import chain, pairwise
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

import matrixdp.statements  # noqa: F401 - adds the entries that are SQL to the language
from matrixdp import exact
from matrixdp.domain import Domain, OutOfDomain
from matrixdp.errors import StorageError
from matrixdp.language import Entry, read_entry
from matrixdp.ledger import LedgerEntry
from matrixdp.mapped import Multiples, in_pieces
from matrixdp.measure.calibration import NoiseScale, OutOfDomainCounts
from matrixdp.measure.measurement import Authorization, Measurement, Periods, as_authorized
from matrixdp.noise import Cost, Noise, noise_named
from matrixdp.plans import PLAN_KINDS, Block, Part, Plan, Slices
from matrixdp.privacy import Clause
from matrixdp.privacy.budget import exact_budget, exact_number, exact_text, number_text
from matrixdp.privacy.unit import Unit
from matrixdp.queries import Workload
from matrixdp.queries.workload import as_plain
from matrixdp.selection.selection import Candidate, Certificate, Selection, charged
from matrixdp.storage.archive import ArchiveReader, ArchiveWriter

#: Of the weights of a plan, which are about 1.
_LARGEST = 2.0**53
#: Fields of matrices that archives have another name for.
_STORED = {"outside": "unsupported"}
#: What every kind of plan has.
_COMMON = {field.name for field in fields(Plan)}


def write_plan(plan: Plan, archive: ArchiveWriter) -> dict[str, object]:
    """Add a plan's arrays to an archive and return the rest for its header."""
    matrices: list[dict[str, object]] = []
    places: dict[str, int] = {}
    arrays: dict[tuple[str, bytes], str] = {}
    parts: list[dict[str, object]] = []

    def once(values: NDArray[Any]) -> str:
        content = (values.dtype.str, values.tobytes())
        if content not in arrays:
            arrays[content] = archive.add(values)
        return arrays[content]

    for part in plan.parts:
        blocks = []
        for block in part.blocks:
            key = block.matrix.digest()
            if key not in places:
                places[key] = len(matrices)
                matrices.append(_write_matrix(block.matrix, archive))
            blocks.append([[plan.domain.index(name) for name in block.attributes], places[key]])
        parts.append({"blocks": blocks, "variance": part.variance})
        if part.multipliers is not None:
            parts[-1]["multipliers"] = once(part.multipliers.ravel())
        if part.width is not None:
            parts[-1]["width"] = part.width
    vectors = {
        own.name: {name: once(np.asarray(values, float)) for name, values in getattr(plan, own.name).items()}
        for own in fields(plan)
        if own.name not in _COMMON
    }
    return {
        "kind": plan.kind,
        "noise": plan.noise.name,
        "sizes": list(plan.domain.shape),
        "matrices": matrices,
        "parts": parts,
        "vectors": vectors,
        **({} if plan.persons is None else {"persons": plan.persons.as_dict()}),
        **({} if plan.proof is None else {"proof": once(plan.proof)}),
        **({"by_period": True} if plan.by_period else {}),
    }


def _write_matrix(matrix: exact.MeasuredMatrix, archive: ArchiveWriter) -> dict[str, object]:
    if not matrix.kind:
        raise StorageError(f"a matrix of kind {type(matrix).__name__} cannot be saved", code="not-supported")
    own = {field.name: getattr(matrix, field.name) for field in fields(cast("Any", matrix))}
    form = {name: _form(value, archive) for name, value in own.items() if value is not None}
    return {"kind": matrix.kind} | {_STORED.get(name, name): value for name, value in form.items()}


def _form(value: Any, archive: ArchiveWriter) -> object:
    """Return the record of a matrix; its arrays go into the archive, integers as narrow as possible."""
    if isinstance(value, exact.MeasuredMatrix):
        return _write_matrix(value, archive)
    if isinstance(value, tuple):
        return [_form(one, archive) for one in value]
    if not isinstance(value, np.ndarray):
        return value
    narrow = value.dtype.kind == "i" and int(np.abs(value).max(initial=0)) < 2**31
    return archive.add(value.astype(np.int32) if narrow else value)


def read_plan(header: Mapping[str, Any], domain: Domain, archive: ArchiveReader) -> Plan:
    """Return the plan that `write_plan` saved, every size checked and every matrix proved anew."""
    arrays: dict[str, NDArray[Any]] = {}

    # Parts and weights share arrays, which are never copied; matrices have their own.
    def once(name: str) -> NDArray[Any]:
        if name not in arrays:
            arrays[name] = archive.array(name)
        return arrays[name]

    with archive.reading("its strategy"):
        # for readers that do not know domains
        fits = header["sizes"] == list(domain.shape)
        archive.require(fits, "its sizes of attributes are not those of its domain")
        matrices = [_read_matrix(form, archive) for form in header["matrices"]]
        parts = []
        for row in header["parts"]:
            factors = once(row["multipliers"]) if "multipliers" in row else None
            parts.append(_read_part(row, domain, matrices, factors, archive))
        measured = {place for row in header["parts"] for _, place in row["blocks"]}
        archive.require(len(measured) >= len(matrices), "no part measures one of its matrices")
        vectors = {
            own: {name: _moderate(once(key), archive) for name, key in of.items()}
            for own, of in header["vectors"].items()
        }
        archive.require(header["kind"] in PLAN_KINDS, f"no kind of plan is called {header['kind']!r}")
        persons = Unit.of(header["persons"]) if "persons" in header else None
        noise, plan = noise_named(header["noise"]), PLAN_KINDS[header["kind"]]
        proof = archive.array(header["proof"]) if "proof" in header else None
        steps = header.get("by_period") is True
        return plan(domain, tuple(parts), noise, **vectors, persons=persons, proof=proof, by_period=steps)


def _moderate(vector: NDArray[Any], archive: ArchiveReader) -> NDArray[np.float64]:
    """Return an array of floats as it is; with NaN or huge ones errors could not be told."""
    usable = vector.dtype == np.float64 and bool((np.abs(vector) <= _LARGEST).all())
    archive.require(usable, "its weights hold what is no number of use")
    return vector


#: Kinds of matrices that their size says all of.
_OF_SIZE = {own.kind: own for own in (exact.IdentityMatrix, exact.CenteredMatrix, exact.RangeMatrix)}


def _read_matrix(form: Mapping[str, Any], archive: ArchiveReader) -> exact.MeasuredMatrix:
    kind, require = form["kind"], archive.require
    if kind in _OF_SIZE:
        size = form["size"]
        require(type(size) is int and size >= 1, "a matrix has no proper size")
        return _OF_SIZE[kind](size)
    if kind == "grid-tree":
        sizes, branching, weights = tuple(form["sizes"]), form["branching"], tuple(form["weights"])
        whole = len(sizes) == 2 and all(type(number) is int for number in (*sizes, branching, *weights))
        require(whole, "a tree over a grid does not consist of integers")
        return exact.GridTree(sizes, branching, weights)
    if kind == "tree":
        names = (form["groups"], form["weights"], form.get("beside", []), form.get("beside_weights", []))
        arrays = [[archive.array(name) for name in own] for own in names]
        whole = all(own.dtype.kind == "i" for own in chain(*arrays))
        require(whole, "a tree of values does not consist of integers")
        return exact.TreeMatrix(*(tuple(own.astype(np.int64) for own in one) for one in arrays))
    if kind == "row-trees":
        several = [[archive.array(name) for name in form[key]] for key in ("groups", "weights")]
        queries = archive.array(form["entries"])
        whole = all(own.dtype.kind == "i" for own in (*chain(*several), queries))
        require(whole, "trees of queries do not consist of integers")
        nodes, weights = [tuple(own.astype(np.int64) for own in one) for one in several]
        return exact.RowTrees(nodes, weights, queries.astype(np.int64))
    if kind == "walk":
        widths = tuple(form["widths"])
        require(all(type(own) is int for own in widths), "the widths of a walk are not integers")
        return exact.WalkMatrix(widths)
    if kind == "block-walk":
        levels = tuple(form["within"]), tuple(form["between"]), tuple(form["weights"])
        whole = all(type(own) is int for own in (form["size"], *chain.from_iterable(levels)))
        require(whole, "walks in blocks do not consist of integers")
        return exact.BlockWalkMatrix(form["size"], *levels)
    if kind == "tree-walk":
        require(form["matrix"]["kind"] in ("identity", "integer"), "trees count what is no such matrix")
        counted = cast("exact.IntegerMatrix", _read_matrix(form["matrix"], archive))
        return exact.TreeWalkMatrix(counted, tuple(form["above"]), tuple(form["widths"]))
    if kind == "merged":
        inner = form["matrix"]["kind"] not in ("merged", "grid-tree")
        require(inner, "a matrix over groups of values is over groups of groups")
        merged = _read_matrix(form["matrix"], archive)
        groups = [archive.array(name) for name in form["groups"]]
        within = [archive.array(form["within"])] if "within" in form else []
        whole = all(own.dtype.kind == "i" for own in (*groups, *within))
        require(whole, "a matrix over groups of values does not hold integers")
        own = tuple(group.astype(np.int64) for group in groups)
        return exact.MergedMatrix(merged, own, *(weights.astype(np.int64) for weights in within))
    require(kind in ("integer", "deficient"), "a matrix is of an unknown kind")
    entries = archive.array(form["entries"])
    whole = entries.dtype.kind == "i" and entries.ndim == 2 and 0 not in entries.shape
    require(whole, "a measured matrix does not hold integers")
    if kind == "deficient":
        return exact.DeficientMatrix(entries.astype(np.int64))
    outside = _moderate(archive.array(form["unsupported"]), archive) if "unsupported" in form else None
    fits = outside is None or (outside.ndim == 2 and outside.shape[1] == entries.shape[1])
    require(fits, "the unsupported directions of a matrix do not fit it")
    return exact.IntegerMatrix(entries.astype(np.int64), outside)


def _read_part(
    row: Mapping[str, Any],
    domain: Domain,
    matrices: list[exact.MeasuredMatrix],
    factors: NDArray[Any] | None,
    archive: ArchiveReader,
) -> Part:
    blocks = []
    for positions, place in row["blocks"]:
        known = all(type(position) is int and position >= 0 for position in (*positions, place))
        archive.require(known, "a part names an attribute or a matrix that there is not")
        names, matrix = tuple(domain.names[position] for position in positions), matrices[place]
        fits = domain.cells(names) == matrix.columns
        if isinstance(matrix, exact.GridTree | exact.MergedMatrix):
            fits &= matrix.sizes == tuple(domain[name].size for name in names)
        archive.require(fits, f"a matrix does not fit the attributes {', '.join(names)}")
        blocks.append(Block(names, matrix))
    attributes = domain.sort([name for block in blocks for name in block.attributes])
    if factors is not None:
        archive.require(factors.dtype == np.int64, "row multipliers are not integers")
        factors = factors.reshape([block.matrix.rows for block in blocks])
    width = row.get("width")
    archive.require(width is None or type(width) is int, "the width of a part is no integer")
    return Part(attributes, tuple(blocks), float(row["variance"]), factors, width)


# Domains, workloads and budgets in archives: in the form of a specification, large arrays apart.

_REFERENCE = "$array"
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00", re.ASCII)


def write_workload(workload: Workload, archive: ArchiveWriter) -> dict[str, object]:
    """Add a workload's arrays to an archive and return the rest for its header."""

    def kept(array: NDArray[np.float64]) -> object:
        return {_REFERENCE: archive.add(array)}

    entries = []
    for position, entry in enumerate(workload.entries):
        if not isinstance(entry, Entry):
            place, found = ("workload", position), f"a {type(entry).__name__}"
            raise StorageError.at(place, found, "an entry of the query language", code="wrong-type")
        entries.append(entry.to_spec(kept))
    domain = [[name, form] for name, form in workload.domain.to_spec().items()]
    return {"domain": domain, "entries": entries}


def read_workload(header: Mapping[str, Any], archive: ArchiveReader) -> Workload:
    """Return the workload that `write_workload` saved, checked like one that a user writes."""

    def given(written: object) -> object:
        if isinstance(written, Mapping) and set(written) == {_REFERENCE}:
            return archive.array(written[_REFERENCE])
        archive.require(not isinstance(written, str), "its workload names a file in place of an array")
        return written

    with archive.reading("its workload"):
        described = dict(header["domain"])
        for spec in described.values():
            # What was derived was written down; no expression from a file is evaluated.
            derived = isinstance(spec, Mapping) and "sql" in spec
            known = not derived or "codes" in spec
            archive.require(known, "its domain has an expression that was not evaluated")
        domain = Domain(described)
        return Workload(domain, *(read_entry(entry, given) for entry in header["entries"]))


def write_authorization(authorization: Authorization) -> dict[str, object]:
    """Return an authorization for a header, every number exact.

    Examples
    --------
    >>> from fractions import Fraction
    >>> from matrixdp.noise import GAUSSIAN
    >>> from matrixdp.privacy import Budget
    >>> cost = Cost(Fraction(1, 5), GAUSSIAN)
    >>> record = Authorization(cost, Budget(rho=0.1), "2026-01-01T00:00:00+00:00")
    >>> write_authorization(record)["budget"]
    {'rho': '1/10', 'neighbours': 'add_remove', 'unit': {'records': 1}}
    """
    entry = authorization.ledger
    return {
        "cost": number_text(authorization.cost.value),
        "budget": exact_text(authorization.budget),
        "time": authorization.time,
        "noise": authorization.cost.noise.name,
        "ledger": None if entry is None else entry.as_dict(),
    }


def read_authorization(header: Mapping[str, Any], archive: ArchiveReader) -> Authorization:
    """Return the authorization that `write_authorization` saved; it must still be within its budget."""
    with archive.reading("its privacy record"):
        budget, entry = exact_budget(header["budget"]), header.get("ledger")
        cost = Cost(exact_number(header["cost"]), noise_named(header["noise"]))
        ledger = None if entry is None else LedgerEntry.read(entry)
        timed = _TIME.fullmatch(archive.text(header["time"])) is not None
        archive.require(timed, "the time of its authorization is none")
        return Authorization(cost, budget, header["time"], ledger)


# Strategies and measurements as files: versioned archives without pickle, checked as a whole when read.

STRATEGY_FORMAT = "matrixdp strategy"
MEASUREMENT_FORMAT = "matrixdp measurement"
_VERSION = 3
_POWERS = 1000


def save_strategy(path: str | os.PathLike[str], selection: Selection) -> None:
    """Write the file of a strategy: what selection returned, with its workload and certificate.

    Examples
    --------
    >>> import tempfile
    >>> from matrixdp.domain import Domain
    >>> from matrixdp.noise import GAUSSIAN
    >>> from matrixdp.selection.auto import select
    >>> from matrixdp.language import marginals
    >>> workload = Workload(Domain({"sex": ["female", "male"], "code": 3}), marginals([1, 2]))
    >>> selection = select(workload, noise=GAUSSIAN)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_strategy(f"{folder}/strategy.mdp", selection)
    ...     again = load_strategy(f"{folder}/strategy.mdp")
    >>> again.total_squared_error == selection.total_squared_error
    True
    """
    with ArchiveWriter(path) as archive:
        archive.close(
            {
                "format": STRATEGY_FORMAT,
                "format_version": _VERSION,
                "workload": write_workload(selection.workload, archive),
                "plan": write_plan(selection.plan, archive),
                "mechanism": selection.mechanism,
                "objective": selection.objective,
                "targets": dict(selection.targets),
                "neighbours": selection.neighbours,
                "reason": selection.reason,
                "certificate": asdict(selection.certificate),
                "candidates": [asdict(one) for one in selection.candidates],
                **({} if selection.rounds == 1 else {"rounds": selection.rounds}),
                **({"factors": factors} if set(factors := selection.workload.factors) != {1.0} else {}),
            }
        )


def load_strategy(path: str | os.PathLike[str]) -> Selection:
    """Read the file of a strategy.

    Its matrices are proved nonsingular anew and its privacy cost is recomputed from them; the certificate is
    what the file says.
    """
    with ArchiveReader(path, STRATEGY_FORMAT, _VERSION) as archive, archive.reading("its header"):
        header = archive.header
        workload = read_workload(header["workload"], archive)
        plan = read_plan(header["plan"], workload.domain, archive)
        written = header["certificate"]
        loss, bound = _number(written["loss"], archive), written["lower_bound"]
        bound = None if bound is None else _number(bound, archive)
        known = header["neighbours"] in ("add_remove", "replace") and header["objective"] in ("sum", "max")
        archive.require(known, "its neighbours or its objective are unknown")
        if "factors" in header:
            factors = [_number(own, archive) for own in header["factors"]]
            fit = len(factors) == len(workload.entries) and min(factors) > 0
            archive.require(fit, "the factors of its weights do not fit its workload")
            workload = workload.reweighted(factors)
        rounds = header.get("rounds", 1)
        archive.require(type(rounds) is int and rounds in (1, 2), "its number of rounds is unknown")
        selection = Selection(
            workload=workload,
            plan=plan,
            mechanism=archive.text(header["mechanism"]),
            neighbours=header["neighbours"],
            certificate=Certificate(loss, bound, archive.text(written["scope"])),
            reason=archive.text(header["reason"]),
            objective=header["objective"],
            targets=as_plain(header["targets"] or None),
            candidates=tuple(_read_candidate(one, archive) for one in header.get("candidates", [])),
            rounds=rounds,
        )
        return charged(selection)


def _read_candidate(written: Mapping[str, Any], archive: ArchiveReader) -> Candidate:
    loss = written["loss"]
    return Candidate(
        archive.text(written["mechanism"]),
        archive.text(written["status"]),
        archive.text(written["reason"]),
        None if loss is None else _number(loss, archive),
    )


def save_measurement(path: str | os.PathLike[str], measurement: Measurement, workload: Workload) -> None:
    """Write noisy measurements with the workload that they were made for.

    Nothing else of the table is known, so nothing else can be written.
    """
    pairs = list(zip(measurement.values, measurement.scales, strict=True))
    # in lattice steps, which are integers
    largest = max(int(np.abs(own).max(initial=0)) for pair in pairs for own in _steps(*pair))
    dtype = np.dtype(np.int32 if largest < 2**31 else np.int64)
    steps = (own.astype(dtype, copy=False) for pair in pairs for own in _steps(*pair))
    rows = sum(part.size for part in measurement.values)
    counts = measurement.out_of_domain_counts
    with ArchiveWriter(path) as archive:
        archive.close(
            {
                "format": MEASUREMENT_FORMAT,
                "format_version": _VERSION,
                "private": measurement.private,
                "workload": write_workload(workload, archive),
                "plan": write_plan(measurement.plan, archive),
                "authorization": write_authorization(measurement.authorization),
                "values": archive.add_pieces(steps, (rows,), dtype),
                **_write_beyond(measurement.values, archive),
                "noise": [_write_scale(scale) for scale in measurement.scales],
                "max_records": measurement.max_records,
                "out_of_domain": dict(measurement.out_of_domain.codes),
                **({} if counts is None else {"out_of_domain_counts": _write_counts(counts)}),
                "assumptions": [Clause.of(one).as_dict() for one in measurement.assumptions],
                **({} if measurement.periods is None else {"series": asdict(measurement.periods)}),
            }
        )


def _steps(values: NDArray[np.float64] | Multiples, scale: NoiseScale) -> Iterator[NDArray[Any]]:
    """Yield the noisy answers of a part in lattice steps, a piece of those that lie in a file at a time."""
    if isinstance(values, Multiples):
        yield from in_pieces(values.steps)
    else:
        yield np.ldexp(values, -scale.power)


def _write_beyond(values: Sequence[Any], archive: ArchiveWriter) -> dict[str, object]:
    """Add the noisy answers that 32 bits do not hold, where they are kept apart: their places, and them."""
    starts = np.cumsum([0, *(own.size for own in values)])
    held = [(first + own.places, own.beyond) for first, own in zip(starts, values, strict=False)
            if isinstance(own, Multiples) and own.places.size]  # fmt: skip
    return {"beyond": [archive.add(np.concatenate(own)) for own in zip(*held, strict=True)]} if held else {}


def _read_beyond(names: Any, steps: NDArray[Any], archive: ArchiveReader) -> Iterator[NDArray[Any]]:
    """Yield what `_write_beyond` added."""
    if names is None:
        yield from np.zeros((2, 0), dtype=np.int64)
        return
    places, beyond = (archive.array(name) for name in names)
    whole = places.dtype.kind == beyond.dtype.kind == "i" and places.shape == beyond.shape == (places.size,)
    archive.require(whole and places.size > 0, "its measurements beyond 32 bits are no whole lattice steps")
    placed = (np.diff(places, prepend=-1) > 0).all() and places[-1] < len(steps) and not steps[places].any()
    far = ((beyond <= -(2**31)) | (beyond >= 2**31)).all()
    archive.require(bool(placed and far), "its measurements beyond 32 bits are not in their places, or none")
    yield from (places, beyond)


def _possible(part: Part, scale: NoiseScale, steps: NDArray[Any], beyond: NDArray[Any]) -> bool:
    """Return whether the noise of a part leaves answers, in lattice steps; from 2^53 on they were rounded."""
    multiple = scale.multiple or 1
    if part.width is None and multiple == 1:
        return True
    if part.width is None:
        pieces = chain(in_pieces(steps), [beyond])
        return not any((own % multiple)[np.abs(own) < 2**53].any() for own in pieces)
    if int(np.abs(steps).max(initial=0)) >= 2**53:
        return True
    return not (steps % multiple).any() and part.leaves(steps.astype(np.int64))


def load_measurement(path: str | os.PathLike[str], *, lazily: bool = False) -> tuple[Measurement, Workload]:
    """Return the measurements that a file holds, with the workload that they were made for.

    Their privacy cost is recomputed from the plan and the exact scales of the noise. ``lazily`` to check the
    content of large arrays when they are first read.
    """
    with ArchiveReader(path, MEASUREMENT_FORMAT, _VERSION) as archive, archive.reading("its header"):
        header = archive.header
        workload = read_workload(header["workload"], archive)
        plan = read_plan(header["plan"], workload.domain, archive)
        authorization = read_authorization(header["authorization"], archive)
        counts = _read_counts(header.get("out_of_domain_counts"), plan.noise, archive)
        out_of_domain = OutOfDomain(header["out_of_domain"], () if counts is None else counts.attributes)
        out_of_domain.check(workload.domain)
        assumptions = tuple(_read_assumption(written, archive) for written in header["assumptions"])
        private, max_records = header["private"], header["max_records"]
        said = type(private) is bool and type(max_records) is int and max_records >= 1
        archive.require(said, "it does not say whether it is private, or for how many records")
        scales = tuple(_read_scale(form, plan.noise, archive) for form in header["noise"])
        archive.require(len(scales) == len(plan.parts), "its noise does not fit its strategy")
        if not as_authorized(authorization, plan, scales, counts):
            raise archive.damaged("its strategy costs more or less than it says")
        starts = np.cumsum([0, *(part.rows for part in plan.parts)])
        sliced = "series" not in header and Slices.of(plan) is not None
        lazily &= sliced and not any(scale.multiple for scale in scales)
        later: list[Callable[[], None]] = []
        steps = archive.array(header["values"], (int(starts[-1]),), later if lazily else None)
        check = cache(later[0]) if later else None
        archive.require(steps.dtype.kind == "i", "its measurements are not whole lattice steps")
        archive.require("series" not in header or authorization.budget.neighbours == "add_remove",
                        "a series cannot promise replacements")  # fmt: skip
        archive.require(sliced or "beyond" not in header, "measurements of a plan without slices are apart")
        places, beyond = _read_beyond(header.get("beyond"), steps, archive)
        apart = [slice(*own) for own in pairwise(np.searchsorted(places, starts))]
        answers = np.split(steps, starts[1:-1])
        possible = all(map(_possible, plan.parts, scales, answers, (beyond[own] for own in apart)))
        archive.require(possible, "its measurements are none that its noise leaves")
        values: tuple[Any, ...] = tuple(
            Multiples(own, scale.power, places[at] - start, beyond[at], check)
            if sliced
            else np.ldexp(own.astype(np.float64), scale.power)
            for own, scale, start, at in zip(answers, scales, starts, apart, strict=False)
        )
        measurement = Measurement(
            plan, scales, values, authorization, private, max_records, out_of_domain, assumptions,
            out_of_domain_counts=counts, periods=_read_periods(header.get("series"), plan, values, archive),
        )  # fmt: skip
        return measurement, workload


def _read_periods(
    written: Mapping[str, Any] | None,
    plan: Plan,
    values: Sequence[NDArray[np.float64]],
    archive: ArchiveReader,
) -> Periods | None:
    """Return how far a series is measured; what is not measured yet must be 0."""
    if written is None:
        return None
    name, published = written["attribute"], tuple(written["published"])
    whole = name in plan.domain and all(type(number) is int for number in published)
    archive.require(whole, "it does not say which periods of its series are measured")
    periods = Periods(name, published)
    periods.check(plan)
    for part, own in zip(plan.parts, values, strict=True):
        archive.require(not own[periods.due(part, plan.domain[name].size)].any(),
                        "it has measurements of periods that are not measured yet")  # fmt: skip
    return periods


def _write_scale(scale: NoiseScale) -> list[str | int]:
    return [str(scale.steps), scale.power, *([] if scale.multiple is None else [scale.multiple])]


def _read_scale(form: Sequence[Any], noise: Noise, archive: ArchiveReader) -> NoiseScale:
    steps, power, *multiple = form
    scale = exact_number(steps)
    known = type(power) is int and abs(power) <= _POWERS and scale.denominator.bit_count() == 1
    archive.require(known, "a scale of its noise is no integer over a power of 2 in range")
    whole = all(type(number) is int for number in multiple)
    archive.require(whole and len(multiple) < 2, "its noise is on multiples of no integer")
    found = NoiseScale(scale, power, noise, *multiple)
    try:
        finite = 0.0 < found.variance < math.inf
    except OverflowError:
        finite = False
    archive.require(finite, "a scale of its noise has no finite variance")
    return found


def _write_counts(counts: OutOfDomainCounts) -> dict[str, object]:
    steps = [int(step) for step in np.ldexp(counts.values, -counts.scale.power)]
    return {"attributes": list(counts.attributes), "noise": _write_scale(counts.scale), "values": steps}


def _read_counts(
    written: Mapping[str, Any] | None, noise: Noise, archive: ArchiveReader
) -> OutOfDomainCounts | None:
    """Return the counts out of domain, in lattice steps; a measurement that asked for none has none."""
    if written is None:
        return None
    attributes, steps = tuple(written["attributes"]), written["values"]
    whole = all(type(step) is int and abs(step) < 2**62 for step in steps)
    listed = OutOfDomain(counts=attributes).counts == attributes
    whole &= listed and len(steps) == len(attributes) > 0
    archive.require(whole, "its counts of records out of domain are no whole lattice steps, one for each")
    scale = _read_scale(written["noise"], noise, archive)
    return OutOfDomainCounts(attributes, scale, np.ldexp(np.array(steps, dtype=np.float64), scale.power))


def _read_assumption(written: object, archive: ArchiveReader) -> Clause:
    if not isinstance(written, dict) or not isinstance(written.get("text"), str):
        raise archive.damaged("what it assumes of the table is no text")
    return Clause(**written)


def _number(value: object, archive: ArchiveReader) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise archive.damaged("a figure of its certificate is no number")
    return float(value)
