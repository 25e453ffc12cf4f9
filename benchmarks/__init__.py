"""Benchmarks: each prints ratios measured side by side in one run, checked for equal error first.

They are tools of this repository and not installed with it; what a user runs is in `studies`.
"""
