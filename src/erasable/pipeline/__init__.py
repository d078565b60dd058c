"""Estimators in a row, from all of which a record is deleted at once.

A fitted scaler remembers deleted records, and its mean and deviation change with every deletion.
If steps handed each other matrices, every deletion would change every value, and everything after
the scaler would be learned again. So the steps of a `Pipeline` hand each other *what changed*. The
law they keep is that of every room: `delete` equals a refit without the records, in every step.

How a step takes part
---------------------
A pipeline takes estimators of erasable, and scikit-learn's transformers that learn nothing (their
tags say ``requires_fit=False``). Anything else that learns could not forget, and is refused at
`fit`, by name. What a deletion costs the *next* step depends on the kind of transformer:

=============== ========================= ======================================================
kind            examples                  a deletion
=============== ========================= ======================================================
stateless       ``FunctionTransformer``   passes through
rarely changing ``MinMaxScaler``,         the next step deletes; where an output column changed,
                ``StandardScaler(         the next step is learned again, with the same seed
                quantize=True)``
affine          ``StandardScaler``,       the next step, if it takes a map, learns from unscaled
                ``MinMaxScaler``          records behind it, and follows every change of the map
                                          without learning again; chains of maps are one map
row-wise        (TF-IDF)                  the next step gets the rows that changed, or is learned
                                          again
=============== ========================= ======================================================

Among the steps of this version the scalers and `KMeans` take a map. Before any other step, a
`StandardScaler` makes *every* deletion learn the rest again: give it ``quantize=True``.

A step says what it is with these private names, all of which have defaults:

``_is_affine``, ``_affine() -> (shift, scale)``
    Of a transformer: it maps every column on its own by ``(x - shift) / scale``, scale positive.
``_takes_affine``, ``_map``
    Of any step: it can learn from records behind a map. The pipeline sets ``_map = (shift, scale)``
    before it learns, and before each of its deletions. Its public methods still take mapped
    rows; from the pipeline they get `erasable.core.steps.Rows`, which say whether they are mapped.
``_changed_columns``, ``_changed_rows``
    Of a transformer, after its ``_delete_rows``: a mask of the columns, or the positions of the
    rows, of its output that changed for records that stay. None: any may have, which is the
    default, and makes the next step learn again at every deletion.
``_update_rows(rows, changed, before) -> Outcome``
    Of any step, if it has it: ``_delete_rows(rows)`` where besides the input rows at positions
    `changed` have other values now; `before` are those they had. Without it, the step is learned
    again.

A transformer's output for a row must not depend on the other rows it is given with, to the last
bit. For a stateless one that is checked at `fit`, on one row. NumPy's functions keep it, but some
of them, ``log`` and ``exp`` among them, differ in the last bit between kinds of processors; then so
does the digest.
"""

from erasable.pipeline._pipeline import Pipeline, make_pipeline

__all__ = ["Pipeline", "make_pipeline"]
