"""Networks that the benchmark of embeddings freezes; by import path, as `Embedding` names them."""

from __future__ import annotations

from torch import nn

from erasable.neural import backbone


@backbone
def small() -> nn.Module:
    """Make 64 numbers of an image of one channel."""
    layers: list[nn.Module] = []
    for inner, outer in ((1, 16), (16, 32), (32, 64)):
        layers += [
            nn.Conv2d(inner, outer, 3, stride=2, padding=1),
            nn.BatchNorm2d(outer),
            nn.ReLU(),
        ]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten())
