"""Networks for tests, by import path."""

from __future__ import annotations

import torch
from torch import nn

from erasable.neural import backbone


@backbone
def any_width() -> nn.Module:
    """Take rows of any number of columns."""
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Unflatten(1, (1, -1)), nn.Conv1d(1, 3, 3, padding=1), nn.Tanh(), nn.AdaptiveAvgPool1d(2),
        nn.Flatten(),
    )  # fmt: skip


class _Moments(nn.Module):
    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        return torch.stack([rows.amin(dim=1), rows.amax(dim=1)], dim=1)


@backbone
def moments() -> nn.Module:
    """Make the least and the largest value of each row: exact, so that places cannot count."""
    return _Moments()


@backbone
def images() -> nn.Module:
    """Take images of one channel and 8 x 8."""
    torch.manual_seed(1)
    return nn.Sequential(
        nn.Conv2d(1, 4, 3, stride=2), nn.BatchNorm2d(4), nn.ReLU(), nn.Dropout(0.5), nn.Flatten(),
        nn.Linear(36, 5),
    )  # fmt: skip


@backbone
def words() -> nn.Module:
    """Take numbers of words."""
    torch.manual_seed(2)
    return nn.Sequential(nn.Embedding(97, 6), nn.Flatten())


@backbone
def few_words() -> nn.Module:
    """Take numbers of letters, and of nothing."""
    torch.manual_seed(2)
    return nn.Sequential(nn.Embedding(27, 3), nn.Flatten())


def no_numbers(text: str) -> object:
    """Make of a text what is no list of whole numbers."""
    made = {"n": None, "s": list(text), "r": [[1], [1, 2]], "x": [1.5]}
    return made[text[0]]


@backbone
def numbers_of_letters(text: str) -> list[int]:
    """Cut a text into numbers from 1 to 26."""
    return [ord(letter) % 26 + 1 for letter in text]


def unmarked() -> nn.Module:
    return any_width()


class _Placed(nn.Module):
    """Add a little for each place, as kernels do whose last bits depend on where a row lies."""

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        return rows + torch.arange(len(rows))[:, None] * 2.0**-20


def placed() -> nn.Module:
    """Change a row by its place in the batch."""
    return _Placed()


class _Among(nn.Module):
    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        return rows - rows.mean(dim=0, keepdim=True)


def among() -> nn.Module:
    """Subtract the mean of the batch."""
    return _Among()


class _Quantised(nn.Module):
    """Round to 8 bits by the largest value of the batch, as dynamic int8 does."""

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        scale = rows.nan_to_num().abs().max() / 127 + 1e-9
        return (rows / scale).round() * scale


def quantised() -> nn.Module:
    return _Quantised()


class _Drawing(nn.Module):
    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        return nn.functional.dropout(rows, 0.5)


def drawing() -> nn.Module:
    return _Drawing()


def of_batches() -> nn.Module:
    return nn.Sequential(nn.Unflatten(1, (1, -1)), nn.BatchNorm1d(1, track_running_stats=False))


class _Keeping(nn.Linear):
    def get_extra_state(self) -> object:
        return {"more": 1}

    def set_extra_state(self, state: object) -> None:
        pass


def keeping() -> nn.Module:
    return _Keeping(4, 3)


def lazy() -> nn.Module:
    return nn.LazyLinear(3)


def no_network() -> int:
    return 3


def raising() -> nn.Module:
    raise RuntimeError("out of order")


class _Total(nn.Module):
    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        return rows.sum()


def total() -> nn.Module:
    return _Total()


class _Nothing(nn.Module):
    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        return rows[:, :0]


def nothing_at_all() -> nn.Module:
    return _Nothing()


class _Roots(nn.Module):
    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        return rows.sqrt()


def roots() -> nn.Module:
    return _Roots()


@backbone
def linear() -> nn.Module:
    torch.manual_seed(4)
    return nn.Linear(3, 2)


@backbone
def layers(n_features: int, n_outputs: int, width: int = 8) -> nn.Module:
    """Make a network with all that could make two trainings differ."""
    return nn.Sequential(
        nn.Linear(n_features, width), nn.BatchNorm1d(width), nn.ReLU(), nn.Dropout(0.2),
        nn.Linear(width, n_outputs),
    )  # fmt: skip


@backbone
def line(n_features: int, n_outputs: int) -> nn.Module:
    """Make one linear layer."""
    return nn.Linear(n_features, n_outputs)


@backbone
def small_images(n_outputs: int) -> nn.Module:
    """Make a network of images of one channel and 8 x 8."""
    return nn.Sequential(
        nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(4, 8, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
        nn.Linear(8, n_outputs),
    )  # fmt: skip


class _Hungry(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(2))

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        if len(rows) > 4:
            raise torch.OutOfMemoryError("no more memory")
        return rows[:, :2] * self.weight


def hungry() -> nn.Module:
    return _Hungry()
