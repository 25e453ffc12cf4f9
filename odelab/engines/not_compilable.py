"""The error of a run that was to be compiled and cannot be."""

ASKED = "`engine='compiled'`"  # how a message begins; the warning of a run that nobody wanted compiled leaves it out


class NotCompilable(TypeError):
    """`engine="compiled"` was asked for, and numba cannot compile a function it was handed.

    The message says which function, on which line, why, and what to do instead. With `engine="auto"` the run goes on in
    plain Python, with one warning.

    >>> import odelab as ol
    >>> def decay(t, u, params):
    ...     return (-float(str(u[0])),)
    >>> try:
    ...     ol.solve(ol.Problem(decay, [1.0], (0.0, 1.0)), ol.DOPRI5, engine="compiled")
    ... except ol.NotCompilable as reason:
    ...     print(str(reason)[:45])
    `engine='compiled'` cannot compile decay: ...
    """
