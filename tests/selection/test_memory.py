"""What memory is free, by files as systems write them."""

from __future__ import annotations

from pathlib import Path

import pytest

from erasable.core.errors import InvalidInputError
from erasable.selection import _memory
from erasable.selection._memory import available_memory, check_memory

GIB = 2**30


def write(root: Path, **files: str) -> str:
    """Write files; in their names a double underscore is a slash, a single one stays."""
    for name, text in files.items():
        place = root / name.replace("__", "/").replace("DOT", ".")
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
    return str(root)


MACHINE = f"MemTotal: 99 kB\nMemFree: 5 kB\nMemAvailable: {8 * GIB // 1024} kB\n"
STAT = f"anon {GIB}\nfile {6 * GIB}\nshmem {GIB}\ninactive_file {4 * GIB}\nactive_file {GIB}\n"


def second(root: Path, limit: str, used: int, group: str = "", stat: str = STAT) -> str:
    """A machine of control groups, version 2."""
    place = f"sys__fs__cgroup__{group}"
    files = {f"{place}memoryDOTmax": limit, f"{place}memoryDOTcurrent": str(used)}
    return write(
        root, proc__meminfo=MACHINE, proc__self__cgroup="0::/a/b\n", **files,
        **{f"{place}memoryDOTstat": stat},
    )  # fmt: skip


def test_a_machine_without_limits(tmp_path: Path) -> None:
    assert available_memory(write(tmp_path, proc__meminfo=MACHINE)) == 8 * GIB
    assert available_memory(second(tmp_path, "max\n", 3 * GIB)) == 8 * GIB


def test_what_files_take_of_a_group_is_free(tmp_path: Path) -> None:
    assert available_memory(second(tmp_path, str(8 * GIB), 7 * GIB)) == 6 * GIB
    no_files = second(tmp_path, str(8 * GIB), 7 * GIB, stat=f"anon {7 * GIB}\n")
    assert available_memory(no_files) == GIB
    nonsense = second(tmp_path, str(8 * GIB), 7 * GIB, stat="inactive_file\n")
    assert available_memory(nonsense) == GIB


def test_a_group_that_is_full_has_nothing(tmp_path: Path) -> None:
    assert available_memory(second(tmp_path, str(GIB), 3 * GIB, stat="")) == 0
    more_than_used = second(tmp_path, str(GIB), GIB // 2)
    assert available_memory(more_than_used) == GIB


@pytest.mark.parametrize("group", ["", "a__", "a__b__"])
def test_the_tightest_of_its_groups_counts(tmp_path: Path, group: str) -> None:
    second(tmp_path, str(7 * GIB), 0, stat="")
    assert available_memory(second(tmp_path, str(2 * GIB), 0, group, "")) == 2 * GIB


def test_groups_of_others_do_not_count(tmp_path: Path) -> None:
    assert available_memory(second(tmp_path, "5", 0, "a__c__", "")) == 8 * GIB


@pytest.mark.parametrize("group", ["", "a__"])
def test_first_version(tmp_path: Path, group: str) -> None:
    place = f"sys__fs__cgroup__memory__{group}memoryDOT"
    root = write(
        tmp_path,
        proc__meminfo=MACHINE,
        proc__self__cgroup="5:cpu,cpuacct:/z\n4:memory:/a\n0::/a\n",
        **{
            f"{place}limit_in_bytes": str(4 * GIB),
            f"{place}usage_in_bytes": str(3 * GIB),
            f"{place}stat": f"inactive_file 7\ntotal_inactive_file {GIB}\ntotal_active_file 1\n",
        },
    )
    assert available_memory(root) == 2 * GIB + 1


def test_what_would_not_fit_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_memory, "available_memory", lambda: 2.0 * GIB)
    check_memory(2.0 * GIB, "a matrix", "take fewer")
    with pytest.raises(InvalidInputError, match=r"would take 3\.0 GiB, and 2\.0 GiB are free"):
        check_memory(3.0 * GIB, "a matrix", "take fewer")
