"""Titles of groups of answers: what people call a table, and the table that they mean by it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from itertools import chain, count
from unicodedata import category, normalize

from matrixdp import queries
from matrixdp.domain import Attribute, Domain
from matrixdp.errors import Problem, WorkloadError
from matrixdp.forms import describe_value, nearest, unknown_name
from matrixdp.language.predicates import set_names
from matrixdp.queries import Group, Labelled, Predicates, ProductGroup, Sets
from matrixdp.texts import ENGLISH, Words

_JOINING = frozenset(("by", "and", "x"))


def title(group: Group, domain: Domain | None = None, say: Words = ENGLISH) -> str:
    """Return what people call the table of a group's answers.

    The user's name where the entry gave one; else words, with what is cumulated or summed over first.

    Parameters
    ----------
    group : Group
        The query group.
    domain : Domain, optional
        The attributes: words have their titles in its language, and their names where it is left out.
    say : Words
        The words.

    Examples
    --------
    >>> from matrixdp.queries import Identity, Prefix, Ranges
    >>> title(ProductGroup("sex, age: identity x prefix", ("sex", "age"), (Identity(), Prefix()), (2, 115)))
    'age CDF by sex'
    >>> title(ProductGroup("age by decade", ("age",), (Ranges(((0, 9), (10, 19))),), (20,)))
    'age by decade'
    >>> title(ProductGroup("total", (), (), ()))
    'total'
    """
    if not isinstance(group, ProductGroup) or (called := _called(group)) is None:
        return group.name
    main: dict[str, list[str]] = {}
    by: list[str] = []
    asked = zip(called, group.attributes, map(whole_set, group.predicates), group.sizes, strict=True)
    for name, attribute, predicates, size in asked:
        shown = name
        if domain is not None:
            own, titled = heads(domain[attribute], (predicates,))
            if own != attribute or name == attribute:
                name, shown = own, titled
        kind = predicates.title(size, say) if name == attribute else ""  # else the values of a level
        if kind is None:
            continue
        if kind.startswith(" ") and domain is not None and predicates.count(size) == 1:
            kind = f" {predicates.describe(domain[attribute])[0]}"
        if not kind or kind.startswith(" "):
            by.append(f"{shown}{kind}")
        else:
            main.setdefault(kind, []).append(shown)
    first = [say("of_kind", of=say.listed(names), kind=kind) for kind, names in main.items()]
    first = first or by[:1] or [say("title_total")]
    rest = by if main else by[1:]
    words = say.listed(first)
    return say("by", first=words, rest=say.listed(rest)) if rest else words


def head(attribute: Attribute, sets: Iterable[Predicates]) -> str:
    """Return what the column of an attribute is called: by its level, where one alone is asked about."""
    return heads(attribute, sets)[0]


def heads(attribute: Attribute, sets: Iterable[Predicates]) -> tuple[str, str]:
    """Return the name and the title of an attribute's column: its level's, where one alone is asked about."""
    sets = [whole_set(own) for own in sets]
    for level in attribute.codebook.levels:
        if any(asked.count(attribute.size) != len(level.groups) for asked in sets):
            continue
        own = Labelled(Sets(level.sets), level.labels(attribute.as_written))
        if all(asked == own for asked in sets):
            return level.name, level.called(attribute)
    return attribute.name, attribute.title


def whole_set(predicates: Predicates) -> Predicates:
    """Return the set of which some queries were chosen, or the set itself."""
    return predicates.predicates if isinstance(predicates, queries.Chosen) else predicates


def titles(groups: Iterable[Group]) -> tuple[str, ...]:
    """Return the titles of groups, those that come again with their number behind them.

    Examples
    --------
    >>> total = ProductGroup("total", (), (), ())
    >>> titles([total, total])
    ('total', 'total (2)')
    """
    return unique(title(group) for group in groups)


def unique(names: Iterable[str]) -> tuple[str, ...]:
    """Return names, those that come again with their number behind them."""
    own = list(names)
    taken = set(own)
    seen: Counter[str] = Counter()
    found = []
    for name in own:
        seen[name] += 1
        made = name
        while seen[name] > 1 and (made := f"{name} ({seen[name]})") in taken:
            seen[name] += 1
        taken.add(made)
        found.append(made)
    return tuple(found)


def find_group(
    groups: Sequence[Group], text: str, others: Sequence[str] = (), listed: Sequence[str] = ()
) -> int:
    """Return the place of the group that a text means.

    Parameters
    ----------
    groups : sequence of Group
        The groups to choose from.
    others : sequence of str
        The titles of other tables; their places come after those of the groups.
    listed : sequence of str
        What an error may name, where that is not all of them.
    text : str
        A title, a group's name, or its attributes. What is written exactly so comes first; else words may
        stand in any order and case, with ``by``, ``and``, ``x`` and commas between them or without.
        Attributes alone mean the group of their values where there are others with the same attributes.

    Raises
    ------
    WorkloadError
        If no group is meant, or several are; with the titles that are nearest.

    Examples
    --------
    >>> from matrixdp.queries import Identity, Prefix
    >>> cdf = ProductGroup("sex, age: identity x prefix", ("sex", "age"), (Identity(), Prefix()), (2, 115))
    >>> cells = ProductGroup("sex, age", ("sex", "age"), (Identity(), Identity()), (2, 115))
    >>> [find_group([cdf, cells], text) for text in ("Age CDF by sex", "age, sex", cdf.name)]
    [0, 1, 0]
    """
    if not isinstance(text, str):
        raise WorkloadError.at((), describe_value(text), "the title of a table, as text")
    called = titles(groups)
    names = [group.name for group in groups]
    attributes = [", ".join(group.attributes) for group in groups]
    every = (*called, *others)
    ways: list[tuple[Callable[[str], object], Sequence[str]]] = [
        (str, every),
        (str, names),
        (_spaced, every),
        (_words, every),
        (_spaced, names),
        (_words, names),
        (_words, attributes),
    ]
    for same, candidates in ways:
        found = [place for place, name in enumerate(candidates) if same(name) == same(text)]
        if found:
            return found[-1] if found[-1] >= len(groups) else _only(groups, called, found, text)
    problem = unknown_name((), text, "the title, the name or the attributes of a table", listed or every)
    if not problem.suggestions:
        problem = Problem((), problem.found, problem.expected, _near(text, listed or every))
    raise WorkloadError(problem)


def _only(groups: Sequence[Group], called: Sequence[str], found: list[int], text: str) -> int:
    """Return the one group that is meant, or the first of equals."""
    if len({title(groups[place]) for place in found}) > 1:
        several = tuple(called[place] for place in found[:3])
        raise WorkloadError.at((), f"{text!r}, which {len(found)} tables are about", "one of them", several)
    return found[0]


def _near(text: str, called: Sequence[str]) -> tuple[str, ...]:
    """Return titles with words that are close to those of a text."""
    asked = set(_words(text))
    known = [(len(asked & set(_words(name))), -place, name) for place, name in enumerate(called)]
    shared = [name for count, _, name in sorted(known, reverse=True) if count]
    return tuple(shared[:3]) or nearest(text, called)


def _spaced(text: str) -> str:
    return " ".join(text.casefold().split())


def _words(text: str) -> tuple[str, ...]:
    return tuple(sorted(set(re.split(r"[\s,]+", text.casefold())) - _JOINING - {""}))


def _called(group: ProductGroup) -> list[str] | None:
    """Return what the attributes are called, also at a level; None where the user named the group."""
    if not group.attributes:
        return [] if group.name == "total" else None
    own = ", ".join(group.attributes)
    if group.name == own:
        return list(group.attributes)
    head, _, kinds = group.name.rpartition(": ")
    texts = kinds.split(" x ")
    if head:
        automatic = _automatic(set_names())
        if len(texts) != len(group.attributes) or not all(map(automatic.fullmatch, texts)):
            return None
        levels = [text.removeprefix("level ") if text.startswith("level ") else None for text in texts]
        if head == own:
            return [level or name for name, level in zip(group.attributes, levels, strict=True)]
    parts = (head or group.name).split(", ")
    if len(parts) != len(group.attributes):
        return None
    pairs = zip(parts, group.attributes, map(whole_set, group.predicates), strict=True)
    known = all(part == name or isinstance(predicates, Labelled) for part, name, predicates in pairs)
    return parts if known else None


@lru_cache(8)
def _automatic(names: tuple[str, ...]) -> re.Pattern[str]:
    """Return what sets are called in the names that groups have where the user gave none."""
    own = rf"(permuted )*({'|'.join(names)})"
    return re.compile(rf"{own}( \+ {own})*")


# Names of files.

#: Bytes of a name.
_LONGEST_NAME = 80
#: Latin letters that are not a plain one with a mark.
_LETTERS = str.maketrans(
    {"ø": "o", "ł": "l", "đ": "d", "ð": "d", "ħ": "h", "ı": "i", "æ": "ae", "œ": "oe", "þ": "th"}
)
#: What Windows keeps for devices, whatever the ending.
_RESERVED = re.compile(r"con|prn|aux|nul|(com|lpt)\d")


def file_name(title: str, taken: set[str]) -> str:
    """Return a name of small letters, digits and hyphens that no other table has.

    Latin letters are plain ones; those of other alphabets stay.

    Examples
    --------
    >>> taken = set()
    >>> [file_name(title, taken) for title in ("Größe (cm)", "groesse cm", "年齢", "con", "...")]
    ['grosse-cm', 'groesse-cm', '年齢', 'con-table', 'table']
    """
    letters = normalize("NFC", title.casefold().translate(_LETTERS))
    plain = (normalize("NFKD", mark).encode("ascii", "ignore").decode() or mark for mark in letters)
    # vowels of some alphabets are marks; those beside Latin letters go
    kept = re.sub(r"[\u0300-\u036f]", "", "".join(plain)).lower()
    words = "".join(mark if category(mark)[0] in "LMN" else " " for mark in kept).split()
    name = "-".join(words).encode()[:_LONGEST_NAME].decode(errors="ignore").strip("-") or "table"
    name = f"{name}-table" if _RESERVED.fullmatch(name) else name
    made = next(one for one in chain([name], (f"{name}-{i}" for i in count(2))) if one not in taken)
    taken.add(made)
    return made
