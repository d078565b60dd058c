"""Recommendations from sets of items, which forget users exactly.

What is learned is how many users have two items together. These are whole numbers: a deletion
subtracts what a user adds to them, and a deletion and a refit without the user give the same
model, bit for bit.
"""

from erasable.recommend._items import ItemNeighbors

__all__ = ["ItemNeighbors"]
