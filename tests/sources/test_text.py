"""CSV files by blocks: the same records whichever way a block is read."""

import csv
import io
import re
from concurrent.futures import ThreadPoolExecutor

import pyarrow.csv
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from matrixdp.sources import csv as text
from matrixdp.sources import headers
from matrixdp.sources.csv import read_texts

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
    headers, streams = read_texts([str(folder / "t.csv")], ["n", "c"], quoted_newlines)
    assert headers == [["c", "n"]]
    found = next(iter(streams.values())).read_all()
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


@pytest.mark.parametrize("quoted_newlines", [False, True])
def test_threads_read_next_to_each_other_what_the_module_csv_would_not(
    tmp_path, monkeypatch, quoted_newlines
):
    monkeypatch.setattr(text, "_BLOCK", 64)
    before = csv.field_size_limit()
    odd = b'"a""' + b"x" * 2 * before + b'",4\n'
    lines = b'c,n\n"male"x,3\n' + b"male,3\n" * 20
    for name, data in (("a.csv", lines), ("b.csv", lines + odd + b"male,5\n")):
        (tmp_path / name).write_bytes(data)
    first, second = (
        read_texts([str(tmp_path / name)], ["n", "c"], quoted_newlines)[1][str(tmp_path / name)]
        for name in ("a.csv", "b.csv")
    )
    monkeypatch.setattr(text, "_BATCH", 4)
    with ThreadPoolExecutor(1) as one, ThreadPoolExecutor(1) as other:
        one.submit(first.read_next_batch).result()
        other.submit(second.read_next_batch).result()
        one.submit(first.read_all).result()
        csv.field_size_limit(before)
        rest = other.submit(second.read_all).result()
    assert rest["a0"].to_pylist()[-3:] == ["3", "4", "5"]
    assert len(rest["a1"][-2].as_py()) == 2 * before + 2
    assert csv.field_size_limit() == before


@pytest.mark.parametrize("before", [0, 1, 15])
@pytest.mark.parametrize("long", [b"x" * 200 + b",6", b'"' + b"x" * 200 + b'",6', b"x" * 29 + b",6"])
def test_what_a_line_has_beyond_the_longest_is_not_read_wherever_it_stands(
    tmp_path, monkeypatch, long, before
):
    monkeypatch.setattr(text, "_BLOCK", 16)
    monkeypatch.setattr(text, "_LONGEST", 30)
    found = read(tmp_path, b"c,n\n" + b"b,3\n" * before + long + b"\nb,4\n" + long)
    kept = (None, long[:30].lstrip(b'"').decode()) if len(long) > 40 else ("", "x" * 29)
    assert found == [("3", "b")] * before + [kept, ("4", "b"), kept]


def test_a_line_that_pyarrow_does_not_take_is_read_and_its_fields_are_cut(tmp_path, monkeypatch):
    lines = b'c,n\nb,3\n"' + b"x" * 300 + b'\n",5\nb,4\n'
    monkeypatch.setattr(text, "_LONGEST", 100)
    monkeypatch.setattr(text, "_BLOCK", 16)

    own = pyarrow.csv.ReadOptions

    def options(block_size, **others):
        if block_size > 101:
            raise OverflowError
        return own(block_size=block_size, **others)

    monkeypatch.setattr(pyarrow.csv, "ReadOptions", options)
    assert read(tmp_path, lines.replace(b"b", b"b" * 250), quoted_newlines=True) == [
        ("3", "b" * 100), ("5", "x" * 100), ("4", "b" * 100),
    ]  # fmt: skip
