"""The simple case folding of Unicode: letter by letter, and the same whatever the language."""

import sys
from collections.abc import Iterable, Mapping
from functools import cache

__all__ = ["fold", "foldings"]


def fold(text: str) -> str:
    """Return a text with every letter in the place of which simple case folding has another replaced.

    Examples
    --------
    >>> fold("ÉCOLE Straße ẞ \u0130"), fold("\u017f\u212a")
    ('école straße ß İ', 'sk')
    """
    return "".join(map(_letter, text))


def foldings(texts: Iterable[str]) -> tuple[str, str]:
    """Return the letters that fold to a letter of some folded texts, and what each of them folds to.

    What engines replace: letters that are not among them can be in no text that is compared.

    Examples
    --------
    >>> foldings(["ab"])
    ('AB', 'ab')
    """
    pairs = sorted((other, letter) for letter in set("".join(texts)) for other in _others().get(letter, ""))
    return "".join(other for other, _ in pairs), "".join(letter for _, letter in pairs)


def _letter(letter: str) -> str:
    return next((one for one in (letter.casefold(), letter.lower()) if len(one) == 1), letter)


@cache
def _others() -> Mapping[str, str]:
    """Return for every letter the others that fold to it."""
    others: dict[str, str] = {}
    for start in range(0, sys.maxunicode + 1, 256):
        block = "".join(map(chr, range(start, start + 256)))
        if block.casefold() == block == block.lower():
            continue  # no letter becomes shorter than one, so each has stayed as it was
        for letter in block:
            if (folded := _letter(letter)) != letter:
                others[folded] = others.get(folded, "") + letter
    return others
