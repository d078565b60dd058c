"""Every estimator with `n_jobs` is the same with any number of threads, and with any blocks."""

from __future__ import annotations

from collections.abc import Iterator
from inspect import signature
from typing import Any

import numpy as np
import pytest

from erasable import removal, selection
from erasable.cluster import KMeans
from erasable.core import passes, threads
from erasable.core.errors import InvalidParameterError, TooFewRecordsError
from erasable.core.threads import N_JOBS
from erasable.selection import (
    Custom,
    Expected,
    MutualInformation,
    NeuralVariance,
    VarianceReduction,
)
from erasable.selection.utilities import Utility, _gaussian
from erasable.utils._checks.compare import demand, differing, outputs, saved, seeded
from erasable.utils._checks.data_sets import FAST, DataSet, suited
from law_instances import law_instances
from naming import named


def has_threads(estimator: Any) -> bool:
    """Tell whether `n_jobs` of an estimator counts threads, and not processes."""
    return getattr(estimator, "_parameter_constraints", {}).get("n_jobs") is N_JOBS


THREADED = [estimator for estimator in law_instances() if has_threads(estimator)]


class Counted(threads.ThreadPoolExecutor):
    """A pool that counts its kind."""

    made = 0

    def __init__(self, *args: Any) -> None:
        Counted.made += 1
        super().__init__(*args)


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Cut a handful of records into several blocks."""
    monkeypatch.setattr(threads, "ROWS", 16)
    monkeypatch.setattr(passes, "_VALUES", 32)
    monkeypatch.setattr(threads, "ThreadPoolExecutor", Counted)
    monkeypatch.setattr(Counted, "made", 0)
    return monkeypatch


def life(estimator: Any, data: DataSet, n_jobs: int | None) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield what a model is after a fit, a deletion of one record, and others of several."""
    model = seeded(estimator).set_params(n_jobs=n_jobs)
    model.fit(data.X.copy(), data.y.copy(), ids=data.ids.copy(), groups=data.groups)
    doomed = list(data.doomed_ids)
    for told, gone in (
        ("after a fit", []),
        ("after one deletion", doomed[:1]),
        ("after several deletions", doomed[1:4]),
        ("after many deletions", doomed[4:]),
    ):
        try:
            counts = model.delete(gone).counts if gone else {}
        except TooFewRecordsError:
            return
        found = {"digest": model.digest(), "file": saved(model), "counts": dict(counts)}
        yield told, found | outputs(model, data)


def check_threads(estimator: Any, data: DataSet, small_blocks: pytest.MonkeyPatch) -> None:
    """Demand that neither threads nor blocks show in what a model is."""
    with small_blocks.context() as whole:
        whole.setattr(threads, "ROWS", 2**15)
        whole.setattr(passes, "_VALUES", 2**20)
        digests = [found["digest"] for _, found in life(estimator, data, None)]
    one = list(life(estimator, data, 1))
    demand([found["digest"] for _, found in one] == digests, "blocks show in the digest")
    for n_jobs in (2, 3):
        for (told, mine), (_, other) in zip(one, life(estimator, data, n_jobs), strict=True):
            for name, value in mine.items():
                difference = differing(value, other[name])
                demand(difference is None, f"{n_jobs} threads show in {name} {told}: {difference}")


@pytest.mark.sampled(2)
@pytest.mark.parametrize("estimator", THREADED, ids=named)
def test_threads_do_not_show(estimator: Any, small_blocks: pytest.MonkeyPatch) -> None:
    for data in suited(FAST, estimator):
        check_threads(estimator, data, small_blocks)
    assert Counted.made


class Telling(KMeans):
    """An estimator that depends on the number of threads: the negative control."""

    def _at_fit(self, name: str) -> Any:
        found = super()._at_fit(name)
        return found + (self.n_jobs or 1) if name == "n_clusters" else found


def test_threads_that_show_are_noticed(small_blocks: pytest.MonkeyPatch) -> None:
    estimator = Telling(2)
    with pytest.raises(AssertionError, match="2 threads show in digest after a fit"):
        check_threads(estimator, suited(FAST, estimator)[0], small_blocks)


def test_blocks_that_show_are_noticed(small_blocks: pytest.MonkeyPatch) -> None:
    honest = threads.over_rows

    def without_the_last(*args: Any) -> Iterator[Any]:
        every = list(honest(*args))
        return iter(every[:-1] or every)

    small_blocks.setattr("erasable.cluster._run.over_rows", without_the_last)
    estimator = KMeans(2)
    with pytest.raises(AssertionError, match="threads show"):
        check_threads(estimator, suited(FAST, estimator)[0], small_blocks)


