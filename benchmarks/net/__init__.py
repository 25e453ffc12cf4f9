"""Networks through `integrate`, traces, spectra and training, beside plain torch, in one run.

`python -m benchmarks.net` measures what docs/speed.md shows of networks."""
