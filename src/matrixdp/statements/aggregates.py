"""Arithmetic on aggregates: expressions of sums and counts, with their errors from exact covariances."""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, final

import numpy as np
import sqlglot
from numpy.typing import NDArray
from sqlglot import exp

from matrixdp.domain import Attribute
from matrixdp.language.periods import each_known_after
from matrixdp.queries import Group
from matrixdp.queries.predicates import Array
from matrixdp.statements.parsing import number_of, unwrapped
from matrixdp.statements.query import Known
from matrixdp.statistics.intervals import Pairs, Term
from matrixdp.statistics.statistic import POINTWISE

if TYPE_CHECKING:
    from matrixdp.answers.inference import Inference

# Which parts of an expression are aggregates.

_SPREAD = "(squares - total * total / records)"
_KNOWN = {
    "count": ("count, countif", "records"),
    "sum": ("sum", "amount"),
    "share": ("", "ones / records"),
    "mean": ("avg", "total / records + middle"),
    "variance_pop": ("variancepop, varp", f"{_SPREAD} / records"),
    "variance": ("variance, var", f"{_SPREAD} / (records - 1)"),
    "stddev_pop": ("stddevpop, stdevp", f"SQRT({_SPREAD} / records)"),
    "stddev": ("stddev, stddevsamp, std, stdev", f"SQRT({_SPREAD} / (records - 1))"),
}
FORMULAS = {kind: sqlglot.parse_one(formula) for kind, (_, formula) in _KNOWN.items()}
"""What aggregates are of counts and sums; ``total`` and ``squares`` are of distances from a middle."""
_KINDS = {name: kind for kind, (names, _) in _KNOWN.items() for name in names.split(", ")}


def kind_of(node: exp.Expr) -> str | None:
    """Return the kind of an aggregate; None for other expressions and other aggregates."""
    # the parser has no class for VAR
    return _KINDS.get(node.name.lower() if isinstance(node, exp.Anonymous) else node.key)


def is_aggregate(node: exp.Expr) -> bool:
    """Return whether an expression is one aggregate, of any kind."""
    return isinstance(node, exp.AggFunc | exp.Filter) or kind_of(node) is not None


def aggregates(node: exp.Expr) -> Iterator[exp.Expr]:
    """Yield the aggregates in an expression, none of them inside another."""
    yield from filter(is_aggregate, node.dfs(prune=is_aggregate))


# Functions of one number. An interval goes through those that never decrease.

Function = Callable[[Array], Array]


def _root(values: Array) -> Array:
    """Return the square root, 0 of what noise made negative."""
    return np.sqrt(np.maximum(values, 0.0))


_SMOOTH: dict[type[exp.Expr], Function] = {exp.Sqrt: _root, exp.Ln: np.log, exp.Exp: np.exp}
_STEPS: dict[type[exp.Expr], Function] = {exp.Floor: np.floor, exp.Ceil: np.ceil, exp.Round: np.rint}
_CASTS: dict[str, Function] = dict.fromkeys(("FLOAT", "DOUBLE", "DECIMAL"), np.positive)
_CASTS |= dict.fromkeys(("SMALLINT", "INT", "BIGINT"), np.rint)
OPERATORS: dict[type[exp.Expr], Callable[[Any, Any], Any]] = {
    exp.Add: operator.add,
    exp.Sub: operator.sub,
    exp.Mul: operator.mul,
    exp.Div: operator.truediv,
    exp.Pow: operator.pow,
}
"""Arithmetic on aggregates and numbers."""


def is_step(function: Function | None) -> bool:
    """Return whether a function of one number has jumps, through which no standard error can be carried."""
    return function is not None and function is not np.positive and function not in _SMOOTH.values()


