"""The codes of derived attributes, looked up by those of what they are derived from, in SQL of any server."""

from collections.abc import Mapping

from matrixdp.domain import Domain, OutOfDomain

__all__ = ["attribute_codes"]


def attribute_codes(domain: Domain, out_of_domain: OutOfDomain, read: Mapping[str, str]) -> dict[str, str]:
    """Return the expression for the code of each attribute of a domain, NULL where it is out of domain.

    Parameters
    ----------
    domain : Domain
    out_of_domain : OutOfDomain
        Has been carried out on what was read; it is here on what is derived from this.
    read : mapping of str to str
        The columns of codes, NULL where a value is out of domain, by the names of `Domain.readings`.

    Examples
    --------
    >>> domain = Domain({"age": 3, "minor": {"of": ["age"], "map": {0: "yes"}, "otherwise": "no"}})
    >>> print(attribute_codes(domain, OutOfDomain(), {"age": "c0"})["minor"])
    CAST(substr('011', CAST(1 + 1 * (CAST(c0 AS BIGINT) * 1) AS INTEGER), 1) AS INTEGER)
    """
    found = {}
    for attribute in domain:
        derivation = attribute.codebook.derivation
        if derivation is None:
            found[attribute.name] = read[attribute.name]
            continue
        names, step = domain.parents[attribute.name], 1
        terms = []
        for name in reversed(names):
            terms.append(f"CAST({read[name]} AS BIGINT) * {step}")
            step *= domain.readings[name].size
        # Every code as a text of one width, which every server finds by its place without looking at others.
        width = len(str(attribute.size - 1))
        table = "".join(f"{code:0{width}d}" for code in derivation.codes)
        place = f"CAST(1 + {width} * ({' + '.join(reversed(terms))}) AS INTEGER)"
        code = f"CAST(substr('{table}', {place}, {width}) AS INTEGER)"
        other = out_of_domain.code(attribute.name)
        found[attribute.name] = code if other is None else f"coalesce({code}, {other})"
    return found
