"""Functions that users pass: whether they can be called as they will be."""

from __future__ import annotations

import inspect
from typing import Any

from erasable.core.errors import InvalidParameterError


def refuse_signature(function: Any, name: str, arguments: str) -> None:
    """Refuse a function that cannot be called with some arguments.

    Parameters
    ----------
    function : callable
    name, arguments : str
        For the message; the arguments are separated by ", ".

    Raises
    ------
    InvalidParameterError

    Examples
    --------
    >>> refuse_signature(lambda: 1.0, "metric", "left")
    Traceback (most recent call last):
    erasable.core.errors.InvalidParameterError: metric() cannot be called as metric(left); ...
    """
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
