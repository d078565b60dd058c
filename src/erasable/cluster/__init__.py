"""Clustering models that can delete records.

A deletion goes from `_kmeans.ModelRun.exchange` to `_run.LloydRun`; `_lloyd` processes its levels.
"""

from erasable.core.exports import from_stub as _from_stub

__getattr__, __dir__, __all__ = _from_stub(__name__)
