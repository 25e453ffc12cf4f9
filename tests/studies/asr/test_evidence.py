"""asr's results and pictures: what is written down is what the network is, and nobody's weights are touched."""

import dataclasses
import json

import numpy as np
import pytest
import torch

import netbridge as nb
from netbridge import data as datasets
from netbridge.tracing.gates import with_fresh_statistics
from netbridge.train import loop, recipes, scoring, stepping
from studies.asr import accuracy, attention_values, design, evidence, whole_networks
from studies.lab import jobs
from studies.lab.networks import ZOO
from tests.studies.asr.made_up import plan_of, result


@pytest.fixture(scope="module")
def digits():
    data = datasets.load("digits")
    return dataclasses.replace(data, test_images=data.test_images[:60], test_labels=data.test_labels[:60])


def first(plan, part, arm, **more):
    return next(run for run in plan.part(part) if run.arm == arm and all(getattr(run, k) == v for k, v in more.items()))


def test_a_result_comes_back_as_it_was_written(tmp_path):
    run = plan_of(tmp_path).part("controls")[0]
    one = result(run, bound=(9.0, 40.0), noisy=(12, 0.5), beyond=(-1.0, -2.0, 0.0))
    one.write(tmp_path / f"{run.stem}.json")
    assert evidence.find(run, [tmp_path / "nothing", tmp_path]) == one
    assert evidence.find(plan_of(tmp_path).part("controls")[1], [tmp_path]) is None


def test_what_is_written_down_is_what_the_network_is(tmp_path, digits):
    run = first(plan_of(tmp_path), "noise", design.FAITHFUL, column="random 0.2")
    made = evidence.carry_out(run, digits, tmp_path, tmp_path, "cpu", keep=True)
    assert evidence.find(run, [tmp_path]) == made
    net = nb.load(tmp_path / f"{run.stem}.safetensors")
    score = scoring.evaluate(net, digits)
    assert (made.test_errors, made.test_images) == (score["test_errors"], 60)
    assert made.parameters == sum(x.numel() for x in net.parameters())
    assert made.noisy is not None
    assert made.bound is None
    few = run.job.data_of(digits)
    shown = few.normalised(few.train_images[: evidence.START_IMAGES])
    start = run.job.untrained_network(10)
    both = nb.gates(net, shown), nb.gates(with_fresh_statistics(start, shown), shown)
    for block, gates, before, trained in zip(made.blocks, *both, net.blocks, strict=True):
        assert block["mean"][1] == pytest.approx(float(gates.h.mean()), rel=1e-4)
        assert block["mean"][0] == pytest.approx(float(before.h.mean()), rel=1e-4)
        assert block["alive"] == [before.alive, gates.alive]
        assert block["hidden"] == gates.hidden > 0
        assert block["psi"][2] == pytest.approx(0.1)
        assert block["psi"][0] == pytest.approx(float(trained.controller.psi.detach().mean()), rel=1e-4)
    assert len(made.log) == 2


def test_a_plain_network_has_its_bound_and_leaves_no_weights(tmp_path, digits):
    run = first(plan_of(tmp_path), "controls", design.PLAIN)
    made = evidence.carry_out(run, digits, tmp_path, tmp_path, "cpu")
    assert made.bound[0] > 0
    assert made.bound[1] < 10 ** made.bound[0]
    assert {path.suffix for path in tmp_path.iterdir()} == {".json"}


def test_training_goes_on_where_it_was_stopped(tmp_path, digits):
    run = first(plan_of(tmp_path), "backbones", design.FAITHFUL, column="VGG")
    whole = evidence.carry_out(run, digits, tmp_path / "whole", tmp_path / "whole", "cpu")
    path = tmp_path / f"{run.stem}.safetensors"
    jobs.train(run.job, digits, path, "asr", "cpu", stop_after=1)
    assert len(path.with_suffix(".jsonl").read_text().splitlines()) == 2  # the head and one epoch
    again = evidence.carry_out(run, digits, tmp_path, tmp_path, "cpu")
    assert (again.test_loss, again.test_errors) == (whole.test_loss, whole.test_errors)
    assert again.blocks == []  # a VGG has no steps
    assert [line["loss"] for line in again.log] == [line["loss"] for line in whole.log]


def test_constants_stay_where_they_were_put_when_the_rest_goes_on(tmp_path, digits):
    plan = plan_of(tmp_path)
    run = first(plan, "finetuned", "SRM")
    made = attention_values.fine_tune(run, digits, tmp_path, tmp_path, "cpu", keep=True)
    net = nb.load(tmp_path / f"{run.stem}.safetensors")
    path = ZOO / "digits" / f"{run.job.stem}.safetensors"
    for block, wanted in zip(net.blocks, attention_values.constant_copy(path, digits).blocks, strict=True):
        assert torch.equal(block.controller.psi, wanted.controller.psi)
    before = evidence.right_answers(nb.load(path), digits, 60).mean()
    assert made.beyond[0] == pytest.approx(made.accuracy - 100 * before, abs=1e-3)
    assert made.beyond[1] <= made.beyond[0] <= made.beyond[2]
    assert evidence.find(run, [tmp_path]) == made


