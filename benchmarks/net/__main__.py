"""netbridge beside hand-written networks: `python -m benchmarks.net [--quick] [--only SECTION ...] [--threads N]`.

Batch 128 of 32 x 32 images, channels-last, inference, allocator tuned for all contestants alike. With one thread times
are processor time, so that other work on the machine hardly counts; with more they are wall time.
"""

import dataclasses
import sys

import torch

import netbridge as nb
from benchmarks.harness import command
from benchmarks.net import forward, spectra, trace, training
from benchmarks.net.networks import Size

SECTIONS: command.Sections = {**forward.SECTIONS, **trace.SECTIONS, **training.SECTIONS, **spectra.SECTIONS}


def main(arguments=None) -> int:
    parser = command.parser("net", __doc__, SECTIONS)
    parser.add_argument("--threads", type=int, default=1, help="torch's threads (1)")
    options = parser.parse_args(arguments)
    torch.set_num_threads(options.threads)
    tuned = nb.tune_allocator()
    size = Size(threads=options.threads, clock="processor" if options.threads == 1 else "wall")
    if options.quick:
        size = dataclasses.replace(size, depths=(20,), batch=32, rounds=5, seconds=10.0, quick=True)
    about = f"{options.threads} threads, allocator {'tuned' if tuned else 'as it comes'}"
    return command.run("networks", options, SECTIONS, size, about)


if __name__ == "__main__":
    sys.exit(main())
