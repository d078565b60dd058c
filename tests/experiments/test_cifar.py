"""The experiment on images: what is stored is not trained again, and what is read from outcomes."""

from __future__ import annotations

import itertools
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import cifar
import images
import measured
import numpy as np
import pytest
from images import ALL, CAT, Job, Size, Store
from measured import Measured, Plan

DATA = images.data_sets.folder() / images.PART
needs_data = pytest.mark.skipif(not DATA.exists(), reason="the images are not there")
TINY = Size(side=8, width=2, n_epochs=1, batch_size=50, n_others=90)
PLAN = Plan("tiny", TINY, 2, ((("Retrain",), ("random", "lr-maha"), (0.5, 1.0)),))


def stored(path: Path, cats: Any) -> Store:
    """Store accuracies on cats by (seed, method, score, share)."""
    store = Store(path / "outcomes.jsonl", TINY, {})
    for key, value in cats.items():
        store.add(Job(*key), {"cats": value, "others": 0.5, "forget": 0.0})
    return store


CATS = {
    (0, "first", ALL, 0.0): 0.4,
    (1, "first", ALL, 0.0): 0.6,
    (0, "Retrain", "random", 0.5): 0.4,
    (1, "Retrain", "random", 0.5): 0.4,
    (0, "Retrain", "lr-maha", 0.5): 0.1,
    (1, "Retrain", "lr-maha", 0.5): 0.3,
    (0, "Retrain", ALL, 1.0): 0.0,
    (1, "Retrain", ALL, 1.0): 0.0,
}


def test_an_outcome_is_found_again_by_its_settings(tmp_path: Path) -> None:
    written = stored(tmp_path, CATS)
    with written.path.open("a", encoding="utf-8") as file:
        file.write('{"settings": "cut o')  # the run was stopped
    again = Store(written.path, TINY, {})
    assert again.outcomes == written.outcomes
    assert Job(0, "first") in again
    assert Job(2, "first") not in again
    assert Job(0, "first") not in Store(written.path, Size(), {})
    again.add(Job(2, "first"), {"cats": 0.5})
    assert Store(written.path, TINY, {})[Job(2, "first")] == {"cats": 0.5}


def test_all_seeds_are_trained_before_the_next_and_none_twice() -> None:
    for plan in (cifar.REDUCED, cifar.AGAIN, cifar.FULL, cifar.QUICK):
        jobs = plan.jobs()
        assert len(set(jobs)) == len(jobs)
        for at in range(0, len(jobs), plan.seeds):
            assert [job.seed for job in jobs[at : at + plan.seeds]] == list(range(plan.seeds))
    assert len(cifar.REDUCED.jobs()) <= 120
    assert PLAN.jobs() == [
        Job(seed, *rest)
        for rest in [("first", ALL, 0.0), ("Retrain", "random", 0.5), ("Retrain", "lr-maha", 0.5),
                     ("Retrain", ALL, 1.0)]
        for seed in range(2)
    ]  # fmt: skip


def test_what_is_needed_is_read_from_means_over_seeds(tmp_path: Path) -> None:
    found = Measured(PLAN, stored(tmp_path, CATS))
    # By hand: means are 0.5, 0.4, 0 and 0.5, 0.2, 0.
    assert found.needed("Retrain", "random", 0.2) == pytest.approx(0.75)
    assert found.needed("Retrain", "lr-maha", 0.2) == pytest.approx(0.5)
    assert found.needed("Retrain", "lr-maha", 0.25) == pytest.approx(0.5 * 0.25 / 0.3)
    assert found.selective("Retrain", 0.2) == "lr-maha"
    pairs = found.resampled("Retrain", ("random", "lr-maha"), 0.2)
    assert sorted(pairs[:, 1]) == pytest.approx([0.5 * 0.2 / 0.3, 0.5, 0.5, 0.5 + 0.5 / 3])
    assert measured.verdict(pairs) == "yes, 100%"
    assert measured.verdict(pairs[:, ::-1]) == "no, 0%"
    assert measured.verdict(np.array([[1.0, 0.5], [0.5, 1.0]])) == "not certain, 50%"


