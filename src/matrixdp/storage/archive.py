"""Archives: NumPy's ``.npz`` files with one JSON header, without pickle, every part checked when read.

An archive holds ``header.json``, ``header.sha256`` and one ``.npy`` member for each array. Members are stored
uncompressed, so that no member can be larger in memory than the file is on disk.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import os
import re
import shutil
import stat
import struct
import tempfile
import time
import zipfile
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, final

import numpy as np
from numpy.typing import NDArray

from matrixdp import __version__
from matrixdp.errors import Path as JsonPath
from matrixdp.errors import StorageError, format_place, reading
from matrixdp.mapped import LARGEST_HELD, in_pieces, mapped
from matrixdp.queries.predicates import NOT_NUMPY

if TYPE_CHECKING:
    import pyarrow as pa

_HEADER = "header.json"
_DIGEST = "header.sha256"
_LARGEST_HEADER = 1 << 30
OR_FORCE = "use another name, or replace it with --force (in Python: force=True)"
#: The front of a member of a zip file, before its name, with two lengths of what comes before its content.
_LOCAL = struct.Struct("<26x2H")
_LARGEST_FRONT = 1 << 17
_DTYPES = ("<f8", "<i8", "<i4")
#: Of a line of JSON for people.
_WIDTH = 120


def temporary_name(path: Path, ending: str) -> Path:
    """Return a hidden name beside a path that no other process uses."""
    return path.with_name(f".{path.name}.{os.getpid():x}-{time.time_ns():x}.{ending}")


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable, where the operating system can."""
    if os.name == "nt":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_files(folder: Path) -> None:
    """Make the files in a folder, and in those within it, durable."""
    for file in folder.iterdir():
        if file.is_dir():
            sync_files(file)
            sync_folder(file)
            continue
        with file.open("rb+") as stream:
            os.fsync(stream.fileno())


@contextmanager
def partial_folder(target: Path, ending: str) -> Iterator[Path]:
    """Give a hidden folder beside a path, in which what belongs there is made; what stays in it is removed.

    Raises
    ------
    StorageError
        If it cannot be made.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as parent:
    ...     out = Path(parent, "out")
    ...     with partial_folder(out, "partial") as folder:
    ...         moved = folder.replace(out)
    ...     [path.name for path in Path(parent).iterdir()]
    ['out']
    """
    partial = temporary_name(target, ending)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        partial.mkdir()
    except (OSError, ValueError) as error:
        raise StorageError.unwritable(target, error) from None
    try:
        yield partial
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def replaces_folder(
    target: Path, kind: str, is_one: Callable[[Path], bool], force: bool, again: str | None = None
) -> bool:
    """Return whether a folder of a kind would be replaced; refuse to touch anything else.

    Parameters
    ----------
    target : Path
        Where the new one goes.
    kind : str
        What it is called: a release, a model.
    is_one : callable
        Whether a folder that is not empty holds one of this kind and nothing else.
    force : bool
        Whether one may be replaced.
    again : str, optional
        What a refusal says can be done where one may not.

    Raises
    ------
    StorageError
        If there is a file, a folder of something else, or one of this kind that must stay.
    """
    if not os.path.lexists(target):
        return False
    if not target.is_dir() or target.is_symlink():
        raise StorageError(f"{target}: found a file; expected a folder that is not there yet", "file-exists")
    if not any(target.iterdir()):
        return False
    if not is_one(target):
        found = "found a folder with other files; expected one that is not there yet"
        raise StorageError(f"{target}: {found}", "file-exists")
    if not force:
        raise StorageError(f"{target}: found an earlier {kind}; {again or OR_FORCE}", "file-exists")
    return True


