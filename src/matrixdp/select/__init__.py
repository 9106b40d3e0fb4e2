"""Selection: from a workload to a strategy, without the data."""
