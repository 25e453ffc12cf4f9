"""Pleiades: seven bodies of masses 1 to 7 in the plane, with close encounters."""

from odelab import maths
from odelab.problem import Problem
from odelab.problems.bodies.gravity import gravity_invariants, gravity_jacobian
from odelab.problems.common.reference_values import references

MASSES = (1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0)
START = (
    *(3.0, 3.0, -1.0, -3.0, 2.0, -2.0, 2.0),  # x
    *(3.0, -3.0, 2.0, 0.0, 0.0, -4.0, 4.0),  # y
    *(0.0, 0.0, 0.0, 0.0, 0.0, 1.75, -1.5),  # x'
    *(0.0, 0.0, 0.0, -1.25, 1.0, 0.0, 0.0),  # y'
)


def pleiades_rhs(t, u, params):
    # written out because compiled lanes want straight code; a and b are differences of x and y, w is 1 / distance^3
    x1, x2, x3, x4, x5, x6, x7 = u[0:7]
    y1, y2, y3, y4, y5, y6, y7 = u[7:14]
    p1, p2, p3, p4, p5, p6, p7 = u[14:21]
    q1, q2, q3, q4, q5, q6, q7 = u[21:28]
    m1, m2, m3, m4, m5, m6, m7 = params
    a12, b12 = x2 - x1, y2 - y1
    s12 = a12 * a12 + b12 * b12
    w12 = 1.0 / (s12 * maths.sqrt(s12))
    a13, b13 = x3 - x1, y3 - y1
    s13 = a13 * a13 + b13 * b13
    w13 = 1.0 / (s13 * maths.sqrt(s13))
    a14, b14 = x4 - x1, y4 - y1
    s14 = a14 * a14 + b14 * b14
    w14 = 1.0 / (s14 * maths.sqrt(s14))
    a15, b15 = x5 - x1, y5 - y1
    s15 = a15 * a15 + b15 * b15
    w15 = 1.0 / (s15 * maths.sqrt(s15))
    a16, b16 = x6 - x1, y6 - y1
    s16 = a16 * a16 + b16 * b16
    w16 = 1.0 / (s16 * maths.sqrt(s16))
    a17, b17 = x7 - x1, y7 - y1
    s17 = a17 * a17 + b17 * b17
    w17 = 1.0 / (s17 * maths.sqrt(s17))
    a23, b23 = x3 - x2, y3 - y2
    s23 = a23 * a23 + b23 * b23
    w23 = 1.0 / (s23 * maths.sqrt(s23))
    a24, b24 = x4 - x2, y4 - y2
    s24 = a24 * a24 + b24 * b24
    w24 = 1.0 / (s24 * maths.sqrt(s24))
    a25, b25 = x5 - x2, y5 - y2
    s25 = a25 * a25 + b25 * b25
    w25 = 1.0 / (s25 * maths.sqrt(s25))
    a26, b26 = x6 - x2, y6 - y2
    s26 = a26 * a26 + b26 * b26
    w26 = 1.0 / (s26 * maths.sqrt(s26))
    a27, b27 = x7 - x2, y7 - y2
    s27 = a27 * a27 + b27 * b27
    w27 = 1.0 / (s27 * maths.sqrt(s27))
    a34, b34 = x4 - x3, y4 - y3
    s34 = a34 * a34 + b34 * b34
    w34 = 1.0 / (s34 * maths.sqrt(s34))
    a35, b35 = x5 - x3, y5 - y3
    s35 = a35 * a35 + b35 * b35
    w35 = 1.0 / (s35 * maths.sqrt(s35))
    a36, b36 = x6 - x3, y6 - y3
    s36 = a36 * a36 + b36 * b36
    w36 = 1.0 / (s36 * maths.sqrt(s36))
    a37, b37 = x7 - x3, y7 - y3
    s37 = a37 * a37 + b37 * b37
    w37 = 1.0 / (s37 * maths.sqrt(s37))
    a45, b45 = x5 - x4, y5 - y4
    s45 = a45 * a45 + b45 * b45
    w45 = 1.0 / (s45 * maths.sqrt(s45))
    a46, b46 = x6 - x4, y6 - y4
    s46 = a46 * a46 + b46 * b46
    w46 = 1.0 / (s46 * maths.sqrt(s46))
    a47, b47 = x7 - x4, y7 - y4
    s47 = a47 * a47 + b47 * b47
    w47 = 1.0 / (s47 * maths.sqrt(s47))
    a56, b56 = x6 - x5, y6 - y5
    s56 = a56 * a56 + b56 * b56
    w56 = 1.0 / (s56 * maths.sqrt(s56))
    a57, b57 = x7 - x5, y7 - y5
    s57 = a57 * a57 + b57 * b57
    w57 = 1.0 / (s57 * maths.sqrt(s57))
    a67, b67 = x7 - x6, y7 - y6
    s67 = a67 * a67 + b67 * b67
    w67 = 1.0 / (s67 * maths.sqrt(s67))
    return (
        p1,
        p2,
        p3,
        p4,
        p5,
        p6,
        p7,
        q1,
        q2,
        q3,
        q4,
        q5,
        q6,
        q7,
        m2 * w12 * a12 + m3 * w13 * a13 + m4 * w14 * a14 + m5 * w15 * a15 + m6 * w16 * a16 + m7 * w17 * a17,
        -m1 * w12 * a12 + m3 * w23 * a23 + m4 * w24 * a24 + m5 * w25 * a25 + m6 * w26 * a26 + m7 * w27 * a27,
        -m1 * w13 * a13 - m2 * w23 * a23 + m4 * w34 * a34 + m5 * w35 * a35 + m6 * w36 * a36 + m7 * w37 * a37,
        -m1 * w14 * a14 - m2 * w24 * a24 - m3 * w34 * a34 + m5 * w45 * a45 + m6 * w46 * a46 + m7 * w47 * a47,
        -m1 * w15 * a15 - m2 * w25 * a25 - m3 * w35 * a35 - m4 * w45 * a45 + m6 * w56 * a56 + m7 * w57 * a57,
        -m1 * w16 * a16 - m2 * w26 * a26 - m3 * w36 * a36 - m4 * w46 * a46 - m5 * w56 * a56 + m7 * w67 * a67,
        -m1 * w17 * a17 - m2 * w27 * a27 - m3 * w37 * a37 - m4 * w47 * a47 - m5 * w57 * a57 - m6 * w67 * a67,
        m2 * w12 * b12 + m3 * w13 * b13 + m4 * w14 * b14 + m5 * w15 * b15 + m6 * w16 * b16 + m7 * w17 * b17,
        -m1 * w12 * b12 + m3 * w23 * b23 + m4 * w24 * b24 + m5 * w25 * b25 + m6 * w26 * b26 + m7 * w27 * b27,
        -m1 * w13 * b13 - m2 * w23 * b23 + m4 * w34 * b34 + m5 * w35 * b35 + m6 * w36 * b36 + m7 * w37 * b37,
        -m1 * w14 * b14 - m2 * w24 * b24 - m3 * w34 * b34 + m5 * w45 * b45 + m6 * w46 * b46 + m7 * w47 * b47,
        -m1 * w15 * b15 - m2 * w25 * b25 - m3 * w35 * b35 - m4 * w45 * b45 + m6 * w56 * b56 + m7 * w57 * b57,
        -m1 * w16 * b16 - m2 * w26 * b26 - m3 * w36 * b36 - m4 * w46 * b46 - m5 * w56 * b56 + m7 * w67 * b67,
        -m1 * w17 * b17 - m2 * w27 * b27 - m3 * w37 * b37 - m4 * w47 * b47 - m5 * w57 * b57 - m6 * w67 * b67,
    )


def pleiades_jacobian(t, u, params):
    return gravity_jacobian(u, params)


def pleiades_parts(params):
    return params, 0.0


def pleiades() -> Problem:
    """Seven bodies in the plane with masses 1 to 7, which are the parameters; several close encounters.

    Returns a `Problem` on (0, 3), state (x_1..x_7, y_1..y_7, x'_1..x'_7, y'_1..y'_7). No parameters to choose.

    >>> import odelab as ol
    >>> ol.problems.pleiades().size
    28
    """
    return Problem(
        pleiades_rhs,
        START,
        (0.0, 3.0),
        MASSES,
        jacobian=pleiades_jacobian,
        invariants=gravity_invariants(pleiades_parts),
        references=references("pleiades"),
        name="pleiades",
        about="E. Hairer, S. P. Norsett and G. Wanner, Solving ODEs I, section II.10 (PLEI), and the IVP test set: "
        "bodies 3 and 5 pass at a distance of 0.056 at t = 1.63, 1 and 7 at 0.034 at t = 1.68.",
    )
