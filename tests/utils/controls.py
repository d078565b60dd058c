"""Which estimator breaks the law in which way, and which check must catch it."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from utils.honest import Totals


class Control(NamedTuple):
    """A broken estimator, the check that it is for, and others that notice."""

    broken: type[Totals]
    check: str
    also: frozenset[str] = frozenset()


CONTROLS: list[Control] = []


def breaks(check: str, *also: str) -> Callable[[type[Totals]], type[Totals]]:
    """Register a class as the negative control of a check."""

    def register(cls: type[Totals]) -> type[Totals]:
        CONTROLS.append(Control(cls, check, frozenset(also)))
        return cls

    return register
