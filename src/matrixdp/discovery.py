"""A public domain from private columns: values that many persons have, and bounds of numbers, for a price.

What is found goes to a file that is an ordinary domain, beside the record of how it was found. Selection and
releases take it by `domain_from`, and never look at the table themselves.
"""

from __future__ import annotations

import hashlib
import math
import operator
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from fractions import Fraction
from functools import partial, reduce
from itertools import pairwise
from pathlib import Path
from typing import Any, final

from matrixdp.display import counted
from matrixdp.domain import Categorical, Discovered, Domain, attribute_from_spec
from matrixdp.domain.attribute import Codebook
from matrixdp.domain.rules import number_text
from matrixdp.errors import MatrixDPError, PrivacyError, SpecificationError, StorageError, withholding, within
from matrixdp.language import product
from matrixdp.ledger import Ledger, LedgerEntry
from matrixdp.ledger.ledger import now, version
from matrixdp.locks import whole_path
from matrixdp.measure.measurement import FoundValues, Measurement, find_values
from matrixdp.measure.statement import promise_of_discovery
from matrixdp.noise import GAUSSIAN, LAPLACE, Chances, Cost, Mechanism, Round, WeightedRounds, checked_cost
from matrixdp.noise.discovery import is_threshold
from matrixdp.privacy import Budget
from matrixdp.privacy.budget import check_strong, exact_budget, exact_number, exact_text
from matrixdp.privacy.conversions import float_above, root_above, root_below
from matrixdp.queries import Workload
from matrixdp.releases.record import FOUND
from matrixdp.releases.transaction import transaction
from matrixdp.sources import Source, open_source
from matrixdp.specification import FoundDomain, WrittenDiscovery, found_yaml, load_discovery
from matrixdp.specification.discovery import FORMAT, MOST_VALUES, DiscoveredAttribute
from matrixdp.specification.load import read_document
from matrixdp.storage.archive import write_durably
from matrixdp.strategy.strategy import Strategy, select
from matrixdp.verification.verify import Finding, Verification, settled

#: A bound leaves at most so many records beyond it, with noise, or so many standard errors of that number.
FEW_RECORDS, FEW_ERRORS = 10, 3
_BINS = 20
Progress = Callable[[str, float | None], None]


# How the budget is shared.


