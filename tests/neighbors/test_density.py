"""Kernel densities: the definition, scikit-learn's twin, deletions, draws, and limits."""

from __future__ import annotations

import io
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mpmath
import numpy as np
import pytest
import sklearn.neighbors
import sklearn.pipeline
import sklearn.preprocessing
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array
from scipy.stats import chisquare, kstest
from sklearn.utils.estimator_checks import parametrize_with_checks

from effort import examples
from erasable import Records
from erasable.audit import equality
from erasable.core.errors import (
    InvalidInputError,
    InvalidParameterError,
    InvalidTypeError,
    MagnitudeError,
    TooFewRecordsError,
)
from erasable.neighbors import KernelDensity
from erasable.neighbors import _weigh_kernels as kernels
from erasable.neighbors._weighing import Weighing as Asked
from erasable.pipeline import make_pipeline
from erasable.preprocessing import MinMaxScaler, StandardScaler
from erasable.utils._checks.data_sets import STANDARD
from erasable.utils.estimator_checks import (
    LAW_CHECKS,
    check_erasable,
    parametrize_with_law_checks,
)
from neighbors.oracle import order_of
from neighbors.test_stored import in_memory, write
from weighing import Weighing

SHAPES: dict[str, Callable[[Any], Any]] = {
    "gaussian": lambda u: mpmath.exp(-u * u / 2),
    "tophat": lambda u: mpmath.mpf(1 if u < 1 else 0),
    "epanechnikov": lambda u: 1 - u * u if u < 1 else mpmath.mpf(0),
    "exponential": lambda u: mpmath.exp(-u),
    "linear": lambda u: 1 - u if u < 1 else mpmath.mpf(0),
    "cosine": lambda u: mpmath.cos(mpmath.pi * u / 2) if u < 1 else mpmath.mpf(0),
}
ENDLESS = ("gaussian", "exponential")
each_kernel = pytest.mark.parametrize("kernel", SHAPES)


def _integral(kernel: str, d: int) -> Any:
    """The integral of a kernel over d features, shell by shell, numerically."""
    with mpmath.workdps(40):
        shell = 2 * mpmath.pi ** (mpmath.mpf(d) / 2) / mpmath.gamma(mpmath.mpf(d) / 2)
        ends = [0, 1, 10, 30, mpmath.inf] if kernel in ENDLESS else [0, 1]
        return shell * mpmath.quad(lambda r: SHAPES[kernel](r) * r ** (d - 1), ends)


def _defined(X: Any, weights: Any, query: Any, bandwidth: float, kernel: str) -> float:
    """The logarithm of the density by the definition, in 40 digits."""
    with mpmath.workdps(40):
        h, total = mpmath.mpf(bandwidth), mpmath.mpf(0)
        for x, weight in zip(X, weights, strict=True):
            gaps = [
                mpmath.mpf(float(a)) - mpmath.mpf(float(b)) for a, b in zip(x, query, strict=True)
            ]
            u = mpmath.sqrt(mpmath.fsum(g * g for g in gaps)) / h
            total += mpmath.mpf(float(weight)) * SHAPES[kernel](u)
        if not total:
            return -math.inf
        scale = mpmath.fsum(map(float, weights)) * _integral(kernel, len(query)) * h ** len(query)
        return float(mpmath.log(total / scale))


def _weights(rng: np.random.Generator, n: int) -> Any:
    return rng.choice([0.0, 0.3, 1.0, 2.5], n)


@parametrize_with_checks(
    [KernelDensity(), KernelDensity(bandwidth="scott", kernel="epanechnikov")],
)
def test_scikit_learn_checks(estimator: Any, check: Any) -> None:
    check(estimator)


