"""Plans and results of step_control for its tests, with numbers of one's own."""

import json

from studies import step_control as study


def plan_of(out, shipped=study.SHIPPED, **given):
    defaults = {"dataset": "digits", "epochs": 2, "images": 128, "own": True, "out": out}
    return study.Plan(study.fill_in_options(study.Arguments(**{**defaults, **given})), shipped)


def made_up(run, errors=50, nsi=(6.0, 1.0, 5.0, 2.0, 4.0, 3.0)):
    """A result as training leaves it, with numbers of one's own."""
    return study.Result(
        specification=run.specification,
        recipe=json.loads(json.dumps(run.scale.recipe.as_json())),
        test_errors=errors,
        test_images=500,
        test_loss=0.5,
        parameters=172_506,
        nsi=nsi,
        traced=1000,
        log=[],
        made={"seconds": 1.0},
    )
