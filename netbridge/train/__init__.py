"""Training to the bit: the loop, recipes as data, augmentation, resuming, several processes.

Data sets come from `netbridge.data`; which networks a study trains is said in `studies`.
"""

from netbridge.train.loop import Diverged as Diverged
from netbridge.train.loop import train as train
