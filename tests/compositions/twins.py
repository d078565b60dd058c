"""What a sentence must keep: what scikit-learn's composition does, and the law."""

from __future__ import annotations

import io
import warnings
from typing import Any

import numpy as np
from grammar import Leaf, Row, Sentence, build, build_twin, dense, leaves, rows_of
from scipy.sparse import issparse
from sklearn.base import clone, is_classifier
from sklearn.metrics import accuracy_score, r2_score
from sklearn.model_selection import GridSearchCV, KFold

from erasable import load
from erasable.core.errors import ErasableError, InvalidDataError
from erasable.core.records import Records
from erasable.model_selection import leave_one_out
from erasable.pipeline import fusing

__all__ = ["UnlikeTwinError", "hold"]

FINE, COARSE = 1e-9, 2e-6
"""Relative differences of transforms; the second one where values were rounded to a grid."""

CLUSTERERS = {"BernoulliNB", "DivideAndConquerKMeans", "KMeans", "QuantizedKMeans"}
BRITTLE = {
    "BaggingClassifier", "DecisionTreeClassifier", "DecisionTreeRegressor",
    "DivideAndConquerKMeans", "ExtraTreesClassifier", "ExtraTreesRegressor",
    "HistGradientBoostingClassifier", "HistGradientBoostingRegressor", "KMeans",
    "QuantizedKMeans", "RandomForestClassifier", "RandomForestRegressor", "SegmentedRegression",
}  # fmt: skip
"""Learners that may split a near tie otherwise: their scores are compared."""

UNSETTLED = {
    "our boosting", "our pipeline",
    "sk.DecisionTreeClassifier", "sk.DecisionTreeRegressor", "sk.LogisticRegression",
}  # fmt: skip
"""Members of which the same holds; the last stops before it has converged."""


class UnlikeTwinError(AssertionError):
    """A sentence is not what it must be; says which and where."""


def hold(sentence: Sentence) -> None:
    """Hold a sentence against its twin and against the law.

    Raises
    ------
    UnlikeTwinError
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            ours = build(sentence.node).fit(sentence.X, sentence.y, ids=sentence.ids)
            if not sentence.brittle:
                _like_twin(sentence, ours)
            if sentence.seed % 4 == 2:
                _unfused(sentence, ours)
            _law(sentence, ours)
            _law_of_exchanges(sentence)
            if sentence.seed % 4 == 0:
                _law_of_groups(sentence)
            if sentence.seed % 8 == 1 and sentence.learner:
                _left_out(sentence)
            if sentence.seed % 8 == 5 and sentence.learner and not _strict(sentence):
                _searched(sentence)
        except UnlikeTwinError as error:
            raise UnlikeTwinError(f"{error}\n  {sentence}") from None
        except Exception as error:
            raise UnlikeTwinError(
                f"raised {type(error).__name__}: {error}\n  {sentence}"
            ) from error


# -- scikit-learn's composition --------------------------------------------------------------------


def _like_twin(sentence: Sentence, ours: Any) -> None:
    steps = sentence.node.steps[:-1] if sentence.learner else sentence.node.steps
    asked = [sentence.X]
    if not _strict(sentence):
        asked.append(sentence.fresh)
    if steps:
        twin = build_twin(Row(steps), sentence.ids).fit(sentence.X, sentence.y)
        part = ours[:-1] if sentence.learner else ours
        sent = [twin.transform(rows) for rows in asked]
        for rows, theirs in zip(asked, sent, strict=True):
            _same_table(part.transform(rows), theirs, sentence.coarse)
    else:
        sent = asked
    if sentence.learner:
        _same_answers(sentence, sentence.learner, ours, asked, sent)


def _strict(sentence: Sentence) -> bool:
    """Tell whether a step refuses categories that no record has, or the -1 in place of them."""
    of_codes = sentence.learner is not None and sentence.learner.name == "CategoricalNB"
    return of_codes or any(
        ("handle_unknown", "error") in leaf.params for leaf in leaves(sentence.node)
    )


def _same_table(mine: Any, theirs: Any, coarse: bool) -> None:
    mine, theirs = dense(mine), dense(theirs)
    if mine.shape != theirs.shape:
        raise UnlikeTwinError(f"transforms to shape {mine.shape}, scikit-learn's to {theirs.shape}")
    if (mine.dtype == object) != (theirs.dtype == object):
        raise UnlikeTwinError(f"transforms to {mine.dtype}, scikit-learn's to {theirs.dtype}")
    if mine.dtype == object:
        pairs = zip(mine.ravel().tolist(), theirs.ravel().tolist(), strict=True)
        wrong = sum(not _same_cell(a, b) for a, b in pairs)
    else:
        close = COARSE if coarse else FINE
        size = np.maximum(1.0, np.nanmax(np.abs(theirs), initial=0.0))
        wrong = int((~np.isclose(mine, theirs, close, close * size, equal_nan=True)).sum())
    if wrong:
        raise UnlikeTwinError(f"{wrong} of {mine.size} transformed values are not scikit-learn's")


def _same_cell(mine: Any, theirs: Any) -> bool:
    if isinstance(mine, str) or isinstance(theirs, str):
        return bool(mine == theirs)
    gaps = [cell is None or cell != cell for cell in (mine, theirs)]
    return all(gaps) or (not any(gaps) and bool(np.isclose(mine, theirs, COARSE, COARSE)))


def _same_answers(
    sentence: Sentence, learner: Leaf, ours: Any, asked: list[Any], sent: list[Any]
) -> None:
    """Hold predictions against those of the learner alone on what scikit-learn's steps make."""
    tables = [table if issparse(table) else dense(table) for table in sent]
    if learner.name == "MultinomialNB":  # scikit-learn's scalers may end by rounding below 0
        tables = [t if issparse(t) else np.where(abs(t) < FINE, 0.0, t) for t in tables]
    alone = build(learner).fit(tables[0], sentence.y, ids=sentence.ids)
    for rows, table in zip(asked, tables, strict=True):
        if learner.name == "MultinomialNB" and table.min() < 0:
            _refused(ours, rows)
            continue
        _compare(learner, ours, alone, rows, table, sentence.y if rows is sentence.X else None)


