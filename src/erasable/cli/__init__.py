"""The command line `erasable`: a thin layer over `erasable.workspace.Workspace`.

The law kept here: a command parses, calls the workspace and prints. Its output for programs
(``--json``) is one object with names that stay. An error is one line on standard error and exit
code 2; a check that found a difference is exit code 1; output that could not be printed is exit
code 3. An identity that was given is never printed.
"""

from __future__ import annotations

import gc
import sys

from erasable.core._optional import needs
from erasable.core.errors import MissingPackageError

_OBJECTS = 500_000
"""New objects between two collections of garbage, instead of Python's 700.

The imports of a command make 350,000 objects, and no garbage: with 700 collections took a third of
their time, with 100,000 still a seventh."""


def run() -> None:
    """Run the command line, in a process that ends with it."""
    from erasable.cli import interrupts

    interrupts.take()  # first: what follows imports for a fifth of a second

    from erasable.cli.deferred import defer
    from erasable.cli.streams import occupy

    occupy()
    gc.set_threshold(_OBJECTS)
    defer()
    try:
        with needs("workspace", "the command line", "rich"):
            from erasable.cli.app import app
        app(prog_name="erasable")
    except MissingPackageError as error:
        sys.stderr.write(f"error: {error}\n")
        sys.exit(2)
    finally:
        gc.freeze()  # what is left goes with the process, and need not be looked through
