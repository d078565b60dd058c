"""A page for each public class and function, made when the site is built.

The pages in ``docs/api`` name modules and objects for mkdocstrings. Each object gets a page of its
own, and the page that named it shows a table with links. Nothing is imported: see Griffe.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any

import griffe
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parent.parent
WHOLE = {"api/base.md", "api/core.md", "api/errors.md", "api/index.md"}
"""Pages that show their objects themselves."""

DIRECTIVE = re.compile(r"^::: (\S+)\n((?:    .*\n)*)\n*", re.M)
DIRECTIVES = re.compile(rf"(?:{DIRECTIVE.pattern})+", re.M)
OBJECT = """\
::: {name}
    options:
      heading_level: 1
{options}
In [{title}]({page}).
"""


@cache
def _package() -> Any:
    return griffe.load("erasable", search_paths=[ROOT / "src"], resolve_aliases=True)


def _objects(text: str) -> dict[str, str]:
    """Return the objects that a page names, each with its own options."""
    found = {}
    for name, options in DIRECTIVE.findall(text):
        if _of(name).is_module:
            found |= {f"{name}.{each}": "" for each in sorted(map(str, _of(name).exports))}
        else:
            found[name] = "".join(re.findall(r"^ +inherited_members: .*\n", options, re.M))
    return found


def _of(name: str) -> Any:
    return _package()[name.partition(".")[2]]


def _address(name: str) -> str:
    """Return the name of an object's page; those of a class and of a function differ in case."""
    return f"{name}-function.md" if _of(name).is_function else f"{name}.md"


def _table(directives: re.Match[str]) -> str:
    rows = [
        f"| [`{name.rpartition('.')[2]}`]({_address(name)}) | {_summary(name)} |"
        for name in _objects(directives[0])
    ]
    return "\n".join(["| | |", "|---|---|", *rows, "", ""])


def _summary(name: str) -> str:
    docstring = _of(name).docstring
    return " ".join(docstring.value.split("\n\n")[0].split()) if docstring else ""


def _pages() -> dict[str, str]:
    texts = {f"api/{path.name}": path.read_text("utf-8") for path in ROOT.glob("docs/api/*.md")}
    return {uri: text for uri, text in texts.items() if uri not in WHOLE}


def on_config(config: MkDocsConfig) -> None:
    """Put the pages of objects below the pages that name them."""
    (reference,) = (each["API reference"] for each in config.nav if "API reference" in each)
    pages = _pages()
    for entry in reference:
        for title, uri in entry.items() if isinstance(entry, dict) else ():
            if uri in pages:
                named = sorted(_objects(pages[uri]), key=lambda name: name.rpartition(".")[2])
                below = [{name.rpartition(".")[2]: f"api/{_address(name)}"} for name in named]
                entry[title] = [uri, *below]


def on_files(files: Files, config: MkDocsConfig) -> None:
    """Add the pages of objects."""
    for uri, text in _pages().items():
        title = re.match(r"# (.*)", text)[1]
        for name, options in _objects(text).items():
            text = OBJECT.format(name=name, options=options, title=title, page=Path(uri).name)
            files.append(File.generated(config, f"api/{_address(name)}", content=text))


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Replace the objects of a page by a table with links."""
    return DIRECTIVES.sub(_table, markdown + "\n") if page.file.src_uri in _pages() else markdown
