"""The tables of the page."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import paper
from contenders import TITLES
from data import SOURCES
from results import NONE, Results, fixed, mean, over, significant, spread, table

Run = dict[str, Any]
OWN = ("kmeans", "quantized", "divide")


def data_sets(results: Results) -> str:
    """What was clustered."""
    rows = []
    for name, source in SOURCES.items():
        cell = results.any_stream(name)
        shape = f"{cell['shape'][0]:,} x {cell['shape'][1]}" if cell else NONE
        rows.append([source.title, shape, str(cell["k"]) if cell else NONE, source.what])
    return table(["data set", "n x d", "k", "what"], rows, left=(0, 3))


def scaled_up(cell: Run) -> bool:
    """Tell whether the budget cut a stream short, so that its total is an extrapolation."""
    return any(run["timed"] < cell["deletions"] for run in cell["replicates"])


def _printed(pair: paper.Pair) -> str:
    return f"{pair[0]:g} ± {pair[1]:g}"


def _beside(
    results: Results,
    printed: dict[str, tuple[paper.Pair, paper.Pair, paper.Pair]],
    peer: Callable[[str, str], str],
    own: Callable[[str, str], str],
) -> str:
    header = ["data set", *("paper: " + t for t in ("k-means", "Q", "DC"))]
    header += ["k-means to convergence", "scikit-learn, 10 iterations"]
    header += [TITLES[model] for model in OWN]
    rows = []
    for name, source in SOURCES.items():
        theirs = printed.get(paper.NAMES.get(name, ""))
        row = [source.title, *(map(_printed, theirs) if theirs else [NONE] * 3)]
        if results.any_stream(name) is None:
            row += [NONE] * 5
        else:
            row += [peer(name, "converged"), peer(name, "judged")]
            row += [own(name, model) for model in OWN]
        rows.append(row)
    for other in paper.OTHERS:
        rows.append([f"{other} (paper)", *map(_printed, printed[other]), *[NONE] * 5])
    return table(header, rows)


def _last(cell: Run) -> str:
    return str(cell["deletions"])


def base_loss(cell: Run, after: str) -> float:
    """Return the mean loss of k-means run until convergence."""
    where = after if after == _last(cell) else "0"
    return float(np.mean([run["peer"]["converged"][where]["loss"] for run in cell["replicates"]]))


def ratios(cell: Run | None, after: str | None = None) -> list[float]:
    """Return a model's loss ratios, by replicate."""
    if cell is None:
        return []
    after = after or _last(cell)
    base = base_loss(cell, after)
    return over(cell, lambda run: run["judged"][after]["loss"] / base)


def paper_table_1(results: Results) -> str:
    """Loss ratios."""

    def peer(name: str, which: str) -> str:
        cell = results.any_stream(name)
        assert cell is not None
        base, last = base_loss(cell, _last(cell)), _last(cell)
        return fixed(over(cell, lambda run: run["peer"][which][last]["loss"] / base))

    return _beside(results, paper.LOSS, peer, lambda n, m: fixed(ratios(results.stream(n, m))))


def _metric_table(
    results: Results, printed: dict[str, tuple[paper.Pair, paper.Pair, paper.Pair]], metric: str
) -> str:
    def read(cell: Run | None, where: Callable[[Run], Run]) -> str:
        if cell is None:
            return NONE
        last = _last(cell)
        return fixed(over(cell, lambda run: where(run)[last][metric]))

    return _beside(
        results,
        printed,
        lambda n, which: read(results.any_stream(n), lambda run: run["peer"][which]),
        lambda n, model: read(results.stream(n, model), lambda run: run["judged"]),
    )


def paper_table_2(results: Results) -> str:
    """Silhouettes."""
    return _metric_table(results, paper.SILHOUETTE, "silhouette")


def paper_table_3(results: Results) -> str:
    """Mutual information."""
    return _metric_table(results, paper.NMI, "nmi")


def refits(cell: Run | None) -> list[float]:
    """Return the seconds that scikit-learn's refits take, by replicate."""
    return over(cell, lambda run: run["peer"]["mean"] * cell["deletions"] if cell else 0.0)


def paper_table_4(results: Results) -> str:
    """Runtimes and speed-ups."""
    header = ["data set", "paper: k-means (s)", "Q (s)", "speed-up", "DC (s)", "speed-up"]
    header += ["scikit-learn refits (s)"]
    for model in OWN:
        header += [f"{TITLES[model]} (s)", "speed-up"]
    rows = []
    for name, source in SOURCES.items():
        theirs = paper.RUNTIME.get(paper.NAMES.get(name, ""))
        row = [source.title, *(_paper_runtime(theirs) if theirs else [NONE] * 5)]
        row.append(spread(refits(results.any_stream(name))))
        for model in OWN:
            row += _runtime(results.stream(name, model))
        rows.append(row)
    for other in paper.OTHERS:
        rows.append([f"{other} (paper)", *_paper_runtime(paper.RUNTIME[other]), *[NONE] * 7])
    return table(header, rows)


