"""Networks: a frozen one before any estimator of erasable, from which records leave exactly.

It needs PyTorch: ``pip install 'erasable[neural]'``.
"""

try:
    import torch as _torch  # noqa: F401
except ModuleNotFoundError as _error:
    raise ModuleNotFoundError(
        "erasable.neural needs torch, which is not installed; run `pip install 'erasable[neural]'`",
        name=_error.name,
    ) from None

from erasable.neural._embedding import Embedding
from erasable.neural._factories import backbone

__all__ = ["Embedding", "backbone"]
