"""The files of a training: its log, the state from which the next start continues, and the finished network.

Beside NAME.safetensors, which receives the finished network, lie NAME.jsonl (the log: the run in the first line, then
one JSON record an epoch) and, while training lasts, NAME.resume. The header of the finished file holds, in `about`,
what names the run and what it scored; a later call with the same `path` is compared with it.
"""

import hashlib
import json
import re
from pathlib import Path

import torch
from torch import nn

from netbridge import checkpoint
from netbridge.model.network import Configured
from netbridge.train import distributed
from netbridge.train.recipes import LOST, RECIPES, Recipe
from odelab.files import replacing, sweep

RECIPE_DEFAULTS = json.loads(json.dumps(Recipe("", 1).as_json())) | LOST


class Journal:
    """The files of one training. Without a path nothing is written, and what was scored is still in `net.about`.

    path      of the finished network
    training  a `Training`
    about     plain values to keep in its header
    on_epoch  what looks at the network after every epoch; its `state_dict`, if it has one, is kept with the state
    extend    whether a network that is finished after fewer epochs is trained on
    """

    def __init__(self, path, training, about: dict | None, on_epoch=None, extend: bool = False):
        self.path = None if path is None else Path(path)
        self.training, self.extend = training, extend
        self.observer = on_epoch if hasattr(on_epoch, "state_dict") else None
        self.seconds = 0.0
        self.log: list[dict] = []
        data, recipe, net = training.data, training.recipe, training.net
        own = {"seed": training.seed, "recipe": recipe.name, "dataset": data.name}
        self.about = header_fields(net) | dict(about or {}) | own
        self.run = {
            "dataset": {"name": data.name, "images": data.train_count} | data.normalisation,
            "recipe": json.loads(json.dumps(recipe.as_json())),
            "config": architecture(net),
            "seed": training.seed,
            "precision": str(training.dtype).removeprefix("torch."),
            "parts": training.parts,
        }
        if self.path is not None:
            self.run["dataset"]["digest"] = data.digest()
            if training.rank == 0:  # only process 0 reads and writes files; it sends the others what it has read
                self.path.parent.mkdir(parents=True, exist_ok=True)

    @property
    def title(self) -> str:
        return " ".join(str(self.about[key]) for key in ("controller", "seed") if key in self.about)

    @property
    def resume_path(self) -> Path:
        return self.beside(".resume")

    def beside(self, ending: str) -> Path:
        assert self.path is not None  # nothing is written without a path
        if self.path.suffix == ".safetensors":
            return self.path.with_suffix(ending)
        return self.path.with_name(self.path.name + ending)  # what follows a point need not be an ending: lr0.1, lr0.2

    def load_finished(self) -> bool:
        """Load the network if this run is finished already; returns whether it was, and refuses one of another run.

        One that shall be extended is not finished: the training stands at its end.
        """
        found = distributed.from_first(self.read_network)
        if found is None:
            return False
        about, tensors, run, log = found
        t, done = self.training, run["recipe"]["epochs"]
        t.net.load_state_dict(tensors)
        if done == t.recipe.epochs:
            t.net.about = about
            return True
        t.stepper.average_from_here()
        t.epoch, self.seconds, self.log = done, about.get("seconds", 0.0), log
        self.run["extension"] = [*run.get("extension", []), done]
        return False

    def read_network(self) -> tuple[dict, dict, dict, list] | None:
        """(about, tensors, run, log) of the finished network; None where there is none."""
        if self.path is None or not self.path.is_file():
            return None
        header, tensors = checkpoint.read(self.path, checkpoint.NETWORK)
        run, log = run_of(self.path, header), self.beside(".jsonl")
        self.refuse_another(self.path, run)
        records = log.read_text().splitlines()[1:] if log.is_file() else []
        return header["about"], tensors, run, list(map(json.loads, records))

    def restore(self) -> None:
        """Go on where the last session ended; refuse what belongs to another run."""
        found = distributed.from_first(self.read_state)
        if found is None:
            return
        record, tensors = found
        t = self.training
        if t.parts != (parts := record.get("parts", t.parts)):
            t.share_out(parts)  # no number was asked for: the run keeps its own
            self.run["parts"] = parts
        checkpoint.restore_training(record, tensors, t.net, t.stepper.optimizer, t.stepper.slow)
        t.precision.restore(record.get("scale", {}))
        t.epoch, self.seconds, self.log = record["epoch"], record["seconds"], record["log"]
        if "within" in record:
            count = sum(name.startswith("drawing.") for name in tensors)
            t.go_on_within(record["within"], [tensors[f"drawing.{rank}"] for rank in range(count)])
        if self.observer is not None and t.rank == 0:
            held = {name.removeprefix("observer."): x for name, x in tensors.items() if name.startswith("observer.")}
            self.observer.load_state_dict(held)

    def read_state(self) -> tuple[dict, dict] | None:
        """(record, tensors) of the last session; None where there was none."""
        if self.path is None:
            return None
        for place in (self.path, self.resume_path):
            sweep(place, age=0.0)  # a path belongs to one run, and this is it
        found = checkpoint.load_training(self.resume_path)
        if found is not None:
            self.refuse_another(self.resume_path, found[0])
        return found

    def refuse_another(self, path: Path, recorded: dict) -> None:
        # a field that joined since was at its default, and one that left is
        recorded = {"extension": [], **recorded, "recipe": RECIPE_DEFAULTS | recorded["recipe"]}
        asked = {key: now for key, now in self.run.items() if key != "parts" or self.training.parts_asked}
        asked["extension"] = recorded["extension"] if self.extend else []
        asked["recipe"] = asked["recipe"] | LOST
        there, here = (run["recipe"]["epochs"] for run in (recorded, asked))
        grows = path == self.path and there < here
        if self.extend and grows:
            recorded["recipe"] |= {"epochs": here}
        different = {key: differences(recorded[key], now) for key, now in asked.items() if key in recorded}
        if wrong := [key for key, found in different.items() if found]:
            details = "; ".join(text for key in wrong for text in different[key])
            longer = grows and different["recipe"] == differences({"epochs": there}, {"epochs": here})
            extensible = wrong == ["extension"] or longer
            remedy = "`extend` (--extend) goes on with it; else delete it" if extensible else "delete it"
            raise ValueError(
                f"{path} belongs to a run with another {' and '.join(wrong)} ({details}); {remedy}, or choose another "
                "`path`."
            )

    def add(self, record: dict) -> None:
        """An epoch is over: log it, and keep what the next start needs."""
        self.log.append(record)
        self.seconds += record["seconds"]
        if self.path is not None and self.training.rank == 0:
            self.write_state({})
            self.write_log(self.log)

    def keep_within(self) -> None:
        """In the middle of an epoch: keep what the next start needs."""
        within, drawing = self.training.within()
        if self.path is not None and self.training.rank == 0:
            self.write_state({"within": within}, drawing)

    def write_state(self, more: dict, drawing: list | None = None) -> None:
        t = self.training
        kept = {"epoch": t.epoch, "seconds": self.seconds, "log": self.log, **more, **self.run}
        kept |= {"scale": scale} if (scale := t.precision.state()) else {}
        observed = {} if self.observer is None else self.observer.state_dict()
        checkpoint.save_training(
            self.resume_path, t.net, t.stepper.optimizer, t.stepper.slow, kept, drawing or [], observed
        )

    def note_divergence(self, text: str) -> None:
        if self.path is not None and self.training.rank == 0:
            self.write_log([*self.log, {"epoch": self.training.epoch + 1, "diverged": text}])

    def write_log(self, records: list[dict]) -> None:
        recipe = self.training.recipe.as_json()
        head = {**self.about, "recipe": recipe, "torch": torch.__version__, "device": str(self.training.device)}
        with replacing(self.beside(".jsonl")) as unfinished:
            unfinished.write_text("".join(json.dumps(record) + "\n" for record in [head, *records]))

    def finish(self) -> None:
        scores = {key: self.log[-1][key] for key in self.training.scores if key in self.log[-1]}
        net, epochs = self.training.net, self.training.recipe.epochs
        net.about = {**self.about, **scores, "epochs": epochs, "seconds": round(self.seconds, 1), "run": self.run}
        if self.path is not None and self.training.rank == 0:
            checkpoint.save_module(net, self.path, net.about)
            self.resume_path.unlink(missing_ok=True)

    def going_on(self, kept_within: bool = False) -> str:
        """What is kept of an interrupted training, in words."""
        where = f"stopped in epoch {len(self.log) + 1} of {self.training.recipe.epochs}."
        if self.path is None:
            return f"{where} Nothing is kept, because no `path` was given."
        if kept_within:
            step = f"step {self.training.number} of {self.training.steps} of this epoch"
            return f"{where} Everything up to {step} is kept in {self.resume_path}: the same call goes on from there."
        if not self.log:
            return f"{where} The same call starts anew."
        kept = f"Everything up to the end of epoch {len(self.log)} is kept in {self.resume_path}"
        return f"{where} {kept}: the same call goes on from there."