@final
@dataclass(frozen=True)
class Schedule:
    """What finds each attribute, within one budget.

    Attributes
    ----------
    written : WrittenDiscovery
    values : mapping of str to Mechanism
        For the attributes whose values are found.
    bounds : mapping of str to Budget
        For the others, what each may spend.

    Notes
    -----
    Where every person has one value in each column, epsilon and delta are shared, and bounds have Laplace
    noise. Else all noise is Gaussian, the squared mu of half of the delta is shared, and the other half is
    left for values of one person alone. docs/privacy.md has the proof that shares add up to the budget.
    """

    written: WrittenDiscovery
    values: Mapping[str, Mechanism]
    bounds: Mapping[str, Budget]

    @staticmethod
    def of(written: WrittenDiscovery) -> Schedule:
        """Return the schedule of a specification.

        Raises
        ------
        PrivacyError
            If the budget is too small for a mechanism.
        """
        budget, shares, terms = written.budget, written.shares, _terms(written.budget)
        wanted = [name for name, own in written.domain.items() if own.discover == "values"]
        of_wanted = sum((shares[name] for name in wanted), Fraction(0))
        values: dict[str, Mechanism] = {}
        if budget.epsilon is not None and all(written.most(name) == 1 for name in wanted):
            for name in wanted:
                assert budget.delta is not None  # checked
                values[name] = Chances(budget.epsilon * shares[name], budget.delta * shares[name] / of_wanted)
            each = {name: Budget(epsilon=budget.epsilon * share, **terms) for name, share in shares.items()}
        else:
            half = (budget.delta or Fraction(0)) / 2
            left = budget.less(half if wanted else Fraction(0))
            assert left is not None
            squared = left.mu**2
            for name in wanted:
                own = half * shares[name] / of_wanted
                values[name] = WeightedRounds.within(squared * shares[name], own, written.most(name))
            each = {name: Budget(mu=root_below(squared * own), **terms) for name, own in shares.items()}
        return Schedule(written, values, {name: each[name] for name in shares if name not in values})

    @property
    def cost(self) -> Cost:
        """What all of it costs at most, of one record that moves."""
        moved = self.written.budget.moved
        noise = LAPLACE if all(own.kind == "pure" for own in self.bounds.values()) else GAUSSIAN
        costs = [own.cost(moved) for own in self.values.values()]
        costs += [(costs[0].noise if costs else noise).cost(own) for own in self.bounds.values()]
        return reduce(operator.add, costs)

    def check(self, source: Source) -> None:
        """Reject what the columns of a table make impossible; no record is read."""
        written = self.written
        for name, own in written.domain.items():
            if own.discover == "bounds":
                edges = _bins(own)["edges"]
                for ends in (*pairwise(edges), (edges[0], edges[-1])):  # whichever are found
                    with within("domain"):
                        attribute_from_spec(name, _range(own, *ends))
                source.check(Domain({name: _bins(own)}), None, written.budget.unit)
            else:
                source.check(Domain([_reading(name, own)]), None, written.reading(name))

    def attributes(self) -> dict[str, dict[str, Any]]:
        """Return what each attribute is found by and costs between neighbours, as plain values.

        Values are told that so many `persons` have: see `Mechanism.persons`.
        """
        told: dict[str, dict[str, Any]] = {}
        for name, own in self.written.domain.items():
            mechanism = self.values.get(name)
            if mechanism is None:
                bounds, noise = self.bounds[name], GAUSSIAN if self.cost.noise == GAUSSIAN else LAPLACE
                cost, persons = noise.cost(bounds), []
            else:
                cost, persons = mechanism.cost(self.written.budget.moved), mechanism.persons
            stated = _discovered(cost, self.written.budget, private=True)
            exact = {"epsilon": stated.epsilon, "mu": stated.mu, "delta": stated.delta}
            figures = {key: float_above(Fraction(text)) for key, text in exact.items() if text is not None}
            told[name] = {"discover": own.discover, **figures}
            if persons:
                told[name] |= {"max_values": self.written.most(name), "persons": persons}
        return told


def _terms(budget: Budget) -> dict[str, Any]:
    return {"neighbours": budget.neighbours, "unit": budget.unit}


# Discoveries.


@final
@dataclass(frozen=True)
class Discovery:
    """What was found of a table, and how.

    Attributes
    ----------
    found : FoundDomain
        What the file says.
    """

    found: FoundDomain

    @property
    def domain(self) -> Domain:
        """The attributes that were found."""
        return Domain(dict(self.found.domain))

    @property
    def private(self) -> bool:
        """False if the noise was seeded."""
        return bool(self.found.discovery["private"])

    @property
    def yaml(self) -> str:
        """The text of the file."""
        return found_yaml(self.found)

    @property
    def statement(self) -> str:
        """The promise about it, in a few sentences."""
        return promise_of_discovery(exact_budget(self.found.discovery["budget"]), private=self.private)


