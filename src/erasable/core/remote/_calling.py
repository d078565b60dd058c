"""Call functions on workers, of which each brings along all that it needs.

The law kept here: a function is a pure one, so that it does not matter which worker calls it, nor
how often. What it brings along and what it returns may have values of records: no buffer on their
way has them as they are.
"""

from __future__ import annotations

import io
import itertools
import pickle
import secrets
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from erasable.core.errors import ClusterError
from erasable.core.passes import Made
from erasable.core.remote._asking import Answer, RunPass
from erasable.core.remote._jobs import Job, Shelf
from erasable.core.remote._masking import mask
from erasable.core.remote._workers import Workers, asked
from erasable.core.threads import in_threads

Bytes = NDArray[np.uint8]

_TRIES = 6
"""How often functions are sent out without any of them coming back."""

_ALONE = threading.Lock()

_GIVEN, _RETURNED = 2, 3  # parts of a stream, of which blocks take others


def hidden(thing: Any, pad: int, number: int, part: int = _RETURNED) -> Bytes:
    """Pickle something, and mask that.

    Examples
    --------
    >>> sent = hidden({"city": "Bonn"}, 7, 0)
    >>> b"Bonn" in sent.tobytes(), shown(sent, 7, 0)
    (False, {'city': 'Bonn'})
    """
    buffer = io.BytesIO()
    pickle.dump(thing, buffer, protocol=5)
    data = np.frombuffer(buffer.getbuffer(), np.uint8)
    mask(data, pad, number, part)
    return data


def shown(data: Bytes, pad: int, number: int, part: int = _RETURNED) -> Any:
    """Return what was hidden; see `hidden`."""
    data = np.array(data)
    mask(data, pad, number, part)
    found = pickle.loads(data.data)
    data[:] = 0
    return found


@dataclass(frozen=True, repr=False)
class Call(Job):
    """Call functions; return what they return.

    Attributes
    ----------
    pad : int
        What they and what they return are masked with.
    functions : mapping of int to ndarray of uint8
    """

    loads = True
    pad: int
    functions: Mapping[int, Bytes]

    def run(self, shelf: Shelf, n_threads: int) -> dict[int, Bytes]:
        """See `Job`."""
        functions = {
            number: shown(data, self.pad, number, _GIVEN) for number, data in self.functions.items()
        }

        def call(number: int) -> Bytes:
            return hidden(functions[number](), self.pad, number)

        # The functions are unpickled by now, and with them the BLAS libraries that they use are
        # loaded, so that the limit reaches these. It holds for the whole process, and the first
        # job to end would lift it for the others: so a process runs one such job at a time.
        with _ALONE, threadpool_limits(1):
            return dict(zip(functions, in_threads(call, functions, n_threads), strict=True))


@dataclass(frozen=True, repr=False)
class RunHidden(RunPass):
    """Find and write what has records as they are; return what `shown` takes."""

    loads = True

    def run(self, shelf: Shelf, n_threads: int) -> Answer:
        """See `Job`."""
        answer, pad = super().run(shelf, n_threads), secrets.randbits(128)
        answer.partial = hidden((answer.partial, answer.written), pad, 0), pad, 0
        answer.written = {}
        return answer


def called(workers: Workers, token: str, functions: Iterable[Callable[[], Made]]) -> Iterator[Made]:
    """Have workers call functions; yield what these return, in their order.

    Parameters
    ----------
    workers : Workers
    token : str
        Name of the records.
    functions : iterable of callable
        They can be pickled. As many are here at once as workers have threads.

    Raises
    ------
    ClusterError
        Workers are lost again and again.

    Examples
    --------
    >>> from functools import partial
    >>> from erasable.core.remote import do
    >>> class Here(Workers):
    ...     def threads(self):
    ...         return {"here": 2}
    ...     def ask(self, jobs, aside=False):
    ...         return {name: do(job, name, 2) for name, job in jobs.items()}
    >>> list(called(Here(), "7c", [partial(pow, 2, n) for n in range(5)]))
    [1, 2, 4, 8, 16]
    """
    pad, rest = secrets.randbits(128), iter(enumerate(functions))
    waiting: dict[int, Bytes] = {}
    found: dict[int, Made] = {}
    wanted, left = 0, _TRIES
    while True:
        threads = workers.threads()
        if not threads:
            raise ClusterError("no worker is left; expected one or more; start some")
        room = max(0, sum(threads.values()) - len(waiting))
        for number, function in itertools.islice(rest, room):
            waiting[number] = hidden(function, pad, number, _GIVEN)
        if not waiting:
            return
        jobs = {
            worker: Call(token, pad, {number: waiting[number] for number in numbers})
            for worker, numbers in _dealt(list(waiting), threads).items()
        }
        answers = asked(workers, jobs, aside=True)
        left = _TRIES if answers else left - 1
        if not left:
            raise ClusterError(
                f"workers were lost again and again while they learned from the records of "
                f"{len(waiting)} members or nodes; expected them to stay: give workers more memory"
            )
        for answer in answers.values():
            for number, data in answer.items():
                found[number] = shown(data, pad, number)
                del waiting[number]
        while wanted in found:
            yield found.pop(wanted)
            wanted += 1


def _dealt(numbers: list[int], threads: Mapping[str, int]) -> dict[str, list[int]]:
    """Deal numbers to workers, one to each in turn, and no more than they have threads."""
    own: dict[str, list[int]] = {}
    rest = iter(numbers)
    for turn in range(max(threads.values())):
        for worker in (name for name, count in threads.items() if count > turn):
            if (number := next(rest, None)) is None:
                return own
            own.setdefault(worker, []).append(number)
    return own
