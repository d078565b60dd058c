"""Objects that files keep: which attributes are kept, and what is rebuilt when they are read."""

from __future__ import annotations

from typing import Any, ClassVar

from erasable.core.errors import ErasableError


class UnsavableError(ErasableError):
    """An object holds something that is neither a plain value nor an array."""


class Persistent:
    """Base of classes of which a file does not keep all attributes as they are.

    Files of accelerators are written and read by `erasable.core.mapped`. Objects of other classes
    are kept with all their attributes.
    """

    __slots__ = ()
    _none_in_files: ClassVar[tuple[str, ...]] = ()
    """Names of attributes that no file holds; reading a file sets them to None."""

    def _kept_attributes(self) -> dict[str, Any]:
        """Return the attributes that a file keeps."""
        return {**attributes_of(self), **dict.fromkeys(self._none_in_files)}

    def _after_reading(self) -> None:
        """Rebuild what a file did not keep, once all objects of the file are there."""


def attributes_of(value: Any) -> dict[str, Any]:
    """Return the attributes of an object, those in slots included."""
    found: dict[str, Any] = {}
    for kind in type(value).__mro__:
        slots = kind.__dict__.get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            if hasattr(value, name) and not name.startswith("__"):
                found[name] = getattr(value, name)
    if not hasattr(value, "__dict__") and not any(
        "__slots__" in vars(k) for k in type(value).__mro__
    ):
        raise UnsavableError(f"an object of {type(value).__qualname__} cannot be kept")
    return {**found, **getattr(value, "__dict__", {})}
