"""Networks of the benchmark `networks.py`; by import path, as estimators name them."""

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


@backbone
def classes(n_outputs: int) -> nn.Module:
    """Make a number for each class of an image of one channel."""
    return nn.Sequential(small(), nn.Linear(64, n_outputs))
