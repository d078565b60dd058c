"""Subroutines of kernels, compiled so that a test can call them."""

from __future__ import annotations

from types import ModuleType, SimpleNamespace
from typing import Any

from erasable.core._jit import kernel


def standalone(thing: Any) -> Any:
    """Return a subroutine as a kernel, or all that a module has, its subroutines as kernels."""
    if isinstance(thing, ModuleType):
        found = {name: _one(each) for name, each in vars(thing).items()}
        return SimpleNamespace(**found)
    return _one(thing)


def _one(thing: Any) -> Any:
    return kernel(thing.py_func) if is_subroutine(thing) else thing


def is_subroutine(thing: Any) -> bool:
    """Tell whether something is a part of kernels, which Python cannot call."""
    return bool(getattr(thing, "targetoptions", {}).get("no_cpython_wrapper"))
