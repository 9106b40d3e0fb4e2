"""No value of a table, and no name of a column that is not asked for, leaves through any reader."""

import base64
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import matrixdp as mdp
from matrixdp.specification import load_specification
from tests.cli.canary.search import DATES, NUMBERS, STEM, TEXTS, found_in
from tests.cli.canary.tables import FRAMES, READERS, table, texts
from tests.cli.canary.world import SPECIFICATION, World

CSV = ("csv", "csv with semicolons", "csv with quoted line ends", "tsv")


@pytest.fixture(scope="module")
def strategy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("strategy") / "strategy.mdp"
    mdp.select(load_specification(SPECIFICATION).workload, budget=mdp.Budget(rho=0.5)).save(path)
    return path


def changed(change: Callable[[bytes], bytes]) -> Callable[[Path], None]:
    def apply(path: Path) -> None:
        own = next(iter(sorted(path.parent.glob(path.name))))
        own.write_bytes(change(own.read_bytes()))

    return apply


DAMAGES: dict[str, Callable[[Path], None]] = {
    "cut short": changed(lambda content: content[: len(content) * 3 // 5]),
    "bytes changed": changed(
        lambda content: content[: len(content) // 3] + os.urandom(40) + content[len(content) // 3 + 40 :]
    ),
    "no header": changed(lambda content: content.split(b"\n", 1)[-1]),
    "a quote that stays open": changed(lambda content: b'"' + content),
    "utf-16": changed(lambda content: content.decode("utf-8", "replace").encode("utf-16")),
}


def test_canaries_are_found_in_every_disguise():
    for plain in (*TEXTS.values(), *map(str, NUMBERS.values()), *map(str, DATES.values())):
        raw = plain.encode()
        for disguise in (raw, plain.encode("utf-16"), plain.upper().encode(), plain[::-1].encode()):
            assert found_in(b"x" * 99 + disguise + b"y"), disguise
    for shift in range(3):
        assert found_in(base64.b64encode(b"." * shift + TEXTS["out of domain"].encode() + b"!!"))
    assert found_in(TEXTS["out of domain"].encode().hex().encode())
    assert found_in(int(NUMBERS["out of domain"]).to_bytes(8, "little"))
    assert found_in(STEM.encode())
    assert not found_in(SPECIFICATION.encode())


@pytest.mark.parametrize("reader", READERS)
def test_readers(reader: str, world: World, strategy: Path):
    write, line = READERS[reader]
    as_text = reader.endswith("csv") or reader in CSV
    given = texts(table()) if as_text else table()
    release = ("release", "s.yaml", "--strategy", strategy)

    def specified(path: Path) -> None:
        (world.work / "s.yaml").write_text(f"data: '{path}'\n{line}\n{SPECIFICATION}")

    specified(write(given, world.tables))
    world.run(*release, "--out", "out", "--csv")
    clear(world)
    specified(write(given, world.tables))
    unit = "unit: {id: person, max_records: 2}\nprivacy:"
    own = (world.work / "s.yaml").read_text().replace("privacy:", unit)
    (world.work / "s.yaml").write_text(own)
    status = 2 if reader == "view" else 0
    world.run("release", "s.yaml", "--mechanism", "identity", "--out", "people", may=(status,))
    clear(world)
    specified(write(given.drop_columns(["day"]), world.tables))
    world.run(*release, "--out", "missing", may=(2,))
    assert "day" in world.told
    if not as_text:
        clear(world)
        nested = [[value] for value in given["sex"].to_pylist()]
        specified(write(given.set_column(1, "age", pa.array(nested)), world.tables))
        world.run(*release, "--out", "nested", may=(0, 2))
    for name, damage in DAMAGES.items():
        clear(world)
        path = write(given, world.tables)
        damage(path)
        specified(path)
        world.run(*release, "--out", name.replace(" ", "-"), may=(0, 2))


def clear(world: World) -> None:
    for path in world.tables.glob("*"):
        if STEM not in path.name.lower():
            path.unlink()


@pytest.mark.parametrize("frame", FRAMES)
def test_frames(frame: str, world: World, strategy: Path):
    chosen = mdp.Strategy.load(strategy)
    make = FRAMES[frame]

    def measured(given: Any) -> None:
        release = chosen.measure(make(given), mdp.Budget(rho=0.5)).reconstruct()
        mdp.save_release(release, world.work / "out", force=True)

    assert world.call(lambda: measured(table()), "a table in memory") is None
    assert world.call(lambda: measured(texts(table())), "texts in memory") is None
    missing = world.call(lambda: measured(table().drop_columns(["day"])), "a missing column")
    assert isinstance(missing, mdp.MatrixDPError)
    nested = table().set_column(1, "age", pa.array([[v] for v in table()["sex"].to_pylist()]))
    world.call(lambda: measured(nested), "lists")