@withholding
def discover(
    specification: str | os.PathLike[str] | Mapping[str, Any],
    out: str | os.PathLike[str] | None = None,
    *,
    table: object = None,
    table_name: str | None = None,
    ledger: Ledger | str | os.PathLike[str] | None = None,
    force: bool = False,
    seed_not_private: int | None = None,
    accept_weak_privacy: bool = False,
    progress: Progress | None = None,
) -> Discovery:
    """Find a domain in private columns: values that many persons have, and bounds of numbers.

    Everything is checked before any record is read, and the ledger is debited before anything is drawn. Each
    attribute is an entry of its own there. What this returns, and the file that appears whole or not at all,
    hold nothing of the table but what was told under the budget.

    Parameters
    ----------
    specification : path or mapping
        With the keys ``domain``, ``privacy`` and ``unit``; see the page on specifications.
    out : path, optional
        The file that is written: a domain for ``domain_from``, and the record of how it was found.
    table, table_name
        The table, as in `release`; that of the specification where it is left out.
    ledger : Ledger or path, optional
        What is debited; the ledger of the specification where it is left out.
    force : bool
        Whether to replace a file in `out`; that does not refund its budget.
    seed_not_private : int, optional
        Draw from a seed. THE RESULT IS NOT PRIVATE, and says so; no ledger is debited.
    accept_weak_privacy : bool
        Whether to take a budget above epsilon 10 or mu 3, which hardly protects anybody.
    progress : callable, optional
        Is called with what is being done and the share of it that is done, or None.

    Raises
    ------
    SpecificationError
        If the specification is wrong.
    PrivacyError
        If the budget cannot find values, or the ledger has less left. Nothing is spent.
    StorageError
        If the file is there, or cannot be written.
    SourceError
        If the table cannot be read.

    Examples
    --------
    >>> import matrixdp as mdp
    >>> specification = {"domain": {"word": {"discover": "values"}}, "privacy": {"epsilon": 1, "delta": 1e-6}}
    >>> table = {"word": ["common"] * 900 + ["rare"]}
    >>> mdp.discover(specification, table=table).found.domain["word"]["categories"]
    ['common', 'other']
    """
    written, own_table, own_ledger = load_discovery(specification)
    check_strong(written.budget, accepted=accept_weak_privacy)
    ledger = own_ledger if ledger is None else ledger
    if isinstance(ledger, str | os.PathLike):
        ledger = Ledger.open(ledger)
    ledger = ledger if seed_not_private is None else None
    if table is None and own_table is None:
        raise SpecificationError.at(("data",), "nothing", "the path of the table", code="missing-key")
    chosen = (own_table, written.table) if table is None else (table, table_name)
    source = open_source(chosen[0], table_name=chosen[1], quoted_newlines=written.quoted_newlines)
    schedule = Schedule.of(written)
    schedule.check(source)
    if ledger is not None:
        ledger.check(checked_cost(schedule.cost, written.budget), written.budget)
    place = None if out is None else whole_path(out)
    steps = _Steps(schedule, source, chosen, ledger, place, seed_not_private)
    with ExitStack() as stack:
        made = None
        if place is not None:
            made = stack.enter_context(transaction(place, force=force, file=FOUND))
        spend = None
        if made is not None and seed_not_private is None:
            spend = partial(made.spend, written.budget, ledger)
        found, debits = steps.run(spend, progress)
        content = found_yaml(found).encode()
        if made is not None:
            write_durably(made.folder / FOUND, content)
    digest = hashlib.sha256(content).hexdigest()
    for reservation in debits:
        reservation.measured(digest)
        reservation.released(digest)
    return Discovery(found)


