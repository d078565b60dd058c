"""Any estimator of scikit-learn, deleted from by fitting again: the baseline.

Estimators that delete faster have packages of their own. For all others there is `Refit`: the same
estimator fitted on what is left, in an order and with seeds that depend on the records alone, so
that a deletion equals never having seen the record, bit for bit.
"""

from erasable.refit._refit import Refit

__all__ = ["Refit"]
