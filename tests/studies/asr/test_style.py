"""Style transfer in asr: styles are the same always, results come back, and the verdict follows the losses."""

import numpy as np
import pytest
import torch

from netbridge import data as datasets
from studies.asr import style
from studies.asr.findings import whole_networks
from studies.asr.findings.evidence import Evidence
from studies.lab.verdicts import CONTRADICTED, SUPPORTED, UNDECIDED
from tests.studies.asr.made_up import painted


@pytest.mark.parametrize("name", style.STYLES)
def test_a_style_is_a_picture_and_the_same_one_always(name):
    picture = style.style_picture(name)
    assert picture.shape == (3, 32, 32)
    assert 0.0 <= float(picture.min()) < float(picture.max()) <= 1.0
    assert float(picture.std()) > 0.1
    assert torch.equal(picture, style.style_picture(name))


def test_every_arm_has_as_many_seeds():
    wanted = style.plan_paintings((0, 1, 2))
    assert len({one.stem for one in wanted}) == len(wanted) == 36
    assert [one.arm for one in wanted[:4]] == list(style.ARMS)
    assert {one.style for one in wanted[:12]} == {wanted[0].style}


def test_what_is_painted_comes_back_and_a_seed_decides_all(tmp_path, monkeypatch):
    monkeypatch.setattr(style, "TESTED", 20)
    digits = datasets.load("digits")
    painting = style.Painting(style.WITH_ASR, "waves", 0, steps=2)
    one, again = style.paint(painting, digits), style.paint(painting, digits)
    assert one.evaluation == again.evaluation
    assert one.evaluation != one.batch
    style.write(one, tmp_path / f"{painting.stem}.json")
    found = style.find(painting, [tmp_path / "nothing", tmp_path])
    assert (found.evaluation, found.batch) == (one.evaluation, one.batch)
    assert np.array_equal(found.pictures, one.pictures)
    assert style.find(style.Painting(style.BATCH, "waves", 0, steps=2), [tmp_path]) is None
    other = style.Painting(style.BATCH, "waves", 0, steps=2)
    (tmp_path / f"{painting.stem}.json").rename(tmp_path / f"{other.stem}.json")
    with pytest.raises(SystemExit, match="another network"):
        style.find(other, [tmp_path])


@pytest.mark.parametrize(
    ("loss", "seeds", "wanted"),
    [(1.02, 3, SUPPORTED), (1.5, 3, CONTRADICTED), (0.5, 3, CONTRADICTED), (1.1, 3, UNDECIDED), (1.02, 2, UNDECIDED)],
)
def test_alike_is_within_a_tenth(loss, seeds, wanted):
    e = Evidence(painted=painted(style.INSTANCE, 1.0) + painted(style.WITH_ASR, loss, seeds))
    assert whole_networks.judge_paintings(e).verdict == wanted
