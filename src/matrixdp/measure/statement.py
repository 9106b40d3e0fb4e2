"""What a release promises, in plain words and as a record: nothing more than docs/privacy.md proves."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from decimal import ROUND_CEILING, Context
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from matrixdp.display import listed
from matrixdp.domain import Discovered
from matrixdp.errors import PrivacyError
from matrixdp.noise import Cost, Guarantee, checked_cost
from matrixdp.privacy import Budget, Clause, Unit
from matrixdp.privacy.budget import exact_text
from matrixdp.privacy.conversions import float_above, gdp_of_epsilon, odds, root_above

if TYPE_CHECKING:
    from matrixdp.ledger import LedgerEntry

REFERENCE_DELTA = Fraction(1, 10**6)

_POST_PROCESSING = Clause(
    "post-processing",
    "Everything in the release follows from the noisy measurements alone. So the promise holds for all of "
    "it, for anything computed from it later, and against any reader, whatever that reader knows already.",
)
_EXACT_ARITHMETIC = Clause(
    "exact-arithmetic",
    "Rounding errors of floating-point arithmetic do not weaken the promise: counts and sensitivity are "
    "exact, and the noise has exactly the distribution that the promise is computed from.",
)
_ASSUMED = (
    Clause(
        "chosen-without-data",
        "The domain, the workload, the strategy and the budget were chosen without looking at the data.",
    ),
    Clause("randomness", "The operating system's random number generator is sound."),
    Clause(
        "bits-per-sample",
        "No sample of noise takes more than 16,384 random bits: one that does, which has a probability "
        "below 2^-16000, ends the run without a release.",
        {"bits": 16_384},
    ),
)
_ASSUMED_OF_ROUNDS = (
    Clause(
        "chosen-without-data",
        "The domain, the workload, the budget and the strategy of the first round were chosen without "
        "looking at the data.",
    ),
    *_ASSUMED[1:],
)
_ROUNDS = Clause(
    "rounds",
    "The noise of the second round of measurements follows from the noisy answers to the first, and from "
    "nothing else about the data. The promise holds for both rounds together.",
)
_COUNTED_ANEW = Clause(
    "counted-anew",
    "Each publication chooses anew, from the table as it is then, which records of a person count. The "
    "promise holds for all publications together, also where records come late, change, their periods too, "
    "or are deleted.",
)
_SIDE_CHANNELS = Clause(
    "side-channels",
    "Side channels: how long the computation took, how much memory it used, or logs of the machine.",
)
_POPULATION = Clause("population", "What the data as a whole reveal, with or without any one record.")


@dataclass(frozen=True)
class PrivacyStatement:
    """The promise of one release; every figure is rounded so that it claims no more than was proved.

    Attributes
    ----------
    private : bool
        False if the noise was seeded, in which case nothing is promised.
    noise : str
        The name of the noise that was added.
    cost : Fraction
        The exact privacy cost of one record that moves (two do where one is replaced): mu squared for
        Gaussian noise, epsilon for Laplace noise.
    budget : Budget
        What might have been spent, between which neighbours, and for which unit.
    exact : Guarantee
        What the cost promises, as exact rational numbers.
    assumed : tuple of Clause
        What every release assumes.
    assumed_of_table : tuple of str or Clause
        What else is assumed, of this table alone.
    ledger : LedgerEntry or None
        The entry of the ledger that the release was debited to.
    counted : bool
        Whether the numbers of records out of domain were measured too.
    reading : mapping of str to str
        How attributes count numbers beyond their ends, and other rules of reading, in sentences.
    rounds : bool
        Whether a second round of measurements was planned from the noisy answers of the first.
    counted_anew : bool
        Whether other records of a person may count in each publication of a series.
    discovered : mapping of str to Discovered
        The attributes whose values were found in a private table, and what that cost.
    """

    private: bool
    noise: str
    cost: Fraction
    budget: Budget
    exact: Guarantee
    assumed: tuple[Clause, ...] = _ASSUMED
    assumed_of_table: tuple[str, ...] = ()
    ledger: LedgerEntry | None = None
    counted: bool = False
    reading: Mapping[str, str] = field(default_factory=dict)
    rounds: bool = False
    counted_anew: bool = False
    discovered: Mapping[str, Discovered] = field(default_factory=dict)

    @property
    def neighbours(self) -> str:
        """Which tables the promise compares."""
        return self.budget.neighbours

    @property
    def pure_epsilon(self) -> float | None:
        """Upper bound of epsilon at delta = 0 between these neighbours; None where there is none."""
        return _above(self.exact.pure_epsilon)

    @property
    def mu(self) -> float:
        """Upper bound of the GDP parameter between these neighbours."""
        return float_above(self.exact.mu)

    @property
    def rho(self) -> float:
        """Upper bound of the zCDP parameter between these neighbours."""
        return float_above(self.exact.rho)

    @property
    def epsilon_at_reference_delta(self) -> float:
        """Upper bound of epsilon at delta = 1e-6."""
        return float_above(self.exact.epsilon)

    @property
    def epsilon(self) -> float | None:
        """The epsilon of a budget in epsilon, which holds."""
        return _above(self.budget.epsilon)

    @property
    def delta(self) -> float | None:
        """The delta of a budget with one, which holds."""
        return _above(self.budget.delta)

    @property
    def delta_at_epsilon(self) -> float | None:
        """Upper bound of the delta spent at the epsilon of the budget."""
        return _above(self.exact.delta)

    @property
    def together(self) -> tuple[Fraction, Fraction]:
        """Upper bounds of mu, and of delta besides, for the release and the discoveries of its values.

        A replacement is a removal and an addition, and discoveries are for one of these: docs/privacy.md.
        """
        moved = 1 if self.neighbours == "add_remove" else 2
        found = self.discovered.values()
        mus = [
            gdp_of_epsilon(Fraction(one.epsilon)) if one.epsilon else Fraction(one.mu or 0) for one in found
        ]
        squared = sum(((moved * mu) ** 2 for mu in mus), self.exact.mu**2)
        delta = moved * sum((Fraction(one.delta or 0) for one in found), Fraction(0))
        return root_above(squared) if mus else self.exact.mu, delta

    @property
    def odds(self) -> float:
        """Bound on how often the best guess is right about who is in the table, from all that is told.

        Between two equally likely neighbours, and in knowledge of the values that were discovered.
        """
        return odds(*self.together) if all(one.private for one in self.discovered.values()) else 1.0

    @property
    def with_discoveries(self) -> Clause:
        """What is promised of the release and of the discoveries of its values together."""
        mu, delta = self.together
        besides = f", but for a probability of {rounded_up(delta)}" if delta else ""
        text = (
            f"The release and these discoveries together are {rounded_up(mu)}-GDP{besides}: that is the "
            "promise about all that the release tells, the values that it lists included."
        )
        return Clause("with-discoveries", text, {"mu": str(mu), "delta": str(delta)})

    @property
    def covered(self) -> tuple[Clause, ...]:
        """The clauses that say what the promise covers."""
        first = _except_for(self.discovered, _POST_PROCESSING)
        promised = [first, _out_of_domain(self.counted, self.reading), _EXACT_ARITHMETIC]
        if self.rounds:
            promised.append(_ROUNDS)
        if self.counted_anew:
            promised.append(_COUNTED_ANEW)
        if self.ledger is not None:
            parameters = {"dataset": self.ledger.dataset, "total": exact_text(self.ledger.total)}
            promised.append(Clause("ledger", _together(self.ledger), parameters))
        return tuple(promised)

    @property
    def not_covered(self) -> tuple[Clause, ...]:
        """The clauses that say what the promise does not cover."""
        ledger = None if self.ledger is None else self.ledger.dataset
        others = f"O{_others(self.ledger)[1:]}, and their costs add up."
        return (_SIDE_CHANNELS, Clause("other-releases", others, {"ledger": ledger}), _POPULATION)

    @property
    def protected(self) -> str:
        """What is protected as one, in words."""
        return _persons_in_words(self.budget)[0]

    @property
    def text(self) -> str:
        """The promise in a few sentences for a reader without training in the field."""
        _, changed, assumption = _persons_in_words(self.budget)
        opening = f"These figures carry random noise that protects {self.protected}."
        if not self.private:
            opening = (
                "SEEDED NOISE: THIS OUTPUT IS NOT PRIVATE. Anyone who knows or guesses the seed can remove "
                "the noise. With noise from the operating system it would carry the following promise."
            )
        exact, budget = self.exact, self.budget
        mu, rho = f"{rounded_up(exact.mu)}-GDP", f"{rounded_up(exact.rho)}-zCDP"
        asked = _definition(budget) if budget.kind == "approx" else ""
        if exact.pure_epsilon is not None:
            # mu and rho both follow from epsilon; with Laplace noise neither follows from the other
            pure = f"{rounded_up(exact.pure_epsilon)}-differential privacy (pure: delta is 0) allows"
            figures = f"{pure}, which implies " + (f"{asked}, {mu} and {rho}" if asked else f"{mu} and {rho}")
        elif asked:
            figures = f"{asked} allows, from {mu}, which is {rho}"
        else:
            pair = f"({rounded_up(exact.epsilon)}, 1e-06)-differential privacy"
            figures = f"{mu} allows, which is {rho} and {pair}"
        shown = "shown with noise, within the same limits" if self.counted else "not shown"
        given = ", given the values that were discovered," if self.discovered else ""
        rules = ""
        if self.reading:
            named = listed(self.reading, len(self.reading))
            rules = f" Numbers beyond the ends, and other values, of {named} are read by public rules."
        if self.rounds:
            rules += (
                " The table was measured in two rounds, the second planned from noisy answers to the first. "
                "This makes estimates not exactly unbiased; in simulations the bias was below a tenth of a "
                "standard error."
            )
        together = "" if self.ledger is None else f" {_together(self.ledger)}"
        return (
            f"{opening} Whatever a reader already knows, {changed} changes the "
            f"probability of any result{given} by no more than {figures}. "
            "The noise is exact, so floating-point rounding does not weaken this. "
            f"It assumes {assumption}; records outside the declared domain are handled by a public "
            f"rule, and their number is {shown}.{rules}{together} It does not cover side channels such as "
            f"timing, or {_others(self.ledger)}."
        ) + "".join(f" {sentence}" for sentence in self.assumed_of_table)

    @property
    def unit(self) -> Unit:
        """How many records a person has at most, in how many values, and the column that names the person."""
        return self.budget.unit

    @property
    def guarantees(self) -> list[dict[str, Any]]:
        """The guarantee in each definition: its parameters rounded up, and the exact bounds as text."""
        exact, budget = self.exact, self.budget
        rows = [
            _guarantee("Gaussian DP", mu=exact.mu),
            _guarantee("zero-concentrated DP", rho=exact.rho),
            _guarantee("approximate DP", epsilon=exact.epsilon, delta=REFERENCE_DELTA),
        ]
        if exact.pure_epsilon is not None:
            rows.insert(0, _guarantee("pure DP", epsilon=exact.pure_epsilon))
        if budget.kind == "approx" and exact.delta is not None:
            rows.append(_guarantee("approximate DP", **budget.given | {"delta": exact.delta}))
        return rows

    def as_dict(self) -> dict[str, Any]:
        """Return the statement as JSON has it; exact numbers are text, numerator/denominator.

        Examples
        --------
        >>> from matrixdp.noise import GAUSSIAN
        >>> promise = statement(Cost(Fraction(1), GAUSSIAN), Budget(rho=0.5), private=True).as_dict()
        >>> promise["guarantees"][1]
        {'definition': 'zero-concentrated DP', 'parameters': {'rho': 0.5}, 'exact': {'rho': '1/2'}}
        >>> promise["assumed"][2]["id"]
        'randomness'
        """
        given = {name: str(value) for name, value in self.budget.given.items()}
        return {
            "private": self.private,
            "text": self.text,
            "guarantees": self.guarantees,
            "neighbours": self.neighbours,
            "unit": self.unit.as_dict(),
            "noise": self.noise,
            "cost": str(self.cost),
            "budget": {**self.budget.as_dict(), "exact": given},
            "ledger": None if self.ledger is None else self.ledger.as_dict(),
            **{name: [clause.as_dict() for clause in own] for name, own in clauses(self).items()},
        }


def _guarantee(definition: str, **parameters: Fraction) -> dict[str, Any]:
    return {
        "definition": definition,
        "parameters": {name: float_above(value) for name, value in parameters.items()},
        "exact": {name: str(value) for name, value in parameters.items()},
    }


def promise_of_discovery(budget: Budget, *, private: bool) -> str:
    """Return the promise about a domain that was discovered under a budget, in a few sentences.

    Examples
    --------
    >>> promise_of_discovery(Budget(epsilon=1, delta=1e-6), private=True)[:44]
    'This domain was found with random noise that'
    """
    protected, changed, assumption = _persons_in_words(budget)
    if budget.unit.id is not None:
        most = f"at most {_records(budget.unit.records)}, or as many values, counted"
        protected = f"each person, of whom {most}: the first in the order of the table"
    opening = "" if private else "SEEDED NOISE: THIS OUTPUT IS NOT PRIVATE. With noise of the system: "
    return (
        f"{opening}This domain was found with random noise that protects {protected}. Whatever a reader "
        f"already knows, {changed} changes the probability of any result by no more than "
        f"{_definition(budget)} allows. It assumes {assumption}. Each release from it "
        "has a cost of its own, and what both tell adds up."
    )


def _records(number: int) -> str:
    return "one record" if number == 1 else f"{number:,} records"


def _persons_in_words(budget: Budget) -> tuple[str, str, str]:
    """Say who is protected, how neighbours differ, and what is assumed of the records of a person."""
    unit, records = budget.unit, budget.unit.records
    one, another = "all records of one person", "those of another"
    protected = f"each person, who has at most {_records(records)} in the table{unit.spread}"
    assumption = f"at most {_records(records)} a person{unit.spread}"
    if unit.id is not None:
        counted = "one was counted" if records == 1 else f"{records:,} were counted"
        first = "the first in the order of the table, whatever they say"
        if unit.per:
            first = "the first ones in the domain that keep to this, in the order of the table"
        protected = f"each person, of whose records at most {counted}{unit.spread}: {first}"
        assumption = f"that the column {unit.id!r} names one and the same person in all records of a person"
    elif records == 1:
        one, another = "one record", "another"
        protected, assumption = "each single record", "one record a person"
    replaced = budget.neighbours == "replace"
    changed = f"replacing {one} by {another}" if replaced else f"adding or removing {one}"
    return protected, changed, assumption


def _above(value: Fraction | None) -> float | None:
    return None if value is None else float_above(value)


def _out_of_domain(counted: bool, reading: Mapping[str, str]) -> Clause:
    how_many = "how many there were is not shown; groups"
    if counted:
        how_many = (
            "how many were dropped is shown with noise of its own, within the same cost: a record is in "
            "these counts or in the answers, never in both. Groups"
        )
    text = (
        "Records outside the declared domain are dropped or mapped one by one by a public rule, and "
        f"{how_many} without records are measured with noise like all others."
    )
    rules = "".join(f" {name}: {said}" for name, said in reading.items())
    return Clause("out-of-domain", text + rules, {"counted": counted})


def _persons(unit: Unit) -> Clause:
    """Say what is assumed of the records of one person."""
    if unit.id is None:
        text = (
            f"Each person contributes at most {_records(unit.records)}{unit.spread}; with "
            f"{'the records of k such persons' if unit.per else 'k times as many'}, "
            "multiply mu and a pure epsilon by k and rho by k squared."
        )
    else:
        text = (
            f"All records of a person, and of nobody else, have one value in the column {unit.id!r}, by the "
            "same rule by which categories are compared; those without a value are not counted. Two people "
            "who share a value are protected jointly at the stated level. Each of them alone is protected "
            "less: multiply mu and a pure epsilon by 2 and rho by 4."
        )
    return Clause("records-per-person", text, unit.as_dict())


def _together(ledger: LedgerEntry) -> str:
    """Say what is promised of all releases of a ledger."""
    return (
        f"All releases that are debited to the ledger of {ledger.dataset}, whichever of them were chosen in "
        f"knowledge of others, together keep to {_definition(ledger.total)}."
    )


def _others(ledger: LedgerEntry | None) -> str:
    """Say which other releases are not covered."""
    if ledger is None:
        return "other releases about the same people: no ledger was debited"
    return f"other releases about the same people that were not debited to the ledger of {ledger.dataset}"


def _definition(total: Budget) -> str:
    """Say what a total promises."""
    if total.epsilon is None:
        return f"{rounded_up(total.mu)}-GDP" if total.rho is None else f"{rounded_up(total.rho)}-zCDP"
    epsilon = rounded_up(total.epsilon)
    if total.delta is None:
        return f"{epsilon}-differential privacy (pure: delta is 0)"
    return f"({epsilon}, {rounded_up(total.delta)})-differential privacy"


def rounded_up(value: Fraction) -> str:
    """Write a figure with four digits, rounded up."""
    rounded = Context(prec=4, rounding=ROUND_CEILING).divide(value.numerator, value.denominator)
    return f"{float(rounded):.4g}"


def _discovered(name: str, found: Discovered) -> Clause:
    """Say what finding the values of an attribute cost."""
    cost = (
        f"{rounded_up(Fraction(found.epsilon))}-differential privacy"
        if found.epsilon is not None
        else f"{rounded_up(Fraction(found.mu or 0))}-GDP"
    )
    cost += "" if found.delta is None else f" with a delta of {rounded_up(Fraction(found.delta))}"
    text = f"The values of {name} were found in a private table by a discovery that cost {cost}, besides."
    if not found.private:
        text = f"THE VALUES OF {name} WERE FOUND WITH SEEDED NOISE, WHICH PROTECTS NOBODY. {text}"
    return Clause("discovered", text, {"attribute": name, **found.to_spec()})


def _except_for(discovered: Mapping[str, Discovered], clause: Clause) -> Clause:
    """Return a clause for what was not discovered."""
    if not discovered:
        return clause
    names = listed(discovered, len(discovered))
    return Clause(clause.id, f"Except for the values of {names}, which were discovered: {clause}")


def _over_time(unit: Unit) -> Iterator[Clause]:
    """Yield the assumptions about the tables of a series: see docs/privacy.md, theorem 7."""
    if unit.per:  # charged for whichever records count at each period
        return
    yield Clause(
        "fixed-periods",
        "Once a record has been in a table of the series, its period does not change. A record may be added "
        "late, change in other ways, or be deleted: it counts in what is measured while it is in the table.",
    )
    if unit.id is not None:
        yield Clause(
            "first-records-stay",
            "The first records of each person, in the order of the table, stay the first: new records are "
            "added at the end of the table.",
        )


def clauses(statement: PrivacyStatement) -> dict[str, list[Clause]]:
    """Return the conditions of a promise, by what they say: ``covered``, ``assumed`` or ``not_covered``.

    Two statements say the same where the `Clause.meaning` of each of their clauses is the same.

    Examples
    --------
    >>> from matrixdp.noise import GAUSSIAN
    >>> promise = statement(Cost(Fraction(1), GAUSSIAN), Budget(rho=0.5), private=True)
    >>> clauses(promise)["assumed"][0].meaning
    {'id': 'records-per-person', 'parameters': {'records': 1}}
    """
    of_table = [Clause.of(sentence) for sentence in statement.assumed_of_table]
    return {
        "covered": list(statement.covered),
        "assumed": [_persons(statement.unit), *statement.assumed, *of_table],
        "not_covered": list(statement.not_covered),
    }


def statement(
    cost: Cost,
    budget: Budget,
    *,
    private: bool,
    assumptions: tuple[str, ...] = (),
    ledger: LedgerEntry | None = None,
    counted: bool = False,
    reading: Mapping[str, str] | None = None,
    rounds: bool = False,
    series: bool = False,
    discovered: Mapping[str, Discovered] | None = None,
) -> PrivacyStatement:
    """State what a release promises.

    Parameters
    ----------
    cost : Cost
        The exact privacy cost of what was measured, of one record that moves.
    budget : Budget
        What might have been spent, between which neighbours, and for which unit.
    private : bool
        Whether the noise came from the operating system (False: it was seeded).
    assumptions : tuple of str
        What is assumed of this table, in sentences; see `Source.assumptions`.
    ledger : LedgerEntry, optional
        The entry of the ledger that was debited.
    counted : bool
        Whether the numbers of records out of domain were measured too.
    reading : mapping of str to str, optional
        How attributes count numbers beyond their ends, and other rules of reading, in sentences.
    rounds : bool
        Whether a second round of measurements was planned from the noisy answers of the first.
    series : bool
        Whether rows are measured at different times, whose tables are assumed to agree about the periods.
    discovered : mapping of str to Discovered, optional
        The attributes whose values were found in a private table, and what that cost.

    Returns
    -------
    PrivacyStatement
        With `text` and ``as_dict()``.

    Raises
    ------
    PrivacyError
        If the cost is not within the budget.

    References
    ----------
    J. Dong, A. Roth and W. Su, Gaussian differential privacy, JRSS B 84, 2022, theorem 2.7 and corollary
    2.13. M. Bun and T. Steinke, TCC 2016, proposition 1.4 (pure DP is zCDP). docs/privacy.md proves each
    figure for the rounded mechanism.

    Examples
    --------
    >>> from matrixdp.noise import GAUSSIAN
    >>> promise = statement(Cost(Fraction(1), GAUSSIAN), Budget(mu=1), private=False)
    >>> promise.text[:46]
    'SEEDED NOISE: THIS OUTPUT IS NOT PRIVATE. Anyo'
    >>> promise.rho
    0.5
    """
    if not isinstance(private, bool):
        raise PrivacyError.at(("private",), f"a {type(private).__name__}", "True or False", code="wrong-type")
    checked_cost(cost, budget)
    promised = cost.noise.promise(cost, budget, REFERENCE_DELTA)
    assumed = _ASSUMED_OF_ROUNDS if rounds else _ASSUMED
    over_time = tuple(_over_time(budget.unit)) if series else ()
    discovered = discovered or {}
    assumed = (_except_for(discovered, assumed[0]), *assumed[1:])
    found = tuple(_discovered(name, own) for name, own in discovered.items())
    anew = series and bool(budget.unit.per)
    known = (*over_time, *found, *assumptions), ledger, counted, reading or {}, rounds, anew, discovered
    made = PrivacyStatement(private, cost.noise.name, cost.value, budget, promised, assumed, *known)
    if not all(own.private for own in discovered.values()) or not discovered:
        return made
    return replace(made, assumed_of_table=(*made.assumed_of_table, made.with_discoveries))
