from erasable.naive_bayes._bernoulli import BernoulliNB
from erasable.naive_bayes._categorical import CategoricalNB
from erasable.naive_bayes._gaussian import GaussianNB
from erasable.naive_bayes._multinomial import MultinomialNB

__all__ = ["BernoulliNB", "CategoricalNB", "GaussianNB", "MultinomialNB"]