def write_durably(path: Path, content: bytes, mode: int = 0o666) -> None:
    """Write a file that is not there yet, so that it survives the loss of power; a failure leaves none."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        sync_folder(path.parent)
    except BaseException:
        path.unlink(missing_ok=True)
        raise


@contextmanager
def whole_file(out: str | os.PathLike[str]) -> Iterator[Path]:
    """Give the path of what becomes a file at the end, whole or not at all; who may read it stays so."""
    target = Path(out).resolve()  # a link stays one
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=f".{target.name}.") as folder:
        made = Path(folder) / "made"
        yield made
        if target.exists():
            shutil.copymode(target, made)
        made.replace(target)


def write_whole(out: str | os.PathLike[str], text: str) -> None:
    """Write a text to a file, which appears whole or not at all."""
    with whole_file(out) as made:
        made.write_text(text, encoding="utf-8", newline="")


def arrow_file(path: Path, mode: str = "r") -> pa.OSFile:
    """Open a file for Arrow, which takes a path as text for an address, or for UTF-8."""
    import pyarrow as pa

    return pa.OSFile(os.fsencode(path), mode)


@contextmanager
def arrow_writer(path: Path, schema: pa.Schema, **options: Any) -> Iterator[Any]:
    """Give what writes tables to a file: CSV by its ending, else Parquet with these options."""
    import pyarrow.csv as pacsv
    import pyarrow.parquet as pq

    make = pacsv.CSVWriter if path.suffix.lower() == ".csv" else partial(pq.ParquetWriter, **options)
    with arrow_file(path, "w") as file, make(file, schema) as writer:
        yield writer


@final
class ArchiveWriter:
    """Write an archive: arrays first, the header last; the file appears whole or not at all.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with ArchiveWriter(f"{folder}/a.mdp") as archive:
    ...         name = archive.add(np.arange(3))
    ...         archive.close({"format": "example", "format_version": 1, "array": name})
    ...     with ArchiveReader(f"{folder}/a.mdp", "example", 1) as reader:
    ...         reader.array(reader.header["array"])
    array([0, 1, 2])
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = Path(path)
        self._partial = temporary_name(self._path, "partial")
        try:
            self._zip = zipfile.ZipFile(self._partial, "x", zipfile.ZIP_STORED, allowZip64=True)
        except (OSError, ValueError) as error:
            raise StorageError.unwritable(self._path, error) from None
        self._sums: dict[str, str] = {}

    def add(self, array: NDArray[Any]) -> str:
        """Write an array of numbers and return its name, which the header refers to it by."""
        return self.add_pieces((array,), array.shape, array.dtype)

    def add_pieces(self, pieces: Iterable[NDArray[Any]], shape: tuple[int, ...], dtype: np.dtype[Any]) -> str:
        """Write an array that comes in consecutive pieces, row-major, and return its name."""
        little = np.dtype(dtype).newbyteorder("<")
        if little.str not in _DTYPES:
            raise StorageError(f"arrays of {np.dtype(dtype)} cannot be saved", code="not-supported")
        front = io.BytesIO()
        form = {"descr": little.str, "fortran_order": False, "shape": tuple(int(n) for n in shape)}
        np.lib.format.write_array_header_1_0(front, form)
        flat: Iterable[Any] = (np.ascontiguousarray(p, little).ravel().view(np.uint8).data for p in pieces)
        name = f"arrays/{len(self._sums)}.npy"
        digest = hashlib.sha256()
        written = 0
        with self._zip.open(name, "w", force_zip64=True) as member:
            for data in chain([front.getvalue()], flat):
                digest.update(data)
                written += member.write(data)
        entries = (written - len(front.getvalue())) // little.itemsize
        if entries != int(np.prod(shape, dtype=object)):
            raise StorageError(f"an array of shape {shape} was given {entries} entries", code="wrong-size")
        self._sums[name] = digest.hexdigest()
        return name

    def close(self, header: Mapping[str, object]) -> None:
        """Write the header, plain values with ``format`` and ``format_version``, and put all in its place."""
        text = json.dumps({**header, "checksums": self._sums}, allow_nan=False).encode()
        # without their time, which beside that of the authorization would tell how long counting took
        self._zip.writestr(zipfile.ZipInfo(_HEADER), text)
        self._zip.writestr(zipfile.ZipInfo(_DIGEST), hashlib.sha256(text).hexdigest())
        self._zip.close()
        with self._partial.open("rb+") as stream:
            os.fsync(stream.fileno())
        self._partial.replace(self._path)
        sync_folder(self._path.parent)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self._zip.close()  # writes, where the disk may be full
        finally:
            self._partial.unlink(missing_ok=True)


