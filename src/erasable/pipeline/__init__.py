"""Estimators in a row, from all of which a record is deleted at once.

A fitted scaler remembers deleted records, and its mean and deviation change with every deletion.
If steps handed each other matrices, every deletion would change every value, and everything after
the scaler would be learned again. So the steps of a `Pipeline` hand each other *what changed*.
After `delete`, every step is what a fit without the records makes.

Pipelines and column transformers, nested in any way, are one graph (`erasable.pipeline._nodes`),
with which one engine works (`erasable.pipeline._engine`).

How a step takes part
---------------------
A pipeline takes estimators of erasable, and scikit-learn's transformers that learn nothing of
records: their tags say ``requires_fit=False``, or `erasable.pipeline._stateless` knows that they
look at the number of columns alone. They are given arrays, without names. Anything else that
learns could not forget, and is refused at `fit`, by name. What a deletion costs the *next* step
depends on the kind of transformer:

=============== ========================= ======================================================
kind            examples                  a deletion
=============== ========================= ======================================================
stateless       ``FunctionTransformer``   passes through
rarely changing ``MinMaxScaler``,         the next step deletes; where an output column changed,
                ``OneHotEncoder``         came or went, it is learned again, or resumes
affine          ``StandardScaler``,       the next step, if it takes a map, learns from unscaled
                ``RobustScaler``,         records behind it, and follows every change of the map
                ``MinMaxScaler``          without learning again; chains of maps are one map
ending in a map ``ColumnTransformer``     what comes before the map is a table, which rarely
                                          changes; the map is handed on as that of a scaler
always changing ``TfidfVectorizer``       the next step resumes from what it was, if it can, or is
                                          learned again
=============== ========================= ======================================================

`KMeans`, `DBSCAN`, the scalers, the linear models, `GaussianNB`, trees and forests, nearest
neighbours, `KernelDensity` and `NadarayaWatson` take a map. Before any other step, a
`StandardScaler` makes *every* deletion learn the rest again: give it ``quantize=True``.

What a step says of itself, and what it is told, are the methods of
`erasable.core.protocol.Learner` and `erasable.core.protocol.Transformer`, all of which have
defaults. What a deletion changed in the output of a step is an `erasable.core.changes.TableChange`.

A transformer's output for a row must not depend on the other rows it is given with, to the last
bit. For a stateless one that is checked at `fit`, on one row. NumPy's functions keep it, but some
of them, ``log`` and ``exp`` among them, differ in the last bit between kinds of processors; then so
does the digest.
"""

from erasable.pipeline._layout import fusing
from erasable.pipeline._pipeline import Pipeline, make_pipeline

__all__ = ["Pipeline", "fusing", "make_pipeline"]
