"""What studies share: their records, pages, statistics, figures, and the networks and images they look at.

The studies themselves are in their own files and packages beside this one; formulas are in `odelab` and `netbridge`."""
