"""Naive Bayes classifiers that forget: their state is sums over the records of each class.

The sums are exact, so that a deletion takes a record's terms out of them, at a cost that does not
grow with the records that stay. Everything else follows from the sums: a deletion and a refit
without the record give the same model, bit for bit.
"""

from erasable.core.exports import from_stub as _from_stub

__getattr__, __dir__, __all__ = _from_stub(__name__)
