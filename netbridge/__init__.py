"""netbridge: residual networks as trajectories of odelab's solver, attention as step-size control.

Imports no allocator settings, no data and no plotting; `nb.tune_allocator()` is yours to call.
"""

from netbridge.absorb import absorb as absorb
from netbridge.allocator import tune_allocator as tune_allocator
from netbridge.attention import SelfAttention as SelfAttention
from netbridge.block_spectrum import block_spectrum as block_spectrum
from netbridge.blocks import Block as Block
from netbridge.blocks import Branch as Branch
from netbridge.checkpoint import load as load
from netbridge.checkpoint import save as save
from netbridge.controllers import ChannelController as ChannelController
from netbridge.controllers import Controller as Controller
from netbridge.equal_error import compare_at_equal_error as compare_at_equal_error
from netbridge.fold import fold as fold
from netbridge.foreign import load_foreign as load_foreign
from netbridge.gated import Gated as Gated
from netbridge.learned import LearnedController as LearnedController
from netbridge.learning import learn_controller as learn_controller
from netbridge.merge import merge as merge
from netbridge.network import Network as Network
from netbridge.perturbation import perturbation_bound as perturbation_bound
from netbridge.record import Record as Record
from netbridge.resnet import resnet as resnet
from netbridge.spec import Spec as Spec
from netbridge.spec import asr as asr
from netbridge.spec import controller as controller
from netbridge.spec import controllers as controllers
from netbridge.stage import Stage as Stage
from netbridge.states import block_states as block_states
from netbridge.swap import swap as swap
from netbridge.trace import trace as trace
