"""Leases in PostgreSQL: who has to wait for whom, who is dead, and who may not write any more."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import text

from erasable.core.errors import WorkspaceBusyError
from erasable.workspace import context as site_module
from erasable.workspace.context import Context
from erasable.workspace.locking import WHOLE, Claim
from erasable.workspace.locking.leases import Leases, OvertakenError

pytestmark = pytest.mark.backend("postgres")


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory, backend: str) -> Path:
    path = tmp_path_factory.mktemp("leases") / "ws"
    Context.create(path).ledger.close()
    return path


@pytest.fixture
def contexts(path: Path) -> Callable[[], Context]:
    """Open one workspace, as so many processes would."""
    return lambda: Context.open(path, wait=0.0)


@pytest.fixture
def one(contexts: Callable[[], Context]) -> Context:
    return contexts()


@pytest.fixture
def other(contexts: Callable[[], Context]) -> Context:
    return contexts()


def is_free(context: Context, *changes: str, reads: tuple[str, ...] = ()) -> bool:
    try:
        with context.lock(changes, reads=reads):
            return True
    except WorkspaceBusyError:
        return False


def n_leases(context: Context) -> int:
    with context.ledger.reading() as connection:
        return int(connection.execute(text("SELECT count(*) FROM lease")).scalar_one())


@pytest.mark.parametrize(
    ("mine", "theirs", "free"),
    [
        ((["dataset:a"], []), (["dataset:b"], []), True),
        ((["dataset:a"], []), (["dataset:a"], []), False),
        ((["dataset:a"], []), ([], ["dataset:a"]), False),
        (([], ["dataset:a"]), ([], ["dataset:a"]), True),
        (([], ["dataset:a"]), (["dataset:a"], []), False),
        ((["model:a"], ["dataset:a"]), (["model:b"], ["dataset:a"]), True),
        (([], []), (["model:new"], []), False),
        ((["model:a"], []), ([], []), False),
        (([], [WHOLE]), ([], ["model:a"]), True),
        (([], [WHOLE]), (["model:a"], []), False),
    ],
)
def test_who_is_in_the_way(
    one: Context, other: Context, mine: Any, theirs: Any, free: bool
) -> None:
    with one.lock(mine[0], reads=mine[1]):
        assert is_free(other, *theirs[0], reads=tuple(theirs[1])) == free
    assert is_free(other, *theirs[0], reads=tuple(theirs[1]))
    assert n_leases(one) == 0


def test_who_waits_comes_before_who_comes_later(
    one: Context, other: Context, contexts: Callable[[], Context]
) -> None:
    """A writer is not kept waiting by readers that come one after the other."""
    order = []
    waiting = threading.Event()

    def write() -> None:
        with other.lock(["dataset:a"], wait=30.0):
            order.append("writer")

    thread = threading.Thread(target=write)
    third = contexts()
    with one.lock(reads=["dataset:a"]):
        thread.start()
        while n_leases(one) < 2:
            waiting.wait(0.01)
        assert not is_free(third, reads=("dataset:a",))
    with third.lock(reads=["dataset:a"], wait=30.0):
        order.append("reader")
    thread.join(30)
    assert sorted(order) == ["reader", "writer"]


def test_who_has_something_may_claim_more_before_those_who_wait(
    one: Context, other: Context
) -> None:
    """Whoever waits for all of it would wait for ever, and so would the first."""
    entered = threading.Event()

    def take_all() -> None:
        with other.lock(wait=30.0):
            entered.set()

    thread = threading.Thread(target=take_all)
    with one.lock(["requests"]):
        thread.start()
        while n_leases(one) < 2:
            entered.wait(0.01)
        with one.lock(["dataset:a"]):
            assert not entered.is_set()
    thread.join(30)
    assert entered.is_set()


def test_what_is_covered_is_not_claimed_again(one: Context) -> None:
    with one.lock():
        before = n_leases(one)
        with one.lock(["dataset:a"]):
            assert n_leases(one) == before


def end_sessions(context: Context, claim: str) -> None:
    """Have the server end the session of a lease, as it does where its process has died."""
    with context.ledger.reading() as connection:
        connection.execute(
            text(
                "SELECT pg_terminate_backend(l.pid, 5000) FROM lease "
                "JOIN pg_locks l ON (l.classid::bigint << 32) | l.objid::bigint = number "
                "WHERE l.locktype = 'advisory' AND resource = :claim"
            ),
            {"claim": claim},
        ).all()


def write(context: Context) -> None:
    with context.ledger.transaction() as connection:
        context.ledger.set(connection, "colour", "red")


def test_a_session_that_ended_holds_nothing_and_its_holder_may_not_write(
    one: Context, other: Context
) -> None:
    with one.lock(["dataset:a"]):
        assert not is_free(other, "dataset:a")
        end_sessions(other, "dataset:a")
        assert is_free(other, "dataset:a")
        with pytest.raises(WorkspaceBusyError, match="was given to another"):
            write(one)
    write(one)  # it holds nothing now, and claims nothing


def test_a_lease_that_was_not_renewed_lapses(one: Context, other: Context) -> None:
    with one.lock(["dataset:a"]):
        with other.ledger.transaction() as connection:
            connection.execute(text("UPDATE lease SET until = 0"))
        assert is_free(other, "dataset:a")
        with pytest.raises(WorkspaceBusyError, match="was given to another"):
            write(one)


def test_a_lease_is_not_taken_in_the_middle_of_a_transaction(one: Context, other: Context) -> None:
    """It would be changed by two: by whoever took it, and by the one that commits."""
    with one.lock(["dataset:a"]):
        with one.ledger.transaction() as connection:
            one.ledger.set(connection, "colour", "red")
            end_sessions(other, "dataset:a")
            assert not is_free(other, "dataset:a")
        assert is_free(other, "dataset:a")


def test_without_a_fence_who_lost_a_lease_writes(one: Context, other: Context) -> None:
    with one.lock(["dataset:a"]):
        end_sessions(other, "dataset:a")
        assert is_free(other, "dataset:a")
        one.ledger.fence = None
        write(one)


def test_a_lost_session_is_found_again(one: Context, other: Context) -> None:
    """As where the server was started again: what nobody has taken is still ours."""
    locks = one.locks
    assert isinstance(locks, Leases)
    with one.lock(["dataset:a"]):
        end_sessions(other, "dataset:a")
        lease = locks._held[0]
        lease._session.close()
        lease._connect()
        assert not is_free(other, "dataset:a")
        write(one)


def test_files_of_who_is_at_work_are_not_cleaned(one: Context, other: Context) -> None:
    with one.lock(["dataset:a"]):
        mine = one.store.put("data/a", b"mine")
        with one.scratch() as folder, other.lock(["dataset:b"]):
            theirs = other.store.put("data/b", b"theirs")
            other.clean()
            assert folder.is_dir()
        assert one.store.open(mine) == b"mine"
        assert theirs.key not in set(one.store.list())  # one's own that nothing refers to goes
        end_sessions(other, "dataset:a")
        with other.lock(["dataset:a"]):
            other.clean()
        assert list(one.store.list()) == []


def test_without_a_look_at_who_is_at_work_their_files_would_be_cleaned(
    one: Context, other: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Leases, "others", lambda self: set())
    with one.lock(["dataset:a"]):
        one.store.put("data/a", b"mine")
        with other.lock(["dataset:b"]):
            other.clean()
        assert list(one.store.list()) == []


def overtaken(one: Context, other: Context, error: type[Exception] | None = None) -> list[str]:
    """Have one make a file after the other has taken over, and cleaned up; return what is left."""

    def overtake() -> None:
        with one.lock(["dataset:a"]), one.lock(["dataset:b"]):
            end_sessions(other, "dataset:a")
            end_sessions(other, "dataset:b")
            with other.lock(["dataset:a"]):
                other.clean()
            one.store.put("data/a", b"of somebody who is erased by now")
            if error is not None:
                raise error("its program failed")
            write(one)

    with pytest.raises(OvertakenError):
        overtake()
    return list(other.store.list())


@pytest.mark.parametrize("error", [None, ValueError])
def test_what_was_made_after_others_took_over_is_removed(
    one: Context, other: Context, error: type[Exception] | None
) -> None:
    assert overtaken(one, other, error) == []


def test_what_the_ledger_refers_to_stays(
    one: Context, other: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Context, "clean", lambda self: None)
    monkeypatch.setattr(
        site_module, "_referred_to", lambda connection: (set(one.store.list()), set())
    )
    (key,) = overtaken(one, other)
    other.store.delete(key)


def test_without_that_it_would_be_left(
    one: Context, other: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Context, "_remove_made_by", lambda self, owner: None)
    (key,) = overtaken(one, other)
    other.store.delete(key)


def test_who_is_at_work_is_told(one: Context, other: Context) -> None:
    assert isinstance(other.locks, Leases)
    with one.lock(["model:a"], reads=["dataset:a"]):
        (holder,) = other.locks.holders()
        assert holder.resources == ["model:a", "dataset:a"]
        assert abs((other.now() - holder.since).total_seconds()) < 3600
    assert other.locks.holders() == []


@pytest.fixture(scope="module")
def several(path: Path) -> list[Context]:
    return [Context.open(path, wait=0.0) for _ in range(3)]


NAMES = st.sets(st.sampled_from(["dataset:a", "dataset:b", "model:a", WHOLE]), max_size=2)


@settings(max_examples=15, deadline=None)
@given(st.lists(st.tuples(NAMES, NAMES), min_size=3, max_size=3))
def test_claims_are_granted_as_their_names_say(several: list[Context], said: Any) -> None:
    """Held against every pair of names, one after the other."""
    claims = [Claim.of(changes, reads=reads) for changes, reads in said]
    granted: list[Claim] = []
    with ExitStack() as stack:
        for context, claim, (changes, reads) in zip(several, claims, said, strict=True):
            clash = any(
                WHOLE in (a, b) or a == b
                for before in granted
                for a in before.changes | before.reads
                for b in claim.changes | claim.reads
                if a in before.changes or b in claim.changes
            )
            try:
                stack.enter_context(context.lock(changes, reads=reads))
            except WorkspaceBusyError:
                assert clash
            else:
                assert not clash
                granted.append(claim)
