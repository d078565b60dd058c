"""The one error that is also scikit-learn's, apart from the others, which do not import it."""

from __future__ import annotations

from sklearn.utils import _param_validation as sklearn_validation

from erasable.core.errors import InvalidInputError


class InvalidParameterError(InvalidInputError, sklearn_validation.InvalidParameterError):
    """A parameter has a wrong type, or is out of its range."""


InvalidParameterError.__module__ = "erasable.core.errors"  # where it is imported from
