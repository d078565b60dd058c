from __future__ import annotations

import errno
import io
import json
import os
import sys
import zipfile

import numpy as np
import pandas as pd
import pytest
from sklearn.preprocessing import FunctionTransformer

import erasable
from effort import skip
from erasable import Records
from erasable.core import artifact
from erasable.core.artifact import read_artifact, write_artifact
from erasable.core.digest import state_root
from erasable.core.errors import (
    ArtifactError,
    ArtifactFileError,
    DetachedError,
    InvalidInputError,
    TooFewRecordsError,
)
from erasable.core.params import decode_params, encode_params
from erasable.linear_model import LogisticRegression
from erasable.preprocessing import MinMaxScaler
from integer_sums import IntegerSums, MajorityClass, PlainSums, SortedValues
from interruptions import OURS, interrupt

X = np.array([[1.0, 10.0], [2.0, 20.0], [3.0, 30.0], [4.0, 40.0]])
IDS = ["a", "b", "c", "d"]
STATE = {
    "nothing": None,
    "yes": True,
    "count": 2**64 - 1,
    "share": 0.1,
    "worst": float("-inf"),
    "text": "naïve \ud800",
    "list": [1, [2.5, "x"]],
    "tree": {"left": {"sums": np.arange(3)}, "right": {}},
    "floats": np.array([[0.0, -0.0], [np.nan, 1e-320]]),
    "narrow": np.float32([1.5]),
    "flags": np.array([True, False]),
    "scalar": np.array(2.5),
    "empty": np.zeros((0, 3)),
    "words": np.array([["a", 1], ["", 2**70]], dtype=object),
    "columns": np.asfortranarray(np.arange(6).reshape(2, 3)),
}


def flat(value):
    if isinstance(value, dict):
        return {key: flat(item) for key, item in value.items()}
    if isinstance(value, np.ndarray):
        body = value.tolist() if value.dtype == object else value.tobytes()
        return (value.dtype.str, value.shape, body)
    return value


def test_what_was_written_is_read(tmp_path):
    write_artifact(tmp_path / "m", {"class": "a.B"}, STATE)
    header, state = read_artifact(tmp_path / "m")
    assert header == {"class": "a.B"}
    assert flat(state) == flat(STATE)
    assert os.listdir(tmp_path) == ["m"]


def test_equal_states_are_equal_files(tmp_path):
    write_artifact(tmp_path / "one", {"a": 1, "b": 2}, STATE)
    write_artifact(tmp_path / "two", {"b": 2, "a": 1}, dict(reversed(STATE.items())))
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


def test_a_write_that_fails_leaves_what_was_there(tmp_path):
    path = tmp_path / "m"
    write_artifact(path, {}, {"a": 1})
    before = path.read_bytes()
    with pytest.raises(TypeError):
        write_artifact(path, {}, {"a": object()})
    with pytest.raises(OSError, match="absent"):
        write_artifact(tmp_path / "absent" / "m", {}, {"a": 1})
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["m"]


def test_a_file_is_replaced(tmp_path):
    for number in range(2):
        write_artifact(tmp_path / "m", {}, {"a": number})
    assert read_artifact(tmp_path / "m")[1] == {"a": 1}


def _die_while_writing(path):
    child = os.fork()
    if not child:
        os.replace = lambda *paths: os._exit(0)
        write_artifact(path, {}, STATE)
    os.waitpid(child, 0)


