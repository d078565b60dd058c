"""The command `erasable`: a thin layer over `erasable.workspace.Workspace`.

The law kept here: a command parses, calls the workspace and prints. What it prints for programs
(``--json``) is one object with names that stay; what goes wrong is one line on standard error and
exit code 2; a check that found a difference is exit code 1; what was done and could not be printed
is exit code 3. An identity that came in is never printed.
"""

from __future__ import annotations

import gc

_OBJECTS = 500_000
"""So many new objects there are between two looks for garbage, in the place of Python's 700.

A command makes 350,000 when it imports what it needs, none of them garbage: to look among them
took a third of that time, and a look at each 100,000 still a seventh."""


def main() -> None:
    """Run the command line of this process.

    >>> from unittest.mock import patch
    >>> with patch("sys.argv", ["erasable", "status", "--workspace", "nowhere"]):
    ...     main()
    Traceback (most recent call last):
    SystemExit: 2
    """
    from erasable.cli.app import app

    app(prog_name="erasable")


def run() -> None:
    """Be the command, in a process that ends with it."""
    from erasable.cli import interrupts

    interrupts.take()  # first: what follows imports for a fifth of a second

    from erasable.cli.deferred import defer
    from erasable.cli.streams import occupy

    occupy()
    gc.set_threshold(_OBJECTS)
    defer()
    try:
        main()
    finally:
        gc.freeze()  # what is left goes with the process, and need not be looked through
