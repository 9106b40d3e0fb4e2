# mypy: disable-error-code="no-any-return"
"""What archives refuse: files that are damaged or altered, and what cannot be saved."""

import io
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import reduce
from operator import getitem
from pathlib import Path
from typing import Any, cast

import numpy as np

import matrixdp as mdp
from matrixdp.exact import IdentityMatrix, MeasuredMatrix
from matrixdp.noise import GAUSSIAN
from matrixdp.plans import Block, Direct
from matrixdp.storage.archive import ArchiveReader, ArchiveWriter
from matrixdp.storage.formats import load_measurement, load_strategy, write_plan, write_workload
from tests.refusals import Refusal, numbered
from tests.storage import archives
from tests.storage.archives import Change, altered, npy, reread, reread_workload, set_in

Header = dict[str, Any]
Members = dict[str, bytes]


def content(array: bytes) -> Change:
    """Put another array in."""
    return lambda header, members: members.update({header["array"]: array})


def text(header: bytes) -> Change:
    return lambda _, members: members.update({"header.json": header})


def headed(text: bytes) -> bytes:
    """Return a NumPy file whose header is a text."""
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text


def given_twice(_: Header, members: Members) -> None:
    members["header.json"] = b'{"private": false, "private": true,' + members["header.json"][1:]


def unnamed(header: Header, members: Members) -> None:
    members["arrays/1.npy"] = npy(np.eye(2))
    header["checksums"]["arrays/1.npy"] = ""


_CONTENTS = [
    b"no array at all",
    *(headed(text) for text in (b"[[", b"-" * 9000 + b"1", b"+".join([b"1"] * 4500))),
    npy(np.arange(6.0), (2, 0)),
    npy(np.arange(6.0))[:-1],
    npy(np.arange(6.0)) + b"0",
    *(npy(array) for array in (np.arange(6) * 1j, np.eye(3, 2).T, np.arange(6.0))),
]
_ARCHIVES: list[Change] = [
    *(text(header) for header in (b"{", b"[" * 100_000, b"[]")),
    given_twice,
    lambda _, members: members.update({"header.sha256": b"0" * 65}),
    lambda _, members: members.update({"header.sha256": b"0" * 64}),
    lambda _, members: members.pop("header.sha256"),
    lambda header, members: members.pop(header["array"]),
    lambda _, members: members.update(table=b"sex,age"),
    unnamed,
    *(set_in("array", name) for name in ("absent", None, 3, ["a0.npy"])),
    *map(content, _CONTENTS),
]


