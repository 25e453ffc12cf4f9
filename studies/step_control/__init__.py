"""Table 4 of the first paper and lottery tickets: which inputs StepNet needs and on which blocks a controller is
worth its place.

`__main__.py` is the door; the plan of runs, their results, tables and findings each have a file."""
