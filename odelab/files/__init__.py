"""Files: written whole or not at all, and results of `odelab` in them without pickles.

What `netbridge` keeps, networks and records of traces, it writes itself, with `replacing` from here."""

from odelab.files.atomic import replacing as replacing
from odelab.files.atomic import sweep as sweep
