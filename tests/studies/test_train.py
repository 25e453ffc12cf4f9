"""The command `studies.train`: one network or the queue, and never another run's network."""

import dataclasses
import json

import pytest
import torch

import netbridge as nb
from netbridge import code_digests
from netbridge.data import datasets
from netbridge.train import scoring
from studies import table as tables
from studies import train as study
from studies.lab import definitions, jobs
from studies.lab.command import start
from tests.netbridge.train import runs
from tests.studies.conftest import OWN


@pytest.fixture(autouse=True)
def few():
    """A hundred digits, as the data set `few`, and one that cannot be had."""
    definitions.datasets.update({"few": lambda root: runs.few(), "none": lambda root: datasets.load("nowhere")})
    yield runs.few()
    definitions.datasets.clear()


def arguments(out, **more):
    given = {"dataset": "few", "depth": 8, "epochs": 1, "batch": 16, "device": "cpu", "out": out, "curve": False}
    return study.Arguments(**given | more)


def test_names():
    assert jobs.spec_of_text("asr(se)") == jobs.spec_of_text("ASR(SE)") == nb.asr("se")
    assert jobs.spec_of_text("eca") == "eca"
    net = nb.resnet(14, controller=jobs.spec_of_text('{"name": "stepnet", "inputs": "now"}'))
    assert net.config["controllers"][1] == {"name": "stepnet", "inputs": "now"}
    recipe = jobs.recipe_of("short", "cifar10")
    assert jobs.Job("cifar10", "asr(se)", 1, recipe).stem == "resnet20-asr-se-seed1"
    assert jobs.Job("cifar10", "constant", 0, recipe, depth=14, width=8).stem == "resnet14-width8-constant-seed0"


@pytest.mark.parametrize(("network", "size", "millions"), [("vit-s", 224, 22), ("vit-b", 224, 86), ("vit-b", 384, 86)])
def test_the_transformers_of_imagenet_have_the_papers_numbers_of_parameters(network, size, millions):
    """Table 2 of the ASR paper; and ASR changes no count after it has been merged."""
    recipe = jobs.recipe_of("imagenet-vit", "imagenet", network=network)
    depth, width = jobs.SHAPES[network]
    head = "asr(se, activation=tanh, init=0.001, inner=0.001)"
    for controller in ("constant", head):
        job = jobs.Job("imagenet", controller, 0, recipe, depth, width, network=network)
        with torch.device("meta"):
            net = job.untrained_network(1000, size)
            assert net(torch.empty(1, 3, size, size)).shape == (1, 1000)
        if controller == "constant":
            assert sum(p.numel() for p in net.parameters()) // 10**6 == millions  # without its rest, as it is printed
        assert net.stem.position.shape[-1] == size // 16


def test_recipes_for_imagenet_compute_in_the_precision_that_hours_are_given_for():
    """Table 2's hours are of mixed precision, so that the commands for it must be, too."""
    for name in ("imagenet", "imagenet-256", "imagenet-vit", "imagenet-vit-384"):
        assert jobs.recipe_of(name, "imagenet").bfloat16
    assert not jobs.recipe_of("paper", "cifar10").bfloat16  # the papers' own on CIFAR


def test_transformers_have_names_shapes_and_recipes_of_their_own():
    assert jobs.recipe_of("short", "digits", network="vit").name == "vit-digits"
    assert jobs.recipe_of("short", "cifar10", network="one of mine").name == "short"
    recipe = jobs.recipe_of("short", "cifar10", network="vit-conv")
    assert recipe.name == "vit-short"
    assert [recipe.size(epoch, 32) for epoch in range(recipe.epochs)] == [16, 16, 16, 24, 24, 32]
    job = jobs.Job("cifar10", "stepnet", 1, recipe, depth=6, width=96, network="vit-conv")
    assert job.stem == "vit-conv6-width96-stepnet-seed1"
    net = job.untrained_network(10)
    assert (net.config["family"], net.config["stem"], net.config["blocks"], net.config["heads"]) == (
        "vit",
        "conv",
        [12],
        3,
    )
    small = dataclasses.replace(job, depth=4, width=32, network="vit").untrained_network(10, size=16)
    assert (small.config["stem"], small.config["size"], small.config["heads"]) == ("patch", 16, 2)
    assert "network" not in dataclasses.replace(job, network="resnet").specification  # old digests stay


