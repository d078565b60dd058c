"""Hooks of the site that change pages."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping
from html import escape
from pathlib import Path
from typing import Any, NamedTuple

from sklearn.utils import get_tags

import erasable

GLOSSARY = "glossary.md"
WITHOUT_TERMS = ("api/", "contributing/", "papers/", GLOSSARY)
ENTRY = re.compile(r"^(.+?) \{ #([\w-]+)( \.common)? \}\n:   (.*(?:\n    .*)*)", re.M)
TAG = re.compile(r"(<[^>]*>)")
CLOSED_TO_TERMS = re.compile(r"<(/?)(a|code|h\d|pre|script|style|svg)\b")


class Term(NamedTuple):
    """An entry of the glossary that pages link to."""

    anchor: str
    meaning: str


def terms(glossary: str) -> dict[str, Term]:
    r"""Return the terms of the glossary that are not common words.

    Examples
    --------
    >>> terms("digest { #digest }\n:   The hash\n    of a state. See [this](x.md).\n")
    {'digest': Term(anchor='digest', meaning='The hash of a state.')}
    >>> terms("record { #record .common }\n:   One row.\n")
    {}
    """
    found = {}
    for name, anchor, common, text in ENTRY.findall(glossary):
        meaning = re.sub(r" See \[.*|`", "", " ".join(text.split()))
        if not common:
            found[name] = Term(anchor, meaning)
    return found


def with_terms(html: str, known: Mapping[str, Term], glossary: str) -> str:
    """Link the first use of each term in the text of a page.

    Examples
    --------
    >>> known = {"digest": Term("digest", "The hash of a state.")}
    >>> with_terms("<h2>Digests</h2><p>Two digests, a digest.</p>", known, "g.html")
    '<h2>Digests</h2><p>Two <a class="term" href="g.html#digest" title="The hash of a
    state.">digests</a>, a digest.</p>'
    """
    left = dict(known)
    words = re.compile(rf"\b({'|'.join(map(re.escape, known))})(?:s|es)?\b", re.I)

    def link(found: re.Match[str]) -> str:
        term = left.pop(found[1].lower(), None)
        if term is None:
            return found[0]
        title = escape(term.meaning)
        return f'<a class="term" href="{glossary}#{term.anchor}" title="{title}">{found[0]}</a>'

    def parts() -> Iterator[str]:
        depth = 0
        for part in TAG.split(html):
            closed = CLOSED_TO_TERMS.match(part)
            if closed:
                depth += -1 if closed[1] else 1
            is_text = depth == 0 and not part.startswith("<")
            yield words.sub(link, part) if is_text else part

    return "".join(parts())


def gaps() -> str:
    """Return a table of the estimators that take missing values, and of those that refuse them.

    Examples
    --------
    >>> rows = {row.split("|")[1].strip(): row.split("|")[2:4] for row in gaps().splitlines()}
    >>> taking, refusing = rows["`preprocessing`"]
    >>> "`SimpleImputer`" in taking, "`StandardScaler`" in refusing
    (True, True)
    """
    packages: dict[str, tuple[list[str], list[str]]] = {}
    for name, cls, tags in erasable.all_estimators():
        if not tags["meta"]:
            taking, refusing = packages.setdefault(cls.__module__.split(".")[1], ([], []))
            takes = get_tags(cls()).input_tags.allow_nan
            (taking if takes else refusing).append(f"`{name}`")
    rows = [
        f"| `{package}` | {', '.join(taking)} | {', '.join(refusing)} |"
        for package, (taking, refusing) in sorted(packages.items())
    ]
    return "\n".join(["| package | take missing values | refuse them |", "|---|---|---|", *rows])


def on_page_markdown(markdown: str, **_: Any) -> str:
    r"""Have examples with prompts read as sessions, so that prompts and answers are told apart.

    Examples
    --------
    >>> on_page_markdown("```python\n>>> 1 + 1\n2\n```")
    '```pycon\n>>> 1 + 1\n2\n```'
    """
    if "<!-- table of estimators -->" in markdown:
        markdown = markdown.replace("<!-- table of estimators -->", gaps())
    return re.sub(r"^```python\n(?=>>> )", "```pycon\n", markdown, flags=re.MULTILINE)


def on_page_content(html: str, page: Any, config: Any, **_: Any) -> str:
    """Write citations as numbers in brackets, remove idle dashes, and link terms."""
    html = plain(html)
    if page.file.src_uri.startswith(WITHOUT_TERMS):
        return html
    known = terms(Path(config.docs_dir, GLOSSARY).read_text(encoding="utf-8"))
    start = posixpath.dirname(page.file.dest_uri) or "."
    return with_terms(html, known, posixpath.relpath("glossary.html", start))


def plain(html: str) -> str:
    r"""Write citations of numpydoc as numbers in brackets; remove dashes before empty descriptions.

    Examples
    --------
    >>> plain("of Ginart et al. [1]_: .. [1] Ginart")
    'of Ginart et al. [1]: [1] Ginart'
    >>> plain('n_classes_ \u2013 <div class="doc-md-description"> </div>')
    'n_classes_'
    """
    html = re.sub(r'\s*\u2013\s*<div class="doc-md-description">\s*</div>', "", html)
    return re.sub(r"\.\. (?=\[\d+\])|(?<=\d\])_", "", html)
