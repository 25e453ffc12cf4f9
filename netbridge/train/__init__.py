"""Training to the bit: the loop, recipes as data, augmentation, resuming, several processes.

Data sets come from `netbridge.data`; which networks a study trains is said in `studies`.
"""

from netbridge.train.epochs import Diverged as Diverged
from netbridge.train.loop import Interrupted as Interrupted
from netbridge.train.loop import train as train
from netbridge.train.recipes import RECIPES as RECIPES
from netbridge.train.recipes import Recipe as Recipe
from netbridge.train.recipes import recipe as recipe
from netbridge.train.scoring import evaluate as evaluate
