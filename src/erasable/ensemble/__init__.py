"""Ensembles from which records can be deleted.

After `delete` a model is, bit for bit, the one that a fit without those records makes. The members
that learn from a record are drawn for that record (or its group) alone. Trees of a forest delete a
record themselves, and so do members that are estimators of erasable; members that are estimators of
scikit-learn are fitted again if they had one of the deleted records.
"""

from erasable.core.exports import from_stub as _from_stub

__getattr__, __dir__, __all__ = _from_stub(__name__)
