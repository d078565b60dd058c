"""Public names of a package, each of which is imported when it is used."""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections.abc import Callable
from typing import Any

_IMPORT = re.compile(r"^from (\S+) import (\([^)]*\)|.*)", re.MULTILINE)


def from_stub(package: str) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Return ``__getattr__``, ``__dir__`` and ``__all__`` of a package by its stub.

    The stub ``__init__.pyi`` imports what the package exports, for type checkers. A model needs
    few of the modules, and a command that opens it waits for no others.

    Examples
    --------
    >>> get, _, names = from_stub("erasable.tree")
    >>> names
    ['DecisionTreeClassifier', 'DecisionTreeRegressor']
    >>> get("DecisionTreeClassifier")
    <class 'erasable.tree._decision.DecisionTreeClassifier'>
    """
    stub = pkgutil.get_data(package, "__init__.pyi")
    assert stub is not None
    homes = {
        name: home
        for home, names in _IMPORT.findall(stub.decode())
        for name in re.findall(r"\w+", names)
    }

    def get(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(importlib.import_module(homes[name]), name)

    return get, lambda: sorted(homes), sorted(homes)
