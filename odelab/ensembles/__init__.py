"""The workings of `odelab.ensemble`: lanes on threads, pieces on executors, or one run after the other."""
