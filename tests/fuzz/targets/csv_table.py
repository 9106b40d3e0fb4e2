"""CSV files of any bytes: all are read, and one in 64 is counted too, by the rules of a domain."""

from pathlib import Path
from zlib import crc32

from matrixdp.domain import OutOfDomain
from matrixdp.sources import open_source
from matrixdp.sources.base import guarded
from matrixdp.sources.csv import read_texts
from matrixdp.specification import load_specification
from tests.fuzz.documents import RELEASED
from tests.fuzz.forms import CANARY, unquoted
from tests.fuzz.oracle import Case, Finding


def seeds() -> list[bytes]:
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


def opened(folder: Path) -> Case:
    """Return what counts one: no count is above the number of lines, and no message quotes the table."""
    domain = load_specification(RELEASED).domain
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
            _, (stream,) = guarded(lambda: read_texts([str(path)], domain.names, quoted), "read")
            records = guarded(stream.read_all, "read").num_rows
        lines = data.count(b"\n") + 1
        if way != 3 and not 0 <= records <= lines:
            raise Finding(f"{records} records in {lines} lines")

    return unquoted(case)
