"""The command `erasable`: a thin layer over `erasable.workspace.Workspace`.

The law kept here: a command parses, calls the workspace and prints. What it prints for programs
(``--json``) is one object with names that stay; what goes wrong is one line on standard error and
exit code 2; a check that found a difference is exit code 1. An identity that came in is never
printed.
"""

from __future__ import annotations


def main() -> None:
    """Run the command line of this process.

    Examples
    --------
    >>> from unittest.mock import patch
    >>> with patch("sys.argv", ["erasable", "status", "--workspace", "nowhere"]):
    ...     main()
    Traceback (most recent call last):
    SystemExit: 2
    """
    from erasable.cli.app import app

    app(prog_name="erasable")
