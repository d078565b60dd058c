"""What the site does to pages after they are rendered."""

from __future__ import annotations

import re
from typing import Any


def on_page_content(html: str, **_: Any) -> str:
    """Write numpydoc's citations, which are reStructuredText, as numbers in brackets.

    Examples
    --------
    >>> on_page_content("of Ginart et al. [1]_: .. [1] Ginart")
    'of Ginart et al. [1]: [1] Ginart'
    """
    return re.sub(r"\.\. (?=\[\d+\])|(?<=\d\])_", "", html)
