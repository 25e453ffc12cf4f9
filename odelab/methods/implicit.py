"""The methods with a Jacobian: the linearly implicit ones, each as its transformed coefficients, and the diagonally
implicit ones, each as its tableau.

All are L-stable. The estimate of ROS2 does not vanish on very stiff components, of which it is 2.41, and must not: its
error on a stiff component that follows a driven one does not vanish either. Multiplied by the inverse of the matrix, as
is often advised, it sees nothing of that error (u' = -1e6 (u - cos t): 13 steps to t = 10, and an error of 4 at a
tolerance of 1e-3). `C` is as published, for the matrix I / (h gamma) - J; see `odelab.methods.rosenbrock`.
"""

import math

from odelab.methods.esdirk import EsdirkMethod
from odelab.methods.interface import BY_NAME
from odelab.methods.rosenbrock import RosenbrockMethod

GAMMA = 1.0 - 1.0 / math.sqrt(2.0)

ROS2 = RosenbrockMethod(
    "ROS2",
    order=2,
    gamma=GAMMA,
    a=[[], [1.0 / GAMMA]],
    C=[[], [-2.0 / GAMMA]],
    m=[1.5 / GAMMA, 0.5 / GAMMA],
    e=[0.5 / GAMMA, 0.5 / GAMMA],
    order_low=1,
    about="Verwer, Spee, Blom and Hundsdorfer, SIAM J. Sci. Comput. 20 (1999) 1456-1480, with gamma = 1 - 1/sqrt(2)",
)

LAST_BUT_ONE = [1.221224509226641, 6.019134481288629, 12.53708332932087, -0.6878860361058950]
RODAS4 = RosenbrockMethod(
    "RODAS4",
    order=4,
    gamma=0.25,
    a=[
        [],
        [1.544],
        [0.9466785280815826, 0.2557011698983284],
        [3.314825187068521, 2.896124015972201, 0.9986419139977817],
        LAST_BUT_ONE,
        [*LAST_BUT_ONE, 1.0],
    ],
    C=[
        [],
        [-5.6688],
        [-2.430093356833875, -0.2063599157091915],
        [-0.1073529058151375, -9.594562251023355, -20.47028614809616],
        [7.496443313967647, -10.24680431464352, -33.99990352819905, 11.70890893206160],
        [8.083246795921522, -7.981132988064893, -31.52159432874371, 16.31930543123136, -6.058818238834054],
    ],
    m=[*LAST_BUT_ONE, 1.0, 1.0],
    e=[0.0, 0.0, 0.0, 0.0, 0.0, 1.0],
    order_low=3,
    dense=[
        [10.12623508344586, -7.487995877610167, -34.80091861555747, -7.992771707568823, 1.025137723295662, 0.0],
        [-0.6762803392801253, 6.087714651680015, 16.43084320892478, 24.76722511418386, -6.594389125716872, 0.0],
    ],
    stiffly_accurate=True,
    about="RODAS of Hairer and Wanner, Solving Ordinary Differential Equations II, 2nd ed. (1996), IV.10",
)

STAGE_SIX = [-7.502846399306121, 2.561846144803919, -11.627539656261098, -0.18268767659942256, 0.030198172008377946]
RODAS5P = RosenbrockMethod(
    "RODAS5P",
    order=5,
    gamma=0.21193756319429014,
    a=[
        [],
        [3.0],
        [2.849394379747939, 0.45842242204463923],
        [-6.954028509809101, 2.489845061869568, -10.358996098473584],
        [2.8029986275628964, 0.5072464736228206, -0.3988312541770524, -0.04721187230404641],
        STAGE_SIX,
        [*STAGE_SIX, 1.0],
        [*STAGE_SIX, 1.0, 1.0],
    ],
    C=[
        [],
        [-14.155112264123755],
        [-17.97296035885952, -2.859693295451294],
        [147.12150275711716, -1.41221402718213, 71.68940251302358],
        [165.43517024871676, -0.4592823456491126, 42.90938336958603, -5.961986721573306],
        [24.854864614690072, -3.0009227002832186, 47.4931110020768, 5.5814197821558125, -0.6610691825249471],
        [
            30.91273214028599, -3.1208243349937974, 77.79954646070892, 34.28646028294783, -19.097331116725623,
            -28.087943162872662,
        ],
        [
            37.80277123390563, -3.2571969029072276, 112.26918849496327, 66.9347231244047, -40.06618937091002,
            -54.66780262877968, -9.48861652309627,
        ],
    ],
    m=[*STAGE_SIX, 1.0, 1.0, 1.0],
    e=[0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0],
    order_low=4,
    dense=[
        [
            25.948786856663858, -2.5579724845846235, 10.433815404888879, -2.3679251022685204, 0.524948541321073,
            1.1241088310450404, 0.4272876194431874, -0.17202221070155493,
        ],
        [
            -9.91568850695171, -0.9689944594115154, 3.0438037242978453, -24.495224566215796, 20.176138334709044,
            15.98066361424651, -6.789040303419874, -6.710236069923372,
        ],
        [
            11.419903575922262, 2.8879645146136994, 72.92137995996029, 80.12511834622643, -52.072871366152654,
            -59.78993625266729, -0.15582684282751913, 4.883087185713722,
        ],
    ],
    stiffly_accurate=True,
    about="Steinebach, BIT Numerical Mathematics 63 (2023) 27",
)  # fmt: skip

ROSENBROCK = {method.name: method for method in (ROS2, RODAS4, RODAS5P)}

ESDIRK43 = EsdirkMethod(
    "ESDIRK43",
    order=4,
    gamma="1/4",
    a=[
        [],
        ["1/4"],
        ["8611/62500", "-1743/31250"],
        ["5012029/34652500", "-654441/2922500", "174375/388108"],
        ["15267082809/155376265600", "-71443401/120774400", "730878875/902184768", "2285395/8070912"],
        ["82889/524892", 0, "15625/83664", "69875/102672", "-2260/8211"],
    ],
    b_low=[
        "4586570599/29645900160", 0, "178811875/945068544", "814220225/1159782912", "-3700637/11593932", "61727/225920",
    ],
    order_low=3,
    about="the implicit part of ARK4(3)6L[2]SA, Kennedy and Carpenter, Appl. Numer. Math. 44 (2003) 139-181",
)  # fmt: skip

ESDIRK = {method.name: method for method in (ESDIRK43,)}
BY_NAME.update(ROSENBROCK)
BY_NAME.update(ESDIRK)