def _refused(ours: Any, rows: Any) -> None:
    """Counts below 0, which a scaler makes of values that are below those of all records."""
    try:
        ours.predict(rows)
    except InvalidDataError:
        return
    raise UnlikeTwinError("negative counts are not refused")


def _compare(learner: Leaf, ours: Any, alone: Any, rows: Any, sent: Any, y: Any) -> None:
    mine, theirs = ours.predict(rows), alone.predict(sent)
    if learner.name in CLUSTERERS:
        return  # a near tie between two seeds makes another clustering; the law holds for each
    if learner.name in BRITTLE or dict(learner.params).get("estimator") in UNSETTLED:
        if y is not None:
            score = accuracy_score if is_classifier(alone) else r2_score
            apart = abs(score(y, mine) - score(y, theirs))
            if apart > 0.15:
                raise UnlikeTwinError(f"scores are {apart:.3f} apart from the learner's alone")
        return
    method = next((m for m in ("predict_proba",) if hasattr(alone, m)), "predict")
    mine, theirs = getattr(ours, method)(rows), getattr(alone, method)(sent)
    if mine.dtype == object:
        wrong = int((mine != theirs).sum())
    else:
        wrong = int((~np.isclose(mine, theirs, 1e-4, 1e-4 * max(1.0, np.abs(theirs).max()))).sum())
    tied = mine.size // 8 if learner.name.startswith("KNeighbors") else 0  # two at one distance
    if wrong > tied:
        raise UnlikeTwinError(f"{wrong} of {mine.size} predictions are not the learner's alone")


def _unfused(sentence: Sentence, fused: Any) -> None:
    """Hold a composition whose steps all learn from tables to the law, and against this one."""
    with fusing(False):
        plain = build(sentence.node).fit(sentence.X, sentence.y, ids=sentence.ids)
        if not sentence.brittle:
            learner = sentence.learner
            if learner is None:
                rows = plain.transform(sentence.X)
                _same_table(fused.transform(sentence.X), rows, sentence.coarse)
            elif learner.name not in BRITTLE:
                _compare(learner, fused, plain, sentence.X, sentence.X, None)
        _law(sentence, plain)


