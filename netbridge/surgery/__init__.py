"""Changing networks: swapping step sizes, merging constants into weights, folding batch normalisation away.

Every function gives a new network and leaves the one it was given as it was."""
