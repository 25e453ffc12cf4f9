"""Every backbone, small: a function of its controller and of a whole number that sets its widths."""

import torch

import netbridge as nb

IMAGES = (2, 3, 16, 16)


def resnet(controller="constant", width=1, **options):
    return nb.resnet(8, widths=(4 * width, 4 * width, 8 * width), controller=controller, **options)


BACKBONES = {
    "ResNet": resnet,
    "ResNet with GN": lambda *given: resnet(*given, norm="group"),
    "ResNet with IN": lambda *given: resnet(*given, norm="instance"),
    "ResNet with LN": lambda *given: resnet(*given, norm="layer", post_activation=False),
    "ACNet": lambda *given: resnet(*given, convolution="asymmetric", shortcut="B"),
    "MobileNetV2": lambda controller="constant", width=1: nb.mobilenet(
        controller=controller, width=width / 8, blocks=(1, 2, 1, 1, 2, 1, 1)
    ),
    "ViT": lambda controller="constant", width=1: nb.vit(
        16, 8, 4 * width, 2, 2, controller=controller, layer_scale=0.3, stem="conv"
    ),
    "VGG": lambda controller="constant", width=1: nb.vgg(controller=controller, width=4 * width, blocks=(1, 2)),
    "VGG without BN": lambda controller="constant", width=1: nb.vgg(
        controller=controller, width=4 * width, blocks=(1, 1), normalised=False
    ),
    "MobileNetV1": lambda controller="constant", width=1: nb.mobilenet(
        1, controller=controller, width=width / 8, blocks=(1, 1, 1, 1, 1)
    ),
    "ShuffleNetV2": lambda controller="constant", width=1: nb.shufflenet(
        controller=controller, blocks=(2, 1), widths=(4 * width, 8 * width, 8)
    ),
    "RepVGG": lambda controller="constant", width=1: nb.repvgg(
        controller=controller, blocks=(1, 2), widths=(4 * width, 8 * width)
    ),
}
PLAIN = ("VGG", "VGG without BN", "MobileNetV1", "ShuffleNetV2", "RepVGG")
UNFOLDABLE = ("ResNet with GN", "ResNet with IN", "ResNet with LN")  # their statistics are each image's own


def images(precision=torch.float64):
    return torch.randn(IMAGES, dtype=precision, generator=torch.Generator().manual_seed(3))
