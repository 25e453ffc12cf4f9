"""The training loop, for one process or many: it can be killed at any moment and goes on from its last epoch."""

import dataclasses
import json
from collections.abc import Callable
from typing import TypeVar

import torch
from torch import nn

from netbridge.data.datasets import Dataset
from netbridge.data.pictures import Pictures
from netbridge.progress import progress_bar
from netbridge.train import distributed, recipes
from netbridge.train.epochs import Diverged, Training, check_at_least_zero
from netbridge.train.journal import Journal
from netbridge.train.pausing import Beats, Pauses
from netbridge.train.recipes import Recipe

Module = TypeVar("Module", bound=nn.Module)


class Interrupted(KeyboardInterrupt):
    """Ctrl-C, SIGTERM or SIGUSR1 stopped a training; the text says what is kept and how to go on.

    `code` is what a program should end with: 130 after Ctrl-C, 0 where a signal asked for an end and all is kept.

    >>> import netbridge as nb
    >>> from netbridge import data, train
    >>> def press_ctrl_c(net, record):
    ...     raise KeyboardInterrupt
    >>> digits, net = data.load("digits"), nb.resnet(8, widths=(4, 8, 8))
    >>> try:
    ...     net = train.train(net, digits, "digits", quiet=True, device="cpu", on_epoch=press_ctrl_c)
    ... except train.Interrupted as stop:
    ...     print(stop)
    stopped in epoch 1 of 16. Nothing is kept, because no `path` was given.
    """

    code = 130


def train(
    net: Module,
    data: Dataset | Pictures,
    recipe: Recipe | str,
    seed: int = 0,
    path=None,
    about: dict | None = None,
    device=None,
    dtype: torch.dtype = torch.float32,
    parts: int | None = None,
    compiled: bool = False,
    workers: int = 0,
    stop_after: int | None = None,
    quiet: bool = False,
    checkpoint_minutes: float | None = None,
    heartbeat: float | None = None,
    on_epoch: Callable[[nn.Module, dict], dict | None] | None = None,
    extend: bool = False,
) -> Module:
    """Train a network in place by a recipe, so that killing and restarting it changes no bit of the result.

    net         any module that maps images (N, C, H, W) to logits (N, classes), of netbridge or not
    data        a `netbridge.data.Dataset` (`data.load`, `data.folder`, or `data.dataset` for tensors of your own), or
                `netbridge.data.Pictures`, which stay on the disk (`data.imagenet`)
    recipe      a `Recipe`, or the name of one in `recipes.RECIPES`
    seed        of the order of the images, their shifts and flips, and of layers that draw; weights are drawn before,
                so call `torch.manual_seed` ahead of building `net` where they shall be the same again
    path        file for the network, NAME.safetensors, which `nb.load` reads; beside it NAME.jsonl receives the log,
                and while training lasts NAME.resume what the next start needs. If `path` holds this run, it is
                continued, or loaded if it is finished; a file of another run is refused. None (the default): nothing is
                written
    about       plain values to keep in the file and in `net.about`, beside what is recorded anyway
    device      default: the first GPU, else the CPU
    dtype       of weights and images; recipes with bfloat16=True compute in bfloat16 where this is float32
    parts       a batch is normalised in so many equal parts, of which the processes take turns: any number of processes
                up to `parts` computes the same but for rounding, and each needs the memory of one part only. Default:
                as many parts as there are processes
    compiled    pass the network through torch.compile
    workers     processes that decode pictures from the disk (default 0: this one does); changes no bit of the result
    stop_after  end this session after so many epochs in all; the next call with the same `path` goes on
    quiet       print nothing
    checkpoint_minutes  write the state down within an epoch, too, when so many minutes have passed; default: only at
                its end, and on SIGTERM or SIGUSR1, which end the session after the step
    heartbeat   print a line with epoch, step and loss when so many seconds have passed since the last one, by which the
                log of a long run shows that it is alive; default: only the line of each epoch
    on_epoch    called as on_epoch(net, record) after every epoch, in evaluation mode; record has epoch, loss,
                train_accuracy, rate, size, seconds, and test_accuracy, test_errors, test_loss where it was tested. What
                it returns, None or a dict of plain values under other names, joins the record in the log. Of several
                processes the first calls it, and it may only look at the network. If it has `state_dict` and
                `load_state_dict`, as torch's modules have, the tensors that it remembers are kept with the state of
                the training, and given back when that goes on
    extend      whether a network in `path` that is finished after fewer epochs of the same run is trained on. Its
                further epochs have the learning rates (and image sizes) that they have in a training of all epochs:
                by schedule "steps" they go on as if it had never ended; "triangle" and "cosine" have fallen to 0 and
                rise again to where the longer schedule is. Momentum and averages begin anew. So it is not the network
                of a training from the start, and `run` says after which epochs it was extended. Default: False, and
                such a network is refused

    Returns `net` in evaluation mode, with `net.normalisation` (mean, std) and, when the recipe is through, `net.about`:
    controller, depth, width, seed, recipe, dataset, test_accuracy (a share of 1), test_errors, test_loss, epochs,
    seconds, and `run`, all that names the run. Raises Diverged when the loss is no number any more, Interrupted (a
    KeyboardInterrupt) on Ctrl-C, ValueError or TypeError where the arguments do not fit together.

    >>> import netbridge as nb
    >>> from netbridge import data, train
    >>> digits = data.load("digits")
    >>> net = nb.resnet(8, controller="se", widths=(4, 8, 8))
    >>> net = train.train(net, digits, train.recipe("digits", epochs=1), quiet=True, device="cpu")
    >>> net.about["controller"], net.about["depth"], net.about["epochs"], "test_accuracy" in net.about
    ('se', 8, 1, True)
    """
    recipe = recipes.recipe(recipe) if isinstance(recipe, str) else recipe
    training = Training(net, data, recipe, seed, device, dtype, parts, compiled, workers)
    carry_through(training, path, about, stop_after, quiet, checkpoint_minutes, on_epoch, heartbeat, extend)
    return net


