"""The measures: SI, SAI, NSI, TNS, spectra, log norms, h rho, Theorem 2, for NumPy and torch alike.

Jacobians live here too; figures of the measures are in `odelab.plot`."""
