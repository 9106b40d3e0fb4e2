"""Strategies and measurements as files: versioned archives, every part checked when read."""
