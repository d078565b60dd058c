"""A server that speaks S3, of the tests' own: a process that ends with them.

Run as a program it is the server; it goes away, and comes back as it was, when it is told to.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import subprocess
import sys
from collections.abc import Iterator
from functools import cached_property
from typing import Any

ENVIRONMENT = {
    "AWS_ACCESS_KEY_ID": "of-the-tests", "AWS_SECRET_ACCESS_KEY": "s3cret",
    "AWS_DEFAULT_REGION": "us-east-1", "AWS_MAX_ATTEMPTS": "3", "AWS_EC2_METADATA_DISABLED": "true",
}  # fmt: skip


class Server:
    """A server that is up, and another library's view of what it keeps."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env=os.environ | {"S3_UPLOAD_PART_MIN_SIZE": "1"},
        )  # fmt: skip
        self.url = f"http://127.0.0.1:{self._answer()}"
        self.made = 0

    def _answer(self) -> str:
        assert self.process.stdout is not None
        line = self.process.stdout.readline().strip()
        assert line, "the server ended"
        return line

    def tell(self, what: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{what}\n")
        self.process.stdin.flush()
        assert self._answer() == what

    @contextlib.contextmanager
    def away(self) -> Iterator[None]:
        """Refuse connections inside the block; who connects there does not try again."""
        self.tell("away")
        os.environ["AWS_MAX_ATTEMPTS"] = "1"
        try:
            yield
        finally:
            os.environ.update(ENVIRONMENT)
            self.tell("back")

    def stop(self) -> None:
        if "client" in self.__dict__:
            self.client.close()
        self.process.kill()
        self.process.communicate()

    @cached_property
    def client(self) -> Any:
        """A client of another library than the code under test uses."""
        import boto3

        return boto3.client("s3", endpoint_url=self.url)

    def bucket(self, *, versions: str = "") -> str:
        """Make a bucket, with versions "Enabled" or "Suspended"; return its name."""
        self.made += 1
        name = f"bucket-{self.made}"
        self.client.create_bucket(Bucket=name)
        if versions:
            self.keep_versions(name, versions)
        return name

    def keep_versions(self, bucket: str, status: str) -> None:
        said = {"Status": status}
        self.client.put_bucket_versioning(Bucket=bucket, VersioningConfiguration=said)

    def everything(self, bucket: str) -> dict[str, bytes]:
        """Return every version of every object, and b"" for what hides one, by key and number."""
        told = self.client.list_object_versions(Bucket=bucket)
        assert not told["IsTruncated"]
        found = {f"{d['Key']}?{d['VersionId']}": b"" for d in told.get("DeleteMarkers", ())}
        for each in told.get("Versions", ()):
            key, version = each["Key"], each["VersionId"]
            read = self.client.get_object(Bucket=bucket, Key=key, VersionId=version)
            found[f"{key}?{version}"] = read["Body"].read()
        return found

    def uploads(self, bucket: str) -> list[str]:
        """Return the keys of uploads that were not finished."""
        told = self.client.list_multipart_uploads(Bucket=bucket)
        return [each["Key"] for each in told.get("Uploads", ())]

    def copy(self, bucket: str, prefix: str, to: str) -> None:
        """Copy the objects below a prefix to another."""
        told = self.client.list_objects_v2(Bucket=bucket, Prefix=prefix)
        assert not told["IsTruncated"]
        for each in told.get("Contents", ()):
            key = to + each["Key"].removeprefix(prefix)
            source = {"Bucket": bucket, "Key": each["Key"]}
            self.client.copy_object(Bucket=bucket, Key=key, CopySource=source)


def installed() -> bool:
    """Tell whether a server can be brought up here."""
    return all(importlib.util.find_spec(name) for name in ("moto", "flask", "flask_cors", "s3fs"))


@contextlib.contextmanager
def running() -> Iterator[Server]:
    """Have a server inside the block, whose place and credentials are in the environment."""
    before = {name: os.environ.get(name) for name in (*ENVIRONMENT, "AWS_ENDPOINT_URL")}
    server = Server()
    os.environ.update(ENVIRONMENT, AWS_ENDPOINT_URL=server.url)
    try:
        yield server
    finally:
        for name, value in before.items():
            os.environ.pop(name)
            if value is not None:
                os.environ[name] = value
        server.stop()


def main() -> None:
    import logging

    from moto.server import ThreadedMotoServer

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    _, port = server.get_host_and_port()
    print(port, flush=True)
    for line in sys.stdin:
        if line.strip() == "away":
            server.stop()
        else:
            server = ThreadedMotoServer(ip_address="127.0.0.1", port=port, verbose=False)
            server.start()
        print(line.strip(), flush=True)


if __name__ == "__main__":
    main()
