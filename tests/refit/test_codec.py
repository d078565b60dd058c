"""Fitted attributes as plain values and back, and what a file may not bring to life."""

from __future__ import annotations

import copyreg
import os
import subprocess
from collections import OrderedDict
from pathlib import Path
from typing import Any

import hypothesis.extra.numpy as hnp
import hypothesis.strategies as st
import numpy as np
import pytest
import scipy.special
from hypothesis import given, settings
from scipy.sparse import coo_array, csc_matrix, csr_array
from sklearn.base import BaseEstimator
from sklearn.gaussian_process.kernels import RBF, ConstantKernel
from sklearn.linear_model import Ridge
from sklearn.neighbors import KDTree
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils import Bunch

from effort import examples
from erasable.core.artifact import read_artifact, write_artifact
from erasable.core.digest import state_root
from erasable.core.errors import ArtifactError, InvalidParameterError
from erasable.refit._codec import decode, encode
from erasable.refit._names import find, known_to
from naming import named


def _root(tree: Any) -> str:
    return state_root({"tree": tree}).hex()


def _back(value: Any, folder: Path) -> Any:
    """Through plain values and a file; both ways must come to the same values again."""
    tree = encode(value, {})
    write_artifact(folder / "tree", {}, {"tree": tree})
    from_file = read_artifact(folder / "tree")[1]["tree"]
    made = decode(from_file, {})
    roots = {
        _root(each) for each in (tree, from_file, encode(decode(tree, {}), {}), encode(made, {}))
    }
    assert len(roots) == 1
    return made


def _equal(left: Any, right: Any) -> bool:
    if type(left) is not type(right):
        return False
    if isinstance(left, np.ndarray):
        if left.dtype != right.dtype or left.shape != right.shape:
            return False
        if left.dtype.hasobject:
            return all(_equal(x, y) for x, y in zip(left.ravel(), right.ravel(), strict=True))
        order = left.flags.f_contiguous == right.flags.f_contiguous
        return left.tobytes() == right.tobytes() and (order or left.dtype.kind == "U")
    if isinstance(left, list | tuple):
        return len(left) == len(right) and all(map(_equal, left, right))
    if isinstance(left, dict):
        return _equal(list(left.items()), list(right.items()))
    if isinstance(left, float):
        return np.float64(left).tobytes() == np.float64(right).tobytes()
    return bool(left == right)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("trees")


scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False)
    | st.text(st.characters(codec="utf-8", min_codepoint=1), max_size=4)
    | st.floats(width=32, allow_nan=False).map(np.float32)
    | st.integers(-9, 9).map(np.int64)
    | st.text(st.characters(codec="utf-8", min_codepoint=1), max_size=3).map(np.str_)
)
arrays = hnp.arrays(
    st.sampled_from([np.float64, np.float32, np.int8, np.bool_, np.complex128, "<U3", ">i4"]),
    hnp.array_shapes(min_dims=0, min_side=0, max_side=3),
) | hnp.arrays(object, hnp.array_shapes(max_side=3), elements=scalars)
values = st.recursive(
    scalars | arrays | arrays.map(np.asfortranarray) | st.slices(9),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(scalars.filter(lambda key: key == key), inner, max_size=3)
    ),
    max_leaves=8,
)


@settings(max_examples=examples(150))
@given(value=values)
def test_values_come_back(value: Any, folder: Path) -> None:
    made = _back(value, folder)
    wanted = value
    if isinstance(value, np.ndarray) and value.dtype.byteorder == ">":
        wanted = value.astype(value.dtype.newbyteorder("<"))
        made = made.astype(wanted.dtype)
    assert _equal(made, wanted) or _swapped(value)


def _swapped(value: Any) -> bool:
    """Whether an array of the other byte order is somewhere inside; files turn it round."""
    return ">i4" in repr(value) or "dtype='>i4'" in repr(value)


@pytest.mark.parametrize(
    "value",
    [
        {"a", "b"},
        frozenset({3, 1}),
        {(1, "a"): None},
        Bunch(a=1, b=[2.5]),
        range(2, 9, 3),
        np.dtype("float32"),
        np.float32,
        np.log1p,
        scipy.special.expit,
        int,
        Ridge,
        [1, True, 2.0],
        [2**80, 1],
        np.ma.MaskedArray([1.0, 2.0], mask=[False, True], fill_value=7.0),
        ConstantKernel(2.0) * RBF([1.0, 3.0]),
        [np.float64(1.5), np.float64(2.5)],
        np.array(["a", "bc"], dtype=np.dtypes.StringDType()),
    ],
    ids=named,
)
def test_other_values_come_back(value: Any, folder: Path) -> None:
    made = _back(value, folder)
    assert type(made) is type(value)
    if isinstance(value, np.ma.MaskedArray):
        assert made.filled().tolist() == value.filled().tolist()
    else:
        assert np.all(made == value)


@pytest.mark.parametrize("kind", [csr_array, csc_matrix])
def test_sparse_matrices_come_back(kind: Any, folder: Path) -> None:
    matrix = kind(np.array([[0.0, 2.0], [3.0, 0.0], [0.0, 0.0]]))
    made = _back(matrix, folder)
    assert type(made) is kind
    assert np.array_equal(made.toarray(), matrix.toarray())


@pytest.mark.parametrize(
    "generator",
    [
        np.random.RandomState(3),
        np.random.default_rng(3),
        np.random.Generator(np.random.Philox(3)),
        np.random.Generator(np.random.SFC64(3)),
    ],
    ids=named,
)
def test_generators_go_on_where_they_were(generator: Any, folder: Path) -> None:
    generator.standard_normal(3)
    made = _back(generator, folder)
    assert made.standard_normal(5).tolist() == generator.standard_normal(5).tolist()


