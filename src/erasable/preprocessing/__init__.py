"""Scalers, encoders and imputers from which a record can be deleted.

A fitted scaler remembers its records: a minimum is the value of one of them, and a mean and a
standard deviation depend on all. So does an encoder, whose rarest category may be that of one
record. A deletion equals a refit without the records. Its cost does not grow with the records that
stay, but for columns that have to be read again.
"""

from erasable.core.exports import from_stub as _from_stub

__getattr__, __dir__, __all__ = _from_stub(__name__)
