"""How a workload looks to a mechanism: as one table, a union of products, sub-workloads, residual spaces."""