def architecture(net: nn.Module) -> dict:
    """What tells networks apart: the configuration of one of ours; of another's its class, layers and shapes."""
    if isinstance(net, Configured):
        return json.loads(json.dumps(net.config))
    shapes = repr([(name, tuple(x.shape)) for name, x in net.state_dict().items()])
    layers = re.sub(r" at 0x[0-9a-f]+", "", repr(net))
    digests = {"shapes": shapes, "layers": layers}
    return {"class": checkpoint.class_name(net)} | {
        name: hashlib.sha256(text.encode()).hexdigest()[:16] for name, text in digests.items()
    }


def header_fields(net: nn.Module) -> dict:
    """Controller, depth (layers with weights) and width (channels of the first stage), as a header names them."""
    if not isinstance(net, Configured):
        return {"network": type(net).__name__}
    config = net.config
    named = {one if isinstance(one, str) else json.dumps(one, sort_keys=True) for one in config["controllers"]}
    chosen = sorted(named - {"constant"}) or ["constant"]
    depth = config.get("depth") or (3 if config["bottleneck"] else 2) * sum(config["blocks"]) + 2
    found = {"controller": " and ".join(chosen), "depth": depth, "width": config["widths"][0]}
    family = config.get("family", "resnet")
    return found | ({"network": family} if family != "resnet" else {})


