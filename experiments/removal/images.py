"""Cats among images: read, ranked by features of a network, trained without; outcomes are stored.

Each training's outcome is a line of a JSON file outside version control, under its settings: what
is stored is not trained again.
"""

from __future__ import annotations

import functools
import hashlib
import json
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import joblib
import numpy as np
from shared import ROOT, data_sets, ranked
from sklearn.base import clone

STORE = ROOT / "build" / "removal"
PART, WHOLE = "cifar10/cifar10_cat_subset.npz", "cifar10/cifar-10-binary.tar.gz"
CAT = data_sets.CAT
N_CATS, N_PART = 1000, 9000  # of the part of the data: cats to train on, and images of others
SIDE = 32
ALL = "all"
"""The score of a deletion of every cat, whose order does not matter."""


@dataclass(frozen=True)
class Size:
    """How large images, the network and its training are.

    Attributes
    ----------
    side : int
        Of an image, in pixels; 32 or a part of it.
    width : int
        Channels of the first block of the network; the paper has 32.
    n_epochs : int
    batch_size : int
        Of trainings and of methods; the paper has 128.
    n_others : int
        Images of other classes to train on, and at most as many cats. Up to 9,000 are of the
        part of the data, 45,000 are all.
    """

    side: int = 32
    width: int = 32
    n_epochs: int = 10
    batch_size: int = 128
    n_others: int = N_PART

    @property
    def file(self) -> str:
        """The file that has as many images."""
        return PART if self.n_others <= N_PART else WHOLE


@dataclass(frozen=True)
class Job:
    """A training: by which method what leaves, chosen how.

    Attributes
    ----------
    seed : int
    method : str
        "first" is the training on all images.
    score : str
        Of `erasable.removal`; with ", pixels" on pixels; or `ALL`.
    share : float
        Of the cats, that leaves.
    """

    seed: int
    method: str
    score: str = ALL
    share: float = 0.0


@dataclass(frozen=True)
class Images:
    """Images of a split by seed, as rows of float32, and their classes.

    Attributes
    ----------
    cats, others : ndarray
        To train on; all of `cats` are of class `CAT`.
    classes : ndarray
        Of `others`.
    more_cats, more_others, more_classes : ndarray
        To judge by.
    """

    cats: Any
    others: Any
    classes: Any
    more_cats: Any
    more_others: Any
    more_classes: Any


def read(size: Size, seed: int) -> Images:
    """Read the exact images, in an order by the seed.

    Of the part of the data 1,000 cats are drawn to train on, and the others are to judge by; of the
    whole all are to train on, and cats to judge by are those of the test images.
    """
    X, y, judged, classes = _stored(data_sets.path(size.file))
    rng = np.random.default_rng(seed)
    cats = rng.permutation(np.flatnonzero(y == CAT))
    others = np.flatnonzero(y != CAT)
    whole = size.file == WHOLE
    n_cats = min(len(cats) if whole else N_CATS, size.n_others)
    if size.n_others < len(others):
        others = np.sort(rng.permutation(others)[: size.n_others])
    rest = classes != CAT
    more_cats = judged[~rest] if whole else X[cats[N_CATS:]]
    return Images(
        _rows(X[cats[:n_cats]], size), _rows(X[others], size), y[others],
        _rows(more_cats, size), _rows(judged[rest], size), classes[rest],
    )  # fmt: skip


@functools.cache
def _stored(path: Path) -> tuple[Any, Any, Any, Any]:
    """Read images and classes to train on, and those to judge by."""
    if path.suffix == ".npz":
        with np.load(path) as stored:
            X, y = stored["x_train"], stored["y_train"].astype(int)
            return X, y, stored["x_test"], stored["y_test"].astype(int)
    parts = [data_sets.cifar_images(path, f"data_batch_{i}.bin") for i in range(1, 6)]
    X, y = (np.concatenate(each) for each in zip(*parts, strict=True))
    return X, y, *data_sets.cifar_images(path, "test_batch.bin")


def _rows(images: Any, size: Size) -> Any:
    """Average images down to a side, channels first, about 0, each as a row."""
    step = SIDE // size.side
    shape = (len(images), size.side, step, size.side, step, 3)
    small = images.reshape(shape).mean(axis=(2, 4), dtype=np.float32)
    scaled = (small.transpose(0, 3, 1, 2) / 255 - 0.5) / 0.25
    return np.ascontiguousarray(scaled, dtype=np.float32).reshape(len(images), -1)


