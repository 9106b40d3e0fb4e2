"""Parquet files: any bytes, and valid ones of every type with changed bytes; one in 64 is counted."""

from collections.abc import Iterable
from io import BytesIO
from pathlib import Path
from typing import Any
from zlib import crc32

import pyarrow as pa
import pyarrow.parquet as pq

from matrixdp.domain import OutOfDomain
from matrixdp.errors import MatrixDPError
from matrixdp.sources import open_source
from matrixdp.sources.base import guarded
from matrixdp.sources.columns import read_parquet
from matrixdp.specification import load_specification
from tests.fuzz.oracle import Case, Finding
from tests.fuzz.recipe import Recipe
from tests.fuzz.targets.csv_table import CANARY

arrow: Any = pa
parquet: Any = pq


def _files() -> list[bytes]:
    texts = arrow.table({"sex": ["male", CANARY, None], "age": ["3", "x", "9"], "code": [CANARY, "1", "2"]})
    numbers = arrow.table(
        {"sex": [True, False, None], "age": [1, 2**40, -1], "code": [0.5, 1.0, float("nan")]}
    )
    listed = texts.set_column(0, "sex", texts.column("sex").dictionary_encode())
    files = []
    for table, options in (
        (texts, {"compression": "none"}),
        (numbers, {"compression": "none"}),
        (listed, {"compression": "none", "use_dictionary": True}),
        (texts, {"compression": "zstd", "data_page_version": "2.0"}),
        (arrow.table({"sex": [[1], [2]], "age": [{"a": 1}, None], "code": [b"\xff", CANARY.encode()]}), {}),
    ):
        sink = BytesIO()
        parquet.write_table(table, sink, **options)
        files.append(sink.getvalue())
    return files


def seeds(folder: Path) -> Iterable[bytes]:
    """Return the files, and recipes that leave each as it is."""
    return [*(b"\0" + file for file in _files()), *(bytes([1, place]) for place in range(len(_files())))]


def opened(folder: Path) -> Case:
    """Return what counts one: no message quotes the table."""
    specification = (
        "domain: {sex: [male, 'true'], age: {min: 0, max: 9}, code: 3}\nworkload: [marginals: [1]]\n"
    )
    domain = load_specification(specification).domain
    replaced = OutOfDomain(dict.fromkeys(domain.names, 0))
    files, path = _files(), folder / "t.parquet"

    def case(data: bytes) -> None:
        recipe = Recipe(data)
        if recipe.below(256) == 0:
            content = bytearray(recipe.rest())
        else:
            content = bytearray(recipe.choice(files))
            while recipe.left:
                place = recipe.below(len(content))
                content[place] = recipe.below(256)
        path.write_bytes(bytes(content))
        try:
            if crc32(data) % 64 == 0:
                (_, counts), *_ = open_source(path).marginals(domain, [("sex", "age")], replaced)
                if counts.min() < 0:
                    raise Finding("a count below 0")
            else:
                _, streams = guarded(lambda: read_parquet([str(path)], domain.names), "read")
                for stream in streams:
                    guarded(stream.read_all, "read")
        except MatrixDPError as error:
            if CANARY in str(error) or "canary" in str(error):
                raise Finding(f"a message that quotes the table: {error}") from error
            raise

    return case