def bomb(folder: Path) -> None:
    with zipfile.ZipFile(folder / "bomb.mdp", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("header.json", b"0" * 10_000_000)
        archive.writestr("header.sha256", "0")
    load_strategy(folder / "bomb.mdp")


def claiming_more(folder: Path) -> None:
    path = archives.saved_array(folder)
    content = bytearray(path.read_bytes())
    place = content.rindex(b"PK\x01\x02", 0, content.rindex(b"header.json"))
    for field in (20, 24):  # the sizes in the directory of the zip file
        content[place + field : place + field + 4] = (1 << 20).to_bytes(4, "little")
    path.write_bytes(bytes(content))
    archives.read_array(path)


def no_zip_file(folder: Path) -> None:
    (folder / "text.mdp").write_text("not a zip file")
    load_strategy(folder / "text.mdp")


def another_version(folder: Path, version: int) -> None:
    ArchiveReader(archives.saved_array(folder, 3), archives.KIND, version)


def pieces_that_are_missing(folder: Path) -> None:
    with ArchiveWriter(folder / "x.mdp") as archive:
        archive.add_pieces([np.zeros(2)], (3,), np.dtype(np.float64))


def an_object(folder: Path) -> None:
    with ArchiveWriter(folder / "x.mdp") as archive:
        archive.add(np.array([object()]))


def a_matrix_of_ones_own(folder: Path) -> None:
    methods = {name: getattr(IdentityMatrix, name) for name in MeasuredMatrix.__abstractmethods__}
    own = type("Own", (MeasuredMatrix,), methods | {"size": 2})()
    with ArchiveWriter(folder / "x.mdp") as archive:
        write_plan(Direct.of(mdp.Domain({"code": 2}), [Block(("code",), own)], GAUSSIAN), archive)


class Own:
    """An entry that is none of the language."""

    def expand(self, domain: mdp.Domain) -> list[Any]:
        return mdp.kway(1, "total").expand(domain)

    def to_spec(self) -> dict[str, object]:
        return {}


def an_entry_of_ones_own(folder: Path) -> None:
    with ArchiveWriter(folder / "x.mdp") as archive:
        write_workload(mdp.Workload(mdp.Domain({"sex": 2}), cast("Any", Own())), archive)


_FILES: list[tuple[str, str, Callable[[Path], Any]]] = [
    ("file-missing", "", lambda folder: load_strategy(folder / "absent.mdp")),
    ("damaged-file", "", lambda folder: load_measurement(archives.saved_strategy(folder))),
    ("damaged-file", "", no_zip_file),
    ("damaged-file", "", bomb),
    ("damaged-file", "", claiming_more),
    ("other-version", "", lambda folder: another_version(folder, 2)),
    ("other-version", "", lambda folder: another_version(folder, 4)),
    ("no-place", "", lambda folder: ArchiveWriter(folder / "absent" / "x.mdp")),
    ("wrong-size", "", pieces_that_are_missing),
    ("not-supported", "", an_object),
    ("not-supported", "", a_matrix_of_ones_own),
    ("wrong-type", "workload[0]", an_entry_of_ones_own),
]


GONE = object()


def put_in(places: Mapping[str, tuple[Any, ...]]) -> Iterator[Change]:
    """Yield a change for each value at each place, or without what is there."""
    for place, values in places.items():
        steps = [int(step) if step.isdigit() else step for step in place.split("/")]
        yield from (set_in(*steps, value) if value is not GONE else drop(steps) for value in values)


def drop(steps: list[str | int]) -> Change:
    return lambda header, _: reduce(getitem, steps[:-1], header).pop(steps[-1])  # type: ignore[arg-type]


def integers(header: Header, key: str = "entries") -> str:
    return next(form[key] for form in header["plan"]["matrices"] if key in form)


def entries(array: Callable[[np.ndarray], np.ndarray], key: str = "entries") -> Change:
    """Put another array where the entries of a matrix are, or what it measures too weakly."""

    def change(header: Header, members: Members) -> None:
        form = next(form for form in header["plan"]["matrices"] if key in form)
        found = np.load(io.BytesIO(members[form["entries"]]), allow_pickle=False)
        members[form[key]] = npy(array(found))

    return change


def weights(array: np.ndarray) -> Change:
    return lambda header, members: members.update({header["plan"]["vectors"]["weights"]["sex"]: npy(array)})


def twice_read(header: Header, _members: Members) -> None:
    """Matrices that are alike are written once: two that share an array make two factors of it."""
    header["plan"]["matrices"] += [{"kind": "integer", "entries": integers(header)}] * 20


def named_by_a_part(header: Header, _members: Members) -> None:
    header["plan"]["parts"][1]["multipliers"] = integers(header)


def multiplied_by_weights(header: Header, _members: Members) -> None:
    header["plan"]["parts"][1]["multipliers"] = header["plan"]["vectors"]["weights"]["sex"]


def unmeasured(header: Header, _members: Members) -> None:
    header["plan"]["matrices"].append({"kind": "identity", "size": 3})


def halved(header: Header, _members: Members) -> None:
    for part in header["plan"]["parts"]:
        part["variance"] /= 2


#: Places of the header of a strategy, and what is put there.
_IN_STRATEGIES: dict[str, tuple[Any, ...]] = {
    "format": ("something",),
    "format_version": ("1",),
    "plan": (GONE,),
    "certificate/loss": (GONE, "small"),
    "certificate/scope": (["all"],),
    "mechanism": (5,),
    "reason": (None,),
    "neighbours": ("anyone",),
    "objective": ("least",),
    "plan/parts/0/variance": (-1.0, None),
    "plan/parts/1/blocks": (
        *([[positions, 0]] for positions in ([99], [0, 1], [-1], [True], [0, 0])),
        *([[[0], place]] for place in (-1, 99)),
    ),
    "plan/matrices/0/kind": ("unheard",),
    "plan/matrices/0": tuple(
        {"kind": kind, "size": size} for kind, size in (("identity", 0), ("centered", True), ("identity", 99))
    ),
    "plan/parts": ([],),
    "plan/kind": ("unheard", "direct"),
    "plan/vectors": ({},),
    "workload/entries": ([],),
    "workload/domain": ([["sex", "female"]],),
}
_STRATEGIES: list[Change] = [
    *put_in(_IN_STRATEGIES),
    twice_read,
    named_by_a_part,
    multiplied_by_weights,
    unmeasured,
    halved,
    entries(np.ones_like),
    entries(lambda found: np.eye(4)),
    entries(lambda found: np.zeros((1, found.shape[1] + 1)), "unsupported"),
    entries(lambda found: np.full((1, found.shape[1]), np.nan), "unsupported"),
    # the second is of numbers that would be widened
    *(weights(array) for array in (np.ones(2), np.ones(2, dtype=np.int32), np.array([1e300, 1 - 1e300]))),
]


def floats(header: Header, members: Members) -> None:
    found = np.load(io.BytesIO(members[header["values"]]), allow_pickle=False)
    members[header["values"]] = npy(found.astype(float))


_IN_MEASUREMENTS: dict[str, tuple[Any, ...]] = {
    "authorization/cost": ("1/0",),
    "authorization/time": (20260101,),
    "noise": ([["1", 0]],),
    "noise/0": ([1], ["1/0", 0], ["5000", 0]),
    "noise/0/0": ("1e999999999", "1" * 5000, 4096, "1/3"),
    "noise/0/1": (10**9, 900),
    "private": ("yes",),
    "max_records": (0,),
    "out_of_domain": ({"age": 99},),
    "values": (GONE,),
    "beyond": ([],),
    "assumptions": (
        [1],
        [["a", "b"]],
        [{"id": 1, "text": "A sentence."}],
        [{"id": "a"}],
        [{"id": "A", "text": ""}],
    ),
}
_MEASUREMENTS: list[Change] = [
    lambda header, _: header["authorization"].update(cost=_cost(1, 2)),
    lambda header, _: header["authorization"].update(cost=_cost(2, 1)),
    *put_in(_IN_MEASUREMENTS),
    floats,
]


def _cost(numerator: int, denominator: int) -> str:
    return str(archives.measurement().authorization.cost.value * numerator / denominator)


def another_matrix(form: Header) -> None:
    blocks = form["parts"][1]["blocks"]
    [place] = [i for i, matrix in enumerate(form["matrices"]) if "entries" in matrix and i != blocks[0][1]]
    blocks[0][1] = place


def no_total(form: Header) -> None:
    identity = next(i for i, matrix in enumerate(form["matrices"]) if matrix["kind"] == "identity")
    form["matrices"][identity] = {"kind": "centered", "size": 2}
    form["parts"][1]["variance"] *= 100  # of greater sensitivity


def twice(form: Header) -> None:
    form["parts"].append(form["parts"][0])
    for part in form["parts"]:
        part["variance"] *= 100


def of_levels(change: Callable[[Header], object]) -> Callable[[Path], object]:
    return lambda folder: reread(archives.levels(), folder, lambda form: change(form["matrices"][0]))


def of_row_trees(change: Callable[[Header], object]) -> Callable[[Path], object]:
    return lambda folder: reread(archives.row_trees(), folder, lambda form: change(form["matrices"][0]))


def of_merged(change: Callable[[Header], object]) -> Callable[[Path], object]:
    return lambda folder: reread(archives.merged(), folder, lambda form: change(form["matrices"][0]))


def of_the_tree(**changes: Any) -> Callable[[Path], object]:
    return lambda folder: reread(archives.tree(), folder, lambda form: form["matrices"][0].update(changes))


def of_pooled(change: Callable[[Header], object]) -> Callable[[Path], object]:
    return lambda folder: reread(archives.pooled(), folder, change)


_PLANS: list[Callable[[Path], Any]] = [
    of_merged(lambda form: form["matrix"].update(kind="deficient")),
    of_merged(lambda form: form.update(groups=[form["matrix"].pop("unsupported")])),
    of_merged(lambda form: form.update(groups=[])),
    of_merged(lambda form: form.update(within=form["matrix"].pop("unsupported"))),
    of_the_tree(sizes=[15]),
    of_the_tree(weights=[1, 1, 1, 1.5]),
    of_the_tree(branching=True),
    of_the_tree(sizes=[3, 5]),
    of_the_tree(sizes=[1, 15], weights=[1] * 5),
    of_pooled(another_matrix),
    of_pooled(no_total),
    of_pooled(twice),
    of_levels(lambda form: form["groups"].reverse()),  # a level that does not refine the one before
    of_levels(lambda form: form["weights"].reverse()),
    of_levels(lambda form: form["weights"].pop()),
    of_levels(lambda form: form.update(groups=[], weights=[])),
    of_levels(lambda form: form.pop("beside")),
    of_levels(lambda form: form["groups"].append(form["groups"][0])),
    of_levels(lambda form: form.update(weights=["none"])),
    of_levels(lambda form: form.pop("groups")),
    of_row_trees(lambda form: form["groups"].reverse()),
    of_row_trees(lambda form: form["weights"].pop()),
    of_row_trees(lambda form: form.update(groups=[], weights=[])),
    of_row_trees(lambda form: form.update(entries=form["groups"][0])),
    of_row_trees(lambda form: form.update(entries=form["weights"][0])),
    of_row_trees(lambda form: form.pop("entries")),
]


def naming_a_file(entry: Header) -> Callable[[Path], object]:
    workload = mdp.Workload(mdp.Domain({"sex": 2, "dense": 2}), mdp.kway(1, "total"))
    return lambda folder: reread_workload(workload, folder, lambda form: form.update(entries=[entry]))


_SECRET = {"matrix": "secret.npy"}
# A saved workload cannot name files.
_WORKLOADS: list[Header] = [
    {"dense": "secret.npy", "attributes": ["sex"]},
    {"marginals": [["sex"]], "weights": "secret.npy"},
    {"product": {"sex": _SECRET}},
    {"product": {"sex": ["total", {"permuted": _SECRET, "order": [1, 0]}]}},
    {"kway": 1, "attributes": ["sex"], "predicates": {"categorical": _SECRET}},
    {"any": {"sex": _SECRET, "dense": "identity"}},
    {"sql_file": "secret.sql"},
]


def _array(path: Path) -> object:
    return archives.read_array(path, (2, 3))


def damaged(kind: str, attempts: Iterable[Callable[[Path], Any]]) -> list[Refusal]:
    return numbered(kind, (("damaged-file", "", attempt) for attempt in attempts))


def changed(kind: str, changes: list[Change], save: Any, load: Any) -> list[Refusal]:
    def attempt(change: Change) -> Callable[[Path], object]:
        return lambda folder: load(altered(save(folder), change))

    return damaged(kind, map(attempt, changes))


REFUSALS: list[Refusal] = [
    *changed("archive", _ARCHIVES, archives.saved_array, _array),
    *numbered("file", _FILES),
    *changed("strategy", _STRATEGIES, archives.saved_strategy, load_strategy),
    *changed("measurement", _MEASUREMENTS, archives.saved_measurement, load_measurement),
    *damaged("plan", _PLANS),
    *damaged("workload", map(naming_a_file, _WORKLOADS)),
]
