"""What entries add up to, compared with the total of a ledger: exact, every rounding upwards.

Why budgets may be chosen as one goes is proved in docs/privacy.md ("Releases under one ledger").
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Context
from fractions import Fraction
from shlex import quote
from typing import final

from matrixdp.errors import NumericalError, PrivacyError
from matrixdp.noise import Cost, Measure, checked_cost
from matrixdp.privacy import Budget, epsilon_of
from matrixdp.privacy.conversions import epsilon_of_gdp, gdp_of_epsilon, largest_mu
from matrixdp.privacy.exact_form import number_text
from matrixdp.privacy.numbers import root_above, root_below

__all__ = ["MEASURES", "Account", "in_words"]

#: What is added up towards a total; for (epsilon, delta) it is enough that one of the sums keeps to it.
MEASURES: dict[str, tuple[Measure, ...]] = {
    "rho": ("rho",),
    "mu": ("squared_mu",),
    "pure": ("epsilon",),
    "approx": ("squared_mu", "epsilon"),
}
_SMALLEST_EPSILON = Fraction(1, 10**12)


def in_words(parameters: Mapping[str, object], rounding: str | None = None) -> str:
    """Say the numbers among parameters; with a rounding of the module decimal, to six digits.

    Examples
    --------
    >>> from decimal import ROUND_FLOOR
    >>> in_words({"rho": 0.10000000000000005}, ROUND_FLOOR), in_words(Budget(epsilon=1, delta=1e-6).as_dict())
    ('rho 0.1', 'epsilon 1.0, delta 1e-06')
    """
    numbers = {name: value for name, value in parameters.items() if isinstance(value, float)}
    if rounding is not None:
        six = Context(prec=6, rounding=rounding)
        numbers = {name: float(six.create_decimal(repr(value))) for name, value in numbers.items()}
    return ", ".join(f"{name} {value!r}" for name, value in numbers.items())


@final
@dataclass(frozen=True)
class Account:
    """Sums of what was spent, beside the total that they are compared with.

    Attributes
    ----------
    total : Budget
        What all releases together may spend, and between which neighbours.
    sums : tuple of Fraction or None
        One for each measure of the total; None once something was spent that the measure does not bound.

    Examples
    --------
    >>> from matrixdp.noise import GAUSSIAN
    >>> one = Account.empty(Budget(rho=1)).plus(Cost(Fraction(1), GAUSSIAN), Budget(rho=0.5))
    >>> one.spent, one.left
    (Budget(rho=0.5, neighbours='add_remove'), Budget(rho=0.5, neighbours='add_remove'))
    """

    total: Budget
    sums: tuple[Fraction | None, ...]

    @staticmethod
    def empty(total: Budget) -> Account:
        """Return the account of nothing."""
        return Account(total, (Fraction(0),) * len(MEASURES[total.kind]))

    @staticmethod
    def of(total: Budget, entries: Iterable[tuple[Cost, Budget]]) -> Account:
        """Return the account of costs, each with the budget that it was within."""
        account = Account.empty(total)
        for cost, budget in entries:
            account = account.plus(cost, budget)
        return account

    def plus(self, cost: Cost, budget: Budget) -> Account:
        """Return the account with one more cost.

        Raises
        ------
        PrivacyError
            If the cost is not within its budget, or the budget is for other neighbours or another unit than
            the total: what is spent cannot be compared then.
        """
        checked_cost(cost, budget)
        self.check_terms(budget)
        between = cost.value * self.total.moved**cost.noise.norm
        sums = zip(MEASURES[self.total.kind], self.sums, strict=True)
        return Account(self.total, tuple(_sum(name, one, between, cost, budget) for name, one in sums))

    def check_terms(self, budget: Budget) -> None:
        """Refuse a budget for other neighbours or another unit than the total's."""
        if budget.neighbours != self.total.neighbours:
            expected = f"{self.total.neighbours}, which the ledger's total is for"
            raise PrivacyError.at(("budget", "neighbours"), budget.neighbours, expected)
        if budget.unit != self.total.unit:
            named = "" if budget.unit.id is None else f" --unit-id {quote(budget.unit.id)}"
            expected = (
                f"{self.total.unit!r}, which the ledger's total is for; one for what was found is made "
                f"by `matrixdp ledger init` with --unit-records {budget.unit.records}{named}"
            )
            raise PrivacyError.at(("budget", "unit"), repr(budget.unit), expected)

    @property
    def limits(self) -> tuple[Fraction, ...]:
        """What each sum may come to."""
        total = self.total
        known = {"rho": total.rho, "epsilon": total.epsilon}
        return tuple(
            total.mu**2 if name == "squared_mu" else known[name] or Fraction(0)
            for name in MEASURES[total.kind]
        )

    @property
    def within(self) -> bool:
        """Whether the total is kept."""
        pairs = zip(self.sums, self.limits, strict=True)
        return any(one is not None and one <= limit for one, limit in pairs)

    @property
    def spent(self) -> Budget | None:
        """What the sums come to in the definition of the total, rounded up; None for nothing.

        For (epsilon, delta) the epsilon at the delta of the total.
        """
        total = self.total
        first, *more = self.sums
        if total.kind == "approx" and total.delta is not None:
            if first == 0:
                return None
            known = [one for one in more if one is not None]
            if first is not None:
                known.append(max(_epsilon_above(first, total.delta), _SMALLEST_EPSILON))
            return _budget(total, min(known))
        if first is None:
            raise PrivacyError("ledger: found an entry that its total does not bound")
        return _budget(total, root_above(first) if total.kind == "mu" else first)

    @property
    def left(self) -> Budget | None:
        """The most that one further release may spend in the definition of the total; None for nothing.

        Rounded down. For (epsilon, delta) the epsilon at the delta of the total, and with the noise that is
        allowed most.
        """
        total = self.total
        rest = [
            None if one is None else limit - one for one, limit in zip(self.sums, self.limits, strict=True)
        ]
        first, *more = (Fraction(0) if one is None else max(one, Fraction(0)) for one in rest)
        if total.kind == "approx" and total.delta is not None:
            return _budget(total, max(*more, _epsilon_below(first, total.delta)))
        return _budget(total, root_below(first) if total.kind == "mu" else first)

    def as_dict(self) -> dict[str, str | None]:
        """Return the exact sums as text, by the name of what is added up."""
        pairs = zip(MEASURES[self.total.kind], self.sums, strict=True)
        return {name: None if one is None else number_text(one) for name, one in pairs}