def test_an_observer_changes_no_bit_and_remembers_over_sessions(digits, tmp_path):
    def trained(**more):
        torch.manual_seed(0)
        net = nb.resnet(8, widths=(4, 8, 8), controller="se")
        recipe = recipes.recipe("digits", epochs=2)
        return loop.train(net, digits, recipe, quiet=True, device="cpu", **more)

    def moved(name, *sessions):
        for stop in sessions:
            trained(path=tmp_path / f"{name}.safetensors", on_epoch=evidence.Observer(digits), stop_after=stop)
        lines = (tmp_path / f"{name}.jsonl").read_text().splitlines()[1:]
        return [json.loads(line).get("moved") for line in lines]

    assert moved("two", 1, 2) == moved("one", 2)

    seen = []
    observer = evidence.Observer(digits)
    watched = trained(on_epoch=lambda net, record: seen.append(observer(net, record)))
    for (name, x), y in zip(trained().state_dict().items(), watched.state_dict().values(), strict=True):
        assert torch.equal(x, y), name
    assert set(seen[0]) == {"spread", "means"}
    assert [len(channels) for channels in seen[1]["means"]] == [4, 8, 8]
    gates = nb.gates(watched.eval(), observer.images)
    assert seen[1]["means"][0] == pytest.approx(1000 * gates[0].h.mean(0).numpy(), abs=0.5 + 1e-3)
    assert set(seen[1]["moved"]) == {"gate 0", "gate 1", "gate 2", "scales", "logits"}


def test_a_movement_by_hand():
    """Differences 1 and 3, mean 2; the values behind have the standard deviation 2."""
    assert evidence.relative_change(torch.tensor([0.0, 2.0]), torch.tensor([1.0, 5.0])) == pytest.approx(1.0)
    assert evidence.relative_change(torch.tensor([0.0, 2.0]), torch.tensor([5.0, 5.0])) is None


def test_decay_alone_by_hand():
    """Without momentum every step multiplies by 1 - rate * decay: here 6 steps, the last two at a tenth of the rate."""
    recipe = recipes.Recipe("mine", 3, 10, lr=0.5, momentum=0.0, weight_decay=0.1, schedule="steps", drops=(2,))
    assert accuracy.decay_alone({"recipe": recipe.as_json(), "images": 20}) == pytest.approx(0.95**4 * 0.995**2)
    kept = dataclasses.replace(recipe, decay_gates=False)
    assert accuracy.decay_alone({"recipe": kept.as_json(), "images": 20}) == 1.0


def test_decay_alone_is_what_the_optimiser_does():
    recipe = recipes.recipe("short", epochs=2)
    net = nb.resnet(8, widths=(4, 8, 8), controller="asr(se)")
    optimizer = stepping.make_optimizer(net, recipe)
    psi = net.blocks[0].controller.psi
    for step in range(6):
        for group in optimizer.param_groups:
            group["lr"] = recipe.rate(step, 3)
        optimizer.zero_grad()
        psi.grad = torch.zeros_like(psi)
        optimizer.step()
    alone = accuracy.decay_alone({"recipe": recipe.as_json(), "images": 3 * recipe.batch})
    assert psi.detach().mean() == pytest.approx(0.1 * alone, rel=1e-5)
    assert alone < 0.9999


@pytest.mark.parametrize("seed", [0, 1])
def test_initial_gates_are_those_that_training_began_with(seed):
    """The order of random draws is a promise: SE's biases before and after training are correlated in every block."""
    path = ZOO / "cifar10" / f"resnet20-se-seed{seed}.safetensors"
    wrong = ZOO / "cifar10" / f"resnet20-se-seed{1 - seed}.safetensors"
    trained = nb.load(path)
    for start, right in (
        (attention_values.before_training(path), True),
        (attention_values.before_training(wrong), False),
    ):
        biases = [
            [block.controller.excite[2].bias.detach().double() for block in net.blocks] for net in (start, trained)
        ]
        found = evidence.correlation(*map(torch.cat, biases))
        assert (found > 0.6) if right else (abs(found) < 0.3)


def test_a_job_rebuilds_what_train_builds():
    """`studies.train` draws from the seed and builds the network; so does the study, and nothing in between."""
    job = jobs.Job("cifar10", "se", 4, jobs.recipe_of("short", "cifar10"))
    torch.manual_seed(4)
    wanted = nb.resnet(20, 10, "se").state_dict()
    assert all(torch.equal(x, wanted[name]) for name, x in job.untrained_network(10).state_dict().items())


# Pictures repainted


@pytest.mark.parametrize("name", whole_networks.STYLES)
def test_a_style_is_a_picture_and_the_same_one_always(name):
    picture = whole_networks.style_picture(name)
    assert picture.shape == (3, 32, 32)
    assert 0.0 <= float(picture.min()) < float(picture.max()) <= 1.0
    assert float(picture.std()) > 0.1
    assert torch.equal(picture, whole_networks.style_picture(name))


def test_every_arm_has_as_many_seeds():
    wanted = whole_networks.plan_paintings((0, 1, 2))
    assert len({painting.stem for painting in wanted}) == len(wanted) == 36
    assert [painting.arm for painting in wanted[:4]] == list(whole_networks.ARMS)
    assert {painting.style for painting in wanted[:12]} == {wanted[0].style}


def test_what_is_painted_comes_back_and_a_seed_decides_all(tmp_path, digits):
    painting = whole_networks.Painting(whole_networks.WITH_ASR, "waves", 0, steps=2)
    painted, again = (whole_networks.paint(painting, digits) for _ in range(2))
    assert painted.evaluation == again.evaluation
    assert painted.evaluation != painted.batch
    whole_networks.write_painted(painted, tmp_path / f"{painting.stem}.json")
    read = whole_networks.find_painted(painting, [tmp_path / "nothing", tmp_path])
    assert (read.evaluation, read.batch) == (painted.evaluation, painted.batch)
    assert np.array_equal(read.pictures, painted.pictures)
    other = whole_networks.Painting(whole_networks.BATCH, "waves", 0, steps=2)
    assert whole_networks.find_painted(other, [tmp_path]) is None
    (tmp_path / f"{painting.stem}.json").rename(tmp_path / f"{other.stem}.json")
    with pytest.raises(SystemExit, match="another network"):
        whole_networks.find_painted(other, [tmp_path])