def run_of(path: Path, header: dict) -> dict:
    """What names the run of a finished file; in files older than the record of it, from the header and the log."""
    about = header.get("about") or {}
    if "run" in about:
        return about["run"]
    if not {"dataset", "recipe", "seed"} <= about.keys():
        raise ValueError(f"{path} is there already, and no training of netbridge wrote it; choose another `path`.")
    log = path.with_suffix(".jsonl")
    logged = json.loads(log.read_text().split("\n", 1)[0]).get("recipe", {}) if log.is_file() else {}
    usual = RECIPES.get(about["recipe"], Recipe(about["recipe"], about["epochs"])).as_json()
    return {
        "dataset": {"name": about["dataset"]},
        "recipe": json.loads(json.dumps(usual | {"epochs": about["epochs"]} | logged)),
        "config": header.get("config"),
        "seed": about["seed"],
    }


def differences(there, here, name: str = "") -> list[str]:
    """What differs between two records, in words. A field that only one of them has is not compared."""
    shared = sorted(there.keys() & here.keys()) if isinstance(there, dict) and isinstance(here, dict) else []
    if shared:
        return [text for key in shared for text in differences(there[key], here[key], f"{name}{key} ")]
    return [] if there == here else [f"{name}{brief(there)} there, {brief(here)} here"]


def brief(value) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
