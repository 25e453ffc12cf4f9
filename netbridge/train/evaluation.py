"""What a network scores on a test set."""

import torch
from torch.nn import functional as F


@torch.no_grad()
def evaluate(net, data, device=None, dtype=torch.float32, batch: int = 250) -> dict:
    """test_accuracy (a share of 1), test_errors and test_loss."""
    device = next(net.parameters()).device if device is None else device
    net.eval()
    errors, loss = 0, 0.0
    for images, labels in zip(data.test_images.split(batch), data.test_labels.split(batch), strict=True):
        shown = data.normalised(images.to(device), dtype).contiguous(memory_format=torch.channels_last)
        logits = net(shown).to(dtype)
        labels = labels.to(device)
        errors += int((logits.argmax(1) != labels).sum())
        loss += float(F.cross_entropy(logits, labels, reduction="sum"))
    count = len(data.test_labels)
    return {"test_accuracy": (count - errors) / count, "test_errors": errors, "test_loss": loss / count}
