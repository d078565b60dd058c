"""Estimators that make numbers of texts, and forget texts exactly: words, counts, and weights.

The vocabulary is learned from the documents, and so is everything that follows from it: which
words are too rare or too frequent, in how many documents each is, how much it weighs. A word that
only deleted documents had is gone with them.
"""

from erasable.feature_extraction._count import CountVectorizer
from erasable.feature_extraction._tfidf import TfidfVectorizer

__all__ = ["CountVectorizer", "TfidfVectorizer"]