def _sum(
    measure: Measure, before: Fraction | None, between: Fraction, cost: Cost, budget: Budget
) -> Fraction | None:
    added = None if before is None else cost.noise.accounted(measure, between)
    if before is None or added is None:
        return None
    if measure == "squared_mu" and budget.kind == "mu":
        # the cost is within its budget, so that mu is one that is proved
        added = min(added, budget.mu**2)
    return before + added


def _budget(total: Budget, value: Fraction) -> Budget | None:
    """Return a budget of the kind of a total."""
    if value == 0:
        return None
    name = {"rho": "rho", "mu": "mu"}.get(total.kind, "epsilon")
    given = {name: value} | ({} if total.delta is None else {"delta": total.delta})
    return Budget(**given, neighbours=total.neighbours, unit=total.unit)


def _epsilon_above(squared_mu: Fraction, delta: Fraction) -> Fraction:
    return epsilon_of(root_above(squared_mu), delta)


def _epsilon_below(squared_mu: Fraction, delta: Fraction) -> Fraction:
    """Return an epsilon that a release may have at a delta where so much is left of a squared mu."""
    if squared_mu == 0:
        return Fraction(0)
    mu, slightly_less = root_below(squared_mu), 1 - Fraction(1, 1 << 56)
    try:
        pure = epsilon_of_gdp(mu) * slightly_less
        gaussian = epsilon_of(mu, delta) * slightly_less
        # what is rounded down and then up again may end above where it began
        pure = pure if gdp_of_epsilon(pure) <= mu else Fraction(0)
    except NumericalError:
        return Fraction(0)
    fits = gaussian > 0 and largest_mu(gaussian, delta) <= mu
    return max(pure, gaussian) if fits else pure
