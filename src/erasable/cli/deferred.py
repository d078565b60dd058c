"""Deferred execution of modules that are imported at a start and seldom used.

scikit-learn imports pandas and scipy.stats at its start, scipy f2py, numba a parser of C,
securesystemslib boto3: most of the time of a command that opens a model, and a deletion uses none
of them. The law kept here: code that uses a deferred module finds what an import makes, executed
once, after its packages; code that does not use it does not wait. It is for processes that
run one command, not for the library.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterable, Sequence
from importlib.abc import Loader
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any

DEFERRED = (
    "boto3", "narwhals", "narwhals.stable", "narwhals.stable.v1", "narwhals.stable.v2",
    "numpy.f2py", "numpy.testing", "pandas", "pycparser", "scipy.special", "scipy.stats",
    "sklearn.pipeline", "yaml",
)  # fmt: skip


def defer(names: Iterable[str] = DEFERRED) -> None:
    """Execute modules when something of them is used, rather than when they are imported.

    Those that are imported already, or are not installed, are not changed.

    >>> import sys
    >>> defer(["this"])
    >>> import this  # which prints a poem
    >>> is_waiting("this")
    True
    >>> del sys.modules["this"]
    """
    wanted = set(names) - sys.modules.keys()
    if wanted:
        sys.meta_path.insert(0, _Finder(wanted))


def is_waiting(name: str) -> bool:
    """Tell whether a module was imported, and is not executed yet."""
    return type(sys.modules.get(name)) is _Deferred


class _Finder:
    """Finds some modules, each once, and has their loaders wait."""

    def __init__(self, names: set[str]) -> None:
        self._names = names

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name not in self._names:
            _execute(name.rpartition(".")[0])
            return None
        self._names.discard(name)
        spec = PathFinder.find_spec(name, path, target)
        if spec is not None and spec.loader is not None:
            spec.loader = _Waiting(spec.loader)
        return spec


class _Waiting(Loader):
    """A loader that executes its module when something of it is used for the first time."""

    def __init__(self, loader: Loader) -> None:
        self._loader = loader
        self._lock = threading.RLock()
        self._is_at_work = False

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return _Deferred(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        module.__dict__[_WAITING] = self

    def work(self, module: ModuleType) -> None:
        """Execute a module; other threads wait for it, and this one may use what is there."""
        _execute(module.__name__.rpartition(".")[0])
        with self._lock:
            spec = module.__spec__
            if self._is_at_work or not isinstance(module, _Deferred) or spec is None:
                return
            self._is_at_work = True
            try:
                spec.loader = module.__loader__ = self._loader
                self._loader.exec_module(module)
            except BaseException:
                spec.loader = module.__loader__ = self
                self.exec_module(module)
                raise
            finally:
                self._is_at_work = False
            del module.__dict__[_WAITING]
            module.__class__ = ModuleType  # type: ignore[assignment]


def _execute(name: str) -> None:
    """Execute a module, if it waits."""
    module = sys.modules.get(name)
    waiting = module.__dict__.get(_WAITING) if isinstance(module, _Deferred) else None
    if waiting is not None:
        waiting.work(module)


class _Deferred(ModuleType):
    def __getattr__(self, name: str) -> Any:
        waiting = self.__dict__.get(_WAITING)
        if waiting is not None:
            waiting.work(self)
        if name in self.__dict__:
            return self.__dict__[name]
        if type(self) is _Deferred:  # it is being executed, by this thread
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        return getattr(self, name)


_WAITING = "__waiting__"
