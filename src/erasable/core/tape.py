"""The tape: every random draw is a pure function of (seed, stream, record key, step).

The law: a draw for one record depends on that record's id and on nothing else: not on its row,
not on who else is there, not on the order of the draws. So removing a record removes its own
draws and leaves every other draw as it is, and a refit without the record sees the same ones.

The generator is Philox 4x32-10, whose counter holds the record key, the stream and the step, and
whose key is the seed. A record key is SipHash-2-4 of the id, keyed by the seed. A seed is as
secret as you keep it: who knows it can compute every draw.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import cast

import numpy as np
from numpy.typing import NDArray

from erasable.core._tape_kernels import fill_uniform, siphash24, siphash24_batch, siphash24_integers
from erasable.core.errors import InvalidIdsError, InvalidInputError
from erasable.core.mapped.texts import as_array
from erasable.core.seeds import BELOW_SEED, integer_below, is_integer
from erasable.core.threads import in_threads, several

__all__ = ["FOR_RECORDS", "SIGNED", "Stream", "Tape", "any_repeats"]

_BELOW_WORD = 2**32
_SIGNED_LIMIT = 2**63
_INTEGERS = range(-_SIGNED_LIMIT, 2**64)

# Second half of SipHash's key: keeps the hashes for one purpose apart from the others.
FOR_RECORDS = np.uint64(int.from_bytes(b"records\0", "little"))
_FOR_LABELS = np.uint64(int.from_bytes(b"labels\0\0", "little"))
_FOR_CHILDREN = np.uint64(int.from_bytes(b"children", "little"))

_TAG_SIGNED = b"i"
_TAG_UNSIGNED = b"u"
SIGNED = np.uint64(_TAG_SIGNED[0])
_TAG_TEXT = b"s"

_ACCEPTED_IDS = "expected integers from -2**63 to 2**64 - 1, or strings"


class Stream(IntEnum):
    """Purpose of a draw; draws of different streams are independent.

    The numbers are part of every saved model. Add new ones at the end; never renumber.

    Examples
    --------
    >>> int(Stream.RACE)
    1
    """

    RACE = 1
    """Exponential races: a choice among records (k-means++ seeding)."""
    PHASE = 2
    """Phases of randomised rounding, drawn for a label rather than for a record."""
    LEAF = 3
    """Assignment of a record or a group to a leaf or a shard."""
    NOISE = 4
    """What is added to a record that was drawn."""
    BATCH = 5
    """Whether a record takes part in a step."""


@dataclass(frozen=True, slots=True)
class Tape:
    """Random draws addressed by their purpose, instead of by their order.

    Parameters
    ----------
    seed : int
        From 0 to ``2**64 - 1``.

    Raises
    ------
    InvalidInputError
        If `seed` is not such an integer.

    Notes
    -----
    Philox: Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011.
    SipHash: Aumasson and Bernstein, INDOCRYPT 2012.

    Examples
    --------
    A record's draw stays what it is when another record goes:

    >>> import numpy as np
    >>> tape = Tape(seed=3)
    >>> everybody = tape.uniform(tape.record_keys(np.array([10, 17, 25])), Stream.RACE, step=0)
    >>> without_17 = tape.uniform(tape.record_keys(np.array([10, 25])), Stream.RACE, step=0)
    >>> bool(np.all(everybody[[0, 2]] == without_17))
    True
    """

    seed: int

    def __post_init__(self) -> None:
        """Check the seed and keep it as a Python int."""
        seed = integer_below(self.seed, BELOW_SEED)
        if seed is None:
            raise InvalidInputError(
                f"seed={self.seed!r}; expected an integer from 0 to 2**64 - 1; "
                "draw_seed() makes one"
            )
        object.__setattr__(self, "seed", seed)

    def child(self, *labels: int | str) -> Tape:
        """Derive the tape of a part: a node of a tree, a member of an ensemble.

        Parameters
        ----------
        *labels : int or str
            What names the part; integers from ``-2**63`` to ``2**64 - 1``. Order counts, 1 and
            "1" differ, and ``child(1, 2)`` differs from ``child(1).child(2)``.

        Returns
        -------
        Tape
            A pure function of the seed and the labels.

        Raises
        ------
        InvalidInputError
            If a label is neither a string nor an integer in range.

        Examples
        --------
        >>> Tape(3).child("tree", 0) == Tape(3).child("tree", 0)
        True
        >>> Tape(3).child("tree", 0) == Tape(3).child("tree", 1)
        False
        """
        return Tape(self._hash(_FOR_CHILDREN, b"".join(map(_label_bytes, labels))))

    def record_keys(self, ids: NDArray[np.generic]) -> NDArray[np.uint64]:
        """Hash record ids to the 64-bit keys of their draws.

        An id counts by its value, not by its storage: 17 has the same key as an int8, a uint64 or
        a Python int. 17 and "17" are different ids. Strings count by their UTF-8 bytes, without
        Unicode normalisation.

        Parameters
        ----------
        ids : ndarray of shape (n,)
            Integers of any NumPy integer dtype, strings, or an object array of Python or NumPy
            integers and strings, mixed if need be.

        Returns
        -------
        ndarray of shape (n,), uint64
            Equal ids have equal keys. Two different ids among n share one with probability about
            ``n**2 / 2**65``; the caller, who knows which ids differ, checks it.

        Raises
        ------
        InvalidIdsError
            If an id is anything else: a float, a boolean, bytes, a date, None, an integer that
            does not fit in 64 bits, or text that UTF-8 cannot encode.

        Examples
        --------
        >>> import numpy as np
        >>> tape = Tape(3)
        >>> tape.record_keys(np.array([17])) == tape.record_keys(np.array([17], dtype=np.int8))
        array([ True])
        >>> tape.record_keys(np.array([17])) == tape.record_keys(np.array(["17"]))
        array([False])
        """
        ids = as_array(ids)
        if not _is_vector(ids):
            raise InvalidIdsError(
                f"ids are {_described(ids)}; expected an array of one dimension; "
                "convert with numpy.array(ids, dtype=object)"
            )
        kind = ids.dtype.kind
        if kind == "i":
            return self._integer_keys(ids.astype(np.int64).view(np.uint64), None)
        if kind == "u":
            values = ids.astype(np.uint64)
            return self._integer_keys(values, values >= np.uint64(_SIGNED_LIMIT))
        if kind == "U":
            return self._text_keys(ids.tolist())
        if kind in "OT":
            return self._object_keys(ids.tolist())
        raise InvalidIdsError(
            f"ids have dtype {ids.dtype}; {_ACCEPTED_IDS}; convert with ids.astype('int64') or "
            "ids.astype(str)"
        )

    def key_of(self, label: str) -> int:
        """Hash a label, such as a feature name, to the key of its draws.

        Parameters
        ----------
        label : str
            The name. Labels are kept apart from records: a record id never shares a key with a
            label other than by chance.

        Returns
        -------
        int
            From 0 to ``2**64 - 1``.

        Raises
        ------
        InvalidInputError
            If `label` is not a string.
        """
        if not isinstance(label, str):
            raise InvalidInputError(
                f"label of type {type(label).__name__}; expected a string; convert with str()"
            )
        return self._hash(_FOR_LABELS, _label_bytes(label))

    def uniform(self, keys: NDArray[np.uint64], stream: int, step: int) -> NDArray[np.float64]:
        """Draw one number for each key, uniformly between 0 and 1.

        Parameters
        ----------
        keys : ndarray of shape (n,), uint64
            From `record_keys` or `key_of`.
        stream : int
            What the draw is for, one of `Stream`; below ``2**32``.
        step : int
            Which time; below ``2**32``.

        Returns
        -------
        ndarray of shape (n,), float64
            Numbers ``(m + 1/2) / 2**52`` with `m` an integer below ``2**52``: never 0, never 1.

        Raises
        ------
        InvalidInputError
            If the keys are not uint64, or `stream` or `step` is out of range.
        """
        if not (_is_vector(keys) and keys.dtype == np.uint64):
            raise InvalidInputError(
                f"keys are {_described(keys)}; expected a uint64 array of one dimension; "
                "use record_keys(ids)"
            )
        words = _word("stream", stream), _word("step", step)
        first, second = np.empty(keys.shape[0]), np.empty(keys.shape[0])
        fill_uniform(np.uint64(self.seed), np.ascontiguousarray(keys), *words, first, second)
        return first

    def _hash(self, purpose: np.uint64, message: bytes) -> int:
        data = np.frombuffer(message or b"\0", dtype=np.uint8).copy()
        return int(siphash24(np.uint64(self.seed), purpose, data, 0, len(message)))

    def _integer_keys(
        self, values: NDArray[np.uint64], is_large: NDArray[np.bool_] | None
    ) -> NDArray[np.uint64]:
        """Hash two's complement `values`; those in `is_large` are unsigned, 2**63 or more."""
        seed = np.uint64(self.seed)
        keys = np.empty(values.shape[0], dtype=np.uint64)
        siphash24_integers(seed, FOR_RECORDS, SIGNED, values, keys)
        if is_large is not None and is_large.any():
            large = np.empty(int(is_large.sum()), dtype=np.uint64)
            tag = np.uint64(_TAG_UNSIGNED[0])
            siphash24_integers(seed, FOR_RECORDS, tag, values[is_large], large)
            keys[is_large] = large
        return keys

    def _text_keys(self, texts: list[str]) -> NDArray[np.uint64]:
        keys = np.empty(len(texts), dtype=np.uint64)
        tag = _TAG_TEXT.decode()
        joined = "".join([tag, tag.join(texts)] if texts else [])
        if joined.isascii():  # each character is a byte: all messages are made at once
            data = joined.encode()
            lengths = np.fromiter(map(len, texts), np.int64, len(texts)) + len(_TAG_TEXT)
        else:
            messages = [_TAG_TEXT + _utf8(text) for text in texts]
            data = b"".join(messages)
            lengths = np.fromiter(map(len, messages), np.int64, len(messages))
        offsets = np.zeros(len(texts) + 1, dtype=np.int64)
        np.cumsum(lengths, out=offsets[1:])
        held = np.frombuffer(bytearray(data), dtype=np.uint8)
        siphash24_batch(np.uint64(self.seed), FOR_RECORDS, held, offsets, keys)
        return keys

    def _object_keys(self, ids: list[object]) -> NDArray[np.uint64]:
        kinds = set(map(type, ids))
        for kind in kinds:
            if not (issubclass(kind, str) or is_integer(kind)):
                row = next(i for i, given in enumerate(ids) if type(given) is kind)
                raise InvalidIdsError(
                    f"id {ids[row]!r} at row {row} is of type {kind.__name__}; {_ACCEPTED_IDS}; "
                    "convert it to one of these"
                )
        if all(issubclass(kind, str) for kind in kinds):
            return self._text_keys(cast(list[str], ids))
        is_text = np.fromiter((isinstance(given, str) for given in ids), np.bool_, len(ids))
        values = [int(cast(int, given)) for given in ids if not isinstance(given, str)]
        keys = np.empty(len(ids), dtype=np.uint64)
        keys[~is_text] = self._integer_keys(*_to_64_bits(values))
        if is_text.any():
            keys[is_text] = self._text_keys([given for given in ids if isinstance(given, str)])
        return keys


