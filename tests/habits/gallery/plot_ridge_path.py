"""Coefficients of a Hilbert matrix, which has nearly equal rows, by the penalty."""

import matplotlib.pyplot as plt
import numpy as np

from erasable.linear_model import Ridge

X = 1.0 / (np.arange(1, 11) + np.arange(0, 10)[:, np.newaxis])
y = np.ones(10)
alphas = np.logspace(-5, 0, 50)
coefs = []
for a in alphas:
    ridge = Ridge(alpha=a, fit_intercept=False, solver="cholesky", tol=1e-6)
    ridge.fit(X, y)
    coefs.append(ridge.coef_)

ax = plt.gca()
ax.plot(alphas, coefs)
ax.set_xscale("log")
ax.set_xlim(ax.get_xlim()[::-1])
plt.xlabel("alpha")
plt.show()
scores = {f"{j} at {at}": float(coefs[at][j]) for at in (0, 20, 49) for j in range(10)}
assert ridge.solver_ == "cholesky"
tolerance = 1e-3
