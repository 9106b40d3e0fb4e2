"""Differentially private answers to workloads of counting queries, with the least possible error."""
