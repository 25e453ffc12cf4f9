"""Kernels of runs by two methods: the attempts of both in one loop, with the rule that chooses between them."""