@final
class ArchiveReader:
    """Read an archive of one format and version; whatever is wrong with it is one StorageError.

    It is read whole: at the end every array must have been asked for.
    """

    def __init__(self, path: str | os.PathLike[str], kind: str, version: int) -> None:
        self.path = Path(path)
        if not os.path.isfile(self.path):  # noqa: PTH113 - no error where the path is none
            raise StorageError(f"{self.path}: no such file; expected a saved {kind}", code="file-missing")
        try:
            self._zip = zipfile.ZipFile(self.path)
        except (zipfile.BadZipFile, NotImplementedError, OSError, ValueError):
            raise StorageError(f"{self.path}: not a saved {kind}, or a damaged one", "damaged-file") from None
        try:
            with self.reading("its header"):
                self.header: dict[str, Any] = self._read_header(kind, version)
        except BaseException:
            self._zip.close()
            raise

    def _read_header(self, kind: str, version: int) -> dict[str, Any]:
        text = self._bytes(_HEADER, _LARGEST_HEADER)
        if hashlib.sha256(text).hexdigest().encode() != self._bytes(_DIGEST, 64):
            raise self.damaged("the checksum of its header is wrong")
        try:
            header = json.loads(text, object_pairs_hook=_unique_keys)
        except (ValueError, RecursionError):
            raise self.damaged("its header is not JSON") from None
        if not isinstance(header, dict) or header.get("format") != kind:
            raise StorageError(f"{self.path}: holds something else; expected a saved {kind}", "damaged-file")
        found: Any = header.get("format_version")
        self.require(type(found) is int and found >= 1, "its format version is not a number")
        if found != version:
            needed = "a newer matrixdp is needed" if found > version else "make it anew"
            raise StorageError(
                f"{self.path}: has format version {found}; this matrixdp reads version {version}: {needed}",
                code="other-version",
            )
        sums, names = header.get("checksums"), self._zip.namelist()
        self._sums = sums if isinstance(sums, dict) else {}
        whole = {_HEADER, _DIGEST, *self._sums} >= set(names) and len(set(names)) == len(names)
        self.require(whole, "its members are not those that its header lists, each once")
        self._unread = set(self._sums)
        return header

    def damaged(self, why: str) -> StorageError:
        """Return the error of an archive that is damaged."""
        return StorageError(f"{self.path}: damaged or altered: {why}", "damaged-file")

    def require(self, holds: bool, otherwise: str) -> None:
        """Reject an archive of which something does not hold; `otherwise` says what is wrong with it."""
        if not holds:
            raise self.damaged(otherwise)

    def reading(self, what: str) -> AbstractContextManager[None]:
        """Let whatever is wrong with a part of the archive be one StorageError."""
        return reading(self.path, what)

    def text(self, value: object) -> str:
        """Return a text of the header; what is none is refused."""
        if not isinstance(value, str):
            raise self.damaged("what should be text in its header is no text")
        return value

    def _bytes(self, name: str, limit: int) -> bytes:
        try:
            info = self._zip.getinfo(name)
        except KeyError:
            raise self.damaged(f"{name} is missing") from None
        self._check_stored(info, limit)
        try:
            return self._zip.read(info)
        except (zipfile.BadZipFile, OSError, EOFError, NotImplementedError, RuntimeError):
            # the last two: flipped bits can say "encrypted", or name a method that there is not
            raise self.damaged(f"{name} cannot be read") from None

    def _content(self, name: str) -> NDArray[np.uint8]:
        """Return the bytes of a member, where they are many as they lie in the file."""
        size = self.path.stat().st_size
        if name not in self._zip.NameToInfo or self._zip.getinfo(name).file_size <= LARGEST_HELD:
            return np.frombuffer(self._bytes(name, size), np.uint8)
        info = self._zip.getinfo(name)
        self._check_stored(info, size)
        with self.path.open("rb") as file:
            file.seek(info.header_offset)
            front = file.read(_LOCAL.size)
            self.require(len(front) == _LOCAL.size, f"{name} cannot be read")
            # the lengths of the name and of what else stands before the content
            start = info.header_offset + _LOCAL.size + sum(_LOCAL.unpack(front))
            self.require(start + info.file_size <= size, f"{name} is larger than the file")
            return mapped(file, start, np.dtype(np.uint8), info.file_size)

    def _check_stored(self, info: zipfile.ZipInfo, limit: int) -> None:
        stored = info.compress_type == zipfile.ZIP_STORED and info.file_size == info.compress_size
        self.require(stored, f"{info.filename} is compressed")
        self.require(info.file_size <= self.path.stat().st_size, f"{info.filename} is larger than the file")
        self.require(info.file_size <= limit, f"{info.filename} has {info.file_size} bytes")

    def _check(self, name: str, data: NDArray[np.uint8]) -> None:
        digest = hashlib.sha256()
        for piece in in_pieces(data):
            digest.update(piece.data)
        if digest.hexdigest() != self._sums[name]:
            raise self.damaged(f"the checksum of {name} is wrong")

    def array(
        self,
        name: object,
        shape: tuple[int, ...] | None = None,
        later: list[Callable[[], None]] | None = None,
    ) -> NDArray[Any]:
        """Return an array by its name in the header, read-only; it must have the shape, if one is given.

        Each is given out once, so that what is read, and made of it, is in proportion to the file. The check
        of the content of a large one is added to ``later``, if given.
        """
        if not isinstance(name, str) or name not in self._sums:
            raise self.damaged("its header refers to an array that is not there")
        self.require(name in self._unread, f"its header refers to {name} twice")
        self._unread.remove(name)
        data = self._content(name)
        check = partial(self._check, name, data)
        if later is None or len(data) <= LARGEST_HELD:
            check()
        else:
            later.append(check)
        stream = io.BytesIO(data[:_LARGEST_FRONT].tobytes())
        try:
            if np.lib.format.read_magic(stream) != (1, 0):
                raise ValueError("version")
            found, fortran, dtype = np.lib.format.read_array_header_1_0(stream)
        except NOT_NUMPY:
            raise self.damaged(f"{name} is not an array") from None
        size = int(np.prod(found, dtype=object)) * dtype.itemsize
        fits = not fortran and dtype.str in _DTYPES and size == len(data) - stream.tell()
        self.require(fits, f"{name} is not an array of numbers of its stated size")
        self.require(shape in (None, found), f"{name} has the shape {found}; expected {shape}")
        return np.frombuffer(data, dtype=dtype, offset=stream.tell()).reshape(found)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._zip.close()
        # what nothing refers to was checked by nobody
        self.require(kind is not None or not self._unread, "its header refers to some of its arrays nowhere")


