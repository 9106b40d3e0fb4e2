# mypy: disable-error-code="no-any-return"
"""What is saved in the tests of archives, and archives that are altered with their checksums made right."""

import hashlib
import io
import json
import zipfile
from collections.abc import Callable
from fractions import Fraction
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

import matrixdp as mdp
from matrixdp.domain import OutOfDomain
from matrixdp.exact import IntegerMatrix, MergedMatrix, RowTrees, TreeMatrix
from matrixdp.measure.measurement import Measurement, measure
from matrixdp.noise import GAUSSIAN, LAPLACE
from matrixdp.plans import Block, Direct, Part, Plan
from matrixdp.selection.auto import select
from matrixdp.selection.searches.marginals import pooled_products
from matrixdp.selection.selection import Selection
from matrixdp.sources import open_source
from matrixdp.storage import formats
from matrixdp.storage.archive import ArchiveReader, ArchiveWriter

KIND = "matrixdp thing"
AGES, HOURS = {"min": 0, "max": 9}, {"min": 0, "max": 8, "bins": 4}
DOMAIN = mdp.Domain(
    {"sex": ["female", "male"], "age": AGES, "income": {"edges": [0, 10, 25]}, "hours": HOURS, "code": 3}
)
TABLE = {"sex": ["male"] * 2, "age": [3, 99], "income": [1, 12], "hours": [0, 8], "code": [0, 2]}
WORKLOAD = mdp.Workload(
    DOMAIN,
    mdp.marginals([0, 1]),
    mdp.kway(2, {"numeric": "prefix"}, attributes=["sex", "age", "code"], name="pairs"),
    mdp.product({"age": {"ranges": [[0, 4], [5, 9]]}, "sex": {"sets": [["female"], ["female", "male"]]}}),
    mdp.product({"code": {"matrix": [[1, 0.5, 0], [0, 0, 1]]}}, weights=[1, 2]),
    mdp.pairwise("abs", attributes=["age", "hours"]),
    mdp.dense(np.eye(6), attributes=["sex", "code"], weight=3),
)
Change = Callable[[dict[str, Any], dict[str, bytes]], object]


@cache
def selection() -> Selection:
    return select(WORKLOAD, mechanism="querysmasher", noise=GAUSSIAN)


@cache
def measurement() -> Measurement:
    rule, budget = OutOfDomain({"age": 9}), mdp.Budget(epsilon=Fraction(1, 3), delta=1e-6)
    return measure(selection().plan, open_source(TABLE), budget, out_of_domain=rule, max_records=1000)


def saved_array(folder: Path, version: int = 1) -> Path:
    with ArchiveWriter(folder / "x.mdp") as archive:
        name = archive.add(np.arange(6.0).reshape(2, 3))
        archive.close({"format": KIND, "format_version": version, "array": name})
    return folder / "x.mdp"


def saved_strategy(folder: Path) -> Path:
    formats.save_strategy(folder / "s.mdp", selection())
    return folder / "s.mdp"


def saved_measurement(folder: Path) -> Path:
    formats.save_measurement(folder / "m.mdp", measurement(), WORKLOAD)
    return folder / "m.mdp"


def altered(path: Path, change: Change, sums: bool = True) -> Path:
    """Change the header and the members of an archive, and every checksum that follows."""
    with zipfile.ZipFile(path) as source:
        members = {name: source.read(name) for name in source.namelist()}
    before, header = dict(members), json.loads(members["header.json"])
    change(header, members)
    for name in set(members) & set(header.get("checksums", ())):
        if sums and members[name] != before.get(name):
            header["checksums"][name] = hashlib.sha256(members[name]).hexdigest()
    if members["header.json"] == before["header.json"]:
        members["header.json"] = json.dumps(header).encode()
    if members.get("header.sha256") == before["header.sha256"]:
        members["header.sha256"] = hashlib.sha256(members["header.json"]).hexdigest().encode()
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as out:
        for name, content in members.items():
            out.writestr(name, content)
    return path


