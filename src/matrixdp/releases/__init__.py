"""Releases: answers with their standard errors, new queries, and the files that hold them."""

from matrixdp.releases.files import MAX_ANSWERS
from matrixdp.releases.record import SizeCheck, total_of
from matrixdp.releases.release import Release, load_release, sign_release
from matrixdp.releases.schema import release_schema
from matrixdp.releases.signatures import PublicKey, SigningKey, check_signature, make_keys, read_passphrase
from matrixdp.releases.transaction import Recovered, recover_ledger, recover_release, save_release

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
    "read_passphrase",
    "recover_ledger",
    "recover_release",
    "release_schema",
    "save_release",
    "sign_release",
    "total_of",
]
