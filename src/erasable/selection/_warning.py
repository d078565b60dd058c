"""The warning that a selection is not what was asked for."""


class SelectionWarning(UserWarning):
    """A selection is smaller than requested, less exact, or hardly useful."""
