"""What is fuzzed: everything that reads, a function for each that is given a folder and returns its case.

The bytes of a case are those of a file themselves, or a recipe that changes one of several valid files.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import sqlite3
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from io import BytesIO
from pathlib import Path
from typing import TypeVar, final
from unittest import mock
from zlib import crc32

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import matrixdp as mdp
from matrixdp.cli.options import entries_of
from matrixdp.domain import OutOfDomain
from matrixdp.errors import MatrixDPError
from matrixdp.ledger import Account
from matrixdp.ledger import ledger as ledgers
from matrixdp.ledger.database import TABLES
from matrixdp.measure.measurement import Measurement
from matrixdp.model import Model
from matrixdp.model.tables import Mixture
from matrixdp.noise import GAUSSIAN, LAPLACE
from matrixdp.sources import open_source
from matrixdp.sources.base import guarded
from matrixdp.sources.columns import read_parquet
from matrixdp.sources.csv import read_texts
from matrixdp.specification import entry_from_spec, load_specification, parse_yaml
from matrixdp.statistics import statistics
from matrixdp.storage.archive import entry as listed
from matrixdp.storage.formats import load_measurement
from tests.fuzz import documents
from tests.fuzz.archives import KEYS, altered, changed_array, members_of, overwritten
from tests.fuzz.oracle import Case, Finding, hold
from tests.fuzz.recipe import Recipe, mutated

T = TypeVar("T")
Seeds = Callable[[], list[bytes]]
Opened = Callable[[Path], Case]

#: Keys of release.json and model.json, and those of headers.
_KEYS = (
    *KEYS, "files", "sha256", "bytes", "measurement.mdp", "confidence", "strategy", "mechanism", "privacy",
    "text", "guarantee", "groups", "made", "total", "accepted", "seed",
)  # fmt: skip
#: A text that stands for what no message may quote.
CANARY = "Zq7#canary"


@final
@dataclass(frozen=True)
class Target:
    """What fuzzing begins with, and what makes the case in a folder."""

    seeds: Seeds
    opened: Opened


TARGETS: dict[str, Target] = {}


def target(seeds: Seeds) -> Callable[[Opened], Opened]:
    """Add a target under the name of its function."""

    def added(opened: Opened) -> Opened:
        TARGETS[opened.__name__] = Target(seeds, opened)
        return opened

    return added


def as_they_are(count: int, raw: Sequence[bytes] = ()) -> list[bytes]:
    """Return some files as their bytes, and recipes that leave each of several as it is."""
    return [*(b"\0" + file for file in raw), *(bytes([1, place]) for place in range(count))]


def raw_or_changed(data: bytes, files: Sequence[T], change: Callable[[T, Recipe], bytes]) -> bytes:
    """Return the bytes after the first, or a file that they change as a recipe."""
    recipe = Recipe(data)
    return recipe.rest() if recipe.below(256) == 0 else change(recipe.choice(files), recipe)


def mutated_json(content: bytes, recipe: Recipe) -> bytes:
    return json.dumps(mutated(json.loads(content), recipe, _KEYS)).encode()


def write_files(folder: Path, files: Mapping[str, bytes]) -> None:
    for name, content in files.items():
        (folder / name).write_bytes(content)


def finite_answers(answers: pa.Table) -> None:
    """Hold that every answer is a number with an interval."""
    for name in ("estimate", "stddev", "lower", "upper"):
        hold(np.isfinite(answers.column(name).to_numpy()).all(), f"an answer whose {name} is not finite")


def unquoted(case: Case) -> Case:
    """Read tables as a case does; no message may quote them."""

    def read(data: bytes) -> None:
        try:
            case(data)
        except MatrixDPError as error:
            if "canary" in str(error):
                raise Finding(f"a message that quotes the table: {error}") from error
            raise

    return read


# Specifications and entries.


def _forecast(workload: mdp.Workload) -> None:
    mdp.forecast(workload, mdp.Budget(epsilon=1, delta=1e-6))


@target(lambda: [text.encode() for text in documents.SPECIFICATIONS])
def specification_text(folder: Path) -> Case:
    """Files of specifications: any bytes, read as ``validate`` reads them."""
    documents.write_arrays(folder)
    path = folder / "specification.yaml"

    def case(data: bytes) -> None:
        path.write_bytes(data)
        _forecast(load_specification(path).workload)

    return case


@target(lambda: [bytes([place]) for place in range(len(documents.SPECIFICATIONS))])
def specification_mapping(folder: Path) -> Case:
    """Specifications as mappings: what is read is written down and read again, to the same."""
    documents.write_arrays(folder)
    known = [parse_yaml(text).value for text in documents.SPECIFICATIONS]

    def case(data: bytes) -> None:
        recipe = Recipe(data)
        document = mutated(recipe.choice(known), recipe, documents.keys())
        if not isinstance(document, dict):
            return
        written = load_specification(document, base_path=folder)
        _forecast(written.workload)
        text = json.dumps(written.document, allow_nan=False)
        if len(text) <= 20_000:
            again = load_specification(json.loads(text), base_path=folder)
            same = json.dumps(again.document) == text
            hold(same, "a specification that is another one when it is read again")

    return case


@target(lambda: [bytes([place]) for place in range(len(documents.entries()))])
def entry(folder: Path) -> Case:
    """Entries as mappings, read and expanded on a domain."""
    documents.write_arrays(folder)
    known = documents.entries()
    domain = load_specification(documents.RELEASED).domain

    def case(data: bytes) -> None:
        recipe = Recipe(data)
        asked = entry_from_spec(mutated(recipe.choice(known), recipe, documents.keys()), folder)
        for group in mdp.Workload(domain, asked):
            hold(group.queries >= 0, group.name)

    return case


def _arrays() -> list[bytes]:
    files = []
    for array in (np.tri(4), np.eye(4, dtype="i1"), np.zeros((2, 4), dtype=bool), np.ones(4, dtype="u8")):
        stream = BytesIO()
        np.save(stream, array)
        files.append(stream.getvalue())
    return files


#: A header that nests deeply.
_DEEP = b"\x93NUMPY\x01\x00\x28\x23" + b"-" * 8999 + b"1"


@target(lambda: as_they_are(len(_arrays()), [*_arrays(), _DEEP]))
def array_file(folder: Path) -> Case:
    """NumPy files that an entry names: any bytes, and valid ones with another header; numbers are finite."""
    files, path = _arrays(), folder / "queries.npy"

    def case(data: bytes) -> None:
        path.write_bytes(raw_or_changed(data, files, changed_array))
        asked = entry_from_spec({"product": {"code": {"matrix": "queries.npy"}}}, folder)
        written = str(asked.to_spec())
        hold("nan" not in written and "inf" not in written, "a matrix with numbers that are none")

    return case


# Tables: no message quotes them.


def _csv_tables() -> list[bytes]:
    """Return tables with both delimiters, quotes, short and long records."""
    head = "sex,age,income,hours,code,name\n"
    rows = f"male,3,1.5,0,0,{CANARY}\nfemale,{CANARY},12,8,1,y\n\nmale\n"
    quoted = f'"male","3","1","0","2","a ""b"" c"\nfemale,"{CANARY}\n,4,1,1,1\n'
    return [
        b"\0" + (head + rows).encode(),
        b"\1" + (head + quoted).encode(),
        b"\0" + (head + rows).replace(",", ";").encode("utf-8-sig"),
        b"\2" + (head + quoted).replace(",", "\t").encode(),
        b"\0" + (head + rows).encode("utf-16"),
    ]


@target(_csv_tables)
def csv_table(folder: Path) -> Case:
    """CSV files of any bytes: all are read, and one in 64 is counted: at most one record in each line."""
    domain = load_specification(documents.RELEASED).domain
    replaced = OutOfDomain(dict.fromkeys(domain.names, 0))
    paths = [folder / "t.csv", folder / "t.tsv", folder / "t.csv.gz"]

    def case(data: bytes) -> None:
        way = data[0] % 16 if data else 0
        path = paths[way - 1 if way in (2, 3) else 0]
        path.write_bytes(data[1:])
        quoted = way % 2 == 1 and way != 3
        if crc32(data) % 64 == 0:
            source = open_source(path, quoted_newlines=quoted)
            (_, counts), *_ = source.marginals(domain, [("sex", "age")], replaced)
            records = int(counts.sum())
        else:
            _, streams = guarded(lambda: read_texts([str(path)], domain.names, quoted), "read")
            records = guarded(streams[str(path)].read_all, "read").num_rows
        lines = data.count(b"\n") + 1
        hold(way == 3 or 0 <= records <= lines, f"{records} records in {lines} lines")

    return unquoted(case)


def _parquet_tables() -> list[bytes]:
    texts = pa.table({"sex": ["male", CANARY, None], "age": ["3", "x", "9"], "code": [CANARY, "1", "2"]})
    numbers = pa.table({"sex": [True, False, None], "age": [1, 2**40, -1], "code": [0.5, 1.0, math.nan]})
    encoded = texts.set_column(0, "sex", texts.column("sex").dictionary_encode())
    files = []
    for table, options in (
        (texts, {"compression": "none"}),
        (numbers, {"compression": "none"}),
        (encoded, {"compression": "none", "use_dictionary": True}),
        (texts, {"compression": "zstd", "data_page_version": "2.0"}),
        (pa.table({"sex": [[1], [2]], "age": [{"a": 1}, None], "code": [b"\xff", CANARY.encode()]}), {}),
    ):
        sink = BytesIO()
        pq.write_table(table, sink, **options)
        files.append(sink.getvalue())
    return files


@target(lambda: as_they_are(len(_parquet_tables()), _parquet_tables()))
def parquet_table(folder: Path) -> Case:
    """Parquet files: any bytes, and valid ones of every type with changed bytes; one in 64 is counted."""
    domain = mdp.Domain({"sex": ["male", "true"], "age": {"min": 0, "max": 9}, "code": 3})
    replaced = OutOfDomain(dict.fromkeys(domain.names, 0))
    files, path = _parquet_tables(), folder / "t.parquet"

    def case(data: bytes) -> None:
        changed = raw_or_changed(data, files, lambda file, recipe: overwritten(file, recipe, len(data)))
        path.write_bytes(changed)
        if crc32(data) % 64 == 0:
            (_, counts), *_ = open_source(path).marginals(domain, [("sex", "age")], replaced)
            hold(counts.min() >= 0, "a count below 0")
        else:
            _, streams = guarded(lambda: read_parquet([str(path)], domain.names), "read")
            for stream in streams.values():
                guarded(stream.read_all, "read")

    return unquoted(case)


# Strategies and measurements: any bytes, and valid files with a header, an array or a member changed.


@target(lambda: as_they_are(len(documents.strategies()), documents.strategies()[-1:]))
def strategy(folder: Path) -> Case:
    """A strategy costs what a plan may cost, and its errors are finite."""
    originals = [members_of(file) for file in documents.strategies()]
    path = folder / "strategy.mdp"

    def case(data: bytes) -> None:
        path.write_bytes(raw_or_changed(data, originals, altered))
        loaded = mdp.Strategy.load(path)
        plan = loaded.selection.plan
        hold(0 < plan.cost <= 1 + 1e-6, f"a plan that costs {plan.cost}")
        budget = mdp.Budget(rho=0.5) if plan.noise.norm == 2 else mdp.Budget(epsilon=1)
        hold(math.isfinite(loaded.rmse(budget)), "an expected error that is not finite")
        for group in loaded.workload.groups[:2]:
            if group.queries <= 100:
                variances = plan.analysis.variances(group)
                sound = np.isfinite(variances).all() and (variances >= 0).all()
                hold(sound, "a variance that is not finite, or below 0")

    return case


def _measurements() -> list[bytes]:
    return [release["measurement.mdp"] for release in documents.releases()]


@target(lambda: as_they_are(len(_measurements()), _measurements()[-1:]))
def measurement(folder: Path) -> Case:
    """A measurement costs what it says, within its budget, and its answers are finite."""
    originals = [members_of(file) for file in _measurements()]
    path = folder / "measurement.mdp"

    def case(data: bytes) -> None:
        path.write_bytes(raw_or_changed(data, originals, altered))
        measured, workload = load_measurement(path)
        check_cost(measured)
        hold(mdp.Release(measured, workload).statement.text, "a statement that says nothing")
        for group in workload.groups[:2]:
            if group.queries <= 100:
                answers, variances = measured.estimates.answers(group), measured.analysis.variances(group)
                hold(np.isfinite([answers, variances]).all(), "answers that are not finite")

    return case


def check_cost(measured: Measurement) -> None:
    """Recompute the cost from the entries of the matrices alone, and compare it with what is stated."""
    power = measured.plan.noise.norm
    least = Fraction(0)
    for part, scale in zip(measured.plan.parts, measured.scales, strict=True):
        entries = [block.matrix.magnitudes().astype(object) for block in part.blocks]
        if part.multipliers is None:
            largest = math.prod(int((own**power).sum(axis=0).max()) for own in entries)
        else:
            matrix = np.ones((1, 1), dtype=object)
            for own in entries:
                matrix = np.kron(matrix, own)
            weighted = (matrix * part.multipliers.ravel().astype(object)[:, None]) ** power
            largest = int(weighted.sum(axis=0).max())
        least += Fraction(largest) / (scale.steps * Fraction(2) ** scale.power) ** power
    stated = measured.authorization.cost.value
    # the whole budget is authorized before the second round is planned
    most = math.inf if measured.plan.kind == "rounds" else least * (1 + Fraction(1, 2**100))
    near = least <= stated <= most
    hold(near, f"it costs {float(least)}, and says {float(stated)}")
    allowed = measured.plan.noise.cost(measured.authorization.budget).value
    hold(stated <= allowed, "it costs more than its budget")


# Folders of releases and of models.


@target(lambda: as_they_are(len(documents.releases()), [documents.releases()[0]["release.json"]]))
def record(folder: Path) -> Case:
    """Releases whose release.json, or measurement with a digest that fits, is changed; one in 8 answers."""
    folders, originals = documents.released(folder), documents.releases()
    members = [members_of(file) for file in _measurements()]

    def case(data: bytes) -> None:
        recipe = Recipe(data)
        way = recipe.below(256)
        place = 0 if way == 0 else recipe.below(len(folders))
        written, measured = originals[place]["release.json"], originals[place]["measurement.mdp"]
        if way == 0:
            written = recipe.rest()
        elif way % 4:
            written = mutated_json(written, recipe)
        else:
            measured = altered(members[place], recipe)
            document = json.loads(written)
            document["files"]["measurement.mdp"]["sha256"] = hashlib.sha256(measured).hexdigest()
            written = json.dumps(document).encode()
        write_files(folders[place], {"release.json": written, "measurement.mdp": measured})
        release = mdp.load_release(folders[place])
        hold(0 < release.confidence < 1, f"a confidence of {release.confidence}")
        if crc32(data) % 8 == 0 and release.workload.queries <= 100:
            finite_answers(release.answers)

    return case


@target(lambda: [bytes([place, 200, 1, 7]) for place in range(8)])
def series(folder: Path) -> Case:
    """Series whose series.json is changed, or what began it; one that opens says when its answers come."""
    asked = {
        "domain": {"year": {"from": "2001-01-01", "to": "2003-12-31", "by": "year"}, "sex": ["f", "m"]},
        "workload": [{"marginals": [["year", "sex"]]}, {"product": {"year": "prefix"}}],
        "series": "year",
        "privacy": {"rho": 0.5},
    }
    out = mdp.Series.start(asked, folder / "series").folder
    written, begun = ((out / name).read_bytes() for name in ("series.json", "series.mdp"))
    members = members_of(begun)

    def case(data: bytes) -> None:
        recipe = Recipe(data)
        way = recipe.below(256)
        text = recipe.rest() if way == 0 else mutated_json(written, recipe) if way % 4 else written
        file = altered(members, recipe) if way and way % 4 == 0 else begun
        write_files(out, {"series.json": text, "series.mdp": file})
        found = mdp.Series.open(out)
        check_cost(found.begun)
        hold(not any(values.any() for values in found.begun.values), "a row that was measured at the start")
        hold(found.schedule().num_rows == len(found.workload), "a table that is not in the schedule")

    return case


@target(lambda: [bytes([place, 200, 1, 7]) for place in range(12)])
def signed_release(folder: Path) -> Case:
    """Signed releases with any file changed: verified with the key, what was changed never holds."""
    out = documents.released(folder)[1]
    private, public = mdp.make_keys(folder / "key")
    mdp.sign_release(out, mdp.SigningKey.load(private))
    originals = {path.name: path.read_bytes() for path in out.iterdir()}
    public_key = public.read_bytes()
    names = sorted(originals)
    holds = mdp.verify_release(out, key=public).holds
    hold(holds, "a release that does not hold before anything is changed")

    def case(data: bytes) -> None:
        recipe = Recipe(data)
        way, files = recipe.below(8), dict(originals)
        if way == 0:
            files["release.json"] = mutated_json(files["release.json"], recipe)
        elif way == 1:
            files["measurement.mdp"] = altered(members_of(files["measurement.mdp"]), recipe)
        else:
            name = recipe.choice(names)
            files[name] = overwritten(files[name], recipe, 1 + recipe.below(3))
        public.write_bytes(recipe.rest() if way == 7 else public_key)
        write_files(out, files)
        if mdp.verify_release(out, key=public).holds and files != originals and way != 7:
            same = files["release.json"] == originals["release.json"]
            raise Finding(f"a changed release that holds; its record is {'the same' if same else 'changed'}")

    return case


@target(lambda: [b"", *(bytes([place, 200, 1, 7]) for place in range(8))])
def model(folder: Path) -> Case:
    """Models with any file changed, listed digests right again or not: answers are not negative."""
    release = mdp.load_release(documents.released(folder)[0])
    # of two products that nobody fitted
    factors = {one.name: np.full((2, one.size), 1 / one.size) for one in release.domain}
    tables = Mixture(release.domain, 12.5, np.array([0.25, 0.75]), factors)
    made = {"method": "mixture", "seed": 1, "accepted": True, "tests": {"loss": 1.0}}
    out = Model(release.measurement, release.workload, tables, made).save(folder / "model")
    originals = {path.name: path.read_bytes() for path in out.iterdir()}

    def case(data: bytes) -> None:
        recipe = Recipe(data)
        way, files = recipe.below(5), dict(originals)
        if way == 1:
            files["model.json"] = mutated_json(files["model.json"], recipe)
        elif way in (2, 3):
            name = "model.mdp" if way == 2 else "measurement.mdp"
            files[name] = altered(members_of(files[name]), recipe)
        elif way == 4:
            files[recipe.choice(sorted(files))] = recipe.rest()
        write_files(out, files)
        if way in (2, 3, 4) and recipe.below(2):
            document = json.loads(originals["model.json"])
            document["files"] = {name: listed(out / name) for name in document["files"]}
            (out / "model.json").write_text(json.dumps(document))
        loaded = Model.load(out)
        modelled = loaded.answer({"marginals": [0, 1]}).column("modelled").to_numpy()
        sound = np.isfinite(modelled).all() and (modelled >= 0).all()
        hold(sound, "modelled answers that are negative or not finite")
        hold(loaded.records(3).num_rows == 3, "another number of records than was asked for")

    return case


#: Entries that the first release can answer, which recipes change.
_ANSWERED = (
    {"marginals": [0, 1, 2]},
    {"kway": 2, "predicates": {"categorical": "identity", "numeric": "prefix"}},
    {"product": {"sex": "identity", "age": {"ranges": [[0, 1], [2, 3]]}}, "weight": 2, "name": "x"},
    {"product": {"age": [{"sliding": 2}, {"permuted": "range", "seed": 1}], "code": {"sets": [[0], [0, 1]]}}},
    {"product": {"age": {"matrix": [[1, 0.5, 0, -1]]}}, "weights": [1]},
    {"pairwise": "abs", "attributes": ["age", "code"]},
    {"dense": [[1, 0, 0, 2]], "attributes": ["age"], "by": {"sex": "identity"}},
    {"any": {"age": {"ranges": [[1, 2]]}, "sex": {"sets": [["female"]]}}},
    {
        "cells": [[{"sex": "female", "age": {"range": [0, 1]}}, {"sex": "male", "age": [3]}]],
        "by": {"code": "total"},
    },
    {"quantile": {"age": [0.25, 0.5]}, "by": ["sex"], "where": {"code": {"range": [0, 1]}}},
    {"mean": "age", "by": {"code": {"sets": [[0], [1]]}}},
    {"share": {"marginals": [["sex", "code"]]}, "of": ["sex"]},
    {"combination": [[[1, -1], {"marginals": [["sex"]]}], [2, {"marginals": 0}]]},
)


def _queries() -> list[bytes]:
    flow = ["product: {age: {ranges: [[0, 4]]}}", "marginals: [[age]]", "{kway: 1, predicates: prefix}"]
    texts = [b"\0" + text.encode() for text in (*documents.ENTRIES, *flow)]
    texts += [b"\1" + text.encode() for text in flow]
    return texts + [bytes([128, place]) for place in range(len(_ANSWERED))]


@target(_queries)
def query(folder: Path) -> Case:
    """The text that the command ``answer`` takes, on releases of both noises: every answer is finite."""
    documents.write_arrays(folder)
    releases = [mdp.load_release(path) for path in documents.released(folder)]
    os.chdir(folder)

    def case(data: bytes) -> None:
        release = releases[data[0] % len(releases) if data else 0]
        text = data[1:].decode("utf-8", "surrogateescape")
        if data[:1] >= b"\x80":
            release, recipe = releases[0], Recipe(data[1:])
            text = json.dumps(mutated(recipe.choice(_ANSWERED), recipe, documents.keys()))
        for asked, base in entries_of(text):
            answers = release.answer(asked, base_path=base)
            if set(asked).isdisjoint(statistics()):  # where an end that there is not is null
                finite_answers(answers)

    return case


# Ledgers: any bytes, and SQLite files with changed rows and settings, the chain of digests made right.

_TERMS = ("dataset", "total", "rho", "mu", "epsilon", "delta", "neighbours", "unit", "records", "id")
_COLUMNS = (
    "number", "id", "time", "state", "noise", "cost", "budget", "version", "release", "measurement", "digest",
)  # fmt: skip
_PRAGMAS = (
    "user_version = 2", "user_version = -1", "application_id = 0", "auto_vacuum = 1", "encoding = 'UTF-16'",
    "journal_mode = WAL", "page_size = 512", "legacy_alter_table = ON", "schema_version = 7",
)  # fmt: skip
_ODD = (
    None, -1, 0, 1, 2**63 - 1, 0.5, b"\0\xff", "", "x", "0" * 32, "0" * 64, "1/0", "1/3", "9" * 5000, "1e400",
    "-1/2", "reserved", "measured", "released", "abandoned", "gaussian", "laplace", "{}", "[" * 5000,
    '{"rho": "1/2"}', '{"neighbours": "add_remove", "rho": "1e999999999"}', "x" * 20_000, "\ud7ff", "NaN",
)  # fmt: skip


@cache
def _ledgers() -> tuple[bytes, ...]:
    """Return ledgers of three kinds of totals, each with debits of its noise; the same in every process."""
    made = []
    clock = mock.patch.multiple(ledgers, now=lambda: "2026-01-01T00:00:00+00:00", time=mock.Mock(time_ns=int))
    process = mock.patch("os.getpid", int)
    replaced = mdp.Budget(epsilon=2, neighbours="replace"), mdp.Budget(epsilon=0.5, neighbours="replace")
    with tempfile.TemporaryDirectory() as folder, clock, process:
        for place, (total, noise, spent) in enumerate(
            (
                (mdp.Budget(rho=1), GAUSSIAN, mdp.Budget(rho=0.25)),
                (replaced[0], LAPLACE, replaced[1]),
                (mdp.Budget(epsilon=1, delta=1e-6), GAUSSIAN, mdp.Budget(rho=0.001)),
            )
        ):
            made_ledger = mdp.Ledger.create(f"{folder}/{place}", "people", total)
            for _ in range(2):
                made_ledger.reserve(noise.cost(spent), spent, "/out")
            made.append(Path(folder, str(place)).read_bytes())
    return tuple(made)


@target(lambda: as_they_are(3, [bytes([place]) + file for place, file in enumerate(_ledgers())]))
def ledger(folder: Path) -> Case:
    """A ledger is opened and asked everything; what it says of debits never changes for the better."""
    path = folder / "people.ledger"
    originals: list[tuple[str, ...]] = []
    for file in _ledgers():
        path.write_bytes(file)
        originals.append(tuple(own.digest for own in mdp.Ledger.open(path).entries))

    def case(data: bytes) -> None:
        recipe = Recipe(data)
        raw = recipe.below(256) == 0
        place = recipe.below(3)
        for ending in ("", "-journal", "-wal", "-shm"):
            Path(f"{path}{ending}").unlink(missing_ok=True)
        path.write_bytes(recipe.rest() if raw else _ledgers()[place])
        if not raw and recipe.left:
            with suppress(sqlite3.Error, TypeError, ValueError, RecursionError):
                _change(path, recipe)
        opened = mdp.Ledger.open(path)
        entries = opened.entries
        debits = [(own.cost, own.budget) for own in entries]
        account, fewer = Account.of(opened.total, debits), Account.of(opened.total, debits[:-1])
        digests = tuple(own.digest for own in entries)
        known = any(digests == original[: len(digests)] for original in originals)
        hold(known or not raw, "changed bytes that make other debits")
        for less, more in zip(fewer.sums, account.sums, strict=True):
            rises = less is None or more is None or 0 <= less <= more
            hold(rises, "a debit that lowers what was spent")
        json.dumps([None if budget is None else budget.as_dict() for budget in (account.spent, account.left)])
        if crc32(data) % 4 == 0:
            small = mdp.Budget(rho=1e-9, neighbours=opened.total.neighbours, unit=opened.total.unit)
            opened.reserve(GAUSSIAN.cost(small), small)
            hold(len(opened.entries) == len(entries) + 1, "a debit that was lost")

    return case


def _change(path: Path, recipe: Recipe) -> None:
    """Change rows, terms or settings of a ledger, most often with digests that fit."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for pragma in ("journal_mode = MEMORY", "synchronous = OFF", "ignore_check_constraints = ON"):
            connection.execute(f"PRAGMA {pragma}")
        triggers = connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall()
        for (name,) in triggers:
            connection.execute(f"DROP TRIGGER {name}")
        for _ in range(1 + recipe.below(3)):
            kind = recipe.below(8)
            if kind < 2:
                column, table = ("budget", "entries") if kind else ("terms", "ledger")
                query = f"SELECT rowid, {column} FROM {table} LIMIT 1 OFFSET {kind * recipe.below(2)}"  # noqa: S608
                place, written = connection.execute(query).fetchone()
                changed = json.dumps(mutated(json.loads(written), recipe, _TERMS, 2))
                update = f"UPDATE {table} SET {column} = ? WHERE rowid = ?"  # noqa: S608
                connection.execute(update, (changed, place))
            elif kind == 2:
                connection.execute("DELETE FROM entries WHERE number = ?", (1 + recipe.below(2),))
            elif kind == 3:
                connection.execute(f"PRAGMA {recipe.choice(_PRAGMAS)}")
            elif kind == 4:
                connection.execute(f"CREATE TABLE IF NOT EXISTS {recipe.choice(('other', 'entries2'))} (a)")
            else:
                values = (recipe.choice(_ODD), 1 + recipe.below(2))
                column = recipe.choice(_COLUMNS)
                connection.execute(f"UPDATE entries SET {column} = ? WHERE number = ?", values)  # noqa: S608
        if recipe.below(8) != 1:
            _chain(connection)
        for statement in TABLES:
            if statement.startswith("CREATE TRIGGER") and recipe.below(16) != 1:
                connection.execute(statement)


def _chain(connection: sqlite3.Connection) -> None:
    """Make the digests of all entries right."""
    first = connection.execute("SELECT terms, created, version FROM ledger").fetchone()
    digest = ledgers.chained("", *first)
    query = "SELECT number, id, time, noise, cost, budget, version, release FROM entries ORDER BY number"
    for row in connection.execute(query).fetchall():
        with suppress(TypeError):
            digest = ledgers.chained(digest, *row)
        connection.execute("UPDATE entries SET digest = ? WHERE number IS ?", (digest, row[0]))
