"""Bounds of the distance to the optimum of a penalised softmax.

The objective has float64 penalties ``unit**2 / C`` and weights ``sample weight * class weight``, as
they are after rounding and after the limits of `_logistic_work`; given these, it is one of real
numbers, and so is its optimum.

Let F be the objective, H its Hessian, and g its gradient at w; delta = w* - w leads to the
optimum. Along a segment, a record's logits z move in direction d; the third derivative of its loss
is a third cumulant, ``|E (u - Eu)^2 (d - Ed)| <= range(d) Var(u)``, with range(d) the largest
difference of two logits' changes. So the logarithm of ``u' H u`` changes at most at the rate R, the
largest range of any record (Bach, "Self-concordant analysis for logistic regression", 2010):

    exp(-t R) H(w) <= H(w + t delta) <= exp(t R) H(w).                                    (1)

Let A be a matrix with ``(1 - e) A <= H(w) <= (1 + e) A``, all norms those of A and its inverse B,
``l = |g|`` the Newton decrement, and r a bound of ``range / |delta|`` (the *reach*).

*Distance.* ``-g = integral of H(w + t delta) delta``, so by (1)
``l |delta| >= -g' delta >= (1 - e) (1 - exp(-R)) / R |delta|^2``, and with ``R <= r |delta|``

    |delta| <= -log(1 - r l / (1 - e)) / r.                                               (2)

*After a Newton step* ``w - B g`` the optimum is at ``delta + B g = B integral of (A - H) delta``,
and with D the bound of (2), R = r D,

    |delta + B g| <= ((1 + e) (exp(R) - 1) / R - 1) D.                                    (3)

*A component.* ``|c' delta| <= sqrt(c' B c) |delta|``. An error q of the computed gradient adds
``|q|`` to l in (2), and ``|c' B q|`` to a component after the step.

*On the lattice.* Half an interval, the sum of these, must keep the whole interval within a cell of
the lattice and further than `_lattice.TIE` from its boundary, or nearer than that to the boundary.
Then what is published is a function of the optimum alone.

*Other weights or penalties*, not more than a share c from those of A, make an error of
``(1 + e) (1 + c) - 1``, and logits that have drifted by R one of ``(1 + e) exp(R) - 1``, by (1).
Rows of which the Hessian is at most ``s A`` are taken out of both: e becomes ``e / (1 - s)``.

*Without a Hessian* A is diagonal. From ``(a + b)^2 >= (1 - t) b^2 - (1 / t - 1) a^2``, which holds
for variances as well,

    H >= P + (1 - t) S - (1 / t - 1) s Q P >= P / 2 + S / (1 + 2 s Q),  t = 2 s Q / (1 + 2 s Q), (4)

where P is the penalty's matrix, S the Hessian of the loss in the intercepts, s a bound of the sum
of the largest eigenvalues of the records' Hessians in their logits, and Q the largest square of a
row's norm in the inverse of P.
"""

from __future__ import annotations

import math


def compounded(*shares: float) -> float:
    """Return ``(1 + a) (1 + b) ... - 1``, rounded up, without the cancellation at the end.

    >>> compounded(0.5, 0.5) >= 1.25, 0.0 < compounded(1e-30, 0.0) < 1.001e-30
    (True, True)
    """
    total = 0.0
    for share in shares:
        total += share * (1.0 + total)
    return 1.0001 * total


def distance(decrement: float, reach: float, error: float = 0.0) -> float:
    """Bound the distance of the optimum, equation (2); infinity where there is no bound.

    >>> round(distance(0.01, 1.0), 5), distance(2.0, 1.0)
    (0.01005, inf)
    """
    share = reach * decrement / (1.0 - error) if error < 1.0 else math.inf
    if not share < 1.0:
        return math.inf
    if share < 1e-8:
        return 1.0001 * decrement / (1.0 - error)
    return -1.0001 * math.log1p(-share) / reach


def distance_after_step(decrement: float, reach: float, error: float, noise: float) -> float:
    """Bound the distance of the optimum from the end of an exact Newton step, equation (3).

    `decrement` is that before the step, as computed; `noise` bounds the norm of the gradient's
    error.
    """
    before = distance(decrement + noise, reach, error)
    move = reach * before
    if not move < 1.0:
        return math.inf
    stretch = 0.5 * move + move * move  # >= (exp(R) - 1) / R - 1 where R < 1
    return 1.0001 * compounded(error, stretch) * before
