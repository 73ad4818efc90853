"""Benchmarks beside other programs that do the same work, each in the same run."""
