"""Linear support vector machines, from which a record can be deleted.

After `delete` a model is, bit for bit, the one that a fit without those records makes. The losses
are squares, so that the optimum solves linear equations of the records that have a loss; it is
published as the nearest point of a lattice, wherever training has started from.
"""

import lazy_loader as _lazy_loader

__getattr__, __dir__, __all__ = _lazy_loader.attach_stub(__name__, __file__)
