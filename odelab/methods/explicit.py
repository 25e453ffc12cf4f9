"""The explicit methods, each as its tableau."""

from odelab.methods.dop853 import DOP853
from odelab.methods.interface import BY_NAME
from odelab.methods.tableau import Method

EULER = Method("EULER", order=1, a=[[]], b=[1], about="Euler 1768")

HEUN = Method(
    "HEUN", order=2, a=[[], [1]], b=["1/2", "1/2"], b_low=[1, 0], order_low=1, about="Heun 1900; Euler embedded"
)

MIDPOINT = Method(
    "MIDPOINT", order=2, a=[[], ["1/2"]], b=[0, 1], b_low=[1, 0], order_low=1, about="Runge 1895; Euler embedded"
)

RK4 = Method(
    "RK4",
    order=4,
    a=[[], ["1/2"], [0, "1/2"], [0, 0, 1]],
    b=["1/6", "1/3", "1/3", "1/6"],
    about="Kutta 1901",
)

BS32 = Method(
    "BS32",
    order=3,
    a=[[], ["1/2"], [0, "3/4"], ["2/9", "1/3", "4/9"]],
    b=["2/9", "1/3", "4/9", 0],
    b_low=["7/24", "1/4", "1/3", "1/8"],
    order_low=2,
    about="Bogacki and Shampine, Appl. Math. Lett. 2 (1989) 321-325",
)

RKF45 = Method(
    "RKF45",
    order=5,
    a=[
        [],
        ["1/4"],
        ["3/32", "9/32"],
        ["1932/2197", "-7200/2197", "7296/2197"],
        ["439/216", -8, "3680/513", "-845/4104"],
        ["-8/27", 2, "-3544/2565", "1859/4104", "-11/40"],
    ],
    b=["16/135", 0, "6656/12825", "28561/56430", "-9/50", "2/55"],
    b_low=["25/216", 0, "1408/2565", "2197/4104", "-1/5", 0],
    order_low=4,
    # Order 4, from the order conditions; one weight is free and minimises the integrated order-5 defects.
    dense=["-156235/176328", 0, "409088/110205", "-9119747/1939608", "18618/12245", "-57774/26939", "5/2"],
    about="Fehlberg, NASA TR R-315 (1969), carried on with its fifth-order result",
)

DOPRI5 = Method(
    "DOPRI5",
    order=5,
    a=[
        [],
        ["1/5"],
        ["3/40", "9/40"],
        ["44/45", "-56/15", "32/9"],
        ["19372/6561", "-25360/2187", "64448/6561", "-212/729"],
        ["9017/3168", "-355/33", "46732/5247", "49/176", "-5103/18656"],
        ["35/384", 0, "500/1113", "125/192", "-2187/6784", "11/84"],
    ],
    b=["35/384", 0, "500/1113", "125/192", "-2187/6784", "11/84", 0],
    b_low=["5179/57600", 0, "7571/16695", "393/640", "-92097/339200", "187/2100", "1/40"],
    order_low=4,
    # Order 4: Shampine 1986, as in Hairer, Nørsett and Wanner II.6.
    dense=[
        "-12715105075/11282082432",
        0,
        "87487479700/32700410799",
        "-10690763975/1880347072",
        "701980252875/199316789632",
        "-1453857185/822651844",
        "69997945/29380423",
    ],
    about="Dormand and Prince, J. Comput. Appl. Math. 6 (1980) 19-26",
)

METHODS = {m.name: m for m in (EULER, HEUN, MIDPOINT, RK4, BS32, RKF45, DOPRI5, DOP853)}
BY_NAME.update(METHODS)
