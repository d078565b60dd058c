"""Random projections of records on fewer columns, which no record has a part in.

They are drawn for the names of the columns, and learn nothing: a deletion changes no projection.
"""

from erasable.random_projection._projection import (
    GaussianRandomProjection,
    SparseRandomProjection,
)

__all__ = ["GaussianRandomProjection", "SparseRandomProjection"]
