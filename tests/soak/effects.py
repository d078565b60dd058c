"""Processes that are killed before or after their n-th effect on a disk or a socket.

The kernel tells of each system call with an effect before it is made (seccomp's user notification),
also of those of compiled clients, and waits for an answer. What a kill leaves is what such calls
have done, so all states that it can leave lie between two of them; but for files that are mapped
into memory, for which a kill may also come some time after a call.

It needs Linux 5.5 or newer on x86-64.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import pickle
import platform
import random
import select
import signal
import socket
import struct
import time
import traceback
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

__all__ = ["FILES", "SOCKETS", "Ended", "Point", "forked"]

_NUMBERS = {
    "write": 1, "pwrite64": 18, "writev": 20, "msync": 26, "sendfile": 40, "sendto": 44,
    "fsync": 74, "fdatasync": 75, "ftruncate": 77, "rename": 82, "mkdir": 83, "rmdir": 84,
    "link": 86, "unlink": 87, "symlink": 88, "openat": 257, "mkdirat": 258, "unlinkat": 263,
    "renameat": 264, "linkat": 265, "fallocate": 285, "pwritev": 296, "renameat2": 316,
    "copy_file_range": 326,
}  # fmt: skip
_NAMES = {number: name for name, number in _NUMBERS.items()}
FILES = tuple(name for name in _NUMBERS if name != "sendto")
SOCKETS = ("sendto",)
_ON_OPEN = {
    _NUMBERS[name]
    for name in ("write", "pwrite64", "writev", "fsync", "fdatasync", "ftruncate", "pwritev")
}
_CREATES = os.O_CREAT | os.O_TRUNC

_SECCOMP, _SET_FILTER, _LISTENER = 317, 1, 8
_NO_NEW_PRIVILEGES = 38
_ALLOW, _NOTIFY = 0x7FFF0000, 0x7FC00000
_LOAD, _EQUAL, _ANY_OF, _RETURN = 0x20, 0x15, 0x45, 0x06  # of Berkeley packet filters
_RECEIVE, _SEND, _FLAGS = 0xC0502100, 0xC0182101, 0x40082104
_GO_ON, _SAME_PROCESSOR = 1, 1
_LONGEST = 240.0  # seconds
_LATER, _LATEST = 0.3, 0.02  # a share of points, and seconds


@dataclass(frozen=True)
class Point:
    """Where a process is killed: before its n-th call of a name, or some time after it."""

    call: str
    number: int
    seconds: float = 0.0

    @classmethod
    def drawn(cls, first: Counter[str], last: Counter[str], random: random.Random) -> Point:
        """Draw a point after the first calls and up to the last ones: of each name as often."""
        call = random.choice(sorted(name for name in last if last[name] > first[name]))
        later = random.random() < _LATER
        number = random.randint(first[call] + 1, last[call])
        return cls(call, number, random.uniform(0.0, _LATEST) if later else 0.0)

    def __str__(self) -> str:
        when = f"{1000 * self.seconds:.1f} ms after" if self.seconds else "before"
        return f"{when} {self.call} {self.number}"


@dataclass
class Ended:
    """How a process ended."""

    was_killed: bool = False
    told: Any = None  # what its function returned
    error: str = ""  # the traceback of what it raised, or how it ended
    calls: Counter[str] = field(default_factory=Counter)


def forked(
    run: Callable[[], Any],
    output: Path,
    calls: Collection[str] = (),
    point: Point | None = None,
) -> Ended:
    """Run a function in a fork, which is killed at a point; count its calls that are named.

    Raise TimeoutError if it hangs.
    """
    ours, theirs = socket.socketpair()
    child = os.fork()
    if child == 0:
        ours.close()
        _be_child(run, output, calls, theirs)
    theirs.close()
    ended = Ended()
    try:
        with ours:
            if calls:
                with _listener(ours) as listener:
                    data = _served(child, ours, listener, ended.calls, point)
            else:
                data = _heard(child, ours)
    finally:
        ended.was_killed = _reaped(child)
    if data and not ended.was_killed:
        ended.told, ended.error = pickle.loads(data)
    elif not ended.was_killed:
        ended.error = "the process ended without a word"
    return ended


def _reaped(child: int) -> bool:
    """Wait for a process; tell whether it was killed here at its point."""
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status) == -signal.SIGKILL


def _be_child(
    run: Callable[[], Any], output: Path, calls: Collection[str], to: socket.socket
) -> None:
    told, error = None, ""
    try:
        said = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.dup2(said, 1)
        os.dup2(said, 2)
        if calls:
            _send_listener(calls, to)
        told = run()
    except BaseException:
        error = traceback.format_exc()
    finally:
        try:
            data = memoryview(pickle.dumps((told, error)))
            while data:  # not "write", which is counted
                data = data[to.sendmsg([data]) :]
        finally:
            os._exit(0)


def _send_listener(calls: Collection[str], to: socket.socket) -> None:
    try:
        listener = _filtered(calls)
    except OSError:
        to.sendmsg([b"x"])
        raise
    socket.send_fds(to, [b"x"], [listener])
    os.close(listener)


def _filtered(calls: Collection[str]) -> int:
    """Have the kernel ask before calls of this process; return the file where it asks."""
    if platform.machine() != "x86_64":
        raise OSError(f"system calls are known for x86-64; this is {platform.machine()}")
    numbers = [_NUMBERS[name] for name in calls if name != "openat"]
    end = len(numbers) + 5
    code = [(_LOAD, 0, 0, 0)]
    code += [(_EQUAL, end - at - 2, 0, number) for at, number in enumerate(numbers)]
    code += [
        (_EQUAL, 0, 2, _NUMBERS["openat"] if "openat" in calls else 1 << 30),
        (_LOAD, 0, 0, 16 + 2 * 8),  # its flags
        (_ANY_OF, 1, 0, _CREATES),
        (_RETURN, 0, 0, _ALLOW),
        (_RETURN, 0, 0, _NOTIFY),
    ]
    data = b"".join(struct.pack("<HBBI", *each) for each in code)
    kept = ctypes.create_string_buffer(data)
    program = ctypes.create_string_buffer(
        struct.pack("<HxxxxxxQ", len(code), ctypes.addressof(kept))
    )
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0)
    found = int(libc.syscall(_SECCOMP, _SET_FILTER, _LISTENER, program))
    if found < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"no filter of system calls: {os.strerror(number)}")
    return found


@contextmanager
def _listener(ours: socket.socket) -> Iterator[int | None]:
    """Receive the file where the kernel asks; None from a child that has failed."""
    _, received, _, _ = socket.recv_fds(ours, 1, 1)
    if not received:
        yield None
        return
    with suppress(OSError):  # before Linux 6.6: it takes longer
        fcntl.ioctl(received[0], _FLAGS, _SAME_PROCESSOR)
    try:
        yield received[0]
    finally:
        os.close(received[0])


def _heard(child: int, ours: socket.socket) -> bytes:
    ours.settimeout(_LONGEST)
    parts = []
    try:
        while part := ours.recv(1 << 20):
            parts.append(part)
    except TimeoutError:
        os.kill(child, signal.SIGKILL)
        raise
    return b"".join(parts)


def _served(
    child: int,
    ours: socket.socket,
    listener: int | None,
    passed: Counter[str],
    point: Point | None,
) -> bytes:
    """Let a process pass its calls, until it ends or is killed; return what it told."""
    if listener is None:
        return _heard(child, ours)
    poll = select.poll()
    poll.register(ours, select.POLLIN)
    poll.register(listener, select.POLLIN)
    data = b""
    until, dies_at = time.monotonic() + _LONGEST, None
    while True:
        limit = until if dies_at is None else dies_at
        ready = dict(poll.poll(max(0.0, 1000 * (limit - time.monotonic()))))
        if time.monotonic() >= limit:
            os.kill(child, signal.SIGKILL)
            if dies_at is None:
                raise TimeoutError(f"a process has not ended after {_LONGEST:.0f} seconds")
            return data + _heard(child, ours)  # it may have ended before
        if ready.get(listener, 0) & select.POLLIN:
            dies_now = _answered(child, listener, passed, point)
            if dies_now and point is not None:
                if not point.seconds:
                    return b""
                dies_at = time.monotonic() + point.seconds
        elif ours.fileno() in ready:
            part = ours.recv(1 << 20)
            if not part:
                return data
            data += part
        elif ready.get(listener, 0):  # all threads have ended, and will tell no more
            poll.unregister(listener)


def _answered(child: int, listener: int, passed: Counter[str], point: Point | None) -> bool:
    """Answer a question of the kernel; tell whether the point is reached, and kill there."""
    asked = bytearray(80)
    try:
        fcntl.ioctl(listener, _RECEIVE, asked, True)
    except (FileNotFoundError, InterruptedError):
        return False
    id, thread, _, number = struct.unpack_from("<QIIi", asked)
    name, reached = _NAMES[number], False
    if number not in _ON_OPEN or _is_file(thread, struct.unpack_from("<Q", asked, 32)[0]):
        passed[name] += 1
        reached = point is not None and (point.call, point.number) == (name, passed[name])
    if reached and point is not None and not point.seconds:
        os.kill(child, signal.SIGKILL)
        return True
    with suppress(FileNotFoundError):  # the thread has ended
        fcntl.ioctl(listener, _SEND, bytearray(struct.pack("<QqiI", id, 0, 0, _GO_ON)), True)
    return reached


def _is_file(thread: int, number: int) -> bool:
    """Tell whether a file is none of those that wake threads."""
    try:
        return os.readlink(f"/proc/{thread}/fd/{number}").startswith("/")
    except OSError:
        return True