def _utf8(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise InvalidIdsError(
            f"an id holds {text[error.start]!r}, a lone surrogate; expected text that "
            "UTF-8 can encode; repair the decoding that produced it"
        ) from None


def _word(name: str, value: object) -> np.uint32:
    number = integer_below(value, _BELOW_WORD)
    if number is None:
        raise InvalidInputError(
            f"{name}={value!r}; expected an integer from 0 to 2**32 - 1; use another child tape "
            "when they run out"
        )
    return np.uint32(number)


def any_repeats(keys: NDArray[np.uint64], n_jobs: int | None = None) -> bool:
    """Return whether a key occurs twice; the keys, drawn evenly, may be reordered.

    Examples
    --------
    >>> any_repeats(np.array([7, 5, 7], dtype=np.uint64))
    True
    """
    if not several(keys.size, n_jobs):
        return _has_repeats(keys)
    shares = (keys >> np.uint64(61)).astype(np.uint8)
    return any(in_threads(lambda share: _has_repeats(keys[shares == share]), range(8), n_jobs))


def _has_repeats(keys: NDArray[np.uint64]) -> bool:
    keys.sort()
    return bool(np.any(keys[1:] == keys[:-1]))


def _label_bytes(label: object) -> bytes:
    """Encode a label so that no two sequences of labels give the same bytes."""
    if isinstance(label, str):
        text = label.encode("utf-8", "surrogatepass")
        return _TAG_TEXT + len(text).to_bytes(8, "little") + text
    if is_integer(type(label)):
        number = int(cast(int, label))
        if number in _INTEGERS:
            tag = _TAG_SIGNED if number < _SIGNED_LIMIT else _TAG_UNSIGNED
            return tag + (number % BELOW_SEED).to_bytes(8, "little")
    raise InvalidInputError(
        f"label {label!r} of type {type(label).__name__}; expected a string or an integer from "
        "-2**63 to 2**64 - 1; convert it to a string"
    )


def _to_64_bits(values: list[int]) -> tuple[NDArray[np.uint64], NDArray[np.bool_]]:
    """Return two's complement words, and flags of those for 2**63 or more."""
    beyond = next((value for value in values if value not in _INTEGERS), None)
    if beyond is not None:
        raise InvalidIdsError(
            f"id {beyond} does not fit in 64 bits; {_ACCEPTED_IDS}; convert the ids to strings"
        )
    words = np.fromiter((v % BELOW_SEED for v in values), np.uint64, len(values))
    return words, np.fromiter((v >= _SIGNED_LIMIT for v in values), np.bool_, len(values))


def _is_vector(given: object) -> bool:
    return isinstance(given, np.ndarray) and given.ndim == 1


def _described(given: object) -> str:
    if isinstance(given, np.ndarray):
        return f"{given.dtype} of shape {given.shape}"
    return f"a {type(given).__name__}"
