"""Building what is published: four distributions of one version from this checkout. It is not installed itself; what
belongs to a user's installation is in `odelab`, `netbridge` and `studies`."""
