"""Work in several threads: the same, in the same order, whatever happens in one of them."""

from __future__ import annotations

import subprocess
import sys
import threading
from typing import Any

import joblib
import numpy as np
import pytest

from erasable.core.errors import InvalidParameterError
from erasable.core.threads import in_threads, n_threads
from erasable.ensemble import (
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from erasable.neighbors import KNeighborsClassifier


@pytest.mark.parametrize("n_jobs", [None, 1, 2, 7, -1])
def test_results_come_in_the_order_of_the_items(n_jobs: Any) -> None:
    assert list(in_threads(lambda x: x * x, range(50), n_jobs)) == [x * x for x in range(50)]
    assert list(in_threads(str, [], n_jobs)) == []


def test_several_threads_are_at_work_at_once() -> None:
    meeting = threading.Barrier(2, timeout=60)
    assert sorted(in_threads(lambda _: meeting.wait(), range(2), 2)) == [0, 1]


def test_no_more_is_begun_than_waits() -> None:
    begun: list[int] = []
    results = in_threads(lambda x: begun.append(x) or x, range(1000), 2)
    assert next(results) == 0
    results.close()
    assert len(begun) < 10


def test_an_error_in_one_is_raised() -> None:
    def divide(x: int) -> float:
        return 1 / (x - 20)

    found: list[float] = []
    with pytest.raises(ZeroDivisionError):
        found.extend(in_threads(divide, range(40), 3))
    assert found == [divide(x) for x in range(20)]


def test_the_error_of_the_first_item_is_raised() -> None:
    """Whichever thread failed first, and whether that is the caller's or another."""
    failed = threading.Event()

    def fail(x: int) -> None:
        if x == 0:
            assert failed.wait(60)
        else:
            failed.set()
        raise ValueError(x)

    for _ in range(20):
        failed.clear()
        with pytest.raises(ValueError, match=r"^0$"):
            list(in_threads(fail, range(9), 3))


def test_an_interruption_ends_the_other_threads() -> None:
    before = threading.active_count()

    def interrupt(x: int) -> int:
        if x == 7:
            raise KeyboardInterrupt
        return x

    with pytest.raises(KeyboardInterrupt):
        list(in_threads(interrupt, range(100), 3))
    assert threading.active_count() == before


def test_a_process_of_a_pool_has_threads_without_a_warning() -> None:
    """joblib warns that it starts no processes there; only threads are asked for."""
    code = (
        "import multiprocessing, warnings; warnings.simplefilter('error')\n"
        "from erasable.core.threads import n_threads\n"
        "multiprocessing.current_process()._config['daemon'] = True\n"
        "print(n_threads(2), n_threads(None), n_threads(-1) >= 1)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "2 1 True\n"


def test_none_follows_joblib() -> None:
    meeting = threading.Barrier(2, timeout=60)
    with joblib.parallel_config(backend="threading", n_jobs=2):
        assert sorted(in_threads(lambda _: meeting.wait(), range(2), None)) == [0, 1]
    names: set[int] = set()
    list(in_threads(lambda _: names.add(threading.get_ident()), range(20), None))
    assert names == {threading.get_ident()}


@pytest.mark.parametrize("n_jobs", [None, 1, 2, 3, -1, -2])
def test_numbers_of_threads_are_those_of_joblib(n_jobs: Any) -> None:
    assert n_threads(n_jobs) == joblib.effective_n_jobs(n_jobs)
    with joblib.parallel_config(backend="threading", n_jobs=3):
        assert n_threads(n_jobs) == joblib.effective_n_jobs(n_jobs)


@pytest.mark.parametrize(
    "cls",
    [RandomForestClassifier, RandomForestRegressor, ExtraTreesClassifier, ExtraTreesRegressor],
)
@pytest.mark.parametrize("bootstrap", [True, False])
def test_forests_are_the_same_with_any_number_of_threads(cls: Any, bootstrap: bool) -> None:
    rng = np.random.default_rng(2)
    X = rng.normal(size=(600, 4))
    y = (X[:, 0] > 0).astype(int) + (X[:, 1] > 1)
    digests, outputs = set(), []
    for n_jobs in (None, 2, 5):
        model = cls(12, bootstrap=bootstrap, random_state=0, n_jobs=n_jobs).fit(X, y)
        for gone in ([5], list(range(20, 60)), [0]):
            model.delete(gone)
        digests.add(model.digest())
        outputs.append(model.predict(X).tobytes() + model.apply(X).tobytes())
    left = np.delete(np.arange(600), [0, 5, *range(20, 60)])
    fresh = cls(12, bootstrap=bootstrap, random_state=0).fit(X[left], y[left], ids=left)
    assert digests == {fresh.digest()}
    assert len(set(outputs)) == 1
    assert model.state()["params"].get("n_jobs") is None


@pytest.mark.parametrize("algorithm", ["kd_tree", "brute"])
def test_neighbours_are_the_same_with_any_number_of_threads(algorithm: str) -> None:
    rng = np.random.default_rng(3)
    X, queries = rng.integers(0, 9, size=(500, 3)) / 4.0, rng.normal(size=(30_000, 3))
    found = []
    for n_jobs in (None, 4):
        model = KNeighborsClassifier(algorithm=algorithm, n_jobs=n_jobs).fit(X, X[:, 0] > 1)
        model.delete(list(range(7)))
        distances, places = model.kneighbors(queries)
        found.append((distances.tobytes(), places.tobytes(), model.digest()))
    assert found[0] == found[1]


@pytest.mark.parametrize("n_jobs", [0, 1.5, "2"])
def test_what_is_no_number_of_threads_is_refused(n_jobs: Any) -> None:
    with pytest.raises(InvalidParameterError, match="n_jobs"):
        RandomForestClassifier(2, n_jobs=n_jobs).fit([[0.0], [1.0]], [0, 1])
