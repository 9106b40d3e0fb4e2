"""What the specification of a discovery must not say, and the error that each attempt raises."""

from typing import Any

import matrixdp as mdp
from matrixdp.specification import load_discovery, load_specification
from tests.refusals import Refusal, numbered

PRIVACY = {"epsilon": 1, "delta": 1e-6}
VALUES = {"discover": "values"}


def loading(domain: object = None, **changed: Any) -> Any:
    spec = {"domain": {"word": VALUES} if domain is None else domain, "privacy": PRIVACY} | changed
    return lambda: load_discovery({name: said for name, said in spec.items() if said is not ...})


def marked(**own: object) -> Any:
    return loading({"word": {**VALUES, **own}})


REFUSALS: list[Refusal] = numbered("discovery", [
    ("not-supported", "privacy", loading(privacy={"epsilon": 1})),
    ("not-supported", "privacy", loading(privacy={"rho": 1})),
    ("not-supported", "privacy", loading(privacy={"mu": 1})),
    ("not-supported", "privacy.neighbours", loading(privacy={**PRIVACY, "neighbours": "replace"})),
    ("conflict", "privacy.minimize", loading(privacy={"minimize": "rho"})),
    ("missing-key", "privacy", loading(privacy=...)),
    ("missing-key", "domain", lambda: load_discovery({"privacy": PRIVACY})),
    ("not-supported", "unit", loading(unit={"records": 3})),
    ("conflict", "unit.id", loading(unit={"id": "word", "max_records": 3})),
    ("out-of-range", "domain.word.max_values", marked(max_values=2)),
    ("out-of-range", "domain.word.max_values", marked(max_values=20_000)),
    ("out-of-range", "domain.word.max_values",
     loading({"word": {**VALUES, "max_values": 4}},
             unit={"id": "p", "per": "word", "max_values": 3, "max_records_each": 2})),
    ("missing-key", "domain.word.discover", loading({"word": {"title": "Word"}})),
    ("conflict", "domain.word.categories", marked(categories=["a", "b"])),
    ("unknown-key", "domain.word.maxvalues", marked(maxvalues=3)),
    ("wrong-type", "domain.word", loading({"word": ["a", "b"]})),
    ("conflict", "domain.word.bins", marked(bins=3)),
    ("conflict", "domain.word.trim", loading({"word": {"discover": "bounds", "trim": True}})),
    ("conflict", "domain.word.step", loading({"word": {"discover": "bounds", "bins": 3, "step": 1}})),
    ("out-of-range", "domain.word.largest", loading({"word": {"discover": "bounds", "largest": 1e30}})),
    ("missing-key", "domain.word.discover",
     lambda: load_specification({"domain": {"word": VALUES}, "workload": [{"marginals": [1]}]})),
    ("missing-key", "data", lambda: mdp.discover({"domain": {"word": VALUES}, "privacy": PRIVACY})),
    ("out-of-range", "privacy", lambda: mdp.discover(
        {"domain": {"word": VALUES}, "privacy": {"epsilon": 11, "delta": 1e-6}}, table={"word": []})),
    ("out-of-range", "domain.x.amount[0]", lambda: mdp.discover(
        {"domain": {"x": {"discover": "bounds", "step": 1e-4}}, "privacy": {"epsilon": 1}}, table={"x": []})),
    ("missing-column", "", lambda: mdp.discover(
        {"domain": {"word": VALUES}, "privacy": PRIVACY}, table={"Word": []})),
    ("file-missing", "domain_from[0]['FOLDER/none.yaml']", lambda folder: load_specification(
        {"domain_from": str(folder / "none.yaml"), "workload": [{"marginals": [1]}]})),
])  # fmt: skip
