"""Answers as tables: their columns, the ends of their intervals, one estimate with its error."""
