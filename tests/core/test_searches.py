"""The searches for strings and for vectors find what a comparison at every place finds."""

from __future__ import annotations

import math
import re
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from effort import examples
from erasable.core._byte_search import ByteSearch
from erasable.core._token_search import TokenSearch
from erasable.core._vector_search import VectorSearch


def contained(string: bytes, data: bytes) -> bool:
    """Compare at every place, in any case of letters; digits alone are no part of more digits."""
    pattern = re.escape(string)
    if string.isdigit():
        pattern = rb"(?<![0-9])" + pattern + rb"(?![0-9])"
    return re.search(pattern, data, re.IGNORECASE) is not None


SIGNS = st.sampled_from([b"a", b"A", b"b", b"1", b"2", b"@", b"`", b"\0", b"\xc4", b"\xe4"])
STRINGS = st.lists(SIGNS, min_size=6, max_size=40).map(b"".join)
DIGITS = st.integers(10**6, 10**17).map(lambda number: str(number).encode())


@given(
    strings=st.lists(STRINGS | DIGITS, min_size=1, max_size=5),
    noise=st.lists(st.lists(SIGNS, max_size=9).map(b"".join), min_size=8, max_size=8),
    choice=st.randoms(use_true_random=False),
    start=st.integers(0, 9),
)
@settings(max_examples=examples(300))
def test_strings_are_found_where_a_comparison_at_every_place_finds_them(
    strings: list[bytes], noise: list[bytes], choice: object, start: int
) -> None:
    rng = np.random.default_rng(choice.getrandbits(32))  # type: ignore[attr-defined]
    parts = []
    for some in noise:  # whole strings, and all but the first or last byte of them
        string = strings[rng.integers(len(strings))]
        parts += [some, string[rng.integers(2) : len(string) - rng.integers(2)].swapcase()]
    data = b"".join(parts)[: rng.integers(1, 200)]
    search = ByteSearch(strings)
    search.look_at(np.frombuffer(bytes(start) + data, dtype=np.uint8)[start:])
    assert search.found() == {each for each in strings if contained(each, data)}


NUMBER = re.compile(r"[+-]?((0|[1-9]\d*)(\.\d*)?|\.\d+)([eE][+-]?\d+)?")
TOKENS = st.text("0123456789.eE+-a", min_size=1, max_size=6)
NUMBERS = (
    st.integers(-(10**4), 10**4)
    | st.integers(-(10**20), 10**20)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.floats(-1, 1)
    | st.decimals(-100, 100, places=3).map(float)
)


def spelled(number: float, how: int) -> str:
    """Write a number in one of several notations, or one that is read as it when rounded."""
    if isinstance(number, int):
        return (str(number), f"{number}.", f"{number}.000", f"{number:e}")[how % 4]
    exact = Decimal(number)
    near = exact + (Decimal(math.ulp(number)) * (how % 100 - 50)) / 101
    return (repr(number), f"{number:.17e}", f"{exact:f}", f"{near:f}")[how % 4]


@given(
    wanted=st.lists(NUMBERS, max_size=4),
    words=st.lists(TOKENS, max_size=4),
    others=st.lists(TOKENS | NUMBERS.map(str), max_size=20),
    how=st.lists(st.integers(0, 10**6), min_size=8, max_size=8),
    between=st.sampled_from([",", " ", '","', "\n"]),
)
@settings(max_examples=examples(400))
def test_whole_words_and_numbers_are_found_however_they_are_written(
    wanted: list[float], words: list[str], others: list[str], how: list[int], between: str
) -> None:
    tokens = [*others, *words, *(spelled(each, how[at]) for at, each in enumerate(wanted))]
    tokens.sort(key=lambda token: sum(token.encode()) * how[-1] % 97)
    data = between.join(tokens).encode()
    search = TokenSearch([word.encode() for word in words], wanted)
    found = {data[begin:end].decode() for begin, end in search.among(data)}
    right = {
        token
        for token in tokens
        if token in words or (NUMBER.fullmatch(token) and float(token) in wanted)
    }
    assert right <= found <= set(tokens)