class Shelf(BaseEstimator):
    """Holds whatever it is given."""


def test_shared_objects_are_shared_again() -> None:
    shelf, known = Shelf(), {f"{Shelf.__module__}.Shelf": Shelf}
    shelf.rng_ = np.random.RandomState(0)
    shelf.same_ = [shelf.rng_, shelf]
    made = decode(encode(shelf, known), known)
    assert made.same_[0] is made.rng_
    assert made.same_[1] is made


def test_bytes_between_fields_do_not_count() -> None:
    kind = np.dtype(
        {"names": ["a", "b"], "formats": ["i1", "f8"], "offsets": [0, 8], "itemsize": 16}
    )
    one, two = (np.frombuffer(bytearray([fill]) * 32, dtype=kind) for fill in (7, 9))
    for array in (one, two):
        array["a"], array["b"] = 1, 2.5
    assert one.tobytes() != two.tobytes()
    assert _root(encode(one, {})) == _root(encode(two, {}))
    made = decode(encode(one, {}), {})
    assert made.dtype == kind
    assert made["b"].tolist() == [2.5, 2.5]


def test_counts_of_queries_do_not_count() -> None:
    tree = KDTree(np.random.default_rng(0).normal(size=(50, 2)), leaf_size=3)
    before = _root(encode(tree, {}))
    tree.query(np.zeros((4, 2)))
    assert tree.get_tree_stats() != (0, 0, 0)
    assert _root(encode(tree, {})) == before


def test_trees_predict_the_same(folder: Path) -> None:
    X = np.random.default_rng(0).normal(size=(60, 3))
    tree = DecisionTreeClassifier(random_state=0).fit(X, X[:, 0] > X[:, 1])
    made = _back(tree, folder)
    assert np.array_equal(made.predict_proba(X), tree.predict_proba(X))
    assert np.array_equal(made.decision_path(X).toarray(), tree.decision_path(X).toarray())


# --------------------------------------------------------------------------- what is refused


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (object(), "builtins.object"),
        (open, "open"),
        (os.system, "system"),
        (subprocess.run, "subprocess.run"),
        (np.load, "numpy.load"),
        (coo_array((2, 2)), "coo"),
        (np.matrix([[1]]), "matrix"),
        (OrderedDict(a=1), "OrderedDict"),
        (np.zeros(2, dtype=[("a", "f8", 3)]), "array of"),
        (np.zeros(1, dtype=[("a", object)]), "array of"),
        (Shelf(), "Shelf"),
        (Ridge().fit, "fit"),
        (np.void(b"junk"), "void"),
    ],
    ids=lambda case: named(case)[:40],
)
def test_what_cannot_be_kept(value: Any, told: str) -> None:
    with pytest.raises(InvalidParameterError, match=rf"holds .*{told}.*no plain copy") as caught:
        encode([value], {})
    assert "\n" not in str(caught.value)


def test_what_is_nested_too_deeply() -> None:
    chain: Any = []
    for _ in range(3000):
        chain = [chain]
    with pytest.raises(InvalidParameterError, match="nested too deeply"):
        encode(chain, {})


@pytest.mark.parametrize(
    "name",
    [
        "os.system",
        "builtins.eval",
        "builtins.exec",
        "subprocess.Popen",
        "numpy.load",
        "numpy.memmap",
        "numpy.save",
        "scipy.io.netcdf_file",
        "sklearn.utils._testing.assert_run_python_script_without_output",
        "sklearn.datasets.load_files",
        "sklearn.datasets._base.load_files",
        "sklearn.utils._joblib.joblib",
        "sklearn.tests.test_base.MyEstimator",
        "sklearn.no_such_module.Thing",
        "sklearn.linear_model.Ridge",
        "sklearn..Ridge",
        "pathlib.Path",
        "",
    ],
)
def test_names_that_no_file_may_use(name: str) -> None:
    with pytest.raises(ArtifactError, match="expected something of scikit-learn"):
        find(name, {})


def test_files_call_nothing() -> None:
    blank = {"is": "list", "of": "parts", "parts": {}}
    args = {"is": "tuple", "of": "str", "items": np.array(["a path"], dtype=object)}
    for tree, told in (
        ({"is": "object", "class": "numpy.memmap", "args": args, "state": None}, "names"),
        (
            {"is": "object", "class": "sklearn.utils._bunch.Bunch", "args": args, "state": None},
            "with arguments",
        ),
        ({"is": "estimator", "class": "os.system", "attributes": {}}, "names"),
        ({"is": "object", "class": "builtins.object", "args": args, "state": None}, "holds"),
        ({"is": "object", "class": "numpy.float64", "args": args, "state": None}, "holds"),
        (
            {"is": "estimator", "class": "sklearn.utils._bunch.Bunch", "attributes": {}},
            "expected an estimator",
        ),
        ({"is": "generator", "legacy": False, "state": {"bit_generator": "seed"}}, "generator"),
        ({**blank, "is": "else"}, "of kind 'else'"),
    ):
        with pytest.raises(ArtifactError, match=told):
            decode(tree, {})


def test_what_is_given_in_this_process_is_known() -> None:
    known = known_to(Shelf())
    assert decode(encode(Shelf(), known), known).get_params() == {}
    assert copyreg.__name__ not in known
    scaler = StandardScaler().fit([[1.0], [2.0]])
    assert decode(encode(scaler, known_to(scaler)), {}).mean_ == [1.5]
