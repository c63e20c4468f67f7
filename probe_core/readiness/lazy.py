"""A property that is worked out when it is first asked for, and then remembered.

`functools.cached_property` does the same. Importing functools, and collections with it, takes 14
million instructions (callgrind, CPython 3.11), where the report of eight GPUs takes 120.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from functools import cached_property as lazy
else:

    class lazy:
        """Descriptor without `__set__`: the value in the instance's own dictionary goes first."""

        def __init__(self, read):
            self._read = read
            self.__doc__ = read.__doc__

        def __set_name__(self, owner, name):
            self._name = name

        def __get__(self, instance, owner=None):
            if instance is None:
                return self
            value = instance.__dict__[self._name] = self._read(instance)
            return value


__all__ = ["lazy"]
