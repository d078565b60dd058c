"""Which estimator breaks the law in which way, and which check must catch it."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from utils.honest import Totals


class Control(NamedTuple):
    """A broken estimator, the check that it is for, and others that notice.

    Where `anywhere` is true, whatever compares with a refit may notice.
    """

    broken: type[Totals]
    check: str
    also: frozenset[str]
    anywhere: bool


CONTROLS: list[Control] = []


def breaks(
    check: str, *also: str, anywhere: bool = False
) -> Callable[[type[Totals]], type[Totals]]:
    """Register a class as the negative control of a check."""

    def register(cls: type[Totals]) -> type[Totals]:
        CONTROLS.append(Control(cls, check, frozenset(also), anywhere))
        return cls

    return register
