"""What joins the log of a training: NSI and TNS of some test images."""

import netbridge as nb
from netbridge import data
from studies.lab.stiffness import READINGS, follower


def test_a_network_of_one_block_a_stage_is_followed_by_its_nsi_alone():
    """It has no counted block, and the training ended after its first epoch."""
    digits = data.load("digits")
    found = follower(digits, 16)(nb.resnet(8, widths=(4, 4, 4)).eval(), {"epoch": 1})
    assert found["tns"] == [None] * len(READINGS)
    assert {kind: len(values) for kind, values in found["nsi"].items()} == {"slope": 3, "increment": 3}
    deeper = follower(digits, 16)(nb.resnet(20, widths=(4, 4, 4)).eval(), {"epoch": 1})
    assert all(value > 0.0 for value in deeper["tns"])
