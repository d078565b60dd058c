"""A workspace: data sets, the models trained on them, and the requests to erase people from both.

>>> import tempfile
>>> with tempfile.TemporaryDirectory() as folder:
...     workspace = Workspace.create(folder)
...     workspace.status()["requests"]
{}
"""

from erasable.core._optional import needs as _needs

_LATER = "alembic", "cryptography", "jinja2", "pyarrow", "securesystemslib"

with _needs("workspace", "erasable.workspace", *_LATER):
    from erasable.workspace.facade import Workspace

__all__ = ["Workspace"]
