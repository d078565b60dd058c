"""Clustering models that can delete records.

A deletion goes from `_kmeans.ModelRun.exchange` to `_run.LloydRun`; `_lloyd` processes its levels.
"""

import lazy_loader as _lazy_loader

__getattr__, __dir__, __all__ = _lazy_loader.attach_stub(__name__, __file__)
