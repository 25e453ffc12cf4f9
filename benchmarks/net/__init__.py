"""Networks through `integrate`, traces, spectra and training, beside plain torch, in one run.

`python -m benchmarks.net` prints the table of docs/speed.md."""
