"""The networks of the experiment on images, as functions that an estimator names."""

from __future__ import annotations

from typing import Any

from torch import nn


def cnn(n_outputs: int, width: int = 32) -> nn.Module:
    """Make the paper's network: three blocks of two convolutions, a mean over places, a layer.

    Parameters
    ----------
    n_outputs : int
    width : int, default=32
        Channels of the first block; each further block has twice as many.
    """
    layers: list[nn.Module] = []
    before = 3
    for channels in (width, 2 * width, 4 * width):
        layers += [*_convolved(before, channels), *_convolved(channels, channels), nn.MaxPool2d(2)]
        before = channels
    layers += [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(before, n_outputs)]
    return nn.Sequential(*layers)


def _convolved(before: int, channels: int) -> list[nn.Module]:
    return [
        nn.Conv2d(before, channels, 3, padding=1, bias=False), nn.BatchNorm2d(channels), nn.ReLU()
    ]  # fmt: skip


def features(network: Any) -> nn.Module:
    """Return the part of a network before its last layer."""
    return nn.Sequential(*list(network.children())[:-1])
