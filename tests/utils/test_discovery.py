from __future__ import annotations

import sys
from types import ModuleType

import pytest

import erasable
from erasable.core.estimator import Erasable
from erasable.core.params import class_path, find_class
from erasable.utils import discovery


def test_every_estimator_is_listed_once_under_its_public_name():
    found = erasable.all_estimators()
    assert found == sorted(found, key=lambda item: item[0])
    assert len({cls for _, cls, _ in found}) == len(found)
    for name, cls, tags in found:
        assert name == cls.__name__
        assert issubclass(cls, Erasable)
        assert find_class(class_path(cls)) is cls
        assert set(tags) == {"exactness", "kind", "meta"}
        assert tags["exactness"] in ("bitwise", "converged", "approximate")


def test_tags_tell_kinds_apart():
    kinds = {name: tags for name, _, tags in erasable.all_estimators()}
    assert kinds["KMeans"] == {"exactness": "bitwise", "kind": "clusterer", "meta": False}
    assert kinds["MinMaxScaler"] == {"exactness": "bitwise", "kind": "transformer", "meta": False}
    assert kinds["Pipeline"]["meta"]


def test_the_base_is_no_estimator():
    assert "Erasable" not in [name for name, _, _ in erasable.all_estimators()]


def test_a_room_without_its_optional_dependency_is_skipped(tmp_path, monkeypatch):
    package = ModuleType("erasable_like")
    package.__path__ = [str(tmp_path)]
    monkeypatch.setitem(sys.modules, "erasable_like", package)
    (tmp_path / "optional.py").write_text("import surely_not_installed\n")
    (tmp_path / "_private.py").write_text("raise RuntimeError\n")
    (tmp_path / "plain.py").write_text("__all__ = []\n")
    names = [module.__name__ for module in discovery._public_modules(package)]
    assert names == ["erasable_like.plain"]
    (tmp_path / "broken.py").write_text("import erasable.no_such_room\n")
    with pytest.raises(ModuleNotFoundError):
        list(discovery._public_modules(package))


def test_names_are_imported_when_they_are_used():
    assert set(erasable.__all__) <= set(dir(erasable))
    assert erasable.cluster.__name__ == "erasable.cluster"
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        erasable.nonsense  # noqa: B018
