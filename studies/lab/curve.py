"""The learning curve of a log written by `netbridge.train`."""

import json
from pathlib import Path

from odelab.plot import style


def draw(log: Path) -> list[Path]:
    """Loss, error rates and learning rate over the epochs, beside the log as PNG and SVG."""
    head, *records = [json.loads(line) for line in log.read_text().splitlines()]
    records = [record for record in records if "loss" in record]
    epochs = [record["epoch"] for record in records]
    tested = [record for record in records if "test_accuracy" in record]
    with style.figure(1, 3, height=2.4) as (drawing, axes):
        loss, error, rate = axes[0]
        loss.plot(epochs, [record["loss"] for record in records], "o-", markersize=2.5)
        loss.set(xlabel="epoch", title="training loss", yscale="log")
        error.plot(epochs, [100 - 100 * record["train_accuracy"] for record in records], label="training")
        error.plot(
            [record["epoch"] for record in tested],
            [100 - 100 * record["test_accuracy"] for record in tested],
            "o-",
            markersize=2.5,
            label="test",
        )
        error.set(xlabel="epoch", title="errors, %", ylim=(0, None))
        error.legend()
        rate.plot(epochs, [record["rate"] for record in records], color=style.COLOURS[2])
        rate.set(xlabel="epoch", title="learning rate", ylim=(0, None))
        drawing.suptitle(f"{head.get('controller', 'network')}, seed {head['seed']}, {head['dataset']}", fontsize=9)
    return style.save(drawing, log.with_suffix(""))
