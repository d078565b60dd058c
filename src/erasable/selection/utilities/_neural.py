"""How much a wide neural network learns from the chosen: the variance of its tangent kernel."""

from __future__ import annotations

from typing import Any

from erasable.core.errors import InvalidInputError, InvalidParameterError
from erasable.core.ids import shorten
from erasable.selection.utilities._base import Utility
from erasable.selection.utilities._gaussian import (
    VarianceProblem,
    read_cross,
    read_kernel,
    read_noise,
)
from erasable.selection.utilities._tangent_kernel import TangentKernel, read_inputs


class NeuralVariance(Utility):
    """By how much the chosen lower the variance of what a neural network predicts (EVGP).

    A wide network, trained, predicts as a Gaussian process whose kernel is its neural tangent
    kernel; the variance is that over initialisations. It needs no labels and no training. The
    utility is that of `VarianceReduction` with this kernel, summed over targets; to maximise it is
    to minimise the expected variance over targets drawn alike, the criterion of Hemachandra et al.
    It is exact without deletions; its expected value after deletions is sampled. Like
    `VarianceReduction` it is not submodular.

    Parameters
    ----------
    model : torch.nn.Module or "precomputed", default="precomputed"
        A network of one float tensor (n, ...), which returns (n,) or (n, n_outputs). Its kernel is
        that of the parameters with ``requires_grad``, summed over outputs, at their values as
        they are. It must be in evaluation mode where it has dropout or batch normalisation; it is
        not changed. ``precomputed``: X is the kernel, of shape (n_records, n_records).
    noise : float, default=0.1
        The variance of the noise in what is observed, on the scale of the kernel, which grows with
        the number of parameters.
    targets : array-like, default=None
        Where the variance counts: features of shape (n_targets, ...), or, with ``precomputed``,
        their kernel with the records, of shape (n_records, n_targets). By default the records
        themselves.

    Notes
    -----
    With `n` records, `p` parameters and `c` outputs the kernel takes about ``2 n^2 p c`` operations
    in float64, ``8 n^2`` bytes, and up to 1 GiB for gradients (more where those of four records
    take more). It is computed on the device on which the parameters are.

    References
    ----------
    Hemachandra, Dai, Singh, Ng and Low, Training-free neural active learning with
    initialization-robustness guarantees, ICML 2023.
    Sim et al., Deletion-Anticipative Data Selection with a Limited Budget, appendices C.2 and H.1.

    Examples
    --------
    >>> import numpy as np
    >>> problem = NeuralVariance(noise=1.0).problem(4 * np.eye(3))
    >>> problem.value(np.array([0, 2]))  # 4 - 4 / 5 is lost at each of two
    6.4
    """

    def __init__(
        self, model: Any = "precomputed", *, noise: float = 0.1, targets: Any = None
    ) -> None:
        self.model = model
        self.noise = noise
        self.targets = targets

    def problem(self, X: Any, y: Any = None) -> VarianceProblem:
        noise = read_noise(self.noise)
        if isinstance(self.model, str):
            if self.model != "precomputed":
                raise InvalidParameterError(
                    f"model={shorten(self.model)}; expected a torch.nn.Module or 'precomputed'; "
                    "pass one, or its tangent kernel as X"
                )
            K = read_kernel(X, self.model)
            return VarianceProblem(K, noise, read_cross(self.targets, K))
        kernel = TangentKernel(self.model)
        records = read_inputs(X)
        if self.targets is None:
            K = kernel(records)
            return VarianceProblem(K, noise, K)
        targets = read_inputs(self.targets)
        if targets.shape[1:] != records.shape[1:]:
            raise InvalidInputError(
                f"targets has shape {targets.shape} for records of shape {records.shape}; expected "
                "the same features; pass them as the records are"
            )
        return VarianceProblem(kernel(records), noise, kernel(records, targets))
