"""What a file keeps of an object, and what is made again when it is read."""

from __future__ import annotations

from typing import Any

from erasable.core.errors import ErasableError

__all__ = ["Persistent", "UnsavableError", "attributes_of"]


class UnsavableError(ErasableError):
    """An object holds something that cannot be kept as plain values and arrays."""


class Persistent:
    """Base of classes of which a file does not keep all attributes as they are.

    Files of accelerators are written and read by `erasable.core.mapped`. Objects of other classes
    are kept with all their attributes.

    Examples
    --------
    >>> class Squares(Persistent):
    ...     def __init__(self, numbers):
    ...         self.numbers = numbers
    ...         self._after_reading()
    ...     def _kept_attributes(self):
    ...         return {"numbers": self.numbers}
    ...     def _after_reading(self):
    ...         self.squares = [each * each for each in self.numbers]
    >>> Squares([1, 2])._kept_attributes()
    {'numbers': [1, 2]}
    """

    __slots__ = ()

    def _kept_attributes(self) -> dict[str, Any]:
        """Return the attributes that a file keeps; by default all."""
        return attributes_of(self)

    def _after_reading(self) -> None:
        """Make what a file did not keep, once all objects of the file are there."""


def attributes_of(value: Any) -> dict[str, Any]:
    """Return the attributes of an object, those in slots included.

    Raises
    ------
    UnkeptError
        The object has none that Python can see.

    Examples
    --------
    >>> attributes_of(UnsavableError())
    {}
    """
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
