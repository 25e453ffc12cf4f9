"""Runs of complex states: what was computed of their real and imaginary parts, handed back as complex numbers."""

import dataclasses
from collections.abc import Callable
from typing import Any

from odelab.complex_states import change_on_parts, event_on_parts, joined
from odelab.runs.events import Event
from odelab.runs.trajectory import Trajectory


@dataclasses.dataclass
class ComplexInterpolant:
    """The complex state of a run at any time, from the dense output of its parts."""

    of_parts: Callable

    def __call__(self, t):
        return joined(self.of_parts(t))


@dataclasses.dataclass(eq=False, repr=False)
class ComplexTrajectory(Trajectory):
    """A run of complex states, as `odelab.solve` returns it for a complex `u0`.

    Everything is as in a `Trajectory`, and states and slopes are complex.

    parts    the `Trajectory` of the real parts and then the imaginary parts, which was computed; measures along a run
             and plots take it
    """

    parts: Any = None

    slope = property(lambda self: joined(self.parts.slope))
    sai = property(lambda self: self.parts.sai)
    h_rho = property(lambda self: self.parts.h_rho)
    limit = property(lambda self: self.parts.limit)
    message = property(lambda self: self.parts.message)
    fast_modes = property(lambda self: self.parts.fast_modes)

    def plot(self, kind=None, *, ax=None, **options):
        """As `Trajectory.plot`, of the real and imaginary parts."""
        return self.parts.plot(kind, ax=ax, **options)


def complex_run(parts: Trajectory) -> ComplexTrajectory:
    """A run of parts as one of complex states."""
    fields = {field.name: getattr(parts, field.name) for field in dataclasses.fields(parts)}
    fields |= {name: joined(fields[name]) for name in ("u", "step_u", "end_u")}
    fields["events"] = tuple(found._replace(u=joined(found.u)) for found in parts.events)
    if parts.interpolant is not None:
        fields["interpolant"] = ComplexInterpolant(parts.interpolant)
    return ComplexTrajectory(**fields, parts=parts)


def on_parts(event: Event) -> Event:
    """An event whose functions take complex states as one of their parts."""
    change = event.change and change_on_parts(event.change)
    return dataclasses.replace(event, function=event_on_parts(event.function), change=change)
