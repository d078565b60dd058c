"""The parts joined: a removal chooses records, a pipeline of the library deletes them exactly."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from erasable.feature_extraction import TfidfVectorizer
from erasable.linear_model import LogisticRegression
from erasable.pipeline import Pipeline


def pipeline(words: dict[str, Any], **settings: Any) -> Pipeline:
    """Make a pipeline whose vectoriser forgets, too."""
    return Pipeline(
        [("words", TfidfVectorizer(**words)), ("model", LogisticRegression(**settings))]
    )


def deleted(
    make: Callable[[], Pipeline], texts: Any, y: Any, train: Any, gone: Any, judged: Any
) -> dict[str, float]:
    """Fit, delete, and compare with a refit.

    Parameters
    ----------
    train, gone, judged : ndarray of int
        Places in texts, which are the ids: to train on, to delete, and those whose recall is told.
    """
    model = make().fit(texts[train], y[train], ids=train)
    asked = judged[y[judged].astype(bool)]
    before = model.predict(texts[asked]).mean()
    model.delete(gone)
    kept = train[~np.isin(train, gone)]
    after = model.predict(texts[asked]).mean()
    refit = make().fit(texts[kept], y[kept], ids=kept)
    return {
        "equal": float(model.digest() == refit.digest()),
        "before": float(before),
        "after": float(after),
        "gone": float(len(gone)),
    }


def facts(found: list[dict[str, float]]) -> dict[str, str]:
    """Write what was found over seeds."""
    mean = {key: float(np.mean([each[key] for each in found])) for key in found[0]}
    return {
        "joined_equal": f"{round(sum(each['equal'] for each in found))} of {len(found)}",
        "joined_before": f"{mean['before']:.2f}",
        "joined_after": f"{mean['after']:.2f}",
        "joined_gone": f"{mean['gone']:,.0f}",
    }