@pytest.mark.parametrize("full", [False, True])
def test_what_is_left_to_train_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, full: bool
) -> None:
    def train(plan: Plan, store: Store, *rest: Any) -> None:
        for at, each in enumerate(plan.jobs()):
            if at not in left:
                found = {"cats": 0.5 - each.share / 2, "others": 0.6, "forget": 0.1, "seconds": 1.0}
                store.add(each, found | {"of_retraining": 0.5})

    monkeypatch.setattr(images, "STORE", tmp_path)
    monkeypatch.setattr(images.data_sets, "path", lambda file: asked.append(file))
    monkeypatch.setattr(cifar, "methods", lambda size: {})
    monkeypatch.setattr(cifar, "train", train)
    options = SimpleNamespace(full=full, device="cpu", minutes=1.0, workers=1)
    asked: list[str] = []
    left = {5}
    found = cifar.measure(options, False, seeds=2, budgets=[0.5, 0.75])
    assert found["unfinished"]
    left.clear()
    found = cifar.measure(options, False, seeds=2, budgets=[0.5, 0.75])
    assert "unfinished" not in found
    lines = found["figures"]["3"]["panels"][0]["lines"]
    assert [line["label"] for line in lines] == ["random", "lr-maha"]
    assert lines[0]["x"].tolist() == [0.0, 50.0, 75.0, 100.0]
    assert np.shape(lines[0]["runs"]) == (2, 4)
    assert asked == 2 * [images.WHOLE if full else images.PART]
    assert ("all: 5,000 images" in found["settings"]["data"]) == full


def test_a_share_that_a_seed_lacks_is_not_measured(tmp_path: Path) -> None:
    fewer = {key: value for key, value in CATS.items() if key != (1, "Retrain", "lr-maha", 0.5)}
    found = Measured(PLAN, stored(tmp_path, fewer))
    assert found.scores("Retrain") == ["random"]
    assert found.selective("Retrain", 0.2) is None
    np.testing.assert_array_equal(found.curve("Retrain", "lr-maha")[0], [0.0, 1.0])


def test_resamples_are_all_where_they_are_few() -> None:
    assert {tuple(row) for row in measured.resamples(3)} == set(
        itertools.product(range(3), repeat=3)
    )
    many = measured.resamples(30)
    assert many.shape == (measured.N_RESAMPLES, 30)
    # A mean of draws from 0 to 29 varies as that of 30 independent draws.
    assert many.mean(axis=1).std() == pytest.approx(np.sqrt((30**2 - 1) / 12 / 30), rel=0.05)
    assert measured.interval([0.1, 0.2, np.inf]) == (0.1, np.inf)


def test_what_is_missed_and_by_how_much() -> None:
    other = np.array([0.5, 0.5, 0.5])
    assert measured.missed(other, other) == "+0.0"
    assert measured.missed(np.array([0.51, 0.49, 0.53]), other) == "+1.0"
    assert measured.missed(np.array([0.6, 0.61, 0.59]), other) == "+10.0 (more than 2 errors)"


@needs_data
def test_cats_to_train_on_are_not_those_to_judge_by() -> None:
    found = images.read(Size(side=16), 0)
    assert (len(found.cats), len(found.more_cats)) == (1000, 4000)
    assert (len(found.others), len(found.more_others)) == (9000, 897)
    assert CAT not in found.classes
    assert CAT not in found.more_classes
    alike = {row.tobytes() for row in found.cats} & {row.tobytes() for row in found.more_cats}
    assert not alike
    other = images.read(Size(side=16), 1)
    assert {row.tobytes() for row in other.cats} != {row.tobytes() for row in found.cats}


def test_images_are_averaged_down() -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (3, 32, 32, 3)).astype(np.uint8)
    small = images._rows(pixels, Size(side=8)).reshape(3, 3, 8, 8)
    for image, channel, i, j in itertools.product(range(3), range(3), (0, 5), (2, 7)):
        block = pixels[image, 4 * i : 4 * i + 4, 4 * j : 4 * j + 4, channel]
        expected = (block.mean() / 255 - 0.5) / 0.25
        assert small[image, channel, i, j] == pytest.approx(expected, abs=1e-5)


def test_the_network_is_the_papers() -> None:
    pytest.importorskip("torch")
    import networks

    made = networks.cnn(10)
    convolutions = [(3, 32), (32, 32), (32, 64), (64, 64), (64, 128), (128, 128)]
    weights = sum(9 * a * b + 2 * b for a, b in convolutions) + 128 * 10 + 10
    assert sum(each.numel() for each in made.parameters()) == weights


@needs_data
def test_a_training_has_the_same_outcome_each_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("torch")
    ways = cifar.methods(TINY)
    job = Job(0, "Retrain", "lr-maha", 0.5)
    found = []
    for folder in ("one", "two"):
        monkeypatch.setattr(images, "STORE", tmp_path / folder)
        found += [images.outcome(TINY, job, ways, "cpu") for _ in range(2)]
    for each in found:
        each.pop("seconds")
    assert found[0] == found[1] == found[2] == found[3]
    # Half of 90 cats, and 90 others, once.
    assert found[0]["n_gradients"] == 45 + 90
    assert found[0]["of_retraining"] == 1.0
    assert images.outcome(TINY, Job(1, "first"), ways, "cpu")["n_gradients"] == 90 + 90
    for score in ("random", "lr-maha"):
        at = Job(0, "Retrain", score, 0.5)
        read = images.read(TINY, 0)
        model = images.first(TINY, at, read, "cpu")
        assert sorted(images.order(TINY, at, model, read)) == list(range(90))
