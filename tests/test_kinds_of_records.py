"""Records of every kind, to every estimator: it works, or says in one clear error why not."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array

from erasable import Records, load
from erasable.core import estimator
from erasable.core.errors import ArtifactError, ErasableError, InvalidDataError
from erasable.core.value_hash import ValueHash
from erasable.utils._checks.compare import saved, seeded
from law_instances import first_instances

INSTANCES = first_instances()
N = 24

_rng = np.random.default_rng(3)
_ints = np.arange(N) % 3
_texts = np.array(list("abc") * (N // 3), dtype=object)
_X = np.floor(np.abs(_rng.normal(size=(N, 3))) * 8.0)

TARGETS: dict[str, Any] = {
    "none": None,
    "integers": _ints,
    "integers in a column": _ints[:, np.newaxis],
    "integers in two columns": np.column_stack([_ints, _ints[::-1]]),
    "floats": _ints + 0.25,
    "floats in a column": _ints[:, np.newaxis] + 0.25,
    "floats in two columns": np.column_stack([_ints, -_ints]) + 0.25,
    "texts": _texts,
    "texts in two columns": np.column_stack([_texts, _texts]).astype(object),
    "booleans": _ints > 0,
    "large integers": _ints.astype(np.uint64) + 2**63,
}
VALUES: dict[str, Any] = {
    "numbers": _X,
    "float32": _X.astype(np.float32),
    "sparse": csr_array(_X),
    "documents": [f"alpha beta gamma{i % 4}" for i in range(N)],
    "words": np.array([["a", 1, 2.5], ["b", 2, np.nan], ["c", 3, 1.0]] * 8, dtype=object),
    "negative": -_X,
    "gaps": np.where(_X > 8.0, np.nan, _X),
}
WEIGHTS: dict[str, Any] = {"none": None, "some": 1.0 + _ints, "zeros": np.zeros(N)}


def _kinds() -> Iterator[tuple[str, str, str]]:
    """Vary one thing, or the target of each kind of values."""
    for target in TARGETS:
        yield "numbers", target, "none"
    for values in VALUES:
        for target in ("integers", "floats", "texts in two columns", "none"):
            yield values, target, "none"
    for weights in WEIGHTS:
        for target in ("integers", "floats in two columns"):
            yield "numbers", target, weights


KINDS = sorted(set(_kinds()))


def _records(values: str, target: str, weights: str) -> Records:
    return Records(VALUES[values], TARGETS[target], sample_weight=WEIGHTS[weights])


def _name(estimator: Any) -> str:
    return type(estimator).__name__


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("estimator", INSTANCES, ids=_name)
def test_it_learns_and_deletes_or_refuses(estimator: Any) -> None:
    fitted = 0
    for kind in KINDS:
        try:
            model = seeded(estimator).fit(_records(*kind))
        except ErasableError:
            continue
        model.delete([3, 4])
        assert model.digest()
        fitted += 1
    assert fitted


def _loads(file: bytes, *told: bool) -> Iterator[str]:
    """Load with records of every kind, and give the names of errors that are no ArtifactError."""
    for kind in KINDS:
        for vouched in told:
            try:
                load(io.BytesIO(file), _records(*kind), vouched=vouched)
            except ArtifactError:
                continue
            except Exception as error:
                yield f"{type(error).__name__} with {kind}"


def _files(estimator: Any) -> bytes:
    for kind in KINDS:
        try:
            return saved(seeded(estimator).fit(_records(*kind)))
        except ErasableError:
            continue
    raise AssertionError("no records were taken")


@pytest.mark.sampled(3)
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("estimator", INSTANCES, ids=_name)
def test_it_is_loaded_or_refuses(estimator: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the hash of the values, too, as with files that have none."""
    file = _files(estimator)
    assert not list(_loads(file, False, True))
    monkeypatch.setattr(ValueHash, "check", lambda self, held: self)
    assert not list(_loads(file, False))


@pytest.mark.filterwarnings("ignore")
def test_without_a_look_at_them_records_would_end_in_errors_of_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The negative control."""
    (tree,) = [each for each in INSTANCES if _name(each) == "DecisionTreeRegressor"]
    file = _files(tree)
    monkeypatch.setattr(estimator, "refuse_records", lambda estimator, records: None)
    assert any(told.startswith("ValueError") for told in _loads(file, False, True))


@pytest.mark.parametrize("shape", [(N, 0), (N, 0, 1), (N, 1, 1)])
def test_targets_of_no_use_are_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(InvalidDataError, match=r"shape"):
        Records(_X, np.zeros(shape))
