"""Releases: answers with their standard errors, new queries, and the files that hold them."""

from matrixdp.release.leftovers import mark_spent, refuse_to_spend_again
from matrixdp.release.recovery import recover_release
from matrixdp.release.release import Release
from matrixdp.release.staging import staged_folder
from matrixdp.release.writing import MAX_ANSWERS, load_release, mark_released, save_release, write_release

__all__ = [
    "MAX_ANSWERS",
    "Release",
    "load_release",
    "mark_released",
    "mark_spent",
    "recover_release",
    "refuse_to_spend_again",
    "save_release",
    "staged_folder",
    "write_release",
]
