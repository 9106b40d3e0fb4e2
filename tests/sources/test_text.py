"""CSV files by blocks: the same records whichever way a block is read."""

import csv
import io
import re

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from matrixdp.sources import headers, text
from matrixdp.sources.text import read_texts

PARTS = [
    b"a", b"b", b"", b"male", b"3", b" ", b"\xc3\xa9", b"\xff", b"\xe2\x82", b"\x00", b"\xef\xbb\xbf", b'"',
    b'"x"', b'"x ""y"""', b"\r", b"NA", b"x" * 300,
]  # fmt: skip
PLAIN = [b"a", b"", b'"x"', b'"x,y"', b'""', b"\xff"]
rows = st.one_of(
    st.lists(st.lists(st.sampled_from(PARTS), min_size=1, max_size=4), max_size=12),
    st.lists(st.lists(st.sampled_from(PLAIN), min_size=2, max_size=2), max_size=12),
)


def one_by_one(data, quoted_newlines):
    """The second and the first field of every record, as the documentation says it, with no haste."""
    told = re.sub(r"\r(?!\n)", " ", data.removeprefix(b"\xef\xbb\xbf").decode(errors="replace"))
    if quoted_newlines:
        records = list(csv.reader(io.StringIO(told, newline="\n")))
    else:
        lines = [line.removesuffix("\r") for line in told.split("\n")]
        records = [
            next(csv.reader([line])) if '"' in line else line.split(",") * (line > "") for line in lines
        ]
    return [tuple([*record, None, None][i] for i in (1, 0)) for record in records[1:] if record]


def read(folder, data, quoted_newlines=False):
    (folder / "t.csv").write_bytes(data)
    headers, stream = read_texts([str(folder / "t.csv")], ["n", "c"], quoted_newlines)
    assert headers == [["c", "n"]]
    found = stream.read_all()
    return list(zip(found["a0"].to_pylist(), found["a1"].to_pylist(), strict=True))


@pytest.mark.parametrize("sizes", [(2**24, 2**15), (64, 16), (7, 0)])
def test_blocks_are_read_as_lines_are(tmp_path_factory, monkeypatch, sizes):
    folder = tmp_path_factory.mktemp("blocks")
    monkeypatch.setattr(text, "_BLOCK", sizes[0])
    monkeypatch.setattr(text, "_LEAST_BLOCK", sizes[1])

    @given(rows=rows, end=st.sampled_from([b"\n", b"\r\n"]), last=st.booleans(), mark=st.booleans())
    @example(rows=[[b"\xef\xbb\xbf" + b"a", b"b"]] * 3, end=b"\n", last=True, mark=True)
    @settings(max_examples=25, deadline=None)
    def check(rows, end, last, mark):
        lines = [b"c,n", *map(b",".join, rows)]
        data = (b"\xef\xbb\xbf" if mark else b"") + end.join(lines) + (end if last else b"")
        for quoted_newlines in (False, True):
            assert read(folder, data, quoted_newlines) == one_by_one(data, quoted_newlines)

    check()


@pytest.mark.parametrize(
    ("odd", "most"),
    [
        (b"", 0),
        (b'"male","4"\n"a,b",4\r\n"",\n', 0),
        (b'"male",4,x\n', 10_000),
        (b"male\n", 10_000),
        (b'"a""b",4\n', 10_000),
        (b'a"b",4"\n', 10_000),
        (b'"a"b,"4\n",5"\n', 10_000),
        (b'"a\nb",5\n', 10_000),
    ],
)
def test_what_is_not_plain_slows_its_own_lines_alone(tmp_path, monkeypatch, odd, most):
    slowly, rows = [], headers.read_rows

    def counted(lines, delimiter, quoted_newlines):
        held = list(lines)
        slowly.extend(held)
        return rows(held, delimiter, quoted_newlines)

    monkeypatch.setattr(text, "read_rows", counted)
    monkeypatch.setattr(text, "read_header", lambda *_: (",", ["c", "n"]))
    found = read(tmp_path, b"c,n\n" + b"male,3\n" * 50_000 + odd + b"female,5\n" * 50_000)
    assert len(found) == 100_000 + odd.count(b"\n")
    assert found[50_000:-50_000] == one_by_one(b"c,n\n" + odd, quoted_newlines=False)[: odd.count(b"\n")]
    assert len(slowly) <= most
