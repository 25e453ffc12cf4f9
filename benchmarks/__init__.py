"""Benchmarks: each prints ratios measured side by side in one run, checked for equal error first."""
