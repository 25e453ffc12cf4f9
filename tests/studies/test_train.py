"""The command `studies.train`: one network or the queue, and never another run's network."""

import dataclasses
import json
import signal

import pytest
import torch

import netbridge as nb
from netbridge import code_digests, data
from netbridge.data import datasets
from netbridge.train import scoring
from studies import table as tables
from studies import train as study
from studies.lab import jobs
from studies.lab.command import start
from studies.lab.figures import learning_curve
from tests.netbridge.train import runs


@pytest.fixture(autouse=True)
def small(monkeypatch, tmp_path):
    """A hundred digits, and an allocator that stays as it is for the tests after these."""
    few = runs.few()
    monkeypatch.setattr(nb, "tune_allocator", lambda: True)
    monkeypatch.setattr("netbridge.data.default_root", lambda: tmp_path / "cache")
    monkeypatch.setattr("netbridge.data.load", lambda name, root=None: few)


def arguments(out, **more):
    given = {"dataset": "digits", "depth": 8, "epochs": 1, "batch": 16, "device": "cpu", "out": out, "curve": False}
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


def test_the_queue_of_transformers(tmp_path, monkeypatch):
    monkeypatch.setattr(study, "VITS", (("se", 0),))
    monkeypatch.setattr(study, "SHAPES", {"digits-vit": {"network": "vit", "depth": 1, "width": 16}})
    study.main(arguments(tmp_path, queue="shipped", network="vit", depth=None))
    net = nb.load(tmp_path / "digits-vit" / "vit1-se-seed0.safetensors")
    assert (net.about["network"], net.about["depth"], net.about["recipe"]) == ("vit", 6, "vit-digits")
    with pytest.raises(SystemExit, match="`--network` knows resnet, vit, vit-conv, vit-s, vit-b, got 'vgg'"):
        study.main(arguments(tmp_path, network="vgg"))


def test_no_data_and_no_network_names_three_remedies(tmp_path, monkeypatch):
    origin = datasets.ORIGINS["cifar100"]
    nowhere = dataclasses.replace(origin.archive, url="http://127.0.0.1:9/cifar-100-binary.tar.gz")
    monkeypatch.setitem(datasets.ORIGINS, "cifar100", dataclasses.replace(origin, archive=nowhere))
    monkeypatch.setattr("netbridge.data.load", datasets.load)
    with pytest.raises(SystemExit, match=r"(?s)1\. .*2\. put cifar-100-binary.*3\. use --dataset digits"):
        study.main(arguments(tmp_path, dataset="cifar100", data_root=tmp_path))


@pytest.fixture
def queue(tmp_path, monkeypatch):
    """A queue of four small networks, and an empty place for shipped ones."""
    monkeypatch.setattr(study, "ZOO", tmp_path / "zoo")
    pairs = (("constant", 0), ("fca", 0), ("asr(se)", 1))
    monkeypatch.setattr(study, "QUEUE", pairs)
    monkeypatch.setattr(study, "DEEP", {"digits": pairs})
    monkeypatch.setattr(study, "SHAPES", {"digits": {"width": 4}, "digits-deep": {"width": 8}})
    return tmp_path / "out"


def written(folder):
    return {path.name: path.stat().st_mtime_ns for path in folder.iterdir() if path.suffix != ".lock"}


def test_the_queue_trains_into_its_folder_and_nowhere_else(queue):
    given = arguments(queue, queue="shipped")
    study.main(given)
    assert not study.ZOO.exists()
    found = sorted(path.name for path in (queue / "digits").glob("*.safetensors"))
    assert found == ["resnet8-width4-asr-se-seed1.safetensors", "resnet8-width4-constant-seed0.safetensors"]
    net = nb.load(queue / "digits" / found[0])
    assert (net.about["controller"], net.about["seed"], net.about["depth"]) == ("asr(se)", 1, 8)
    assert net.config["widths"] == [4, 8, 16]
    before = written(queue / "digits")
    study.main(given)
    assert written(queue / "digits") == before


