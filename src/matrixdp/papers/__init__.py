"""Mechanisms that single papers need, on the public way to add a mechanism."""
