"""Benchmarks of the claims in docs/figures.md; `make bench` runs them."""
