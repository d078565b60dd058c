# %% [markdown]
# # Choosing data that survive
#
# A budget pays for 60 images of digits. Their owners may ask for deletion later, some groups more
# often than others. Which images are worth most *after* the deletions?
#
# The images are scikit-learn's digits. Assume that owners of digits 5 to 9 leave often: 25 % of
# them stay. Of the others, 90 % stay.

# %%
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from erasable.neighbors import KNeighborsClassifier
from erasable.selection import NearestNeighbor, SubsetSelector

digits = load_digits()
X, X_test, y, y_test = train_test_split(digits.data, digits.target, test_size=0.5, random_state=0)
staying = {digit: 0.25 if digit >= 5 else 0.9 for digit in range(10)}
k = 60

# %% [markdown]
# ## Three selections
#
# One anticipates the deletions, one takes the images that are most useful together if nobody
# leaves, and one is drawn at random.

# %%
anticipating = SubsetSelector(NearestNeighbor(), k=k, staying=staying).fit(X, y)
conventional = SubsetSelector(NearestNeighbor(), k=k).fit(X, y)
rng = np.random.default_rng(0)
selections = {
    "anticipating": anticipating.selected_,
    "conventional": conventional.selected_,
    "random": rng.choice(len(X), k, replace=False),
}
pd.DataFrame(
    {name: np.bincount(y[rows], minlength=10) for name, rows in selections.items()}
).rename_axis("digit").T

# %% [markdown]
# The anticipating selection buys more of the digits whose owners leave, so that one image can
# replace another. `balance` compares shares of the data, of the selection, and of the images that
# are expected to stay:

# %%
anticipating.balance()

# %%
for name, selector in {"anticipating": anticipating, "conventional": conventional}.items():
    after, now = (selector.value(staying=each).value for each in (staying, 1.0))
    print(f"{name}: {after:,.0f} expected after deletions, {now:,.0f} if nobody leaves")

# %% [markdown]
# ## Owners leave, and the model deletes them
#
# A classifier is trained on each selection. Then owners leave at random, with the probabilities
# above, in 40 simulated futures. Each of them deletes the images from a fitted model.


# %%
def accuracies(rows, n_futures=40):
    """Return the accuracy after each of some futures."""
    futures, found = np.random.default_rng(1), []
    for _ in range(n_futures):
        model = KNeighborsClassifier(n_neighbors=1).fit(X[rows], y[rows], ids=rows)
        leave = futures.random(len(rows)) > np.array([staying[each] for each in y[rows]])
        model.delete(rows[leave], digest=False)
        found.append(model.score(X_test, y_test))
    return found


results = {name: accuracies(rows) for name, rows in selections.items()}
figure, axes = plt.subplots(figsize=(7, 3))
axes.boxplot(list(results.values()), orientation="horizontal", tick_labels=list(results))
axes.set(xlabel="accuracy after the deletions, in 40 futures")
axes.invert_yaxis()
plt.show()

# %%
pd.DataFrame(results).describe().loc[["min", "mean", "max"]].round(3)

# %% [markdown]
# ## What to take from it
#
# - **Anticipating costs something if nobody leaves.** It gains after deletions. The gain depends
#   on how much groups differ; if all owners are alike, it is small.
# - **Check who is chosen**, by `balance(groups)`, for every group that matters. A group that leaves
#   often is overrepresented on purpose.
# - **The probabilities are estimates.** `from_history` counts past requests, and `BetaBinomial`
#   says that a rate is uncertain: see [choosing data](../selection.md#who-stays).