def test_no_data_and_no_network_names_three_remedies(tmp_path, monkeypatch):
    origin = datasets.ORIGINS["cifar100"]
    nowhere = dataclasses.replace(origin.archive, url="http://127.0.0.1:9/cifar-100-binary.tar.gz")
    monkeypatch.setitem(datasets.ORIGINS, "cifar100", dataclasses.replace(origin, archive=nowhere))
    with pytest.raises(SystemExit, match=r"(?s)1\. .*2\. put cifar-100-binary.*3\. use --dataset digits"):
        study.main(arguments(tmp_path, dataset="cifar100", data_root=tmp_path))


DEEP_DIGITS = [f"resnet56-width4-{name}" for name in ("constant-seed0", "se-seed0", "stepnet-seed0", "constant-seed1")]


@pytest.mark.parametrize(
    ("asked", "name", "stems"),
    [
        ({"queue": "shipped", "dataset": "digits"}, "digits", ["resnet32-width4-constant-seed0", "resnet32-width4-se"]),
        ({"queue": "shipped", "dataset": "cifar10"}, "cifar10", ["resnet20-constant-seed0", "resnet20-se-seed0"]),
        ({"queue": "deep", "dataset": "digits"}, "digits-deep", DEEP_DIGITS),
        ({"queue": "shipped", "dataset": "digits", "network": "vit"}, "digits-vit", ["vit4-width32-constant-seed0"]),
    ],
)
def test_a_queue_has_the_networks_that_come_along(asked, name, stems):
    like = jobs.Job(asked["dataset"], "constant", 0, jobs.recipe_of("short", asked["dataset"]))
    folder, wanted = study.jobs_of_queue(study.Arguments(**asked), like)
    assert folder == name
    assert all(job.stem.startswith(stem) for job, stem in zip(wanted, stems, strict=False))
    assert {path.stem for path in (study.ZOO / name).glob("*.safetensors")} <= {job.stem for job in wanted}
    assert all(job.controller != "fca" or job.width % 16 == 0 for job in wanted)  # it shares sixteen frequencies out
    with pytest.raises(SystemExit, match="`--queue deep` knows the data sets cifar10, digits, got 'cifar100'"):
        study.jobs_of_queue(study.Arguments(queue="deep", dataset="cifar100"), like)


def written(folder):
    return {path.name: path.stat().st_mtime_ns for path in folder.iterdir() if path.suffix != ".lock"}


@pytest.mark.parametrize("half", [False, True])
def test_what_is_trained_stays_and_is_shipped_once_with_the_scores_of_what_is_stored(tmp_path, few, capsys, half):
    out, zoo, how = tmp_path / "out", tmp_path / "zoo", jobs.recipe_of("digits", "digits", epochs=1, batch=16)
    wanted = [jobs.Job("few", name, 0, how, 8, 8) for name in ("constant", "asr(se)")]
    with pytest.raises(SystemExit, match=r"`--ship` trains nothing, and nothing is trained in .*out: train"):
        study.ship_all(wanted, few, out, zoo, half)
    jobs.train_all(wanted[1:], few, out, "train", "cpu")
    before = written(out)
    jobs.train_all(wanted[1:], few, out, "train", "cpu")
    study.ship_all(wanted, few, out, zoo, half)
    assert written(out) == before
    said, (missing, job) = capsys.readouterr().out, wanted
    assert f"{missing.stem}: not trained in" in said
    assert f"{job.stem}: shipped, " in said
    assert sorted(written(zoo)) == [f"{job.stem}.jsonl", f"{job.stem}.safetensors"]
    path, shipped = (folder / f"{job.stem}.safetensors" for folder in (out, zoo))
    whole, stored = nb.load(path), nb.load(shipped)
    assert path.with_suffix(".jsonl").read_text() == shipped.with_suffix(".jsonl").read_text()
    if half:
        assert shipped.stat().st_size < 0.7 * path.stat().st_size
        scores = scoring.evaluate(stored, few)
        assert {name: stored.about[name] for name in scores} == scores
        assert stored.about["trained"] == {name: whole.about[name] for name in scores} != scores
        assert (stored.about["measured_by"], stored.about["run"]) == (code_digests.measured_by(), whole.about["run"])
    assert (stored.about == whole.about) != half
    before = written(zoo)
    study.ship_all(wanted, few, out, zoo, half)
    assert f"{job.stem}: is shipped already." in capsys.readouterr().out
    assert written(zoo) == before
    other = dataclasses.replace(job, recipe=dataclasses.replace(how, epochs=2))
    with pytest.raises(SystemExit, match="belongs to a run with another recipe"):
        study.ship_all([other], few, out, tmp_path / "other", half)


