"""Functions that workers call: whoever dies, each result comes once, in order, and is hidden."""

from __future__ import annotations

import pickle
from functools import partial
from operator import mul
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from threadpoolctl import threadpool_info, threadpool_limits

from effort import examples
from erasable.core.errors import ClusterError, UnlearnableError
from erasable.core.remote import _matrix
from erasable.core.remote._jobs import Shelf
from erasable.core.remote._masking import mask
from erasable.core.remote._matrix import Call, called, hidden, shown
from simulated_workers import Simulated


def of_text(text: str) -> str:
    return text[::-1]


def refuse(error: Exception) -> None:
    raise error


def squares(workers: Simulated, n: int) -> list[int]:
    return list(called(workers, "t", (partial(mul, i, i) for i in range(n))))


@settings(max_examples=examples(60), deadline=None)
@given(n=st.integers(0, 20), n_workers=st.integers(1, 4), seed=st.integers(0, 2**32 - 1))
def test_each_result_comes_once_whoever_dies(n: int, n_workers: int, seed: int) -> None:
    workers = Simulated(n_workers)
    workers.die(0.2, seed)
    assert squares(workers, n) == [i * i for i in range(n)]


def test_a_wrong_order_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The control: numbers say which result is whose."""
    real = Call.run

    def run(self: Call, shelf: Any, n_threads: int) -> Any:
        found = real(self, shelf, n_threads)
        return dict(zip(found, reversed(found.values()), strict=True))

    monkeypatch.setattr(Call, "run", run)
    monkeypatch.setattr(_matrix, "mask", lambda data, pad, number, part: None)
    assert squares(Simulated(1), 2) == [1, 0]


def test_no_more_are_here_than_workers_have_threads() -> None:
    workers, made, back = Simulated(3), [], []

    def functions() -> Any:
        for number in range(20):
            made.append(number)
            assert len(made) - len(back) <= 6  # two threads each
            yield partial(abs, number)

    for result in called(workers, "t", functions()):
        back.append(result)
    assert back == made == list(range(20))


def test_nothing_on_the_way_can_be_read() -> None:
    workers, seen = Simulated(1), []
    real = workers.ask

    def ask(jobs: Any, aside: bool = False) -> Any:
        found = real(jobs, aside)
        seen.extend([pickle.dumps(jobs), pickle.dumps(found), repr(jobs).encode()])
        assert aside
        return found

    workers.ask = ask  # type: ignore[method-assign]
    assert list(called(workers, "t", [partial(of_text, "Rhöndorf")])) == ["frodnöhR"]
    wanted = ["Rhöndorf".encode(), "frodnöhR".encode()]
    assert not any(each in data for each in wanted for data in seen)
    assert wanted[0] in pickle.dumps(partial(of_text, "Rhöndorf"))  # what is masked has it


def test_errors_of_functions_are_those_of_the_caller() -> None:
    functions = [partial(abs, 1), partial(refuse, UnlearnableError("too few"))]
    with pytest.raises(UnlearnableError, match="too few"):
        list(called(Simulated(1), "t", functions))
    with pytest.raises(ClusterError, match="no memory left"):
        list(called(Simulated(1), "t", [partial(refuse, MemoryError())]))


def test_workers_that_always_die_are_an_error() -> None:
    workers = Simulated(2)
    workers.before = lambda name, job: False
    with pytest.raises(ClusterError, match="lost again and again while they learned"):
        squares(workers, 3)
    assert workers.trips == _matrix._TRIES


def threads_of_blas(_: Any) -> set[int]:
    return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}


def test_libraries_have_one_thread_meanwhile() -> None:
    """The sums of several are in another order."""
    with threadpool_limits(2):
        before = threads_of_blas(None)
        job = Call("t", 7, {n: hidden(partial(threads_of_blas, n), 7, n, 2) for n in range(4)})
        seen = [shown(each, 7, n) for n, each in job.run(Shelf(), 2).items()]
        assert threads_of_blas(None) == before != {1}
    assert seen == [{1}] * 4


@pytest.mark.parametrize("size", [0, 1, 7, 8, 2**16 - 1, 2**16, 2**16 + 9, 200_001])
def test_a_mask_is_one_stream_whatever_is_made_of_it_at_a_time(size: int) -> None:
    values = np.arange(size, dtype=np.uint8)
    mask(values, 7, 3, 1)
    stream = np.random.Philox(key=7, counter=(3 << 128) + (1 << 120))
    whole = stream.random_raw(size // 8 + 1).view(np.uint8)[:size]
    assert np.array_equal(values, np.arange(size, dtype=np.uint8) ^ whole)
