"""Compositions at random with a frozen network in them: each is its twin, and keeps the law."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: pip install torch")

import grammar  # noqa: E402
from grammar import Column, Leaf, Writer, dense, leaf, leaves  # noqa: E402
from scipy.sparse import issparse  # noqa: E402
from sklearn.base import BaseEstimator, TransformerMixin  # noqa: E402
from twins import UnlikeTwinError, hold  # noqa: E402

from erasable.neural import Embedding  # noqa: E402
from erasable.neural._embedding import Vectors  # noqa: E402
from neural import backbones  # noqa: E402

COUNT, EACH = 45, 15


class ByHand(TransformerMixin, BaseEstimator):
    """Send each record through the network alone, as a user of torch would."""

    def __init__(self, backbone: str) -> None:
        self.backbone = backbone

    def fit(self, X: Any, y: Any = None) -> ByHand:
        self.is_fitted_ = True
        return self

    def transform(self, X: Any) -> Any:
        network = getattr(backbones, self.backbone.rpartition(".")[2])().eval()
        rows = torch.tensor(dense(X), dtype=torch.float32)
        with torch.no_grad():
            return torch.cat([network(row[None]) for row in rows]).double().numpy()


class NetworkWriter(Writer):
    """Draws sentences in which a network takes tables of numbers; see `grammar.Writer`."""

    def _transformer(self, columns: list[Column], Z: Any) -> Leaf:
        bad = any(each.text or each.gaps or each.steady or each.wide for each in columns)
        if issparse(Z) or bad or not self.chance(0.4):
            return super()._transformer(columns, Z)
        self.coarse = True  # its numbers are of float32
        return leaf("Embedding", backbone=f"neural.backbones.{self.pick(['any_width', 'moments'])}")


@pytest.fixture(autouse=True)
def _drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(grammar.MORE, "Embedding", (Embedding, ByHand))


def with_networks(first: int, count: int) -> Any:
    for seed in range(first, first + count):
        sentence = NetworkWriter(seed).write()
        if any(each.name == "Embedding" for each in leaves(sentence.node)):
            yield sentence


@pytest.mark.parametrize("first", range(0, COUNT, EACH))
def test_compositions_with_networks_are_their_twins_and_keep_the_law(first: int) -> None:
    failed, sentences = [], list(with_networks(first, EACH))
    for sentence in sentences:
        try:
            hold(sentence)
        except UnlikeTwinError as error:
            failed.append(str(error))
    assert not failed, "\n".join(failed)
    assert len(sentences) >= EACH / 4


def _shifts(self: Any, X: Any) -> Any:
    return _TRANSFORM(self, X) + 1e-4


def _forgets_another(self: Vectors, rows: Any) -> None:
    self.made[(rows + 1) % len(self.made)] = 0


_TRANSFORM = Embedding.transform


@pytest.mark.parametrize(
    ("home", "name", "broken"),
    [(Embedding, "transform", _shifts), (Vectors, "forget", _forgets_another)],
)
def test_a_fault_of_a_network_is_found(
    home: Any, name: str, broken: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(home, name, broken)
    for sentence in with_networks(0, COUNT):
        try:
            hold(sentence)
        except UnlikeTwinError:
            return
    pytest.fail("no sentence shows it")


def test_sentences_without_networks_stay_what_they_are() -> None:
    assert not any("Embedding" in str(Writer(seed).write()) for seed in range(20))
