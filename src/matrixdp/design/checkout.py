"""A release from the page: first a summary of what it spends, then, once that is confirmed, one release.

A summary is about one text of the file, and can be confirmed once. What it says is computed again when it is
confirmed: a file, a ledger or a folder that changed meanwhile ends it before anything is spent. The release
is `matrixdp.release`, whose transaction protects the budget: a program that is stopped leaves what a killed
command leaves.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from decimal import ROUND_FLOOR
from pathlib import Path
from threading import Lock, Thread
from typing import Any, final

from matrixdp.errors import PrivacyError, SafeNote, SpecificationError, StorageError, explained
from matrixdp.forms import shown
from matrixdp.ledger import Ledger, in_words
from matrixdp.noise import noise_named
from matrixdp.privacy import Budget
from matrixdp.quality import BudgetQuality, Outlook
from matrixdp.releases.transaction import check_place
from matrixdp.specification import Specification, load_specification
from matrixdp.strategy.pipeline import check_request, release


@final
@dataclass
class Run:
    """A release that was confirmed: how far it is, and what came of it."""

    folder: str
    going: bool = True
    stage: str = "beginning"
    share: float | None = None
    spent: str = ""
    warnings: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()


@final
@dataclass(frozen=True, eq=False)
class _Offer:
    """A summary that may be confirmed, and what it is about."""

    nonce: str
    digest: str
    written: Specification
    quality: BudgetQuality
    told: dict[str, Any]


@final
class Checkout:
    """Where a page hands over a design to be released: one at a time.

    Parameters
    ----------
    file : path
        The specification's; the release goes into a new folder beside it.
    """

    def __init__(self, file: Path) -> None:
        self.file, self.folder = file, Path(f"{file.with_suffix('')}-release")
        self._lock, self._confirmed = Lock(), ""
        self._offer: _Offer | None = None
        self._run: Run | None = None

    @property
    def run(self) -> dict[str, Any] | None:
        """The release that was confirmed last, as plain values."""
        return None if self._run is None else asdict(self._run)

    def offer(self, text: str, held: str, digest: str, outlook: Outlook | None, nonce: str) -> dict[str, Any]:
        """Return a summary of what a release of a text would spend; it takes the place of any earlier one.

        Raises
        ------
        MatrixDPError
            If the text is not what the file holds, its figures are not computed, or it cannot be released.
        """
        if text != held or not digest:
            expected = "the text of the page: save it first"
            raise SpecificationError.at(("the file",), "another text", expected, code="conflict")
        # of the text, not the file, which may hold another by now
        written = load_specification(f"{text}\n", base_path=self.file.parent, require_privacy=True)
        if outlook is None or outlook.specification.document != written.document:
            expected = "those of this text, computed"
            raise SpecificationError.at(("the figures",), "others, or estimates", expected, code="conflict")
        quality = outlook.budgets[0]
        told = self._told(written, quality)
        with self._lock:
            self._offer = _Offer(nonce, digest, written, quality, told)
        return told | {"nonce": nonce, "digest": digest}

    def confirm(self, nonce: str, digest: str, now: str) -> None:
        """Begin the release that a summary was about; the file had one digest then, and has one now.

        Raises
        ------
        MatrixDPError
            If the summary was confirmed before or is no longer true, or another release goes on.
        """
        with self._lock:
            if nonce == self._confirmed:
                told = "the release: found it confirmed before; nothing is spent a second time"
                raise StorageError(told, "already-spent")
            if self._run is not None and self._run.going:
                told = "the release: found another one under way; nothing is spent beside it"
                raise StorageError(told, "already-spent")
            offer = self._offer
            if offer is None or nonce != offer.nonce:
                raise _outdated("one that is used, or that a later one replaced")
            self._offer = None
            if not digest == now == offer.digest:
                raise _outdated("one of another text than the file has now")
            if self._told(offer.written, offer.quality) != offer.told:
                raise _outdated("one that is no longer true, as the ledger changed")
            run = Run(str(self.folder))
            Thread(target=self._release, args=(offer, run), daemon=True).start()
            self._run, self._confirmed = run, nonce

    def _told(self, written: Specification, quality: BudgetQuality) -> dict[str, Any]:
        """Return what a release would publish, read, spend and write; refuse what would be refused."""
        budget = quality.budget
        check_request(written)
        check_place(self.folder, budget.words)
        return {
            "tables": [(one.table, one.figures) for one in quality.tables],
            "figures": sum(one.figures for one in quality.tables),
            "budget": budget.words,
            "guess": quality.promise.odds,
            "protected": quality.promise.protected,
            "ledger": None if written.ledger is None else _ledger(written.ledger, quality),
            "data": shown(str(written.data)) + (f", table {written.table}" if written.table else ""),
            "folder": str(self.folder),
        }

    def _release(self, offer: _Offer, run: Run) -> None:
        def tell(what: str, share: float | None) -> None:
            run.stage, run.share = what, share

        def check(budget: Budget) -> None:
            if budget != offer.quality.budget:
                found, expected = budget.words, f"{offer.quality.budget.words}, as the summary said"
                raise PrivacyError.at(("privacy",), found, expected, code="conflict")

        try:
            noise = offer.quality.noise
            found = release(offer.written, self.folder, noise=noise, before_measuring=check, progress=tell)
            run.spent = found.measurement.authorization.budget.words
            run.warnings = tuple(found.size.warnings)
        except Exception as error:  # noqa: BLE001 - the page says so, and goes on
            notes = [str(note) for note in getattr(error, "__notes__", ()) if isinstance(note, SafeNote)]
            run.failed = (explained(error), *notes)
        finally:
            run.going = False


def _outdated(found: str) -> SpecificationError:
    expected = "a new one; nothing was spent"
    return SpecificationError.at(("the summary",), found, expected, code="conflict")


def _ledger(path: Path, quality: BudgetQuality) -> dict[str, str]:
    """Return what a ledger has left before and after a release; refuse more than that."""
    ledger, cost = Ledger.open(path), noise_named(quality.noise).cost(quality.budget)
    ledger.check(cost, quality.budget)
    before, after = (
        "nothing" if one.left is None else in_words(one.left.as_dict(), ROUND_FLOOR)
        for one in (ledger.account, ledger.account.plus(cost, quality.budget))
    )
    total = in_words(ledger.total.as_dict())
    return {"dataset": ledger.dataset, "path": str(path), "total": total, "before": before, "after": after}
