"""The C types of NVML's calls, and its library, from the module that ctypes itself is built on.

Importing ctypes takes 16 million instructions, a third of a prober's process: it defines 18 types,
their byte-swapped twins and more. NVML's calls need five types, and six million instructions less.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ctypes import CDLL as Library
    from ctypes import Structure, Union, byref, c_char, c_ubyte, c_uint, c_ulonglong, c_void_p
else:
    import _ctypes  # Windows' has no dlopen; nvidia-ml-py calls NVML there
    from _ctypes import FUNCFLAG_CDECL, CFuncPtr, Structure, Union, _SimpleCData, byref

    class c_char(_SimpleCData):
        """One byte of text."""

        _type_ = "c"

    class c_ubyte(_SimpleCData):
        """A number of eight bits."""

        _type_ = "B"

    class c_uint(_SimpleCData):
        """A number of 32 bits; NVML's `int` and its enums, which are never negative, too."""

        _type_ = "I"

    class c_ulonglong(_SimpleCData):
        """A number of 64 bits."""

        _type_ = "Q"

    class c_void_p(_SimpleCData):
        """A pointer, as device handles are."""

        _type_ = "P"

    class _Function(CFuncPtr):
        _flags_ = FUNCFLAG_CDECL
        _restype_ = c_uint

    class Library:
        """A library; its functions are its attributes, and return a code."""

        def __init__(self, name):
            """Load the library as `ctypes.CDLL` does; raises `OSError`."""
            self._handle = _ctypes.dlopen(name, 0)

        def __getattr__(self, symbol):
            """Return a function, which is kept; raises `AttributeError` where there is none."""
            function = _Function((symbol, self))
            setattr(self, symbol, function)
            return function


__all__ = [
    "Library",
    "Structure",
    "Union",
    "byref",
    "c_char",
    "c_ubyte",
    "c_uint",
    "c_ulonglong",
    "c_void_p",
]
