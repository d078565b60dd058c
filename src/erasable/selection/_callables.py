"""Check of the signatures of functions that users pass."""

from __future__ import annotations

import inspect
from typing import Any

from erasable.core.errors import InvalidParameterError


def refuse_signature(function: Any, name: str, arguments: str) -> None:
    """Raise InvalidParameterError for a function that cannot take `arguments`, such as "a, b"."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # compiled, without a signature
        return
    try:
        signature.bind(*arguments.split(", "))
    except TypeError:
        raise InvalidParameterError(
            f"{name}{signature} cannot be called as {name}({arguments}); expected a function of "
            f"({arguments})"
        ) from None