def test_shipping_puts_what_is_finished_into_the_package_and_trains_nothing(queue, capsys):
    with pytest.raises(SystemExit, match=r"`--ship` trains nothing, and nothing is trained in .*out.digits: train"):
        study.main(arguments(queue, queue="shipped", ship=True))
    study.main(arguments(queue, queue="shipped"))
    first, second = sorted((queue / "digits").glob("*.safetensors"))
    second.unlink()
    before = written(queue / "digits")
    capsys.readouterr()
    study.main(arguments(queue, queue="shipped", ship=True))
    assert f"{second.stem}: not trained in" in (said := capsys.readouterr().out)
    assert f"{first.stem}: shipped, " in said
    assert written(queue / "digits") == before
    shipped = written(study.ZOO / "digits")
    assert sorted(shipped) == [first.with_suffix(".jsonl").name, first.name]
    assert nb.load(study.ZOO / "digits" / first.name).about == nb.load(first).about
    study.main(arguments(queue, queue="shipped", ship=True))
    assert f"{first.stem}: is shipped already." in capsys.readouterr().out
    assert written(study.ZOO / "digits") == shipped


def test_a_network_of_another_run_is_not_shipped(queue):
    study.main(arguments(queue, queue="shipped"))
    with pytest.raises(SystemExit, match="belongs to a run with another recipe"):
        study.main(arguments(queue, queue="shipped", ship=True, epochs=2))
    assert not list(study.ZOO.glob("*/*.safetensors"))


def test_deep_networks_are_shipped_in_half_precision_with_the_scores_of_what_is_stored(queue):
    study.main(arguments(queue, queue="deep"))
    study.main(arguments(queue, queue="deep", ship=True))
    few = data.load("digits")  # the fixture's
    trained = sorted((queue / "digits-deep").glob("*.safetensors"))
    assert len(trained) == 2
    for path in trained:
        whole, stored = nb.load(path), nb.load(study.ZOO / "digits-deep" / path.name)
        assert (study.ZOO / "digits-deep" / path.name).stat().st_size < 0.7 * path.stat().st_size
        assert stored.about["rounded_to"] == "float16"
        assert "rounded_to" not in whole.about
        scores = scoring.evaluate(stored, few)
        assert {name: stored.about[name] for name in scores} == scores
        assert stored.about["trained"] == {name: whole.about[name] for name in scores} != scores
        assert stored.about["measured_by"] == code_digests.measured_by()
        log = path.with_suffix(".jsonl").read_text()
        assert (study.ZOO / "digits-deep" / path.name).with_suffix(".jsonl").read_text() == log
        assert stored.about["run"] == whole.about["run"]


def test_what_a_shipped_network_scores_is_said_with_what_it_scored_before():
    same, other = {"test_errors": 7}, {"test_errors": 8, "trained": {"test_errors": 7}}
    assert study.describe_scores(same) == "shipped, 7 errors on the test set."
    assert study.describe_scores(other) == "shipped, 8 errors on the test set, 7 as it was trained."
    assert study.describe_scores(same | {"trained": same}) == study.describe_scores(same)


def test_the_queue_of_deep_networks(tmp_path, monkeypatch):
    monkeypatch.setattr(study, "DEEP", {"digits": (("constant", 0),)})
    monkeypatch.setattr(study, "SHAPES", {"digits-deep": {"width": 4}})
    study.main(arguments(tmp_path, queue="deep"))
    assert [path.name for path in (tmp_path / "digits-deep").glob("*.safetensors")] == [
        "resnet8-width4-constant-seed0.safetensors"
    ]
    with pytest.raises(SystemExit, match="`--queue deep` knows the data sets digits, got 'cifar100'"):
        study.main(arguments(tmp_path, queue="deep", dataset="cifar100"))


