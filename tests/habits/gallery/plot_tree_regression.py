"""A curve and its noise, learned by shallow and by deep trees."""

import matplotlib.pyplot as plt
import numpy as np

from erasable.tree import DecisionTreeRegressor

rng = np.random.RandomState(1)
X = np.sort(5 * rng.rand(80, 1), axis=0)
y = np.sin(X).ravel()
y[::5] += 3 * (0.5 - rng.rand(16))

regr_1 = DecisionTreeRegressor(max_depth=2)
regr_2 = DecisionTreeRegressor(max_depth=5)
regr_1.fit(X, y)
regr_2.fit(X, y)

X_test = np.arange(0.0, 5.0, 0.01)[:, np.newaxis]
y_1, y_2 = regr_1.predict(X_test), regr_2.predict(X_test)
plt.figure()
plt.scatter(X, y, s=20, edgecolor="black", c="darkorange", label="data")
plt.plot(X_test, y_1, color="cornflowerblue", label="max_depth=2", linewidth=2)
plt.plot(X_test, y_2, color="yellowgreen", label="max_depth=5", linewidth=2)
plt.legend()
plt.show()
scores = {"shallow": regr_1.score(X, y), "deep": regr_2.score(X, y)}
assert regr_1.get_depth() == 2
assert regr_2.get_depth() == 5
tolerance = 0.1
