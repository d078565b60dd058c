"""Models from files that anybody may have written."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from erasable.core._schema import (
    BASE_STATE,
    Anything,
    Array,
    DictOf,
    Fields,
    Integer,
    Maybe,
    Names,
    column_map,
    refuse,
)
from erasable.core.artifact import Place, name_of, read_artifact
from erasable.core.errors import ArtifactError, ErasableError
from erasable.core.params import class_for, decode_params, encode_params
from erasable.core.trust import reading
from erasable.core.value_hash import ValueHash

if TYPE_CHECKING:
    from erasable.core.model import Model

MOST_FEATURES, MOST_RECORDS = 2**31 - 1, 2**53

_BASE = Fields(
    {
        "algorithm_version": Integer(1),
        "feature_names": Maybe(Names("n_features")),
        "n_features": Integer(1, MOST_FEATURES),
        "n_records": Integer(1, MOST_RECORDS),
        "params": DictOf(Anything()),
        "record_set": Array("uint64", (2,)),
        "seed": Maybe(Integer(0, 2**64 - 1)),
    }
)


def read_model(cls: type[Any], path: Place, *, trusted: bool, with_records: bool) -> Any:
    """Read a model of a class, or of a subclass; see `Erasable.load`.

    A state that is not trusted is checked, unless records follow, of which it may be fitted again.
    """
    header, state = read_artifact(path)
    made = cls
    try:
        made = class_for(cls, header)
        model = made(**decode_params(state["params"]))
        with reading(trusted, with_records=with_records):
            model._adopt(state, None, foreign=not trusted)
        model.set_params(**model._seeds())
        if "records" in header:
            told = model._info.values = ValueHash.from_file(header["records"])
            if told.unread not in ((), tuple(model._unread_columns())):  # old files have none
                raise ValueError("the model looks at other columns")
        same = model.digest() == header["digest"]
    except (ArtifactError, MemoryError):
        raise
    except ErasableError as error:
        raise ArtifactError(
            f"{name_of(path)!r} holds a {made.__name__} that cannot have been fitted: {error}"
        ) from error
    except Exception as error:  # what others have written can fail in any way
        raise ArtifactError(
            f"{name_of(path)!r} holds no complete {cls.__name__}; expected a file written "
            "by save(); fit and save again"
        ) from error
    if not same:
        raise ArtifactError(
            f"the digest of {name_of(path)!r} is not that of its content; expected an "
            "unchanged file; take it from a backup"
        )
    return model


def check_base(model: Any, state: dict[str, Any]) -> None:
    """Check what every state holds, and the parameters of a model that was made with them."""
    base = {name: value for name, value in state.items() if name in BASE_STATE}
    n_features = base.get("n_features")
    _BASE.check(base, "", {"n_features": n_features} if isinstance(n_features, int) else {})
    missing = sorted(encode_params(model).keys() - base["params"].keys())
    if missing:
        refuse(f"params.{missing[0]}", "nothing", "a parameter")
    model._validate_params()
    least = model._minimum_records()
    if base["n_records"] < least:
        refuse("n_records", base["n_records"], f"{least} or more")


def check_learned(model: Model, learned: dict[str, Any]) -> None:
    """Check what an estimator has learned against its schema, if it declares one.

    Parameters and what `check_base` checks are set by then.
    """
    seeded = hasattr(model, "seed_")
    if seeded != model._needs_seed:
        expected = "a seed" if model._needs_seed else "no seed: nothing is drawn"
        refuse("seed", model.seed_ if seeded else None, expected)
    schema = model._schema()
    if schema is not None:
        n_records = model._info.n_records
        assert n_records is not None
        sizes = {"n_features": model.n_features_in_, "n_records": n_records}
        own = dict(learned)
        if model._takes_map and "map" in own:
            column_map().check(own.pop("map"), "map", sizes)
        schema.check(own, "", sizes)
