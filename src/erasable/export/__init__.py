"""Fitted models as estimators of scikit-learn, for `erasable.core.estimator.Erasable.to_sklearn`.

`erasable.export._exporters` has the table that says what each estimator becomes.
"""

__all__: list[str] = []
