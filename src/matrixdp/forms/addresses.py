"""Addresses of tables, such as ``postgresql://host/database``, and what may be told of them."""

import re

__all__ = ["has_scheme", "names_secret", "shown"]

_ADDRESS = re.compile(r"(\s*[a-z][a-z0-9+.:-]*)://(.*)", re.IGNORECASE | re.DOTALL)
_PLAIN = re.compile(r"(?:[^@/?#]*@)?([^@?#]*)")


def has_scheme(table: object, *schemes: str) -> bool:
    """Return whether what is to be opened is an address of one of some schemes; of any, where none is named.

    Examples
    --------
    >>> has_scheme("sqlite:///people.db", "sqlite"), has_scheme("people.csv"), has_scheme(3)
    (True, False, False)
    """
    found = _ADDRESS.fullmatch(table) if isinstance(table, str) else None
    return found is not None and (not schemes or found[1].lower() in schemes)


def shown(address: str) -> str:
    """Return an address without what may be secret: who asks, with which password, and what stands after '?'.

    Examples
    --------
    >>> shown("postgresql://ann:secret@localhost/people?sslpassword=x"), shown("postgresql://ann:s/e@host/d")
    ('postgresql://localhost/people', 'postgresql://...')
    >>> shown("jdbc:postgresql://ann:secret@localhost/people")
    'jdbc:postgresql://localhost/people'
    """
    found = _ADDRESS.fullmatch(address)
    if found is None:
        return address
    place = re.split(r"[?#]", found[2], maxsplit=1)[0]
    plain = _PLAIN.fullmatch(place)
    return f"{found[1]}://{'...' if plain is None else plain[1]}"


def names_secret(address: str) -> bool:
    """Return whether an address has a password, or may have one.

    Examples
    --------
    >>> names_secret("postgresql://ann:x@host/people"), names_secret("postgresql://ann@host/people")
    (True, False)
    """
    found = _ADDRESS.fullmatch(address)
    user = found[2].rpartition("@")[0] if found else ""
    return ":" in user or "password" in address.lower()
