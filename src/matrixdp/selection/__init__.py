"""Selection: from a workload to a plan, without the data."""
