"""The privacy budget: a promise in one of the field's definitions."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from typing import Any, Literal, Self, final

from matrixdp.errors import Path, PrivacyError
from matrixdp.forms import describe_value
from matrixdp.privacy.conversions import (
    Number,
    best_guess,
    bisect,
    exact_positive,
    float_above,
    largest_mu,
    root_below,
)
from matrixdp.privacy.unit import Unit

#: The public bound on the records of a table where none is given: it decides how wide exact integers are.
DEFAULT_MAX_RECORDS = 2**33


def _refusal(found: str, expected: str, code: str, *steps: str) -> PrivacyError:
    return PrivacyError.at(("budget", *steps), found, expected, code=code)


NEIGHBOURS = ("add_remove", "replace")

_EXPECTED = "exactly one of rho, mu, or epsilon (with delta, or alone for pure differential privacy)"


@dataclass(frozen=True, init=False, repr=False)
class Budget:
    """How much privacy may be spent: rho-zCDP, mu-GDP or (epsilon, delta), and between which tables.

    Every parameter is read as an exact rational number. A floating-point number stands for its shortest
    decimal text, as in a specification: 0.1 is one tenth.

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
        values = {"rho": rho, "mu": mu, "epsilon": epsilon}
        given = [name for name, value in values.items() if value is not None]
        if delta is not None and given in ([], ["rho"], ["mu"]):
            found = f"delta with {given[0]}" if given else "delta without epsilon"
            raise _refusal(found, _EXPECTED, "conflict", "delta")
        if len(given) != 1:
            raise _refusal(" and ".join(given) or "none", _EXPECTED, "conflict")
        if not isinstance(neighbours, str) or neighbours not in NEIGHBOURS:
            found = describe_value(neighbours)
            raise _refusal(found, "add_remove or replace", "unknown-name", "neighbours")
        (kind,) = given
        if kind == "epsilon":
            kind = "pure" if delta is None else "approx"
        exact: dict[str, object] = dict.fromkeys(("rho", "mu", "epsilon", "delta"))
        exact |= {name: exact_positive(f"budget.{name}", values[name]) for name in given}
        if delta is not None:
            exact["delta"] = exact_positive("budget.delta", delta, below=1)
        exact["_mu"] = exact.pop("mu")
        rest = {"kind": kind, "neighbours": neighbours, "unit": Unit.of(unit)}
        for name, value in (exact | rest).items():
            object.__setattr__(self, name, value)

    def __repr__(self) -> str:
        given = self.as_dict() | {"unit": self.unit}
        if self.unit == Unit():
            del given["unit"]
        return f"Budget({', '.join(f'{name}={value!r}' for name, value in given.items())})"

    @property
    def words(self) -> str:
        """The budget as people write it.

        Examples
        --------
        >>> Budget(epsilon=1, delta=1e-6, unit=Unit(records=3)).words
        'epsilon 1, delta 1e-06, add_remove neighbours, 3 records a person'
        """
        said = [f"{name} {_nearest(value)}".removesuffix(".0") for name, value in self.given.items()]
        records = self.unit.records
        of_person = [f"{records:,} records a person{self.unit.spread}"] if records > 1 else []
        return ", ".join([*said, f"{self.neighbours} neighbours", *of_person])

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
        expected = (
            "a delta in (0, 1), since Gaussian noise cannot honour pure differential privacy (epsilon "
            "alone); use Laplace noise (noise laplace or auto) for it"
        )
        raise _refusal("none", expected, "not-supported", "delta")

    @property
    def given(self) -> dict[str, Fraction]:
        """The parameters that were given, by their names, exact."""
        values = {"rho": self.rho, "mu": self._mu, "epsilon": self.epsilon, "delta": self.delta}
        return {name: value for name, value in values.items() if value is not None}

    def less(self, delta: Fraction) -> Budget | None:
        """Return the budget with so much less delta, pure if none is left; None if it has not so much.

        Examples
        --------
        >>> Budget(epsilon=1, delta=1e-6).less(Fraction(1, 10**6)).kind, Budget(rho=1).less(Fraction(1, 9))
        ('pure', None)
        """
        left = (self.delta or Fraction(0)) - delta
        if delta == 0:
            return self
        if left < 0:
            return None
        given = self.given | {"delta": left or None}
        return Budget(**given, neighbours=self.neighbours, unit=self.unit)

    def of_unit(self, unit: Unit) -> Budget:
        """Return the same parameters for another privacy unit.

        Examples
        --------
        >>> Budget(mu=1).of_unit(Unit(3))
        Budget(mu=1.0, neighbours='add_remove', unit=Unit(records=3))
        """
        return Budget(**(self.as_dict() | {"unit": unit}))

    def as_dict(self) -> dict[str, Any]:
        """Return the parameters given, as JSON has them.

        ``Budget(**budget.as_dict())`` is the same budget, or the next smaller one that float64 can write.

        Examples
        --------
        >>> Budget(epsilon=1, delta=1e-6).as_dict()
        {'epsilon': 1.0, 'delta': 1e-06, 'neighbours': 'add_remove', 'unit': {'records': 1}}
        """
        numbers = {name: _nearest(value) for name, value in self.given.items()}
        return numbers | {"neighbours": self.neighbours, "unit": self.unit.as_dict()}


