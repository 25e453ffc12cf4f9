"""What a step is, as data: tableaux that check their own order conditions, their continuous extensions, RKC's
Chebyshev steps.

Nothing here runs anything: the arithmetic of a step is in `odelab.core`, the loop around it in `odelab.engines`."""
