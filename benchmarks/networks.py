"""Networks: what a deletion costs behind a frozen one, and in shards, against training again.

``python benchmarks/networks.py`` writes benchmarks/results/networks.json, and the section
"Measured" of docs/how-to/networks.md from it; half an hour on one core. `--parts` measures some of
it, `--quick` with few records, and writes nothing.

- ``frozen``: a small network is trained on MNIST and frozen; logistic regression learns from what
  it makes of Fashion-MNIST. Records leave one at a time, digests included. scikit-learn's logistic
  regression is fitted to the same vectors, kept.
- ``shards``: a small network learns Fashion-MNIST, whole and in shards; a record leaves.
- ``approximate``: each method forgets half of a class; against training again.

Seconds are those of the processor, so that other work on the machine does not count.
"""

from __future__ import annotations

import gzip
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import sklearn.linear_model
import torch
from sklearn.base import clone
from threadpoolctl import threadpool_limits
from torch import nn

sys.path.insert(0, str(Path(__file__).resolve().parent))  # where `backbones` is imported from

from backbones import small
from data import FOLDER
from parts import ROOT, Found, run

from erasable import load
from erasable.ensemble import ShardedClassifier
from erasable.linear_model import LogisticRegression
from erasable.neural import Embedding, NetworkClassifier
from erasable.neural import approximate as methods
from erasable.pipeline import Pipeline, make_pipeline

PAGE = ROOT / "docs" / "how-to" / "networks.md"


def images(name: str, part: str) -> tuple[Any, Any]:
    """Read images as rows of 784 numbers from 0 to 1, and their labels."""
    with gzip.open(FOLDER / name / f"{part}-images-idx3-ubyte.gz") as file:
        pixels = np.frombuffer(file.read(), np.uint8, offset=16).reshape(-1, 784)
    with gzip.open(FOLDER / name / f"{part}-labels-idx1-ubyte.gz") as file:
        labels = np.frombuffer(file.read(), np.uint8, offset=8)
    return (pixels / 255).astype(np.float32), labels.astype(np.int64)


def timed(action: Callable[[], Any]) -> tuple[float, Any]:
    """Run an action; return the seconds of the processor, and what it returned."""
    start = time.process_time()
    done = action()
    return time.process_time() - start, done


def train(path: Path) -> None:
    """Train the backbone on MNIST, with a head that is thrown away."""
    torch.manual_seed(0)
    X, y = (torch.tensor(each) for each in images("mnist", "train"))
    network, head = small().train(), nn.Linear(64, 10)
    steps = torch.optim.Adam([*network.parameters(), *head.parameters()], lr=1e-3)
    for rows in torch.randperm(len(X)).split(128):
        steps.zero_grad()
        made = head(network(X[rows].reshape(-1, 1, 28, 28)))
        nn.functional.cross_entropy(made, y[rows]).backward()
        steps.step()
    torch.save(network.state_dict(), path)


def frozen(quick: bool) -> Found:
    """Measure an exact head on a frozen network."""
    n_rows, n_timed, n_gone = (3000, 10, 20) if quick else (60_000, 200, 1000)
    X, y = (each[:n_rows] for each in images("fashion_mnist", "train"))
    new, labels = images("fashion_mnist", "t10k")
    with tempfile.TemporaryDirectory() as folder:
        weights = Path(folder) / "weights.pt"
        train(weights)

        def made() -> Pipeline:
            step = Embedding("backbones.small", str(weights), shape=(1, 28, 28))
            return make_pipeline(step, LogisticRegression())

        made().fit(X[:2000], y[:2000]).delete([0])  # compiles
        embedding, vectors = timed(lambda: made()[0].fit_transform(X))
        fitting, model = timed(lambda: made().fit(X, y))
        twin = sklearn.linear_model.LogisticRegression(max_iter=1000)
        with threadpool_limits(1):
            refit, _ = timed(lambda: twin.fit(vectors, y))
        told = model[0].transform(new)
        scores = [float(np.mean(each.predict(told) == labels)) for each in (model[1], twin)]
        leaving = np.random.default_rng(1).permutation(n_rows)[:n_gone]
        seconds = [timed(partial(model.delete, [each]))[0] for each in leaving[:n_timed].tolist()]
        for each in leaving[n_timed:].tolist():
            model.delete([each], digest=False)
        left = np.setdiff1d(np.arange(n_rows), leaving)
        fresh = made().fit(X[left], y[left], ids=left)
        model.save(Path(folder) / "model")
        again = load(Path(folder) / "model", (X[left], y[left], left), trusted=True)
        digests = {each.digest() for each in (model, fresh, again)}
        later = {each.delete(left[:3]).digest_after for each in (model, fresh, again)}
        return {
            "records": n_rows, "vectors": embedding, "head": fitting - embedding, "refit": refit,
            "scores": scores, "mean": float(np.mean(seconds)), "n_timed": n_timed,
            "median": float(np.median(seconds)), "largest": max(seconds), "n_gone": n_gone,
            "equal": len(digests) == 1 and len(later) == 1,
        }  # fmt: skip


