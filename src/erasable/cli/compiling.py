"""`erasable compile`: all kernels, ahead of their first call."""

from __future__ import annotations

import sys
import time

import typer

from erasable.cli import show
from erasable.cli.frame import command
from erasable.cli.options import FOLDER, JSON

app = typer.Typer()

PANEL = "The workspace"


@command(app, "compile", example="erasable compile", panel=PANEL)
def compile_(folder: str = FOLDER, as_json: bool = JSON) -> None:
    """Compile all kernels, so that nobody waits for them; it needs no workspace."""
    from erasable.cli.progress import Meter
    from erasable.utils.compiling import ELSE, compile_kernels
    from erasable.utils.discovery import all_estimators

    names = [name for name, _, _ in all_estimators()] + [*ELSE]
    began = time.perf_counter()
    with Meter(sys.stderr)("compiling", len(names)) as advance:
        done = compile_kernels(names, tell=lambda _: advance())
    seconds, n_kernels = time.perf_counter() - began, sum(each.n_kernels for each in done)
    if as_json:
        show.print_json(
            {
                "uses": [show.picked(each, "name", "n_kernels", "seconds") for each in done],
                "n_kernels": n_kernels,
                "seconds": seconds,
            }
        )
        return
    if n_kernels:
        show.line(f"compiled {show.words(n_kernels, 'kernel')} in {show.seconds(seconds)}")
    else:
        show.line("all kernels are compiled already")
