"""The commands ``keys`` and ``sign``, and the options with which a release is signed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from matrixdp.cli.guard import guarded
from matrixdp.cli.options import ReleaseFolder

if TYPE_CHECKING:
    from matrixdp.release import SigningKey

__all__ = ["PassphraseFile", "SignOption", "keys", "sign", "signing_key"]

SignOption = Annotated[
    Path | None,
    typer.Option(
        "--sign",
        metavar="KEY",
        show_default=False,
        help="Sign the release with a private key that `matrixdp keys` made.",
    ),
]
PassphraseFile = Annotated[
    Path | None,
    typer.Option(
        "--passphrase-file",
        metavar="FILE",
        show_default=False,
        help="A file whose first line is the passphrase of the private key.",
    ),
]
_Path = Annotated[
    Path,
    typer.Argument(
        metavar="KEY", show_default=False, help="Where the private key goes; the public one is KEY.pub."
    ),
]
_Key = Annotated[
    Path, typer.Option("--key", metavar="KEY", show_default=False, help="The private key, a PEM file.")
]
_Force = Annotated[bool, typer.Option("--force", help="Replace a signature that is there.")]


def signing_key(path: Path | None, passphrase_file: Path | None) -> SigningKey | None:
    """Return the key that a release is signed with; what is wrong with it is found here, first."""
    from matrixdp.errors import SpecificationError
    from matrixdp.release import SigningKey, read_passphrase

    if path is not None:
        return SigningKey.load(path, None if passphrase_file is None else read_passphrase(passphrase_file))
    if passphrase_file is not None:
        raise SpecificationError.at(("--passphrase-file",), "it without --sign", "a key that it belongs to")
    return None


@guarded
def keys(path: _Path, passphrase_file: PassphraseFile = None) -> None:
    """Make a pair of Ed25519 keys for signatures, in two PEM files.

    The private key signs releases (`matrixdp release --sign`, `matrixdp sign`) and stays with you; with a
    passphrase it is encrypted. The public key is for everybody who verifies them. Files that are there are
    never replaced.
    """
    from matrixdp.release import PublicKey, make_keys, read_passphrase

    passphrase = None if passphrase_file is None else read_passphrase(passphrase_file)
    private, public = make_keys(path, passphrase)
    typer.echo(f"private key: {private} (keep it secret)")
    typer.echo(f"public key: {public} (publish it where releases are not)")
    typer.echo(f"fingerprint: {PublicKey.load(public).fingerprint}")


@guarded
def sign(
    folder: ReleaseFolder, key: _Key, passphrase_file: PassphraseFile = None, force: _Force = False
) -> None:
    """Sign a release that is there already, after checking it.

    Writes signature.json, over release.json, which lists the digests of all other files.
    """
    from matrixdp.release import SigningKey, read_passphrase, sign_release

    passphrase = None if passphrase_file is None else read_passphrase(passphrase_file)
    signing = SigningKey.load(key, passphrase)
    path = sign_release(folder, signing, force=force)
    typer.echo(f"{path}: signed with the key {signing.public.fingerprint}")
