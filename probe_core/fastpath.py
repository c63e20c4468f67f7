"""What is taken from private modules of CPython; nothing else imports one.

A command lives for thirty milliseconds, and a public module may take five of them for classes that
nobody asks for here: `json` imports re, `signal` enum, `hashlib` OpenSSL. The C code below them is
private, so a release may change or drop it. Everything here has a public twin, which is taken on
any surprise whatever: a fast path may cost time, never an answer.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    from collections.abc import Callable
    from typing import Any

    Scan = Callable[[str, int], tuple[Any, int]]

__all__ = [
    "blake2s",
    "call_c",
    "extension_suffixes",
    "json_encoder",
    "json_quoter",
    "json_scanner",
    "native_id",
    "new_lock",
    "new_reentrant_lock",
    "plain_finders",
    "run_exit_handlers",
    "signal",
    "start_thread",
    "thread_id",
]


class _Decoder:
    """What the C scanner asks of a decoder: the defaults of `json.loads` but for some hooks."""

    strict = True
    parse_float = float
    parse_int = int

    def __init__(self, **hooks: Callable[[str], object]) -> None:
        vars(self).update(hooks)

    def __getattr__(self, name: str) -> None:
        """Have no hook, of whatever name: each release may ask for one more."""


def json_scanner(
    parse_constant: Callable[[str], object], **numbers: Callable[[str], object]
) -> Scan | None:
    """Return what reads a JSON value in a text from a place on; None where `json` must do it.

    `parse_constant` makes a value of NaN, Infinity and -Infinity, as for `json.loads`; `numbers`
    are `parse_int` and `parse_float`, where they are not its defaults.
    """
    try:
        from _json import make_scanner

        decoder: Any = _Decoder(parse_constant=parse_constant, **numbers)
        scan: Scan = make_scanner(decoder)
        if scan('{"a": [1, null, "b"]}', 0) == ({"a": [1, None, "b"]}, 21):
            return scan
    except Exception:
        pass
    return None


def json_quoter() -> Callable[[str], str]:
    """Return what makes JSON in ASCII of a text."""
    try:
        from _json import encode_basestring_ascii

        if encode_basestring_ascii("é\n") == r'"\u00e9\n"':
            return encode_basestring_ascii
    except Exception:
        pass
    import json

    return json.JSONEncoder().encode


def json_encoder(quote: Callable[[str], str]) -> Callable[[object, int], tuple[str, ...]]:
    """Return what encodes a value in pieces; raises whatever a release does not have.

    `quote` makes JSON of a text.
    """
    from _json import make_encoder

    # Without a memory of lists and tables: one that holds itself ends as too deep.
    return make_encoder(None, _refuse, quote, None, ": ", ", ", False, False, True)


def _refuse(value: object) -> object:
    raise TypeError(f"a {type(value).__name__} is not JSON")


def _signals() -> Any:
    """Return the functions and numbers of `signal`, without the enums that it builds."""
    try:
        import _signal  # type: ignore[import-not-found]

        if _signal.getsignal(_signal.SIGTERM) is not Ellipsis and _signal.valid_signals():
            return _signal
    except Exception:
        pass
    import signal

    return signal


def _threads() -> tuple[Any, Any, Any, Any, Any]:
    """Return what starts a thread, makes locks, and names this thread to the kernel and to us."""
    try:
        import _thread

        with _thread.allocate_lock(), _thread.RLock():
            if _thread.get_native_id() > 0 and _thread.get_ident():
                locks, own = (_thread.allocate_lock, _thread.RLock), _thread.get_ident
                return _thread.start_new_thread, *locks, _thread.get_native_id, own
    except Exception:
        pass
    import threading

    locks, own = (threading.Lock, threading.RLock), threading.get_ident
    return _start_by_threading, *locks, threading.get_native_id, own


def _start_by_threading(function: Callable[..., object], arguments: tuple[object, ...]) -> None:
    import threading

    threading.Thread(target=function, args=arguments, daemon=True).start()


# Chosen here and not at each call: there a handler of the host's signals may raise, which must not
# look as if the function had failed.
_start_new_thread, new_lock, new_reentrant_lock, native_id, thread_id = _threads()
if not TYPE_CHECKING:
    signal = _signals()


def start_thread(function: Callable[..., object], *arguments: object) -> None:
    """Call a function in a new thread, which ends with the process at the latest.

    Raises `RuntimeError` where there is no room for one.
    """
    try:
        _start_new_thread(function, arguments)
    except TypeError:  # it wants other arguments: no thread was started
        _start_by_threading(function, arguments)


def call_c(name: str, *arguments: int | bytes) -> int:
    """Call a function of the C library with integers and bytes; -1 where there is none such."""
    try:
        # 1.4 million instructions instead of 16.2 with ctypes (callgrind, CPython 3.11), in each
        # prober's supervisor, of the 28 that a bare interpreter takes.
        import _ctypes

        loaded = _ctypes.dlopen(None, 0)  # type: ignore[arg-type]  # None: this process itself
        return int(_ctypes.call_cdeclfunction(_ctypes.dlsym(loaded, name), arguments))
    except Exception:
        pass
    try:
        import ctypes

        return int(ctypes.CDLL(None)[name](*arguments))
    except Exception:  # another system, a C library without it, a Python without ctypes
        return -1


def blake2s(data: bytes, key: bytes, size: int) -> str:
    """Return the keyed hash of some bytes as hexadecimal digits, two for each byte of `size`."""
    try:  # hashlib loads OpenSSL, which takes longer than the rest of a probe without GPUs
        from _blake2 import blake2s as private

        return private(data, key=key, digest_size=size).hexdigest()
    except Exception:
        from hashlib import blake2s as public

        return public(data, key=key, digest_size=size).hexdigest()


def extension_suffixes() -> tuple[str, ...]:
    """Return the ends of the names of extension modules, as this interpreter tries them."""
    try:
        from _imp import extension_suffixes as listed

        return tuple(listed())
    except Exception:
        from importlib.machinery import EXTENSION_SUFFIXES

        return tuple(EXTENSION_SUFFIXES)


def plain_finders() -> tuple[object, ...]:
    """Return the finders of modules that each interpreter has, before anybody adds one."""
    try:
        import _frozen_importlib
        import _frozen_importlib_external

        names = _frozen_importlib.BuiltinImporter, _frozen_importlib.FrozenImporter
        found = (*names, _frozen_importlib_external.PathFinder)
        if all(isinstance(finder, type) for finder in found):
            return found
    except Exception:
        pass
    from importlib.machinery import BuiltinImporter, FrozenImporter, PathFinder

    return BuiltinImporter, FrozenImporter, PathFinder


def run_exit_handlers() -> bool:
    """Call what `atexit` was given; return False where only the interpreter's end can do it."""
    import atexit

    try:
        atexit._run_exitfuncs()
    except Exception:  # what the handlers themselves raise, it prints
        return False
    return True
