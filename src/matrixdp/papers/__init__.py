"""Mechanisms that only one paper needs."""
