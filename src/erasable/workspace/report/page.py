"""Write the page: one file of HTML that needs nothing else."""

from __future__ import annotations

import os
from pathlib import Path

from erasable.workspace.context import Context
from erasable.workspace.report import content, plots
from erasable.workspace.store.own import refuse_own, write_for_user

_NONE = "\N{EN DASH}"


def render(context: Context) -> str:
    """Return the page.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     page = render(Context.create(folder))
    >>> page.splitlines()[0], "http://" in page.replace("http://www.w3.org", "")
    ('<!doctype html>', False)
    """
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    shown = content.gather(context)
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["day"] = lambda at: _NONE if at is None else f"{at:%Y-%m-%d}"
    environment.filters["minute"] = lambda at: _NONE if at is None else f"{at:%Y-%m-%d %H:%M} UTC"
    environment.filters["seconds"] = _seconds
    environment.filters["count"] = lambda n: _NONE if n is None else f"{n:,}"
    return environment.get_template("page.html").render(
        **shown,
        due_dates=plots.due_dates(shown["completed"]),
        costs=plots.costs(shown["models"]),
    )


def write(context: Context, path: str | os.PathLike[str]) -> None:
    """Write the page to a file of the user's, which is replaced; see `write_for_user`."""
    refuse_own(path, context.root)
    write_for_user(path, context.root, render(context).encode())


def _seconds(value: float | None) -> str:
    if value is None:
        return _NONE
    for limit, unit, factor in ((1e-3, "µs", 1e6), (1.0, "ms", 1e3)):
        if value < limit:
            return f"{value * factor:.3g} {unit}"
    return f"{value:.3g} s"