def increasing(node: exp.Expr) -> Function | None:
    """Return the function that an expression applies to its first part, if it is one that never decreases."""
    beside = [part for part in node.iter_expressions() if part is not node.this]
    if isinstance(node, exp.Cast):
        return _CASTS.get(node.to.this.name)
    signs = [-1 if isinstance(part, exp.Neg) else 1 for part in beside]
    beside = [part.this if sign < 0 else part for part, sign in zip(beside, signs, strict=True)]
    if not all(isinstance(part, exp.Literal) for part in beside):
        return None
    if isinstance(node, exp.Coalesce | exp.Nullif):  # an estimate is never NULL, and as good as never 0
        return np.positive
    if isinstance(node, exp.Round) and beside:
        decimals = signs[0] * min(int(number_of(beside[0].name)), 300)
        return lambda values: np.round(values, decimals)
    return None if beside else (_SMOOTH | _STEPS).get(type(node))


def monotone(node: exp.Expr) -> tuple[Function, exp.Expr, float | None] | None:
    """Return a function that never turns, what it is applied to, and by how much it multiplies errors.

    One that never decreases, or arithmetic with one number; None for anything else. The factor is None of
    smooth functions, whose errors follow from the ends of intervals.
    """
    if (function := increasing(node)) is not None:
        return function, node.this, None if function in _SMOOTH.values() else 1.0
    if isinstance(node, exp.Neg):
        return operator.neg, node.this, 1.0
    if type(node) not in OPERATORS or isinstance(node, exp.Pow):
        return None
    parts, made = (node.this, node.expression), OPERATORS[type(node)]
    numbers = [part for part in parts if not part.find(exp.Column, exp.AggFunc, exp.Anonymous)]
    if len(numbers) != 1:
        return None
    [known], [other] = numbers, [part for part in parts if part is not numbers[0]]
    with np.errstate(all="ignore"):
        number = evaluated(known, {}, np.float64(1.0))
        factor = abs(made(np.float64(1.0), number)) if isinstance(node, exp.Mul | exp.Div) else 1.0
    if not np.isfinite([number, factor]).all() or (isinstance(node, exp.Div) and known is node.this):
        return None
    if known is node.this:
        return lambda values: made(number, values), other, factor
    return lambda values: made(values, number), other, factor


def evaluated(node: exp.Expr, known: Mapping[str, Any], one: Any) -> Any:
    """Return an expression over quantities by their names, which are arrays, or each a `Quotient`."""
    node = unwrapped(node)
    if isinstance(node, exp.Column):
        return known[node.name]
    if isinstance(node, exp.Literal):
        return number_of(node.name) * one
    inner = evaluated(node.this, known, one)
    if isinstance(node, exp.Neg):
        return -inner
    if type(node) in OPERATORS:
        return OPERATORS[type(node)](inner, evaluated(node.expression, known, one))
    function = increasing(node)
    assert function is not None, "translation lets nothing else through"
    if not isinstance(inner, Quotient):
        return function(inner)
    if function is not np.positive:
        raise Open
    return inner


# Quotients of two linear combinations: their intervals are exact, whatever the denominator.


class Open(Exception):  # noqa: N818 - no error
    """What is asked is no quotient of two linear combinations."""


def _product(left: Array, right: Array) -> Array:
    if not left[:-1].any():
        return np.asarray(left[-1] * right)
    if not right[:-1].any():
        return np.asarray(right[-1] * left)
    raise Open


@final
@dataclass(frozen=True, eq=False)
class Quotient:
    """A linear combination of quantities over another one.

    Attributes
    ----------
    top, bottom : ndarray
        The coefficients of the quantities, and last the constant.
    """

    top: Array
    bottom: Array

    def __add__(self, other: Quotient) -> Quotient:
        if np.array_equal(self.bottom, other.bottom):
            return Quotient(self.top + other.top, self.bottom)
        top = _product(self.top, other.bottom) + _product(other.top, self.bottom)
        return Quotient(top, _product(self.bottom, other.bottom))

    def __rmul__(self, factor: float) -> Quotient:
        return Quotient(factor * self.top, self.bottom)

    def __neg__(self) -> Quotient:
        return -1.0 * self

    def __sub__(self, other: Quotient) -> Quotient:
        return self + -other

    def __mul__(self, other: Quotient) -> Quotient:
        if np.array_equal(self.bottom, other.top):
            return Quotient(self.top, other.bottom)
        return Quotient(_product(self.top, other.top), _product(self.bottom, other.bottom))

    def __truediv__(self, other: Quotient) -> Quotient:
        return self * Quotient(other.bottom, other.top)

    def __pow__(self, other: Quotient) -> Quotient:
        raise Open


