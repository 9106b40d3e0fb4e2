"""A first specification for a table: from its header and storage types, and from a table that is public."""

from matrixdp.draft.draft import draft_specification

__all__ = ["draft_specification"]
