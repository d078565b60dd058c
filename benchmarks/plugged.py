"""Objects of the user's, named as ``module:name``."""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any


def load(text: str, names: Iterable[str] = ()) -> tuple[str, Any]:
    """Import what a text names, from the current folder, too; return its name, and the object.

    A text that is one of `names` is its own name, with None.
    """
    if text in names:
        return text, None
    if ":" not in text:
        known = "".join(f"{each}, " for each in names)
        raise argparse.ArgumentTypeError(f"there is no {text!r}; expected {known}or module:name")
    module, _, name = text.partition(":")
    sys.path.insert(0, str(Path.cwd()))
    try:
        return name, getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise argparse.ArgumentTypeError(
            f"{text!r} cannot be imported: {error}; expected one of those listed, or module:name"
        ) from None
    finally:
        sys.path.pop(0)
