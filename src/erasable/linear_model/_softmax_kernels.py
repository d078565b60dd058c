"""Kernels of the softmax: residuals of logits, with relative errors that are known.

A record has `m` logits z and the code of its class; where there is a *reference* class, its logit
is 0 and its code is m. A residual is ``s (p_k - 1[class is k])`` with s the record's weight; it is
made without cancellation, so that its relative error is a few units in the last place, plus what
an error of the logits does to it.
"""

from __future__ import annotations

import numpy as np

from erasable.core._function_kernels import expose
from erasable.core._jit import kernel
from erasable.core.arrays import Floats, Ints32


@kernel
def residuals_of_one(logits: Floats, codes: Ints32, weights: Floats, out: Floats) -> None:
    """Fill `out` with the residuals of records with one logit and a reference class (code 1)."""
    powers = np.empty(logits.size)
    for i in range(logits.size):
        powers[i] = -abs(logits[i])
    expose(powers, np.empty(logits.size, np.int64))
    for i in range(logits.size):
        positive = codes[i] == 0
        small = powers[i]
        right = (logits[i] > 0.0) == positive
        share = (small if right else 1.0) / (1.0 + small) * weights[i]
        out[i] = -share if positive else share


@kernel
def shares(logits: Floats, reference: bool) -> Floats:
    """Return what every class's probability is proportional to, shape (n, m + 1)."""
    n, m = logits.shape
    flat = np.empty(n * (m + 1))
    out = flat.reshape(n, m + 1)
    for i in range(n):
        most = 0.0 if reference else logits[i, 0]
        for k in range(m):
            most = logits[i, k] if logits[i, k] > most else most
        for k in range(m):
            out[i, k] = logits[i, k] - most
        out[i, m] = 0.0 - most
    expose(flat, np.empty(flat.size, np.int64))
    if not reference:
        for i in range(n):
            out[i, m] = 0.0
    return out


@kernel
def residuals_of_many(
    logits: Floats, codes: Ints32, weights: Floats, reference: bool, out: Floats, missing: Floats
) -> None:
    """Fill `out` with residuals, shape (n, m), and `missing` with ``s (1 - p)`` of the class."""
    n, m = logits.shape
    likely = shares(logits, reference)
    for i in range(n):
        row = likely[i]
        others = 0.0
        for k in range(m + 1):
            if k != codes[i]:
                others += row[k]
        own = row[codes[i]] if codes[i] >= 0 else 1.0
        scale = weights[i] / (others + own)
        for k in range(m):
            out[i, k] = -others * scale if k == codes[i] else row[k] * scale
        missing[i] = others * scale


@kernel
def curvature_of_one(logits: Floats, weights: Floats, out: Floats) -> None:
    """Fill `out` with ``sqrt(s p (1 - p))``."""
    for i in range(logits.size):
        out[i] = -abs(logits[i])
    expose(out, np.empty(out.size, np.int64))
    for i in range(logits.size):
        small = out[i]
        out[i] = np.sqrt(weights[i] * small) / (1.0 + small)


@kernel
def curvature_of_many(
    logits: Floats, weights: Floats, reference: bool, own: Floats, shared: Floats
) -> None:
    """Fill `own` with ``sqrt(s p_k (1 - p_k))`` and `shared` with ``sqrt(s) p_k``, shape (m, n)."""
    n, m = logits.shape
    likely = shares(logits, reference)
    for i in range(n):
        row = likely[i]
        total = 0.0
        for k in range(m + 1):
            total += row[k]
        root = np.sqrt(weights[i])
        for k in range(m):
            others = 0.0
            for h in range(m + 1):
                if h != k:
                    others += row[h]
            shared[k, i] = root * row[k] / total
            own[k, i] = root * np.sqrt(row[k] * others) / total


@kernel
def probabilities(logits: Floats, reference: bool, out: Floats) -> None:
    """Fill `out`, shape (n, m), with the probabilities of all classes but the reference's."""
    n, m = logits.shape
    likely = shares(logits, reference)
    for i in range(n):
        row = likely[i]
        total = 0.0
        for k in range(m + 1):
            total += row[k]
        for k in range(m):
            out[i, k] = row[k] / total


@kernel
def tile(
    matrix: Floats, origin: Floats, unit: Floats, weights: Floats, intercept: bool, out: Floats
) -> None:
    """Fill `out` with weighted rows ``w (x - origin) unit``, and w in the intercept's column.

    Rows of weight 0 become 0, whatever they hold.
    """
    n, d = matrix.shape
    for i in range(n):
        row, target, weight = matrix[i], out[i], weights[i]
        if weight == 0.0:
            target[:] = 0.0
            continue
        for j in range(d):
            target[j] = (np.float64(row[j]) - origin[j]) * unit[j] * weight
        if intercept:
            target[d] = weight


@kernel
def add_products(residuals: Floats, rows: Floats, sums: Floats, low: Floats) -> None:
    """Add ``residuals.T @ rows`` to ``sums + low``: four rows at a time, and these without error.

    Four products and their sum make three roundings for each.
    """
    n, m = residuals.shape
    d = rows.shape[1]
    whole = n - n % 4
    for i in range(0, whole, 4):
        first, second, third, fourth = rows[i], rows[i + 1], rows[i + 2], rows[i + 3]
        for k in range(m):
            a, b = residuals[i, k], residuals[i + 1, k]
            e, f = residuals[i + 2, k], residuals[i + 3, k]
            total, rest = sums[k], low[k]
            for j in range(d):
                part = (a * first[j] + b * second[j]) + (e * third[j] + f * fourth[j])
                before = total[j]
                after = before + part
                shadow = after - before
                rest[j] += (before - (after - shadow)) + (part - shadow)
                total[j] = after
    for i in range(whole, n):
        for k in range(m):
            for j in range(d):
                part = residuals[i, k] * rows[i, j]
                before = sums[k, j]
                after = before + part
                shadow = after - before
                low[k, j] += (before - (after - shadow)) + (part - shadow)
                sums[k, j] = after


@kernel
def dots(rows: Floats, coefficients: Floats, last: Floats, out: Floats) -> None:
    """Fill `out`, shape (n, m), with ``rows @ coefficients.T + last``, in eight sums at a time.

    ``d / 8 + 12`` roundings at most, none of them larger than that of the sum of magnitudes.
    """
    n, d = rows.shape
    sums = np.zeros(8)
    for i in range(n):
        row = rows[i]
        for k in range(last.size):
            own = coefficients[k]
            sums[:] = 0.0
            for j in range(0, d - 7, 8):
                for lane in range(8):
                    sums[lane] += row[j + lane] * own[j + lane]
            rest = last[k]
            for j in range(d - d % 8, d):
                rest += row[j] * own[j]
            left = (sums[0] + sums[1]) + (sums[2] + sums[3])
            out[i, k] = (left + ((sums[4] + sums[5]) + (sums[6] + sums[7]))) + rest
