"""The warning that a selection is not what was asked for."""


class SelectionWarning(UserWarning):
    """A selection is smaller than was asked for, less exact, or of hardly any use."""
