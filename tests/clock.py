"""Processor time as a ratio, since a busy machine takes half as long again for whatever it does."""

import time

HANGS = 1500.0  # seconds after which a child process counts as one that never ends; says nothing about speed


def processor_seconds(call) -> float:
    """Of one call, over all threads of this process."""
    began = time.process_time()
    call()
    return time.process_time() - began


def cost(ours, yardstick, enough, seconds=processor_seconds, rounds=(3, 15)) -> float:
    """Processor time of `ours` in units of `yardstick`: the least of several rounds, in which both run in turns.

    enough   the ratio that is asked for; no more rounds are run once it is met
    seconds  of one call; another function for work in another process
    rounds   the least and the largest number of them
    """
    least, largest = rounds
    mine, theirs = [], []
    while len(mine) < least or (min(mine) > enough * min(theirs) and len(mine) < largest):
        mine.append(seconds(ours))
        theirs.append(seconds(yardstick))
    return min(mine) / min(theirs)
