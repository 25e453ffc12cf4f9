"""netbridge: residual networks as trajectories of odelab's solver, attention as step-size control.

A residual block u + h f(u) is one step of Euler's method; whatever multiplies f, a constant, a gate of channels, an
attention map, is the step size h.

    networks     resnet, mobilenet, vit, Network, Stage, Block, Branch; vgg, repvgg, shufflenet, which have no steps,
                 Plain, Sum; pretrained (the shipped ones), fetch_pretrained, save, load, load_foreign
    step sizes   controllers, controller, asr, Spec; Controller and ChannelController to derive one's own from; Gated,
                 SelfAttention for modules of any kind
    surgery      swap, merge, absorb, fold: another network from a network, the given one stays as it is; places,
                 insert: step sizes for networks of other people; add_noise, NoisyNorm; altered: a step for a while
                 without some of its slope
    gates        gates (Gates): the step sizes of every block for every image, and what lives in their heads
    stiffness    trace (Record, Records, Trajectories); explain (Explanation): what it takes for a step; block_states;
                 nsi_with_gradients and stiffness_term: TNS in a loss; Monitor (Reading): numbers after every epoch of
                 any training loop; block_spectrum, block_operator, slice_spectrum, block_survey, step_error,
                 exact_flow, perturbation_bound; block_time_scales, implicit_flow, steps_at_equal_error: is a block
                 stiff? stiff_channels: and which of its channels are?
    doctor       diagnose (NetworkDiagnosis): which blocks are stiff, by which reading, and what the step sizes do
    trajectories state_grams, cka: how alike those of two networks are; attention_values (AttentionValues): a
                 transformer's attention as a step size
    equations    solve_with_gradients, ensemble_with_gradients: runs of odelab through which torch's gradients pass
    machine      tune_allocator

Images, training and detection are packages of their own: `from netbridge import data, train, detect`. They are not
imported here, and no allocator setting is made unless `nb.tune_allocator()` is called.
"""

import importlib.util as _util

if _missing := [_name for _name in ("torch", "safetensors") if _util.find_spec(_name) is None]:
    raise ModuleNotFoundError(f"netbridge needs {' and '.join(_missing)}: pip install 'odelab[net]'", name=_missing[0])

from netbridge.allocator import tune_allocator as tune_allocator
from netbridge.checkpoint import load as load
from netbridge.checkpoint import save as save
from netbridge.doctor.examination import NetworkDiagnosis as NetworkDiagnosis
from netbridge.doctor.examination import diagnose as diagnose
from netbridge.equations import ensemble_with_gradients as ensemble_with_gradients
from netbridge.equations import solve_with_gradients as solve_with_gradients
from netbridge.foreign_weights import load_foreign as load_foreign
from netbridge.layers.absorb import absorb as absorb
from netbridge.layers.own import SelfAttention as SelfAttention
from netbridge.layers.own import Sum as Sum
from netbridge.model.block import Block as Block
from netbridge.model.block import Branch as Branch
from netbridge.model.mobile import mobilenet as mobilenet
from netbridge.model.mobile import shufflenet as shufflenet
from netbridge.model.network import Network as Network
from netbridge.model.network import Stage as Stage
from netbridge.model.plain import Plain as Plain
from netbridge.model.resnet import resnet as resnet
from netbridge.model.vgg import repvgg as repvgg
from netbridge.model.vgg import vgg as vgg
from netbridge.model.vit import vit as vit
from netbridge.monitor import Monitor as Monitor
from netbridge.monitor import Reading as Reading
from netbridge.pretrained_networks import fetch_pretrained as fetch_pretrained
from netbridge.pretrained_networks import pretrained as pretrained
from netbridge.recording.record import Record as Record
from netbridge.recording.record import Records as Records
from netbridge.spectrum.block_spectrum import block_operator as block_operator
from netbridge.spectrum.block_spectrum import block_spectrum as block_spectrum
from netbridge.spectrum.implicit_steps import implicit_flow as implicit_flow
from netbridge.spectrum.implicit_steps import steps_at_equal_error as steps_at_equal_error
from netbridge.spectrum.perturbation import perturbation_bound as perturbation_bound
from netbridge.spectrum.slices import slice_spectrum as slice_spectrum
from netbridge.spectrum.step_error import exact_flow as exact_flow
from netbridge.spectrum.step_error import step_error as step_error
from netbridge.spectrum.stiff_channels import stiff_channels as stiff_channels
from netbridge.spectrum.survey import block_survey as block_survey
from netbridge.spectrum.time_scales import block_time_scales as block_time_scales
from netbridge.step_sizes import ChannelController as ChannelController
from netbridge.step_sizes import Controller as Controller
from netbridge.step_sizes.gated import Gated as Gated
from netbridge.step_sizes.spec import Spec as Spec
from netbridge.step_sizes.spec import asr as asr
from netbridge.step_sizes.spec import controller as controller
from netbridge.step_sizes.spec import controllers as controllers
from netbridge.surgery.alteration import altered as altered
from netbridge.surgery.fold import fold as fold
from netbridge.surgery.insert import insert as insert
from netbridge.surgery.insert import places as places
from netbridge.surgery.merge import merge as merge
from netbridge.surgery.noise import NoisyNorm as NoisyNorm
from netbridge.surgery.noise import add_noise as add_noise
from netbridge.surgery.swap import swap as swap
from netbridge.tracing.attention import AttentionValues as AttentionValues
from netbridge.tracing.attention import attention_values as attention_values
from netbridge.tracing.differentiable import nsi_with_gradients as nsi_with_gradients
from netbridge.tracing.differentiable import stiffness_term as stiffness_term
from netbridge.tracing.explain import Explanation as Explanation
from netbridge.tracing.explain import explain as explain
from netbridge.tracing.gates import Gates as Gates
from netbridge.tracing.gates import gates as gates
from netbridge.tracing.similarity import cka as cka
from netbridge.tracing.similarity import state_grams as state_grams
from netbridge.tracing.states import block_states as block_states
from netbridge.tracing.trace import trace as trace
from netbridge.tracing.trajectories import Trajectories as Trajectories
from odelab import __version__ as __version__


def __getattr__(name: str):
    """`nb.data`, `nb.train`, `nb.detect` and `nb.recipes`, imported when they are first asked for."""
    import importlib

    rooms = {name: f"netbridge.{name}" for name in ("data", "train", "detect")} | {"recipes": "netbridge.train.recipes"}
    if name not in rooms:
        raise AttributeError(f"module 'netbridge' has no attribute {name!r}")
    return importlib.import_module(rooms[name])
