"""Multilayer perceptrons whose steps are sums over records, from which a record can be deleted.

They are trained by stochastic gradient descent. Which records take part in a step is drawn record
by record, their gradients are rounded so that sums are exact, and the step is rounded to a lattice
with a random offset. A deletion subtracts the record's own gradients from the sums of the steps it
took part in. If the rounded steps stay, so does the network; otherwise it learns again from the
first step that changes. Networks of PyTorch are in `erasable.neural`.
"""

from erasable.neural_network._perceptrons import MLPClassifier, MLPRegressor

__all__ = ["MLPClassifier", "MLPRegressor"]
