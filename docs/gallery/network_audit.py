# %% [markdown]
# # Audit somebody else's network
#
# A company trains a PyTorch network on 300 loans. Twenty customers ask to be deleted, and the
# company says that it has done so. The model is not from erasable and has no digest. An audit
# measures whether it still shows that it was trained on the twenty.
#
# Three answers of the company are audited: it did nothing, it trained the same network a little
# longer without the twenty, or it trained a new network without them. The loans are simulated.
# This notebook needs PyTorch: `pip install 'erasable[neural]'`.

# %%
import matplotlib.pyplot as plt
import numpy as np
import torch
from sklearn.datasets import make_classification

from erasable.audit import audit_deletion

X, y = make_classification(300, 20, n_informative=6, flip_y=0.2, random_state=0)
X = X.astype(np.float32)
deleted, kept = (X[:20], y[:20]), (X[20:], y[20:])
torch.set_num_threads(1)

# %% [markdown]
# ## The model of the company
#
# An audit only needs the predictions: an object with `predict_proba` and `classes_`.


# %%
class Network:
    """A network of the company, behind the methods that an audit calls."""

    classes_ = np.array([0, 1])

    def __init__(self, seed):
        torch.manual_seed(seed)
        self.net = torch.nn.Sequential(
            torch.nn.Linear(20, 64), torch.nn.ReLU(), torch.nn.Linear(64, 2)
        )

    def train(self, X, y, n_epochs):
        """Train on all records at once, and go on where the last training has ended."""
        optimizer = torch.optim.Adam(self.net.parameters(), lr=0.01)
        X, y = torch.as_tensor(X), torch.as_tensor(y)
        for _ in range(n_epochs):
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(self.net(X), y).backward()
            optimizer.step()
        return self

    def predict_proba(self, X):
        """Return the probability of each class."""
        with torch.no_grad():
            X = torch.as_tensor(np.asarray(X, dtype=np.float32))
            return torch.softmax(self.net(X), dim=1).double().numpy()


def recipe(X, y, seed):
    """Train as the company says that it does."""
    return Network(seed).train(np.asarray(X, dtype=np.float32), np.asarray(y), n_epochs=150)


claims = {
    "nothing done": Network(1).train(X, y, 150),
    "trained longer": Network(1).train(X, y, 150).train(*kept, 30),
    "trained again": Network(1).train(*kept, 150),
}

# %% [markdown]
# ## Audit each claim
#
# The audit trains 39 networks without the twenty, by the same recipe with other seeds. If the
# deletion is complete, the model of the company is one more of them.

# %%
reports = {
    name: audit_deletion(model, kept, deleted, recipe=recipe) for name, model in claims.items()
}
for name, report in reports.items():
    print(f"{name}: {report.verdict}")

# %%
reports["trained longer"]

# %%
reports["trained again"]

# %% [markdown]
# ## The same in a picture
#
# The figure shows the mean probability that a network gives to the right classes of the twenty
# deleted records: of networks that never had them, and of the three models.


# %%
def confidence(model):
    """Return the mean probability of the right classes of the deleted records."""
    return model.predict_proba(deleted[0])[np.arange(20), deleted[1]].mean()


never = [confidence(recipe(*kept, seed)) for seed in range(100, 139)]
figure, axes = plt.subplots(figsize=(7, 3))
axes.hist(never, bins=12, color="#b0bec5", label="39 trained without them")
colors = ("#b2182b", "#e08214", "#00796b")
for color, (name, model) in zip(colors, claims.items(), strict=True):
    axes.axvline(confidence(model), color=color, linewidth=2, label=name)
axes.set(xlabel="mean probability of the right class, deleted records", ylabel="networks")
axes.legend(frameon=False, fontsize=8, loc=(0.6, 0.5))
plt.show()

# %% [markdown]
# ## What to take from it
#
# - **Found** means that the deletion was not complete. If all deletions were complete, one audit
#   in twenty would say so by chance: that is the error level, which you choose.
# - **Not found** means that this audit found no trace, and that it would have found a model that
#   had deleted nothing. It does not prove anything about copies, backups or other models.
# - **A little more training is not a deletion.** The network is still surer of the twenty than
#   networks that never had them.
# - **You need the recipe**, or records that were drawn as the deleted ones were (`fresh=`). A
#   model of another program is audited through its command line: `erasable.audit.BlackBox`.
# - [How much does a model still know?](../how-to/audit.md) describes the other audits, and what
#   they can and cannot find.
