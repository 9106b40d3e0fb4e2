"""The decomposition of a workload that marginals answer: split, solve each distinct sub-workload, assemble."""
