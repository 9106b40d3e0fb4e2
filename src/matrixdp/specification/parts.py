"""The parts of a specification, made of their plain values.

Every function here raises `EntryError` with the place inside its part.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

from pydantic import ValidationError

from matrixdp.domain import Attribute, Domain, OutOfDomain, attribute_from_spec, canonical_text
from matrixdp.domain.canonical import describe_value
from matrixdp.domain.suggestions import unknown_name
from matrixdp.errors import DomainError, EntryError, PrivacyError
from matrixdp.errors import Path as Place
from matrixdp.privacy import Budget, LeastBudget
from matrixdp.queries import builders, merged_builders
from matrixdp.queries.workload import Entry
from matrixdp.specification.models import MODELS, entry_kind
from matrixdp.specification.translation import first_problem, unknown_entry

__all__ = ["budget_from", "domain_from", "entry_from", "least_budget_from", "out_of_domain_from", "plain"]


def plain(value: object, place: Place = ()) -> object:
    """Return a value as YAML could have it: mappings with text as keys, lists and scalars.

    Parameters
    ----------
    value : object
        What a Python user gave.
    place : tuple of str or int
        Where it stands, for messages.

    Raises
    ------
    EntryError
        If a key is not text, or a value is of a type that YAML does not have.

    Examples
    --------
    >>> plain({"age": range(2), "sex": ("female", "male")})
    {'age': [0, 1], 'sex': ['female', 'male']}
    """
    if value is None or isinstance(value, str | bool | int | float):
        return value
    if isinstance(value, Mapping):
        for key in value:
            if not isinstance(key, str):
                raise EntryError.at(place, f"the key {describe_value(key)}", "text as a key")
        return {key: plain(item, (*place, key)) for key, item in value.items()}
    if isinstance(value, list | tuple | range):
        return [plain(item, (*place, position)) for position, item in enumerate(value)]
    if isinstance(value, Path):
        return str(value)
    if hasattr(value, "tolist"):
        return plain(value.tolist(), place)
    raise EntryError.at(place, describe_value(value), "a mapping, a list, text, a number, true or false")


def domain_from(spec: Mapping[str, object]) -> Domain:
    """Return the domain that the part ``domain`` describes.

    Parameters
    ----------
    spec : mapping of str to object
        The attributes' forms, of the right shape.

    Raises
    ------
    EntryError
        If an attribute is wrong in itself: a category named twice, bins that overlap, no values.

    Examples
    --------
    >>> domain_from({"sex": ["female", "male"], "age": {"min": 0, "max": 114}}).shape
    (2, 115)
    """
    return Domain([_attribute(name, form, ("domain", name)) for name, form in spec.items()])


def _attribute(name: str, form: object, place: Place) -> Attribute:
    if isinstance(form, list):
        _check_categories(form, place)
    elif isinstance(form, Mapping) and "edges" in form:
        for position, (before, after) in enumerate(pairwise(form["edges"])):
            if not before < after:
                raise EntryError.at(
                    (*place, "edges", position + 1),
                    describe_value(after),
                    f"a number above {describe_value(before)}, the edge before it; bins must not overlap",
                )
    elif isinstance(form, Mapping) and not form["min"] < form["max"] + ("bins" not in form):
        least = "above" if "bins" in form else "of at least"
        raise EntryError.at(
            (*place, "max"),
            describe_value(form["max"]),
            f"a number {least} {describe_value(form['min'])}, the min",
        )
    try:
        return attribute_from_spec(name, form)
    except DomainError as error:
        raise EntryError.at(place, describe_value(form), f"a valid attribute ({error})") from None


def _check_categories(categories: list[object], place: Place) -> None:
    seen: set[str] = set()
    for position, category in enumerate(categories):
        try:
            text = canonical_text(category)
        except DomainError as error:
            raise EntryError.at(
                (*place, position), describe_value(category), f"a category ({error})"
            ) from None
        if text in seen:
            raise EntryError.at(
                (*place, position), f"{describe_value(category)} a second time", "each category once"
            )
        seen.add(text)


def out_of_domain_from(domain: Domain, spec: object) -> OutOfDomain:
    """Return the rule that the part ``out_of_domain`` describes.

    Parameters
    ----------
    domain : Domain
        The attributes.
    spec : object
        The rule, of the right shape.

    Raises
    ------
    EntryError
        If it names an attribute or a value that the domain does not have.

    Examples
    --------
    >>> domain = Domain({"sex": ["female", "male", "unknown"]})
    >>> out_of_domain_from(domain, {"sex": {"other": "unknown"}}).code("sex")
    2
    """
    for name, rule in spec.items() if isinstance(spec, Mapping) else ():
        place: Place = ("out_of_domain", name)
        if name not in domain:
            raise EntryError(unknown_name(place, name, "an attribute of the domain", domain.names))
        if isinstance(rule, Mapping):
            try:
                domain[name].code_of(rule["other"])
            except DomainError as error:
                expected = f"a value of {name!r} ({error})"
                raise EntryError.at((*place, "other"), describe_value(rule["other"]), expected) from None
    return OutOfDomain.from_spec(domain, spec)


def budget_from(spec: Mapping[str, object]) -> Budget:
    """Return the budget that the part ``privacy`` describes.

    Parameters
    ----------
    spec : mapping of str to object
        The parameters, of the right types.

    Raises
    ------
    EntryError
        If not exactly one definition is given, or a parameter is out of range.

    Examples
    --------
    >>> budget_from({"rho": 0.5})
    Budget(rho=0.5, neighbours='add_remove')
    """
    with _budget_errors():
        return Budget(**spec)  # type: ignore[arg-type]  # of the right types by the models


def least_budget_from(spec: Mapping[str, object]) -> LeastBudget:
    """Return which budget is made least, from the part ``privacy`` beside ``targets``.

    Parameters
    ----------
    spec : mapping of str to object
        ``least`` with ``neighbours`` and ``delta``; or a budget, which must not be exceeded.

    Raises
    ------
    EntryError
        If it is neither.

    Examples
    --------
    >>> least_budget_from({"least": "rho"}), least_budget_from({"mu": 1.0}).limit
    (LeastBudget(kind='rho', delta=None, neighbours='add_remove'), Budget(mu=1.0, neighbours='add_remove'))
    """
    if spec.get("least") is None:
        return LeastBudget.within(budget_from(spec))
    for key in ("rho", "mu", "epsilon"):
        if spec.get(key) is not None:
            raise EntryError.at(
                ("privacy", key), f"{key} beside least", "one of them: least, or a budget not to exceed"
            )
    given = {"kind" if key == "least" else key: value for key, value in spec.items()}
    with _budget_errors():
        return LeastBudget(**given)  # type: ignore[arg-type]  # of the right types by the models


@contextmanager
def _budget_errors() -> Iterator[None]:
    try:
        yield
    except PrivacyError as error:
        if error.problem is None:
            raise
        raise EntryError(replace(error.problem, path=("privacy", *error.problem.path[1:]))) from None


def entry_from(written: object, base_path: Path) -> Entry:
    """Return the workload entry that a mapping describes.

    Parameters
    ----------
    written : object
        What stands in the file, of plain values.
    base_path : path
        What the paths of NumPy files are relative to.

    Raises
    ------
    EntryError
        If it is not an entry, or an argument is wrong.
    TooLargeError
        If a matrix is larger than explicit queries may be.

    Examples
    --------
    >>> entry_from({"product": {"age": "prefix"}, "weight": 2}, Path()).to_spec()
    {'product': {'age': 'prefix'}, 'weight': 2.0}
    """
    kind = entry_kind(written)
    if kind is None or not isinstance(written, Mapping):
        raise unknown_entry(written)
    model = MODELS[f"entry:{kind}"]
    try:
        model.model_validate(written)
    except ValidationError as error:
        raise first_problem(error, model) from None
    given = dict(_with_paths(written, base_path))
    main = given.pop(kind)
    if kind == "product":
        if not isinstance(main, Mapping):
            raise EntryError.at((kind,), describe_value(main), "a mapping of attributes to predicate sets")
        return builders.product(main, **given)  # type: ignore[arg-type]  # checked by the builder
    if kind == "any":
        if not isinstance(main, Mapping):
            raise EntryError.at((kind,), describe_value(main), "a mapping of attributes to predicate sets")
        return merged_builders.disjunction(main, **given)  # type: ignore[arg-type]  # checked by the builder
    builder = getattr(merged_builders if kind == "cells" else builders, kind)
    entry: Entry = builder(main, **given)
    return entry


def _with_paths(written: Mapping[str, object], base: Path) -> dict[str, object]:
    """Return the entry with the paths of files resolved."""
    result = {
        key: _resolved(value, base) if key in ("dense", "weights") else value
        for key, value in written.items()
    }
    for key in ("product", "any", "by"):
        sets = result.get(key)
        if isinstance(sets, Mapping):
            result[key] = {name: _predicates(form, base) for name, form in sets.items()}
    if "predicates" in result:
        form = _predicates(result["predicates"], base)
        if isinstance(form, Mapping):
            form = {kind: _predicates(value, base) for kind, value in form.items()}
        result["predicates"] = form
    return result


def _predicates(form: object, base: Path) -> object:
    if isinstance(form, list):
        return [_predicates(item, base) for item in form]
    if isinstance(form, Mapping) and "matrix" in form:
        return {**form, "matrix": _resolved(form["matrix"], base)}
    if isinstance(form, Mapping) and "permuted" in form:
        return {**form, "permuted": _predicates(form["permuted"], base)}
    return form


def _resolved(value: object, base: Path) -> object:
    return base / value if isinstance(value, str) else value
