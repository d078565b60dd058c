"""The utility `NeuralVariance`: variance reduction by the tangent kernel of a neural network."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from erasable.core._optional import needs
from erasable.core.arrays import Floats
from erasable.core.errors import InvalidDataError, InvalidInputError, InvalidParameterError
from erasable.core.ids import shorten
from erasable.selection._memory import check_memory
from erasable.selection.utilities._gaussian import (
    VarianceProblem,
    read_cross,
    read_kernel,
    read_noise,
)
from erasable.selection.utilities._inputs import read_numbers
from erasable.selection.utilities._utility import Utility

_BLOCK = 2**28  # bytes that the gradients of a block of records take
_AT_ONCE = 256  # records whose gradients are computed together


class TangentKernel:
    """The tangent kernel of one torch module, between any two sets of records.

    The module takes a float tensor of shape (n, ...) and returns one of shape (n,) or (n,
    n_outputs); a module whose output for a record depends on other records is refused.
    """

    def __init__(self, model: Any) -> None:
        self.torch = torch = _import_torch()
        _check_model(model, torch)
        self.model = model
        named = {**dict(model.named_parameters()), **dict(model.named_buffers())}
        self.learned = {
            name: _copy(each) for name, each in named.items() if each.requires_grad
        }  # of buffers none is
        self.constant = {
            name: _copy(each) for name, each in named.items() if name not in self.learned
        }
        self.n_parameters = sum(each.numel() for each in self.learned.values())
        self.device = next(iter(self.learned.values())).device

    def __call__(self, X: NDArray[Any], Z: NDArray[Any] | None = None) -> Floats:
        """Return the kernel of records X with targets Z, by default X; shape (n, m).

        A kernel that would not fit into memory is refused, and so are gradients that are not
        finite.
        """
        n, m = len(X), len(X if Z is None else Z)
        of_record = 8.0 * self.n_parameters * self._n_outputs(X)
        rows = max(1, int(_BLOCK // of_record))
        check_memory(
            # Two blocks of gradients, each once in pieces and once joined.
            8.0 * n * m + 4.0 * of_record * min(rows, max(n, m)),
            f"the tangent kernel of {n:,} records, of {self.n_parameters:,} parameters",
            "choose from fewer records, pass fewer targets, or freeze parameters that change little"
            " with requires_grad_(False)",
        )
        K = np.empty((n, m))
        for here, left in self._gradients(X, rows):
            if Z is not None:
                for there, right in self._gradients(Z, rows):
                    K[here, there] = _product(left, right)
                continue
            for there, right in self._gradients(X[: here.start], rows):
                K[here, there] = _product(left, right)
                K[there, here] = K[here, there].T
            own = _product(left, left)
            K[here, here] = (own + own.T) / 2
        if not np.isfinite(K).all():
            raise InvalidDataError(
                "the gradients of the model are NaN or infinite; expected finite ones; scale the "
                "features, or look for NaN in the parameters"
            )
        return K

    def _gradients(self, X: NDArray[Any], rows: int) -> Iterator[tuple[slice, Any]]:
        """Yield blocks of records and gradients, shape (n_rows, n_outputs * n_parameters)."""
        func = self.torch.func
        each = func.vmap(func.jacrev(self._of_one), in_dims=(None, 0), chunk_size=_AT_ONCE)
        for start in range(0, len(X), rows):
            here = slice(start, min(start + rows, len(X)))
            try:
                parts = each(self.learned, self._tensor(X[here]))
            except RuntimeError as error:
                raise _failure(X, error) from error
            n = here.stop - here.start
            yield here, self.torch.cat([part.reshape(n, -1) for part in parts.values()], dim=1)

    def _of_one(self, learned: dict[str, Any], x: Any) -> Any:
        return self._outputs(learned, x[None])[0]

    def _outputs(self, learned: dict[str, Any], x: Any) -> Any:
        return self.torch.func.functional_call(self.model, {**learned, **self.constant}, (x,))

    def _n_outputs(self, X: NDArray[Any]) -> int:
        with self.torch.no_grad():
            try:
                found = self._outputs(self.learned, self._tensor(X[:2]))
            except Exception as error:  # whatever a model of the user's own raises
                raise _failure(X, error) from error
        shape = tuple(getattr(found, "shape", ()))
        if len(shape) not in (1, 2) or shape[0] != len(X[:2]) or 0 in shape:
            got = f"shape {shape}" if hasattr(found, "shape") else shorten(found)
            raise InvalidInputError(
                f"the model returns {got} for {len(X[:2])} records; expected (n_records,) or "
                "(n_records, n_outputs); wrap it in a module that returns that"
            )
        return shape[1] if len(shape) == 2 else 1

    def _tensor(self, X: NDArray[Any]) -> Any:
        return self.torch.tensor(X, dtype=self.torch.float64, device=self.device)


def read_inputs(X: Any) -> NDArray[np.floating]:
    """Return the input of a model: a table of finite numbers, or an array of more dimensions."""
    if np.ndim(X) <= 2:
        return read_numbers(X)
    array = np.asarray(X)
    is_number = np.issubdtype(array.dtype, np.number) and not np.iscomplexobj(array)
    if not is_number or not array.size or not np.isfinite(array).all():
        raise InvalidDataError(
            f"X is {array.dtype} of shape {array.shape}, or holds NaN or infinity; expected finite "
            "numbers, one entry for each record; leave those records out"
        )
    return array


def _import_torch() -> Any:
    with needs("neural", "the tangent kernel of a model, where it is not 'precomputed',"):
        import torch
    return torch


def _check_model(model: Any, torch: Any) -> None:
    if not isinstance(model, torch.nn.Module):
        raise InvalidParameterError(
            f"model={shorten(model)}; expected a torch.nn.Module or 'precomputed'; pass one, or "
            "its tangent kernel as X"
        )
    if any(torch.nn.parameter.is_lazy(each) for each in model.parameters()):
        raise InvalidParameterError(
            f"model={shorten(model)} has parameters without a shape; expected them made; call the "
            "model once"
        )
    if not any(each.requires_grad for each in model.parameters()):
        raise InvalidParameterError(
            f"model={shorten(model)} has no parameter that is learned; expected some with "
            "requires_grad; call model.requires_grad_()"
        )
    unsettled = (torch.nn.modules.batchnorm._BatchNorm, torch.nn.modules.dropout._DropoutNd)
    for module in model.modules():
        if module.training and isinstance(module, unsettled):
            raise InvalidParameterError(
                f"model={shorten(model)} has a {type(module).__name__} in training mode; expected "
                "outputs that depend on their record alone; call model.eval()"
            )


def _copy(tensor: Any) -> Any:
    """Return a copy, in float64 where it holds real numbers."""
    copied = tensor.detach().clone()
    return copied.double() if copied.is_floating_point() else copied


def _product(left: Any, right: Any) -> Floats:
    product: Floats = (left @ right.T).detach().cpu().numpy()
    return product


def _failure(X: NDArray[Any], error: Exception) -> InvalidInputError:
    message = (str(error).strip() or type(error).__name__).splitlines()[0]
    return InvalidInputError(
        f"the model fails on records of shape {X.shape[1:]}: {message}; expected a module of one "
        "float64 tensor (n_records, ...) without chance in it; check it with model(x) for two of "
        "them"
    )


class NeuralVariance(Utility):
    """Reduction of the variance of a neural network's predictions by the chosen (EVGP).

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
