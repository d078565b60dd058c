"""Models saved to MLflow, and logged to a real store, come back and predict as they did."""

from __future__ import annotations

import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from grammar import Writer, build, dense
from numpy.testing import assert_array_equal
from sklearn.exceptions import NotFittedError
from sklearn.svm import SVC

from erasable.cluster import DBSCAN, KMeans
from erasable.compose import make_column_transformer
from erasable.core.errors import ArtifactError, DetachedError, InvalidDataError, InvalidInputError
from erasable.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from erasable.feature_extraction import TfidfVectorizer
from erasable.linear_model import LogisticRegression, Ridge
from erasable.naive_bayes import MultinomialNB
from erasable.neighbors import KernelDensity, KNeighborsClassifier
from erasable.pipeline import make_pipeline
from erasable.preprocessing import OneHotEncoder, SimpleImputer, StandardScaler
from erasable.refit import Refit

mlflow = pytest.importorskip("mlflow")
flavor = pytest.importorskip("erasable.mlflow")
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3))
Y = np.where(X[:, 0] + X[:, 1] > 0, "yes", "no")
FRAME = pd.DataFrame(X, columns=["age", "dose", "weight"])
TEXTS = [" ".join(RNG.choice(["red", "green", "blue", "round"], 5)) for _ in range(60)]

MODELS = [
    Ridge(),
    LogisticRegression(),
    RandomForestClassifier(3, random_state=0),
    HistGradientBoostingClassifier(max_iter=3),
    KNeighborsClassifier(3),
    KMeans(3, random_state=0),
    StandardScaler(),
    make_pipeline(StandardScaler(), LogisticRegression()),
]


def fitted(model: Any) -> Any:
    return model.fit(X, X[:, 0] if isinstance(model, Ridge) else Y)


def answer(model: Any, rows: Any) -> Any:
    return dense(model.predict(rows) if hasattr(model, "predict") else model.transform(rows))


def mlmodel(path: Path) -> dict[str, Any]:
    return dict(mlflow.models.Model.load(str(path / "MLmodel")).flavors)


# -- models come back ------------------------------------------------------------------------------


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_a_model_comes_back_and_predicts(model: Any, tmp_path: Path) -> None:
    fitted(model)
    flavor.save_model(model, tmp_path / "saved")
    told = mlmodel(tmp_path / "saved")
    assert told["erasable"]["digest"] == model.digest()
    assert told["erasable"]["with_records"] is False
    assert told["python_function"]["loader_module"] == "erasable.mlflow"
    again = flavor.load_model(str(tmp_path / "saved"))
    assert type(again) is type(model)
    assert again.digest() == model.digest()
    assert_array_equal(answer(again, X), answer(model, X))
    served = mlflow.pyfunc.load_model(str(tmp_path / "saved"))
    assert_array_equal(dense(served.predict(X)), answer(model, X))
    assert served.get_raw_model().digest() == model.digest()
    assert not [each for each in (tmp_path / "saved").rglob("*") if each.suffix == ".pkl"]


@pytest.mark.parametrize("seed", [1, 4, 9, 16])
def test_a_composition_that_was_drawn_comes_back(seed: int, tmp_path: Path) -> None:
    sentence = Writer(seed).write()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = build(sentence.node).fit(sentence.X, sentence.y, ids=sentence.ids)
        flavor.save_model(model, tmp_path / "saved")
        again = flavor.load_model(str(tmp_path / "saved"), trusted=True)
        assert again.digest() == model.digest()
        served = mlflow.pyfunc.load_model(str(tmp_path / "saved")).get_raw_model()
        expected = answer(model, sentence.X)
        for found in (answer(again, sentence.X), answer(served, sentence.X)):
            assert_array_equal(found, expected)


