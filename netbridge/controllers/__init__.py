"""Step-size controllers, one file each, headed by its paper; importing this package registers them in this order."""

# ruff: noqa: I001 (the order is that of nb.controllers())
from netbridge.controllers.base import ChannelController as ChannelController
from netbridge.controllers.base import Controller as Controller
from netbridge.controllers.constant import Constant as Constant
from netbridge.controllers.se import SE as SE
from netbridge.controllers.cbam import CBAM as CBAM
from netbridge.controllers.eca import ECA as ECA
from netbridge.controllers.srm import SRM as SRM
from netbridge.controllers.fca import FCA as FCA
from netbridge.controllers.ie import IE as IE
from netbridge.controllers.iebn import IEBN as IEBN
from netbridge.controllers.sge import SGE as SGE
from netbridge.controllers.spa import SPA as SPA
from netbridge.controllers.dia import DIA as DIA
from netbridge.controllers.sem import SEM as SEM
from netbridge.controllers.stepnet import StepNet as StepNet
from netbridge.controllers.asr import ASR as ASR
