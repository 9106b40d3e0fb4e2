"""No exact count is told, and what a release says and writes depends on the table through noise alone."""

import re
import struct
import sys
import time
from datetime import datetime, tzinfo
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from matrixdp.measure import noisy_answers
from tests.cli.canary.search import everything
from tests.cli.canary.world import World

SPECIFICATION = """data: '{path}'
domain: {{sex: [female, male], age: {{min: 0, max: 9}}}}
workload: [marginals: [0, 1, 2]]
privacy: {{rho: {rho}}}
"""


def people(males: int, females: int, young: int) -> Any:
    """Return a table of this many people; the first are males, and the first are young."""
    total = males + females
    sex = pa.DictionaryArray.from_arrays(
        np.repeat(np.array([0, 1], np.int8), [males, females]), ["male", "female"]
    )
    age = np.repeat(np.array([3, 7], np.int8), [young, total - young])
    return pa.table({"sex": sex, "age": age})


def test_no_exact_count_is_told(world: World):
    """Noise of a standard deviation above 10^7: that a figure is an exact count by chance is below 10^-4."""
    males, females, young = 1_357_913, 1_024_681, 1_777_777
    counts = (males, females, young, males + females, males + females - young, young - males)
    pq.write_table(people(males, females, young), world.tables / "t.parquet")
    text = SPECIFICATION.format(path=world.tables / "t.parquet", rho=1e-16)
    (world.work / "s.yaml").write_text(text)
    world.run("release", "s.yaml", "--mechanism", "identity", "--out", "out", "--csv")
    said = [world.told]
    for form in ((), ("--json",), ("--csv",)):
        world.run("answer", "out", "marginals: [0, 1, 2]", *form)
        said.append(world.told)
    contents = [("what was said", "\n".join(said).encode()), *everything(world.searched)]
    assert len(contents) > 5
    for name, content in contents:
        for count in counts:
            digits = f"{count:,}".replace(",", "[,_ ]?").encode()
            assert not re.search(rb"(?<![\w.,])%s(?![\w,])" % digits, content), (name, count)
            for packed in ("<q", ">q", "<d", ">d"):
                assert struct.pack(packed, count) not in content, (name, count)


class Frozen(datetime):
    """A clock that stands still."""

    @classmethod
    def now(cls, tz: tzinfo | None = None) -> Any:
        return datetime(2026, 1, 2, tzinfo=tz)


def test_nothing_but_noise_tells_tables_apart(world: World, monkeypatch: pytest.MonkeyPatch):
    """With noisy answers that are always zero, tables give the same bytes: one record more, or a million.

    The last table takes three seconds longer and a hundred megabytes more, which nothing may tell.
    """
    real = noisy_answers.noisy
    burden: list[np.ndarray] = []

    def zeros(*given: Any, **named: Any) -> Any:
        found = real(*given, **named) * 0
        if burden:
            time.sleep(3.0 / len(burden))
            burden.append(np.ones(10**7))
        return found

    monkeypatch.setattr(noisy_answers, "noisy", zeros)
    for module in [module for name, module in sys.modules.items() if name.startswith("matrixdp")]:
        if getattr(module, "datetime", None) is datetime:
            monkeypatch.setattr(module, "datetime", Frozen)
    (world.work / "s.yaml").write_text(SPECIFICATION.format(path=world.tables / "t.parquet", rho=0.5))
    seen = []
    for table in (people(20, 20, 20), people(20, 21, 20), people(0, 0, 0), people(600_000, 400_000, 9)):
        if table.num_rows > 100:
            burden.append(np.ones(10**7))
        pq.write_table(table, world.tables / "t.parquet")
        world.run("release", "s.yaml", "--mechanism", "identity", "--out", "out", "--csv", "--force")
        released = world.told
        world.run("answer", "out", "marginals: [0, 1]")
        files = {name: content for name, content in everything(world.searched) if ".pytest" not in name}
        seen.append((released, world.told, files))
    for other in seen[1:]:
        assert other == seen[0]
    assert len(burden) > 1
    assert {Path(name).name for name in seen[0][2]} >= {"release.json", "answers.parquet", "measurement.mdp"}
