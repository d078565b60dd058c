"""Random lives of models keep the law and leave nothing; what is broken is found, and told.

`make soak` lives for minutes on other numbers: tests/soak/model_lives.py.
"""

from __future__ import annotations

import io
import re
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from effort import SEED
from erasable import all_estimators
from erasable.core import artifact
from erasable.core.estimator import Erasable
from erasable.core.lookup import HashIndex
from erasable.core.mapped.pages import MappedFile
from erasable.core.records import Records
from erasable.ensemble._allotment import Bags
from erasable.ensemble._members import Trail
from erasable.neighbors._index import Index
from erasable.neighbors._targets import StoredLabels
from erasable.tree._boosted._rounds import Boosted
from erasable.tree._estimators import TreeModel
from erasable.tree._grown import UpdatableTree, bag_rows
from soak import model_lives
from soak.model_lives import FRAMES, BrokenError, live, main

pytestmark = [pytest.mark.soak, pytest.mark.filterwarnings("ignore")]


def broken_lives(kind: str, n: int) -> Iterator[str]:
    """Live some lives of a kind; yield how those that broke did."""
    for number in range(SEED * 1000, SEED * 1000 + n):
        try:
            live(number, kind)
        except BrokenError as error:
            yield str(error)


def test_lives_are_about_every_estimator_in_every_form() -> None:
    drawn: Counter[str] = Counter()
    for number in range(480):
        drawn += live(number, "listed", steps=[])
    names = {name for name, _, _ in all_estimators()} - {"Embedding"}
    containers = {"array", "fortran", "float32", "list", "objects", "csr", "csc", *FRAMES}
    ids = {"whole", "negative", "beyond", "text", "digits", "small", "mixed"}
    wanted = {*names, *containers, *(f"ids {kind}" for kind in ids)}
    assert {f"as {each}" for each in wanted | {"Records", "Parquet", "weights"}} <= drawn.keys()


# -- what is broken is found -----------------------------------------------------------------------


def a_digest_outlives_a_change(patch: pytest.MonkeyPatch) -> None:
    right, first = Erasable.digest, "_first_digest"

    def digest(self: Erasable) -> str:
        return str(self.__dict__.setdefault(first, right(self)))

    patch.setattr(Erasable, "digest", digest)


def a_buffer_is_left(patch: pytest.MonkeyPatch) -> None:
    right = Records._erase

    def erase(self: Records, rows: Any) -> None:
        self.before = np.array(self.matrix[rows])  # type: ignore[attr-defined]
        right(self, rows)

    patch.setattr(Records, "_erase", erase)


def a_row_is_in_another_place(patch: pytest.MonkeyPatch) -> None:
    right = Records._rows_of_ids

    def rows_of_ids(self: Records, ids: list[Any]) -> Any:
        return right(self, ids)[::-1]

    patch.setattr(Records, "_rows_of_ids", rows_of_ids)


def a_byte_of_a_file_is_changed(patch: pytest.MonkeyPatch) -> None:
    right = model_lives.load

    def load(place: Any, *given: Any, **how: Any) -> Any:
        data = bytearray(place.getvalue() if isinstance(place, io.BytesIO) else b"")
        if data:
            data[len(data) // 2] ^= 1
        return right(io.BytesIO(bytes(data)) if data else place, *given, **how)

    patch.setattr(model_lives, "load", load)


def a_file_is_written_in_its_place(patch: pytest.MonkeyPatch) -> None:
    """A death inside `save` leaves a part of it."""
    right = artifact.write_artifact

    def write(path: Any, *given: Any) -> None:
        if isinstance(path, Path):
            path.write_bytes(b"")
        right(path, *given)

    patch.setattr("erasable.core.estimator.write_artifact", write)


def changed_pages_are_not_written(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(MappedFile, "_written_pages", lambda self: [])


def an_index_forgets_no_hash(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(HashIndex, "forget", lambda *arguments: None)


def a_record_stays_in_the_index(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Index, "remove", lambda self, rows: None)


def a_class_outlives_its_last_record(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(StoredLabels, "remove", lambda self, rows: None)


def a_batch_leaves_one_record_in_the_trees(patch: pytest.MonkeyPatch) -> None:
    right = UpdatableTree.remove

    def remove(self: UpdatableTree, gone: Any, live: Any, inputs: Any) -> Any:
        some, stays = gone[: max(1, gone.size - 1)], live.copy()
        stays[bag_rows(gone[some.size :])] = True  # or kernels write where there is no room
        return right(self, some, stays, inputs)

    patch.setattr(UpdatableTree, "remove", remove)


def an_interrupt_undoes_nothing(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(TreeModel, "_relearn", lambda self, held, *given: None)


def a_shard_resumes_a_slice_too_late(patch: pytest.MonkeyPatch) -> None:
    right = Trail.before
    patch.setattr(Trail, "before", lambda self, piece: right(self, piece + 1))


def the_last_bag_does_not_learn_again(patch: pytest.MonkeyPatch) -> None:
    right = Bags.members_of
    patch.setattr(Bags, "members_of", lambda self, rows: right(self, rows)[:-1])


def a_record_stays_in_boosted_trees(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Boosted, "_move_rows", lambda self, moving, use, n_gone: (self.n_rounds, {}))


CONTROLS: list[tuple[str, Callable[[pytest.MonkeyPatch], None], str]] = [
    ("listed", a_digest_outlives_a_change, r"digest\(\) differs"),
    ("forests", a_buffer_is_left, r"a record that left is found .*_held\.records\.before"),
    ("clusters", a_row_is_in_another_place, "differs"),
    ("neighbours", a_byte_of_a_file_is_changed, "ArtifactError"),
    ("bags", a_file_is_written_in_its_place, "ArtifactError"),
    ("neighbours", changed_pages_are_not_written, "in the files"),
    ("neighbours", an_index_forgets_no_hash, r"_id_index\.keys"),
    ("neighbours", a_record_stays_in_the_index, r"a record that left is found .*_index\.tree"),
    ("neighbours", a_class_outlives_its_last_record, "differs"),
    ("trees", a_batch_leaves_one_record_in_the_trees, "differs"),
    ("forests", a_batch_leaves_one_record_in_the_trees, "differs"),
    ("trees", an_interrupt_undoes_nothing, "differs"),
    ("shards", a_shard_resumes_a_slice_too_late, "differs"),
    ("bags", the_last_bag_does_not_learn_again, "differs"),
    ("boosting", a_record_stays_in_boosted_trees, "differs"),
]


@pytest.mark.parametrize(
    ("kind", "spoil", "told"),
    CONTROLS,
    ids=[f"{kind}-{spoil.__name__}" for kind, spoil, _ in CONTROLS],
)
def test_what_is_broken_is_found(
    kind: str,
    spoil: Callable[[pytest.MonkeyPatch], None],
    told: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    spoil(monkeypatch)
    firsts = (each.partition("\n")[0] for each in broken_lives(kind, 100))
    assert any(re.search(told, each) for each in firsts)


def test_what_is_broken_is_told_with_a_command_that_repeats_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    a_row_is_in_another_place(monkeypatch)
    assert main(["--lives", "4", "--kind", "neighbours"]) == 1
    found = re.findall(r"model_lives\.py (.*)", capsys.readouterr().out)
    steps = [len(re.findall(r"\d+", each.split("'")[1])) for each in found]
    assert min(steps) <= 2
    arguments = found[steps.index(min(steps))].replace("'", "").split()
    with pytest.raises(BrokenError):
        main(arguments)
    monkeypatch.undo()
    assert main(arguments) == 0
