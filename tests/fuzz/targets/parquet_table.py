"""Parquet files: any bytes, and valid ones of every type with changed bytes; one in 64 is counted."""

import math
from io import BytesIO
from pathlib import Path
from zlib import crc32

import pyarrow as pa
import pyarrow.parquet as pq

from matrixdp.domain import Domain, OutOfDomain
from matrixdp.sources import open_source
from matrixdp.sources.base import guarded
from matrixdp.sources.columns import read_parquet
from tests.fuzz.forms import CANARY, as_they_are, overwritten, raw_or_changed, unquoted
from tests.fuzz.oracle import Case, Finding


def _files() -> list[bytes]:
    texts = pa.table({"sex": ["male", CANARY, None], "age": ["3", "x", "9"], "code": [CANARY, "1", "2"]})
    numbers = pa.table({"sex": [True, False, None], "age": [1, 2**40, -1], "code": [0.5, 1.0, math.nan]})
    listed = texts.set_column(0, "sex", texts.column("sex").dictionary_encode())
    files = []
    for table, options in (
        (texts, {"compression": "none"}),
        (numbers, {"compression": "none"}),
        (listed, {"compression": "none", "use_dictionary": True}),
        (texts, {"compression": "zstd", "data_page_version": "2.0"}),
        (pa.table({"sex": [[1], [2]], "age": [{"a": 1}, None], "code": [b"\xff", CANARY.encode()]}), {}),
    ):
        sink = BytesIO()
        pq.write_table(table, sink, **options)
        files.append(sink.getvalue())
    return files


def seeds() -> list[bytes]:
    """Return the files, and recipes that leave each as it is."""
    return as_they_are(len(_files()), _files())


def opened(folder: Path) -> Case:
    """Return what counts one: no message quotes the table."""
    domain = Domain({"sex": ["male", "true"], "age": {"min": 0, "max": 9}, "code": 3})
    replaced = OutOfDomain(dict.fromkeys(domain.names, 0))
    files, path = _files(), folder / "t.parquet"

    def case(data: bytes) -> None:
        path.write_bytes(
            raw_or_changed(data, files, lambda file, recipe: overwritten(file, recipe, len(data)))
        )
        if crc32(data) % 64 == 0:
            (_, counts), *_ = open_source(path).marginals(domain, [("sex", "age")], replaced)
            if counts.min() < 0:
                raise Finding("a count below 0")
        else:
            _, streams = guarded(lambda: read_parquet([str(path)], domain.names), "read")
            for stream in streams:
                guarded(stream.read_all, "read")

    return unquoted(case)
