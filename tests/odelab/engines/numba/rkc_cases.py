"""What the tests of RKC2 share: four parabolic problems, and one whose eigenvalues are wherever one likes."""

import odelab as ol

METHOD = ol.RKC2
PARABOLIC = {
    "heat_1d": ol.problems.heat_1d(),
    "heat_1d_wave": ol.problems.heat_1d_wave(),
    "brusselator_1d": ol.problems.brusselator_1d(),
    "allen_cahn_1d": ol.problems.allen_cahn_1d(n=100),
}


def spiral(decay, frequency):
    """Towards the unit circle, with eigenvalues -decay +- i frequency: smooth, whatever they are."""

    def rhs(t, u, params):
        x, y = u
        decay, frequency = params
        cosine, sine = ol.maths.cos(t), ol.maths.sin(t)
        x, y = x - cosine, y - sine
        return (-decay * x - frequency * y - sine, frequency * x - decay * y + cosine)

    return ol.Problem(rhs, [1.0, 0.0], (0.0, 1.0), (decay, frequency))
