"""What the site does to pages after they are rendered."""

from __future__ import annotations

import re
from typing import Any


def on_page_content(html: str, **_: Any) -> str:
    r"""Write numpydoc's citations as numbers in brackets; end no name with a dash before nothing.

    Examples
    --------
    >>> on_page_content("of Ginart et al. [1]_: .. [1] Ginart")
    'of Ginart et al. [1]: [1] Ginart'
    >>> on_page_content('n_classes_ \u2013 <div class="doc-md-description"> </div>')
    'n_classes_'
    """
    html = re.sub(r'\s*\u2013\s*<div class="doc-md-description">\s*</div>', "", html)
    return re.sub(r"\.\. (?=\[\d+\])|(?<=\d\])_", "", html)
