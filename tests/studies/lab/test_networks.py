"""Deep networks: those of a data set where they come along, else those of the digits with their own images."""

import dataclasses

from netbridge import data
from studies.lab import networks


def test_the_deep_networks_of_the_digits_have_nine_blocks_a_stage():
    found = networks.deep_networks(data.load("digits"))
    assert {one.controller for one in found.subjects} == {"constant", "SE", "StepNet"}
    assert {tuple(one.net.config["blocks"]) for one in found.subjects} == {(9, 9, 9)}
    assert str(found) == f"{len(found.subjects)} ResNet-56 of digits"


def test_where_a_data_set_has_none_those_of_the_digits_serve():
    another = dataclasses.replace(data.load("digits"), name="another")
    assert networks.deep_networks(another).data.name == "digits"


def test_deep_networks_join_only_where_they_are_asked_for():
    plain, both = (networks.shipped_files("digits", deep=deep) for deep in (False, True))
    assert set(plain) < set(both)
    assert {path.parent.name for path in set(both) - set(plain)} == {"digits-deep"}