def set_in(*path: Any) -> Change:
    *steps, last, value = path

    def change(header: Any, _members: object) -> None:
        for step in steps:
            header = header[step]
        header[last] = value

    return change


def npy(array: np.ndarray, version: tuple[int, int] = (1, 0)) -> bytes:
    stream = io.BytesIO()
    np.lib.format.write_array(stream, array, version=version)
    return stream.getvalue()


def read_array(path: Path, shape: tuple[int, ...] | None = None) -> np.ndarray:
    with ArchiveReader(path, KIND, 1) as archive:
        return archive.array(archive.header["array"], shape)


def _reread(folder: Path, write: Any, change: Callable[[Any], object], read: Any) -> Any:
    with ArchiveWriter(folder / "x.mdp") as archive:
        form = write(archive)
        change(form)
        archive.close({"format": KIND, "format_version": 1, "form": form})
    with ArchiveReader(folder / "x.mdp", KIND, 1) as archive:
        return read(archive.header["form"], archive)


def reread(plan: Plan, folder: Path, change: Callable[[Any], object] = lambda form: None) -> Plan:
    """Write a plan, change its form in the header, and read it back."""

    def read(form: Any, archive: ArchiveReader) -> Plan:
        return formats.read_plan(form, plan.domain, archive)

    return _reread(folder, partial(formats.write_plan, plan), change, read)


def reread_workload(
    workload: mdp.Workload, folder: Path, change: Callable[[Any], object] = lambda form: None
) -> mdp.Workload:
    return _reread(folder, partial(formats.write_workload, workload), change, formats.read_workload)


@cache
def merged() -> Plan:
    matrix = MergedMatrix(
        IntegerMatrix(np.array([[3, 1], [0, 2]]), np.array([[0.6, 0.8]])), (np.array([0, 1, 0]),)
    )
    part = Part(("a",), (Block(("a",), matrix),), 20.0)
    return Direct(mdp.Domain({"a": 3}), (part,), GAUSSIAN)


@cache
def within() -> Plan:
    matrix = MergedMatrix(IntegerMatrix(np.array([[3, 1], [0, 2]])), (np.array([0, 1, 0]),), np.array([7, 0]))
    return Direct(mdp.Domain({"a": 3}), (Part(("a",), (Block(("a",), matrix),), 200.0),), GAUSSIAN)


@cache
def tree() -> Plan:
    workload = mdp.Workload(mdp.Domain({"a": range(5), "b": range(3)}), mdp.product(a="prefix", b="range"))
    return select(workload, mechanism="quadtree", noise=LAPLACE).plan


@cache
def levels() -> Plan:
    nested, across = (np.array([0, 0, 0]), np.array([0, 1, 0])), (np.array([0, 1, 0]),)
    tree = TreeMatrix(nested, (np.array([3]), np.array([1, 2])), across, (np.array([0, 2]),))
    return Direct(mdp.Domain({"a": 3}), (Part(("a",), (Block(("a",), tree),), 20.0),), GAUSSIAN)


@cache
def row_trees() -> Plan:
    nested, entries = (np.array([0, 0]), np.array([0, 1])), np.array([[1, 1, 1], [0, 2, -1]])
    trees = RowTrees(nested, (np.array([[3, 1]]), np.array([[1, 0], [2, 0]])), entries)
    part = Part(("a", "b"), (Block(("a", "b"), trees),), 200.0)
    return Direct(mdp.Domain({"a": 2, "b": 3}), (part,), GAUSSIAN)


@cache
def pooled() -> Plan:
    higher = np.array([[1, 0, 0], [1, 1, 0], [1, 1, 1], [0, 0, 1]])
    bases: dict[str, np.ndarray | None] = {"a": higher / 3.0, "b": higher[::-1] / 3.0, "c": None}
    precisions: dict[tuple[str, ...], float] = {("a", "b"): 0.25, ("a", "c"): 0.25}
    return pooled_products(mdp.Domain({"a": 3, "b": 3, "c": 2}), bases, precisions, LAPLACE)
