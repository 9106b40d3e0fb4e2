"""Archives: arrays and one JSON header in a zip file, without pickle, every part checked when read.

An archive holds ``header.json``, ``header.sha256`` and one ``.npy`` member for each array. Members are stored
uncompressed, so that no member can be larger in memory than the file is on disk.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
import zipfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from matrixdp.errors import StorageError

__all__ = ["ArchiveReader", "ArchiveWriter", "sync_folder", "temporary_name"]

_HEADER = "header.json"
_DIGEST = "header.sha256"
_CHUNK = 1 << 24
_LARGEST_HEADER = 1 << 30
_DTYPES = ("<f8", "<i8", "<i4")


def temporary_name(path: Path, ending: str) -> Path:
    """Return a hidden name beside a path that no other process uses.

    Parameters
    ----------
    path : Path
        Where the file or folder will go in the end.
    ending : str
        What it ends in.
    """
    return path.with_name(f".{path.name}.{os.getpid():x}-{time.time_ns():x}.{ending}")


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable, where the operating system can.

    Parameters
    ----------
    folder : Path
        The folder.
    """
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@final
class ArchiveWriter:
    """Write an archive: arrays first, the header last; the file appears whole or not at all.

    Parameters
    ----------
    path : str or path
        Where the archive goes; an existing file is replaced when writing has succeeded.

    Raises
    ------
    StorageError
        If the file cannot be written.

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
        except OSError as error:
            raise StorageError(f"{self._path}: cannot be written ({error.strerror})") from None
        self._sums: dict[str, str] = {}
        self._done = False

    def add(self, array: NDArray[Any]) -> str:
        """Write an array of numbers and return its name, which the header refers to it by.

        Parameters
        ----------
        array : ndarray
            Of floats or integers.
        """
        return self.add_pieces((array,), array.shape, array.dtype)

    def add_pieces(self, pieces: Iterable[NDArray[Any]], shape: tuple[int, ...], dtype: np.dtype[Any]) -> str:
        """Write an array that comes in pieces, row-major, and return its name.

        Parameters
        ----------
        pieces : iterable of ndarray
            Consecutive entries.
        shape : tuple of int
            The shape of the whole.
        dtype : dtype
            One of float64, int64 and int32.

        Raises
        ------
        StorageError
            If the dtype is another one, or the pieces do not fill the shape.
        """
        little = np.dtype(dtype).newbyteorder("<")
        if little.str not in _DTYPES:
            raise StorageError(f"arrays of {np.dtype(dtype)} cannot be saved")
        name = f"arrays/{len(self._sums)}.npy"
        digest = hashlib.sha256()
        entries = 0
        with self._zip.open(name, "w", force_zip64=True) as member:
            front = {"descr": little.str, "fortran_order": False, "shape": tuple(int(n) for n in shape)}
            sink = _Hashing(member, digest)
            np.lib.format.write_array_header_1_0(sink, front)
            for piece in pieces:
                flat = np.ascontiguousarray(piece, dtype=little).ravel()
                entries += flat.size
                view = memoryview(flat.view(np.uint8).data)
                for start in range(0, len(view), _CHUNK):
                    sink.write(view[start : start + _CHUNK])
        if entries != int(np.prod(shape, dtype=object)):
            raise StorageError(f"an array of shape {shape} was given {entries} entries")
        self._sums[name] = digest.hexdigest()
        return name

    def close(self, header: Mapping[str, object]) -> None:
        """Write the header and put the archive in its place.

        Parameters
        ----------
        header : mapping
            Plain values for JSON, with ``format`` and ``format_version``.
        """
        text = json.dumps({**header, "checksums": self._sums}, allow_nan=False).encode()
        self._zip.writestr(_HEADER, text)
        self._zip.writestr(_DIGEST, hashlib.sha256(text).hexdigest())
        self._zip.close()
        with self._partial.open("rb+") as stream:
            os.fsync(stream.fileno())
        self._partial.replace(self._path)
        sync_folder(self._path.parent)
        self._done = True

    def __enter__(self) -> ArchiveWriter:
        return self

    def __exit__(self, *_: object) -> None:
        if not self._done:
            self._zip.close()
            self._partial.unlink(missing_ok=True)


@final
class _Hashing:
    """A file that hashes what is written to it."""

    def __init__(self, member: Any, digest: Any) -> None:
        self._member = member
        self._digest = digest

    def write(self, data: bytes | memoryview) -> int:
        self._digest.update(data)
        return int(self._member.write(data))


@final
class ArchiveReader:
    """Read an archive; whatever is wrong with it is one clear error.

    Parameters
    ----------
    path : str or path
        The file.
    kind : str
        The format that is expected.
    version : int
        The newest version that is understood.

    Raises
    ------
    StorageError
        If there is no such file, it is of another format, newer or damaged.
    """

    def __init__(self, path: str | os.PathLike[str], kind: str, version: int) -> None:
        self.path = Path(path)
        if not self.path.is_file():
            raise StorageError(f"{self.path}: no such file; expected a saved {kind}")
        try:
            self._zip = zipfile.ZipFile(self.path)
        except (zipfile.BadZipFile, NotImplementedError, OSError, ValueError):
            raise StorageError(f"{self.path}: not a saved {kind}, or a damaged one") from None
        try:
            self.header: dict[str, Any] = self._read_header(kind, version)
        except BaseException:
            self._zip.close()
            raise

    def _read_header(self, kind: str, version: int) -> dict[str, Any]:
        text = self._bytes(_HEADER, _LARGEST_HEADER)
        if hashlib.sha256(text).hexdigest().encode() != self._bytes(_DIGEST, 64):
            raise self.damaged("the checksum of its header is wrong")
        try:
            header = json.loads(text)
        except (ValueError, RecursionError):
            raise self.damaged("its header is not JSON") from None
        if not isinstance(header, dict) or header.get("format") != kind:
            raise StorageError(f"{self.path}: holds something else; expected a saved {kind}")
        found = header.get("format_version")
        if isinstance(found, bool) or not isinstance(found, int) or found < 1:
            raise self.damaged("its format version is not a number")
        if found > version:
            raise StorageError(
                f"{self.path}: has format version {found}; this matrixdp reads up to {version}, so a newer "
                "matrixdp is needed"
            )
        return header

    def damaged(self, why: str) -> StorageError:
        """Return the error of an archive that is damaged.

        Parameters
        ----------
        why : str
            What is wrong.
        """
        return StorageError(f"{self.path}: damaged or altered: {why}")

    def _info(self, name: str) -> zipfile.ZipInfo:
        try:
            info = self._zip.getinfo(name)
        except KeyError:
            raise self.damaged(f"{name} is missing") from None
        if info.compress_type != zipfile.ZIP_STORED or info.file_size != info.compress_size:
            raise self.damaged(f"{name} is compressed")
        if info.file_size > self.path.stat().st_size:
            raise self.damaged(f"{name} is larger than the file")
        return info

    def _bytes(self, name: str, limit: int) -> bytes:
        info = self._info(name)
        if info.file_size > limit:
            raise self.damaged(f"{name} has {info.file_size} bytes")
        try:
            return self._zip.read(info)
        except (zipfile.BadZipFile, OSError, EOFError, NotImplementedError, RuntimeError):
            # the last two: flipped bits can say "encrypted", or name a method that there is not
            raise self.damaged(f"{name} cannot be read") from None

    def array(self, name: object, shape: tuple[int, ...] | None = None) -> NDArray[Any]:
        """Return an array by its name in the header.

        Parameters
        ----------
        name : object
            The name, as the header has it.
        shape : tuple of int, optional
            The shape that it must have.

        Returns
        -------
        ndarray
            Read-only.

        Raises
        ------
        StorageError
            If there is no such array, its checksum or its shape is wrong, or it does not hold numbers.
        """
        sums = self.header.get("checksums")
        if not isinstance(name, str) or not isinstance(sums, dict) or name not in sums:
            raise self.damaged("its header refers to an array that is not there")
        data = self._bytes(name, self.path.stat().st_size)
        if hashlib.sha256(data).hexdigest() != sums[name]:
            raise self.damaged(f"the checksum of {name} is wrong")
        array = self._decode(name, data)
        if shape is not None and array.shape != shape:
            raise self.damaged(f"{name} has the shape {array.shape}; expected {shape}")
        return array

    def _decode(self, name: str, data: bytes) -> NDArray[Any]:
        stream = _Cursor(data)
        try:
            if np.lib.format.read_magic(stream) != (1, 0):  # type: ignore[arg-type]  # only read from
                raise ValueError("version")
            shape, fortran, dtype = np.lib.format.read_array_header_1_0(stream)  # type: ignore[arg-type]
        except (ValueError, SyntaxError, TypeError, EOFError):
            raise self.damaged(f"{name} is not an array") from None
        size = int(np.prod(shape, dtype=object)) * dtype.itemsize
        if fortran or dtype.str not in _DTYPES or size != len(data) - stream.position:
            raise self.damaged(f"{name} is not an array of numbers of its stated size")
        return np.frombuffer(data, dtype=dtype, offset=stream.position).reshape(shape)

    def __enter__(self) -> ArchiveReader:
        return self

    def __exit__(self, *_: object) -> None:
        self._zip.close()


@final
class _Cursor:
    """Bytes that are read from the front without being copied as a whole."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self.position = 0

    def read(self, count: int) -> bytes:
        piece = self._data[self.position : self.position + count]
        self.position += len(piece)
        return piece
