"""Parts of schemas: what each takes, and what it refuses, by the name of the field."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from erasable.core._schema import (
    Array,
    Decimal,
    Depending,
    DictOf,
    Fields,
    FieldType,
    Flag,
    Integer,
    Labels,
    ListOf,
    Maybe,
    Names,
    Objects,
    OneOf,
    Text,
    Texts,
    Within,
    classes,
    column_map,
    gram,
    grid,
    moments,
)
from erasable.core.errors import ArtifactError

NAN, INF = float("nan"), float("inf")
COUNTS = Array("int64", ("k",), least=0, most=5)
COLUMN = Array("float64", ("n_features",))
SUMS = {"sum": np.zeros(1), "hh": np.zeros(1, int), "hl": np.zeros(1, int), "ll": np.ones(1, int)}


def _texts(*cells: Any) -> Any:
    out = np.empty(len(cells), dtype=object)
    out[:] = cells
    return out


TAKEN: list[tuple[FieldType, Any]] = [
    (COUNTS, np.array([0, 5])),
    (COLUMN, np.array([1.0, -1e308])),
    (Array("float64", (None,), gaps=True), np.array([NAN, 1.0])),
    (Array("bool", (2,)), np.array([True, False])),
    (Array("float64", (0,), least=1.0), np.zeros(0)),
    (Texts((2,), ascending=True), _texts("a", "ü")),
    (Objects((3,)), _texts("a", 1.0, NAN)),
    (Labels("k"), np.array([False, True])),
    (Labels("k"), np.array([2**63], dtype=np.uint64)),
    (Labels("k"), _texts("no", "yes")),
    (Integer(0, 3), 3),
    (Decimal(0.0, 1.0), 0.5),
    (Flag(), False),
    (Text(("a", "b")), "b"),
    (Names(2), ["a", "a"]),
    (Maybe(Integer(0)), None),
    (ListOf(Integer(0), 2), [1, 2]),
    (DictOf(Integer(0), ["a"]), {"a": 1}),
    (OneOf((Integer(0), Text())), "a"),
    (Depending("b", Fields({}), Fields({"b": Integer(0)})), {"b": 1}),
    (Within({"seed"}), {"seed": None, "anything": object()}),
    (grid("n_features"), {"top": np.array([480, -480]), "origin": np.zeros(2)}),
    (moments(1), SUMS),
    (classes(), {"labels": np.array([1.5, 2.5]), "counts": np.array([1, 2])}),
    (column_map(), {"shift": np.zeros(2), "scale": np.ones(2)}),
]

REFUSED: list[tuple[FieldType, Any, str]] = [
    (COUNTS, np.array([0, 6]), "f"),
    (COUNTS, np.array([-1, 0]), "f"),
    (COUNTS, np.array([[1]]), "f"),
    (COUNTS, np.array([1.0]), "f"),
    (COUNTS, np.array([1], dtype=np.int32), "f"),
    (COUNTS, [1, 2], "f"),
    (COLUMN, np.zeros(3), "f"),
    (COLUMN, np.array([NAN, 0.0]), "f"),
    (COLUMN, np.array([0.0, INF]), "f"),
    (Array("float64", (2, 2)), np.asfortranarray(np.eye(2)), "f"),
    (Array("float64", (1,), whole=True), np.array([0.5]), "f"),
    (Array("float64", (1,), gaps=True), np.array([INF]), "f"),
    (Array("int64", (2,), ascending=True), np.array([1, 1]), "f"),
    (Texts((2,), ascending=True), _texts("b", "a"), "f"),
    (Texts((2,), distinct=True), _texts("b", "b"), "f"),
    (Texts((2,)), _texts("b", 1), "f"),
    (Objects((1,)), _texts(["a"]), "f"),
    (Objects((1,)), _texts(INF), "f"),
    (Labels("k"), np.array([True, False]), "f"),
    (Labels("k"), np.array([NAN]), "f"),
    (Labels("k"), np.array([1j]), "f"),
    (Labels("k"), _texts("b", "a"), "f"),
    (Integer(0, 3), 4, "f"),
    (Integer(0, 3), True, "f"),
    (Integer(0, 3), 1.0, "f"),
    (Decimal(), NAN, "f"),
    (Decimal(), 1, "f"),
    (Flag((True,)), False, "f"),
    (Text(("a", "b")), "c", "f"),
    (Names(2), ["a"], "f"),
    (Names(1), [1], "f"),
    (Maybe(Integer(0)), -1, "f"),
    (ListOf(Integer(0)), [1, -2], "f.1"),
    (ListOf(Integer(0)), {"a": 1}, "f"),
    (DictOf(Integer(0), ["a"]), {"b": 1}, "f.a"),
    (DictOf(Integer(0)), {"b": -1}, "f.b"),
    (Fields({"a": Integer(0)}), {}, "f.a"),
    (Fields({"a": Integer(0)}), {"a": 0, "b": 0}, "f.b"),
    (Fields({"a": Fields({"b": Integer(0)})}), {"a": {"b": "x"}}, "f.a.b"),
    (Fields({}), 3, "f"),
    (OneOf((Integer(0), Text())), None, "f"),
    (Depending("b", Fields({}), Fields({"b": Integer(0)})), {"b": -1}, "f.b"),
    (Within({"seed"}), {"seed": None, "params": {}}, "f.params"),
    (Within({"seed"}), {}, "f.seed"),
    (grid("n_features"), {"top": np.array([481, 0]), "origin": np.zeros(2)}, "f.top"),
    (moments(1), {**SUMS, "hh": np.array([3 * 2**26 + 1])}, "f.hh"),
    (classes(), {"labels": np.array([1, 2]), "counts": np.array([1, 1])}, "f.counts"),
    (classes(), {"labels": np.array([1, 2]), "counts": np.array([0, 3])}, "f.counts"),
    (column_map(), {"shift": np.zeros(2), "scale": np.zeros(2)}, "f.scale"),
    (
        gram(2, 1, 1),
        {"top": np.array([0]), "origin": np.zeros(1), "totals": np.array([3.0, 0.0, 0.0, 4.0])},
        "f.totals",
    ),
]


@pytest.mark.parametrize(("part", "value"), TAKEN)
def test_a_part_takes(part: FieldType, value: Any) -> None:
    part.check(value, "f", {"n_features": 2, "n_records": 3})


@pytest.mark.parametrize(("part", "value", "field"), REFUSED)
def test_a_part_refuses(part: FieldType, value: Any, field: str) -> None:
    with pytest.raises(ArtifactError, match=f"field '{field}'"):
        part.check(value, "f", {"n_features": 2, "n_records": 3})


def test_sizes_of_one_name_agree() -> None:
    schema = Fields({"labels": Labels("k"), "sums": Array("float64", ("k", "n_features"))})
    sizes = {"n_features": 2}
    schema.check({"labels": np.arange(3), "sums": np.zeros((3, 2))}, "", sizes)
    assert sizes == {"n_features": 2, "k": 3}
    with pytest.raises(ArtifactError, match=r"'sums' .* 4 lines; expected 3 \(k\)"):
        schema.check({"labels": np.arange(3), "sums": np.zeros((4, 2))}, "", {"n_features": 2})


def test_sums_of_squares_are_compared_exactly() -> None:
    """Two values of 2**25 have no variance: their squares are as large as their sum allows."""
    n, m = 2, 2**25
    totals = np.array([n * m, n * (m // 2**13) ** 2, 0.0, 0.0])
    state = {"top": np.array([0]), "origin": np.zeros(1), "totals": totals}
    gram(n, 1, 1).check(state, "f", {})
    totals[0] += 1.0
    with pytest.raises(ArtifactError, match="too small for their sum"):
        gram(n, 1, 1).check(state, "f", {})
