"""The diagonally implicit methods, each as its tableau."""

from odelab.methods.esdirk import EsdirkMethod

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
