"""Releases: answers with their standard errors, new queries, and the files that hold them."""

from matrixdp.releases.record import SizeCheck as SizeCheck
from matrixdp.releases.record import records_in as records_in
from matrixdp.releases.record import total_of as total_of
from matrixdp.releases.release import Release as Release
from matrixdp.releases.release import load_release as load_release
from matrixdp.releases.release import sign_release as sign_release
from matrixdp.releases.schema import release_schema as release_schema
from matrixdp.releases.signatures import PublicKey as PublicKey
from matrixdp.releases.signatures import SigningKey as SigningKey
from matrixdp.releases.signatures import check_signature as check_signature
from matrixdp.releases.signatures import make_keys as make_keys
from matrixdp.releases.signatures import read_passphrase as read_passphrase
from matrixdp.releases.transaction import Recovered as Recovered
from matrixdp.releases.transaction import recover_ledger as recover_ledger
from matrixdp.releases.transaction import recover_release as recover_release
from matrixdp.releases.transaction import save_release as save_release
