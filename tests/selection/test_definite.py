"""Kernels that are no kernels are refused, and those that are rounded are not."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from sklearn.gaussian_process import kernels

from erasable.core.errors import InvalidDataError, InvalidInputError
from erasable.selection import (
    MutualInformation,
    NeuralVariance,
    SubsetSelector,
    VarianceReduction,
)
from erasable.selection.utilities import Utility
from erasable.selection.utilities._gaussian import is_definite_by_form

RNG = np.random.default_rng(6)
MAKERS: dict[str, Callable[[], Utility]] = {
    "information": lambda: MutualInformation("precomputed"),
    "variance": lambda: VarianceReduction("precomputed"),
    "neural": lambda: NeuralVariance(),
}


def _with_eigenvalues(values: np.ndarray) -> np.ndarray:
    Q, _ = np.linalg.qr(RNG.normal(size=(len(values), len(values))))
    K = (Q * values) @ Q.T
    return (K + K.T) / 2


@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.parametrize("lowest", [-1.0, -1e-2, -1e-3])
def test_an_indefinite_kernel_is_refused(name: str, lowest: float) -> None:
    K = _with_eigenvalues(np.concatenate([[lowest], np.linspace(0.1, 2, 19)]))
    assert K.diagonal().min() > 0  # so that no variance tells
    with pytest.raises(InvalidDataError, match="eigenvalue -"):
        SubsetSelector(MAKERS[name](), k=3).fit(K)


def _rounded() -> dict[str, np.ndarray]:
    wide = RNG.normal(size=(200, 3)).astype(np.float32)
    near = np.repeat(RNG.normal(size=(50, 2)), 4, axis=0)
    return {
        "rank 3 in float32": wide @ wide.T,
        "twins": kernels.RBF(1.0)(near),
        "twins in float32": kernels.RBF(1.0)(near).astype(np.float32),
        "smooth": kernels.RBF(100.0)(near),
        "large": 1e12 * (wide @ wide.T).astype(np.float64),
        "small": 1e-12 * (wide @ wide.T).astype(np.float64),
        "ones": np.ones((60, 60)),
        "nothing": np.zeros((5, 5)),
    }


@pytest.mark.parametrize("kind", _rounded())
def test_rounding_is_no_eigenvalue(kind: str) -> None:
    K = _rounded()[kind]
    K = (K + K.T) / 2
    for make in MAKERS.values():
        make().problem(K)


class _Sinus(kernels.StationaryKernelMixin, kernels.NormalizedKernelMixin, kernels.Kernel):
    """No kernel: it may be below 0 for records that are alike but for one."""

    def __call__(self, X: np.ndarray, Y: object = None, eval_gradient: bool = False) -> np.ndarray:
        gaps = np.abs(X[:, None] - X[None]).sum(axis=2)
        return np.where(gaps == 0, 1.0, np.sin(gaps) * 0.99)

    def __repr__(self) -> str:
        return "_Sinus()"


def test_a_kernel_of_your_own_is_looked_at() -> None:
    X = np.arange(12.0)[:, None]
    assert np.linalg.eigvalsh(_Sinus()(X))[0] < -0.5
    for utility in (MutualInformation(_Sinus()), VarianceReduction(_Sinus())):
        with pytest.raises(InvalidDataError, match="eigenvalue -"):
            utility.problem(X)


def test_which_kernels_need_no_look() -> None:
    X = RNG.normal(size=(30, 3))
    for known in (
        kernels.RBF(0.1), kernels.Matern(nu=0.5), kernels.RationalQuadratic(),
        kernels.DotProduct() * kernels.ConstantKernel(3.0) + kernels.WhiteKernel(0.1),
    ):  # fmt: skip
        assert is_definite_by_form(known)
        assert np.linalg.eigvalsh(known(X))[0] > -1e-10 * 30
    for unknown in (
        kernels.ExpSineSquared(), kernels.PairwiseKernel(), _Sinus(),
        kernels.RBF() + kernels.ExpSineSquared(),
    ):  # fmt: skip
        assert not is_definite_by_form(unknown)


def test_a_kernel_that_is_not_finite_is_refused() -> None:
    class Nothing(_Sinus):
        def __call__(
            self, X: np.ndarray, Y: object = None, eval_gradient: bool = False
        ) -> np.ndarray:
            return np.full((len(X), len(X)), np.nan)

    with pytest.raises(InvalidDataError, match="NaN or infinity"):
        MutualInformation(Nothing()).problem(np.eye(3))


@pytest.mark.parametrize("width", [1, 3])
def test_targets_have_the_features_of_the_records(width: int) -> None:
    with pytest.raises(InvalidInputError, match="expected the same features"):
        VarianceReduction(targets=np.ones((4, width))).problem(np.ones((5, 2)))