def test_the_queue_of_a_table_trains_its_cells_seed_by_seed(tmp_path, monkeypatch, capsys):
    """A table of two rows on two data sets, of which one cannot be had: the other's are trained and found again."""
    scale = tables.Scale("resnet", 8, 4, jobs.recipe_of("digits", "digits", epochs=1, batch=16))
    columns = (("digits", scale), ("cifar100", scale))
    table = tables.Table(1, "", columns, {"constant": "constant", "SE": "se"}, {}, "a card")
    monkeypatch.setitem(tables.TABLES, 1, table)
    monkeypatch.setattr(study, "PAPER_SEEDS", 2)

    few = data.load("digits")  # the fixture's

    def had(name, root=None):
        if name == "cifar100":
            raise datasets.DataUnavailable("it is nowhere")
        return few

    monkeypatch.setattr("netbridge.data.load", had)
    study.main(arguments(tmp_path, queue="table1"))
    found = sorted((tmp_path / "digits-digits").glob("*.safetensors"), key=lambda path: path.stat().st_mtime_ns)
    stems = [f"resnet8-width4-{name}-seed{seed}" for seed in (0, 1) for name in ("constant", "se")]
    assert [path.stem for path in found] == stems
    assert "Left out: cifar100. studies.train: it is nowhere" in capsys.readouterr().out
    again, _ = tables.read_all((tmp_path,))
    assert {(one.controller, one.seed) for one in again} == {
        (name, seed) for name in ("constant", "SE") for seed in (0, 1)
    }
    with pytest.raises(SystemExit, match="`--ship` needs shipped or deep"):
        study.main(arguments(tmp_path, queue="table1", ship=True))


@pytest.mark.parametrize(("queue", "name"), [("tricks", "tricks"), ("table4", "step_control")])
def test_queues_of_studies_that_keep_measurements_are_handed_over(tmp_path, monkeypatch, queue, name):
    asked = []
    monkeypatch.setattr(f"studies.{name}.main", asked.append)
    study.main(arguments(tmp_path, queue=queue, threads=torch.get_num_threads()))
    assert (asked[0].train, asked[0].full, asked[0].device) == (True, True, "cpu")


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


def test_a_controller_of_ones_own_is_trained(tmp_path):
    from netbridge.step_sizes.base import REGISTRY

    path = tmp_path / "half.py"
    path.write_text(
        "import netbridge as nb\n"
        "class Half(nb.Controller, name='half'):\n"
        "    def __init__(self, channels):\n"
        "        super().__init__()\n"
        "    def forward(self, state, slope):\n"
        "        return 0.5\n"
    )
    try:
        study.main(arguments(tmp_path, controller="half", define=(path,)))
        assert nb.load(tmp_path / "resnet8-half-seed0.safetensors").about["controller"] == "half"
    finally:
        REGISTRY.pop("half", None)


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


def test_a_signal_ends_the_command_with_code_0_and_says_how_to_go_on(tmp_path, monkeypatch, capsys):
    step, told = torch.optim.SGD.step, []

    def signalled(*given):
        told.append(0)
        if len(told) == 2:
            signal.raise_signal(signal.SIGTERM)
        return step(*given)

    monkeypatch.setattr(torch.optim.SGD, "step", signalled)
    words = ["--dataset", "digits", "--depth", "8", "--epochs", "2", "--batch", "16", "--device", "cpu", "--no-curve"]
    monkeypatch.setattr("sys.argv", ["train", *words, "--out", str(tmp_path)])
    with pytest.raises(SystemExit) as end:
        start(study.main, study.Arguments, "train", "")
    assert end.value.code == 0
    assert "step 2 of 6 of this epoch is kept" in (said := capsys.readouterr().err)
    assert f"Start again with: python -m studies.train --depth 8 --dataset digits --out {tmp_path}" in said
    start(study.main, study.Arguments, "train", "")
    assert "% on the test set" in capsys.readouterr().out


def test_curve(tmp_path):
    from PIL import Image

    path = tmp_path / "se.safetensors"
    runs.run(path)
    picture, drawing = learning_curve(path.with_suffix(".jsonl"))
    pixels = torch.tensor(list(Image.open(picture).convert("L").resize((120, 40)).tobytes()))
    assert len(pixels.unique()) > 10
    assert "training loss" in drawing.read_text()


def test_the_logs_of_shipped_networks_are_recognised():
    recipe = jobs.recipe_of("short", "cifar10")
    for log in sorted((study.ZOO / "cifar10").glob("*.jsonl")):
        head = json.loads(log.read_text().split("\n", 1)[0])
        assert jobs.same_recipe(head["recipe"], recipe)
        assert not jobs.same_recipe(head["recipe"], dataclasses.replace(recipe, lr=0.3))