# JSON as it stands in a file, and where two documents differ.

#: How far a figure that floating-point arithmetic computed again may lie from what is written, relative.
#: Least squares of parts whose precisions differ by 1e8, the most that a union has, lose half of the digits.
TOLERANCE = 1e-8
_SHOWN = 60


def read_strictly(text: bytes, name: str) -> dict[str, Any]:
    """Return a JSON object that every reader reads alike: no key given twice, no NaN, UTF-8.

    Raises
    ------
    StorageError
        If it is none.

    Examples
    --------
    >>> read_strictly(b'{"a": 1}', "release.json")
    {'a': 1}
    """
    try:
        found = json.loads(text.decode("utf-8"), object_pairs_hook=_unique_keys, parse_constant=_no_number)
    except (ValueError, RecursionError) as error:
        found = f"{name}: not JSON that all read alike ({_brief(error)})"
        raise StorageError(found, "damaged-file") from None
    if not isinstance(found, dict):
        raise StorageError(f"{name}: found a {type(found).__name__}; expected an object", code="wrong-type")
    return found


def as_text(value: object, indent: str = "") -> str:
    """Return plain values as JSON for people: what fits stands on one line.

    Examples
    --------
    >>> print(as_text({"parts": [{"rows": 1}, {"rows": 2}]}))
    {"parts": [{"rows": 1}, {"rows": 2}]}
    """
    brief = json.dumps(value, ensure_ascii=False, allow_nan=False)
    if len(brief) + len(indent) <= _WIDTH or not isinstance(value, dict | list | tuple):
        return brief
    inner = f"{indent}  "
    opening, closing = "{}" if isinstance(value, dict) else "[]"
    lines = [as_text(item, inner) for item in (value.values() if isinstance(value, dict) else value)]
    if isinstance(value, dict):
        lines = [f"{json.dumps(k, ensure_ascii=False)}: {v}" for k, v in zip(value, lines, strict=True)]
    return "\n".join([opening, ",\n".join(inner + line for line in lines), f"{indent}{closing}"])


@contextmanager
def naming_later_versions(record: Path, made: object) -> Iterator[None]:
    """Let a record that a later version of matrixdp made be called that, where it is not understood."""
    try:
        yield
    except StorageError as error:
        if _numbers(made) <= _numbers(__version__):
            raise
        told = f"written by matrixdp {made!s:.20}, a later version than this one ({__version__}), which finds"
        raise StorageError(f"{record}: {told}: {error}", "other-version") from None


def _numbers(version: object) -> list[int]:
    """Return the numbers that a version begins with."""
    found = re.match(r"\d{1,9}(\.\d{1,9})*", version) if isinstance(version, str) else None
    return [int(number) for number in found[0].split(".")] if found else []


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Reject a JSON object that gives a key twice: two readers could read two different things."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key is given twice")
    return found


def _no_number(text: str) -> float:
    raise ValueError(f"{text} is no number")