def test_what_a_shipped_network_scores_is_said_with_what_it_scored_before():
    same, other = {"test_errors": 7}, {"test_errors": 8, "trained": {"test_errors": 7}}
    assert study.describe_scores(same) == study.describe_scores(same | {"trained": same})
    assert study.describe_scores(other) == "shipped, 8 errors on the test set, 7 as it was trained."


def test_the_queue_of_a_table_trains_its_cells_seed_by_seed(tmp_path, capsys):
    """A table of two rows on two data sets, of which one cannot be had: the other's are trained and found again."""
    scale = tables.Scale("resnet", 8, 4, jobs.recipe_of("digits", "digits", epochs=1, batch=16))
    columns = (("few", scale), ("none", scale))
    table = tables.Table(1, "", columns, {"constant": "constant", "SE": "se"}, {}, "a card")
    study.train_table(table, arguments(tmp_path), seeds=2)
    found = sorted((tmp_path / "few-digits").glob("*.safetensors"), key=lambda path: path.stat().st_mtime_ns)
    stems = [f"resnet8-width4-{name}-seed{seed}" for seed in (0, 1) for name in ("constant", "se")]
    assert [path.stem for path in found] == stems
    assert "Left out: none. studies.train: " in capsys.readouterr().out
    again, _ = tables.read_all((tmp_path,))
    names = {(name, seed) for name in ("constant", "SE") for seed in (0, 1)}
    assert {(one.controller, one.seed) for one in again} == names


@pytest.mark.parametrize("name", study.MEASURED.values())
def test_queues_of_studies_that_keep_measurements_are_handed_over(name):
    other, asked = study.hand_over(name, study.Arguments(device="cpu", threads=3))
    assert name == other.STUDY
    assert (asked.train, asked.full, asked.device, asked.threads) == (True, True, "cpu", 3)


def test_each_training_has_its_record_and_its_curve(tmp_path, capsys):
    for controller in ("constant", "se"):
        study.main(arguments(tmp_path, controller=controller, curve=True))
        assert (tmp_path / f"resnet8-{controller}-seed0.png").stat().st_size > 5000
    for controller in ("constant", "se"):
        record = json.loads((tmp_path / f"resnet8-{controller}-seed0.record.json").read_text())
        assert record["arguments"]["controller"] == controller
        assert ("--controller" in record["command"]) == (controller != "constant")
    assert "% on the test set" in capsys.readouterr().out


def test_another_runs_network_is_never_reported(tmp_path, capsys):
    study.main(arguments(tmp_path))
    study.main(arguments(tmp_path))  # the same run: read and reported
    assert "% on the test set" in capsys.readouterr().out
    for change in ({"epochs": 2}, {"lr": 0.02}, {"batch": 8}, {"precision": "float32"}, {"recipe": "paper"}):
        with pytest.raises(SystemExit, match="another recipe"):
            study.main(arguments(tmp_path, **change))
        assert "%" not in capsys.readouterr().out


def test_divergence_is_one_line_with_what_to_change(tmp_path):
    with pytest.raises(SystemExit, match=r"no number any more.*Here that is --lr, --precision float32, --out\.") as end:
        study.main(arguments(tmp_path, lr=1e30))
    assert "\n" not in str(end.value)


def test_a_controller_of_ones_own_is_trained(own, tmp_path):
    study.main(arguments(tmp_path, controller="halved", define=(own,)))
    assert nb.load(tmp_path / "resnet8-halved-seed0.safetensors").about["controller"] == "halved"


