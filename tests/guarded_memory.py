"""Mapped memory under guard: access to what nobody owns ends the process, others' writes show.

What is guarded are the pages after each array, those of no array, the arrays that nobody has any
more, which are filled with a pattern, and, in `strict` use, arrays that a prepared change leaves
out. All arrays, however small, have pages of their own. What somebody has is compared before and
after a change is written.

Run as a program it leads lives of pipelines over sparse tables that delete from files.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import mmap
import sys
import tempfile
import warnings
import weakref
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray

from erasable.core.mapped import memory, objects, pages
from erasable.core.mapped.description import PreparedChange
from erasable.core.mapped.disk import Folder
from erasable.core.mapped.memory import PAGE, Memory, gaps
from erasable.core.mapped.pages import MappedFile, recover
from erasable.core.row_arrays import Slot

POISON = 0xA5
_LIBC = ctypes.CDLL(None, use_errno=True)


class Guard:
    """Knows which bytes of which mapped memory somebody owns."""

    def __init__(self) -> None:
        self._owned: dict[int, tuple[weakref.ref[Slot], bytes]] = {}
        self._named = set[int]()
        self._shut: weakref.WeakKeyDictionary[Memory, set[tuple[int, int]]] = (
            weakref.WeakKeyDictionary()
        )

    def arrays(self, held: Memory, slots: Sequence[Sequence[int]]) -> list[Slot]:
        """Give arrays to their owners, and shut what lies between them."""
        arrays = _ARRAYS(held, slots)
        begin = address_of(np.ndarray(1, np.uint8, held))
        self._shut[held] = set()
        whole = [[offset, -(-size // PAGE) * PAGE] for offset, size in slots]
        for offset, size in gaps(whole, len(held)):
            self._forbid(held, begin + offset, size)
        for array, (offset, size) in zip(arrays, whole, strict=True):
            known = weakref.ref(held)
            weakref.finalize(array, self._release, known, begin + offset, size).atexit = False
            self._owned[begin + offset] = (weakref.ref(array), b"")
        return arrays

    def _release(self, known: weakref.ref[Memory], begin: int, size: int) -> None:
        self._owned.pop(begin, None)
        held = known()
        if held is not None and (begin, size) not in self._shut[held]:
            ctypes.memset(begin, POISON, size)
            self._forbid(held, begin, size)

    def _forbid(self, held: Memory, begin: int, size: int) -> None:
        _protect(begin, size, 0)
        self._shut[held].add((begin, size))

    def keep(self, held: Memory, runs: Any) -> None:
        """Let memory have copies of pages that are shut, too."""
        shut = self._shut[held]
        for each in shut:
            _protect(*each, mmap.PROT_READ | mmap.PROT_WRITE)
        _KEEP(held, runs)
        for each in shut:
            _protect(*each, 0)

    def look(self, named: Sequence[NDArray[np.uint8]] = ()) -> None:
        """Remember what everybody has, and which arrays a change names."""
        self._named = set(map(address_of, named))
        for begin, (known, _) in self._owned.items():
            array = known()
            self._owned[begin] = (known, b"" if array is None else array.tobytes())

    def compare(self) -> None:
        """Assert that everybody still has it."""
        for known, before in self._owned.values():
            array = known()
            assert array is None or array.tobytes() == before, "an array was changed by another"

    def revoke(self, file: MappedFile) -> None:
        """Shut what a change that was prepared leaves out."""
        held: Any = file._memory.base
        for offset, size in file._now.slots:
            begin = address_of(file._memory) + offset
            if begin not in self._named and begin in self._owned:
                del self._owned[begin]
                self._forbid(held, begin, -(-size // PAGE) * PAGE)


_ARRAYS, _KEEP = Memory.arrays, Memory.keep


def address_of(array: Any) -> int:
    """Return where an array begins."""
    return int(array.__array_interface__["data"][0])


def _protect(begin: int, size: int, how: int) -> None:
    assert _LIBC.mprotect(ctypes.c_void_p(begin), ctypes.c_size_t(size), how) == 0


@contextlib.contextmanager
def guarded(*, strict: bool = False) -> Iterator[None]:
    """Guard what is mapped in the block; in strict use no model is used after it was prepared."""
    guard = Guard()
    apart, prepare, carry_out = pages.take_apart, MappedFile.prepare, PreparedChange.carry_out

    def watched_apart(root: Any) -> Any:
        found = apart(root)
        guard.look(found[1])  # to take an object apart may be to bring it up to date
        return found

    def watched_prepare(file: MappedFile, root: Any, label: str) -> None:
        prepare(file, root, label)
        guard.compare()
        if strict and file._memory.size:
            guard.revoke(file)

    def watched_carry_out(change: PreparedChange, *where: Any) -> None:
        guard.look()
        carry_out(change, *where)
        guard.compare()

    with contextlib.ExitStack() as stack:
        for place, name, value in (
            (memory, "GUARD", PAGE), (objects, "_SMALL", 0),
            (Memory, "arrays", lambda *given: guard.arrays(*given)),
            (Memory, "keep", lambda *given: guard.keep(*given)),
            (pages, "take_apart", watched_apart), (MappedFile, "prepare", watched_prepare),
            (PreparedChange, "carry_out", watched_carry_out),
        ):  # fmt: skip
            stack.enter_context(patch.object(place, name, value))
        yield


# -- lives -----------------------------------------------------------------------------------------


def compositions() -> dict[str, Callable[[], Any]]:
    """Return pipelines over sparse tables, by what they read."""
    from erasable.compose import ColumnTransformer
    from erasable.feature_extraction import CountVectorizer, TfidfVectorizer
    from erasable.linear_model import LogisticRegression
    from erasable.naive_bayes import MultinomialNB
    from erasable.pipeline import make_pipeline
    from erasable.preprocessing import MaxAbsScaler, OneHotEncoder, StandardScaler

    def one_hot() -> Any:
        return OneHotEncoder(handle_unknown="ignore")

    def by_column() -> Any:
        return ColumnTransformer([("words", one_hot(), [0]), ("others", one_hot(), [1])])

    def mixed() -> Any:
        return ColumnTransformer([("words", one_hot(), [0]), ("number", StandardScaler(), [2])])

    return {
        "words": lambda: make_pipeline(TfidfVectorizer(), LogisticRegression()),
        "counts": lambda: make_pipeline(CountVectorizer(), MaxAbsScaler(), LogisticRegression()),
        "bayes": lambda: make_pipeline(CountVectorizer(), MultinomialNB()),
        "table categories": lambda: make_pipeline(one_hot(), LogisticRegression()),
        "table columns": lambda: make_pipeline(by_column(), LogisticRegression()),
        "table mixed": lambda: make_pipeline(mixed(), MaxAbsScaler(), LogisticRegression()),
    }


class Life:
    """One model at rest, and what it has learned from.

    Parameters
    ----------
    name : str
        Of the composition.
    seed : int
    folder : path-like
    n : int
        Records.
    """

    def __init__(self, name: str, seed: int, folder: Any, n: int = 20) -> None:
        self.name, self.made = name, compositions()[name]
        self.rng, self.files = np.random.default_rng([seed, len(name)]), Folder(folder)
        self.n_given, self.label = 0, 0
        self.rows = {f"v{number}": self.row() for number in range(n)}
        MappedFile.make(self.files, "m", "0", self.fitted(self.rows))

    def row(self) -> tuple[Any, int]:
        """Draw what a record holds: one of its words is its own."""
        self.n_given += 1
        one, other = self.rng.choice(["ash", "elm", "fir", "oak", "yew"], 2).tolist()
        own = f"word{self.n_given}" if self.rng.random() < 0.7 else one
        table = [own, other, str(self.rng.integers(0, 4))]
        return table if self.name.startswith("table") else " ".join(table), self.n_given % 2

    def given(self, rows: dict[str, tuple[Any, int]]) -> tuple[Any, Any, list[str]]:
        """Return features, targets and ids."""
        features = [features for features, _ in rows.values()]
        X = np.array(features, dtype=object) if self.name.startswith("table") else features
        if self.name == "table mixed":
            X[:, 2] = X[:, 2].astype(float)
        return X, [target for _, target in rows.values()], list(rows)

    def fitted(self, rows: dict[str, tuple[Any, int]]) -> Any:
        """Learn from records."""
        X, y, ids = self.given(rows)
        return self.made().fit(X, y, ids=ids)

    def change(self, model: Any, rows: dict[str, tuple[Any, int]]) -> dict[str, tuple[Any, int]]:
        """Have a model follow a change of its records; return these as they are then."""
        some = self.rng.choice(list(rows), int(self.rng.integers(1, 4)), replace=False).tolist()
        new = {f"n{self.n_given}": self.row() for _ in some}
        X, y, ids = self.given(new)
        what = str(self.rng.choice(["delete", "add", "correct", "replace"]))
        left = {name: row for name, row in rows.items() if name not in some}
        if what == "delete" and len(left) > 8:
            model.delete(some)
            return left
        if what == "correct":
            model.correct(some, X, y)
            return {**rows, **dict(zip(some, new.values(), strict=True))}
        if what == "replace":
            model.replace(some, X, y, ids=ids)
            return {**left, **new}
        model.add(X, y, ids=ids)
        return {**rows, **new}

    def step(self, *, strict: bool) -> None:
        """Open the model, change it, and put it at rest; others have it open meanwhile."""
        file, model = MappedFile.open(self.files, "m", str(self.label))
        _, other = MappedFile.open(self.files, "m", str(self.label))
        before, self.rows = self.rows, self.change(model, self.rows)
        expected = self.fitted(self.rows).digest()
        assert model.digest() == expected, f"{self.name}: another digest"
        self.label += 1
        file.prepare(model, str(self.label))
        if strict:
            del model
            gc.collect()
        assert recover(self.files, "m", str(self.label))
        if not strict:
            assert model.digest() == expected
            rows = self.change(model, self.rows)
            assert model.digest() == self.fitted(rows).digest(), f"{self.name}: another after it"
        rows = self.change(other, before)
        assert other.digest() == self.fitted(rows).digest(), f"{self.name}: another beside it"


def live(names: Sequence[str], seed: int, steps: int, *, strict: bool, n: int = 20) -> None:
    """Lead the lives of some compositions."""
    with guarded(strict=strict), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in names:
            with tempfile.TemporaryDirectory() as folder:
                life = Life(name, seed, folder, n)
                for _ in range(steps):
                    life.step(strict=strict)
                gc.collect()


# -- what is broken --------------------------------------------------------------------------------


def a_table_has_a_finalizer() -> None:
    """Have a table that is not shown any more swept when its view is collected."""
    from erasable.core.attachment import Attachment
    from erasable.core.views import View

    View._after_reading = Attachment._after_reading  # type: ignore[method-assign]
    live(["words"], 1, 6, strict=True)


def _one_array(folder: str) -> tuple[Any, Any]:
    MappedFile.make(Folder(folder), "m", "0", {"x": np.arange(5.0), "y": np.arange(6.0)})
    return MappedFile.open(Folder(folder), "m", "0")


def a_write_is_too_long() -> None:
    """Write past the pages of an array."""
    with guarded(), tempfile.TemporaryDirectory() as folder:
        _, root = _one_array(folder)
        ctypes.memset(address_of(root["x"]), 0, PAGE)
        ctypes.memset(address_of(root["x"]), 0, PAGE + 1)


def an_array_is_read_after_its_release() -> None:
    """Read where an array was."""
    with guarded(), tempfile.TemporaryDirectory() as folder:
        _, root = _one_array(folder)
        place = address_of(root["x"])
        assert ctypes.string_at(place + 8, 8) == np.float64(1.0).tobytes()
        del root["x"]
        ctypes.string_at(place, 1)


BROKEN = {
    each.__name__: each
    for each in (a_table_has_a_finalizer, a_write_is_too_long, an_array_is_read_after_its_release)
}


def main(what: str, seed: int = 1, steps: int = 4) -> None:
    """Break something, or lead lives."""
    if what in BROKEN:
        BROKEN[what]()
    else:
        names = list(compositions()) if what == "all" else [what]
        for strict in (True, False):
            live(names, seed, steps, strict=strict)
    print("the process has lived")


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent))
    main(sys.argv[1], *map(int, sys.argv[2:]))
