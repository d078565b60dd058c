"""Decision trees, from which a record can be deleted.

After `delete` a tree is, bit for bit, the one that a fit without those records grows. What a node
decides is a function of its records: which features it looks at and which thresholds it tries is
drawn by hashes of names and values, scores are formulas of exact counts, and ties have an order.
Forests are in `erasable.ensemble`.
"""

from erasable.tree._decision import DecisionTreeClassifier, DecisionTreeRegressor

__all__ = ["DecisionTreeClassifier", "DecisionTreeRegressor"]
