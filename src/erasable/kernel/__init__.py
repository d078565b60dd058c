"""Kernel machines, from which a record can be deleted.

After `delete` a model is, bit for bit, the one that a fit without those records makes. Random
features are drawn without looking at the data, so that what is learned is a linear model of them:
exact sums of products, from which those of a record are subtracted. Kernel regression learns
nothing: it is its records.
"""

from erasable.kernel._nadaraya_watson import NadarayaWatson
from erasable.kernel._random_fourier import RandomFourierRidge

__all__ = ["NadarayaWatson", "RandomFourierRidge"]
