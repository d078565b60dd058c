"""A workspace: data sets, the models trained on them, and the requests to erase people from both.

>>> import tempfile
>>> from erasable.workspace import Workspace
>>> with tempfile.TemporaryDirectory() as folder:
...     workspace = Workspace.create(folder)
...     workspace.status()["requests"]
{}
"""

from typing import TYPE_CHECKING, Any

from erasable.core._optional import needs as _needs

_LATER = (
    "alembic",
    "cryptography",
    "jinja2",
    "phonenumbers",
    "pyarrow",
    "securesystemslib",
    "sqlglot",
)

if TYPE_CHECKING:
    from erasable.workspace.facade import Workspace

__all__ = ["Workspace"]


def __getattr__(name: str) -> Any:
    if name != "Workspace":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    with _needs("workspace", "erasable.workspace", *_LATER):
        from erasable.workspace.facade import Workspace  # late: the command line needs tables alone

    return Workspace


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
