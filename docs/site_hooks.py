"""Hooks of the site that change rendered pages."""

from __future__ import annotations

import re
from typing import Any


def on_page_markdown(markdown: str, **_: Any) -> str:
    r"""Have examples with prompts read as sessions, so that prompts and answers are told apart.

    Examples
    --------
    >>> on_page_markdown("```python\n>>> 1 + 1\n2\n```")
    '```pycon\n>>> 1 + 1\n2\n```'
    """
    return re.sub(r"^```python\n(?=>>> )", "```pycon\n", markdown, flags=re.MULTILINE)


def on_page_content(html: str, **_: Any) -> str:
    r"""Write citations of numpydoc as numbers in brackets; remove dashes before empty descriptions.

    Examples
    --------
    >>> on_page_content("of Ginart et al. [1]_: .. [1] Ginart")
    'of Ginart et al. [1]: [1] Ginart'
    >>> on_page_content('n_classes_ \u2013 <div class="doc-md-description"> </div>')
    'n_classes_'
    """
    html = re.sub(r'\s*\u2013\s*<div class="doc-md-description">\s*</div>', "", html)
    return re.sub(r"\.\. (?=\[\d+\])|(?<=\d\])_", "", html)
