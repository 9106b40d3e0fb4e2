"""Titles, units, notes and labels of attributes from a code book: a public CSV file."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace

from matrixdp.domain.attribute import Attribute
from matrixdp.domain.domain import Domain
from matrixdp.domain.parsing import read_file
from matrixdp.errors import DomainError, within
from matrixdp.texts import Described, Text, texts_of

#: What columns of code books are called that name attributes, and their values.
ATTRIBUTES = ("variable", "attribute", "column", "field", "name")
VALUES = ("value", "code", "category")
_TEXTS = ("label", "title", "unit", "note", "source")


def with_code_book(domain: Domain, path: str | os.PathLike[str]) -> Domain:
    r"""Return a domain with the texts of a code book, where it has none of its own.

    Parameters
    ----------
    domain : Domain
        The attributes; rows about others are left out.
    path : path
        Of a CSV file with a column that names attributes (`variable`), perhaps one of values (`value`), and
        texts: `label` of values; `title`, `unit`, `note` and `source` of attributes, in rows without a
        value. ``title.fr`` is the title in French.

    Raises
    ------
    DomainError
        If the file cannot be read or has no such columns, or an attribute does not have a value.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "book.csv")
    ...     _ = path.write_text("variable,value,label,title.en,title.fr\nsex,,,Sex,Sexe\nsex,f,female,,\n")
    ...     sex = with_code_book(Domain({"sex": ["f", "m"]}), path)["sex"]
    >>> sex.title, sex.in_language("fr").title, sex.label(0)
    ('Sex', 'Sexe', 'female')
    """
    file = read_file(path)
    heads = {head.lower(): place for place, head in enumerate(file.header)}
    named, valued = (next((heads[n] for n in known if n in heads), None) for known in (ATTRIBUTES, VALUES))
    texts = {head: place for head, place in heads.items() if head.partition(".")[0] in _TEXTS}
    if named is None or not texts:
        expected = "a column `variable`, and columns such as `value`, `label`, `title` or `title.fr`"
        raise DomainError.at((), ", ".join(file.header) or "no header", expected, code="missing-key")
    told: dict[str, dict[str, dict[str, Text]]] = {}
    for row in file.rows:
        if row[named] in domain:
            value = "" if valued is None else row[valued]
            own = told.setdefault(row[named], {}).setdefault(value, {})
            own |= {key: text for key, text in _texts(row, texts).items() if key not in own}
    return Domain([_described(a, told[a.name]) if a.name in told else a for a in domain.attributes])


def _texts(row: tuple[str, ...], places: Mapping[str, int]) -> dict[str, Text]:
    """Return the texts of a row by their keys, in all languages."""
    found: dict[str, dict[str, str]] = {}
    for head, place in places.items():
        key, _, language = head.partition(".")
        if row[place].strip():
            found.setdefault(key, {})[language] = row[place]
    return {
        key: Text(said[""] if set(said) == {""} else {own: text for own, text in said.items() if own})
        for key, said in found.items()
    }


def _described(attribute: Attribute, told: Mapping[str, Mapping[str, Text]]) -> Attribute:
    """Return an attribute with texts by values; those of the attribute itself are those of no value."""
    book = attribute.codebook
    general = {key: text for key, text in told.get("", {}).items() if key != "label"}
    known = {attribute.code_of(value) for value, _ in book.labels}
    labels = dict(book.labels)
    for value, texts in told.items():
        with within(attribute.name, value):
            if value and "label" in texts and attribute.find(value) not in known:
                labels[value] = texts["label"]
    described = Described(**{**general, **dict(texts_of(book.described))})
    return replace(attribute, codebook=replace(book, labels=tuple(labels.items()), described=described))
