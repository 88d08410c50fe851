"""Benchmarks; run ``python -m bench --help`` from the root of the repository."""
