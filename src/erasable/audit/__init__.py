"""After: prove that a model has forgotten.

`refit` learns again from what is left, `equality` compares. Anybody can run them, and they need
nothing but the model and its records.
"""

from erasable.audit._equality import Difference, Equality, equality
from erasable.audit._refitting import refit

__all__ = ["Difference", "Equality", "equality", "refit"]
