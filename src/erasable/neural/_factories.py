"""Functions by their import path: those that make networks, and those that tokenize texts.

A file of a model may name such a function, but must not choose what is run. So for a file that is
not the caller's own, only a function that its author has marked, in a module that is imported
already, is called.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from typing import Any, TypeVar

from erasable.core.errors import ArtifactError, ErasableError, InvalidParameterError
from erasable.core.ids import shorten
from erasable.core.params import function_path

Function = TypeVar("Function", bound=Callable[..., Any])

_MARK = "__erasable_backbone__"


def backbone(function: Function) -> Function:
    """Mark a function as one that files of models may name.

    `Embedding` calls any function that its user names. A model that is loaded from a file, and not
    with ``trusted=True``, calls none but those that are marked, and does not import their modules.

    Parameters
    ----------
    function : callable
        Makes a network, or cuts a text into numbers.

    Returns
    -------
    callable
        The same function.

    Examples
    --------
    >>> import torch
    >>> @backbone
    ... def flat():
    ...     return torch.nn.Flatten()
    >>> flat()
    Flatten(start_dim=1, end_dim=-1)
    """
    setattr(function, _MARK, True)
    return function


def refuse_no_path(value: Any, name: str) -> None:
    """Refuse a function in place of its import path."""
    parts = value.split(".") if isinstance(value, str) else []
    if len(parts) > 1 and all(part.isidentifier() for part in parts):
        return
    path = repr(function_path(value)) if hasattr(value, "__qualname__") else "'nets.small'"
    got = shorten(value) if isinstance(value, str) else f"a {type(value).__name__}"
    raise InvalidParameterError(
        f"The {name!r} parameter must be the import path of a function, so that a "
        f"file can name it. Got {got} instead; pass a string like {path}"
    )


def find_factory(path: str, *, trusted: bool) -> Any:
    """Return a function by its import path.

    Unless `trusted`, a file names it: then ArtifactError is raised if it is not marked with
    `backbone`, or not imported.
    """
    home, _, name = path.rpartition(".")
    if not trusted:
        found: Any = getattr(sys.modules.get(home), name, None)
        if not (callable(found) and getattr(found, _MARK, False)):
            raise ArtifactError(
                f"the file names the function {path!r}, which would be called; expected one that "
                f"is marked with erasable.neural.backbone, in a module that is imported; import "
                f"{home}, or pass load(path, trusted=True) if the file is your own"
            )
        return found
    try:
        found = getattr(importlib.import_module(home), name, None)
    except Exception as error:  # whatever the module raises
        told = error if isinstance(error, ImportError) else f"{type(error).__name__}: {error}"
        raise InvalidParameterError(
            f"{path!r} cannot be imported: {told}; expected the import path of a function, "
            "like 'nets.small'; is its module on sys.path?"
        ) from error
    if not callable(found):
        raise InvalidParameterError(
            f"the module {home!r} has no function {name!r}; expected one; pass another import path"
        )
    return found


def called(path: str, *, trusted: bool, **params: Any) -> Any:
    """Call the function of an import path."""
    function = find_factory(path, trusted=trusted)
    try:
        return function(**params)
    except ErasableError:
        raise
    except Exception as error:
        raise InvalidParameterError(
            f"{path}() raised {type(error).__name__}: {error}; expected a network; call it yourself"
        ) from error
