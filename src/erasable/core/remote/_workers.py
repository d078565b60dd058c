"""Workers, and where blocks are to be."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from typing import Any

from erasable.core.errors import ClusterError, InvalidDataError
from erasable.core.remote._jobs import Job, Raised
from erasable.core.remote._loading import UnreadableError


class Workers(ABC):
    """Processes that do jobs; all that is to be written for another engine.

    Examples
    --------
    >>> from erasable.core.remote import do
    >>> from erasable.core.remote._jobs import Drop
    >>> class Here(Workers):
    ...     def threads(self):
    ...         return {"here": 1}
    ...     def ask(self, jobs, aside=False):
    ...         return {name: do(job, name, 1) for name, job in jobs.items()}
    >>> Here().ask({"here": Drop("7c")})
    {'here': None}
    """

    @abstractmethod
    def threads(self) -> dict[str, int]:
        """Return the names of those that are there, and how many threads each may use."""

    @abstractmethod
    def ask(self, jobs: Mapping[str, Job], aside: bool = False) -> dict[str, Any]:
        """Have each worker do its job, by `erasable.core.remote.do`, at the same time.

        Parameters
        ----------
        jobs : mapping of str to Job
            By the names of workers. No job is done twice, or by another worker.
        aside : bool
            Whether answers may be stored nowhere on their way, as they hold values of records, or
            are wanted sooner than a scheduler would bring them.

        Returns
        -------
        dict
            Answers, by the names of workers, but for those that are lost.
        """


def asked(workers: Workers, jobs: Mapping[str, Job], aside: bool = False) -> dict[str, Any]:
    """Have workers do jobs, and raise what one of them has raised."""
    answers = workers.ask(jobs, aside)
    refuse_raised(answers)
    return answers


def refuse_raised(answers: Mapping[str, Any]) -> None:
    """Raise what a worker has raised."""
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
    """Return where blocks are to be: by their hashes, and as many in each place.

    Examples
    --------
    >>> sorted(placed(range(4), ["a", "b"], "7c").values())
    ['a', 'a', 'b', 'b']
    """

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