def first(size: Size, job: Job, images: Images, device: str) -> Any:
    """Train on all images, or read the network that did."""
    from erasable.neural import NetworkClassifier

    path = STORE / f"{_name(size, job.seed)}.joblib"
    if path.exists():
        return joblib.load(path)
    model = NetworkClassifier(
        "networks.cnn", network_params={"width": size.width}, shape=(3, size.side, size.side),
        max_epochs=size.n_epochs, batch_size=size.batch_size, device=device, random_state=job.seed,
    )  # fmt: skip
    y = np.concatenate([np.full(len(images.cats), CAT), images.classes])
    model.fit(np.concatenate([images.cats, images.others]), y)
    STORE.mkdir(parents=True, exist_ok=True)
    joblib.dump(model, path)
    return model


def order(size: Size, job: Job, model: Any, images: Images) -> Any:
    """Rank cats by a score of the features before the last layer, or of pixels; or read the order.

    The network is the one that learned from all images, by seed.
    """
    path = STORE / f"{_name(size, job.seed)}-{job.score}.npy"
    if path.exists():
        return np.load(path)
    name, _, pixels = job.score.partition(", ")
    sets = (images.cats, images.others)
    if not pixels:
        sets = tuple(_features(model, rows) for rows in sets)
    found = ranked(name, *(rows.astype(np.float64) for rows in sets), job.seed).order
    np.save(path, found)
    return found


def _features(model: Any, rows: Any) -> Any:
    import torch

    torch.set_num_threads(1)
    body = model.module()[:-1]
    with torch.inference_mode():
        parts = np.array_split(rows.reshape(len(rows), *model.shape), max(1, len(rows) // 250))
        return np.concatenate([body(torch.tensor(part)).numpy() for part in parts])


def outcome(size: Size, job: Job, methods: dict[str, Any], device: str) -> dict[str, float]:
    """Train as a job says; return accuracies, and the gradients that it took.

    Returns
    -------
    dict
        `cats` and `others`: accuracy on images to judge by; `forget`: on the cats that left;
        `seconds`: of the processor, for all of it.
    """
    began = time.process_time()
    images = read(size, job.seed)
    model = first(size, job, images, device)
    gone = np.arange(len(images.cats))
    found = {}
    if job.method == "first":
        found["n_gradients"] = size.n_epochs * (len(images.cats) + len(images.others))
    else:
        if job.score != ALL:
            chosen = order(size, job, model, images)
            gone = chosen[: round(job.share * len(chosen))]
        kept = np.setdiff1d(np.arange(len(images.cats)), gone)
        rows = np.concatenate([images.cats[kept], images.others])
        y = np.concatenate([np.full(len(kept), CAT), images.classes])
        method = clone(methods[job.method]).set_params(random_state=1000 + job.seed)
        forget = (images.cats[gone], np.full(len(gone), CAT))
        model, report = method(model, forget, (rows, y), allow_copies=True)
        found["n_gradients"] = report.n_gradients
        found["of_retraining"] = report.n_gradients / report.n_gradients_of_retraining
    found["cats"] = float((model.predict(images.more_cats) == CAT).mean())
    found["others"] = float((model.predict(images.more_others) == images.more_classes).mean())
    found["forget"] = float((model.predict(images.cats[gone]) == CAT).mean())
    found["seconds"] = time.process_time() - began
    return found


def _name(size: Size, seed: int) -> str:
    text = json.dumps(asdict(size) | {"seed": seed}, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


class Store:
    """Outcomes of trainings by their settings: lines of a JSON file.

    Parameters
    ----------
    path : Path
    size : Size
    methods : dict
        By name, the methods, whose parameters are part of the settings.
    """

    def __init__(self, path: Path, size: Size, methods: dict[str, Any]) -> None:
        self.path, self.size, self.methods = path, size, methods
        self.outcomes: dict[str, dict[str, float]] = {}
        if path.exists():
            for line in path.read_text(encoding="utf-8").splitlines():
                try:
                    entry = json.loads(line)
                except json.JSONDecodeError:  # it was being written when the run was stopped
                    continue
                self.outcomes[entry["settings"]] = entry["outcome"]

    def settings(self, job: Job) -> str:
        """Return the settings of a job as text."""
        method = repr(self.methods[job.method]) if job.method in self.methods else job.method
        told = asdict(self.size) | asdict(job) | {"method": " ".join(method.split())}
        return json.dumps(told, sort_keys=True)

    def __contains__(self, job: Job) -> bool:
        """Tell whether the outcome of a job is stored."""
        return self.settings(job) in self.outcomes

    def __getitem__(self, job: Job) -> dict[str, float]:
        """Return the outcome of a job."""
        return self.outcomes[self.settings(job)]

    def add(self, job: Job, found: dict[str, float]) -> None:
        """Store an outcome, as a line at the end."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        entry = {"settings": self.settings(job), "outcome": found}
        torn = self.path.exists() and not self.path.read_bytes().endswith(b"\n")
        with self.path.open("a", encoding="utf-8") as file:
            file.write("\n" * torn + json.dumps(entry) + "\n")
        self.outcomes[entry["settings"]] = found
