"""Standard streams that may be closed, full, or without a reader.

The law kept here: a command finishes its work even if it cannot print. Writing never fails; what
could not be written is remembered, and the exit code says so at the end.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from errno import EBADF
from typing import Any

_LAST = 2  # the number of standard error


class OutputStream:
    r"""A standard stream to which writing does not fail; `stream` is None if it is closed.

    `failed` has the first error; nothing is written after that.

    >>> import io
    >>> closed = io.StringIO()
    >>> closed.close()
    >>> stream = OutputStream(closed)
    >>> stream.write("done\n"), str(stream.failed)
    (5, 'I/O operation on closed file')
    """

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self.failed: OSError | ValueError | None = None
        with contextlib.suppress(AttributeError, ValueError):
            # What the terminal's encoding lacks is printed as escapes.
            stream.reconfigure(errors="backslashreplace")

    def write(self, text: str) -> int:
        """Write a text if possible; return its length."""
        if not isinstance(text, str):  # by this, libraries tell whether a stream takes bytes
            raise TypeError(f"a stream of a command takes text, not {type(text).__name__}")
        if self.failed is None:
            try:
                if self._stream is None:
                    raise OSError(EBADF, "it is closed")
                self._stream.write(text)
            except (OSError, ValueError) as error:
                self.failed = error
        return len(text)

    def writelines(self, texts: Any) -> None:
        """Write several texts; see `write`."""
        for text in texts:
            self.write(text)

    def flush(self) -> None:
        """Write out what was written so far, if possible."""
        if self.failed is None and self._stream is not None:
            try:
                self._stream.flush()
            except (OSError, ValueError) as error:
                self.failed = error

    def isatty(self) -> bool:
        """Tell whether it is a terminal."""
        try:
            return self._stream is not None and bool(self._stream.isatty())
        except ValueError:  # it is closed
            return False

    def forget(self) -> None:
        """Drop what cannot be written; otherwise the interpreter fails on it at its end."""
        if self.failed is not None:
            with contextlib.suppress(AttributeError, OSError, ValueError):
                nowhere = os.open(os.devnull, os.O_WRONLY)
                os.dup2(nowhere, self._stream.fileno())
                os.close(nowhere)

    def __getattr__(self, name: str) -> Any:
        if name in ("buffer", "detach"):  # libraries would write past this class
            raise AttributeError(f"a stream of a command has no attribute {name!r}")
        return getattr(self._stream, name)


@contextlib.contextmanager
def forgiving() -> Iterator[OutputStream]:
    """Replace standard output and error by such streams in the block; yields standard output."""
    before = sys.stdout, sys.stderr
    output, errors = OutputStream(sys.stdout), OutputStream(sys.stderr)
    sys.stdout, sys.stderr = output, errors
    try:
        yield output
    finally:
        sys.stdout, sys.stderr = before
        for each in (output, errors):
            each.flush()
            each.forget()


def occupy() -> None:
    """Open the null device in place of standard streams that are closed.

    Otherwise a file of the workspace would get such a number, and hooks would write into it.
    """
    while (number := os.open(os.devnull, os.O_RDWR)) <= _LAST:
        os.set_inheritable(number, True)
    os.close(number)
