"""What agrees with the paper, what differs, and what was not repeated."""

from __future__ import annotations

import numpy as np
import paper
import tables
from results import NONE, Results, mean, over

WORDS = """**Agrees.** DC-k-means is fast on every data set ({divide} x here, {paper_divide} x in
the paper, on the three shared ones). Q-k-means costs quality where the dimension is
high: its loss ratio on MNIST is {mnist_loss}, in the paper {paper_mnist_loss}.

**Differs.** The paper has "over 100x on average" over its six data sets. On the three shared
ones QuantizedKMeans has {quantized_mean:.0f} x on average (in the paper {paper_quantized:.0f}
x), and DivideAndConquerKMeans {divide_mean:.0f} x ({paper_divide_mean:.0f} x). On Gaussian
QuantizedKMeans has {gaussian} x where the paper has {paper_gaussian:.0f} x (scikit-learn's
refits take {refits:.0f} s, where the paper's k-means takes {paper_kmeans:.0f}; QuantizedKMeans
takes {own:.2f} s, where the paper's takes {paper_own:.2f}); on MNIST it has {mnist} x{cut}
where the paper has {paper_mnist:.1f} x. Exact k-means without quantisation, which the paper
does not have, is faster than QuantizedKMeans on {beaten}.

Quality changes along the stream, too, where the parameters that follow from the number of
records change: on WISDM the loss ratio of QuantizedKMeans goes from {before:.3f} to {after:.3f}
when its epsilon doubles.

**Not repeated, because** the data were not available: Celltype, Postures and Botnet."""


def compare(results: Results) -> str:
    """Return the text; without the results of the shared data sets, nothing."""
    cells = {
        (data, model): results.stream(data, model) for data in paper.NAMES for model in tables.OWN
    }
    wisdm = results.stream("wisdm", "quantized")
    if wisdm is None or any(cell is None for cell in cells.values()):
        return NONE

    def speed(data: str, model: str) -> float:
        return float(np.mean(over(cells[data, model], lambda run: run["speedup"])))

    shared = list(paper.NAMES)
    theirs = {data: paper.RUNTIME[name] for data, name in paper.NAMES.items()}
    points = list(wisdm["replicates"][0]["judged"])
    cut = cells["mnist", "quantized"]
    assert cut is not None
    slower = [
        tables.SOURCES[data].title
        for data, model in results.measured()
        if model == "quantized" and _faster(results, data)
    ]
    return WORDS.format(
        divide=", ".join(f"{speed(data, 'divide'):.0f}" for data in shared),
        paper_divide=", ".join(f"{theirs[data][4]:.0f}" for data in shared),
        mnist_loss=mean(tables.ratios(cut), 3),
        paper_mnist_loss=f"{paper.LOSS['MNIST'][1][0]:g}",
        quantized_mean=np.mean([speed(data, "quantized") for data in shared]),
        divide_mean=np.mean([speed(data, "divide") for data in shared]),
        paper_quantized=np.mean([theirs[data][3] for data in shared]),
        paper_divide_mean=np.mean([theirs[data][4] for data in shared]),
        gaussian=f"{speed('gaussian', 'quantized'):.0f}",
        paper_gaussian=theirs["gaussian"][3],
        refits=np.mean(tables.refits(cells["gaussian", "kmeans"])),
        paper_kmeans=theirs["gaussian"][0][0],
        own=np.mean(over(cells["gaussian", "quantized"], lambda run: run["total"])),
        paper_own=theirs["gaussian"][1][0],
        mnist=f"{speed('mnist', 'quantized'):.0f}",
        cut=" (extrapolated)" if tables.scaled_up(cut) else "",
        paper_mnist=theirs["mnist"][3],
        beaten=" and ".join([", ".join(slower[:-1]), slower[-1]] if slower[1:] else slower) or NONE,
        before=np.mean(tables.ratios(wisdm, points[-2])),
        after=np.mean(tables.ratios(wisdm, points[-1])),
    )


def _faster(results: Results, data: str) -> bool:
    """Tell whether KMeans is faster than QuantizedKMeans."""
    speeds = [
        np.mean(over(results.stream(data, model), lambda run: run["speedup"]))
        for model in ("kmeans", "quantized")
    ]
    return bool(speeds[0] > speeds[1])
