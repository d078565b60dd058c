"""Data sets and clustering methods of the user's, named as ``module:name``."""

from __future__ import annotations

import argparse
import importlib
import sys
from pathlib import Path
from typing import Any

import contenders
import data


def _load(text: str) -> tuple[str, Any]:
    """Import what a text names, from the current folder, too."""
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


def _known(text: str, names: Any) -> str:
    if text not in names:
        raise argparse.ArgumentTypeError(
            f"there is no {text!r}; expected {', '.join(names)}, or module:name"
        )
    return text


def data_set(text: str) -> str:
    """Return the name of a data set; ``module:name`` is a function that returns X and labels."""
    if ":" not in text:
        return _known(text, data.SOURCES)
    name, read = _load(text)
    what = " ".join((read.__doc__ or "a data set of the user's").split("\n")[0].split())
    data.SOURCES[name] = data.Source(name, what, read, 20)
    return name


def method(text: str) -> str:
    """Return the name of a model; ``module:name`` makes it, given k, max_iter and random_state.

    It has `fit`, `delete`, `digest`, `cluster_centers_` and `labels_`, as estimators of erasable.
    """
    if ":" not in text:
        return _known(text, contenders.TITLES)
    name, make = _load(text)
    contenders.TITLES[name] = name
    contenders.OTHERS[name] = text, make
    return name
