"""What each page of the benchmarks of equations measures, section by section.

Not here: the contestants, the cases with their references, and the C that they are compared with, one folder above.
"""
