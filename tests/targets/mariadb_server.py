"""A server of MariaDB of the tests' own, in a folder of its own; the system's package has it."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

PROGRAM, INSTALL = shutil.which("mariadbd"), shutil.which("mariadb-install-db")
IS_THERE = PROGRAM is not None and INSTALL is not None


@contextmanager
def running() -> Iterator[Path]:
    """Have a server; return its socket. Its log of changes is on."""
    assert PROGRAM is not None
    assert INSTALL is not None
    with tempfile.TemporaryDirectory(prefix="my-") as name:
        folder = Path(name)
        me = f"--user={'mysql' if os.geteuid() == 0 else os.environ.get('USER', 'nobody')}"
        data = folder / "data"
        if os.geteuid() == 0:
            shutil.chown(folder, "mysql")
        common = ["--no-defaults", f"--datadir={data}", me]
        subprocess.run(
            [INSTALL, *common, "--auth-root-authentication-method=normal", "--skip-test-db"],
            check=True, capture_output=True,
        )  # fmt: skip
        with (folder / "log").open("wb") as log:
            process = subprocess.Popen(
                [PROGRAM, *common, f"--socket={folder / 'my.sock'}", "--skip-networking",
                 "--log-bin=changes", "--server-id=1", "--skip-log-error",
                 f"--pid-file={folder / 'pid'}"],
                stdout=log, stderr=log,
            )  # fmt: skip
        until = time.monotonic() + 60
        try:
            while not (folder / "my.sock").exists():
                assert process.poll() is None, (folder / "log").read_text()
                assert time.monotonic() < until
                time.sleep(0.02)
            yield folder / "my.sock"
        finally:
            process.terminate()
            process.wait()
