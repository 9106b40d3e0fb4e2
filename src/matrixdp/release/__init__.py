"""Releases: answers with their standard errors, new queries, and the files that hold them."""

from matrixdp.release.folders import load_release
from matrixdp.release.keys import PublicKey, SigningKey, make_keys, read_passphrase
from matrixdp.release.ledger_recovery import Recovered, recover_ledger
from matrixdp.release.leftovers import mark_spent, refuse_to_spend_again
from matrixdp.release.recovery import recover_release
from matrixdp.release.release import Release
from matrixdp.release.schema import release_schema
from matrixdp.release.signatures import check_signature
from matrixdp.release.signing import sign_release
from matrixdp.release.size import SizeCheck, total_of
from matrixdp.release.staging import staged_folder
from matrixdp.release.writing import MAX_ANSWERS, mark_released, save_release, write_release

__all__ = [
    "MAX_ANSWERS",
    "PublicKey",
    "Recovered",
    "Release",
    "SigningKey",
    "SizeCheck",
    "check_signature",
    "load_release",
    "make_keys",
    "mark_released",
    "mark_spent",
    "read_passphrase",
    "recover_ledger",
    "recover_release",
    "refuse_to_spend_again",
    "release_schema",
    "save_release",
    "sign_release",
    "staged_folder",
    "total_of",
    "write_release",
]