# -- the law ---------------------------------------------------------------------------------------


def _law(sentence: Sentence, ours: Any) -> None:
    """Delete in several batches; compare each time with a fit on what is left."""
    ids = np.array(sentence.ids, dtype=object)
    rng = np.random.default_rng(sentence.seed)
    order = rng.permutation(len(ids))
    left = np.ones(len(ids), dtype=bool)
    batches = [order[0:1], order[1:4], _of_one_category(sentence, order[4:]), order[4:16]]
    for number, batch in enumerate(batches):
        gone = batch[left[batch]]
        left[gone] = False
        rest = np.flatnonzero(left)
        X, y, kept = rows_of(sentence.X, rest), sentence.y[rest], ids[rest].tolist()
        try:
            fresh = clone(ours).fit(X, y, ids=kept)
        except ErasableError as error:  # as where a column goes that the next step asks for
            _refuses(ours, ids[gone].tolist(), error)
            left[gone] = True
            continue
        ours.delete(ids[gone].tolist())
        if fresh.digest() != ours.digest():
            raise UnlikeTwinError(f"after deleting {gone.size} records it is not a refit")
        _same_bits(ours, fresh, X)
        if number == 1 and all(leaf.name != "fliplr" for leaf in leaves(sentence.node)):
            # (a file carries no function but NumPy's ufuncs)
            ours = _loaded(ours, X, y, kept)


def _law_of_exchanges(sentence: Sentence) -> None:
    """Have others take the place of records, correct some and add some; compare with one fit."""
    ids, rng = np.array(sentence.ids, dtype=object), np.random.default_rng(sentence.seed)
    order = rng.permutation(len(ids))
    held = {int(at): int(at) for at in order[:30]}  # the row of values of each record
    spare = [int(at) for at in order[30:]]

    def given(values: dict[int, int]) -> dict[str, Any]:
        rows = np.array([*values.values()], dtype=np.int64)
        return {"X": rows_of(sentence.X, rows), "y": sentence.y[rows]}

    try:
        ours = build(sentence.node).fit(**given(held), ids=ids[[*held]].tolist())
    except ErasableError:  # as where a category that makes a column is not among them
        return
    for kind, n_gone, n_come in EXCHANGES:
        gone = [int(at) for at in rng.choice([*held], n_gone, replace=False)]
        come = {at: at for at in spare[:n_come]}
        if kind == "correct":
            come = {at: int(rng.integers(len(ids))) for at in gone}
        after = {at: row for at, row in held.items() if at not in gone} | come
        try:
            fresh = clone(ours).fit(**given(after), ids=ids[[*after]].tolist())
        except ErasableError:
            fresh = None
        names, before = ids[gone].tolist(), ours.digest()
        try:
            if kind == "correct":
                ours.correct(names, **given(come))
            else:
                ours.replace(names, **given(come), ids=ids[[*come]].tolist())
        except ErasableError as error:
            if fresh is not None or ours.digest() != before:
                raise UnlikeTwinError(f"{kind} raised {type(error).__name__}: {error}") from error
            continue
        if fresh is None or fresh.digest() != ours.digest():
            raise UnlikeTwinError(f"after {kind} of {n_gone} for {n_come} it is not one fit")
        _same_bits(ours, fresh, given(after)["X"])
        held, spare = after, spare[n_come if kind != "correct" else 0 :]


EXCHANGES = [
    ("replace", 1, 1), ("correct", 1, 1), ("replace", 4, 2), ("replace", 0, 3), ("correct", 3, 3),
    ("replace", 2, 5),
]  # fmt: skip


def _of_one_category(sentence: Sentence, rows: Any) -> Any:
    """Return all of some rows that have a category of a column of text; none without text."""
    table = dense(sentence.X)
    for column in table.T if table.dtype == object else ():
        cells = column[rows].tolist()
        texts = [cell for cell in cells if isinstance(cell, str)]
        if texts and len(set(texts)) <= 6:
            return rows[[cell == texts[0] for cell in cells]]
    return rows[:0]


