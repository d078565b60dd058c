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
                ``OneHotEncoder``         came or went, it is learned again, or resumes
affine          ``StandardScaler``,       the next step, if it takes a map, learns from unscaled
                ``RobustScaler``,         records behind it, and follows every change of the map
                ``MinMaxScaler``          without learning again; chains of maps are one map
ending in a map ``ColumnTransformer``     what comes before the map is a table, which rarely
                                          changes; the map is handed on as that of a scaler
always changing ``TfidfVectorizer``       the next step resumes from what it was, if it can, or is
                                          learned again
=============== ========================= ======================================================

`KMeans`, the scalers, the linear models, `GaussianNB`, trees and forests, nearest neighbours and
`NadarayaWatson` take a map. Before any other step, a `StandardScaler` makes *every* deletion learn
the rest again: give it ``quantize=True``.

A step says what it is with these private names, all of which have defaults:

``_is_affine``, ``_affine() -> (shift, scale)``
    Of a transformer: it maps every column on its own by ``(x - shift) / scale``, scale positive.
``_ends_in_map``, ``_transform_raw(rows)``, ``_transform_mapped(rows)``, ``_raw_change``
    Of a transformer that does something else before such a map, which ``_affine`` returns: what it
    makes of rows before the map, the map applied to that, and how the last deletion changed it.
``_whole_change``
    Of a transformer made of others, after its ``_delete_rows``: how its output changed, which the
    three names below then do not say.
``_asks_by_name``, ``_parts_refuse_gaps``
    Of a composition: whether it chooses columns of a frame by name, and needs the names within
    another one, too; and whether its parts look for gaps in their own columns.
``_takes_affine``, ``_map``
    Of any step: it can learn from records behind a map. The pipeline sets ``_map = (shift, scale)``
    before it learns, and before each of its deletions. Its public methods still take mapped
    rows; from the pipeline they get `erasable.core.rows.Rows`, which say whether they are mapped.
``_changed_columns``, ``_changed_rows``, ``_origin``
    Of a transformer, after its ``_delete_rows``: a mask of the columns, or the positions of the
    rows, of its output that changed for records that stay (None: any may have, which is the
    default, and makes the next step learn again at every deletion), and for each output column,
    where it was before, or -1 if it is new (None: where it is now).
``_transform_held(rows)``
    Of a transformer, if it has it: its output for records at these positions, from a cache, in
    arrays that nobody else has.
``_changes_all``
    Of a transformer, if it has it: whether every deletion changes its output for all records that
    stay. What is loaded then does not make the table of before.
``_update_rows(rows, changed, before) -> Outcome``
    Of any step, if it has it: ``_delete_rows(rows)`` where besides the input rows at positions
    `changed` have other values now; `before` are those they had.
``_resume(rows, origin) -> Outcome``
    Of any step, if it has it: ``_delete_rows(rows)`` where any other value may have changed, too,
    and column j is what ``origin[j]`` was. Without either of the two, the step is learned again.

A transformer's output for a row must not depend on the other rows it is given with, to the last
bit. For a stateless one that is checked at `fit`, on one row. NumPy's functions keep it, but some
of them, ``log`` and ``exp`` among them, differ in the last bit between kinds of processors; then so
does the digest.
"""

from erasable.pipeline._nodes import fusing
from erasable.pipeline._pipeline import Pipeline, make_pipeline

__all__ = ["Pipeline", "fusing", "make_pipeline"]
