"""Networks: frozen before an estimator of erasable, or learning, as estimators of scikit-learn.

From behind a frozen network records leave exactly. One that learns forgets exactly by learning
again, in `erasable.refit.Refit` or in the shards of `erasable.ensemble.ShardedClassifier`.

It needs PyTorch: ``pip install 'erasable[neural]'``.
"""

from erasable.core._optional import needs as _needs

with _needs("neural", "erasable.neural"):
    from erasable.neural._approximate_network import ApproximateNetwork
    from erasable.neural._embedding import Embedding
    from erasable.neural._estimators import NetworkClassifier, NetworkRegressor
    from erasable.neural._factories import backbone

__all__ = ["ApproximateNetwork", "Embedding", "NetworkClassifier", "NetworkRegressor", "backbone"]