@pytest.mark.skipif(sys.platform == "win32", reason="needs fork and locks")
def test_what_a_process_left_that_died_is_removed_by_the_next_one(tmp_path):
    """But not what another process is writing, or what was to be another file."""
    import fcntl

    _die_while_writing(tmp_path / "m")
    (left,) = os.listdir(tmp_path)
    _die_while_writing(tmp_path / "other")
    (others,) = set(os.listdir(tmp_path)) - {left}
    with open(tmp_path / left, "rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        write_artifact(tmp_path / "m", {}, {"a": 1})
        assert set(os.listdir(tmp_path)) == {"m", left, others}
    write_artifact(tmp_path / "m", {}, {"a": 2})
    assert set(os.listdir(tmp_path)) == {"m", others}


def test_every_truncation_and_every_flipped_bit_is_noticed(tmp_path):
    path = tmp_path / "m"
    model = IntegerSums(random_state=1).fit(X, ids=IDS)
    model.save(path)
    whole = path.read_bytes()
    digest = model.digest()
    for length in range(0, len(whole), 7):
        path.write_bytes(whole[:length])
        with pytest.raises(ArtifactError):
            IntegerSums.load(path)
    unnoticed = 0
    for position in range(len(whole)):
        path.write_bytes(whole[:position] + bytes([whole[position] ^ 0x10]) + whole[position + 1 :])
        try:
            # Times and permissions of the zip's members are no part of the model.
            assert IntegerSums.load(path).digest() == digest
            unnoticed += 1
        except ArtifactError:
            pass
    assert unnoticed < len(whole) / 4


def test_foreign_files_are_refused(tmp_path):
    path = tmp_path / "m"
    path.write_text("hello")
    with pytest.raises(ArtifactError, match="damaged, or no model"):
        erasable.load(path)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("header.json", json.dumps({"format": "else"}))
    with pytest.raises(ArtifactError, match="no model of erasable"):
        erasable.load(path)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("header.json", json.dumps({"format": "erasable", "version": 2}))
    with pytest.raises(ArtifactError, match="another version"):
        erasable.load(path)
    with pytest.raises(FileNotFoundError):
        erasable.load(tmp_path / "absent")


def test_a_pickle_in_an_array_is_not_opened(tmp_path):
    path = tmp_path / "m"
    with zipfile.ZipFile(path, "w") as archive:
        header = {"format": "erasable", "version": 1, "state": {"__array__": 0}}
        archive.writestr("header.json", json.dumps(header))
        with archive.open("arrays/000000.npy", "w") as member:
            np.lib.format.write_array(member, np.array([{}], dtype=object), allow_pickle=True)
    with pytest.raises(ArtifactError):
        read_artifact(path)


def test_an_estimator_comes_back_without_its_records(tmp_path):
    model = IntegerSums(least=2, random_state=7).fit(X, ids=IDS)
    model.delete(["b"])
    model.save(tmp_path / "m")
    again = IntegerSums.load(tmp_path / "m")
    assert again.digest() == model.digest()
    assert again.get_params() == {"least": 2, "random_state": 7}
    assert again.transform(X).tolist() == model.transform(X).tolist()
    for use in (lambda: again.delete(["a"]), lambda: again.ids_, lambda: again.delete([])):
        with pytest.raises(DetachedError, match="load it with load"):
            use()
    assert not hasattr(again, "ids_")
    again.save(tmp_path / "n")
    assert (tmp_path / "n").read_bytes() == (tmp_path / "m").read_bytes()
    assert "IntegerSums" in again._repr_html_()


def test_a_file_holds_no_record(tmp_path):
    marked = X.copy()
    marked[1, 0] = 123.456
    model = SortedValues().fit(marked, ids=["a", "secret-id", "c", "d"])
    model.save(tmp_path / "m")
    saved = (tmp_path / "m").read_bytes()
    assert np.float64(123.456).tobytes() not in saved
    assert b"secret-id" not in saved


@pytest.mark.parametrize("source", ["records", "pair", "triple", "shuffled"])
def test_an_estimator_with_its_records_deletes(tmp_path, source):
    model = IntegerSums(random_state=3).fit(X, ids=IDS, groups=[1, 1, 2, 3])
    model.delete(["b"])
    model.save(tmp_path / "m")
    left = [0, 2, 3]
    ids, groups = [IDS[i] for i in left], [1, 2, 3]
    given = {
        "records": Records(X[left], ids=ids, groups=groups),
        "pair": (X[left], ids),
        "triple": (X[left], ids, groups),
        "shuffled": (X[left[::-1]], ids[::-1], groups[::-1]),
    }[source]
    again = IntegerSums.load(tmp_path / "m", given)
    assert sorted(again.ids_) == ids
    request = {"ids": ["c"]} if source == "pair" else {"groups": [2]}
    again.delete(**request)
    model.delete(**request)
    assert again.digest() == model.digest()
    with pytest.raises(TooFewRecordsError):
        again.delete(["a", "d"])


def test_an_accelerator_is_made_again_from_the_records(tmp_path):
    model = SortedValues().fit(X, ids=IDS)
    model.save(tmp_path / "m")
    assert SortedValues.load(tmp_path / "m")._accelerator is None
    again = SortedValues.load(tmp_path / "m", (X, IDS))
    assert again._accelerator == [1, 2, 3, 4]
    again.delete(["b"])
    assert again._accelerator == [1, 3, 4]


def test_other_records_are_refused(tmp_path):
    model = PlainSums().fit(X, ids=IDS)
    model.delete(["b"])
    model.save(tmp_path / "m")
    for rows, ids in [
        ([0, 1, 2, 3], IDS),
        ([0, 1, 2], ["a", "b", "c"]),
        ([0, 2], ["a", "c"]),
        ([0, 2, 3], ["a", "c", "x"]),
    ]:
        with pytest.raises(ArtifactError, match="are not the 3 of the model"):
            PlainSums.load(tmp_path / "m", (X[rows], ids))
    with pytest.raises(ArtifactError, match="1 features; expected 2"):
        PlainSums.load(tmp_path / "m", (X[[0, 2, 3], :1], ["a", "c", "d"]))
    for given in (X, (X,), (X, IDS, IDS, IDS, IDS)):
        with pytest.raises(InvalidInputError, match="expected Records, or a tuple"):
            PlainSums.load(tmp_path / "m", given)


def test_records_with_other_features_are_refused(tmp_path):
    frame = pd.DataFrame(X, columns=["age", "bmi"])
    PlainSums().fit(frame).save(tmp_path / "m")
    PlainSums.load(tmp_path / "m", Records(X)).delete([1])
    with pytest.raises(ArtifactError, match="another order of them; expected 'age', 'bmi'"):
        PlainSums.load(tmp_path / "m", Records(frame[["bmi", "age"]]))


def test_a_model_of_another_class_or_version_is_refused(tmp_path, monkeypatch):
    PlainSums().fit(X).save(tmp_path / "m")
    with pytest.raises(ArtifactError, match=r"MyEstimator.load\(path\)"):
        erasable.load(tmp_path / "m")
    with pytest.raises(ArtifactError):
        IntegerSums.load(tmp_path / "m")
    monkeypatch.setattr(PlainSums, "algorithm_version", 2)
    with pytest.raises(ArtifactError, match=r"made by version 1 .* expected 2"):
        PlainSums.load(tmp_path / "m")


def test_erasable_loads_its_own(tmp_path):
    MinMaxScaler().fit(X).save(tmp_path / "m")
    assert type(erasable.load(tmp_path / "m")) is MinMaxScaler
    with pytest.raises(ArtifactError, match="expected a PlainSums"):
        PlainSums.load(tmp_path / "m")


def test_a_changed_number_is_noticed(tmp_path):
    path = tmp_path / "m"
    model = MajorityClass().fit(X, [0, 1, 1, 1])
    model.save(path)
    header, state = read_artifact(path)
    state["counts"] = state["counts"][::-1]
    write_artifact(path, header, state)
    with pytest.raises(ArtifactError, match="not that of its content"):
        MajorityClass.load(path)
    del state["counts"]
    write_artifact(path, header, state)
    with pytest.raises(ArtifactError, match="no complete MajorityClass"):
        MajorityClass.load(path)


def test_parameters_come_back_as_they_were():
    params = {
        "func": np.log1p,
        "kw_args": {"a": (1, [2, None]), "b": np.arange(3)},
        "inverse_func": None,
        "check_inverse": np.bool_(True),
    }
    made = FunctionTransformer(**decode_params(encode_params(FunctionTransformer(**params))))
    assert made.func is np.log1p
    assert made.kw_args["a"] == (1, [2, None])
    assert made.kw_args["b"].tolist() == [0, 1, 2]
    assert made.check_inverse is True


@pytest.mark.parametrize(
    "weights",
    [
        {0: 1.0, 1: 2.0},
        {-3: 1.0, 2**40: 2.0},
        {"0": 1.0, "1": 2.0},
        {False: 1.0, True: 2.0},
        {0.5: 1.0, 1.5: 2.0},
        {np.int64(0): 1.0, np.int64(1): 2.0},
        {},
    ],
    ids=["integers", "large", "text", "booleans", "floats", "NumPy's", "none"],
)
def test_the_keys_of_a_dictionary_keep_their_types(tmp_path, weights):
    model = PlainSums().fit(X)
    model._info.params["class_weight"] = encode_params(_Weighted(weights))["class_weight"]
    model._info.digest = model._info.constants = None
    model.save(tmp_path / "model")
    _, state = read_artifact(tmp_path / "model")
    again = decode_params(state["params"])["class_weight"]
    assert again == weights
    plain = [key.item() if isinstance(key, np.generic) else key for key in weights]
    assert list(map(type, again)) == list(map(type, plain))


class _Weighted(MajorityClass):
    def __init__(self, class_weight=None):
        self.class_weight = class_weight


def test_keys_that_differ_in_type_alone_are_other_parameters():
    told = [
        state_root(encode_params(_Weighted(weights)))
        for weights in ({0: 1.0, 1: 2.0}, {"0": 1.0, "1": 2.0}, {0.0: 1.0, 1.0: 2.0})
    ]
    assert len(set(told)) == 3
    left, right = {1: 2.0, 0: 1.0}, {0: 1.0, 1: 2.0}
    encoded = [state_root(encode_params(_Weighted(weights))) for weights in (left, right)]
    assert encoded[0] == encoded[1]


def test_a_weighted_classifier_is_the_same_from_a_file(tmp_path):
    model = LogisticRegression(class_weight={0: 1.0, 1: 2.0}).fit(X, [0, 1, 0, 1], ids=IDS)
    model.save(tmp_path / "model")
    loaded = erasable.load(tmp_path / "model", Records(X, [0, 1, 0, 1], ids=IDS))
    assert loaded.class_weight == {0: 1.0, 1: 2.0}
    assert {type(key) for key in loaded.class_weight} == {int}
    for each in (model, loaded):
        each.delete(["d"])
    assert loaded.digest() == model.digest()


def test_nested_estimators_come_back():
    class Wrapper(MajorityClass):
        def __init__(self, estimator=None):
            self.estimator = estimator

    inner = FunctionTransformer(np.sqrt)
    params = decode_params(encode_params(Wrapper([("first", inner)])))
    [(name, made)] = params["estimator"]
    assert name == "first"
    assert type(made) is FunctionTransformer
    assert made.func is np.sqrt


def test_a_file_runs_no_function():
    for func in (os.system, lambda X: X, np.save):
        encoded = encode_params(FunctionTransformer(func))
        with pytest.raises(ArtifactError, match="fit again where the function is at hand"):
            decode_params(encoded)


# -- files that the caller has opened ----------------------------------------------------------


def test_a_file_that_is_open_holds_what_a_path_holds(tmp_path):
    model = MinMaxScaler().fit(X, ids=IDS)
    model.save(tmp_path / "model")
    held = io.BytesIO()
    model.save(held)
    assert held.getvalue() == (tmp_path / "model").read_bytes()
    held.seek(0)
    again = erasable.load(held, (X, IDS))
    assert not held.closed
    assert again.delete(["b"]).digest_after == model.delete(["b"]).digest_after
    with open(tmp_path / "model", "rb") as file:
        assert erasable.load(file).state()["n_records"] == 4


def test_a_file_is_written_and_read_where_it_stands():
    held = io.BytesIO(b"before")
    held.seek(6)
    write_artifact(held, {"class": "a.B"}, STATE)
    held.seek(6)
    header, state = read_artifact(held)
    assert (header, flat(state)) == ({"class": "a.B"}, flat(STATE))
    held.seek(0)
    with pytest.raises(ArtifactError, match="a BytesIO"):
        read_artifact(held)


def test_a_file_of_text_is_refused(tmp_path):
    with pytest.raises(InvalidInputError, match="binary file"):
        write_artifact(io.StringIO(), {}, STATE)
    with pytest.raises(InvalidInputError, match="binary file"):
        read_artifact(io.StringIO("text"))
    (tmp_path / "bytes").write_bytes(b"\xff\xfe\xfd")
    with (
        open(tmp_path / "bytes", encoding="utf-8") as file,
        pytest.raises(InvalidInputError, match="binary file"),
    ):
        read_artifact(file)


class Full(io.RawIOBase):
    """A disk without space, and without anything to read."""

    def writable(self):
        return True

    def write(self, data):
        raise OSError(errno.ENOSPC, "No space left on device")

    def read(self, size=-1):
        raise OSError(errno.EIO, "Input/output error")


def test_a_file_that_fails_is_told_of():
    with pytest.raises(ArtifactFileError, match="No space left") as caught:
        write_artifact(Full(), {}, STATE)
    assert caught.value.errno == errno.ENOSPC
    with pytest.raises(ArtifactFileError, match="Input/output"):
        read_artifact(Full())


# -- what interrupts is what is raised -------------------------------------------------------------

WHERE = (*OURS, zipfile.__file__)
BRIEF = {"sums": np.arange(3), "n": 3}


def surfaces(action, at, error):
    """Tell whether an error was raised at an event of an action, and what then came out of it."""
    raised = []

    def noted():
        try:
            action()
        except BaseException as one:
            raised.append(type(one))
            raise

    try:
        return interrupt(noted, at, error=error, where=WHERE), raised
    except BaseException:
        return True, raised


def sweep_writing(tmp_path, stride):
    path = tmp_path / "model"
    write_artifact(path, {}, {"n": 2})
    for at in range(0, 10_000, stride):
        interrupted, raised = surfaces(
            lambda: write_artifact(path, {}, BRIEF), at, KeyboardInterrupt
        )
        n = read_artifact(path)[1]["n"]
        # Only what a finalizer raises is dropped, when the file is there.
        assert raised == [KeyboardInterrupt] or (raised == [] and n == 3)
        assert os.listdir(tmp_path) == ["model"]
        if not interrupted:
            return at
        write_artifact(path, {}, {"n": 2})


@pytest.mark.thorough
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_an_interruption_of_a_save_is_raised_as_it_is(tmp_path):
    assert sweep_writing(tmp_path, skip(1)) > 300


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_an_error_of_closing_in_its_place_is_found(tmp_path, monkeypatch):
    def pack(file, text, arrays):
        with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
            artifact._add(archive, artifact._HEADER, text.encode())
            for number, array in enumerate(arrays):
                buffer = io.BytesIO()
                np.lib.format.write_array(buffer, array, allow_pickle=False)
                artifact._add(archive, artifact._member(number), buffer.getbuffer())

    monkeypatch.setattr(artifact, "_pack", pack)
    with pytest.raises(AssertionError):
        sweep_writing(tmp_path, 1)


def sweep_reading(file, stride):
    for at in range(0, 10_000, stride):
        interrupted, raised = surfaces(lambda: read_artifact(io.BytesIO(file)), at, MemoryError)
        assert raised in ([MemoryError], [])
        if not interrupted:
            return at


@pytest.mark.thorough
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_file_is_not_called_damaged_where_memory_runs_out():
    file = io.BytesIO()
    write_artifact(file, {}, BRIEF)
    assert sweep_reading(file.getvalue(), skip(1)) > 200