def network(epochs: int) -> NetworkClassifier:
    """Make the network that learns."""
    return NetworkClassifier(
        "backbones.classes", shape=(1, 28, 28), max_epochs=epochs, random_state=0
    )


def shards(quick: bool) -> Found:
    """Measure a network in shards."""
    n_rows, epochs, n_timed = (1200, 1, 2) if quick else (20_000, 5, 5)
    X, y = (each[:n_rows] for each in images("fashion_mnist", "train"))
    new, labels = images("fashion_mnist", "t10k")
    whole, alone = timed(lambda: network(epochs).fit(X, y))
    rows = [{"shards": 1, "slices": 1, "fit": whole, "score": alone.score(new, labels)}]
    left = np.arange(n_timed, n_rows)
    for n_shards, n_slices in ((2, 1), (4, 1), (8, 1), (16, 1), (8, 4)):
        unfitted = ShardedClassifier(network(epochs), n_shards, n_slices=n_slices, random_state=0)
        fit, model = timed(partial(clone(unfitted).fit, X, y))
        score = model.score(new, labels)
        seconds = [timed(partial(model.delete, [each]))[0] for each in range(n_timed)]
        fresh = clone(unfitted).fit(X[left], y[left], ids=left)
        found = {"shards": n_shards, "slices": n_slices, "fit": fit, "score": score}
        found |= {"deletion": np.mean(seconds), "equal": fresh.digest() == model.digest()}
        rows.append(found)
        print(found, flush=True)
    return {"records": n_rows, "epochs": epochs, "n_timed": n_timed, "rows": rows}


