"""A frozen network before an estimator: vectors of records that are their own, to the last bit."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

torch = pytest.importorskip("torch", reason="torch is not installed: pip install torch")

from erasable import Records, load  # noqa: E402
from erasable.audit import equality  # noqa: E402
from erasable.core.errors import (  # noqa: E402
    ArtifactError,
    InvalidDataError,
    InvalidInputError,
    InvalidParameterError,
)
from erasable.linear_model import LogisticRegression, Ridge  # noqa: E402
from erasable.neighbors import KNeighborsClassifier  # noqa: E402
from erasable.neural import Embedding, backbone  # noqa: E402
from erasable.pipeline import make_pipeline  # noqa: E402
from erasable.preprocessing import StandardScaler  # noqa: E402
from neural import backbones  # noqa: E402

HOME = "neural.backbones"


def embedding(name: str = "any_width", **params: Any) -> Embedding:
    return Embedding(f"{HOME}.{name}", **params)


def images(n: int = 60) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    return rng.normal(size=(n, 64)), rng.integers(0, 3, n)


def by_hand(network: Any, rows: Any) -> Any:
    """Send records through one by one, as a user of torch would."""
    network.eval()
    torch.set_num_threads(1)
    with torch.no_grad():
        made = [network(torch.tensor(row[None], dtype=torch.float32)).reshape(-1) for row in rows]
    return torch.stack(made).numpy()


def test_vectors_are_those_of_the_network() -> None:
    X, _ = images()
    made = embedding("images", shape=(1, 8, 8)).fit(X).transform(X)
    assert made.dtype == np.float64
    np.testing.assert_allclose(
        made, by_hand(backbones.images(), X.reshape(-1, 1, 8, 8)), rtol=1e-6, atol=1e-7
    )


@pytest.mark.parametrize("head", [LogisticRegression(), Ridge(), KNeighborsClassifier(3)])
@pytest.mark.parametrize("scaled", [False, True])
def test_a_deletion_is_a_fit_without_the_records(head: Any, scaled: bool) -> None:
    X, y = images()
    between = [StandardScaler()] if scaled else []

    def made() -> Any:
        return clone(make_pipeline(embedding("images", shape=(1, 8, 8)), *between, head))

    model = made()
    gone = [3, 40, 41]
    left = np.setdiff1d(np.arange(60), gone)
    model.fit(X, y)
    assert model.delete(gone[:1]).digest_after != model.delete(gone[1:]).digest_after
    fresh = made()
    assert model.digest() == fresh.fit(X[left], y[left], ids=left).digest()
    assert equality(model)
    assert np.array_equal(model.predict(X), fresh.predict(X))


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_a_vector_is_the_same_alone_and_among_others(order: Any, kind: Any) -> None:
    X, _ = images(37)
    X = np.array(X.astype(np.float32), dtype=kind, order=order)
    model = embedding("images", shape=(1, 8, 8)).fit(X)
    among = model.transform(X)
    assert np.array_equal(among[::-1], model.transform(X[::-1]))
    for row in (0, 5, 36):
        assert np.array_equal(model.transform(X[row : row + 1])[0], among[row])


def test_threads_and_torchs_own_settings_do_not_count() -> None:
    X, y = images(300)
    digests = set()
    before = torch.get_num_threads(), torch.get_float32_matmul_precision()
    try:
        for threads, precision, n_jobs in [(1, "highest", None), (2, "medium", 3)]:
            torch.set_num_threads(threads)
            torch.set_float32_matmul_precision(precision)
            model = make_pipeline(embedding("images", shape=(1, 8, 8), n_jobs=n_jobs), Ridge())
            digests.add(model.fit(X, y).digest())
            assert (torch.get_num_threads(), torch.get_float32_matmul_precision()) == (
                threads, precision,
            )  # fmt: skip
    finally:
        torch.set_num_threads(before[0])
        torch.set_float32_matmul_precision(before[1])
    assert len(digests) == 1


# -- batches ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["placed", "among", "quantised"])
def test_batches_that_make_a_vector_depend_on_others_are_refused(name: str) -> None:
    X = np.random.default_rng(0).normal(size=(40, 785))
    with pytest.raises(InvalidParameterError, match=r"depends on its place among .* batch_size=1"):
        embedding(name, batch_size=8).fit(X)
    embedding(name).fit(X)


def test_batches_that_keep_vectors_apart_are_taken() -> None:
    rng = np.random.default_rng(0)
    texts = ["".join(rng.choice(list("abcdef"), 7)) for _ in range(45)]
    cut = {"tokenizer": f"{HOME}.numbers_of_letters", "max_length": 5}
    one, eight = (embedding("words", batch_size=b, **cut).fit(texts) for b in (1, 8))
    assert np.array_equal(one.transform(texts), eight.transform(texts))
    assert np.array_equal(eight.transform(texts)[[44]], eight.transform(texts[44:]))


def test_a_text_is_cut_and_filled_up() -> None:
    cut = {"tokenizer": f"{HOME}.numbers_of_letters", "max_length": 3}
    model = embedding("words", **cut).fit(["abc", "z"])
    table = backbones.words()[0].weight.detach().numpy()
    expected = [table[ord("z") % 26 + 1], table[0], table[0]]
    np.testing.assert_array_equal(model.transform(["z"]), np.concatenate(expected)[None])
    np.testing.assert_array_equal(model.transform(["abcdef"]), model.transform(["abc"]))


def test_a_network_may_know_few_words() -> None:
    cut = {"tokenizer": f"{HOME}.numbers_of_letters", "max_length": 3}
    texts, y = ["abc", "z", "", "mnop", "abc", "q"], [1.0, 2.0, 5.0, 3.0, 1.5, 0.0]
    model = make_pipeline(embedding("few_words", **cut), Ridge()).fit(texts, y)
    table = backbones.few_words()[0].weight.detach().numpy()
    want = np.concatenate([table[ord("z") % 26 + 1], table[0], table[0]])
    np.testing.assert_array_equal(model[0].transform(["z"]), want[None])
    rest = make_pipeline(embedding("few_words", **cut), Ridge())
    rest.fit(texts[1:], y[1:], ids=[1, 2, 3, 4, 5])
    assert model.delete([0]).digest_after == rest.digest()


@pytest.mark.parametrize(
    ("text", "told"),
    [("n", "makes a NoneType of"), ("s", "makes <U1 of"), ("r", "raised ValueError of"),
     ("x", "makes float64 of"), ("unknown", "raised KeyError of")],
)  # fmt: skip
def test_a_tokenizer_that_makes_no_numbers_is_told(text: str, told: str) -> None:
    model = embedding("words", tokenizer=f"{HOME}.no_numbers", max_length=3)
    with pytest.raises(InvalidInputError, match=told) as caught:
        model.fit([text])
    assert "unknown" not in str(caught.value)


def test_words_that_a_network_does_not_know_are_told() -> None:
    cut = {"tokenizer": f"{HOME}.numbers_of_letters", "max_length": 3}
    model = embedding("few_words", **cut).fit(["abc"])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(backbones, "numbers_of_letters", lambda text: [1, 99])
        with pytest.raises(InvalidInputError, match="cannot take 3 numbers of a text: IndexError"):
            model.transform(["abc"])


def test_what_the_caller_has_torch_do_changes_no_vector() -> None:
    X, _ = images()
    plain = embedding("images", shape=(1, 8, 8)).fit(X)
    for around in (torch.autocast("cpu", torch.bfloat16), torch.inference_mode()):
        with around:
            other = embedding("images", shape=(1, 8, 8)).fit(X)
            assert other.digest() == plain.digest()
            np.testing.assert_array_equal(other.transform(X), plain.transform(X))


# -- what is kept ----------------------------------------------------------------------------------


def test_a_deleted_record_leaves_no_vector() -> None:
    X, y = images()
    model = make_pipeline(embedding("images", shape=(1, 8, 8)), Ridge()).fit(X, y)
    kept = model[0]._accelerator
    vector = kept.made[7].copy()
    assert vector.any()
    model.delete([7])
    assert not kept.made[7].any()
    assert vector.tobytes() not in pickle.dumps(model)


def test_vectors_are_made_once() -> None:
    X, y = images()
    model = make_pipeline(embedding("images", shape=(1, 8, 8)), Ridge()).fit(X, y)
    assert model[0]._accelerator.known.all()
    asked: list[int] = []
    whole = model[0]._network.vectors
    model[0]._network.vectors = lambda rows, n_jobs=None: asked.append(len(rows)) or whole(rows)
    model.delete([1])
    model.delete([2, 3])
    assert not asked


def test_copies_pickles_and_files_delete(tmp_path: Path) -> None:
    X, y = images()
    model = make_pipeline(embedding("images", shape=(1, 8, 8)), LogisticRegression()).fit(X, y)
    model.save(tmp_path / "model")
    records = Records(X, y)
    others = [
        copy.deepcopy(model), pickle.loads(pickle.dumps(model)),
        load(tmp_path / "model", records), load(tmp_path / "model", (X, y)),
    ]  # fmt: skip
    after = model.delete([0, 9]).digest_after
    assert {other.delete([0, 9]).digest_after for other in others} == {after}


def test_models_at_rest_keep_vectors_and_overwrite_them(tmp_path: Path) -> None:
    X, y = images(200)
    model = make_pipeline(embedding("images", shape=(1, 8, 8)), Ridge()).fit(X, y)
    vectors = model[0]._accelerator.made
    gone = vectors[9].tobytes()
    model.save(tmp_path / "model", records=True)
    beside = tmp_path / "model.records"
    assert any(gone in each.read_bytes() for each in beside.iterdir())
    again = type(model).load(tmp_path / "model", True)
    assert again[0]._accelerator.known.all()
    again.delete([9])
    again.save(tmp_path / "model", records=True)
    assert not any(gone in each.read_bytes() for each in beside.iterdir())
    assert again.digest() == model.delete([9]).digest_after


def test_weights_come_from_a_file_and_are_part_of_the_state(tmp_path: Path) -> None:
    network, path = backbones.linear(), str(tmp_path / "weights.pt")
    X = np.random.default_rng(0).normal(size=(9, 3))
    torch.save(network.state_dict(), path)
    plain, given = embedding("linear").fit(X), embedding("linear", weights=path).fit(X)
    assert plain.weights_digest_ == given.weights_digest_
    with torch.no_grad():
        network.weight[0, 0] += 1
    torch.save(network.state_dict(), path)
    other = embedding("linear", weights=path).fit(X)
    assert other.weights_digest_ != given.weights_digest_
    assert other.digest() != given.digest()
    assert not np.array_equal(other.transform(X), given.transform(X))


def test_weights_that_changed_since_are_found(tmp_path: Path) -> None:
    network, path = backbones.linear(), str(tmp_path / "weights.pt")
    X, y = np.random.default_rng(0).normal(size=(9, 3)), np.arange(9.0)
    torch.save(network.state_dict(), path)
    make_pipeline(embedding("linear", weights=path), Ridge()).fit(X, y).save(tmp_path / "model")
    with torch.no_grad():
        network.bias[0] += 1
    torch.save(network.state_dict(), path)
    loaded = load(tmp_path / "model")
    with pytest.raises(ArtifactError, match="are not those that the model was fitted with"):
        loaded.predict(X)


def test_a_network_of_another_width_is_found(monkeypatch: Any, tmp_path: Path) -> None:
    X, y = images()
    make_pipeline(embedding("moments"), Ridge()).fit(X, y).save(tmp_path / "model")
    monkeypatch.setattr(backbones, "moments", backbone(lambda: torch.nn.Flatten()))
    with pytest.raises(ArtifactError, match="makes 64 numbers of a record; expected 2, as when"):
        load(tmp_path / "model", (X, y))


def test_another_machine_is_told_from_another_model(monkeypatch: Any, tmp_path: Path) -> None:
    X, y = images()
    model = make_pipeline(embedding("images", shape=(1, 8, 8)), Ridge()).fit(X, y)
    model.save(tmp_path / "model")
    here = torch.backends.cpu.get_cpu_capability()
    monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: "OTHER")
    there = make_pipeline(embedding("images", shape=(1, 8, 8)), Ridge()).fit(X, y)
    assert "another kind of machine" in str(equality(model, there))
    assert "another kind of machine" not in str(equality(model, there.delete([1]) and model))
    moved = load(tmp_path / "model")
    assert np.array_equal(moved.predict(X), model.predict(X))
    with pytest.raises(ArtifactError, match=f"torch .* on {here}|torch .* on .*same kind"):
        load(tmp_path / "model", (X, y)).delete([1])


def test_a_file_does_not_choose_what_is_run(tmp_path: Path) -> None:
    X, y = images()
    make_pipeline(embedding("unmarked"), Ridge()).fit(X, y).save(tmp_path / "model")
    with pytest.raises(ArtifactError, match=r"names the function 'neural.backbones.unmarked'"):
        load(tmp_path / "model")
    assert load(tmp_path / "model", trusted=True).predict(X).shape == (60,)
    model = make_pipeline(embedding("unmarked"), Ridge()).fit(X, y)
    model.save(tmp_path / "model", records=True)
    with pytest.raises(ArtifactError, match=r"names the function 'neural.backbones.unmarked'"):
        load(tmp_path / "model", True)
    assert load(tmp_path / "model", True, trusted=True).delete([1]).action == "updated"


# -- what is refused -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("nothing", r"the module 'neural.backbones' has no function 'nothing'"),
        ("no_network", r"no_network\(\) returned a int; expected a torch.nn.Module"),
        ("raising", r"raising\(\) raised RuntimeError: out of order"),
        ("lazy", "parameters that have no shape yet"),
        ("keeping", "keeps a dict under '_extra_state'; expected tensors"),
        ("drawing", "makes other numbers of the same record each time"),
        ("of_batches", "takes the statistics of each batch"),
        ("nothing_at_all", "makes 0 numbers of a record; expected from 1 to 1048576"),
        ("total", r"makes \(\) of 1 records; expected a tensor with a row"),
        ("linear", r"cannot take records of shape \(4,\): RuntimeError"),
    ],
)
def test_networks_that_cannot_be_frozen_are_refused(name: str, message: str) -> None:
    model = embedding(name)
    with pytest.raises((InvalidParameterError, InvalidInputError), match=message):
        model.fit(np.ones((5, 4)))
    assert not hasattr(model, "platform_")


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"backbone": backbones.linear}, r"Got a function instead; pass a string like 'neural"),
        ({"backbone": "linear"}, "must be the import path of a function"),
        ({"backbone": "no.such.module"}, "cannot be imported"),
        ({"backbone": ".small"}, "Got '.small' instead"),
        ({"backbone": "nets."}, "Got 'nets.' instead"),
        ({"shape": (2, 3)}, r"shape=\(2, 3\) has 6 values; expected 4"),
        ({"shape": (2, -2)}, r"shape=\(2, -2\) is not of whole numbers from 1"),
        ({"shape": ("a",)}, r"shape=\('a',\) is not of whole numbers from 1"),
        ({"shape": (4,), "tokenizer": "a.b", "max_length": 4}, "beside a tokenizer"),
        ({"tokenizer": f"{HOME}.numbers_of_letters"}, "tokenizer and max_length belong together"),
        ({"max_length": 4}, "tokenizer and max_length belong together"),
        ({"batch_size": 0}, "batch_size"),
        ({"n_jobs": 0}, "n_jobs"),
        ({"weights": "/no/such/file"}, "there is no file '/no/such/file'"),
    ],
)
def test_bad_parameters_are_refused(params: dict[str, Any], message: str) -> None:
    params = {"backbone": f"{HOME}.any_width", **params}
    with pytest.raises((InvalidParameterError, InvalidInputError), match=message):
        Embedding(**params).fit(np.ones((5, 4)))


def test_weights_of_another_network_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "weights.pt"
    torch.save(backbones.images().state_dict(), path)
    with pytest.raises(InvalidInputError, match="do not fit the network"):
        embedding("linear", weights=str(path)).fit(np.ones((5, 3)))
    path.write_bytes(b"nothing of the kind")
    with pytest.raises(InvalidInputError, match="cannot be read as weights"):
        embedding("linear", weights=str(path)).fit(np.ones((5, 3)))


def test_vectors_that_are_no_numbers_are_refused() -> None:
    model = embedding("roots").fit(np.ones((5, 2)))
    with pytest.raises(InvalidDataError, match="NaN or infinite numbers of 1 records"):
        model.transform([[1.0, 1.0], [1.0, -1.0]])
    with pytest.raises(InvalidDataError, match="NaN or infinite numbers of 2 records"):
        make_pipeline(embedding("roots"), Ridge()).fit([[1.0], [-1.0], [-2.0]], [1, 2, 3])
