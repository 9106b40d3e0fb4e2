"""The commands: ``select``, ``release``, ``answer`` and ``validate``."""