@final
@dataclass(frozen=True)
class _Steps:
    """The steps of one discovery, each for one attribute."""

    schedule: Schedule
    source: Source
    table: tuple[Any, str | None]
    ledger: Ledger | None
    place: Path | None
    seed: int | None

    def run(
        self, spend: Callable[[], None] | None, progress: Progress | None
    ) -> tuple[FoundDomain, list[Any]]:
        """Find every attribute, and return the domain and the debits."""
        written, debits = self.schedule.written, []
        domain: dict[str, Any] = {}
        told: dict[str, Any] = {}
        # values first: a ledger keeps a part of its delta for discoveries where its first entry is one
        ordered = sorted(written.domain.items(), key=lambda item: item[1].discover == "bounds")
        for place, (name, own) in enumerate(ordered):
            if progress is not None:
                progress(f"discovering {name}", place / len(written.domain))
            step = self._values if own.discover == "values" else self._bounds
            spec, method, measured = step(name, own, spend)
            paid = measured.authorization
            cost = _discovered(paid.cost, written.budget, self.seed is None)
            domain[name] = {**spec, **own.reading(), "discovered": cost.to_spec()}
            entry = None if paid.ledger is None else paid.ledger.as_dict()
            assumed = list(map(str, measured.assumptions))
            told[name] = {**method, "assumptions": assumed, **_cost_told(paid.cost), "ledger": entry}
            debits += [] if measured.reservation is None else [measured.reservation]
        others = {
            name: {"other": own.other} for name, own in written.domain.items() if name in self.schedule.values
        }
        record = {
            "format": FORMAT,
            "version": version(),
            "time": now(),
            "private": self.seed is None,
            "budget": exact_text(written.budget),
            "attributes": told,
        }
        domain = {name: domain[name] for name in written.domain}
        return FoundDomain(domain=domain, out_of_domain=others, discovery=record), debits

    def _values(
        self, name: str, own: DiscoveredAttribute, spend: Callable[[], None] | None
    ) -> tuple[dict[str, Any], dict[str, Any], FoundValues]:
        mechanism, reading = self.schedule.values[name], _reading(name, own)
        found = find_values(
            mechanism,
            self.source,
            reading,
            self.schedule.written.budget,
            seed_not_private=self._seed(name),
            ledger=self.ledger,
            release=self.place,
            before_noise=spend,
            reading=self.schedule.written.reading(name),
        )
        categories = [*map(_written, found.values), own.other]
        return {"categories": categories}, {"method": "values", **_mechanism_told(mechanism)}, found

    def _bounds(
        self, name: str, own: DiscoveredAttribute, spend: Callable[[], None] | None
    ) -> tuple[dict[str, Any], dict[str, Any], Measurement]:
        edges, strategy = _bins(own)["edges"], _strategy(name, own, self.schedule)
        measured = strategy.measure(
            self.table[0],
            self.schedule.bounds[name],
            table_name=self.table[1],
            quoted_newlines=self.schedule.written.quoted_newlines,
            seed_not_private=self._seed(name),
            ledger=self.ledger,
            release=self.place,
            before_noise=spend,
        )
        answers = measured.reconstruct(strategy.workload).answers
        pairs = zip(answers["estimate"].to_pylist(), answers["stddev"].to_pylist(), strict=True)
        few = [count <= max(FEW_RECORDS, FEW_ERRORS * error) for count, error in pairs]
        low, high = bounds_of(edges, few[: len(edges) - 1], few[len(edges) - 1 :])
        method = {"method": "bounds", "edges": [edges[0], edges[-1], len(edges)]}
        return _range(own, low, high), method, measured.measurement

    def _seed(self, name: str) -> int | None:
        """Return the seed of an attribute: no two have the same noise."""
        if self.seed is None:
            return None
        text = f"{self.seed} {list(self.schedule.written.domain).index(name)}"
        return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")


def _reading(name: str, own: DiscoveredAttribute) -> Categorical:
    """Return the attribute that says how a column is read; it has the values that are not looked for."""
    book = Codebook(column=own.column, trim=own.trim, null=own.null)
    return Categorical(name, (own.other,), own.type, codebook=book)


def _written(value: str | float) -> str | int | float:
    """Return a canonical value as a category is written."""
    if isinstance(value, str):
        return value
    return int(value) if number_text(value) == str(int(value)) else value


