"""The variance of a neural tangent kernel, against weights, derivatives by hand, differences."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone

from effort import examples
from erasable.core.errors import InvalidDataError, InvalidInputError, InvalidParameterError
from erasable.selection import Expected, NeuralVariance, SubsetSelector
from erasable.selection.utilities import _neural as tangent
from selection import enumeration

RNG = np.random.default_rng(5)
X = RNG.normal(size=(9, 3))
NOISE = 0.3


def by_weights(J: np.ndarray, targets: np.ndarray, chosen: np.ndarray) -> float:
    """Take the variance of targets from that of the weights, which starts as the identity."""
    own = J[chosen]
    after = np.linalg.inv(np.eye(J.shape[1]) + own.T @ own / NOISE)
    return float(sum(t @ t - t @ after @ t for t in targets))


@settings(max_examples=examples(40))
@given(st.integers(0, 10**6), st.integers(1, 9), st.integers(1, 6), st.booleans())
def test_a_kernel_given_is_that_of_weights(seed: int, n: int, p: int, apart: bool) -> None:
    rng = np.random.default_rng(seed)
    J = rng.normal(size=(n, p))
    T = rng.normal(size=(4, p)) if apart else J
    utility = NeuralVariance(noise=NOISE, targets=J @ T.T if apart else None)
    problem = utility.problem(J @ J.T)
    chosen = rng.permutation(n)[: rng.integers(0, n + 1)]
    right = by_weights(J, T, chosen)
    assert problem.value(chosen) == pytest.approx(right, abs=1e-9)
    samples, everybody = problem.samples(2, n), np.ones(2, dtype=bool)
    total = 0.0
    for j in chosen.tolist():
        total += samples.gains(j)[0]
        samples.add(j, everybody)
    assert total == pytest.approx(right, abs=1e-8)
    if len(chosen):  # other noise is another number
        assert NeuralVariance(noise=2 * NOISE).problem(J @ J.T).value(chosen) != pytest.approx(
            by_weights(J, J, chosen), rel=1e-6, abs=0.0
        )


def test_its_expectation_is_near_that_of_enumeration() -> None:
    J = RNG.normal(size=(10, 4))
    s = [0.9, 0.2] * 5
    selector = SubsetSelector(
        NeuralVariance(noise=NOISE), k=4, staying=s, objective=Expected(3000), random_state=0
    ).fit(J @ J.T)
    chosen = selector.selected_.tolist()
    exact = enumeration.expectation(
        chosen,
        enumeration.independent(s, chosen),
        lambda stay: by_weights(J, J, np.array(stay, dtype=int)),
    )
    assert abs(selector.utility_ - exact) < 4.5 * selector.utility_error_
    plain = SubsetSelector(NeuralVariance(noise=NOISE), k=4).fit(J @ J.T).selected_
    greedy: list[int] = []
    for _ in range(4):
        values = [by_weights(J, J, np.array([*greedy, j])) for j in range(10)]
        greedy.append(int(np.argmax(values)))
    assert plain.tolist() == greedy


def test_without_torch_a_kernel_is_taken_and_a_model_is_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    assert NeuralVariance(noise=1.0).problem(np.eye(2)).value(np.array([1])) == 0.5
    with pytest.raises(ImportError, match=r"pip install 'erasable\[neural\]'") as caught:
        NeuralVariance(object()).problem(X)
    assert "\n" not in str(caught.value)


WRONG: list[tuple[Callable[[], object], type[Exception], str]] = [
    (lambda: NeuralVariance("ntk").problem(X), InvalidParameterError, "model='ntk'"),
    (lambda: NeuralVariance(noise=0).problem(np.eye(2)), InvalidParameterError, "noise=0"),
    (lambda: NeuralVariance().problem(X), InvalidInputError, "has shape (9, 3)"),
    (
        lambda: NeuralVariance(targets=np.ones((3, 2))).problem(np.eye(2)),
        InvalidInputError, "transpose it",
    ),
    (
        lambda: NeuralVariance().problem([[np.nan, 0], [0, 1]]),
        InvalidDataError, "contains NaN",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("wrong", "error", "told"), WRONG, ids=[each[2] for each in WRONG])
def test_bad_input_is_told(wrong: Callable[[], object], error: type[Exception], told: str) -> None:
    with pytest.raises(error) as caught:
        wrong()
    assert told in str(caught.value)


@pytest.fixture
def torch() -> Any:
    found = pytest.importorskip("torch", reason="torch is not installed: pip install torch")
    found.manual_seed(0)
    return found


def two_layers(torch: Any, n_outputs: int) -> tuple[Any, Callable[..., np.ndarray]]:
    """Return a small net, and its tangent kernel written by hand."""
    net = torch.nn.Sequential(torch.nn.Linear(3, 5), torch.nn.Tanh(), torch.nn.Linear(5, n_outputs))
    W, b, V, _ = (each.detach().double().numpy() for each in net.parameters())

    def kernel(A: np.ndarray, B: np.ndarray) -> np.ndarray:
        left, right = (np.tanh(each @ W.T + b) for each in (A, B))
        through = ((1 - left**2) * (V**2).sum(axis=0)) @ (1 - right**2).T
        return np.asarray(n_outputs * (left @ right.T + 1) + through * (A @ B.T + 1))

    return net, kernel


@pytest.mark.parametrize("n_outputs", [1, 3])
@pytest.mark.parametrize("block", [None, 1, 4000])
def test_the_kernel_of_two_layers_is_that_written_by_hand(
    torch: Any, n_outputs: int, block: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    if block is not None:
        monkeypatch.setattr(tangent, "_BLOCK", block)
    net, by_hand = two_layers(torch, n_outputs)
    targets = RNG.normal(size=(4, 3))
    problem = NeuralVariance(net, noise=NOISE, targets=targets).problem(X)
    assert problem.K.dtype == np.float64
    np.testing.assert_allclose(problem.K, by_hand(X, X), rtol=1e-12)
    np.testing.assert_array_equal(problem.K, problem.K.T)
    np.testing.assert_allclose(problem.cross, by_hand(X, targets), rtol=1e-12)
    assert NeuralVariance(net).problem(X).cross is not problem.cross
    with torch.no_grad():
        net[0].weight[0, 0] += 0.01
    changed = NeuralVariance(net).problem(X).K
    assert not np.allclose(changed, problem.K, rtol=1e-6)


class Picture:
    """A convolution with normalisation, and frozen parts; what it is not: linear."""

    @staticmethod
    def make(torch: Any) -> Any:
        net = torch.nn.Sequential(
            torch.nn.Conv2d(1, 2, 2), torch.nn.BatchNorm2d(2), torch.nn.GELU(),
            torch.nn.Dropout(0.5), torch.nn.Flatten(0), torch.nn.Unflatten(0, (-1, 18)),
            torch.nn.Linear(18, 1), torch.nn.Flatten(0),
        )  # fmt: skip
        net(torch.randn(7, 1, 4, 4))  # so that the normalisation has something to say
        net[0].bias.requires_grad_(False)
        return net.eval()


def test_the_kernel_of_pictures_is_that_of_differences(torch: Any) -> None:
    net = Picture.make(torch)
    pictures = RNG.normal(size=(5, 1, 4, 4))
    K = NeuralVariance(net).problem(pictures).K
    exact, x, step = net.double(), torch.tensor(pictures), 1e-6
    columns = []
    with torch.no_grad():
        for weights in exact.parameters():
            if not weights.requires_grad:
                continue
            flat = weights.view(-1)
            for place in range(len(flat)):
                kept = flat[place].item()
                flat[place] = kept + step
                above = exact(x).numpy()
                flat[place] = kept - step
                columns.append((above - exact(x).numpy()) / (2 * step))
                flat[place] = kept
    J = np.stack(columns, axis=1)
    np.testing.assert_allclose(K, J @ J.T, rtol=1e-6, atol=1e-7)
    selector = SubsetSelector(NeuralVariance(net), k=2, staying=0.5, random_state=0)
    assert len(selector.fit(pictures).selected_) == 2


def test_the_model_stays_what_it_was(torch: Any) -> None:
    net = Picture.make(torch)
    net[0].train()
    net[6].weight.grad = torch.ones_like(net[6].weight)
    before = {name: each.clone() for name, each in net.state_dict().items()}
    modes = [each.training for each in net.modules()]
    pictures = RNG.normal(size=(5, 1, 4, 4))
    first, second = (NeuralVariance(net).problem(pictures).K for _ in range(2))
    np.testing.assert_array_equal(first, second)
    after = net.state_dict()
    assert all(torch.equal(before[name], after[name]) for name in before)
    assert after["0.weight"].dtype == torch.float32
    assert [each.training for each in net.modules()] == modes
    assert torch.equal(net[6].weight.grad, torch.ones_like(net[6].weight))
    assert net[0].weight.grad is None
    assert [each.requires_grad for each in net.parameters()].count(False) == 1
    assert isinstance(clone(NeuralVariance(net)).model, torch.nn.Module)


def test_a_bad_model_is_told(torch: Any) -> None:
    nn = torch.nn

    class Raises(nn.Linear):
        def forward(self, x: Any) -> Any:
            raise KeyError("layer")

    frozen = nn.Linear(3, 1).requires_grad_(False)
    broken = nn.Linear(3, 1)
    with torch.no_grad():
        broken.bias.fill_(float("nan"))
    root = nn.Sequential(nn.Linear(3, 1), nn.Flatten(0))
    with torch.no_grad():
        root[0].weight.fill_(float("inf"))
    lazy = nn.LazyLinear(1)
    cases = [
        (3, X, InvalidParameterError, "model=3; expected a torch.nn.Module"),
        (frozen, X, InvalidParameterError, "no parameter that is learned"),
        (lazy, X, InvalidParameterError, "without a shape"),
        (nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4)), X, InvalidParameterError, "eval()"),
        (nn.Sequential(nn.Linear(3, 4), nn.Dropout()), X, InvalidParameterError, "a Dropout in"),
        (nn.Linear(2, 1), X, InvalidInputError, "fails on records of shape (3,)"),
        (Raises(3, 1), X, InvalidInputError, "'layer'"),
        (nn.Sequential(nn.Linear(3, 4), nn.Unflatten(1, (2, 2))), X, InvalidInputError,
         "returns shape (2, 2, 2) for 2 records"),
        (nn.Sequential(nn.Linear(3, 1), nn.Flatten(0), nn.Unflatten(0, (1, -1))), X,
         InvalidInputError, "returns shape (1, 2)"),
        (nn.RNN(3, 2, batch_first=True), X[:, None], InvalidInputError, "returns a tuple"),
        (nn.Sequential(nn.Linear(3, 2), nn.RReLU().train()), X, InvalidInputError, "chance"),
        (nn.Sequential(nn.Linear(3, 1), nn.Hardtanh(), nn.Linear(1, 1)), X * np.nan,
         InvalidDataError, "NaN"),
        (nn.Sequential(root[0], nn.Linear(1, 1)), X, InvalidDataError, "gradients of the model"),
        (nn.Conv2d(1, 1, 3), np.full((2, 1, 3, 3), np.nan), InvalidDataError, "holds NaN"),
        (nn.Conv2d(1, 1, 3), np.full((2, 1, 3, 3), "a"), InvalidDataError, "finite numbers"),
    ]  # fmt: skip
    for model, records, error, told in cases:
        with pytest.raises(error) as caught:
            NeuralVariance(model).problem(records)
        assert told in str(caught.value)
        assert "\n" not in str(caught.value)
    with pytest.raises(InvalidInputError, match="expected the same features"):
        NeuralVariance(nn.Linear(3, 1), targets=X[:, :2]).problem(X)


def test_what_would_not_fit_is_told_before(torch: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from erasable.selection import _memory

    monkeypatch.setattr(_memory, "available_memory", lambda: 1e3)
    monkeypatch.setattr(tangent.TangentKernel, "_gradients", None)  # not reached
    with pytest.raises(InvalidInputError, match=r"9 records, of 4 parameters would take.*freeze"):
        NeuralVariance(torch.nn.Linear(3, 1)).problem(X)
