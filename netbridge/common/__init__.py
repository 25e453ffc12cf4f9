"""What every room uses that handles somebody's network: batches, devices, nested tensors, and a network left as it was.

Nothing here knows what a step is."""
