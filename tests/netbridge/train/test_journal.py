"""A path belongs to one run: finished or not, another run is refused, and the same one is gone on with or loaded."""

import dataclasses
import json
import pickletools
import shutil

import pytest
import safetensors
import torch

import netbridge as nb
from netbridge import checkpoint
from netbridge.pretrained_networks import ZOO
from netbridge.train import loop as train
from netbridge.train import recipes
from tests.netbridge.train import runs

OTHERS = {
    "recipe": ({"changes": {"lr": 0.3}}, r"recipe \(lr 0.2 there, 0.3 here\)"),
    "epochs": ({"changes": {"epochs": 4}}, r"recipe \(epochs 3 there, 4 here\)"),
    "network": ({"controller": "eca"}, r"config \(controllers \['se'"),
    "seed": ({"seed": 1}, r"seed \(0 there, 1 here\)"),
    "precision": ({"dtype": torch.float64}, r"precision \('float32' there, 'float64' here\)"),
    "data set": ({"images": dataclasses.replace(runs.few(), name="mine")}, r"dataset \(name 'digits' there, 'mine'"),
    "fewer images": ({"images": runs.few(80)}, "another dataset"),
}


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    """A finished run and one that is not."""
    folder = tmp_path_factory.mktemp("runs")
    runs.run(folder / "finished.safetensors")
    runs.run(folder / "stopped.safetensors", stop_after=1)
    return folder


@pytest.mark.parametrize("state", ["finished", "stopped"])
@pytest.mark.parametrize("other", OTHERS)
def test_another_run_is_refused(kept, state, other):
    change, words = OTHERS[other]
    with pytest.raises(ValueError, match=f"(?s){state}.*belongs to a run with .*{words}.*choose another `path`"):
        runs.run(kept / f"{state}.safetensors", **change)


def test_a_finished_run_is_loaded_and_not_trained_again(kept, capsys):
    path = kept / "finished.safetensors"
    before = path.stat().st_mtime_ns
    net = runs.run(path, quiet=False)
    assert "is trained already" in capsys.readouterr().out
    assert not net.training
    assert runs.same(net, nb.load(path))
    assert net.about == nb.load(path).about
    assert path.stat().st_mtime_ns == before


def test_the_file_carries_all_that_names_its_run(kept):
    about = nb.load(kept / "finished.safetensors").about
    assert (about["controller"], about["depth"], about["width"], about["seed"]) == ("se", 8, 16, 0)
    assert about["run"]["dataset"].keys() == {"name", "images", "mean", "std", "digest"}
    assert about["run"]["recipe"] == json.loads(json.dumps(runs.recipe().as_json()))


class TestFilesOlderThanTheRecord:
    """The shipped networks were trained before a file carried its run: header and log are read instead."""

    @pytest.fixture
    def old(self, tmp_path):
        for ending in (".safetensors", ".jsonl"):
            shutil.copy(ZOO / "digits" / f"resnet32-width4-se-seed0{ending}", tmp_path / f"old{ending}")
        return tmp_path / "old.safetensors"

    def ask(self, path, **changes):
        from netbridge import data

        net = nb.resnet(32, controller="se", widths=[4, 8, 16])
        return train.train(net, data.load("digits"), recipes.recipe("digits", **changes), path=path, device="cpu")

    @pytest.mark.parametrize("log", [True, False])
    def test_the_same_run_is_loaded(self, old, log, capsys):
        if not log:
            old.with_suffix(".jsonl").unlink()
        assert runs.same(self.ask(old), nb.load(old))

    @pytest.mark.parametrize("change", [{"epochs": 3}, {"lr": 0.02}])
    def test_another_is_refused(self, old, change):
        with pytest.raises(ValueError, match="belongs to a run with another recipe"):
            self.ask(old, **change)

    def test_a_network_that_was_only_saved_is_refused(self, tmp_path):
        path = nb.save(runs.fresh(), tmp_path / "net.safetensors")
        with pytest.raises(ValueError, match="no training of netbridge wrote it; choose another `path`"):
            runs.run(path)


@pytest.mark.parametrize(("teacher", "refused"), [("", False), ("digits", True)])
def test_a_distilled_network_of_older_code_is_no_network_of_the_recipe_without_a_teacher(
    tmp_path, monkeypatch, teacher, refused
):
    path = tmp_path / "net.safetensors"
    as_json = recipes.Recipe.as_json
    with monkeypatch.context() as before:
        before.setattr(recipes.Recipe, "as_json", lambda self: as_json(self) | {"teacher": teacher})
        runs.run(path, stop_after=1)
    if refused:
        with pytest.raises(ValueError, match=r"another recipe \(teacher 'digits' there, '' here\)"):
            runs.run(path)
    else:
        assert runs.same(runs.run(path), runs.run())


