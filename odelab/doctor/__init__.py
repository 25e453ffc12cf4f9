"""The doctor: is a problem stiff at a tolerance, where and in what, what does that cost, and which method to take.

Measures are in `odelab.stiffness`, and experiments with windows of a solution in `odelab.experiments`; what is
here asks them in the right order, and says in words and on a page what they answer."""
