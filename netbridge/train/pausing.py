"""When a training stops, is written down or gives a sign of life within an epoch: by the clock, or by a signal.

Schedulers of clusters announce the end of a job's time by SIGTERM or SIGUSR1 (Slurm: `--signal`). The step is then
finished, the state is written, and the next start goes on from there.
"""

import contextlib
import signal
import threading
import time
from collections.abc import Iterator

from netbridge.train import distributed

SIGNALS = [getattr(signal, name) for name in ("SIGTERM", "SIGUSR1") if hasattr(signal, name)]  # Windows has no SIGUSR1
AGREE_EVERY = 10  # steps between two exchanges of the flags between processes, in which each waits for all


class Beats:
    """When the next sign of life is due.

    seconds   between two of them; None: never
    """

    def __init__(self, seconds: float | None):
        if seconds is not None and not seconds >= 0:
            raise ValueError(f"`heartbeat` must be a number of seconds from 0 on or None, got {seconds!r}.")
        self.seconds, self.last = seconds, time.monotonic()

    def due(self) -> bool:
        """Is one due now? The next one then comes so many seconds later."""
        now = time.monotonic()
        if self.seconds is None or now - self.last < self.seconds:
            return False
        self.last = now
        return True


class Pauses:
    """Whether the state is to be written and the training to stop, by the clock of process 0 and everybody's signals.

    minutes   between two states that are written down within an epoch; None: only at its end

    `must_stop` and `due` answer the same in every process.
    """

    def __init__(self, minutes: float | None):
        if minutes is not None and not minutes >= 0:
            raise ValueError(f"`checkpoint_minutes` must be a number from 0 on or None, got {minutes!r}.")
        self.minutes = minutes
        self.signal: int | None = None
        self.written = time.monotonic()

    @contextlib.contextmanager
    def listening(self) -> Iterator[None]:
        """A context manager: within it signals only set a flag, and only in the main thread of the program."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {number: signal.signal(number, self.hear) for number in SIGNALS}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, signal.SIG_DFL if handler is None else handler)  # None: not set from Python

    def hear(self, number, frame) -> None:
        self.signal = number

    def must_stop(self) -> bool:
        """Has any process been told to stop?"""
        return distributed.largest(float(self.signal is not None)) > 0

    def due(self, step: int) -> tuple[bool, bool]:
        """After a step within an epoch: (is the state to be written, is the training to stop)."""
        if distributed.world() > 1 and step % AGREE_EVERY:
            return False, False
        late = self.minutes is not None and time.monotonic() - self.written >= 60 * self.minutes
        wish = distributed.largest(2.0 if self.signal is not None else float(late and distributed.rank() == 0))
        if wish:
            self.written = time.monotonic()
        return wish > 0, wish > 1
