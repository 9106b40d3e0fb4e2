"""The privacy budget: a promise in one of the field's definitions."""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

from matrixdp.errors import PrivacyError
from matrixdp.forms import describe_value
from matrixdp.privacy.conversions import largest_mu
from matrixdp.privacy.numbers import Number, exact_positive, float_below, root_below
from matrixdp.privacy.unit import Unit

__all__ = ["NEIGHBOURS", "Budget"]

NEIGHBOURS = ("add_remove", "replace")

_EXPECTED = "exactly one of rho, mu, or epsilon (with delta, or alone for pure differential privacy)"


@dataclass(frozen=True, init=False, repr=False)
class Budget:
    """How much privacy may be spent: rho-zCDP, mu-GDP or (epsilon, delta), and between which tables.

    Every parameter is read as an exact rational number. A floating-point number stands for its shortest
    decimal text or its binary value, whichever is smaller: 0.1 is at most one tenth.

    Parameters
    ----------
    rho : int, float, Fraction or Decimal, optional
        Zero-concentrated differential privacy, above 0.
    mu : int, float, Fraction or Decimal, optional
        Gaussian differential privacy, above 0.
    epsilon : int, float, Fraction or Decimal, optional
        Above 0; with `delta` approximate differential privacy, alone pure differential privacy, which
        Laplace noise honours and Gaussian noise cannot.
    delta : int, float, Fraction or Decimal, optional
        Above 0 and below 1; only with `epsilon`.
    neighbours : {"add_remove", "replace"}
        Tables are neighbours if one is the other with one person's records added or removed, or with them
        replaced by those of another.
    unit : Unit or mapping, optional
        How many records a person has at most; one where it is left out. A mapping is what `as_dict` makes:
        ``{"records": 3}`` or ``{"id": "person", "records": 3}``.

    Attributes
    ----------
    kind : {"rho", "mu", "approx", "pure"}
        Which definition was given.
    rho, epsilon, delta : Fraction or None
        The parameters as they were given, exact.
    neighbours : {"add_remove", "replace"}
        As given.
    unit : Unit
        As given.

    Raises
    ------
    PrivacyError
        If not exactly one definition is given, or a parameter is out of range.

    References
    ----------
    M. Bun and T. Steinke, Concentrated differential privacy, TCC 2016 (zCDP).
    J. Dong, A. Roth and W. Su, Gaussian differential privacy, JRSS B 84, 2022 (GDP).
    B. Balle and Y.-X. Wang, Improving the Gaussian mechanism, ICML 2018 (the exact curve).

    Examples
    --------
    >>> Budget(rho=0.1).rho
    Fraction(1, 10)
    >>> round(float(Budget(epsilon=1, delta=1e-6).mu), 6)
    0.236704
    >>> Budget(mu=1, unit=Unit(records=3)).moved, Budget(mu=1, neighbours="replace").moved
    (3, 2)
    >>> Budget(rho=-1)
    Traceback (most recent call last):
        ...
    matrixdp.errors.PrivacyError: budget.rho: found -1; expected a finite number above 0
    """

    kind: Literal["rho", "mu", "approx", "pure"]
    rho: Fraction | None
    _mu: Fraction | None
    epsilon: Fraction | None
    delta: Fraction | None
    neighbours: Literal["add_remove", "replace"]
    unit: Unit

    def __init__(
        self,
        *,
        rho: Number | None = None,
        mu: Number | None = None,
        epsilon: Number | None = None,
        delta: Number | None = None,
        neighbours: Literal["add_remove", "replace"] = "add_remove",
        unit: Unit | Mapping[str, object] | None = None,
    ) -> None:
        given = [
            name for name, value in (("rho", rho), ("mu", mu), ("epsilon", epsilon)) if value is not None
        ]
        if len(given) != 1:
            if not given and delta is not None:
                raise PrivacyError.at(("budget", "delta"), "delta without epsilon", _EXPECTED)
            raise PrivacyError.at(("budget",), " and ".join(given) or "none", _EXPECTED)
        if delta is not None and given != ["epsilon"]:
            raise PrivacyError.at(("budget", "delta"), f"delta with {given[0]}", _EXPECTED)
        if not isinstance(neighbours, str) or neighbours not in NEIGHBOURS:
            raise PrivacyError.at(
                ("budget", "neighbours"), describe_value(neighbours), "add_remove or replace"
            )
        kind = "rho" if rho is not None else "mu" if mu is not None else "pure" if delta is None else "approx"
        values = {
            "kind": kind,
            "rho": None if rho is None else exact_positive("budget.rho", rho),
            "_mu": None if mu is None else exact_positive("budget.mu", mu),
            "epsilon": None if epsilon is None else exact_positive("budget.epsilon", epsilon),
            "delta": None if delta is None else exact_positive("budget.delta", delta, below=1),
            "neighbours": neighbours,
            "unit": Unit.of(unit),
        }
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def __repr__(self) -> str:
        given = self.as_dict() | {"unit": self.unit}
        if self.unit == Unit():
            del given["unit"]
        return f"Budget({', '.join(f'{name}={value!r}' for name, value in given.items())})"

    @property
    def moved(self) -> int:
        """The number of records in which neighbouring tables differ at most.

        The records of one person; under ``replace`` those that go and those that come.
        """
        return self.unit.records * (2 if self.neighbours == "replace" else 1)

    @property
    def mu(self) -> Fraction:
        """The largest mu-GDP parameter that the budget allows between its own neighbours, rounded down.

        Exact for a budget given as mu; otherwise a dyadic rational within a relative 2**-60.

        Raises
        ------
        PrivacyError
            If the budget is pure differential privacy, which no mu > 0 implies.
        """
        if self.rho is not None:
            return root_below(2 * self.rho)
        if self._mu is not None:
            return self._mu
        if self.epsilon is not None and self.delta is not None:
            return largest_mu(self.epsilon, self.delta)
        raise PrivacyError.at(
            ("budget", "delta"),
            "none",
            "a delta in (0, 1), since Gaussian noise cannot honour pure differential privacy (epsilon "
            "alone); use Laplace noise (noise laplace or auto) for it",
        )

    def as_dict(self) -> dict[str, Any]:
        """Return the parameters given, as JSON has them.

        ``Budget(**budget.as_dict())`` is the same budget, or the next smaller one that float64 can write.

        Examples
        --------
        >>> Budget(epsilon=1, delta=1e-6).as_dict()
        {'epsilon': 1.0, 'delta': 1e-06, 'neighbours': 'add_remove', 'unit': {'records': 1}}
        """
        result: dict[str, Any] = {}
        for name, value in (
            ("rho", self.rho),
            ("mu", self._mu),
            ("epsilon", self.epsilon),
            ("delta", self.delta),
        ):
            if value is not None:
                result[name] = _nearest(value)
        result["neighbours"] = self.neighbours
        result["unit"] = self.unit.as_dict()
        return result


def _nearest(value: Fraction) -> float:
    """Return the float64 nearest to a parameter, or the one below if the nearest would claim more."""
    below = float_below(value)
    try:
        nearest = float(value)
    except OverflowError:
        return below
    return nearest if exact_positive("budget", nearest, zero=True) <= value else below
