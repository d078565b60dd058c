from ._bernoulli import BernoulliNB
from ._categorical import CategoricalNB
from ._gaussian import GaussianNB
from ._multinomial import MultinomialNB

__all__ = ["BernoulliNB", "CategoricalNB", "GaussianNB", "MultinomialNB"]