def differences(
    written: Any, follows: Any, path: JsonPath = (), exact: bool = False, leave: Collection[JsonPath] = ()
) -> Iterator[str]:
    """Yield in words where a document differs from what follows; figures may differ by `TOLERANCE`.

    With `exact` they may not; what stands under the places in `leave` is not compared.

    Examples
    --------
    >>> list(differences({"a": [1, 2.0], "b": 3}, {"a": [1, 2.5]}))
    ['a[1] says 2.0; 2.5 follows', 'b is no part of it']
    """
    if path in leave:
        return
    place = format_place(path)
    if isinstance(written, dict) and isinstance(follows, dict):
        for key in dict.fromkeys((*written, *follows)):
            own = (*path, key)
            if key in written and key in follows:
                yield from differences(written[key], follows[key], own, exact, leave)
            elif own not in leave:
                yield f"{format_place(own)} is {'no part of it' if key in written else 'missing'}"
    elif isinstance(written, list) and isinstance(follows, list) and len(written) == len(follows):
        for position, (one, other) in enumerate(zip(written, follows, strict=True)):
            yield from differences(one, other, (*path, position), exact, leave)
    elif isinstance(written, list) and isinstance(follows, list):
        yield f"{place} has {len(written)} items; {len(follows)} follow"
    elif not _same(written, follows, exact):
        yield f"{place} says {_brief(written)}; {_brief(follows)} follows"


def _same(written: object, follows: object, exact: bool) -> bool:
    if isinstance(written, float) and isinstance(follows, float) and not exact:
        return math.isclose(written, follows, rel_tol=TOLERANCE, abs_tol=0.0)
    return type(written) is type(follows) and written == follows


def _brief(value: object) -> str:
    text = value if isinstance(value, Exception) else json.dumps(value, ensure_ascii=False)
    return str(text) if len(str(text)) <= _SHOWN else f"{str(text)[:_SHOWN]}..."


# Files of a folder as they stand on disk: their digests, and what they hold, if they are plain files.

_LARGEST_RECORD = 1 << 30
_PLAIN = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)


def digest(path: Path) -> str | None:
    """Return the SHA-256 of a file; None where there is none that can be read."""
    try:
        return str(entry(path)["sha256"]) if path.is_file() else None
    except OSError:
        return None


def entry(path: Path, plain: bool = False, like: object = None) -> dict[str, Any]:
    """Return the entry of a file in a record: its size and its SHA-256, and that of a large archive's header.

    With `plain`, of a folder that somebody else may have written, it must be there and be no link. One that
    is `like` another, of an earlier version, says as much as that.

    Raises
    ------
    StorageError
        If it is none of that.
    """
    with _plain(path) if plain else path.open("rb") as stream:
        sha256 = hashlib.file_digest(stream, "sha256").hexdigest()
        size = os.fstat(stream.fileno()).st_size
    large = size > LARGEST_HELD and path.suffix == ".mdp"
    large &= not isinstance(like, dict) or "header" in like
    return {"bytes": size, "sha256": sha256} | ({"header": header_digest(path)} if large else {})


def header_digest(path: Path) -> str | None:
    """Return the SHA-256 of the header of an archive, which has those of its arrays; None if it is none."""
    try:
        with zipfile.ZipFile(path) as archive:
            info = archive.getinfo(_HEADER)
            stored = info.compress_type == zipfile.ZIP_STORED and info.file_size <= _LARGEST_HEADER
            return hashlib.sha256(archive.read(info)).hexdigest() if stored else None
    except (
        zipfile.BadZipFile,
        NotImplementedError,
        OSError,
        EOFError,
        LookupError,
        RuntimeError,
        ValueError,
    ):
        return None


def _plain(path: Path) -> io.BufferedReader:
    """Open a file of a folder, if it is one: no link that leads out of it, no pipe."""
    try:
        descriptor = os.open(path, _PLAIN)
    except FileNotFoundError:
        raise StorageError(f"{path}: no such file", "file-missing") from None
    except (OSError, ValueError):
        raise StorageError(f"{path}: cannot be read, or is a link; expected a file", "file-missing") from None
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise StorageError(f"{path}: found something else than a file")
    return os.fdopen(descriptor, "rb")


def plain_content(path: Path, limit: int = _LARGEST_RECORD) -> bytes:
    """Read a file of a release.

    Raises
    ------
    StorageError
        If it is not there, is a link or no file, or has more bytes than the limit.
    """
    with _plain(path) as stream:
        content = stream.read(limit + 1)
    if len(content) > limit:
        raise StorageError(f"{path}: found more than {limit} bytes", code="out-of-range")
    return content
