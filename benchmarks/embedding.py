"""A frozen network and an exact head: what a deletion costs against training the head again.

``python benchmarks/embedding.py`` trains a small network on MNIST, freezes it, and fits logistic
regression on what it makes of Fashion-MNIST. Then records leave one at a time, digests included;
scikit-learn's logistic regression is fitted on the same vectors, kept, for comparison.
"""

from __future__ import annotations

import argparse
import gzip
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import sklearn.linear_model
import torch
from torch import nn

sys.path.insert(0, str(Path(__file__).resolve().parent))  # where `backbones` is imported from

from backbones import small
from data import FOLDER

from erasable import load
from erasable.linear_model import LogisticRegression
from erasable.neural import Embedding
from erasable.pipeline import Pipeline, make_pipeline


def images(name: str, part: str) -> tuple[Any, Any]:
    """Read images as rows of 784 numbers from 0 to 1, and their labels."""
    with gzip.open(FOLDER / name / f"{part}-images-idx3-ubyte.gz") as file:
        pixels = np.frombuffer(file.read(), np.uint8, offset=16).reshape(-1, 784)
    with gzip.open(FOLDER / name / f"{part}-labels-idx1-ubyte.gz") as file:
        labels = np.frombuffer(file.read(), np.uint8, offset=8)
    return (pixels / 255).astype(np.float32), labels.astype(np.int64)


def train(path: Path, epochs: int) -> None:
    """Train the network on MNIST, with a head that is thrown away."""
    torch.manual_seed(0)
    X, y = (torch.tensor(each) for each in images("mnist", "train"))
    network, head = small().train(), nn.Linear(64, 10)
    steps = torch.optim.Adam([*network.parameters(), *head.parameters()], lr=1e-3)
    for _ in range(epochs):
        for rows in torch.randperm(len(X)).split(128):
            steps.zero_grad()
            made = head(network(X[rows].reshape(-1, 1, 28, 28)))
            nn.functional.cross_entropy(made, y[rows]).backward()
            steps.step()
    torch.save(network.state_dict(), path)


def main() -> None:
    """Print what was measured."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=60_000)
    parser.add_argument("--deletions", type=int, default=200)
    parser.add_argument("--more", type=int, default=800, help="deletions before the comparison")
    parser.add_argument("--batch", type=int, default=1, help="records that pass at a time")
    parser.add_argument("--epochs", type=int, default=1)
    given = parser.parse_args()
    X, y = (each[: given.rows] for each in images("fashion_mnist", "train"))
    new, labels = images("fashion_mnist", "t10k")
    with tempfile.TemporaryDirectory() as folder:
        weights = Path(folder) / "weights.pt"
        train(weights, given.epochs)

        def made() -> Pipeline:
            step = Embedding(
                "backbones.small", str(weights), shape=(1, 28, 28), batch_size=given.batch
            )
            return make_pipeline(step, LogisticRegression())

        made().fit(X[:2000], y[:2000]).delete([0])  # compiles
        start = time.perf_counter()
        vectors = made()[0].fit_transform(X)
        embedding = time.perf_counter() - start
        start = time.perf_counter()
        model = made().fit(X, y)
        fitting = time.perf_counter() - start - embedding
        twin = sklearn.linear_model.LogisticRegression(max_iter=1000)
        start = time.perf_counter()
        twin.fit(vectors, y)
        refit = time.perf_counter() - start
        told = model[0].transform(new)
        print(f"{len(X):,} images, 64 numbers of each, {given.batch} at a time")
        print(f"vectors {embedding:.1f} s, head {fitting:.1f} s, scikit-learn's head {refit:.1f} s")
        print(
            f"accuracy {np.mean(model[1].predict(told) == labels):.3f}, "
            f"scikit-learn's {np.mean(twin.predict(told) == labels):.3f}"
        )
        leaving = np.random.default_rng(1).permutation(len(X))
        seconds, actions = [], []
        for each in leaving[: given.deletions].tolist():
            start = time.perf_counter()
            deletion = model.delete([each])
            seconds.append(time.perf_counter() - start)
            actions.append(deletion.action)
        mean, median, largest = np.mean(seconds), np.median(seconds), max(seconds)
        print(f"a deletion: mean {mean:.3f} s, median {median:.3f} s, largest {largest:.3f} s")
        kinds, counts = np.unique(actions, return_counts=True)
        told = ", ".join(f"{count} {kind}" for kind, count in zip(kinds, counts, strict=True))
        print(f"scikit-learn's fit takes {refit / mean:.0f} times as long; {told}")
        gone = leaving[: given.deletions + given.more]
        for each in gone[given.deletions :].tolist():
            model.delete([each], digest=False)
        left = np.setdiff1d(np.arange(len(X)), gone)
        fresh = made().fit(X[left], y[left], ids=left)
        model.save(Path(folder) / "model")
        again = load(Path(folder) / "model", (X[left], y[left], left), trusted=True)
        digests = {each.digest() for each in (model, fresh, again)}
        later = {each.delete(left[:3]).digest_after for each in (model, fresh, again)}
        print(f"after {gone.size} deletions, as a fit and after saving: {len(digests) == 1}")
        print(f"and after another: {len(later) == 1}")


if __name__ == "__main__":
    main()