def _bins(own: DiscoveredAttribute) -> dict[str, Any]:
    """Return the public bins of a numeric column, two in each doubling on both sides of 0."""
    sizes = [own.smallest]
    while sizes[-1] < own.largest:
        place = len(sizes)
        sizes.append(own.smallest * 2 ** (place // 2) * (1.5 if place % 2 else 1.0))
    sizes[-1] = own.largest
    edges = [*(-size for size in reversed(sizes)), 0.0, *sizes]
    return {"edges": edges, "clip": True} | ({} if own.column is None else {"column": own.column})


def _range(own: DiscoveredAttribute, low: float, high: float) -> dict[str, Any]:
    """Return the values of an attribute whose bounds were found; of an amount to whole steps, outward."""
    if own.step is not None:
        step = Fraction(str(own.step))
        ends = math.floor(Fraction(str(low)) / step) * step, math.ceil(Fraction(str(high)) / step) * step
        return {"amount": list(map(float, ends)), "step": own.step}
    return {"min": low, "max": high, "bins": own.bins or _BINS, "clip": True}


def _strategy(name: str, own: DiscoveredAttribute, schedule: Schedule) -> Strategy:
    """Return the strategy for how many records are below, and from, each edge."""
    workload = Workload(Domain({name: _bins(own)}), *(product({name: said}) for said in ("prefix", "suffix")))
    noise = "laplace" if schedule.cost.noise == LAPLACE else "gaussian"
    return select(workload, noise=noise, budget=schedule.bounds[name])


def bounds_of(edges: Sequence[float], below: Sequence[bool], above: Sequence[bool]) -> tuple[float, float]:
    """Return the greatest edge with few records below it, and the least with few from it on.

    Parameters
    ----------
    edges : sequence of float, length n + 1
    below, above : sequence of bool, length n
        Whether few records are below each edge but the first, and from each edge but the last.

    Returns
    -------
    tuple of (float, float)
        The first and the last edge where the others cross, as they do where there are few records in all.

    Examples
    --------
    >>> bounds_of([0, 1, 2, 4], [True, False, False], [False, False, True])
    (1, 2)
    """
    low = max((edge for edge, few in zip(edges[1:], below, strict=True) if few), default=edges[0])
    high = min((edge for edge, few in zip(edges, above, strict=False) if few), default=edges[-1])
    return (low, high) if low < high else (edges[0], edges[-1])


# The record, and whether it is true.


def _mechanism_told(mechanism: Mechanism) -> dict[str, Any]:
    if isinstance(mechanism, Chances):
        return {"chances": {"epsilon": str(mechanism.epsilon), "delta": str(mechanism.delta)}}
    assert isinstance(mechanism, WeightedRounds)
    rounds = [
        {"scale": str(own.scale), "delta": str(own.delta), "threshold": own.threshold}
        for own in mechanism.rounds
    ]
    return {"max_values": mechanism.most, "weight_bits": mechanism.bits, "rounds": rounds}


def _mechanism_read(told: Mapping[str, Any]) -> Mechanism:
    if "chances" in told:
        return Chances(*(exact_number(told["chances"][name]) for name in ("epsilon", "delta")))
    rounds = [
        Round(exact_number(own["scale"]), exact_number(own["delta"]), int(own["threshold"]))
        for own in told["rounds"]
    ]
    most, bits = int(told["max_values"]), int(told["weight_bits"])
    if not (1 <= most <= MOST_VALUES and 1 <= bits <= 64 and 1 <= len(rounds) <= 64):
        raise PrivacyError("the record of a mechanism is out of range", "damaged-file")
    return WeightedRounds(most, bits, tuple(rounds))


def _cost_told(cost: Cost) -> dict[str, str]:
    return {"noise": cost.noise.name, "cost": str(cost.value), "delta": str(cost.delta)}


def _discovered(cost: Cost, budget: Budget, private: bool) -> Discovered:
    """Return what an attribute says of the cost of its discovery, between neighbours."""
    between = cost.value * budget.moved**cost.noise.norm
    pure = cost.noise == LAPLACE
    return Discovered(
        epsilon=str(between) if pure else None,
        mu=None if pure else str(root_above(between)),
        delta=str(cost.delta) if cost.delta else None,
        private=private,
        id=budget.unit.id,
        records=1 if budget.unit.id else budget.unit.records,
    )


def verify_discovery(
    path: str | os.PathLike[str], *, ledger: Ledger | str | os.PathLike[str] | None = None
) -> Verification:
    """Check the file of a discovery, without the table: thresholds and costs are computed again.

    Parameters
    ----------
    path : path
        What `discover` wrote.
    ledger : Ledger or path, optional
        Must have the entries that the file names.

    Raises
    ------
    MatrixDPError
        If there is no such file, or it is not one of a discovery.
    """
    place = Path(path)
    found = FoundDomain.read(read_document(place).value)
    opened = Ledger.open(ledger) if isinstance(ledger, str | os.PathLike) else ledger
    try:
        findings = tuple(_findings(found, place, opened))
    except (KeyError, TypeError, ValueError, AttributeError, ArithmeticError, PrivacyError) as error:
        if isinstance(error, MatrixDPError) and not isinstance(error, PrivacyError):
            raise
        raise StorageError(f"{place}: damaged: not the record of a discovery", "damaged-file") from None
    return Verification(str(place), findings)


def _findings(found: FoundDomain, place: Path, ledger: Ledger | None) -> Iterator[Finding]:
    record = found.discovery
    if record["format"] != FORMAT:
        expected = f"{FORMAT}, which this matrixdp reads"
        raise StorageError(
            f"{place}: found format {record['format']!r:.80}; expected {expected}", "other-version"
        )
    budget, private = exact_budget(record["budget"]), record["private"] is True
    costs: dict[str, Cost] = {}
    thresholds: list[str] = []
    for name, told in record["attributes"].items():
        cost = Cost(exact_number(told["cost"]), GAUSSIAN if told["noise"] == "gaussian" else LAPLACE)
        costs[name] = Cost(cost.value, cost.noise, exact_number(told["delta"]))
        if told["method"] == "values":
            mechanism = _mechanism_read(told)
            thresholds += _wrong_thresholds(name, mechanism)
            if mechanism.cost(budget.moved) != costs[name]:
                thresholds.append(f"{name}: its cost is not that of its mechanism")
    yield from settled("thresholds", "every threshold and cost follows from its integers", thresholds)
    yield from settled("cost", f"within {budget.words}", _wrong_costs(found, costs, budget, private))
    yield from settled("domain", counted(len(found.domain), "attribute"), _wrong_domain(found))
    words = "no file can show that noise was random" if private else "SEEDED: the result is NOT PRIVATE"
    yield Finding("noise", "not checked", words)
    if ledger is None:
        yield Finding("ledger", "not checked", "none was given")
    else:
        words = f"debited to the ledger of {ledger.dataset}"
        yield from settled("ledger", words, _wrong_entries(record, costs, ledger))


def _wrong_thresholds(name: str, mechanism: Mechanism) -> Iterator[str]:
    if isinstance(mechanism, WeightedRounds):
        for number, own in enumerate(mechanism.rounds, start=1):
            if not is_threshold(own.threshold, mechanism.bits, own.scale, own.delta, mechanism.most):
                yield f"{name}: round {number} has a threshold that is too low for its delta"


def _wrong_costs(
    found: FoundDomain, costs: Mapping[str, Cost], budget: Budget, private: bool
) -> Iterator[str]:
    try:
        checked_cost(reduce(operator.add, costs.values()), budget)
    except PrivacyError as error:
        yield str(error)
    for name, cost in costs.items():
        stated = found.domain.get(name, {}).get("discovered")
        if stated != _discovered(cost, budget, private).to_spec():
            yield f"{name}: what the attribute says of its cost is not that of the record"


def _wrong_domain(found: FoundDomain) -> Iterator[str]:
    if set(found.domain) != set(found.discovery["attributes"]):
        yield "the attributes are not those of the record"
    for name, spec in found.domain.items():
        try:
            attribute_from_spec(name, spec)
        except MatrixDPError as error:
            yield str(error)
        listed = spec.get("categories", [""])[:-1]
        if listed != sorted(listed, key=lambda value: (isinstance(value, str), value)):
            yield f"{name}: its values are not in order"


def _wrong_entries(record: Mapping[str, Any], costs: Mapping[str, Cost], ledger: Ledger) -> Iterator[str]:
    entries = {entry.id: entry for entry in ledger.entries}
    for name, told in record["attributes"].items():
        if told["ledger"] is None:
            yield f"{name}: no ledger was debited"
            continue
        stated = LedgerEntry.read(told["ledger"])
        entry = entries.get(stated.entry)
        if entry is None or (entry.digest, entry.cost) != (stated.digest, costs[name]):
            yield f"{name}: {ledger.path} has no such entry of this cost"