def _nearest(value: Fraction) -> float:
    """Return the float64 nearest to a parameter whose shortest decimal text claims no more."""
    found = float_above(value)
    while math.isinf(found) or Fraction(repr(found)) > value:
        found = math.nextafter(found, 0.0)
    return found


# Sentences of a privacy statement, with identifiers and parameters for machines.

#: Of a sentence without an identifier, from a third-party source.
OTHER = "other"
_IDENTIFIER = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")


@final
class Clause(str):
    """A sentence of a privacy statement: its identifier and parameters stay when it is reworded.

    Parameters
    ----------
    id : str
        Small letters, digits and hyphens.
    text : str
        The sentence, a rendering of the identifier and the parameters.
    parameters : mapping, optional
        What the sentence says of this release, as plain values for JSON.

    Raises
    ------
    PrivacyError
        If the identifier is of another form.

    Examples
    --------
    >>> clause = Clause("bits-per-sample", "No sample takes more than 9 bits.", {"bits": 9})
    >>> clause.id, clause.parameters, clause[:9]
    ('bits-per-sample', {'bits': 9}, 'No sample')
    >>> Clause.of("Every record is one line.").meaning
    {'id': 'other', 'text': 'Every record is one line.'}
    """

    __slots__ = ("id", "parameters")

    id: str
    parameters: dict[str, Any]

    def __new__(cls, id: str, text: str, parameters: Mapping[str, Any] | None = None) -> Self:  # noqa: A002
        """Make the sentence."""
        if not isinstance(id, str) or _IDENTIFIER.fullmatch(id) is None:
            found = f"the identifier of a sentence: found {id!r}"
            raise PrivacyError(f"{found}; expected small letters, digits and hyphens", "wrong-type")
        clause = super().__new__(cls, text)
        clause.id, clause.parameters = id, dict(parameters or {})
        return clause

    def __getnewargs__(self) -> tuple[str, str, dict[str, Any]]:  # type: ignore[override]
        return self.id, str(self), self.parameters

    @classmethod
    def of(cls, sentence: str) -> Clause:
        """Return a sentence as a clause; one that has no identifier gets `OTHER`."""
        return sentence if isinstance(sentence, Clause) else cls(OTHER, sentence)

    @property
    def meaning(self) -> dict[str, Any]:
        """What stays when the sentence is reworded; of a sentence without an identifier its text."""
        if self.id == OTHER:
            return {"id": self.id, "text": str(self)}
        return {"id": self.id, "parameters": self.parameters}

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON has it; ``Clause(**written)`` reads it."""
        return {"id": self.id, "parameters": self.parameters, "text": str(self)}


# The least budget that buys a given accuracy.

#: The parameter that is made least; epsilon with a delta, or alone.
BUDGET_KINDS = ("rho", "mu", "epsilon")

#: A budget is rounded up to this many significant digits.
_DIGITS = Context(prec=6, rounding=ROUND_CEILING)
_LARGEST = 2.0**100


@dataclass(frozen=True)
class LeastBudget:
    """Which parameter of a budget is made least, so that targets are met.

    Attributes
    ----------
    kind : {"rho", "mu", "epsilon"}
    delta : number or None
        For ``epsilon``; without it the budget is pure.
    neighbours : {"add_remove", "replace"}
    unit : Unit
    limit : Budget or None
        What it must not exceed, if anything.

    Examples
    --------
    >>> LeastBudget.within(Budget(mu=1))
    LeastBudget(kind='mu', delta=None, neighbours='add_remove', unit=Unit(records=1))
    """

    kind: str
    delta: Number | None = None
    neighbours: Literal["add_remove", "replace"] = "add_remove"
    unit: Unit = field(default_factory=Unit)
    limit: Budget | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if self.kind not in BUDGET_KINDS:
            raise _refusal(repr(self.kind), " or ".join(BUDGET_KINDS), "unknown-name", "least")
        if self.delta is not None and self.kind != "epsilon":
            found = f"one with least {self.kind}"
            raise _refusal(found, "it with least epsilon alone", "conflict", "delta")
        self.reference()

    @staticmethod
    def within(limit: Budget) -> LeastBudget:
        """Return the form of a budget that must not be exceeded."""
        kind = limit.kind if limit.kind in ("rho", "mu") else "epsilon"
        return LeastBudget(kind, limit.delta, limit.neighbours, limit.unit, limit)

    def reference(self) -> Budget:
        """Return a budget of this form, with its parameter 1: what it is promised in decides the noise."""
        return self.budget(1)

    def least(self, error_scale: Callable[[Budget], float], needed: float) -> Budget:
        """Return the least budget of this form that divides variances at privacy cost 1 by enough.

        ``error_scale``, such as that of a noise, says by what a budget divides them. The parameter has six
        significant digits, rounded up; the limit is not looked at.

        Examples
        --------
        >>> LeastBudget("rho").least(lambda budget: 2.0 * float(budget.rho), 0.25)
        Budget(rho=0.125, neighbours='add_remove')
        >>> LeastBudget("epsilon").least(lambda budget: float(budget.epsilon) ** 2, 0.5)
        Budget(epsilon=0.707107, neighbours='add_remove')
        """
        if not (math.isfinite(needed) and needed > 0):
            told = f"error scale: found {needed!r}; expected a finite number above 0"
            raise PrivacyError(told, "out-of-range")

        def enough(value: float | Decimal) -> bool:
            return error_scale(self.budget(value)) >= needed

        low, high = 0.0, 1.0
        while not enough(high):
            low, high = high, 2.0 * high
            if high > _LARGEST:
                told = "targets: no budget below 2**100 meets them; expected larger standard errors"
                raise PrivacyError(told, "out-of-range")
        high, low = bisect(enough, high, low, 1e-7)
        rounded = _DIGITS.create_decimal(Decimal(low or high))
        while not enough(rounded):
            rounded = _DIGITS.next_plus(rounded)
        return self.budget(rounded)

    def largest_usual(self) -> Budget:
        """Return the largest budget of this form that is not above epsilon 10 or mu 3.

        Examples
        --------
        >>> LeastBudget("rho").largest_usual(), LeastBudget("epsilon").largest_usual()
        (Budget(rho=4.5, neighbours='add_remove'), Budget(epsilon=10.0, neighbours='add_remove'))
        """
        _, most = bisect(lambda value: bool(weak_privacy(self.budget(value))), 2.0 * _WEAK_EPSILON, 0.0, 1e-9)
        rounded = Decimal(f"{most:.6g}")
        return self.budget(most if weak_privacy(self.budget(rounded)) else rounded)

    def budget(self, value: Number) -> Budget:
        """Return the budget of this form with a given parameter."""
        given: dict[str, Any] = {self.kind: value, "delta": self.delta}
        return Budget(**given, neighbours=self.neighbours, unit=self.unit)


# What is said of a budget that is allowed, and still likely to be a mistake.

LARGE_DELTA = Fraction(1, 10**4)


def delta_warnings(budget: Budget, records: int | None = None) -> tuple[str, ...]:
    """Return what is wrong with the delta of a budget, in sentences.

    Parameters
    ----------
    budget : Budget
        What may be spent.
    records : int, optional
        How many records the table has, as declared without looking at it.

    Examples
    --------
    >>> from matrixdp.privacy import Budget
    >>> delta_warnings(Budget(epsilon=1, delta=1e-6), 50_000)
    ()
    >>> for sentence in delta_warnings(Budget(epsilon=1, delta=1e-4), 50_000):
    ...     print(sentence[:57])
    delta is 0.0001, above 1 / 50,000, one over the number of
    """
    bounds = [(LARGE_DELTA, "0.0001")]
    if records is not None:
        bounds.insert(0, (Fraction(1, records), f"1 / {records:,}, one over the number of records"))
    delta = budget.delta or Fraction(0)
    above = [words for bound, words in bounds if delta > bound]
    if not above:
        return ()
    return (
        f"delta is {float(delta):.3g}, above {' and above '.join(above)}: with about that probability the "
        "promise may fail altogether, for each person; 1e-6 or less is usual",
    )


_WEAK_EPSILON, _WEAK_MU = 10, 3


def weak_privacy(budget: Budget) -> tuple[str, ...]:
    """Return what a budget above epsilon 10 or mu 3 lets a reader guess, in a sentence.

    How often the best guess is right, rounded up, follows from the definition.

    Examples
    --------
    >>> weak_privacy(Budget(epsilon=10)), weak_privacy(Budget(rho=4.5))
    ((), ())
    >>> weak_privacy(Budget(mu=4))[0][:69]
    'mu 4, add_remove neighbours: a reader can guess with up to 98% accura'
    """
    epsilon = budget.epsilon
    if epsilon is not None and epsilon > _WEAK_EPSILON:
        right = 1.0  # above 1 / (1 + e^-10)
    elif budget.kind == "pure" or budget.mu <= _WEAK_MU:
        return ()
    else:
        right = best_guess(budget.mu)
    replaced = budget.neighbours == "replace"
    what = "which of two records a person has" if replaced else "whether a person is in the table"
    told = f"a reader can guess with up to {math.ceil(100 * right)}% accuracy {what}"
    return (f"{budget.words}: {told}; at most epsilon {_WEAK_EPSILON} or mu {_WEAK_MU} is usual",)


def check_strong(budget: Budget, *, accepted: bool, place: Path = ("privacy",)) -> None:
    """Reject a budget above epsilon 10 or mu 3 that stands at a place, unless it was accepted.

    Raises
    ------
    PrivacyError
        If it is.
    """
    if not accepted and (told := weak_privacy(budget)):
        expected = "a smaller budget, or --accept-weak-privacy (accept_weak_privacy=True in Python)"
        raise PrivacyError.at(place, told[0], expected, code="out-of-range")


# Budgets as exact text: what is read back is the same budget to the last digit.

_EXACT_DIGITS = 4000
_LARGEST_PART = 10**_EXACT_DIGITS
_NUMBER = re.compile(
    rf"(0|[1-9][0-9]{{0,{_EXACT_DIGITS - 1}}})(?:/([1-9][0-9]{{0,{_EXACT_DIGITS - 1}}}))?", re.ASCII
)


def exact_number(text: object) -> Fraction:
    """Return the number that a text holds: numerator, or numerator/denominator, in lowest terms.

    Raises
    ------
    PrivacyError
        If it is no such text, or has more than 4,000 digits.

    Examples
    --------
    >>> exact_number("3/10")
    Fraction(3, 10)
    """
    match = _NUMBER.fullmatch(text) if isinstance(text, str) else None
    number = None if match is None else Fraction(int(match[1]), int(match[2] or 1))
    if number is None or str(number) != text:
        told = "exact number: found something else; expected numerator/denominator in lowest terms"
        raise PrivacyError(told, "damaged-file")
    return number


def number_text(value: Fraction) -> str:
    """Return the text that `exact_number` reads.

    Raises
    ------
    PrivacyError
        If it would have more than 4,000 digits.
    """
    if max(abs(value.numerator), value.denominator) >= _LARGEST_PART:
        told = "exact number: found more than 4,000 digits; expected a number with fewer"
        raise PrivacyError(told, "out-of-range")
    return str(value)


def exact_text(budget: Budget) -> dict[str, object]:
    """Return a budget as JSON has it, each parameter as exact text.

    Examples
    --------
    >>> exact_text(Budget(rho=0.1))
    {'rho': '1/10', 'neighbours': 'add_remove', 'unit': {'records': 1}}
    """
    exact = {name: number_text(value) for name, value in budget.given.items()}
    return {**exact, "neighbours": budget.neighbours, "unit": budget.unit.as_dict()}


def exact_budget(written: Mapping[str, Any]) -> Budget:
    """Return the budget that `exact_text` wrote.

    Raises
    ------
    PrivacyError
        If it is none.

    Examples
    --------
    >>> exact_budget({"rho": "1/10", "neighbours": "add_remove", "unit": {"records": 1}})
    Budget(rho=0.1, neighbours='add_remove')
    """
    names = set(written) - {"neighbours", "unit"}
    if not names <= {"rho", "mu", "epsilon", "delta"}:
        told = "budget: found other parameters than rho, mu, epsilon and delta"
        raise PrivacyError(told, "damaged-file")
    parameters = {name: exact_number(written[name]) for name in sorted(names)}
    return Budget(**parameters, neighbours=written["neighbours"], unit=written["unit"])
