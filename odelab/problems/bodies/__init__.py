"""Problems of mechanics: point masses under Newton's law, a rigid body, a pendulum on a spring.

Oscillators without mass, such as van der Pol's, are with the other problems."""
