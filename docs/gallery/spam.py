# %% [markdown]
# # A spam domain leaves
#
# A filter was trained on spam that may no longer be used. Deleting all of it is the safest way,
# and the most expensive one if every deletion has to be paid for. How few messages are enough, and
# which?
#
# The messages are simulated: everybody uses common words, and spam also uses words of its own,
# some messages many of them and some few. Every third message is held out, to measure the effect
# on messages that no model has seen.

# %%
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer as Words

from erasable.feature_extraction import TfidfVectorizer
from erasable.linear_model import LogisticRegression
from erasable.pipeline import make_pipeline
from erasable.removal import DomainRemoval, remove_domain

rng = np.random.default_rng(0)
common = "a the to me you now home late train lunch meeting report thanks see on is".split()
spam_words = "free win prize cash claim urgent call reply txt offer click bonus".split()
rows = []
for label in rng.choice(["ham", "spam"], 1800, p=[0.7, 0.3]):
    n_spam_words = rng.binomial(10, rng.beta(1.2, 3)) if label == "spam" else rng.binomial(10, 0.03)
    weights = 1 / np.arange(1, len(spam_words) + 1)
    words = [
        *rng.choice(spam_words, n_spam_words, p=weights / weights.sum()),
        *rng.choice(common, 11 - n_spam_words),
    ]
    rows.append({"label": label, "text": " ".join(rng.permutation(words))})
messages = pd.DataFrame(rows, index=[f"m{i:04d}" for i in range(len(rows))])
later, train = messages[::3], messages.drop(messages.index[::3])
forget = (train["label"] == "spam").to_numpy()
train.head(4)

# %% [markdown]
# ## Choose, delete, compare
#
# Messages are compared by 20 components of their words. The score `lr-maha` first deletes messages
# that are far from the messages to keep and near to the other spam. `remove_domain` deletes the
# chosen messages from a fitted model, and measures it before and after.

# %%
words = Words().fit_transform(train["text"])
components = TruncatedSVD(20, random_state=0).fit_transform(words)


def report(score, share):
    """Delete a share of the spam, chosen by a score, and measure a filter before and after."""
    model = make_pipeline(TfidfVectorizer(), LogisticRegression(C=10.0))
    return remove_domain(
        model.fit(train["text"], train["label"], ids=train.index),
        DomainRemoval(score, budget=share, random_state=0),
        train["text"],
        train["label"],
        ids=train.index,
        features=components,
        forget=forget,
        forget_label="spam",
        fresh=(later["text"], later["label"], (later["label"] == "spam").to_numpy()),
    )


print(report("lr-maha", 0.6))

# %% [markdown]
# Two rows matter. *fresh forget* is the effect: how much of later spam the filter still finds.
# *fresh retain* is the cost: what happens to later messages of other people.
#
# ## How many messages are enough?

# %%
shares = [0.1, 0.2, 0.4, 0.6, 0.8, 0.9]
found = {
    name: [report(score, share)["fresh forget"] for share in shares]
    for name, score in {"chosen by lr-maha": "lr-maha", "at random": "random"}.items()
}
figure, axes = plt.subplots(figsize=(7, 3.4))
for name, each in found.items():
    recall = [each[0].before["predicted_forget"], *(one.after["predicted_forget"] for one in each)]
    axes.plot(100 * np.array([0, *shares]), recall, "o-", label=name)
axes.set(xlabel="spam deleted, %", ylabel="share of later spam that is found", ylim=(0, 1))
axes.legend(frameon=False)
plt.show()

# %% [markdown]
# ## What to take from it
#
# - **Choosing saves deletions.** For the same effect, a random choice has to delete many more
#   messages.
# - **How many it saves depends on the data.** On real SMS, a recall of 0.6 needs 54 % of the spam
#   deleted instead of 75 %; see [the paper's experiments](../papers/removal.md#in-short). Draw this
#   curve for your data before you decide.
# - **Evaluate on messages that no model has seen.** The accuracy on the deleted messages says
#   little about the domain.
# - **This is not the erasure of a person.** The spam that is kept is still trained on. A request
#   of a person deletes all of their messages.
