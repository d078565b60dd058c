"""A person leaves a classifier of digits that is trained on vectors from a frozen network.

The network was trained only on the digits 5 to 9, and is frozen: it has never seen a record of the
classifier, which learns the digits 0 to 4. So a person is deleted exactly from the classifier,
without training the network. The digits come with scikit-learn, which does not name the writers;
here writers are assigned at random. The exit status is 1 if the classifier after the deletion is
not equal to a refit without the person.

It needs PyTorch: ``pip install 'erasable[neural]'``. A model contains the name of the function that
creates its network, here ``digits_leave.network``, which Python finds beside this script.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.datasets import load_digits

try:
    import torch
except ModuleNotFoundError:
    sys.exit(
        "this example needs torch, which is not installed; run `pip install 'erasable[neural]'`"
    )

from erasable.linear_model import LogisticRegression
from erasable.neural import Embedding, backbone
from erasable.pipeline import make_pipeline

WRITERS = 60
STEPS = 300
REPEATS = 5


@backbone
def network() -> torch.nn.Module:
    """Create the kept part of the network, which converts an image to 64 numbers."""
    return torch.nn.Sequential(
        torch.nn.Conv2d(1, 16, 3, padding=1), torch.nn.ReLU(), torch.nn.MaxPool2d(2),
        torch.nn.Conv2d(16, 16, 3, padding=1), torch.nn.ReLU(), torch.nn.MaxPool2d(2),
        torch.nn.Flatten(),
    )  # fmt: skip


def train(images: Any, labels: Any, path: Path) -> None:
    """Train the network on images, and save its weights in a file."""
    torch.manual_seed(0)
    torch.set_num_threads(1)
    kept = network()
    whole = torch.nn.Sequential(kept, torch.nn.Linear(64, 10))
    optimizer = torch.optim.Adam(whole.parameters(), lr=0.005)
    rows = torch.tensor(images.reshape(-1, 1, 8, 8), dtype=torch.float32)
    targets = torch.tensor(labels)
    for _ in range(STEPS):
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(whole(rows), targets).backward()
        optimizer.step()
    torch.save(kept.state_dict(), path)


def main() -> int:
    """Run the example; 0 if the digests were equal, 1 if not."""
    images, labels = load_digits(return_X_y=True)
    images = images / 16
    others = labels >= 5
    with tempfile.TemporaryDirectory() as folder:
        weights = Path(folder, "weights.pt")
        train(images[others], labels[others], weights)
        print(f"A network has learned from {others.sum()} digits, from 5 to 9, and is frozen.")
        return leave(images[~others], labels[~others], str(weights))


def leave(images: Any, labels: Any, weights: str) -> int:
    """Train a classifier on the frozen network, and delete a person from it."""
    writers = np.random.default_rng(0).integers(0, WRITERS, len(labels))
    known = np.arange(len(labels)) % 4 != 0
    X, y, groups = images[known], labels[known], writers[known]
    unseen, truth = images[~known], labels[~known]
    person = int(np.bincount(groups).argmax())
    stays = groups != person
    path = f"{Path(__file__).stem}.network"
    untrained = make_pipeline(Embedding(path, weights, shape=(1, 8, 8)), LogisticRegression())

    # A rehearsal compiles the kernels, so that no time below counts it.
    clone(untrained).fit(X, y, groups=groups).delete(groups=[person])
    model = clone(untrained).fit(X, y, groups=groups)
    print(f"A classifier learns the digits 0 to 4 from {len(y)} of {WRITERS} writers, made up.")
    print(f"  right, of {len(truth)} other images         {model.score(unseen, truth):.4f}")

    start = time.perf_counter()
    deletion = model.delete(groups=[person], digest=False)
    model.predict(unseen[:1])
    deleting = time.perf_counter() - start
    seconds = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        never = clone(untrained).fit(
            X[stays], y[stays], ids=np.flatnonzero(stays), groups=groups[stays]
        )
        never.predict(unseen[:1])
        seconds.append(time.perf_counter() - start)
    print(f"\nWriter {person} leaves with {len(deletion.ids)} images.")
    print(f"  right afterwards                   {model.score(unseen, truth):.4f}")
    times = f"{1e3 * deleting:.1f} ms, by a refit {1e3 * statistics.median(seconds):.1f} ms"
    print(f"  deletion, until the next prediction  {times}")

    same = model.digest() == never.digest()
    print("\nIs it the classifier that has never seen the writer?")
    print(f"  {'yes' if same else 'NO'}, by digest:")
    print(f"    deleted  {model.digest().rpartition(':')[2]}")
    print(f"    refit    {never.digest().rpartition(':')[2]}")
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())