def carry_through(
    training, path, about, stop_after, quiet, checkpoint_minutes, on_epoch, heartbeat=None, extend=False
) -> nn.Module:
    """Carry a `Training` through its recipe, from wherever its files say that it is; the parameters are `train`'s."""
    net, recipe = training.net, training.recipe
    pauses, beats = Pauses(checkpoint_minutes), Beats(heartbeat)
    check_at_least_zero("stop_after", stop_after)
    journal = Journal(path, training, about, on_epoch, extend)
    if journal.load_finished():
        say(quiet, training, f"{journal.path} is trained already.")
        return net.eval()
    if training.epoch:
        say(quiet, training, extension(journal.path, training))
    journal.restore()
    last = recipe.epochs if stop_after is None else min(stop_after, recipe.epochs)
    try:
        done = training.epoch * training.steps + training.number
        with (
            pauses.listening(),
            training.precision.kernels(),
            progress_bar(journal.title, recipe.epochs * training.steps, done) as advance,
        ):

            def after_step():
                advance(1, f"epoch {training.epoch + 1}/{recipe.epochs}")
                if beats.due():
                    say(quiet, training, f"{journal.title}: {training.position()}")
                pause(journal, *pauses.due(training.number))

            while training.epoch < last:
                record = training.one_epoch(after_step)
                if on_epoch is not None and training.rank == 0:
                    record |= observe(on_epoch, training, record)
                say(quiet, training, training.line(journal.title, record))
                journal.add(record)
                distributed.wait()
                if training.epoch < last and pauses.must_stop():
                    raise stop_exception(journal, journal.going_on())
    except Diverged as error:
        journal.note_divergence(str(error))
        raise
    except Interrupted:
        raise
    except KeyboardInterrupt:
        raise Interrupted(journal.going_on()) from None
    if training.epoch == recipe.epochs:
        journal.finish()
        distributed.wait()
    return net.eval()


def extension(path, training) -> str:
    """What it means to train a finished network on, in words."""
    recipe, done, steps = training.recipe, training.epoch, training.steps
    ended = dataclasses.replace(recipe, epochs=done).rate(done * steps - 1, steps)
    return (
        f"{path} is finished after {done} epochs and is trained on to {recipe.epochs}, with the learning rates that "
        f"these epochs have in a training of {recipe.epochs}: from {recipe.rate(done * steps, steps):.3g} on, where "
        f"its last step had {ended:.3g}. Momentum and averages begin anew."
    )


def observe(on_epoch, training, record: dict) -> dict:
    """What a user's function says of the network after an epoch; an answer that is no plain record is refused."""
    net = training.net
    with training.stepper.tested_weights():
        before = [x.clone() for x in net.state_dict().values()] if training.world > 1 else []
        found = on_epoch(net.eval(), dict(record))
        if not all(map(torch.equal, before, net.state_dict().values())):
            raise ValueError("`on_epoch` changed the network in one of several processes; it may only look at it.")
    if found is None:
        return {}
    if not isinstance(found, dict):
        raise TypeError(f"`on_epoch` must return None or a dictionary of plain values, got {type(found).__name__}.")
    if taken := sorted(found.keys() & record.keys()):
        raise ValueError(f"`on_epoch` returned {', '.join(taken)}, which the record has already; choose another name.")
    try:
        json.dumps(found)
    except TypeError as error:
        raise TypeError(
            f"`on_epoch` must return plain numbers, strings, lists and dictionaries, such as x.tolist(): {error}."
        ) from None
    return found


def pause(journal: Journal, keep: bool, stop: bool) -> None:
    """In the middle of an epoch: write the state down, end the session, or neither."""
    if keep:
        journal.keep_within()
        distributed.wait()
    if stop:
        raise stop_exception(journal, journal.going_on(kept_within=True))


def stop_exception(journal: Journal, words: str) -> Interrupted:
    """The exception that ends a session which a signal has asked to stop."""
    error = Interrupted(words)
    error.code = 0 if journal.path is not None else Interrupted.code
    return error


def say(quiet: bool, training, text: str) -> None:
    if not quiet and training.rank == 0:
        print(text, flush=True)
