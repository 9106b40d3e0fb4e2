"""Pictures of answers, strategies and comparisons, drawn with matplotlib where it is installed."""
