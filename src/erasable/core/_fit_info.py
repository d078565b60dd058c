"""The bookkeeping of a fit, which every estimator has in one private object."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import get_tags

from erasable.core.attachment import Attachment
from erasable.core.digest import LeafHash, leaf_hash, state_root
from erasable.core.errors import DetachedError
from erasable.core.params import decode_param, keep_objects
from erasable.core.value_hash import ValueHash

if TYPE_CHECKING:
    from erasable.core.model import Model

_SETTINGS = ("__", "_callback", "_metadata_request", "_parent_callback", "_skl")  # scikit-learn's


def is_learned(name: str) -> bool:
    """Tell whether `fit` sets an attribute: no parameter, and no setting of scikit-learn."""
    if name.startswith(_SETTINGS):
        return False
    return name.startswith("_") or name.endswith("_")


class DetachedAttributeError(DetachedError, AttributeError):
    """An attribute needs records that are not there; to `hasattr` it is missing."""

    def __new__(cls, *args: Any) -> Self:
        """Make one as `AttributeError` does; see `erasable.core.errors.ArtifactFileError`."""
        return AttributeError.__new__(cls, *args)


@dataclass
class FitInfo:
    """Bookkeeping that is neither learned nor a parameter; None: not known, or not asked for."""

    params: dict[str, Any]  # as they were at `fit`, as plain values
    n_records: int | None = None  # from a file; None where the records are held
    id_set: NDArray[np.uint64] | None = None  # see `digest.id_set_hash`
    digest: str | None = None
    keys: NDArray[np.uint64] | None = None  # of all rows of the records; 0 where not live
    constants: dict[str, LeafHash] | None = None  # see `hash_constants`
    owner: object | None = None  # of a step: sign of its pipeline, which alone may delete
    values: ValueHash | None = None  # None of a step, and from old files until there are records
    foreign: bool = False  # the state comes from a file, and is checked before it is taken over
    tags: tuple[bool, bool] | None = None  # see `target_tags`
    # Parameters as the estimator was given them: from the start where `params` only names them.
    decoded: dict[str, Any] = field(default_factory=dict)

    def target_tags(self, model: Model) -> tuple[bool, bool]:
        """Tell whether the model learns from targets, and whether from classes."""
        if self.tags is None:
            tags = get_tags(model)
            self.tags = tags.target_tags.required, tags.classifier_tags is not None
        return self.tags

    @classmethod
    def of(cls, model: Model, params: dict[str, Any], **known: Any) -> FitInfo:
        """Make the bookkeeping of a model that was fitted with these parameters."""
        return cls(params, decoded=keep_objects(model, params), **known)

    def param(self, name: str) -> Any:
        """Return a parameter as it was at `fit`; it is not to be changed."""
        if name not in self.decoded:
            self.decoded[name] = decode_param(self.params[name])
        return self.decoded[name]

    def hash_constants(self, state: dict[str, Any]) -> dict[str, LeafHash]:
        """Hash once what deletions do not change; a pipeline resets it with a step's columns."""
        if self.constants is None:
            names = state["feature_names"]
            self.constants = {
                "algorithm_version": leaf_hash("algorithm_version", state["algorithm_version"]),
                "feature_names": leaf_hash(
                    "feature_names", None if names is None else state_root({"": names}).hex()
                ),
                "n_features": leaf_hash("n_features", state["n_features"]),
                "params": leaf_hash("params", state_root(self.params).hex()),
                "seed": leaf_hash("seed", state["seed"]),
            }
        return self.constants

    def settle(
        self,
        rows: NDArray[np.int64],
        id_set: NDArray[np.uint64] | None,
        values: ValueHash | None = None,
    ) -> None:
        """Take deleted records out; it may be done twice, as it says what is, not what changes."""
        self.digest = None
        self.id_set = id_set
        self.values = values
        if self.keys is not None:
            self.keys[rows] = 0

    def written_values(self, held: Attachment | None) -> dict[str, Any] | None:
        """Return the entry of the model's file for the values of its records."""
        if self.values is None:
            return None
        if held is not None:
            self.values = self.values.known(held)
        return self.values.written(held)

    def matches(self, held: Attachment) -> bool:
        """Tell whether the ids are those of the file that the model was loaded from."""
        if self.id_set is None or held.n_live != self.n_records:
            return False
        return np.array_equal(held.id_set(), self.id_set)


def base_state(model: Model) -> dict[str, Any]:
    """Return the part of the state that every estimator has, and the map before a step."""
    book, held = model._info, model._held
    if book.id_set is None and held is not None:
        book.id_set = held.id_set()
    return {
        "algorithm_version": model.algorithm_version,
        "feature_names": model._column_names,
        "n_features": model.n_features_in_,
        "n_records": book.n_records if held is None else held.n_live,
        "params": book.params,
        "record_set": book.id_set,
        "seed": getattr(model, "seed_", None),
        **map_state(model),
    }


def map_state(model: Model) -> dict[str, Any]:
    """Return the entry of the state for the map behind which a step has learned, if any."""
    return {} if model._map is None else {"map": model._map._asdict()}


def owned_copy(value: Any) -> Any:
    """Replace arrays that cannot be written, which joblib maps from disk, by copies."""
    if isinstance(value, dict):
        return {key: owned_copy(item) for key, item in value.items()}
    if isinstance(value, list):
        return [owned_copy(item) for item in value]
    if isinstance(value, np.ndarray) and not value.flags.writeable:
        return value.copy()
    return value
