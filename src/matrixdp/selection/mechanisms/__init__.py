"""The mechanisms, behind one table that reads a file when its mechanism is asked for."""
