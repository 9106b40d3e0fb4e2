"""What is found by its name: files of ours, what a program registers, and what installed packages offer.

A package offers something by an entry point. Its group says what that is (``matrixdp.mechanisms``,
``matrixdp.exports``, ``matrixdp.formats``, ``matrixdp.sources``, ``matrixdp.words``), its name how it is
called, and its value is the module that registers it, which is imported once it is needed. In the group
``matrixdp.candidates`` the value is an object of a module, a `matrixdp.selection.rules.Rule`.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Generic, TypeVar, final

from matrixdp.errors import MatrixDPError, SpecificationError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoints

T = TypeVar("T")


def offered(group: str) -> dict[str, str]:
    """Return the modules that installed packages offer in a group of entry points, by name."""
    return {point.name: point.module for point in _points(group)}


def _points(group: str) -> EntryPoints:
    from importlib.metadata import entry_points

    return entry_points(group=group)


def load_offered(group: str, *names: str) -> bool:
    """Import what installed packages offer under some names, or all of a group; return whether that was new.

    Raises
    ------
    SpecificationError
        If a module cannot be imported.
    """
    modules = {module for name, module in offered(group).items() if not names or name in names}
    new = sorted(modules - sys.modules.keys())
    for module in new:
        with _importing(group, module):
            import_module(module)
    return bool(new)


def values_offered(group: str) -> dict[str, object]:
    """Return what installed packages offer in a group whose entry points are objects, by their addresses.

    Raises
    ------
    SpecificationError
        If a module cannot be imported.
    """
    found: dict[str, object] = {}
    for point in _points(group):
        with _importing(group, point.module):
            found[point.value] = point.load()
    return found


@contextmanager
def _importing(group: str, module: str) -> Iterator[None]:
    """Name the module of a package that fails."""
    try:
        yield
    except MatrixDPError:
        raise
    except Exception as error:
        found = f"{module}, which an installed package offers, fails when it is imported: {error!r:.200}"
        raise SpecificationError(f"{group}: {found}", code="missing-library") from error


@final
class Table(Mapping[str, T], Generic[T]):
    """Things of one kind by their names, each read when it is first asked for.

    Parameters
    ----------
    group : str
        The group of entry points by which installed packages offer more of them.
    kind : str
        What one of them is called in messages.
    files : mapping of str to str
        The module of each of ours, by name.
    last : collection of str
        Names that come behind those of others.
    taken : collection of str
        Names that none can have.
    error : type
        The class of errors.
    """

    def __init__(
        self,
        group: str,
        kind: str,
        files: Mapping[str, str],
        *,
        last: Collection[str] = (),
        taken: Collection[str] = (),
        error: type[MatrixDPError] = SpecificationError,
    ) -> None:
        self.registered: dict[str, T] = {}
        self._group, self._kind, self._files = group, kind, files
        self._last, self._taken, self._error = last, taken, error

    def register(self, name: str, value: T) -> None:
        """Add something under a name that nothing has."""
        unread = name in self._files and self._files[name] not in sys.modules
        if name in self.registered or unread or name in self._taken:
            raise self._error.at((self._kind,), f"a second one called {name!r}", "a new name")
        self.registered[name] = value

    def __getitem__(self, name: str) -> T:
        if name not in self.registered:
            module = self._files.get(name) or offered(self._group)[name]
            if name in self._files:
                import_module(module)
            else:
                load_offered(self._group, name)
            if name not in self.registered:
                raise self._error(f"{self._kind}: {module} does not register {name!r}, which it is said to")
        return self.registered[name]

    def __iter__(self) -> Iterator[str]:
        known = dict.fromkeys([*self._files, *self.registered, *offered(self._group)])
        yield from sorted(known, key=self._last.__contains__)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __contains__(self, name: object) -> bool:
        return name in self._files or name in self.registered or name in offered(self._group)
