"""Objects as plain values and arrays: what comes back is what went in, shared where it was."""

from __future__ import annotations

import contextlib
import json
from typing import Any, NamedTuple

import hypothesis.extra.numpy as hnp
import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings
from scipy.sparse import csr_array
from sklearn.base import BaseEstimator

from effort import examples
from erasable.core.estimator import Erasable
from erasable.core.grid import Grid
from erasable.core.mapped import objects
from erasable.core.mapped.beside import make_ready
from erasable.core.mapped.objects import put_together, take_apart
from erasable.core.mapped.texts import Texts, as_array, as_texts
from erasable.core.persistent import UnsavableError
from erasable.core.row_arrays import Slot, buffer_of
from erasable.ensemble._allotment import Shards
from erasable.utils._checks.compare import trained
from erasable.utils._checks.data_sets import FAST
from law_instances import first_instances, other_instances

NUMBERS = hnp.arrays(
    st.sampled_from(["f8", "f4", "i8", "u2", "?", "c16", "S3", ">i4"]),
    hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4),
)
WORDS = st.lists(st.one_of(st.text(), st.integers(), st.floats(), st.none(), st.booleans()))
LEAVES = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(), st.binary(), NUMBERS,
    WORDS.map(lambda values: np.array([*values, None], dtype=object)[:-1]),
    st.floats(width=32).map(np.float32), st.just(np.float64), st.just(np.dtype("i4")),
)  # fmt: skip
GRAPHS = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.lists(inner, max_size=3).map(tuple),
        st.dictionaries(st.one_of(st.text(), st.integers(), st.tuples(st.integers())), inner),
        st.frozensets(st.integers()),
        st.sets(st.text()),
    ),
    max_leaves=12,
)


def _through(root: Any) -> Any:
    description, arrays = take_apart(root)
    return put_together(json.loads(json.dumps(description)), [array.copy() for array in arrays])


def _assert_equal(one: Any, other: Any) -> None:
    assert type(one) is type(other)
    if isinstance(one, np.ndarray):
        assert (one.dtype, one.shape) == (other.dtype, other.shape)
        if one.dtype == object:
            _assert_equal(one.ravel().tolist(), other.ravel().tolist())
        else:
            assert one.tobytes() == other.tobytes()
    elif isinstance(one, dict):
        assert list(one) == list(other)
        for key in one:
            _assert_equal(one[key], other[key])
    elif isinstance(one, list | tuple):
        assert len(one) == len(other)
        for ours, theirs in zip(one, other, strict=True):
            _assert_equal(ours, theirs)
    elif isinstance(one, set | frozenset):
        assert one == other
    else:
        assert repr(one) == repr(other)


@pytest.mark.parametrize("small", [-1, 10**9])
@settings(max_examples=examples(300), deadline=None)
@given(root=GRAPHS)
def test_what_comes_back_is_what_went_in(root: Any, small: int) -> None:
    before, objects._SMALL = objects._SMALL, small
    try:
        _assert_equal(_through(root), root)
    finally:
        objects._SMALL = before


@settings(max_examples=examples(200), deadline=None)
@given(st.data())
def test_views_of_one_array_stay_views_of_it(data: st.DataObject) -> None:
    whole = np.arange(24.0).reshape(4, 6)
    if data.draw(st.booleans()):
        whole = np.asfortranarray(whole)
    views = data.draw(st.lists(hnp.basic_indices(whole.shape), min_size=1, max_size=3))
    root = [whole[index] for index in views]
    if data.draw(st.booleans()):
        root.append(whole)
    if data.draw(st.booleans()):
        root.append(whole.T.view(np.int64))
    again = _through(root)
    for ours, theirs in zip(root, again, strict=True):
        if isinstance(ours, np.ndarray) and ours.size:
            ours[...] = theirs[...] = np.asarray(7, ours.dtype)
            for one, other in zip(root, again, strict=True):
                np.testing.assert_array_equal(one, other)


def test_shared_objects_stay_shared() -> None:
    inner = [1]
    array = np.arange(3)
    cycle: dict[str, Any] = {"a": inner, "b": (inner, array), "c": array, "owner": object()}
    cycle["self"], cycle["again"] = cycle, cycle["owner"]
    again = _through(cycle)
    assert again["a"] is again["b"][0]
    assert again["c"] is again["b"][1]
    assert again["self"] is again
    assert again["again"] is again["owner"]


def test_functions_of_numpy_come_back() -> None:
    root = [np.abs, slice(None, 3), slice(1, 9, 2)]
    assert _through(root) == root
    with pytest.raises(UnsavableError):
        take_apart(np.frompyfunc(len, 1, 1))
    with pytest.raises(UnsavableError):
        put_together(["ufunc", 0, "load"], [])


