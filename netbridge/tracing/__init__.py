"""Measuring a forward pass: NSI of every block of anybody's network, without keeping a feature map.

The index itself is `odelab.nsi`; Jacobians of blocks are in `netbridge.spectrum`, and how other
people's networks are watched is in `netbridge.foreign`."""
