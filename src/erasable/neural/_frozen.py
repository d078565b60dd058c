"""A frozen network: its parts, the machine on which it runs, and its vectors.

The vector of a record must not depend on the records beside it, to the last bit. So records pass
one at a time, from one buffer, in one thread of torch. Larger batches are allowed where rolling
records through all places changes no bit.
"""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256
from typing import Any, NamedTuple

import numpy as np
import torch

from erasable.core.arrays import Ints
from erasable.core.errors import InvalidDataError, InvalidInputError, InvalidParameterError
from erasable.core.threads import in_threads
from erasable.neural._modules import made, take_weights
from erasable.neural._settings import kind_of_machine, settled

_OF_BATCHES = torch.nn.modules.batchnorm._BatchNorm
MOST_OUTPUTS = 2**20
_PROBES = 4
_WORDS = 97
_CHUNK = 64  # batches that a thread takes at a time


class Platform(NamedTuple):
    """The kind of machine on which vectors were made; on another one their last bits may differ."""

    torch: str  # version
    processor: str  # the instructions that torch uses
    probe: str  # hash of the vectors of a few fixed records


class Frozen:
    """A network that no longer learns, by the import path of the function that makes it.

    `weights` is a file of its state, as ``torch.save(network.state_dict(), file)`` writes it;
    `batch` records pass at a time; with `trusted`, any function is allowed.
    """

    def __init__(self, path: str, weights: str | None, batch: int, *, trusted: bool) -> None:
        network = made(path, trusted=trusted)
        if weights is not None:
            take_weights(network, weights)
        self.path, self.batch = path, batch
        self.network = network.eval().requires_grad_(False).to("cpu")
        _refuse_unsettled(self.network, path)
        self.digest = _digest(self.network)

    def vectors(self, rows: Ints, n_jobs: int | None = None) -> Any:
        """Return the vectors of records, of shape (n_records, n_outputs) and type float32.

        Outputs that are not finite, or not one vector for each record, raise InvalidDataError;
        records that the network does not take raise InvalidInputError.
        """
        step = self.batch * _CHUNK
        blocks = [rows[start : start + step] for start in range(0, len(rows), step)]
        with settled():
            made = np.concatenate(list(in_threads(self._block, blocks, n_jobs)))
        bad = np.count_nonzero(~np.isfinite(made).all(axis=1))
        if bad:
            raise InvalidDataError(
                f"{self.path} makes NaN or infinite numbers of {bad} records; expected finite "
                "ones; scale the records, or remove these"
            )
        return made

    def _block(self, rows: Ints) -> Any:
        # Settings of torch are those of a thread.
        torch.set_num_threads(1)
        with torch.inference_mode():
            return np.concatenate(list(self._pass(rows)))

    def _pass(self, rows: Ints) -> Iterator[Any]:
        buffer = torch.zeros((self.batch, *rows.shape[1:]), dtype=_dtype(rows))
        given = buffer.numpy()
        for start in range(0, len(rows), self.batch):
            part = rows[start : start + self.batch]
            given[: len(part)] = part
            given[len(part) :] = 0
            yield self._read(self._call(buffer))[: len(part)]

    def _call(self, buffer: torch.Tensor) -> Any:
        try:
            return self.network(buffer)
        except (MemoryError, torch.OutOfMemoryError) as error:
            raise InvalidInputError(
                f"{self.path} needs more memory than there is for {self.batch} records at a time; "
                f"expected a smaller batch_size; try {max(1, self.batch // 2)}"
            ) from error
        except Exception as error:
            shape = tuple(buffer.shape)
            if buffer.dtype == torch.int64:
                raise InvalidInputError(
                    f"{self.path} cannot take {shape[1]} numbers of a text: "
                    f"{type(error).__name__}: {error}; expected a network of whole numbers that "
                    "knows all that the tokenizer makes, and 0"
                ) from error
            raise InvalidInputError(
                f"{self.path} cannot take records of shape {shape[1:]}: "
                f"{type(error).__name__}: {error}; expected the shape of what it was trained on; "
                "pass shape=, such as (1, 28, 28)"
            ) from error

    def _read(self, made: Any) -> Any:
        if not isinstance(made, torch.Tensor) or made.dim() == 0 or len(made) != self.batch:
            told = tuple(made.shape) if isinstance(made, torch.Tensor) else type(made).__name__
            raise InvalidParameterError(
                f"{self.path} makes {told} of {self.batch} records; expected a tensor with a row "
                "for each of them"
            )
        return made.reshape(self.batch, -1).to(torch.float32).numpy().copy()

    def probe(self, shape: tuple[int, ...], kind: Any) -> tuple[int, Platform]:
        """Return the length of the vector of a record of this shape, and the kind of machine.

        A network that gives the same record another vector a second time is refused.
        """
        first, second = self._probed(shape, kind), self._probed(shape, kind)
        if first.tobytes() != second.tobytes():
            raise InvalidParameterError(
                f"{self.path} makes other numbers of the same record each time; expected a "
                "network that draws nothing; is there dropout that eval() does not switch off?"
            )
        if not 1 <= first.shape[1] <= MOST_OUTPUTS:
            raise InvalidParameterError(
                f"{self.path} makes {first.shape[1]} numbers of a record; expected from 1 to "
                f"{MOST_OUTPUTS}; add a layer that makes fewer"
            )
        made = Platform(
            *kind_of_machine(),
            sha256(first.tobytes()).hexdigest(),
        )
        return int(first.shape[1]), made

    def _probed(self, shape: tuple[int, ...], kind: Any) -> Any:
        spread = np.arange(_PROBES * int(np.prod(shape)), dtype=np.int64) * 40503 % 65536
        spread = spread.reshape(_PROBES, *shape)
        if kind != np.int64:
            return self.vectors((spread / 65536.0).astype(kind))
        try:
            return self.vectors(spread % _WORDS)
        except InvalidInputError:  # it knows fewer
            return self.vectors(spread % 2)

    def refuse_place_dependent(self, rows: Ints) -> None:
        """Refuse a batch size at which bits depend on a record's place in the batch.

        Real records are rolled through all places, on one thread and on two of torch, and beside
        records that are huge and records of NaN.
        """
        batch = self.batch
        if batch == 1 or len(rows) == 0:
            return
        rows = np.resize(rows, (batch, *rows.shape[1:]))
        wild = [0] if rows.dtype == np.int64 else [np.nan, 1e30, -1e30]
        with settled(), torch.inference_mode():
            first = self._raw(rows)
            for threads in (1, 2):
                torch.set_num_threads(threads)
                same = all(
                    np.array_equal(
                        np.roll(self._raw(np.roll(rows, by, axis=0)), -by, axis=0), first
                    )
                    for by in range(batch)
                )
                for value in wild:
                    beside = rows.copy()
                    beside[1::2] = value
                    same = same and np.array_equal(self._raw(beside)[::2], first[::2])
                if not same:
                    raise InvalidParameterError(
                        f"what {self.path} makes of a record depends on its place among "
                        f"{batch} records, or on the others, in the last bits; expected a function "
                        "of each record; pass batch_size=1, or try another one"
                    )

    def _raw(self, rows: Ints) -> Any:
        buffer = torch.zeros(rows.shape, dtype=_dtype(rows))
        buffer.numpy()[:] = rows
        return self._read(self._call(buffer)).view(np.uint32)


def _dtype(rows: Any) -> torch.dtype:
    return torch.int64 if rows.dtype == np.int64 else torch.float32


def _refuse_unsettled(network: torch.nn.Module, path: str) -> None:
    for name, part in network.named_modules():
        if isinstance(part, _OF_BATCHES) and not part.track_running_stats:
            raise InvalidParameterError(
                f"the part {name!r} of {path} takes the statistics of each batch; expected "
                "track_running_stats=True, so that a record's vector is its own"
            )
        if part.training:
            raise InvalidParameterError(
                f"the part {name!r} of {path} is in training mode after eval(); expected a "
                "network that can be frozen"
            )


def _digest(network: torch.nn.Module) -> str:
    hasher = sha256()
    for name, value in sorted(network.state_dict().items()):
        if not isinstance(value, torch.Tensor):
            raise InvalidParameterError(
                f"the network keeps a {type(value).__name__} under {name!r}; expected tensors "
                "alone; take a network that is not quantized, and keeps nothing else"
            )
        array = value.detach().contiguous()
        hasher.update(f"{name}:{array.dtype}:{tuple(array.shape)}:".encode())
        hasher.update(array.reshape(-1).view(torch.uint8).numpy().tobytes())
    return hasher.hexdigest()
