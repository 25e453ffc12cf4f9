"""The documentation site: `python -m docs.site`, or `make docs`, builds it offline; warnings are errors.

Pages are those of `docs/`, as they are; tutorials are run, and get their figures and a notebook; the reference is made
of docstrings."""
