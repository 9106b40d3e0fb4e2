"""What a code book says of an attribute besides its values, the same for every kind of attribute."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import final

from matrixdp.domain.canonical import canonical_text
from matrixdp.domain.derivation import Derivation
from matrixdp.domain.levels import Level
from matrixdp.errors import DomainError, within
from matrixdp.forms import describe_value, is_unicode

_SHA256 = re.compile(r"[0-9a-f]{64}", re.ASCII)

__all__ = ["NO_CODEBOOK", "Codebook"]


@final
@dataclass(frozen=True)
class Codebook:
    """Where raw values stand, how they are cleaned, and what values are called.

    Parameters
    ----------
    column : str, optional
        The table's column, where it has another name than the attribute.
    null : str, optional
        What missing values are called. They are then one more value of the attribute, the last one; otherwise
        they are out of domain.
    labels : mapping of object to str, or pairs
        What some values are called.
    trim : bool
        Whether white space around texts is left out.
    levels : tuple of Level
        Coarser lists of values.
    sha256 : tuple of (str, str)
        The digests of the files that values were read from, by what was read.
    derivation : Derivation, optional
        How the attribute follows from others; then it is read from no column of its own.

    Raises
    ------
    DomainError
        If a name is no text or empty, or something else is not what it should be.

    Examples
    --------
    >>> Codebook(null="unknown", labels={0: "female"}).to_spec()
    {'null': 'unknown', 'labels': {'0': 'female'}}
    """

    column: str | None = None
    null: str | None = None
    labels: tuple[tuple[str, str], ...] = ()
    trim: bool = False
    levels: tuple[Level, ...] = ()
    sha256: tuple[tuple[str, str], ...] = ()
    derivation: Derivation | None = None

    def __post_init__(self) -> None:
        for key, text in (("column", self.column), ("null", self.null)):
            if text is not None:
                _check_text(text, key)
        if not isinstance(self.trim, bool):
            raise DomainError.at(("trim",), describe_value(self.trim), "true or false")
        for file, digest in self.sha256:
            if not isinstance(digest, str) or not _SHA256.fullmatch(digest):
                expected = "64 digits from 0 to 9 and a to f, the digest of a file"
                raise DomainError.at(("sha256", file), describe_value(digest), expected)
        object.__setattr__(self, "labels", tuple(_labels(self.labels)))

    def to_spec(self) -> dict[str, object]:
        """Return the keys of a specification that say the same."""
        spec: dict[str, object] = {}
        if self.column is not None:
            spec["column"] = self.column
        if self.trim:
            spec["trim"] = True
        if self.null is not None:
            spec["null"] = self.null
        if self.labels:
            spec["labels"] = dict(self.labels)
        if self.sha256:
            spec["sha256"] = dict(self.sha256)
        return spec


def _labels(given: object) -> Iterable[tuple[str, str]]:
    if not isinstance(given, Mapping | tuple):
        expected = "a mapping of values to what they are called"
        raise DomainError.at(("labels",), describe_value(given), expected)
    for value, label in given.items() if isinstance(given, Mapping) else given:
        with within("labels"):
            text = canonical_text(value)
            _check_text(label, text)
            yield text, label


def _check_text(text: object, *path: str) -> None:
    if not isinstance(text, str) or not text.strip() or not is_unicode(text):
        raise DomainError.at(path, describe_value(text), "text that is not empty")


NO_CODEBOOK = Codebook()
"""The code book that says nothing."""
