"""Evidence does not betray: a bare digest gives the erased record away, and ours does not."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from erasable.naive_bayes import GaussianNB
from erasable.preprocessing import MinMaxScaler
from erasable.workspace.evidence.commitments import commit, commitment, matches

CANDIDATES = [float(age) for age in range(40, 90)]
SECRET = 73.0
OTHERS = np.random.default_rng(0).uniform(45, 60, (19, 2)).round(1)


def naive_bayes(age: float) -> str:
    X = np.vstack([OTHERS, [age, 52.5]])
    y = np.arange(20) % 2
    return str(GaussianNB().fit(X, y, ids=[f"p{i}" for i in range(20)]).digest())


def scaler(age: float) -> str:
    X = np.vstack([OTHERS, [age, 52.5]])
    return str(MinMaxScaler().fit(X, ids=[f"p{i}" for i in range(20)]).digest())


def guesses(fit: Callable[[float], str], holds: Callable[[str], bool]) -> list[float]:
    """Refit with every candidate, as whoever has the rest of the data can."""
    return [age for age in CANDIDATES if holds(fit(age))]


@pytest.mark.parametrize("fit", [naive_bayes, scaler])
def test_a_bare_digest_gives_the_record_away(fit: Callable[[float], str]) -> None:
    # The negative control: without it, the next test could pass because the attack is no good.
    published = fit(SECRET)
    assert guesses(fit, lambda digest: digest == published) == [SECRET]


@pytest.mark.parametrize("fit", [naive_bayes, scaler])
def test_a_commitment_does_not(fit: Callable[[float], str]) -> None:
    salt, published = commit(fit(SECRET))
    assert guesses(fit, lambda digest: digest == published) == []
    # With no salt at hand, no salt is as good as any other: the commitments to each guess under
    # the salts that could be tried have nothing to do with the published one.
    assert guesses(fit, lambda digest: commitment("", digest) == published) == []
    assert guesses(fit, lambda digest: commitment("00" * 32, digest) == published) == []
    later, _ = commit("the next version")
    assert guesses(fit, lambda digest: commitment(later, digest) == published) == []
    # While the salt is kept, and it is not published, the workspace itself can open it.
    assert guesses(fit, lambda digest: matches(salt, published, digest)) == [SECRET]
