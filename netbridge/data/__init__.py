"""Image data sets, whole in memory: where they come from, how their files are decoded, how they are checked.

Augmentation belongs to training and is in `netbridge.train`.
"""

from netbridge.data.datasets import DATASETS as DATASETS
from netbridge.data.datasets import Dataset as Dataset
from netbridge.data.datasets import DataUnavailable as DataUnavailable
from netbridge.data.datasets import dataset as dataset
from netbridge.data.datasets import default_root as default_root
from netbridge.data.datasets import load as load
from netbridge.data.folders import folder as folder
