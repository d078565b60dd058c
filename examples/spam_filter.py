"""A sender leaves a spam filter, with every message, and with the words that only they used.

The messages are the SMS Spam Collection, which does not name senders. Here a hash of each message
assigns one of 600 senders, so that copies have the same sender. The messages of a sender have no
other relation. The exit status is 1 if the filter is not equal to a refit without the sender.

It needs pandas, and the data: a folder ``sms_spam`` with ``SMSSpamCollection.tsv.gz`` in the one
that ERASABLE_DATA names.
"""

from __future__ import annotations

import hashlib
import os
import pickle
import statistics
import sys
import time
from pathlib import Path
from typing import Any

import pandas as pd
from sklearn.base import clone
from sklearn.metrics import f1_score

from erasable.feature_extraction import TfidfVectorizer
from erasable.linear_model import LogisticRegression
from erasable.pipeline import make_pipeline

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
SENDERS = 600
REPEATS = 5


def read_messages() -> pd.DataFrame:
    """Read the messages, with an id and a made-up sender for each."""
    folder = Path(os.environ.get("ERASABLE_DATA") or DATA)
    if not folder.is_dir():
        sys.exit(f"no data at {folder}; set ERASABLE_DATA to the folder that holds it")
    path = folder / "sms_spam" / "SMSSpamCollection.tsv.gz"
    messages = pd.read_csv(path, sep="\t", header=None, names=["label", "text"], quoting=3)
    hashes = [int(hashlib.sha256(text.encode()).hexdigest(), 16) for text in messages["text"]]
    messages["sender"] = [f"sender-{number % SENDERS:03d}" for number in hashes]
    messages.index = [f"message-{number:04d}" for number in range(len(messages))]
    return messages


def fit(model: Any, messages: pd.DataFrame) -> Any:
    """Fit a clone."""
    return clone(model).fit(
        messages["text"], messages["label"], ids=messages.index, groups=messages["sender"]
    )


def spam_score(model: Any, messages: pd.DataFrame) -> float:
    """Return the F1 score of finding spam."""
    return float(f1_score(messages["label"], model.predict(messages["text"]), pos_label="spam"))


def found(words: set[str], model: Any) -> int:
    """Count the words that can be found in the bytes of a model."""
    content = pickle.dumps(model)
    return sum(word.encode() in content for word in words)


def main() -> int:
    """Run the example; 0 if the digests were equal, 1 if not."""
    messages = read_messages()
    numbers = messages["sender"].str[-3:].astype(int)
    known, unseen = messages[numbers % 5 != 0], messages[numbers % 5 == 0]
    sender = known["sender"].value_counts().index[0]
    others = known[known["sender"] != sender]
    untrained = make_pipeline(TfidfVectorizer(), LogisticRegression(C=10.0))

    # A rehearsal compiles the kernels, so that no time below counts it.
    fit(untrained, known).delete(groups=[sender])
    model = fit(untrained, known)
    words = set(model[0].get_feature_names_out())
    print(f"{len(known)} messages teach a filter of {len(words)} words; {len(unseen)} test it.")
    print(f"The collection names no senders. A hash of each message makes up {SENDERS}.")

    before, first = spam_score(model, unseen), unseen["text"].iloc[:1]
    start = time.perf_counter()
    deletion = model.delete(groups=[sender], digest=False)
    model.predict(first)
    deleting = time.perf_counter() - start
    after = spam_score(model, unseen)
    gone = words - set(model[0].get_feature_names_out())
    # A short word may occur in the bytes as part of a longer one.
    telling = {word for word in gone if not any(word in other for other in words - gone)}
    left = found(telling, model)
    print(f"\n{sender} leaves with {len(deletion.ids)} messages.")
    print(f"  words that nobody else used          {len(gone)}")
    print(f"  those that are part of no other word {len(telling)}, still in the model: {left}")
    print(f"  spam found in the tests (F1)         {before:.4f} before, {after:.4f} after")

    seconds = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        never = fit(untrained, others)
        never.predict(first)
        seconds.append(time.perf_counter() - start)
    times = f"{1e3 * deleting:.1f} ms, by a refit {1e3 * statistics.median(seconds):.1f} ms"
    print(f"  deletion, until the next prediction  {times}")

    same = model.digest() == never.digest()
    print("\nIs it the filter that has never seen the sender?")
    print(f"  {'yes' if same else 'NO'}, by digest:")
    print(f"    deleted  {model.digest().rpartition(':')[2]}")
    print(f"    refit    {never.digest().rpartition(':')[2]}")
    return 0 if same and telling and not left else 1


if __name__ == "__main__":
    sys.exit(main())