@pytest.mark.parametrize("n_jobs", [0, 1.5, "two"])
@pytest.mark.parametrize("estimator", THREADED, ids=named)
def test_what_is_no_number_of_threads_is_refused(estimator: Any, n_jobs: Any) -> None:
    data = suited(FAST, estimator)[0]
    model = seeded(estimator).set_params(n_jobs=n_jobs)
    with pytest.raises(InvalidParameterError, match="'n_jobs' parameter") as refusal:
        model.fit(data.X, data.y, ids=data.ids)
    assert "\n" not in str(refusal.value)


def test_the_setting_counts_that_is_there_now(small_blocks: pytest.MonkeyPatch) -> None:
    X = np.random.default_rng(0).normal(size=(100, 3))
    model = KMeans(2, random_state=0).fit(X)
    assert Counted.made == 0
    predicted = model.predict(X)
    model.set_params(n_jobs=2)
    assert (model.predict(X) == predicted).all()
    assert Counted.made


# -- selectors -------------------------------------------------------------------------------------

SELECTORS = [
    chosen
    for package in (removal, selection)
    for chosen in (getattr(package, name) for name in package.__all__)
    if isinstance(chosen, type) and "n_jobs" in signature(chosen.__init__).parameters
]
UTILITIES = [
    utility()
    for utility in (getattr(selection, name) for name in selection.__all__)
    if isinstance(utility, type) and issubclass(utility, Utility) and utility is not Custom
]


def chosen(selector: Any, utility: Utility, n_jobs: int | None) -> dict[str, Any]:
    """Return what a selector chooses, where samples are kept up to date in several portions."""
    rng = np.random.default_rng(0)
    X, y = rng.integers(0, 4, size=(24, 2)) * 1.0, np.arange(24) % 2
    if isinstance(utility, NeuralVariance):  # which takes a kernel
        X = X @ X.T + np.eye(24)
    objective = Expected(n_samples=600)
    model = selector(
        utility, k=5, staying=0.5, objective=objective, n_jobs=n_jobs, random_state=1
    ).fit(X, y, rows=[3, 4])
    return {
        "the choice": model.selected_,
        "the gains": model.gains_,
        "the utility": model.utility_,
        "its error": model.utility_error_,
    }


def check_choice(selector: Any, utility: Utility) -> None:
    one = chosen(selector, utility, 1)
    for n_jobs in (None, 2, 3):
        for name, value in chosen(selector, utility, n_jobs).items():
            difference = differing(one[name], value)
            demand(difference is None, f"{n_jobs} threads show in {name}: {difference}")


@pytest.fixture
def small_portions(small_blocks: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Have threads share the smallest piece of work."""
    small_blocks.setattr(_gaussian, "_MUCH", 0)
    return small_blocks


@pytest.mark.sampled(3)
@pytest.mark.parametrize("utility", UTILITIES, ids=lambda utility: type(utility).__name__)
@pytest.mark.parametrize("selector", SELECTORS)
def test_threads_do_not_show_in_a_choice(
    selector: Any, utility: Utility, small_portions: pytest.MonkeyPatch
) -> None:
    check_choice(selector, utility)
    of_samples = MutualInformation | VarianceReduction | NeuralVariance
    assert bool(Counted.made) == isinstance(utility, of_samples)


def test_threads_that_show_in_a_choice_are_noticed(small_portions: pytest.MonkeyPatch) -> None:
    honest = threads.over_rows

    def without_the_last(*args: Any) -> Iterator[Any]:
        function, n_rows, n_jobs, size = args
        return honest(function, n_rows if n_rows <= size else n_rows - 300, n_jobs, size)

    small_portions.setattr(_gaussian, "over_rows", without_the_last)
    with pytest.raises(AssertionError, match="threads show in the"):
        check_choice(selection.SubsetSelector, MutualInformation())


@pytest.mark.parametrize("n_jobs", [0, 1.5, "two", True])
@pytest.mark.parametrize("selector", SELECTORS)
def test_what_is_no_number_of_threads_is_refused_by_a_selector(selector: Any, n_jobs: Any) -> None:
    with pytest.raises(
        InvalidParameterError, match=r"n_jobs=.*; expected None, a number"
    ) as refusal:
        selector(n_jobs=n_jobs).fit([[0.0], [1.0]])
    assert "\n" not in str(refusal.value)