def approximate(quick: bool) -> Found:
    """Measure the methods that forget about, on half of one class."""
    n_rows, epochs, seeds = (1200, 10, 2) if quick else (20_000, 10, 3)
    X, y = (each[:n_rows] for each in images("fashion_mnist", "train"))
    new, labels = images("fashion_mnist", "t10k")
    gone = np.flatnonzero(y == 6)
    gone = gone[: len(gone) // 2]
    left = np.setdiff1d(np.arange(n_rows), gone)
    sets = (X[gone], y[gone]), (X[left], y[left])
    of_class = labels == 6
    parts = {"forget": sets[0], "class": (new[of_class], labels[of_class]),
             "others": (new[~of_class], labels[~of_class])}  # fmt: skip
    tried = {type(each).__name__: each for each in (
        methods.Retrain(), methods.FineTune(), methods.NegGradPlus(), methods.WeightedFineTune(),
        methods.SalUn(), methods.SaliencyReset(), methods.Scrub(), methods.NewtonStep(),
    )}  # fmt: skip
    tried |= {"NegGradPlus(2)": methods.NegGradPlus(2), "SalUn(2)": methods.SalUn(2)}
    models = [network(epochs).set_params(random_state=seed).fit(X, y) for seed in range(seeds)]
    rows: list[Found] = [{"method": "before", "scores": _scores(models, parts)}]
    for name, method in tried.items():
        done = [
            timed(partial(clone(method).set_params(random_state=seed), model, *sets))
            for seed, model in enumerate(models)
        ]
        report = done[0][1][1]
        found = {"method": name, "scores": _scores([each[1][0] for each in done], parts)}
        found |= {"share": report.n_gradients / report.n_gradients_of_retraining}
        found |= {"seconds": float(np.mean([each[0] for each in done]))}
        rows.append(found)
        print(found, flush=True)
    return {
        "records": n_rows, "forgotten": len(gone), "epochs": epochs, "seeds": seeds, "rows": rows,
    }  # fmt: skip


def _scores(models: Any, parts: Any) -> Found:
    return {key: [float(each.score(*part)) for each in models] for key, part in parts.items()}


# -- the page ------------------------------------------------------------------------------------


def told(values: Any) -> str:
    """Write a mean and its standard error."""
    error = np.std(values, ddof=1) / len(values) ** 0.5 if len(values) > 1 else 0.0
    return f"{np.mean(values):.3f} ± {error:.3f}"


def section(found: Found) -> str:
    """Write what was measured."""
    lines = [
        "## Measured",
        "",
        "<!-- Written by benchmarks/networks.py; do not edit. -->",
        "",
        "Seconds are processor times, one thread.",
    ]
    if "frozen" in found:
        lines += _frozen_lines(found["frozen"])
    if "shards" in found:
        lines += _shard_lines(found["shards"])
    if "approximate" in found:
        lines += _approximate_lines(found["approximate"])
    return "\n".join(lines) + "\n"


def _frozen_lines(of: Found) -> list[str]:
    ratio = of["refit"] / of["mean"]
    equal = "the same digest" if of["equal"] else "**another digest**"
    return [
        "",
        f"**After a frozen network**: {of['records']:,} images of Fashion-MNIST, with vectors of "
        "64 numbers from a network that was trained on MNIST; ten classes.",
        "",
        "| | seconds |",
        "|---|---:|",
        f"| the vectors, one image at a time | {of['vectors']:.1f} |",
        f"| head of erasable; accuracy {of['scores'][0]:.3f} | {of['head']:.1f} |",
        f"| scikit-learn's head on the same vectors; accuracy {of['scores'][1]:.3f} "
        f"| {of['refit']:.1f} |",
        f"| a deletion, digests included: mean of {of['n_timed']} | {of['mean']:.2f} |",
        f"| median, largest | {of['median']:.2f}, {of['largest']:.2f} |",
        "",
        f"scikit-learn's fit takes **{ratio:.0f} times** as long as a deletion. "
        f"After {of['n_gone']:,} deletions, after saving and loading, and after three deletions "
        f"more, the model has {equal} as one that was fitted without these records.",
    ]


def _shard_lines(of: Found) -> list[str]:
    whole = of["rows"][0]["fit"]
    lines = [
        "",
        f"**In shards**: a network of three convolutions, {of['records']:,} images of "
        f"Fashion-MNIST, {of['epochs']} epochs of each record.",
        "",
        "| shards | slices | accuracy | fit | a deletion | training the whole takes |",
        "|---:|---:|---:|---:|---:|---:|",
    ]
    for row in of["rows"]:
        cells = [f"{row['shards']}", f"{row['slices']}", f"{row['score']:.3f}", f"{row['fit']:.1f}"]
        if "deletion" in row:
            cells += [f"{row['deletion']:.2f}", f"{whole / row['deletion']:.1f} times as long"]
        else:
            cells += [f"{whole:.1f} (trained again)", "-"]
        lines.append(f"| {' | '.join(cells)} |")
    equal = all(row.get("equal", True) for row in of["rows"])
    return [
        *lines,
        "",
        f"Mean of {of['n_timed']} deletions, of one record each. "
        f"{'All are' if equal else '**Not all are**'} equal to fits without the records, bit for "
        "bit. The accuracy falls because a shard of an eighth of the records takes an eighth of "
        "the steps.",
    ]


def _approximate_lines(of: Found) -> list[str]:
    lines = [
        "",
        f"**Approximate methods**: the same network, {of['epochs']} epochs; half of the shirts are "
        f"to be forgotten ({of['forgotten']:,} of {of['records']:,} images). Means of "
        f"{of['seeds']} seeds, ± the standard error; `Retrain` is the reference.",
        "",
        "| method | on forgotten shirts | on other shirts | on other classes | share of "
        "`Retrain`'s gradients | seconds |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    for row in of["rows"]:
        scores = [told(row["scores"][key]) for key in ("forget", "class", "others")]
        share = f"{row['share']:.2f}" if "share" in row else "-"
        seconds = f"{row['seconds']:.1f}" if "seconds" in row else "-"
        name = row["method"] if row["method"] == "before" else f"`{row['method']}`"
        lines.append(f"| {name} | {' | '.join(scores)} | {share} | {seconds} |")
    return [*lines, "", *_ruined(of), *_misses(of)]


def _ruined(of: Found) -> list[str]:
    """Say which methods leave a network that is of no use for what it was to keep."""
    others = {row["method"]: np.mean(row["scores"]["others"]) for row in of["rows"]}
    bad = [name for name, score in others.items() if score < 0.5 * others["Retrain"]]
    names = [f"`{name}`" for name in dict.fromkeys(name.partition("(")[0] for name in bad)]
    if not names:
        return []
    every = f"{', '.join(names[:-1])} and {names[-1]} make" if names[1:] else f"{names[0]} makes"
    return [
        f"**{every} this network useless with the paper's settings, and should not be used with "
        "them**: the network loses the classes to keep.",
        "",
    ]


def _misses(of: Found) -> list[str]:
    """Say which methods are within two standard errors of training again, and which are dear."""
    by = {row["method"]: row for row in of["rows"]}
    words = []
    for name in ("SalUn", "NegGradPlus"):
        far = []
        for key, what in (("forget", "forgotten shirts"), ("others", "other classes")):
            mine, theirs = (np.array(by[each]["scores"][key]) for each in (name, "Retrain"))
            gap = mine.mean() - theirs.mean()
            error = (mine.var(ddof=1) / len(mine) + theirs.var(ddof=1) / len(theirs)) ** 0.5
            if abs(gap) > 2 * error:
                far.append(f"{gap:+.3f} on {what}")
        words.append(
            f"`{name}` differs from `Retrain` by {' and '.join(far)}, more than two standard "
            "errors."
            if far
            else f"`{name}` is within two standard errors of `Retrain`."
        )
    dear = [f"`{row['method']}`" for row in of["rows"][2:] if row["share"] > 0.25]
    if dear:
        words.append(
            f"With the paper's epochs, these take more than a quarter of `Retrain`'s gradients: "
            f"{', '.join(dear)}."
        )
    return [" ".join(words)]


PARTS = {"frozen": frozen, "shards": shards, "approximate": approximate}


if __name__ == "__main__":
    run("networks", PAGE, PARTS, section, __doc__)