def test_a_field_that_joins_the_recipes_later_was_at_its_default(tmp_path, monkeypatch):
    """A state that was written before recipes had `smoothing` is gone on with without it, and with it refused."""
    path = tmp_path / "net.safetensors"
    as_json = recipes.Recipe.as_json
    with monkeypatch.context() as before:
        before.setattr(
            recipes.Recipe, "as_json", lambda self: {k: v for k, v in as_json(self).items() if k != "smoothing"}
        )
        runs.run(path, stop_after=1)
    with pytest.raises(ValueError, match=r"another recipe \(smoothing 0.0 there, 0.1 here\)"):
        runs.run(path, changes={"smoothing": 0.1})
    assert runs.same(runs.run(path), runs.run())


class TestWhatIsKept:
    def test_plain_values_of_the_optimizer_are_kept(self, tmp_path):
        """SGD without momentum keeps None, and optimisers of one's own numbers, beside tensors."""
        net = torch.nn.Linear(2, 2)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        weight, bias = net.parameters()
        optimizer.state[weight] = {"count": 3, "scale": 0.1, "mean": torch.ones(2, 2)}
        optimizer.state[bias] = {"momentum_buffer": None}
        checkpoint.save_training(tmp_path / "a.resume", net, optimizer, [], {"epoch": 1})
        again = torch.nn.Linear(2, 2)
        other = torch.optim.SGD(again.parameters(), lr=0.1)
        record, tensors = checkpoint.load_training(tmp_path / "a.resume")
        checkpoint.restore_training(record, tensors, again, other, [])
        first, second = other.state_dict()["state"].values()
        assert (first["count"], first["scale"], second) == (3, 0.1, {"momentum_buffer": None})
        assert torch.equal(first["mean"], torch.ones(2, 2))
        assert torch.equal(again.weight, net.weight)

    def test_what_can_be_neither_tensor_nor_plain_is_refused(self, tmp_path):
        net = torch.nn.Linear(2, 2)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        optimizer.state[net.weight] = {"closure": print}
        with pytest.raises(TypeError, match="`optimizer` must be plain numbers"):
            checkpoint.save_training(tmp_path / "a.resume", net, optimizer, [], {"epoch": 1})

    @pytest.mark.parametrize("momentum", [0.0, 0.9])
    def test_any_momentum_resumes_to_the_bit(self, tmp_path, momentum):
        changes = {"momentum": momentum, "nesterov": False, "epochs": 2}
        whole = runs.run(changes=changes)
        runs.run(tmp_path / "a.safetensors", changes=changes, stop_after=1)
        assert runs.same(runs.run(tmp_path / "a.safetensors", changes=changes), whole)

    def test_no_file_is_a_pickle(self, kept):
        """Nothing that is written can run code when it is read: safetensors, JSON lines, and no more."""
        for path in kept.iterdir():
            if path.suffix == ".jsonl":
                assert all(isinstance(json.loads(text), dict) for text in path.read_text().splitlines())
                continue
            with safetensors.safe_open(path, framework="pt") as file:
                assert all(isinstance(json.loads(text), dict) for text in file.metadata().values())
            with pytest.raises((ValueError, UnicodeDecodeError, IndexError)):
                list(pickletools.genops(path.read_bytes()))
        assert {path.suffix for path in kept.iterdir()} == {".safetensors", ".resume", ".jsonl"}


def test_names_with_a_point_share_no_file(tmp_path):
    """What follows a point need not be an ending: lr0.1 and lr0.2 are two runs with two logs."""
    for rate in (0.1, 0.2):
        runs.run(tmp_path / f"lr{rate}", changes={"lr": rate}, stop_after=1)
    assert sorted(file.name for file in tmp_path.iterdir()) == [
        "lr0.1.jsonl",
        "lr0.1.resume",
        "lr0.2.jsonl",
        "lr0.2.resume",
    ]


def test_images_shown_otherwise_are_another_run(tmp_path):
    runs.run(tmp_path / "a.safetensors", stop_after=1)
    other = dataclasses.replace(runs.few(), mean=(0.0, 0.0, 0.0))
    with pytest.raises(ValueError, match=r"another dataset \(mean \[0.3"):
        runs.run(tmp_path / "a.safetensors", images=other)


class TestInterrupted:
    @staticmethod
    def stop(epoch):
        def on_epoch(net, record):
            if record["epoch"] == epoch:
                raise KeyboardInterrupt

        return on_epoch

    def test_ctrl_c_says_what_is_kept_and_how_to_go_on(self, tmp_path):
        path = tmp_path / "a.safetensors"
        with pytest.raises(
            train.Interrupted, match=r"stopped in epoch 2 of 3\. .*end of epoch 1 is kept in .*a\.resume: the same"
        ):
            runs.run(path, on_epoch=self.stop(2))
        assert runs.same(runs.run(path), runs.run())

    def test_without_a_path_nothing_is_kept(self):
        with pytest.raises(train.Interrupted, match="Nothing is kept, because no `path` was given"):
            runs.run(on_epoch=self.stop(1))

    def test_it_is_a_keyboard_interrupt(self):
        assert issubclass(train.Interrupted, KeyboardInterrupt)
        assert not issubclass(train.Interrupted, Exception)
