"""Networks of torch: made by functions, with weights as plain arrays."""

from __future__ import annotations

import inspect
import math
from collections.abc import Mapping, Sequence
from numbers import Integral
from pathlib import Path
from typing import Any

import torch
from numpy.typing import NDArray

from erasable.core.errors import ArtifactError, InvalidInputError, InvalidParameterError
from erasable.neural._factories import called

Weights = dict[str, NDArray[Any]]
"""Parameters and buffers of a network, by name."""


def made(path: str, *, trusted: bool, **params: Any) -> torch.nn.Module:
    """Make a network by the import path of a function, which gets `params`; see `find_factory`.

    A network whose layers have no sizes yet is refused.
    """
    network = called(path, trusted=trusted, **params)
    if not isinstance(network, torch.nn.Module):
        raise InvalidParameterError(
            f"{path}() returned a {type(network).__name__}; expected a torch.nn.Module"
        )
    if any(torch.nn.parameter.is_lazy(each) for each in network.parameters()):
        raise InvalidParameterError(
            f"{path}() returned a network with parameters that have no shape yet; expected one "
            "whose layers know their sizes"
        )
    return network


def shaped(shape: Sequence[int] | None, n_columns: int) -> tuple[int, ...]:
    """Return the shape of a record as the user asks for it; it must have `n_columns` values.

    >>> shaped((2, 3), 6), shaped(None, 6)
    ((2, 3), (6,))
    """
    if shape is None:
        return (n_columns,)
    whole = all(isinstance(each, Integral) and each > 0 for each in shape)
    if not (whole and math.prod(shape) == n_columns):
        told = f"has {math.prod(shape)} values" if whole else "is not of whole numbers from 1"
        raise InvalidParameterError(
            f"shape={tuple(shape)} {told}; expected {n_columns}, the number of columns"
        )
    return tuple(map(int, shape))


def takes(function: Any, name: str) -> bool:
    """Tell whether a function has an argument of this name."""
    try:
        return name in inspect.signature(function).parameters
    except (TypeError, ValueError):  # of compiled code
        return False


def arrays_of(network: torch.nn.Module) -> Weights:
    """Copy the weights of a network; types that NumPy does not have are refused."""
    found = {}
    for name, value in network.state_dict().items():
        if not isinstance(value, torch.Tensor) or value.dtype is torch.bfloat16:
            told = value.dtype if isinstance(value, torch.Tensor) else type(value).__name__
            raise InvalidParameterError(
                f"the network keeps {told} under {name!r}; expected tensors of types that NumPy "
                "has; train in float32"
            )
        found[name] = value.detach().cpu().numpy().copy()
    return found


def take_arrays(network: torch.nn.Module, weights: Mapping[str, NDArray[Any]]) -> None:
    """Load weights that `arrays_of` copied; those of another network raise ArtifactError."""
    try:
        network.load_state_dict({name: torch.tensor(each) for name, each in weights.items()})
    except Exception as error:
        first = str(error).splitlines()[-1].strip()
        raise ArtifactError(
            f"the weights of the model do not fit its network: {first}; expected the network that "
            "it was fitted with; was the function changed?"
        ) from error


def take_weights(network: torch.nn.Module, weights: str) -> None:
    """Load weights from a file; those of another network raise InvalidInputError."""
    path = Path(weights)
    try:
        state = torch.load(path, map_location="cpu", weights_only=True)
    except FileNotFoundError:
        raise InvalidInputError(
            f"there is no file {weights!r}; expected the weights of the backbone, as "
            "torch.save(network.state_dict(), file) writes them"
        ) from None
    except Exception as error:
        raise InvalidInputError(
            f"{weights!r} cannot be read as weights: {type(error).__name__}; expected what "
            "torch.save(network.state_dict(), file) writes"
        ) from error
    try:
        network.load_state_dict(state)
    except Exception as error:
        first = str(error).splitlines()[-1].strip()
        raise InvalidInputError(
            f"the weights in {weights!r} do not fit the network: {first}; expected those of the "
            "same network"
        ) from error
