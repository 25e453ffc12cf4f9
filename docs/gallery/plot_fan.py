"""
A thousand uncertain runs
=========================

Quantiles of a chemical species over runs whose rates are drawn at random.
"""

import numpy as np

import odelab as ol

rates = np.array([0.04, 3e7, 1e4]) * np.random.default_rng(0).uniform(0.5, 1.5, (1000, 3))
runs = ol.ensemble(ol.problems.robertson(), ol.RODAS4, params=rates, t_eval=np.linspace(0.0, 40.0, 81))
figure = runs.plot("fan")
