"""Naive Bayes classifiers that forget: their state is sums over the records of each class.

The sums are exact, so that a deletion takes a record's terms out of them, at a cost that does not
grow with the records that stay. Everything else follows from the sums: a deletion and a refit
without the record give the same model, bit for bit.
"""

from erasable.naive_bayes._bernoulli import BernoulliNB
from erasable.naive_bayes._categorical import CategoricalNB
from erasable.naive_bayes._gaussian import GaussianNB
from erasable.naive_bayes._multinomial import MultinomialNB

__all__ = ["BernoulliNB", "CategoricalNB", "GaussianNB", "MultinomialNB"]
