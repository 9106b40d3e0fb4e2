"""The decomposition of a workload that marginals answer: split, solve sub-workloads, assemble."""