def _paper_runtime(row: tuple[paper.Pair, paper.Pair, paper.Pair, float, float]) -> list[str]:
    k, q, dc, q_speed, dc_speed = row
    return [_printed(k), _printed(q), f"{q_speed:.1f} x", _printed(dc), f"{dc_speed:.1f} x"]


def _runtime(cell: Run | None) -> list[str]:
    if cell is None:
        return [NONE, NONE]
    mark = " *" if scaled_up(cell) else ""
    total = spread(over(cell, lambda run: run["total"]))
    return [total + mark, mean(over(cell, lambda run: run["speedup"]), 3, " x")]


def speedups(results: Results) -> str:
    """How many times faster than refits, by data set."""
    rows = [
        [
            title,
            *(
                mean(over(results.stream(d, m), lambda run: run["speedup"]), 3, " x")
                for d in SOURCES
            ),
        ]
        for m, title in TITLES.items()
    ]
    return table(["speed-up", *(source.title for source in SOURCES.values())], rows)


def pipeline(results: Results) -> str:
    """The pipeline against refits of scikit-learn's pipeline."""
    header = ["data set", "scikit-learn refits (s)", f"{TITLES['pipeline']} (s)", "speed-up"]
    rows = []
    for name, source in SOURCES.items():
        cell = results.stream(name, "pipeline")
        rows.append([source.title, spread(refits(cell)), *_runtime(cell)])
    return table([*header, "KMeans alone", "of it"], [r + _share(results, r[0]) for r in rows])


def _share(results: Results, title: str) -> list[str]:
    name = next(name for name, source in SOURCES.items() if source.title == title)
    alone = over(results.stream(name, "kmeans"), lambda run: run["speedup"])
    behind = over(results.stream(name, "pipeline"), lambda run: run["speedup"])
    if not alone or not behind:
        return [mean(alone, 3, " x"), NONE]
    return [mean(alone, 3, " x"), f"{np.mean(behind) / np.mean(alone):.2f}"]


def fit_ratio(cell: Run | None) -> list[float]:
    """Return fit times over scikit-learn's, by replicate."""
    return over(cell, lambda run: float(np.mean(run["fit_seconds"])) / run["peer"]["mean"])


def deletions(results: Results) -> str:
    """What a single deletion costs and does."""
    header = ["data set, model", "fit (s)", "of scikit-learn's", "first (ms)", "median (ms)"]
    header += ["p99 (ms)", "examined, mean", "median", "updated", "resumed", "refit", "digest (ms)"]
    rows = []
    for name, model in results.measured():
        cell = results.stream(name, model)
        assert cell is not None
        row = [f"{SOURCES[name].title}, {TITLES[model]}"]
        row.append(mean(over(cell, lambda run: float(np.mean(run["fit_seconds"])))))
        row.append(mean(fit_ratio(cell)))
        for key in ("first", "median", "p99"):
            row.append(spread(over(cell, lambda run, key=key: 1e3 * run[key])))
        for key in ("mean", "median"):
            row.append(mean(over(cell, lambda run, key=key: run["touched"][key])))
        for key in ("updated", "resumed", "refit"):
            row.append(mean(over(cell, lambda run, key=key: 1e3 * _share_of(run, key))))
        row.append(mean(over(cell, lambda run: 1e3 * run["digest"]["adds"])))
        rows.append(row)
    return table(header, rows)


def _share_of(run: Run, action: str) -> float:
    return float(run["actions"].get(action, 0)) / float(run["timed"])


def counts(results: Results) -> str:
    """What the estimators counted, mean of a deletion."""
    rows = []
    for name, model in results.measured():
        cell = results.stream(name, model)
        assert cell is not None
        seen = sorted({key for run in cell["replicates"] for key in run["counts"]})
        text = [
            f"{key.replace('_', ' ')} {mean(over(cell, lambda r, k=key: r['counts'].get(k, 0.0)))}"
            for key in seen
        ]
        rows.append([f"{SOURCES[name].title}, {TITLES[model]}", ", ".join(text) or NONE])
    return table(["data set, model", "mean of a deletion"], rows, left=(0, 1))


