"""Choosing between models: every record predicted by the model that has never seen it.

A deletion makes leave-one-out cheap: instead of n fits, one fit and n deletions that are taken
back. By the law of `erasable` the values are those of n fits, bit for bit. scikit-learn's own
tools (``cross_validate``, ``GridSearchCV``) take the estimators of erasable as they are.
"""

from erasable.model_selection._leave_one_out import LeaveOneOut, leave_one_out

__all__ = ["LeaveOneOut", "leave_one_out"]