def test_a_model_is_logged_registered_and_loaded_elsewhere(store: Any, tmp_path: Path) -> None:
    """In a fresh Python that knows MLflow alone."""
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(FRAME, Y)
    example = pd.DataFrame([[0.5, 1.5, 2.5]], columns=FRAME.columns)
    with mlflow.start_run():
        info = flavor.log_model(
            model, name="risk", registered_model_name="risk", input_example=example,
            metadata={"team": "wards"}, pyfunc_predict_fn="predict_proba",
            extra_pip_requirements=["pyyaml"],
        )  # fmt: skip
    assert info.signature.inputs.input_names() == list(FRAME.columns)
    assert info.metadata == {"team": "wards"}
    store.set_registered_model_alias("risk", "current", "1")
    for uri in (info.model_uri, "models:/risk/1", "models:/risk@current"):
        assert flavor.load_model(uri).digest() == model.digest()
    needed = Path(mlflow.artifacts.download_artifacts(info.model_uri), "requirements.txt")
    names = [line.partition("==")[0] for line in needed.read_text().split()]
    assert names[1:] == ["erasable", "numpy", "scikit-learn", "pyyaml"]
    FRAME.to_csv(tmp_path / "rows.csv", index=False)
    script = (
        "import sys, numpy, pandas, mlflow.pyfunc\n"
        "model = mlflow.pyfunc.load_model('models:/risk@current')\n"
        "numpy.save(sys.argv[2], model.predict(pandas.read_csv(sys.argv[1])))\n"
    )
    line = [sys.executable, "-c", script, str(tmp_path / "rows.csv"), str(tmp_path / "told.npy")]
    subprocess.run(line, check=True, capture_output=True)
    assert_array_equal(np.load(tmp_path / "told.npy"), model.predict_proba(FRAME))


def test_a_model_that_neither_predicts_nor_transforms_is_not_served(tmp_path: Path) -> None:
    model = DBSCAN(eps=1.0).fit(X)
    flavor.save_model(model, tmp_path / "saved")
    assert set(mlmodel(tmp_path / "saved")) == {"erasable"}
    assert flavor.load_model(str(tmp_path / "saved")).digest() == model.digest()


# -- what is predicted for -------------------------------------------------------------------------


def served(model: Any, path: Path, **options: Any) -> Any:
    flavor.save_model(model, path / "saved", **options)
    return mlflow.pyfunc.load_model(str(path / "saved"))


def test_frames_have_more_columns_in_any_order(tmp_path: Path) -> None:
    model = Ridge().fit(FRAME, X[:, 0])
    loaded, expected = served(model, tmp_path), model.predict(FRAME)
    shuffled = FRAME[["weight", "age", "dose"]].assign(city="x")
    assert_array_equal(loaded.predict(shuffled), expected)
    with pytest.raises(InvalidDataError, match="1 missing \\('dose'\\)"):
        loaded.predict(shuffled.drop(columns="dose"))


def test_frames_for_a_model_without_names(tmp_path: Path) -> None:
    model = Ridge().fit(X, X[:, 0])
    assert_array_equal(served(model, tmp_path).predict(FRAME), model.predict(X))


def test_texts_come_as_a_list_or_as_a_column(tmp_path: Path) -> None:
    model = make_pipeline(TfidfVectorizer(), MultinomialNB()).fit(TEXTS, Y)
    loaded, expected = served(model, tmp_path), model.predict(TEXTS)
    assert_array_equal(loaded.predict(pd.DataFrame({"message": TEXTS})), expected)
    assert_array_equal(loaded.predict(TEXTS), expected)
    with pytest.raises(InvalidDataError, match="has 2 columns; expected one, of texts"):
        loaded.predict(pd.DataFrame({"message": TEXTS, "n": 1}))


@pytest.mark.parametrize(
    ("model", "name"),
    [(LogisticRegression(), "predict_proba"), (KernelDensity(), "score_samples")],
    ids=["probabilities", "densities"],
)
def test_another_function_is_served(model: Any, name: str, tmp_path: Path) -> None:
    loaded = served(fitted(model), tmp_path, pyfunc_predict_fn=name)
    assert_array_equal(loaded.predict(X), getattr(model, name)(X))


