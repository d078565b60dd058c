"""Pages of HTML from templates, in which every value is escaped."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from erasable.core._optional import needs

__all__ = ["render"]


def render(
    template: Path, user: str, filters: Mapping[str, Callable[..., Any]], **shown: Any
) -> str:
    """Fill in a template; `user` is what needs it, for the error where Jinja is not installed."""
    with needs("workspace", user):
        from jinja2 import Environment, FileSystemLoader, StrictUndefined
        from markupsafe import Markup

    environment = Environment(
        loader=FileSystemLoader(template.parent),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=lambda value: value if isinstance(value, Markup) else visible(value),
    )
    environment.filters.update(filters)
    return environment.get_template(template.name).render(**shown)


def visible(value: Any) -> str:
    r"""Return a value as text, with invisible characters written out: an id may be any text.

    >>> print(visible("<b>\u202e"))
    <b>\u202e
    """
    return "".join(each if each.isprintable() else ascii(each)[1:-1] for each in str(value))
