"""What an open page shows of a design: what is wrong, what is asked for, and how good it will be."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from textwrap import dedent
from threading import Lock, Thread
from typing import Any, final

from matrixdp.answers.publication import published_tables
from matrixdp.design.text import comments, parts
from matrixdp.domain import Amount, Attribute, Domain
from matrixdp.domain.parsing import with_paths
from matrixdp.draft import flow
from matrixdp.errors import MatrixDPError, PrivacyError, explained, within
from matrixdp.ledger import Ledger, in_words
from matrixdp.noise import natural_noise
from matrixdp.quality import BudgetQuality, Outlook, plan, promise
from matrixdp.queries import Group
from matrixdp.specification import Specification, load_specification, parse_yaml
from matrixdp.specification.advice import advice
from matrixdp.specification.load import files_beside

#: A page lists so many tables.
_SHOWN = 300
#: So many plans of a page are kept, for those who undo.
_KEPT = 8
#: An entry without a name has a target for each of its groups, of so many.
_MOST_NAMES = 20
#: Plans take all cores; those of several pages are made one after another.
_BUSY = Lock()


@final
@dataclass(frozen=True)
class Records:
    """What tables are judged on: a public table, or so many records, spread evenly."""

    public_table: str | None = None
    table_name: str | None = None
    number: int | None = None

    @property
    def option(self) -> str:
        """The option of the command ``plan``."""
        if self.public_table is None:
            return f"--records {self.number}"
        return f"--public-table {shlex.quote(self.public_table)}"


class _OutdatedError(Exception):
    """The design was changed while it was judged."""


@final
class Desk:
    """One open page: the text that was judged last, and the one that is being judged.

    Parameters
    ----------
    file : path
        The specification's, which paths in the text are relative to.
    records : Records
    """

    def __init__(self, file: Path, records: Records) -> None:
        self.file, self.records = file, records
        self.outlook: Outlook | None = None
        self._lock, self._running = Lock(), False
        self._asked: tuple[str, Specification | None] = ("", None)
        self._stage, self._problem, self._unmet = "", "", False
        #: A text whose plan is kept, for who compares.
        self.kept: object = None
        self._judged: dict[str, Outlook] = {}

    def show(self, text: str) -> dict[str, Any]:
        """Return what a page shows of a text, as plain values; what takes long is begun, and told later."""
        base = self.file.parent
        document, written, problem = read(text, base)
        self._judge(text, written)
        shown: dict[str, Any] = {
            "problem": problem,
            "attributes": _attributes(text, document, written, base),
            "commands": self._commands(written),
            "stage": self._stage,
            "failed": self._problem,
            "unmet": self._unmet,
        }
        asked = document.get("workload")
        entries = asked if isinstance(asked, list) else []
        texts = [own.partition("\n") for own in parts(text, "workload").values()] if entries else []
        shown["entries"] = [
            {"written": f"{first}\n{dedent(more)}".strip(), "asked": entry, "about": [], "names": []}
            for (first, _, more), entry in zip(texts, entries, strict=False)
        ]
        privacy = document.get("privacy")
        shown["privacy"] = privacy if isinstance(privacy, Mapping) else {}
        targets = document.get("targets")
        shown["targets"] = targets if isinstance(targets, Mapping) else {}
        if written is None:
            return shown
        shown |= {"warnings": advice(written), "cells": written.domain.cells()}
        workload = written.workload
        for entry, own, places in zip(shown["entries"], workload.entries, workload.places, strict=False):
            groups = [workload.groups[place] for place in places]
            entry["about"] = sorted({group.attributes for group in groups})[:_SHOWN]
            entry["names"] = _target_names(own, groups)
        return shown | self._quality(written)

    def _quality(self, written: Specification) -> dict[str, Any]:
        """Return how good the tables will be: as judged, or estimated from what was judged last."""
        outlook, tables = self.outlook, published_tables(written.workload)
        own: dict[str, Any] = {"tables": [], "certified": False, "ledger": None, "prices": []}
        own |= {"judged": "" if outlook is None else outlook.records, "more": max(0, len(tables) - _SHOWN)}
        found: BudgetQuality | None = None
        if outlook is not None:
            own["certified"] = outlook.specification.document == written.document
            found = outlook.budgets[0] if own["certified"] else _estimated(outlook, written)
        if own["certified"]:
            assert outlook is not None
            own["prices"] = [one.share for one in outlook.prices]
            own["ledger"] = None if outlook.ledger is None or _debited(outlook) else dict(outlook.ledger)
        known = {} if found is None else {one.table: asdict(one) for one in found.tables}
        for one in tables[:_SHOWN]:
            quality = known.get(one.title)
            same = quality is not None and one.rows in (0, quality["figures"])
            title = {"table": one.title, "figures": one.rows, "letters": None}
            own["tables"].append(quality if same else title)
        budget = written.reference_budget if found is None else found.budget
        if budget is not None and (written.least is None or found is not None):
            with within("privacy"):
                told = promise(written, natural_noise(budget), budget) if found is None else found.promise
            own["budget"] = {"words": budget.words, "guess": told.odds, "rmse": found and found.rmse}
        return own

    def _commands(self, written: Specification | None) -> list[str]:
        file, on = shlex.quote(str(self.file)), self.records.option
        sheet = shlex.quote(str(self.file.with_suffix(".html")))
        over_time = written is not None and written.series is not None
        out = shlex.quote(f"{self.file.with_suffix('')}-{'series' if over_time else 'release'}")
        return [
            f"matrixdp validate {file}",
            f"matrixdp plan {file} {on} --page {sheet}",
            f"matrixdp {'series start' if over_time else 'release'} {file} --out {out}",
        ]

    def close(self) -> None:
        """Give up what is being judged: the page is gone, and others wait."""
        with self._lock:
            self._asked = "", None

    # Plans are made beside the page; what a change has overtaken ends at its next step, and is not shown.

    def _judge(self, text: str, written: Specification | None) -> None:
        with self._lock:
            held = self._asked[1]
            # files that the text names may have changed, too
            same = (held and held.document) == (written and written.document)
            if self._asked[0] == text and same:
                return
            self._asked, self._problem, self._unmet = (text, written), "", False
            known = self._judged.get(text)
            known = known if written and known and known.specification.document == written.document else None
            self.outlook = known or self.outlook
            self._stage = "" if written is None or known else "waiting"
            if not self._stage or self._running:
                return
            self._running = True
        Thread(target=self._work, daemon=True).start()

    def _work(self) -> None:
        while True:
            with self._lock:
                asked = text, written = self._asked
                if written is None or not self._stage:
                    self._running = False
                    return
            outlook, problem, unmet = None, "", False
            with _BUSY:
                try:
                    outlook = self._plan(written, self._teller(asked))
                except _OutdatedError:
                    continue
                except MatrixDPError as error:
                    problem, unmet = str(error), error.path[:1] == ("targets",)
                except Exception as error:  # noqa: BLE001 - the page says so, and goes on
                    problem = explained(error)
            with self._lock:
                if self._asked is asked:
                    self.outlook, self._stage = outlook or self.outlook, ""
                    self._problem, self._unmet = problem, unmet
                    if outlook is not None:
                        kept = [own for own in self._judged.items() if own[0] == self.kept]
                        latest = list(self._judged.items())[1 - _KEPT :]
                        self._judged = dict([*kept, *latest, (text, outlook)])

    def _plan(self, written: Specification, tell: Callable[[str, float | None], None]) -> Outlook:
        on = self.records
        public: dict[str, Any] = {"public_table": on.public_table, "table_name": on.table_name}
        tell("choosing a strategy", None)
        return plan(written, **public, records=on.number, prices=False, estimates=True, progress=tell)

    def _teller(self, asked: object) -> Callable[[str, float | None], None]:
        def tell(what: str, _share: float | None) -> None:
            with self._lock:
                if self._asked is not asked:
                    raise _OutdatedError
                self._stage = what

        return tell


def read(text: str, base: Path) -> tuple[Mapping[str, Any], Specification | None, dict[str, Any] | None]:
    """Return what a text says, the specification if it is one, and else what is wrong."""
    document: object = {}
    try:
        document = parse_yaml(text).value
        written = load_specification(f"{text}\n", base_path=base, require_privacy=True)
    except MatrixDPError as error:
        named = document if isinstance(document, Mapping) else {}
        return named, None, {"says": str(error), "code": error.code, "path": list(error.path or ())}
    assert isinstance(document, Mapping)
    return document, written, None


def _target_names(entry: object, groups: Sequence[Group]) -> list[str]:
    """Return under which names targets for an entry stand: its own, or those of its groups."""
    name, names = getattr(entry, "name", None), list(dict.fromkeys(group.name for group in groups))
    if name is not None:
        return [str(name)]
    return names if getattr(entry, "direct", True) and len(names) <= _MOST_NAMES else []


def _attributes(
    text: str, document: Mapping[str, Any], written: Specification | None, base: Path
) -> list[dict[str, Any]]:
    """Return the attributes: how each is written, how many values it has, and what is wrong with it."""
    given = document.get("domain")
    if not isinstance(given, Mapping):
        known = () if written is None else written.domain.attributes
        return [_attribute(own.name, own, None) for own in known]
    resolve = files_beside(document, base)
    texts, notes, unfilled = parts(text, "domain"), comments(text, "domain"), parse_yaml(text).unfilled
    found = []
    for name, own in given.items():
        # the page has one line for each
        line = flow(own) if isinstance(own, Mapping) and texts[name][0] != "{" else texts[name]
        if any(path[:2] == ("domain", name) for path in unfilled):
            problem = "fill in what stands as TODO, from public knowledge"
            found.append(_attribute(name, None, line, problem, notes[name]))
            continue
        try:
            domain = Domain({name: with_paths(own, resolve)}) if written is None else written.domain
            found.append(_attribute(name, domain[name], line, note=notes[name]))
        except MatrixDPError as error:
            found.append(_attribute(name, None, line, str(error), notes[name]))
    return found


def _attribute(
    name: str, own: Attribute | None, line: str | None, problem: str = "", note: str = ""
) -> dict[str, Any]:
    amount = isinstance(own, Amount)
    size = None if own is None or amount else own.size
    return {"name": name, "size": size, "amount": amount, "written": line, "problem": problem, "note": note}


def _debited(outlook: Outlook) -> bool:
    """Return whether a ledger has something else left than when a plan was made."""
    assert outlook.ledger is not None
    try:
        left = Ledger.open(outlook.ledger["path"]).left
    except MatrixDPError:
        return True
    return bool(outlook.ledger["left"] != ("nothing" if left is None else in_words(left.as_dict())))


def _estimated(outlook: Outlook, written: Specification) -> BudgetQuality | None:
    """Return how good tables would be as estimated from those judged last; None where nothing is alike."""
    budget = written.reference_budget
    if budget is None or written.least is not None or outlook.specification.domain != written.domain:
        return None
    try:
        return outlook.at(budget)
    except PrivacyError:  # the noise that was chosen is that of another definition
        return None
