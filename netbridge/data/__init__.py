"""Image data sets, in memory or on the disk: where they come from, how files are decoded, how they are checked.

Augmentation belongs to training and is in `netbridge.train`.
"""

from netbridge.data.datasets import DATASETS as DATASETS
from netbridge.data.datasets import Dataset as Dataset
from netbridge.data.datasets import DataUnavailable as DataUnavailable
from netbridge.data.datasets import dataset as dataset
from netbridge.data.datasets import default_root as default_root
from netbridge.data.datasets import load as load
from netbridge.data.datasets import name_of as name_of
from netbridge.data.folders import folder as folder
from netbridge.data.layouts import imagenet as imagenet
from netbridge.data.made_up_data import miniature as miniature
from netbridge.data.pictures import Index as Index
from netbridge.data.pictures import Pictures as Pictures
from netbridge.data.repacking import repack as repack
from netbridge.data.torch_datasets import from_torch as from_torch
