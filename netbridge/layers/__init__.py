"""Layers that networks are made of beside torch's own, and how a constant factor folds into a layer.

Whole networks are in `netbridge.model`, changes of networks in `netbridge.surgery`."""
