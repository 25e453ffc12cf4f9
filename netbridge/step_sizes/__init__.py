"""Step-size controllers, one file each, headed by its paper; importing this package registers them in this order.

The networks whose blocks they act in are in `netbridge.model`.
"""

# ruff: noqa: I001 (the order is that of nb.controllers())
from netbridge.step_sizes.base import ChannelController as ChannelController
from netbridge.step_sizes.base import Controller as Controller
from netbridge.step_sizes.constant import Constant as Constant
from netbridge.step_sizes.se import SE as SE
from netbridge.step_sizes.cbam import CBAM as CBAM
from netbridge.step_sizes.eca import ECA as ECA
from netbridge.step_sizes.srm import SRM as SRM
from netbridge.step_sizes.fca import FCA as FCA
from netbridge.step_sizes.ie import IE as IE
from netbridge.step_sizes.iebn import IEBN as IEBN
from netbridge.step_sizes.sge import SGE as SGE
from netbridge.step_sizes.spa import SPA as SPA
from netbridge.step_sizes.dia import DIA as DIA
from netbridge.step_sizes.sem import SEM as SEM
from netbridge.step_sizes.stepnet import StepNet as StepNet
from netbridge.step_sizes.bias import Bias as Bias
from netbridge.step_sizes.asr import ASR as ASR
