"""Interface of workers, and the placement of blocks."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from typing import Any

from erasable.core.errors import ClusterError, InvalidDataError
from erasable.core.remote._jobs import Job, Raised
from erasable.core.remote._loading import UnreadableError


class Workers(ABC):
    """Processes that do jobs; another engine implements this class."""

    @abstractmethod
    def threads(self) -> dict[str, int]:
        """Return the names of the present workers, and the number of threads of each."""

    @abstractmethod
    def ask(self, jobs: Mapping[str, Job], aside: bool = False) -> dict[str, Any]:
        """Let workers do jobs at the same time (`erasable.core.remote.do`); return their answers.

        Both are keyed by worker; a lost worker has no answer. No job is done twice, or by another
        worker. With `aside`, answers are stored nowhere on their way: they hold values of records,
        or are needed sooner than a scheduler would bring them.
        """


def asked(workers: Workers, jobs: Mapping[str, Job], aside: bool = False) -> dict[str, Any]:
    """Let workers do jobs; raise an error of one of them."""
    answers = workers.ask(jobs, aside)
    refuse_raised(answers)
    return answers


def refuse_raised(answers: Mapping[str, Any]) -> None:
    """Raise the error of a worker."""
    for answer in answers.values():
        if isinstance(answer, Raised):
            if isinstance(answer.error, MemoryError):
                raise ClusterError(
                    "a worker has no memory left; expected room for its partitions twice; give "
                    "workers more memory, or make partitions smaller with frame.repartition"
                ) from None
            if isinstance(answer.error, UnreadableError):
                raise InvalidDataError(
                    f"a partition cannot be read ({answer.error}); expected one that each worker "
                    "can make by itself, of lazy operations on files"
                ) from None
            raise answer.error


def placed(numbers: Iterable[int], workers: Sequence[str], token: str) -> dict[int, str]:
    """Return the worker of each block: by their hashes, and equally many for each."""

    def mark(text: Any) -> bytes:
        return sha256(f"{token} {text}".encode()).digest()

    names = sorted(workers, key=mark)
    order = sorted(numbers, key=mark)
    return {number: names[at % len(names)] for at, number in enumerate(order)}


def lost_again(n_blocks: int) -> ClusterError:
    return ClusterError(
        f"workers were lost again and again while they had {n_blocks} partitions; expected them "
        "to stay: the partitions may be too large for their memory; try "
        'frame.repartition(partition_size="100MB"), or workers with more memory'
    )