def test_an_example_has_categories_which_come_as_texts_too(tmp_path: Path) -> None:
    frame = FRAME.assign(city=pd.Categorical(np.where(X[:, 2] > 0, "Bern", "Rome")))
    coded = (OneHotEncoder(categories=[["Bern", "Rome"]], sparse_output=False), ["city"])
    model = make_pipeline(
        make_column_transformer(coded, remainder="passthrough"), LogisticRegression()
    ).fit(frame, Y)
    loaded, expected = served(model, tmp_path, input_example=frame[:2]), model.predict(frame)
    assert loaded.metadata.signature.inputs.input_names() == list(frame.columns)
    assert_array_equal(loaded.predict(frame), expected)
    assert_array_equal(loaded.predict(frame.astype({"city": object})), expected)
    with pytest.raises(mlflow.exceptions.MlflowException, match="dose"):
        loaded.predict(frame.astype({"dose": str}))


@pytest.mark.parametrize("example", [slice(2), slice(2, 4)], ids=["with a gap", "without"])
def test_an_example_has_nullable_numbers(example: slice, tmp_path: Path) -> None:
    dose = pd.array([None, *range(59)], dtype="Int64")
    frame = FRAME.assign(dose=dose)
    model = make_pipeline(SimpleImputer(), LogisticRegression()).fit(frame, Y)
    loaded = served(model, tmp_path, input_example=frame[example])
    assert_array_equal(loaded.predict(frame), model.predict(frame))
    assert_array_equal(loaded.predict(frame.astype({"dose": float})), model.predict(frame))


@pytest.mark.parametrize("params", [(), ({"unused": 1},)], ids=["alone", "with parameters"])
def test_an_example_is_a_list_of_rows(params: Any, tmp_path: Path) -> None:
    model, rows = Ridge().fit(X, X[:, 0]), X[:2].tolist()
    loaded = served(model, tmp_path, input_example=(rows, *params) if params else rows)
    assert loaded.metadata.signature.inputs.is_tensor_spec()
    assert_array_equal(loaded.predict(X), model.predict(X))


# -- records ---------------------------------------------------------------------------------------


def test_records_are_kept_only_where_that_was_asked_for(tmp_path: Path) -> None:
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(FRAME, Y)
    flavor.save_model(model, tmp_path / "without")
    flavor.save_model(model, tmp_path / "with", with_records=True)

    def holds(name: str) -> bool:
        files = [each.read_bytes() for each in (tmp_path / name).rglob("*") if each.is_file()]
        return any(value.tobytes() in data for value in X[:, 0] for data in files)

    assert not holds("without")
    assert holds("with")
    assert mlmodel(tmp_path / "with")["erasable"]["with_records"] is True
    with pytest.raises(ArtifactError, match="was saved for serving, without its records"):
        flavor.load_model(str(tmp_path / "without"), records=True)
    with pytest.raises(DetachedError):
        flavor.load_model(str(tmp_path / "without")).delete([3])
    passed = flavor.load_model(str(tmp_path / "without"), records=(FRAME, Y))
    copied = flavor.load_model(str(tmp_path / "with"), str(tmp_path / "copy"), records=True)
    expected = model.delete([3]).digest_after
    assert passed.delete([3]).digest_after == copied.delete([3]).digest_after == expected


def test_a_state_of_scikit_learn_has_to_be_trusted(tmp_path: Path) -> None:
    model = Refit(SVC()).fit(X, Y)
    flavor.save_model(model, tmp_path / "saved")
    with pytest.raises(ArtifactError, match="trusted=True"):
        flavor.load_model(str(tmp_path / "saved"))
    assert flavor.load_model(str(tmp_path / "saved"), trusted=True).digest() == model.digest()


# -- what is refused -------------------------------------------------------------------------------


