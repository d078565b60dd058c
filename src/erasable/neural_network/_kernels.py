"""Kernels of multilayer perceptrons: every record by a formula of that record alone.

Gradients of a record are rounded to multiples of `QUANTUM` within `CLIP`, so that their sums are
exact in float64, in any order. Loops run across units, which is what lets the compiler vectorise
them; a sum over units is left to right. Nothing calls libm.

A network is one vector of weights: for each layer the weights of its inputs, a row for each, and
then the intercepts. Activations of a record are one vector, too: the inputs, and then every layer.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from erasable.core._function_kernels import expose
from erasable.core._jit import kernel, subroutine
from erasable.core._tape_kernels import draw2, fill_uniform, to_unit
from erasable.core.arrays import Flags, Floats, Ints, Ints32, Matrix, Words

QUANTUM = 2.0**-22
CLIP = 16.0
_ROUND = 1.5 * 2.0**52 * QUANTUM

RELU, TANH, LOGISTIC, IDENTITY, SOFTMAX = 0, 1, 2, 3, 4


class Shape(NamedTuple):
    """The shape of a network."""

    sizes: Ints  # units of each layer, from the inputs to the outputs
    starts: Ints  # where the weights of each layer start, and where all end
    hidden: int  # activation of the hidden layers
    output: int


class Rule(NamedTuple):
    """How weights follow a sum of gradients."""

    lattice: float  # step of the lattice of gradients
    alpha: float
    penalised: Floats  # 1 for weights, 0 for intercepts


class Batch(NamedTuple):
    """Records and what is to be predicted of them."""

    matrix: Matrix
    rows: Ints
    targets: Floats  # (n_rows, n_outputs), in the order of `rows`


@subroutine
def _activate(values: Floats, bits: Ints, kind: int) -> None:
    """Replace inputs of units by their activations; `bits` is scratch space of the same size."""
    n = values.size
    if kind == RELU:
        for k in range(n):
            values[k] = values[k] if values[k] > 0.0 else 0.0
    elif kind in (TANH, LOGISTIC):
        factor = -2.0 if kind == TANH else -1.0
        signs = np.empty(n)
        for k in range(n):
            signs[k] = 1.0 if values[k] >= 0.0 else -1.0
            values[k] = factor * abs(values[k])
        expose(values, bits)
        for k in range(n):
            e = values[k]
            if kind == TANH:
                values[k] = signs[k] * ((1.0 - e) / (1.0 + e))
            else:
                values[k] = (1.0 if signs[k] > 0.0 else e) / (1.0 + e)
    elif kind == SOFTMAX:
        top = values[0]
        for k in range(n):
            top = values[k] if values[k] > top else top
        for k in range(n):
            values[k] -= top
        expose(values, bits)
        total = 0.0
        for k in range(n):
            total += values[k]
        for k in range(n):
            values[k] /= total


@subroutine
def _forward(shape: Shape, weights: Floats, units: Floats, bits: Ints) -> None:
    """Fill the activations of all layers from those of the inputs."""
    at = 0
    for layer in range(shape.sizes.size - 1):
        n_in, n_out, start = shape.sizes[layer], shape.sizes[layer + 1], shape.starts[layer]
        out = units[at + n_in : at + n_in + n_out]
        first = start + n_in * n_out
        for k in range(n_out):
            out[k] = weights[first + k]
        for j in range(n_in):
            value = units[at + j]
            if value != 0.0:
                line = weights[start + j * n_out : start + (j + 1) * n_out]
                for k in range(n_out):
                    out[k] += value * line[k]
        last = layer == shape.sizes.size - 2
        _activate(out, bits[:n_out], shape.output if last else shape.hidden)
        at += n_in


@subroutine
def _add_rounded(factor: float, delta: Floats, sign: float, sums: Floats) -> None:
    """Add ``factor * delta``, rounded, to the sums, or subtract it."""
    for k in range(delta.size):
        value = factor * delta[k]
        value = value if value < CLIP else CLIP
        value = value if value > -CLIP else -CLIP
        sums[k] += sign * ((value + _ROUND) - _ROUND)


@subroutine
def _slope(activation: float, kind: int) -> float:
    """Return the slope of an activation, which it determines."""
    if kind == RELU:
        return 1.0 if activation > 0.0 else 0.0
    if kind == TANH:
        return 1.0 - activation * activation
    if kind == LOGISTIC:
        return activation * (1.0 - activation)
    return 1.0


@subroutine
def _backward(
    shape: Shape, weights: Floats, units: Floats, delta: Floats, below: Floats, sign: float,
    sums: Floats,
) -> None:  # fmt: skip
    """Add the gradient of a record, whose outputs are wrong by `delta`, or subtract it."""
    at = units.size
    for layer in range(shape.sizes.size - 2, -1, -1):
        n_in, n_out, start = shape.sizes[layer], shape.sizes[layer + 1], shape.starts[layer]
        at -= n_out
        inputs, wrong = units[at - n_in : at], delta[:n_out]
        for j in range(n_in):
            if inputs[j] != 0.0:
                first = start + j * n_out
                _add_rounded(inputs[j], wrong, sign, sums[first : first + n_out])
        first = start + n_in * n_out
        _add_rounded(1.0, wrong, sign, sums[first : first + n_out])
        if layer > 0:
            for j in range(n_in):
                total = 0.0
                for k in range(n_out):
                    total += weights[start + j * n_out + k] * wrong[k]
                below[j] = total * _slope(inputs[j], shape.hidden)
            for j in range(n_in):
                delta[j] = below[j]


@kernel
def add_gradients(
    shape: Shape, weights: Floats, batch: Batch, chosen: Ints, sign: float, sums: Floats
) -> None:
    """Add the gradients of chosen records of a batch to exact sums, or subtract them."""
    d, widest, n_outputs = shape.sizes[0], shape.sizes.max(), shape.sizes[-1]
    units, bits = np.zeros(shape.sizes.sum()), np.zeros(widest, np.int64)
    delta, below = np.zeros(widest), np.zeros(widest)
    for i in chosen:
        row = batch.matrix[batch.rows[i]]
        for j in range(d):
            units[j] = np.float64(row[j])
        _forward(shape, weights, units, bits)
        outputs = units[units.size - n_outputs :]
        for k in range(n_outputs):
            delta[k] = outputs[k] - batch.targets[i, k]
        _backward(shape, weights, units, delta, below, sign, sums)


@kernel
def predict(shape: Shape, weights: Floats, matrix: Matrix, out: Floats) -> None:
    """Fill `out` with the outputs for rows, each by a formula of that row alone."""
    units, bits = np.zeros(shape.sizes.sum()), np.zeros(shape.sizes.max(), np.int64)
    first = units.size - out.shape[1]
    for i in range(out.shape[0]):
        for j in range(shape.sizes[0]):
            units[j] = np.float64(matrix[i, j])
        _forward(shape, weights, units, bits)
        for k in range(out.shape[1]):
            out[i, k] = units[first + k]


@kernel
def draw_keys(seed: np.uint64, inputs: Words, stream: np.uint32, keys: Words) -> None:
    """Fill the keys of the weights of a layer, ``keys[j, k]`` for input j and unit k."""
    for j in range(keys.shape[0]):
        for k in range(keys.shape[1]):
            keys[j, k] = draw2(seed, inputs[j], stream, np.uint32(k))[0]


@kernel
def taking_part(
    seed: np.uint64, keys: Words, stream: np.uint32, first: int, rate: float, out: Flags
) -> None:
    """Fill ``out[i, t]``: whether record i takes part in step ``first + t``."""
    for i in range(out.shape[0]):
        for t in range(out.shape[1]):
            word = draw2(seed, keys[i], stream, np.uint32(first + t))[0]
            out[i, t] = to_unit(word) < rate


@kernel
def moves_of(
    rule: Rule, weights: Floats, sums: Floats, count: int, seed: np.uint64, keys: Words,
    stream: np.uint32, step: np.uint32, moves: Ints32,
) -> None:  # fmt: skip
    """Round the step down the mean gradient of a batch to the lattice of this step."""
    phases, unused = np.empty(sums.size), np.empty(sums.size)
    fill_uniform(seed, keys, stream, step, phases, unused)
    scale = 1.0 / rule.lattice
    for i in range(sums.size):
        mean = sums[i] / count if count > 0 else 0.0
        slope = mean + rule.alpha * rule.penalised[i] * weights[i]
        slope = slope if slope < CLIP else CLIP
        slope = slope if slope > -CLIP else -CLIP
        move = np.floor(phases[i] - scale * slope)
        moves[i] = np.int32(move) if count > 0 else 0


@kernel
def advance(moves: Ints32, lengths: Floats, weights: Floats) -> None:
    """Add moves of some steps, shape (n_steps, n_weights), of so much each, to the weights."""
    for t in range(moves.shape[0]):
        for i in range(weights.size):
            weights[i] += lengths[t] * moves[t, i]