def along(results: Results) -> str:
    """Quality along the stream."""
    first = next((results.stream(d, m) for d, m in results.measured()), None)
    if first is None:
        return NONE
    points = list(first["replicates"][0]["judged"])
    header = ["data set, model", "metric", *(f"after {int(p):,}" for p in points)]
    rows = []
    for name, model in results.measured():
        cell = results.stream(name, model)
        assert cell is not None
        title = f"{SOURCES[name].title}, {TITLES[model]}"
        there = [p for p in points if p in cell["replicates"][0]["judged"]]
        gap = [NONE] * (len(points) - len(there))
        rows.append([title, "loss ratio", *(fixed(ratios(cell, p)) for p in there), *gap])
        for metric, label in (("silhouette", "silhouette"), ("nmi", "NMI")):
            values = [over(cell, lambda r, p=p, m=metric: r["judged"][p][m]) for p in there]
            rows.append([title, label, *map(fixed, values), *gap])
    return table(header, rows, left=(0, 1))


def batches(results: Results) -> str:
    """A batch as one call."""
    header = ["data set, model", "single deletions (s)", "one call, fresh model (ms)"]
    header += ["of the singles", "of a fit", "one call, later (ms)", "of the singles", "of a fit"]
    rows = []
    for name, model in results.measured():
        cell = results.stream(name, model)
        assert cell is not None
        row = [f"{SOURCES[name].title}, {TITLES[model]}", mean(over(cell, singles))]
        for kind in ("fresh", "warm"):
            row.append(mean(over(cell, lambda run, kind=kind: 1e3 * run["batch"][kind])))
            of = batch_shares(cell, kind)
            row += [f"{100 * share:.1f} %" for share in of]
        rows.append(row)
    return table(header, rows)


def singles(run: Run) -> float:
    """Return the seconds of all single deletions, without the training."""
    return float(run["total"]) - float(run["fit_seconds"][0])


def batch_shares(cell: Run, kind: str) -> tuple[float, float]:
    """Return what a batch costs, as a share of the single deletions and of a fit."""
    batch = float(np.mean(over(cell, lambda run: run["batch"][kind])))
    fits = float(np.mean(over(cell, lambda run: float(np.mean(run["fit_seconds"])))))
    return batch / float(np.mean(over(cell, singles))), batch / fits


def quality(results: Results) -> str:
    """Losses over seeds."""
    header = ["data set", "seeds", *(TITLES[m] for m in OWN), "KMeans from the same seeds differs"]
    rows = []
    for name, source in SOURCES.items():
        cell = results[f"quality-{name}"]
        if cell is None:
            rows.append([source.title, *[NONE] * 5])
            continue
        row = [source.title, str(len(cell["losses"]["scikit-learn"]))]
        row += [quality_ratio(cell, model)[1] for model in OWN]
        worst = max(cell["differences"], default=float("nan"))
        rows.append([*row, f"at most {worst:.1g}" if np.isfinite(worst) else NONE])
    return table(header, rows)


def quality_ratio(cell: Run, model: str) -> tuple[float, str]:
    """Return mean loss over scikit-learn's mean loss, and as text."""
    if model not in cell["losses"]:
        return float("nan"), NONE
    own = np.array(cell["losses"][model]) / np.mean(cell["losses"]["scikit-learn"])
    return float(own.mean()), f"{own.mean():.4f} ± {own.std():.4f}"


def memory(results: Results) -> str:
    """Peak memory."""
    columns = ["peer:kmeans", "peer:pipeline", *TITLES]
    titles = ["scikit-learn KMeans", "scikit-learn pipeline", *TITLES.values()]
    rows = []
    for name, source in SOURCES.items():
        cell = results[f"memory-{name}"]
        if cell is None:
            rows.append([source.title, *[NONE] * 7])
            continue
        row = [source.title, significant(cell["data"])]
        for column in columns:
            peak = cell["peaks"].get(column)
            row.append(
                f"{peak['peak']:,.0f} (+{peak['peak'] - peak['before']:,.0f})" if peak else NONE
            )
        rows.append(row)
    return table(["data set", "the matrix", *titles], rows)


def growth(results: Results) -> str:
    """The cost of a deletion against n."""
    cell = results["growth"]
    if cell is None:
        return NONE
    first = next(kind for kind in cell if kind != "environment")
    header = ["clusters, model", *(f"{n:,}" for n in cell[first]["n"])]
    rows = []
    for kind, label in (("separated", "separated, d = 10"), ("gaussian", "overlapping, d = 25")):
        for model, curve in cell[kind]["models"].items():
            title = f"{label}, {TITLES[model]}"
            rows.append([f"{title}: median", *(significant(1e3 * s) for s in curve["median"])])
            rows.append([f"{title}: mean", *(significant(1e3 * s) for s in curve["mean"])])
        refit = [significant(1e3 * seconds) for seconds in cell[kind]["refit"]]
        rows.append([f"{label}, scikit-learn refit", *refit])
    return table(header, rows)
