"""Releases: answers with their standard errors, new queries, and the files that hold them."""

from matrixdp.releases.files import MAX_ANSWERS, mark_released, save_release, staged_folder, write_release
from matrixdp.releases.record import SizeCheck, mark_spent, refuse_to_spend_again, release_schema, total_of
from matrixdp.releases.recovery import Recovered, recover_ledger, recover_release, sign_release
from matrixdp.releases.release import Release, load_release
from matrixdp.releases.signatures import PublicKey, SigningKey, check_signature, make_keys, read_passphrase

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
