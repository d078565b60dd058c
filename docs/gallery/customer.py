# %% [markdown]
# # A customer leaves a churn pipeline
#
# The table has numbers with gaps, categories with gaps, and a category with one customer. A
# customer who leaves changes the imputer's medians, the scaler's means, the list of categories,
# and the regression. One deletion from the pipeline changes all four.
#
# The 5,000 customers are simulated.

# %%
import time

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.base import clone

from erasable.audit import equality
from erasable.compose import make_column_transformer
from erasable.linear_model import LogisticRegression
from erasable.pipeline import make_pipeline
from erasable.preprocessing import OneHotEncoder, SimpleImputer, StandardScaler

rng = np.random.default_rng(0)
n = 5000
table = pd.DataFrame(
    {
        "age": rng.integers(18, 90, n).astype(float),
        "fee": rng.gamma(4, 8, n).round(2),
        "hours": rng.gamma(2, 5, n).round(1),
        "tickets": rng.poisson(1.2, n).astype(float),
        "plan": rng.choice(["basic", "plus", "family"], n, p=[0.6, 0.3, 0.1]),
        "country": rng.choice(["AT", "CH", "DE"], n, p=[0.2, 0.1, 0.7]),
    },
    index=[f"c{i:04d}" for i in range(n)],
)
table.loc["c0017", "country"] = "LI"
logit = 0.04 * table["fee"] + 0.7 * table["tickets"] - 0.1 * table["hours"] - 1.8
churned = pd.Series(np.where(rng.random(n) < 1 / (1 + np.exp(-logit)), "leaves", "stays"))
churned.index = table.index
gaps = table.mask(rng.random(table.shape) < 0.06)
gaps.loc["c0017", "country"] = "LI"
gaps.iloc[15:20].assign(churned=churned[15:20])

# %% [markdown]
# ## A pipeline for mixed columns

# %%
numbers, categories = ["age", "fee", "hours", "tickets"], ["plan", "country"]
columns = make_column_transformer(
    (make_pipeline(SimpleImputer(strategy="median"), StandardScaler()), numbers),
    (
        make_pipeline(
            SimpleImputer(strategy="most_frequent"), OneHotEncoder(handle_unknown="ignore")
        ),
        categories,
    ),
)
model = make_pipeline(columns, LogisticRegression()).fit(gaps, churned)
n_missing = int(gaps.isna().sum().sum())
print(f"{n_missing:,} values are missing; accuracy {model.score(gaps, churned):.3f}")


# %% [markdown]
# ## The only customer of a country leaves
#
# The model has a column and a weight for Liechtenstein, which one customer made.


# %%
def learned(model):
    """Return what each step has learned, by name."""
    parts = model[0].named_transformers_
    (imputer, scaler), (_, encoder) = parts["pipeline-1"], parts["pipeline-2"]
    values = dict(zip([f"median of {each}" for each in numbers], imputer.statistics_, strict=True))
    values |= dict(zip([f"mean of {each}" for each in numbers], scaler.mean_, strict=True))
    values["countries"] = ", ".join(encoder.categories_[1])
    values["weights"] = len(model[-1].coef_[0])
    return values


before = learned(model)
deletion = model.delete(["c0017"])
deletion

# %%
after = learned(model)
changes = pd.DataFrame({"before": before, "after": after})
changes[changes["before"] != changes["after"]]

# %% [markdown]
# The means and the median of the fee moved a little, and the country is gone with its weight. The
# whole pipeline is that of a fit without the customer:

# %%
print(equality(model))

# %% [markdown]
# ## A customer comes
#
# The pipeline learns new customers in the same way, and with them their country:

# %%
newcomer = gaps.loc[["c0018"]].assign(country="LI").set_axis(["c5000"])
model.add(newcomer, ["stays"], ids=newcomer.index)

# %%
print(learned(model)["countries"])

# %% [markdown]
# ## What it costs
#
# A hundred customers leave, one after another. Each deletion is followed by a prediction.

# %%
fits, deletions = [], []
for _ in range(5):
    start = time.perf_counter()
    clone(model).fit(gaps, churned)
    fits.append(1e3 * (time.perf_counter() - start))
for customer in rng.choice(model.ids_, 100, replace=False):
    start = time.perf_counter()
    model.delete([customer], digest=False)
    model.predict(gaps[:1])
    deletions.append(1e3 * (time.perf_counter() - start))

figure, axes = plt.subplots(figsize=(7, 3.2))
low, high = min(*fits, *deletions), max(*fits, *deletions)
axes.hist(deletions, bins=np.geomspace(low, high, 40), color="#00796b")
axes.axvline(np.median(fits), color="#e08214", linewidth=2)
axes.set(xscale="log", xlabel="milliseconds", ylabel="customers")
axes.set_title(
    f"a deletion {np.median(deletions):.1f} ms, training again {np.median(fits):.1f} ms (medians)"
)
plt.show()

# %% [markdown]
# ## What to take from it
#
# - **Pass `handle_unknown="ignore"` to encoders.** A new customer may have a category that was
#   deleted with its last customer.
# - **A category of few people is personal data.** It is a column of the model until the last of
#   them leaves. `min_frequency` puts rare categories together.
# - **The identity belongs in the index or in `groups`, never in the columns.**
# - **Convert dates to numbers that do not depend on today**, such as days since a fixed day. A
#   refit would otherwise see other data.
# - **A step that is not from erasable is refused** unless it has no state. Wrap the whole pipeline
#   of scikit-learn in `erasable.Refit` if you need one.
