"""What covers what, and a lock of a folder."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from erasable.core.errors import WorkspaceBusyError
from erasable.workspace.locking import WHOLE, Claim
from erasable.workspace.locking.folder import FolderLock

NAMES = st.sets(st.sampled_from(["dataset:a", "dataset:b", "model:a", WHOLE]))
CLAIMS = st.builds(lambda changes, reads: Claim.of(changes, reads=reads), NAMES, NAMES)


def in_the_way(one: Claim, other: Claim) -> bool:
    """Tell whether two claims exclude each other, name by name."""
    return any(
        WHOLE in (a, b) or a == b
        for a, owns in [(x, True) for x in one.changes] + [(x, False) for x in one.reads]
        for b, others in [(x, True) for x in other.changes] + [(x, False) for x in other.reads]
        if owns or others
    )


@given(CLAIMS, CLAIMS, CLAIMS)
def test_who_is_in_the_way_of_a_part_is_in_the_way_of_what_covers_it(
    one: Claim, part: Claim, other: Claim
) -> None:
    if one.covers(part) and in_the_way(part, other):
        assert in_the_way(one, other)


@given(CLAIMS)
def test_a_claim_covers_itself_and_the_whole_covers_it(claim: Claim) -> None:
    assert claim.covers(claim)
    assert Claim.of().covers(claim)


def test_a_folder_is_lent_to_one_at_a_time_and_to_them_again(tmp_path: Path) -> None:
    mine, theirs = FolderLock(tmp_path / "lock"), FolderLock(tmp_path / "lock")
    with mine.hold(Claim.of(["model:a"]), 1.0):
        with mine.hold(Claim.of(["dataset:b"]), 0.0):
            pass
        with (
            pytest.raises(WorkspaceBusyError, match="another process is at work"),
            theirs.hold(Claim.of(["model:b"]), 0.01),
        ):
            pass
    with theirs.hold(Claim.of(), 0.0):
        pass