@pytest.mark.parametrize("way", ["another model", "one byte", "a longer file"])
def test_a_file_that_was_tampered_with_is_refused(way: str, tmp_path: Path) -> None:
    flavor.save_model(fitted(Ridge()), tmp_path / "saved")
    file = tmp_path / "saved" / mlmodel(tmp_path / "saved")["erasable"]["data"]
    data = file.read_bytes()
    if way == "another model":  # whole, and with a digest of its own
        Ridge().fit(X, X[:, 1]).save(file)
    elif way == "one byte":
        at = data.index(b"\x93NUMPY") + 128  # the first one of an array
        file.write_bytes(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
    else:
        file.write_bytes(data + b"\0")
    for load in (flavor.load_model, mlflow.pyfunc.load_model):
        with pytest.raises(ArtifactError):
            load(str(tmp_path / "saved"))
    file.write_bytes(data)
    assert flavor.load_model(str(tmp_path / "saved")).digest() == fitted(Ridge()).digest()


@pytest.mark.parametrize(
    "damage",
    [*({name: None} for name in ("data", "digest", "with_records")), {"predict_fn": 1}, None],
    ids=str,
)
def test_a_damaged_mlmodel_is_refused(damage: dict[str, Any] | None, tmp_path: Path) -> None:
    flavor.save_model(fitted(Ridge()), tmp_path / "saved")
    file = str(tmp_path / "saved" / "MLmodel")
    told = mlflow.models.Model.load(file)
    told.flavors["erasable"] = damage and {**told.flavors["erasable"], **damage}
    told.save(file)
    for load in (flavor.load_model, mlflow.pyfunc.load_model):
        with pytest.raises(ArtifactError, match="MLmodel' is damaged; expected data, digest"):
            load(str(tmp_path / "saved"))


def test_what_cannot_be_saved(tmp_path: Path) -> None:
    path = tmp_path / "saved"
    with pytest.raises(NotFittedError):
        flavor.save_model(Ridge(), path)
    with pytest.raises(InvalidInputError, match="model is a SVC; expected a fitted estimator of"):
        flavor.save_model(SVC().fit(X, Y), path)
    with pytest.raises(InvalidInputError, match="pyfunc_predict_fn is 'predict_proba'; expected"):
        flavor.save_model(fitted(Ridge()), path, pyfunc_predict_fn="predict_proba")
    assert not path.exists()


def test_a_model_of_another_flavor_is_refused(tmp_path: Path) -> None:
    fitted(Ridge()).save(tmp_path / "model")
    mlflow.pyfunc.save_model(
        str(tmp_path / "saved"), loader_module="some.module", data_path=str(tmp_path / "model"),
        pip_requirements=[],
    )  # fmt: skip
    with pytest.raises(InvalidInputError, match="flavours python_function; expected 'erasable'"):
        flavor.load_model(str(tmp_path / "saved"))


def test_neither_erasable_nor_its_list_of_estimators_imports_mlflow() -> None:
    script = (
        "import sys, erasable; erasable.all_estimators(); assert 'mlflow' not in sys.modules\n"
        "import erasable.mlflow; assert 'mlflow' in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


# -- the flavour of scikit-learn -------------------------------------------------------------------


def test_the_flavor_of_scikit_learn_takes_a_model_whose_types_are_trusted(tmp_path: Path) -> None:
    """Its newer versions write by skops, which trusts types of scikit-learn alone."""
    skops = pytest.importorskip("skops.io", reason="skops is not installed: extra serving")
    import mlflow.sklearn as theirs

    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(X, Y)
    with pytest.raises(mlflow.exceptions.MlflowException, match=r"erasable\.pipeline\._pipeline"):
        theirs.save_model(model, tmp_path / "refused", serialization_format="skops")
    types = skops.get_untrusted_types(data=skops.dumps(model))
    by_skops = {"serialization_format": "skops", "skops_trusted_types": types}
    theirs.save_model(model, tmp_path / "skops", **by_skops)
    theirs.save_model(model, tmp_path / "pickled", serialization_format="cloudpickle")
    theirs.save_model(model.to_sklearn(), tmp_path / "exported")
    for name in ("skops", "pickled"):
        again = theirs.load_model(str(tmp_path / name))
        assert again.digest() == model.digest()
        assert again.delete([3]).action == "updated"
    exported = theirs.load_model(str(tmp_path / "exported"))
    assert_array_equal(exported.predict(X), model.predict(X))
