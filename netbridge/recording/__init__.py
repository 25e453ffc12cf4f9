"""What is kept of the steps of a forward pass: norms, computed as each step passes by, and the record made of them.

Where steps are found is the business of `netbridge.tracing` and `netbridge.foreign`."""
