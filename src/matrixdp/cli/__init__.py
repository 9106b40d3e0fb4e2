"""The commands of ``matrixdp``."""