def test_a_network_and_a_data_set_of_ones_own_and_its_stiffness_in_the_log(own, tmp_path):
    given = {"network": "same", "dataset": "noise", "define": (own,), "depth": None, "trace_every": 2, "epochs": 3}
    study.main(arguments(tmp_path, **given))
    log = [json.loads(line) for line in (tmp_path / "same-seed0.jsonl").read_text().splitlines()]
    assert (log[0]["network"], log[0]["dataset"]) == ("same", "noise")
    assert [len(record["nsi"]["slope"]) if "nsi" in record else 0 for record in log[1:]] == [0, 3, 0]
    assert len(log[2]["tns"]) == 4
    with pytest.raises(SystemExit, match="a network of your own has no place for `--controller`"):
        study.main(arguments(tmp_path, **given | {"controller": "se"}))
    with pytest.raises(SystemExit, match="`--network` knows resnet, vit, vit-conv, vit-s, vit-b, same, got 'other'"):
        study.main(arguments(tmp_path, **given | {"network": "other"}))


def test_what_is_no_dictionary_of_functions(tmp_path):
    (tmp_path / "own.py").write_text("NETWORKS = {'tiny': 3}")
    with pytest.raises(SystemExit, match="`NETWORKS` must be a dictionary of functions"):
        study.main(arguments(tmp_path, define=(tmp_path / "own.py",)))


def test_a_folder_of_pictures(tmp_path):
    from PIL import Image

    for name, colour in (("cats", "grey"), ("dogs", "brown")):
        (tmp_path / "pets" / name).mkdir(parents=True)
        for number in range(10):
            Image.new("RGB", (20, 30), colour).save(tmp_path / "pets" / name / f"{number}.png")
    study.main(arguments(tmp_path, dataset=f"{tmp_path}/pets", size=16, batch=4))
    net = nb.load(tmp_path / "resnet8-constant-seed0.safetensors")
    assert net.about["dataset"] == "pets"


def test_any_field_of_the_recipe(tmp_path):
    study.main(arguments(tmp_path, set=("mixup=0.5", "policy=trivial", "schedule=steps", "drops=[1, 2]"), parts=2))
    run = nb.load(tmp_path / "resnet8-constant-seed0.safetensors").about["run"]
    wanted = {"mixup": 0.5, "policy": "trivial", "schedule": "steps", "drops": [1, 2]}
    assert wanted.items() <= run["recipe"].items()
    assert run["parts"] == 2
    with pytest.raises(SystemExit, match=r"`--set` takes FIELD=VALUE, such as mixup=1\.0, got 'mixup'"):
        study.main(arguments(tmp_path, set=("mixup",)))
    with pytest.raises(SystemExit, match="did you mean `mixup`"):
        study.main(arguments(tmp_path, set=("mixups=1",)))


def test_a_signal_ends_the_command_with_code_0_and_says_how_to_go_on(tmp_path, capsys):
    """The signal comes from a network of one's own, which sends it in its second step."""
    own, told = tmp_path / "own.py", tmp_path / "told"
    own.write_text(SIGNALLING.format(told=str(told)))
    words = ["--network", "signalling", "--define", str(own), "--dataset", "noise", "--epochs", "2", "--batch", "16"]
    words += ["--device", "cpu", "--no-curve", "--out", str(tmp_path)]
    with pytest.raises(SystemExit) as end:
        start(study.main, study.Arguments, "train", "", words)
    assert end.value.code == 0
    assert "step 2 of 8 of this epoch is kept" in (said := capsys.readouterr().err)
    assert "Start again with: python -m studies.train --network signalling --dataset noise --out" in said
    start(study.main, study.Arguments, "train", "", words)
    assert "% on the test set" in capsys.readouterr().out


SIGNALLING = (
    OWN.replace("{", "{{").replace("}", "}}")
    + """
import pathlib, signal

class Signalling(Same):
    steps = 0

    def forward(self, x):
        self.steps += self.training
        if self.steps == 2 and not pathlib.Path({told!r}).exists():
            pathlib.Path({told!r}).touch()
            signal.raise_signal(signal.SIGTERM)
        return super().forward(x)

NETWORKS["signalling"] = Signalling
"""
)