def test_few_others_are_looked_at() -> None:
    """The control: what is found is not simply everything."""
    data = ",".join(str(number / 8) for number in range(10_000)).encode()
    search = TokenSearch([b"ann"], [17])
    assert [data[begin:end] for begin, end in search.among(data)] == [b"17.0"]


@pytest.mark.parametrize("n", [6, 7, 8, 9, 14, 15, 16, 40])
def test_a_string_is_found_wherever_it_begins_and_ends(n: int) -> None:
    string = bytes(range(97, 97 + n))
    search = ByteSearch([string, string[:-1] + b"!"])
    for before in range(20):
        for after in range(10):
            search.forget()
            search.look_at(b"-" * before + string + b"-" * after)
            assert search.found() == {string}


def test_strings_with_the_same_beginnings_are_told_apart() -> None:
    strings = [b"%s@example.org" % name for name in map(b"someone.%05d".__mod__, range(3_000))]
    strings += [b"/home/user/shared/%05d" % at for at in range(300)]
    strings += [each.decode().encode("utf-16-le") for each in strings[:500]]
    there = strings[::7]
    search = ByteSearch(strings)
    search.look_through([b", ".join(there)[at : at + 999] for at in range(0, 99_999, 999)])
    assert search.found() == {each for each in there if each in b", ".join(there)[:99_900]}


def spread(piece: np.ndarray, data: bytes) -> float:
    """Compare the whole numbers at every place with a piece at any length: how far they differ."""
    n = piece.size
    runs = [np.frombuffer(data[at : at + 4 * n], "<f4") for at in range(len(data) - 4 * n + 1)]
    for at in range(len(data) - 5 * n + 1):  # as CBOR has them
        rows = np.frombuffer(data[at : at + 5 * n], np.uint8).reshape(n, 5)
        if all(rows[:, 0] == 0xFA):
            runs.append(rows[:, 1:].copy().view(">f4").ravel())
    least = math.inf
    for numbers in runs:
        with np.errstate(all="ignore"):
            ratios = numbers.astype(np.float64) / piece
            if ratios[0] > 0:
                least = min(least, np.ptp(ratios) / ratios[0])  # not where it is no number
    return least


@given(
    seed=st.integers(0, 2**32 - 1),
    width=st.integers(8, 14),
    before=st.integers(0, 70),
    after=st.integers(0, 30),
    scale=st.sampled_from([1.0, 0.013, 1e30, 1e-30, -1.0]),
    drift=st.sampled_from([0.0, 9e-7, 3e-5]),
    in_cbor=st.booleans(),
    cut=st.integers(0, 3),
)
@settings(max_examples=examples(300))
def test_vectors_are_found_where_a_comparison_at_every_place_finds_them(
    seed: int, width: int, before: int, after: int, scale: float, drift: float, in_cbor: bool,
    cut: int,
) -> None:  # fmt: skip
    rng = np.random.default_rng(seed)
    pieces = [rng.normal(size=width) * 10.0 ** rng.integers(-4, 4, width) for _ in range(4)]
    drifted = pieces[2] * scale * (1 + drift * rng.choice([-1, 1], width))
    drifted[0] *= 1 + 2 * drift
    data = drifted.astype(">f4" if in_cbor else "<f4").tobytes()
    if in_cbor:
        data = b"".join(b"\xfa" + data[at : at + 4] for at in range(0, len(data), 4))
    data = rng.bytes(before) + data[: len(data) - cut * (cut < 3)] + rng.bytes(after)
    search = VectorSearch(pieces)
    search.look_at(data)
    for each, is_found in zip(pieces, search.found().tolist(), strict=True):
        apart = spread(each, data)
        assert is_found or apart > 3.9e-6  # the search allows 4e-6 on both sides of one of them
        assert not is_found or apart < 8.1e-6


def test_vectors_are_found_whose_last_digits_have_drifted() -> None:
    pieces = np.random.default_rng(0).normal(size=(60, 12))
    drifted = pieces / 3 * (1 + 1.8e-6 * np.array([1, -1] * 6))
    for start in range(30):
        search = VectorSearch(list(pieces))
        search.look_at(bytes(start) + drifted[:40].astype("<f4").tobytes())
        assert search.found().tolist() == [True] * 40 + [False] * 20