@pytest.mark.parametrize("estimator", [*first_instances(), *other_instances()], ids=repr)
def test_every_model_is_kept_but_those_of_others(estimator: Any) -> None:
    """Where this fails, the model deletes from a workspace by reading all of its records."""
    ((_, model),) = trained(estimator, FAST[:1])
    of_others = isinstance(getattr(estimator, "estimator", None), BaseEstimator)
    of_others &= not isinstance(getattr(estimator, "estimator", None), Erasable)
    try:
        take_apart(make_ready(model))
    except UnsavableError:
        assert of_others
    else:
        assert not of_others


def _in_rooms_of_others(root: Any) -> int:
    """Count the arrays of an object that begin in the room which another one has to grow."""
    arrays: list[Any] = []

    def describe(self: Any, array: Any, number: int) -> Any:
        arrays.append(array)
        return right(self, array, number)

    right = objects._Apart._array
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(objects._Apart, "_array", describe)
        take_apart(root)
    kept = [each for each in arrays if each.dtype != object and each.size]
    begins = np.array([objects.address_of(each) for each in kept])
    rooms = [(each, buffer_of(each)) for each in kept]
    return sum(
        int(np.count_nonzero((begins >= begin + each.nbytes) & (begins < begin + room.nbytes)))
        for begin, (each, room) in zip(begins, rooms, strict=True)
        if room is not None
    )


@pytest.mark.parametrize("room", ["its own", "all"])
def test_no_array_of_a_file_grows_into_another(room: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if room == "all":
        whole = property(lambda slot: slot.size, lambda *given: None)
        monkeypatch.setattr(Slot, "room", whole, raising=False)
    n_found: int = 0
    for estimator in first_instances():
        ((_, model),) = trained(estimator, FAST[:1])
        with contextlib.suppress(UnsavableError):
            description, arrays = take_apart(make_ready(model))
            slots = [Slot(each.size, np.uint8, bytearray(each[:])) for each in arrays]
            n_found += _in_rooms_of_others(put_together(description, slots))
    assert n_found > 10 if room == "all" else n_found == 0


def test_objects_of_erasable_come_back() -> None:
    grid = Grid.fit(np.array([[1.0, 2.0], [3.0, 5.0]]))
    again = _through({"grid": grid})["grid"]
    assert type(again) is Grid
    np.testing.assert_array_equal(again.top, grid.top)
    matrix = csr_array(np.array([[0.0, 2.0], [3.0, 0.0]]))
    np.testing.assert_array_equal(_through(matrix).toarray(), matrix.toarray())


class _Foreign:
    pass


class _Named(NamedTuple):
    a: int


@pytest.mark.parametrize(
    "value",
    [lambda: 1, _Foreign(), _Named(1), print, int, np.zeros(2, "i4,f8"), open, json, 1j],
    ids=["lambda", "object", "named tuple", "function", "class", "records", "open", "module", "1j"],
)
def test_what_is_foreign_is_refused(value: Any) -> None:
    with pytest.raises(UnsavableError):
        take_apart({"inside": [value]})


@pytest.mark.parametrize(
    "name", ["os:system", "erasable.core.grid:missing", "erasable.core.grid:np", "erasable.x:y"]
)
def test_no_other_class_is_made(name: str) -> None:
    with pytest.raises(UnsavableError):
        put_together(["instance", 0, name, []], [])


def test_an_object_of_another_version_is_refused() -> None:
    """Its class has a field that the file does not have."""
    told, arrays = take_apart(Shards({}, np.zeros(1, np.int32), None))
    assert put_together(told, arrays).slice is None
    *_, pairs = told
    assert pairs.pop() == ["slice", None]
    with pytest.raises(UnsavableError, match=r"Shards' has no 'slice'"):
        put_together(told, arrays)


def test_many_objects_are_kept_by_what_differs() -> None:
    labels = np.array(["yes", "no", 1, True, 1.0, float("nan"), None] * 100, dtype=object)
    description, arrays = take_apart(labels)
    assert len(json.dumps(description)) < 400
    assert sum(array.size for array in arrays) == 4 * labels.size
    assert repr(put_together(description, arrays).tolist()) == repr(labels.tolist())


@settings(max_examples=examples(100), deadline=None)
@given(st.lists(st.text(), max_size=8), st.data())
def test_texts_are_used_as_an_array_of_objects_is(values: list[str], data: st.DataObject) -> None:
    array, texts = np.array([*values, None], dtype=object)[:-1], Texts.of(values)
    assert texts.tolist() == values
    assert (texts.size, texts.shape, len(texts), texts.dtype) == (
        array.size, array.shape, len(array), array.dtype,
    )  # fmt: skip
    index = data.draw(hnp.arrays("?", array.size) if array.size else st.just(slice(None)))
    assert texts[index].tolist() == array[index].tolist()
    texts[index] = array[index] = ""
    assert list(texts) == array.tolist()
    assert as_array(texts.copy()).tolist() == array.tolist()
    kept = as_texts(array)
    assert as_array(kept).tolist() == array.tolist()


def test_texts_that_are_overwritten_leave_no_byte() -> None:
    texts = Texts.of(["anna", "bo"])
    texts[np.array([0])] = ""
    assert b"anna" not in texts.data.tobytes()
    assert texts.tolist() == ["", "bo"]