def _law_of_groups(sentence: Sentence) -> None:
    """Delete whole groups of records, which are the people of a table with several rows each."""
    groups = np.arange(len(sentence.ids)) // 3
    X, y, ids = sentence.X, sentence.y, np.array(sentence.ids, dtype=object)
    ours = build(sentence.node).fit(X, y, ids=sentence.ids, groups=groups)
    left = np.ones(len(ids), dtype=bool)
    for gone in ([1], [4, 0, 5]):
        left[np.isin(groups, gone)] = False
        rest = np.flatnonzero(left)
        told = {"ids": ids[rest].tolist(), "groups": groups[rest]}
        try:
            fresh = clone(ours).fit(rows_of(X, rest), y[rest], **told)
        except ErasableError as error:
            _refuses(ours, [], error, groups=gone)
            return
        ours.delete(groups=gone)
        if fresh.digest() != ours.digest():
            raise UnlikeTwinError(f"after deleting groups {gone} it is not a refit")


def _left_out(sentence: Sentence) -> None:
    """Hold what is predicted for those left out against a fit without them."""
    groups = np.arange(len(sentence.ids)) % 5
    X, y, ids = sentence.X, sentence.y, np.array(sentence.ids, dtype=object)
    fits = []
    try:
        for group in range(5):
            rest = np.flatnonzero(groups != group)
            told = {"ids": ids[rest].tolist(), "groups": groups[rest]}
            fresh = build(sentence.node).fit(rows_of(X, rest), y[rest], **told)
            fits.append(fresh.predict(rows_of(X, np.flatnonzero(groups == group))))
    except ErasableError:  # what is left cannot be learned from, or asked about
        return
    result = leave_one_out(build(sentence.node), X, y, ids=sentence.ids, groups=groups)
    for group, theirs in enumerate(fits):
        mine = result.predictions[groups == group]
        if not np.array_equal(mine, theirs.astype(mine.dtype)):
            raise UnlikeTwinError(f"leave_one_out predicts otherwise for group {group}")


def _searched(sentence: Sentence) -> None:
    """Hold the scores of scikit-learn's search against fits by hand."""
    X, y, folds = sentence.X, sentence.y, KFold(2, shuffle=True, random_state=0)
    score = accuracy_score if is_classifier(build(sentence.node)) else None
    by_hand = []
    try:
        for train, test in folds.split(np.zeros(len(y))):
            fresh = build(sentence.node).fit(rows_of(X, train), y[train])
            asked = rows_of(X, test)
            by_hand.append(
                score(y[test], fresh.predict(asked)) if score else fresh.score(asked, y[test])
            )
    except ErasableError:  # a class or category that a fold has not
        return
    search = GridSearchCV(build(sentence.node), {}, cv=folds, refit=False, error_score="raise")
    told = search.fit(X, y).cv_results_
    if [told[f"split{fold}_test_score"][0] for fold in range(2)] != by_hand:
        raise UnlikeTwinError("a grid search scores it otherwise")


def _refuses(ours: Any, gone: list[Any], error: ErasableError, *, groups: Any = None) -> None:
    """Demand that a deletion is refused, and changes nothing, where nobody can fit the rest."""
    before = ours.digest()
    try:
        ours.delete(gone or None, groups=groups)
    except ErasableError:
        if ours.digest() != before or not set(gone) <= set(ours.ids_.tolist()):
            raise UnlikeTwinError("a deletion that was refused changed the model") from None
    else:
        raise UnlikeTwinError(f"it deletes, and a fit on the rest says: {error}")


def _same_bits(ours: Any, fresh: Any, X: Any) -> None:
    method = "transform" if hasattr(fresh, "transform") else "predict"
    mine, theirs = (dense(getattr(model, method)(X)) for model in (ours, fresh))
    if mine.dtype == object:
        same = all(map(_same_cell, mine.ravel().tolist(), theirs.ravel().tolist()))
    else:
        same = np.array_equal(mine, theirs, equal_nan=True)
    if not same:
        raise UnlikeTwinError("a refit of the same digest answers otherwise")


def _loaded(ours: Any, X: Any, y: Any, ids: list[Any]) -> Any:
    file = io.BytesIO()
    ours.save(file)
    file.seek(0)
    model = load(file, Records(X, y, ids=ids))
    if model.digest() != ours.digest():
        raise UnlikeTwinError("what was saved and loaded has another digest")
    return model
