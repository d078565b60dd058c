"""Files of arrays: a change is there or not, wherever it was interrupted; damage is found."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from effort import examples
from erasable.core.mapped import pages
from erasable.core.mapped.disk import Folder
from erasable.core.mapped.pages import MappedFile, StaleError, recover


def _root() -> dict[str, Any]:
    return {
        "large": np.arange(40_000.0),
        "middle": np.arange(3_000, dtype=np.int32),
        "small": np.arange(5.0),
        "n": 3,
    }


def _change(root: dict[str, Any]) -> None:
    root["large"][[0, 17_000, 39_999]] = -1.0
    root["middle"] = np.arange(9_000, dtype=np.int32)  # another array, of another size
    root["small"][2] = -5.0
    root["n"] = 4


def _assert_is(found: dict[str, Any], expected: dict[str, Any]) -> None:
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        np.testing.assert_array_equal(found[name], value)


@pytest.fixture(params=["pagemap", "by comparing"])
def files(tmp_path: Path, request: Any, monkeypatch: Any) -> Folder:
    if request.param == "by comparing":
        monkeypatch.setattr(os, "pread", _no_pread)
    return Folder(tmp_path)


def _no_pread(*args: Any) -> bytes:
    raise OSError(1, "not here")


def test_a_change_is_there_after_it_was_settled(files: Folder) -> None:
    MappedFile.make(files, "a", "one", _root())
    file, root = MappedFile.open(files, "a", "one")
    _assert_is(root, _root())
    _change(root)
    file.prepare(root, "two")
    _assert_is(MappedFile.open(files, "a", "one")[1], _root())
    assert recover(files, "a", "two")
    expected = _root()
    _change(expected)
    _assert_is(MappedFile.open(files, "a", "two")[1], expected)


def test_a_change_writes_what_it_changed(files: Folder) -> None:
    MappedFile.make(files, "a", "one", {"large": np.zeros(2_000_000)})
    file, root = MappedFile.open(files, "a", "one")
    root["large"][::500_000] = 1.0
    root["large"][7] = 0.0  # written to, and the same
    file.prepare(root, "two")
    assert files.path("a/change").stat().st_size < 4 * 4096 + 4 * 4096 + 3_000  # pages, hashes
    recover(files, "a", "two")
    assert MappedFile.open(files, "a", "two")[1]["large"].sum() == 4.0


def test_hashes_follow_changes_and_growth(files: Folder) -> None:
    rng, root = np.random.default_rng(7), {"large": np.zeros(1_500_000)}
    MappedFile.make(files, "a", "0", root)
    for n in range(4):
        file, root = MappedFile.open(files, "a", str(n))
        root["large"][rng.integers(1_500_000, size=9)] = n
        root[f"more {n}"] = np.full(300_000 * n + 1, 7.0)  # n = 0 goes into the description
        file.prepare(root, str(n + 1))
        assert recover(files, "a", str(n + 1))
        shutil.copytree(files.path("a"), files.path("b"))  # all of it is checked there
        _assert_is(MappedFile.open(files, "b", str(n + 1))[1], root)
        assert files.path("b/arrays").read_bytes()[-_hashed(files) :] == _hashes(files)
        shutil.rmtree(files.path("b"))


def _hashed(files: Folder) -> int:
    """Count the bytes of the hashes: 16 for 16384 of arrays and a last part of these."""
    size = files.path("a/arrays").stat().st_size
    return next(16 * n for n in range(size) if 16384 * (n - 1) < size - 16 * n <= 16384 * n)


def _hashes(files: Folder) -> bytes:
    data = files.path("a/arrays").read_bytes()[: -_hashed(files)]
    blocks = [data[at : at + 16384] for at in range(0, len(data), 16384)]
    return b"".join(blake2b(each, digest_size=16).digest() for each in blocks)


def test_damage_behind_an_open_file_is_not_made_good(files: Folder) -> None:
    for damaged in (False, True):
        MappedFile.make(files, "a", "one", _root())
        file, root = MappedFile.open(files, "a", "one")
        if damaged:
            with open(files.path("a/arrays"), "r+b") as written:
                written.seek(-1, os.SEEK_END)
                written.write(b"x")
        root["large"][0] = -1.0
        file.prepare(root, "two")
        assert recover(files, "a", "two")
        shutil.copytree(files.path("a"), files.path(f"b{damaged}"))
        if damaged:
            with pytest.raises(StaleError, match="damaged"):
                MappedFile.open(files, "bTrue", "two")
        else:
            _assert_is(MappedFile.open(files, "bFalse", "two")[1], root)


def test_what_was_prepared_for_another_label_is_removed(files: Folder) -> None:
    MappedFile.make(files, "a", "one", _root())
    file, root = MappedFile.open(files, "a", "one")
    _change(root)
    file.prepare(root, "two")
    assert recover(files, "a", "one")
    assert not files.path("a/change").exists()
    _assert_is(MappedFile.open(files, "a", "one")[1], _root())
    assert not recover(files, "a", "two")
    assert not files.path("a").exists()
    assert not recover(files, "a", "two")


def test_freed_places_are_overwritten_and_used_again(files: Folder) -> None:
    MappedFile.make(files, "a", "0", {"x": np.full(5_000, 12345.0), "y": np.zeros(1_000)})
    for n in range(6):
        file, root = MappedFile.open(files, "a", str(n))
        root["x"] = np.full(5_000 - n, 12345.0 + n + 1)
        file.prepare(root, str(n + 1))
        recover(files, "a", str(n + 1))
        data = files.path("a/arrays").read_bytes()
        assert np.float64(12345.0 + n).tobytes() not in data
        assert np.float64(12345.0 + n + 1).tobytes() in data
    assert len(data) < 3 * 5_000 * 8


class _Stop(BaseException):
    pass


class _Interrupted(Folder):
    """A folder whose n-th effect is the last; `torn` writes half of it."""

    def __init__(self, root: Path, n: int, torn: bool) -> None:
        super().__init__(root)
        self.left, self.torn = n, torn

    def _count(self) -> None:
        self.left -= 1
        if self.left < 0:
            raise _Stop

    def writing(self, key: str) -> Any:
        self._count()
        return super().writing(key)

    def patch(self, key: str, runs: Any) -> None:
        runs = list(runs)
        if self.left == 0 and self.torn:
            half = [(offset, data[: len(data) // 2]) for offset, data in runs[: len(runs) // 2 + 1]]
            super().patch(key, half)
        self._count()
        super().patch(key, runs)

    def remove(self, key: str) -> bool:
        self._count()
        return super().remove(key)

    def remove_folder(self, key: str) -> None:
        self._count()
        super().remove_folder(key)


@pytest.mark.parametrize("n", range(9))
@pytest.mark.parametrize("torn", [False, True])
def test_a_change_that_is_interrupted_is_none(tmp_path: Path, n: int, torn: bool) -> None:
    MappedFile.make(Folder(tmp_path), "a", "one", _root())
    try:
        stopping = _Interrupted(tmp_path, n, torn)
        file, root = MappedFile.open(stopping, "a", "one")
        _change(root)
        file.prepare(root, "two")
    except _Stop:
        assert n < 2
    assert recover(Folder(tmp_path), "a", "one")
    _assert_is(MappedFile.open(Folder(tmp_path), "a", "one")[1], _root())


@pytest.mark.parametrize("n", range(9))
@pytest.mark.parametrize("torn", [False, True])
def test_a_change_is_completed_wherever_it_was_interrupted(
    tmp_path: Path, n: int, torn: bool
) -> None:
    files = Folder(tmp_path)
    MappedFile.make(files, "a", "one", _root())
    file, root = MappedFile.open(files, "a", "one")
    _change(root)
    file.prepare(root, "two")
    shutil.copytree(files.path("a"), files.path("b"))
    for key in ("a", "b"):
        try:
            recover(_Interrupted(tmp_path, n, torn), key, "two")
        except _Stop:
            assert n < 4
    expected = _root()
    _change(expected)
    assert recover(files, "a", "two")
    _assert_is(MappedFile.open(files, "a", "two")[1], expected)
    # Nobody goes back to what was current before; half of a change is not taken for it, though.
    if recover(files, "b", "one"):
        with contextlib.suppress(StaleError):
            _assert_is(MappedFile.open(files, "b", "one")[1], _root())


@pytest.mark.parametrize("name", ["arrays", "now"])
@pytest.mark.parametrize("how", ["flipped", "truncated", "gone", "longer"])
def test_damage_is_found(tmp_path: Path, name: str, how: str) -> None:
    files, rng = Folder(tmp_path), np.random.default_rng(3)
    MappedFile.make(files, "a", "one", _root())
    whole = files.path(f"a/{name}").read_bytes()
    for _ in range(examples(20)):
        path = files.path(f"a/{name}")
        place = int(rng.integers(len(whole)))
        if how == "gone":
            path.unlink()
        elif how == "flipped":
            path.write_bytes(whole[:place] + bytes([whole[place] ^ 4]) + whole[place + 1 :])
        else:
            path.write_bytes(whole[:place] if how == "truncated" else whole + b"more")
        with pytest.raises(StaleError):
            MappedFile.open(files, "a", "one")
        path.write_bytes(whole)
        _assert_is(MappedFile.open(files, "a", "one")[1], _root())


def test_a_change_that_was_cut_short_is_none(tmp_path: Path) -> None:
    files = Folder(tmp_path)
    MappedFile.make(files, "a", "one", _root())
    file, root = MappedFile.open(files, "a", "one")
    _change(root)
    file.prepare(root, "two")
    change = files.path("a/change").read_bytes()
    for size in (0, 7, 40, len(change) // 2, len(change) - 1):
        shutil.copytree(files.path("a"), files.path("b"))
        files.path("b/change").write_bytes(change[:size])
        assert recover(files, "b", "one")
        shutil.rmtree(files.path("b"))


def test_a_file_that_was_copied_is_checked_once(tmp_path: Path, monkeypatch: Any) -> None:
    files, checked = Folder(tmp_path), []
    MappedFile.make(files, "a", "one", _root())
    shutil.copytree(files.path("a"), files.path("b"))
    check = pages.check_blocks
    monkeypatch.setattr(pages, "check_blocks", lambda *args: (checked.append(1), check(*args)))
    MappedFile.open(files, "a", "one")
    assert not checked
    for _ in range(2):
        _assert_is(MappedFile.open(files, "b", "one")[1], _root())
    assert len(checked) == 1


# -- what others have written ----------------------------------------------------------------------

SECRET = b"of the workspace"


def _forged(files: Folder, label: str, to: str, runs: list[tuple[int, bytes]], key: bytes) -> None:
    """Write a change as the format says, of the description that is there."""
    described = files.path("a/now").read_bytes()
    told = {
        "from": label, "to": to, "now": len(described),
        "runs": [[offset, len(data)] for offset, data in runs],
    }  # fmt: skip
    head = json.dumps(told).encode()
    body = len(head).to_bytes(8, "little") + head + described + b"".join(data for _, data in runs)
    closing = blake2b(body, digest_size=16, key=key).digest()
    files.path("a/change").write_bytes(body + closing)


@pytest.mark.parametrize(("key", "is_taken"), [(b"", False), (b"guess", False), (SECRET, True)])
def test_a_change_without_the_secret_is_none(tmp_path: Path, key: bytes, is_taken: bool) -> None:
    """Whoever can write files, but has not the secret, has nothing patched and vouched for."""
    files = Folder(tmp_path)
    MappedFile.make(files, "a", "one", _root(), SECRET)
    before = files.path("a/arrays").read_bytes()
    _forged(files, "one", "one", [(4096, b"x" * 4096)], key)
    assert recover(files, "a", "one", SECRET)
    assert not files.path("a/change").exists()
    assert (files.path("a/arrays").read_bytes() != before) is is_taken
    if not is_taken:
        _assert_is(MappedFile.open(files, "a", "one", SECRET)[1], _root())


@pytest.mark.parametrize("is_altered", [False, True])
def test_a_change_does_not_vouch_for_what_was_altered_meanwhile(
    tmp_path: Path, is_altered: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it does not change is checked where it is not what was last checked."""
    files, checked, check = Folder(tmp_path), [], pages.check_blocks
    MappedFile.make(files, "a", "one", _root(), SECRET)
    file, root = MappedFile.open(files, "a", "one", SECRET)
    root["large"][0] = -1.0
    file.prepare(root, "two")
    if is_altered:
        with open(files.path("a/arrays"), "r+b") as written:
            written.seek(200_000)
            written.write(b"x")
    assert recover(files, "a", "two", SECRET)
    monkeypatch.setattr(pages, "check_blocks", lambda *args: (checked.append(1), check(*args)))
    if is_altered:
        with pytest.raises(StaleError, match="damaged"):
            MappedFile.open(files, "a", "two", SECRET)
    else:
        _assert_is(MappedFile.open(files, "a", "two", SECRET)[1], root)
    assert bool(checked) is is_altered
