"""Sentences of a privacy statement that machines tell apart by an identifier."""

from __future__ import annotations

import re
from typing import Self, final

from matrixdp.errors import PrivacyError

__all__ = ["OTHER", "Clause"]

#: Of a sentence that came without one: from a source of a table that is not ours.
OTHER = "other"
_IDENTIFIER = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")


@final
class Clause(str):
    """A sentence with an identifier that stays when its words change.

    Parameters
    ----------
    id : str
        Small letters, digits and hyphens.
    text : str
        The sentence.

    Raises
    ------
    PrivacyError
        If the identifier is of another form.

    Examples
    --------
    >>> clause = Clause("randomness", "The operating system's random number generator is sound.")
    >>> clause.id, clause[:20]
    ('randomness', 'The operating system')
    >>> Clause.of("Every record is one line.").id
    'other'
    """

    __slots__ = ("id",)

    id: str

    def __new__(cls, id: str, text: str) -> Self:  # noqa: A002
        """Make the sentence."""
        if not isinstance(id, str) or _IDENTIFIER.fullmatch(id) is None:
            expected = "small letters, digits and hyphens"
            raise PrivacyError(f"the identifier of a sentence: found {id!r}; expected {expected}")
        clause = super().__new__(cls, text)
        clause.id = id
        return clause

    def __getnewargs__(self) -> tuple[str, str]:  # type: ignore[override]
        return self.id, str(self)

    @classmethod
    def of(cls, sentence: str) -> Clause:
        """Return a sentence as a clause; one that has no identifier gets `OTHER`."""
        return sentence if isinstance(sentence, Clause) else cls(OTHER, sentence)

    def as_dict(self) -> dict[str, str]:
        """Return the sentence as JSON has it."""
        return {"id": self.id, "text": str(self)}
