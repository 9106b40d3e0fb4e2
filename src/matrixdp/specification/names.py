"""What the names of columns say of what they hold."""

from __future__ import annotations

import re

_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|[0-9]+")
_IDENTIFIERS = frozenset(
    {
        *("id", "uuid", "guid", "ssn", "nin", "key", "iban", "passport", "username", "login", "ip", "url"),
        *("email", "mail", "phone", "telephone", "mobile", "fax", "address", "street"),
        *("surname", "firstname", "lastname", "fullname"),
    }
)
_TEXTS = frozenset({"comment", "comments", "note", "notes", "remark", "remarks", "message", "messages"})
_CODES = frozenset(
    {
        *(
            "code",
            "codes",
            "zip",
            "zipcode",
            "postcode",
            "postal",
            "plz",
            "fips",
            "iso",
            "sic",
            "naics",
            "nace",
        ),
        *("isco", "icd", "industry", "occupation", "country", "county", "region", "state", "district"),
        *(
            "municipality",
            "tract",
            "sex",
            "gender",
            "race",
            "ethnicity",
            "religion",
            "nationality",
            "marital",
        ),
    }
)
_MONEY = frozenset(
    {
        *(
            "pay",
            "wage",
            "wages",
            "salary",
            "income",
            "earnings",
            "money",
            "price",
            "cost",
            "costs",
            "revenue",
        ),
        *("turnover", "tax", "rent", "loan", "balance", "fee", "fees", "spending", "expenditure", "amount"),
        *("payment", "benefit", "benefits", "premium", "profit", "debt", "savings", "usd", "eur", "gbp"),
    }
)


def _words(name: str) -> set[str]:
    return {word.lower() for word in _WORD.findall(name)}


def is_identifier(name: str) -> bool:
    """Return whether a column of this name identifies persons or records.

    Examples
    --------
    >>> is_identifier("emailAddress"), is_identifier("Name"), is_identifier("village_name")
    (True, True, False)
    """
    words = _words(name)
    return bool(words & _IDENTIFIERS) or words == {"name"}


def is_text(name: str) -> bool:
    """Return whether a column of this name holds what people wrote."""
    return bool(_words(name) & _TEXTS)


def is_code(name: str) -> bool:
    """Return whether numbers in a column of this name are codes, of which no sum means anything.

    Examples
    --------
    >>> is_code("ZIP"), is_code("county_id"), is_code("age")
    (True, True, False)
    """
    return bool(_words(name) & _CODES)


def is_money(name: str) -> bool:
    """Return whether numbers in a column of this name are added up.

    Examples
    --------
    >>> is_money("base_salary"), is_money("salary_code"), is_money("age")
    (True, False, False)
    """
    return bool(_words(name) & _MONEY) and not is_code(name)