# -- values ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("d", [1, 2, 5, 17])
@each_kernel
def test_a_density_is_the_definition(kernel: str, d: int) -> None:
    """With a tree and without one, with weights and without them."""
    rng = np.random.default_rng(d)
    X, Q = rng.normal(size=(60, d)), rng.normal(size=(8, d)) * 1.3
    bandwidth = {1: 0.3, 2: 0.7, 5: 1.5, 17: 5.0}[d]
    for weights in (None, _weights(rng, 60)):
        model = KernelDensity(bandwidth=bandwidth, kernel=kernel).fit(X, sample_weight=weights)
        given_weights = np.ones(60) if weights is None else weights
        want = [_defined(X, given_weights, query, bandwidth, kernel) for query in Q]
        assert np.isfinite(want).any()
        np.testing.assert_allclose(model.score_samples(Q), want, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("bandwidth", [0.4, 1.5, "scott", "silverman"])
@each_kernel
def test_a_density_is_scikit_learns(kernel: str, bandwidth: Any, seed: int) -> None:
    """Where it is no small part of the largest: there scikit-learn's bounds cancel."""
    rng = np.random.default_rng([seed, 7])
    for d in (1, 3, 5):
        n = int(rng.integers(20, 300))
        X = rng.normal(size=(n, d)) * rng.choice([0.5, 1.0, 2.0], d)
        X[: n // 3] = np.rint(X[: n // 3])
        Q = np.concatenate([X[::7], rng.normal(size=(20, d))])
        weights = rng.choice([0.3, 1.0, 2.5], n) if seed else None
        ours = KernelDensity(bandwidth=bandwidth, kernel=kernel).fit(X, sample_weight=weights)
        theirs = sklearn.neighbors.KernelDensity(bandwidth=bandwidth, kernel=kernel)
        theirs.fit(X, sample_weight=weights)
        assert ours.bandwidth_ == theirs.bandwidth_
        found, want = ours.score_samples(Q), theirs.score_samples(Q)
        large = want > want.max() - 9.0
        assert large.sum() > len(Q) // 8
        np.testing.assert_allclose(found[large], want[large], rtol=1e-9, atol=1e-9)
        peak = math.exp(want.max())
        np.testing.assert_allclose(np.exp(found), np.exp(want), rtol=0, atol=1e-11 * peak)
        assert ours.score(Q) == np.sum(found)


@pytest.mark.parametrize("d", [2, 4])
def test_a_cosine_of_an_even_number_of_features_integrates_to_one(d: int) -> None:
    """Scikit-learn leaves out a term of the integral, where d is even."""
    X = np.zeros((1, d))
    ours = KernelDensity(kernel="cosine").fit(X).score_samples(X)[0]
    assert ours == pytest.approx(-float(mpmath.log(_integral("cosine", d))), rel=1e-13)
    with np.errstate(invalid="ignore"):
        theirs = sklearn.neighbors.KernelDensity(kernel="cosine").fit(X).score_samples(X)[0]
    assert not abs(ours - theirs) < 0.1  # or NaN


@pytest.mark.parametrize("kernel", ENDLESS)
def test_a_density_far_from_all_records(kernel: str) -> None:
    """Where the kernel of every record is 0 in floats, its logarithm still is what it is."""
    X = np.array([[0.0], [1.0], [2.0], [50.0]])
    for query, weights in ((-60.0, [1.0] * 4), (3e4, [1.0, 2.0, 3.0, 0.0]), (50.0, [2, 1, 1, 0])):
        model = KernelDensity(kernel=kernel).fit(X, sample_weight=weights)
        want = _defined(X, weights, [query], 1.0, kernel)
        assert model.score_samples([[query]])[0] == pytest.approx(want, rel=1e-13)


def test_the_nearest_record_with_a_weight_is_found_among_many_without() -> None:
    X = np.concatenate([np.zeros((70, 2)), [[90.0, 0.0], [91.0, 0.0]]])
    weights = np.r_[np.zeros(70), 1.0, 3.0]
    model = KernelDensity().fit(X, sample_weight=weights)
    want = _defined(X, weights, [0.0, 0.0], 1.0, "gaussian")
    assert model.score_samples([[0.0, 0.0]])[0] == pytest.approx(want, rel=1e-13)


@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
@pytest.mark.parametrize("kernel", ENDLESS)
def test_records_without_weight_are_no_neighbours(
    kernel: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One question finds the nearest that counts, before and after deletions of either kind."""
    asked: list[int] = []
    found = Asked.nearest
    monkeypatch.setattr(
        Asked, "nearest", lambda self, queries, k=1: (asked.append(k), found(self, queries, k))[1]
    )
    X = np.concatenate([np.zeros((300, 2)), [[90.0, 0.0], [91.0, 0.0]]])
    weights = np.r_[np.zeros(300), 1.0, 3.0]
    write(tmp_path, np.column_stack([X, weights]), np.zeros(302), np.arange(302), 37)
    stored = Records.from_parquet(
        str(tmp_path), features=["x0", "x1"], ids="id", sample_weight="x2"
    )
    models = [
        KernelDensity(kernel=kernel).fit(X, sample_weight=weights),
        KernelDensity(kernel=kernel).fit(stored),
    ]
    for gone in ((), (0, 150), (300,)):
        left = np.setdiff1d(np.flatnonzero(weights), gone)
        want = [_defined(X[left], weights[left], query, 1.0, kernel) for query in X[[0, 301]]]
        for model in models:
            model.delete(gone)
            asked.clear()
            assert model.score_samples(X[[0, 301]]) == pytest.approx(want, rel=1e-13)
            assert asked == [1]


def test_a_record_at_the_edge_counts_nothing() -> None:
    X = np.array([[0.0], [0.3], [0.75]])
    for bandwidth in (1.0, 0.1, 0.3):
        edge = [[X[-1, 0] + bandwidth]]
        if edge[0][0] - X[-1, 0] < bandwidth:
            continue
        for kernel in SHAPES.keys() - set(ENDLESS):
            model = KernelDensity(bandwidth=bandwidth, kernel=kernel).fit(X)
            assert model.score_samples(edge).tolist() == [-math.inf]


# -- the law ---------------------------------------------------------------------------------------


@settings(max_examples=examples(25), deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    kernel=st.sampled_from(sorted(SHAPES)),
    bandwidth=st.sampled_from([0.5, 2.0, "scott", "silverman"]),
    weighted=st.booleans(),
    asked=st.booleans(),
)
def test_long_lives_end_as_fits(
    seed: int, kernel: str, bandwidth: Any, weighted: bool, asked: bool
) -> None:
    """Deletions, additions, corrections and replacements, past compactions, with ties."""
    rng = np.random.default_rng(seed)
    X, ids = rng.integers(-2, 3, size=(80, 3)).astype(float), rng.permutation(500)[:80]
    weights = rng.choice([0.5, 1.0, 3.0], 80) if weighted else None

    def of(rows: Any) -> dict[str, Any]:
        return {"ids": ids[rows], **({} if weights is None else {"sample_weight": weights[rows]})}

    model = KernelDensity(bandwidth=bandwidth, kernel=kernel).fit(X[:50], **of(slice(50)))
    live = set(range(50))
    for step in range(8):
        if asked:
            model.score_samples(X[:3])
        doomed = rng.permutation(sorted(live))[: int(rng.integers(1, 5))]
        spare = rng.permutation(sorted(set(range(80)) - live))[:4]
        if step % 4 == 0:
            model.delete(ids[doomed], digest=False)
            live -= set(doomed.tolist())
        elif step % 4 == 1:
            model.add(X[spare], **of(spare))
            live |= set(spare.tolist())
        elif step % 4 == 2:
            X[doomed] += rng.normal(size=(doomed.size, 3))
            more = {}
            if weights is not None:
                weights[doomed] = rng.choice([0.0, 2.0], doomed.size)
                more = {"sample_weight": weights[doomed]}
            model.correct(ids[doomed], X[doomed], **more)
        else:
            model.replace(ids[doomed], X[spare], **of(spare))
            live = (live - set(doomed.tolist())) | set(spare.tolist())
    rows = rng.permutation(sorted(live))
    fresh = KernelDensity(bandwidth=bandwidth, kernel=kernel, n_jobs=2).fit(X[rows], **of(rows))
    assert model.digest() == fresh.digest()
    assert _file(model).getvalue() == _file(fresh).getvalue()
    assert model.score_samples(X).tobytes() == fresh.score_samples(X).tobytes()
    assert equality(model).equal


class WeighingDensity(Weighing, KernelDensity):
    """A density of records that have weights."""


@parametrize_with_law_checks([WeighingDensity(bandwidth="scott")], fast=True)
def test_the_law_with_weights(estimator: Any, check: Any) -> None:
    check(estimator)


def _file(model: Any) -> io.BytesIO:
    file = io.BytesIO()
    model.set_params(n_jobs=None).save(file)
    return file


def test_a_rule_of_the_bandwidth_follows_deletions() -> None:
    X = np.random.default_rng(0).normal(size=(100, 2))
    for rule, want in (("scott", 60 ** (-1 / 6)), ("silverman", (60 * 4 / 4) ** (-1 / 6))):
        model = KernelDensity(bandwidth=rule).fit(X)
        model.delete(range(40))
        assert model.bandwidth_ == pytest.approx(want, rel=1e-15)
        theirs = sklearn.neighbors.KernelDensity(bandwidth=rule).fit(X[40:])
        np.testing.assert_allclose(model.score_samples(X), theirs.score_samples(X), rtol=1e-6)


def test_weights_of_one_are_no_weights() -> None:
    X = np.random.default_rng(0).normal(size=(30, 2))
    plain, weighted = KernelDensity().fit(X), KernelDensity().fit(X, sample_weight=np.ones(30))
    assert plain.digest() == weighted.digest()
    plain.add([[0.0, 0.0]], ids=[30], sample_weight=[2.5])
    fresh = KernelDensity().fit(np.r_[X, [[0.0, 0.0]]], sample_weight=np.r_[np.ones(30), 2.5])
    assert plain.digest() == fresh.digest()
    assert fresh.digest() != weighted.digest()


def test_the_order_of_a_sum_is_that_of_the_hashes_of_ids() -> None:
    """Of sums that depend on their order: 1, 1 and 1e16, all of kernel 1."""
    found = set()
    for start in range(40):
        ids, weights = np.arange(start, start + 3), np.array([1.0, 1.0, 1e16])
        model = KernelDensity(kernel="tophat").fit(np.zeros((3, 1)), sample_weight=weights, ids=ids)
        order = sorted(range(3), key=order_of(ids).__getitem__)
        total = sum(weights[order].tolist())
        asked = Asked(model._memory, None, kernels.TOPHAT, 1.0, None)
        sums, _ = asked.sums(np.zeros((1, 1)), np.zeros(1))
        assert sums.tolist() == [[total]]
        found.add(total)
    assert len(found) == 2


@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
@pytest.mark.parametrize("kernel", ["gaussian", "exponential", "tophat"])
def test_rows_threads_and_files_do_not_show(kernel: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    X, ids = rng.normal(size=(400, 3)), rng.permutation(900)[:400]
    turned = rng.permutation(400)
    y = np.zeros(400)
    for name in ("large", "small"):
        (tmp_path / name).mkdir()
    models = [
        KernelDensity(bandwidth="scott", kernel=kernel, n_jobs=n_jobs).fit(records)
        for n_jobs, records in (
            (1, in_memory(X, y, ids)),
            (2, in_memory(X[turned], y, ids[turned])),
            (1, write(tmp_path / "large", X, y, ids, 1000)),
            (2, write(tmp_path / "small", X, y, ids, 37)),
        )
    ]
    for gone in ((), ids[:1], ids[5:90]):
        for model in models:
            model.delete(gone)
        assert len({model.digest() for model in models}) == 1
        assert len({model.score_samples(X * 1.5).tobytes() for model in models}) == 1
        if kernel != "exponential":
            assert len({model.sample(20, 3).tobytes() for model in models}) == 1


# -- in a pipeline ---------------------------------------------------------------------------------


def test_the_law_behind_a_scaler() -> None:
    check_erasable(make_pipeline(MinMaxScaler(), KernelDensity(bandwidth="scott")), fast=True)


def test_a_pipeline_is_scikit_learns() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 3)) * [1.0, 1e3, 1e-3] + [0.0, 5e3, 1.0]
    weights = rng.choice([1.0, 2.0], 120)
    own = make_pipeline(StandardScaler(), KernelDensity(bandwidth=0.7))
    own.fit(X, kerneldensity__sample_weight=weights)
    own.score_samples(X)
    before = own[-1]._accelerator
    assert own.delete([0, 7, 30]).action == "updated"
    assert own[-1]._accelerator is before
    left = np.delete(np.arange(120), [0, 7, 30])
    fresh = make_pipeline(StandardScaler(), KernelDensity(bandwidth=0.7))
    fresh.fit(X[left], kerneldensity__sample_weight=weights[left], ids=left)
    assert own.digest() == fresh.digest()
    assert own.score_samples(X).tobytes() == fresh.score_samples(X).tobytes()
    theirs = sklearn.pipeline.make_pipeline(
        sklearn.preprocessing.StandardScaler(), sklearn.neighbors.KernelDensity(bandwidth=0.7)
    ).fit(X[left], kerneldensity__sample_weight=weights[left])
    # Means and scales are of values on a grid.
    np.testing.assert_allclose(own.score_samples(X), theirs.score_samples(X), rtol=1e-7)
    assert own.score(X) == pytest.approx(theirs.score(X), rel=1e-7)
    # The step by itself is given, and draws, what the scaler makes of rows.
    scaled = own[0].transform(X)
    np.testing.assert_allclose(own[-1].score_samples(scaled), own.score_samples(X), rtol=1e-9)
    drawn = own[-1].sample(300, 0)
    assert np.abs(drawn.mean(axis=0)).max() < 0.4
    assert drawn.tobytes() == fresh[-1].sample(300, 0).tobytes()


# -- draws -----------------------------------------------------------------------------------------


def test_draws_are_distributed_as_the_density() -> None:
    X = np.array([[-3.0], [0.0], [3.0], [9.0]])
    weights = np.array([1.0, 0.0, 2.0, 3.0])
    model = KernelDensity(bandwidth=0.3).fit(X, sample_weight=weights)
    drawn = model.sample(3000, 0)[:, 0]
    near = np.abs(drawn[:, None] - X[:, 0]).argmin(axis=1)
    counts = np.bincount(near, minlength=4)
    assert counts[1] == 0
    assert chisquare(counts[[0, 2, 3]], 3000 * weights[[0, 2, 3]] / 6).pvalue > 0.01
    assert kstest((drawn - X[near, 0]) / 0.3, "norm").pvalue > 0.01


@pytest.mark.parametrize("d", [1, 2, 5])
def test_draws_of_a_tophat_fill_balls(d: int) -> None:
    model = KernelDensity(bandwidth=2.0, kernel="tophat").fit(np.zeros((2, d)) + 5.0)
    drawn = model.sample(2000, 1) - 5.0
    radii = np.sqrt((drawn * drawn).sum(axis=1)) / 2.0
    assert radii.max() <= 1.0
    assert kstest(radii**d, "uniform").pvalue > 0.01
    assert np.abs(drawn.mean(axis=0)).max() < 0.15
    assert model.score_samples(drawn + 5.0).min() > -math.inf


@pytest.mark.parametrize("kernel", ["gaussian", "tophat"])
def test_draws_around_other_records_stay(kernel: str) -> None:
    rng = np.random.default_rng(0)
    X, ids = 100.0 * rng.normal(size=(50, 2)), np.arange(100, 150)
    model = KernelDensity(bandwidth=0.01, kernel=kernel).fit(X, ids=ids)
    before = model.sample(200, 5)
    assert before.tobytes() == model.sample(300, 5)[:200].tobytes()
    assert before.tobytes() != model.sample(200, 6).tobytes()
    model.delete(ids[:10])
    after = model.sample(200, 5)
    fresh = KernelDensity(bandwidth=0.01, kernel=kernel).fit(X[:9:-1], ids=ids[:9:-1])
    assert after.tobytes() == fresh.sample(200, 5).tobytes()
    center = ((before[:, None] - X) ** 2).sum(axis=2).argmin(axis=1)
    same = (before == after).all(axis=1)
    assert same.tolist() == (center >= 10).tolist()
    assert 10 < (~same).sum() < 100


# -- errors ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("bandwidth", each) for each in (0.0, -1.0, 1e-200, 1e200, math.nan, True, "rule")),
        *(("metric", each) for each in ("manhattan", "haversine", None)),
        *(("kernel", each) for each in ("biweight", None)),
    ],
)
def test_parameters_that_are_none(name: str, value: Any) -> None:
    with pytest.raises(InvalidParameterError, match=f"'{name}' parameter of KernelDensity"):
        KernelDensity(**{name: value}).fit([[0.0]])


def test_records_that_are_refused() -> None:
    X = np.arange(6.0).reshape(3, 2)
    with pytest.raises(InvalidTypeError):
        KernelDensity().fit(csr_array(X))
    with pytest.raises(MagnitudeError, match="X holds numbers beyond"):
        KernelDensity().fit(X * 1e160)
    with pytest.raises(MagnitudeError, match="sample_weight holds numbers beyond"):
        KernelDensity().fit(X, sample_weight=[1.0, 1.0, 1e160])
    with pytest.raises(TooFewRecordsError, match="weights of all 3 records would be zero"):
        KernelDensity().fit(X, sample_weight=[0.0, 0.0, 0.0])
    model = KernelDensity().fit(X, sample_weight=[0.0, 2.0, 0.0])
    before = model.digest()
    with pytest.raises(TooFewRecordsError, match="weights of all 2 records would be zero"):
        model.delete([1])
    with pytest.raises(TooFewRecordsError):
        model.correct([1], sample_weight=[0.0])
    with pytest.raises(MagnitudeError):
        model.add([[0.0, 0.0]], ids=[7], sample_weight=[1e160])
    assert model.digest() == before
    model.replace([1], [[3.0, 3.0]], ids=[1], sample_weight=[0.5])
    assert model.score_samples([[3.0, 3.0]])[0] == pytest.approx(-math.log(2 * math.pi))


def test_rows_beyond_all_numbers() -> None:
    X, far = np.array([[0.0], [1.0]]), [[1e200], [0.0]]
    for kernel in ENDLESS:
        with pytest.raises(MagnitudeError, match="1 rows of X are so far from the records"):
            KernelDensity(kernel=kernel).fit(X).score_samples(far)
    found = KernelDensity(kernel="linear").fit(X).score_samples(far)
    assert found.tolist() == pytest.approx([-math.inf, -math.log(2)], rel=1e-15)


def test_draws_that_are_refused() -> None:
    model = KernelDensity().fit([[0.0]])
    for wrong in (0, -1, 1.5, True, None):
        with pytest.raises(InvalidInputError, match="expected an integer of 1 or more"):
            model.sample(wrong)
    with pytest.raises(InvalidInputError, match="from which nothing is drawn"):
        KernelDensity(kernel="cosine").fit([[0.0]]).sample()


def test_extreme_bandwidths() -> None:
    X = np.array([[0.0, 1.0], [2.0, 1.0]])
    for kernel in SHAPES:
        for power in (-500, 500):
            model = KernelDensity(bandwidth=2.0**power, kernel=kernel).fit(X)
            (found,) = model.score_samples(X[:1])
            assert found == pytest.approx(_defined(X, [1, 1], X[0], 2.0**power, kernel), rel=1e-12)


# -- negative controls -----------------------------------------------------------------------------


class ByRow(KernelDensity):
    """Sums records by the position of rows."""

    def _memory_of(self, held: Any) -> Any:
        memory = super()._memory_of(held)
        memory._order = held.live_rows()
        return memory


class Stale(KernelDensity):
    """Counts deleted records in the rule of the bandwidth."""

    @property
    def bandwidth_(self) -> float:
        return float(self._attached().records.n_rows ** (-1.0 / (self.n_features_in_ + 4)))


class Hoarder(KernelDensity):
    """Keeps the weights of records that are gone."""

    def _update(self, delta: Any) -> Any:
        self._accelerator.targets.remove = lambda rows: None
        return super()._update(delta)


def test_an_order_by_row_is_noticed() -> None:
    with pytest.raises(AssertionError, match="check_row_order"):
        LAW_CHECKS["check_row_order"](ByRow(), STANDARD[:1])


def test_a_bandwidth_of_deleted_records_is_noticed() -> None:
    with pytest.raises(AssertionError, match="check_fitted_attributes"):
        LAW_CHECKS["check_fitted_attributes"](Stale(bandwidth="scott"), STANDARD[:1])


def test_a_kept_weight_is_noticed() -> None:
    X = np.arange(6.0)[:, None]
    kept = []
    for cls in (Hoarder, KernelDensity):
        model = cls().fit(Records(X, sample_weight=[1.0, 1.0, 7.25, 1.0, 1.0, 1.0]))
        model.delete([2])
        kept.append(7.25 in model._memory.targets.values)
    assert kept == [True, False]
