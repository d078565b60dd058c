# %% [markdown]
# # An author leaves a text classifier
#
# A classifier of posts learns words that only one author uses: a signature, a dialect, the name of
# a street. When the author leaves, the posts leave, the words leave, and what the author
# contributed to all other words leaves.
#
# The posts are simulated. Each of 60 authors writes about one subject, in common words, in words
# of the subject, and in three words of their own.

# %%
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from erasable.audit import equality
from erasable.feature_extraction import TfidfVectorizer
from erasable.linear_model import LogisticRegression
from erasable.pipeline import make_pipeline

rng = np.random.default_rng(3)
common = "the a we you that this game team now then see good think year last play time".split()
subject_words = {
    "baseball": ["pitcher", "inning", "bat", "runs", "base", "catcher", "homer", "league"],
    "hockey": ["puck", "ice", "goalie", "period", "skate", "rink", "playoff", "league"],
}
syllables = [a + b for a in "bdfglmnprstvz" for b in "aeiou"]


def word():
    """Invent a word."""
    return "".join(rng.choice(syllables, 3))


own_words = {f"author-{i:02d}": [word() for _ in range(3)] for i in range(60)}
rows = []
for i, (author, own) in enumerate(own_words.items()):
    subject = ["baseball", "hockey"][i % 2]
    for _ in range(rng.integers(4, 30)):
        words = [
            *rng.choice(common, 9),
            *rng.choice(subject_words[subject], rng.integers(0, 3)),
            *rng.choice(own, 2),
        ]
        rows.append(
            {"author": author, "subject": subject, "text": " ".join(rng.permutation(words))}
        )
posts = pd.DataFrame(rows, index=[f"post-{i:04d}" for i in range(len(rows))])
posts.head(3)

# %% [markdown]
# ## Train, with authors as groups

# %%
model = make_pipeline(TfidfVectorizer(sublinear_tf=True), LogisticRegression(C=10.0))
model.fit(posts["text"], posts["subject"], groups=posts["author"])
leaving = posts["author"].value_counts().index[0]
own = posts[posts["author"] == leaving]
print(f"{len(posts)} posts; {leaving} wrote {len(own)} of them, about {own['subject'].iloc[0]}")

# %% [markdown]
# ## What the model knows of the author
#
# A text of the author's own words alone says nothing about sports. The model is sure anyway,
# because it recognises the author.

# %%
signature = " ".join(own_words[leaving])
column = list(model.classes_).index(own["subject"].iloc[0])


def sure(texts):
    """Return the probability of the author's subject for each text."""
    return model.predict_proba(texts)[:, column]


before, words_before = sure(own["text"]), set(model[0].vocabulary_)
print(f"{signature!r}: {sure([signature])[0]:.3f}")

# %% [markdown]
# ## The author leaves

# %%
deletion = model.delete(groups=[leaving])
deletion

# %%
after, words_after = sure(own["text"]), set(model[0].vocabulary_)
print("words that left with the author:", *sorted(words_before - words_after))
print(f"{signature!r}: {sure([signature])[0]:.3f}")
print(equality(model))

# %% [markdown]
# The signature now has the probability of an empty text. The posts of the author are predicted by
# their other words, as posts of a stranger are:

# %%
figure, axes = plt.subplots(figsize=(4.6, 4.2))
axes.plot([0, 1], [0, 1], color="#7f8c8d", linewidth=1)
axes.scatter(before, after, color="#00796b", s=26, alpha=0.7, linewidths=0)
axes.set(xlabel="probability of the right subject, before", ylabel="after")
axes.set(xlim=(0, 1.02), ylim=(0, 1.02), aspect="equal")
plt.show()

# %% [markdown]
# ## What to take from it
#
# - **The vocabulary is personal data.** A name or a misspelling that one author used is a column
#   of the model, and readable in its file. It is deleted with the last post that has it. With
#   `min_df=2` a word of a single post never becomes a column.
# - **Quotes stay.** Words of the author that others quoted are in *their* posts. Remove quotes
#   before training if this matters.
# - **Every weight changes**, because each inverse document frequency depends on the number of
#   posts. `CountVectorizer` and `TfidfVectorizer(quantize=True)` change less, and delete faster.
# - `examples/spam_filter.py` and `examples/users_with_many_records.py` do the same with public
#   data.