class Quantity(NamedTuple):
    """A sum or a count for each row of a result: a query of a group, -1 where it is 0 in any case."""

    group: Group
    queries: NDArray[np.int64]


_FIELLER = "Fieller's, pointwise: each holds the true quotient with this confidence, taken alone"
_DELTA = "by the delta method, an approximation for errors that are small beside the counts; pointwise"
#: Of a standard error: how far a quantity is moved to see how a function of it moves.
_STEP = 1e-3


@final
@dataclass(frozen=True, eq=False)
class Expression:
    """An expression of aggregates, for each query of a layout.

    Attributes
    ----------
    tree : expression
        Over the quantities, by their names.
    quantities : mapping of str to Quantity
        Sums and counts.
    text : str
        By what it is asked, within which conditions.
    note : str
        What is to be known besides; empty for nothing.
    measures : str
        What it measures: ``share``, or other ``values``.
    limits : tuple of float
        Between what the true figures are, as is public.
    """

    tree: exp.Expr
    quantities: Mapping[str, Quantity] = field(repr=False)
    text: str
    note: str
    measures: str = "values"
    limits: tuple[float, float] = (-math.inf, math.inf)

    @property
    def groups(self) -> list[Group]:
        """The query groups that must be measured."""
        return [quantity.group for quantity in self.quantities.values()]

    def known_after(self, attribute: Attribute) -> NDArray[np.intp]:
        """Return the last period of a series that each query needs, -1 where it is 0 in any case."""
        known = []
        for quantity in self.quantities.values():
            each = each_known_after(quantity.group, attribute)
            known.append(np.where(quantity.queries < 0, -1, each[quantity.queries]))
        return np.asarray(np.max(known, axis=0))

    def known(self, inference: Inference) -> Known:
        """Return the estimates with their errors, as they follow from a measurement.

        A linear combination has a symmetric interval, a quotient of two that of Fieller, anything else that
        of the delta method. Functions that never turn and are around it all are applied to both ends.
        Where an end does not exist, or none of the noise is left, as in the root of a negative interval,
        neither do the interval and the standard error.
        """
        outer, inside = [], unwrapped(self.tree)
        while (found := monotone(inside)) is not None:
            function, inside, factor = found
            outer.append((function, factor))
            inside = unwrapped(inside)
        with np.errstate(all="ignore"):
            values, covariances = self._moments(inference)
            try:
                known = self._quotient(inside, inference, values, covariances)
            except Open:
                known = self._smooth(inside, inference, values, covariances)
            estimates, deviations, low, high = known.figures
            for function, factor in reversed(outer):
                before = np.where(high > low, high - low, 1.0)
                estimates, *ends = map(function, (estimates, low, high))
                low, high = np.minimum(*ends), np.maximum(*ends)
                # those of rounded estimates stay what they were
                deviations = deviations * ((high - low) / before if factor is None else factor)
        note = f"{known.note}; {self.note}" if self.note else known.note
        told = np.isfinite(low) & np.isfinite(high) & ((deviations > 0) | (known.figures[1] <= 0))
        errors = np.where(told, [deviations, low, high], np.nan)
        return Known(np.array([estimates, *errors]), note, known.warnings)

    def _moments(self, inference: Inference) -> tuple[Array, Array]:
        """Return the quantities of each query, shape (quantities, queries), and their covariances."""
        places = [quantity.queries for quantity in self.quantities.values()]
        number, rows = len(places), len(places[0])
        values, covariances = np.zeros((number, rows)), np.zeros((number, number, rows))
        with inference.computing(*self.groups) as used:
            for one, other in itertools.combinations_with_replacement(range(number), 2):
                there = (places[one] >= 0) & (places[other] >= 0)
                left, right = places[one][there], places[other][there]
                if one == other:
                    values[one, there] = inference.estimates(used[one])[left]
                    found = inference.variances(used[one])[left]
                elif used[one].queries == used[other].queries and np.array_equal(left, right):
                    found = inference.analysis.covariances(used[one], used[other], paired=True)[left]
                else:
                    found = inference.analysis.covariances(used[one], used[other])[left, right]
                covariances[one, other, there] = covariances[other, one, there] = found
        return values, covariances

    def _quotient(self, tree: exp.Expr, inference: Inference, values: Array, covariances: Array) -> Known:
        """Return the figures of a quotient of linear combinations.

        Raises
        ------
        Open
            If it is anything else.
        """
        constants = np.eye(len(values) + 1)
        *units, one = (Quotient(row, constants[-1]) for row in constants)
        made: Quotient = evaluated(tree, dict(zip(self.quantities, units, strict=True)), one)
        left, right = (part[:-1] @ values + part[-1] for part in (made.top, made.bottom))
        top, bottom = made.top[:-1], made.bottom[:-1]
        sizes = [
            np.einsum("i,ijr,j->r", first, covariances, second)
            for first, second in ((top, top), (bottom, bottom), (top, bottom))
        ]
        tops, bottoms = self._terms(inference, top), self._terms(inference, bottom)
        if not bottom.any():
            deviations = np.sqrt(np.maximum(sizes[0], 0.0)) / abs(made.bottom[-1])
            return _around(left / right, deviations, inference.multipliers(*tops), POINTWISE)
        found = inference.ratios(Pairs(left, right, *sizes), tops, bottoms)
        figures = np.array([found.estimates, found.deviations, found.lower, found.upper])
        return Known(figures, _FIELLER, found.warnings)

    def _terms(self, inference: Inference, factors: Array) -> list[Term]:
        """Return the sums of quantities with some factors as terms of queries."""
        found = []
        for factor, (group, queries) in zip(factors, self.quantities.values(), strict=True):
            asked = factor * (queries >= 0)
            found.append((asked, inference.embed(group), np.maximum(queries, 0)))
        return found

    def _smooth(self, tree: exp.Expr, inference: Inference, values: Array, covariances: Array) -> Known:
        """Return the figures of any other function of the quantities, by the delta method.

        It says nothing where the function does not change with the quantities, nor where noise may have
        brought what is under a root, or divided by, to 0.
        """

        def asked(known: Array, tree: exp.Expr = tree) -> Array:
            found = evaluated(tree, dict(zip(self.quantities, known, strict=True)), np.ones(known.shape[1]))
            return np.broadcast_to(found, known.shape[1:])

        variances, reach = np.einsum("iir->ir", covariances), inference.multiplier

        def deviations(tree: exp.Expr) -> Array:
            slopes = np.zeros_like(values)
            for place, variance in enumerate(variances):
                step = np.zeros_like(values)
                step[place] = _STEP * np.sqrt(variance)
                change = asked(values + step, tree) - asked(values - step, tree)
                slopes[place] = np.where(variance > 0, change / (2.0 * step[place]), 0.0)
            spread = np.einsum("ir,ijr,jr->r", slopes, covariances, slopes)
            return np.asarray(np.sqrt(np.maximum(spread, 0.0)))

        found = deviations(tree)
        known = found > 0
        for root in tree.find_all(exp.Sqrt, exp.Pow):
            whole = isinstance(root, exp.Pow) and asked(values, root.expression) % 1 == 0
            known &= whole | (asked(values, root.this) > reach * deviations(root.this))
        for part in tree.find_all(exp.Div):
            known &= np.abs(asked(values, part.expression)) > reach * deviations(part.expression)
        found = np.where(known | (variances <= 0).all(axis=0), found, np.nan)
        return _around(asked(values), found, reach, _DELTA)


def _around(estimates: Array, deviations: Array, multiplier: float | Array, note: str) -> Known:
    width = multiplier * deviations
    return Known(np.array([estimates, deviations, estimates - width, estimates + width]), note)
