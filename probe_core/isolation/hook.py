"""Find the hook in a plugin, and say exactly what is wrong when it is not there or malformed.

The check is the one pluggy makes; the common case is made without importing pluggy, whose start
would double a child's. Where something is wrong, pluggy itself provides the sentence.
"""

from __future__ import annotations

import sys

from probe_core.api import NotApplicable, Unavailable
from probe_core.isolation import MAX_DEVICES, MAX_FINDINGS
from probe_core.isolation.wire import type_name
from probe_core.wording import INVALID, clean_text, error_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    Hook = Callable[[object], Any]
    End = tuple[str, str | None, dict[str, object]]


HOOK = "probe_devices"
OPEN, SAMPLES, CLOSE = "open_sampler", "sample_devices", "sample_close"
MARK = "probe_core_impl"
VARIADIC = 0x04 | 0x08  # CO_VARARGS and CO_VARKEYWORDS of inspect, which takes 14 ms to import


class HookError(Exception):
    """The plugin loads, but does not implement the hook as specified."""


def load_hook(target: str) -> Hook:
    """Import ``module`` or ``module:attribute`` and return its hook.

    Raises `HookError`, and whatever the import raises.
    """
    return find_hook(load_plugin(target), target)


def load_plugin(target: str) -> Any:
    """Import ``module`` or ``module:attribute``; a class is instantiated without arguments."""
    name, _, attribute = target.partition(":")
    plugin = __import__(name, fromlist=[HOOK])
    for part in filter(None, attribute.split(".")):
        plugin = getattr(plugin, part)
    return plugin() if isinstance(plugin, type) else plugin


class Origin:
    """A finder of ``sys.meta_path`` that imports a plugin's top level from one folder alone.

    That is where it was found and, for root, checked. An earlier folder of the path may have a
    module of the same name, by somebody else.
    """

    def __init__(self, target: str, folder: str) -> None:
        self._name = target.partition(":")[0].partition(".")[0]
        self._folder = folder

    def find_spec(self, name: str, path: object = None, target: object = None) -> Any:
        if path is not None or name != self._name:
            return None
        others = (finder for finder in sys.meta_path if finder is not self)
        specs = (finder.find_spec(name, [self._folder], None) for finder in others)
        spec = next((spec for spec in specs if spec is not None), None)
        if spec is not None and spec.origin is None and spec.submodule_search_locations:
            # A namespace package, which would take in the portions of all other folders.
            spec.submodule_search_locations = [f"{self._folder}/{name}"]
        return spec


def find_hook(plugin: Any, target: str, name: str = HOOK) -> Hook:
    """Return the plugin's hook of that name, ready to be called with a request.

    A class is instantiated without arguments. Raises `HookError`.
    """
    if isinstance(plugin, type):
        plugin = plugin()
    function = getattr(plugin, name, None)
    if function is None:
        raise HookError(f"{target} has no {name}{_misspelt(plugin)}")
    if not callable(function):
        raise HookError(f"{name} of {target} is a {type(function).__name__}, not a function")
    mark = getattr(function, MARK, None)
    if not isinstance(mark, dict):
        raise HookError(f"{name} of {target} lacks the @hookimpl mark of probe_core.api")
    if mark.get("wrapper") or mark.get("hookwrapper"):
        raise HookError(f"{name} of {target} is a wrapper; a prober wraps no other's call")
    names = _argument_names(function)
    if names is None or names not in ((), ("request",)):
        names = _names_by_pluggy(plugin, target, name)
    hook: Hook = function if names else lambda request: function()
    return hook


def _argument_names(function: Any) -> tuple[str, ...] | None:
    """Return the names of the required arguments of a plain function or method."""
    code = getattr(function, "__code__", None)
    # No Python function; *args or **kwargs, as a decorator's wrapper has; keyword-only arguments.
    if code is None or code.co_flags & VARIADIC or code.co_kwonlyargcount:
        return None
    names: tuple[str, ...] = code.co_varnames[: code.co_argcount]
    defaults = getattr(function, "__defaults__", None) or ()
    names = names[: len(names) - len(defaults)] if defaults else names
    bound = getattr(function, "__self__", None) is not None
    return names[1:] if bound else names


def _misspelt(plugin: Any) -> str:
    for name in dir(plugin):
        if name in (OPEN, SAMPLES, CLOSE):
            continue
        if isinstance(getattr(getattr(plugin, name, None), MARK, None), dict):
            return f": {name!r} is marked as a hook, but the hook's name is {HOOK!r}"
    return ": it needs a function of that name, marked with @hookimpl of probe_core.api"


def _names_by_pluggy(plugin: Any, target: str, name: str) -> tuple[str, ...]:
    """Return the arguments that pluggy finds; raises `HookError` with its sentence."""
    import pluggy

    from probe_core import hookspecs

    manager = pluggy.PluginManager("probe_core")
    manager.add_hookspecs(hookspecs)
    try:
        manager.register(plugin, target)
        manager.check_pending()
    except pluggy.PluginValidationError as error:
        raise HookError(" ".join(str(error).split())) from None
    for hook in getattr(manager.hook, name).get_hookimpls():
        return tuple(hook.argnames)
    raise HookError(f"{name} of {target} is no plain function: write `def {name}(request)`")


# Turn whatever a prober returned into frames and a status, naming each way to get it wrong.

_HINT = "return a list, yield devices, or return not_applicable(reason)"


class Answers:
    """Sends one prober's devices and findings, and counts them."""

    __slots__ = ("_devices", "_findings", "_send")

    def __init__(self, send: Callable[..., None]) -> None:
        self._send = send
        self._devices = 0
        self._findings = 0

    def take(self, function: Callable[..., Any], request: object) -> End:
        """Call the prober and send its answer; returns (status, reason, details).

        What the prober raises, also midway through a generator, is the caller's to name.
        """
        answer = function(request)
        if isinstance(answer, NotApplicable):
            return _not_applicable(answer)
        if (problem := _problem(answer)) is not None:
            return "invalid", problem, {}
        iterator = iter(answer)
        while True:
            try:
                item = next(iterator)
            except StopIteration as stop:
                return self._finish(stop.value)
            if isinstance(item, NotApplicable):
                return self._finish(item)
            if not self._send_item(item):
                return "resource", f"more than {MAX_DEVICES} devices", {}

    def _finish(self, last: object) -> End:
        """Return the end of an answer; `last` is a generator's return value, or its sentinel."""
        if isinstance(last, NotApplicable) and not self._devices:
            return _not_applicable(last)
        if not self._devices and not self._findings:
            return "not_applicable", "it found no devices", {}
        return "ok", None, {}

    def _send_item(self, item: object) -> bool:
        """Send one item; False when there were too many."""
        device = plain(item)
        if type(device) is dict and "finding" in device:
            self._findings += 1
            if self._findings <= MAX_FINDINGS:
                self._send("finding", finding=device["finding"])
            return True
        self._devices += 1
        if self._devices > MAX_DEVICES:
            return False
        self._send("device", device=device)
        return True


def plain(item: object) -> object:
    """Return a mapping as a dict; anything else as it is, for the encoder to mark.

    A mapping that raises while it is read costs itself, not the devices after it.
    """
    if type(item) is dict:
        return item
    try:
        keys = getattr(item, "keys", None)
        return dict(item) if callable(keys) else item  # type: ignore[call-overload]
    except Exception as error:
        return {INVALID: f"{type_name(error)} while reading a {type_name(item)}"}


def _not_applicable(answer: NotApplicable) -> End:
    reason = answer.reason
    if type(reason) is not str or not reason.strip():
        return "invalid", "not_applicable() needs a reason for people", {}
    return "not_applicable", reason, {}


def _problem(answer: object) -> str | None:
    """Return what is wrong with an answer that is no collection of devices."""
    if answer is None:
        return f"it returned None; {_HINT}"
    if isinstance(answer, (str, bytes, bytearray)):
        return f"it returned {type_name(answer)}; {_HINT}"
    if isinstance(answer, dict):
        return f"it returned one mapping; put devices in a list: {_HINT}"
    if hasattr(answer, "__await__") or hasattr(answer, "__aiter__"):
        close = getattr(answer, "close", None)
        if callable(close):
            close()  # or Python warns that it was never awaited
        return f"it returned a {type_name(answer)}; a prober is a plain function: {_HINT}"
    if isinstance(answer, type) or not hasattr(answer, "__iter__"):
        return f"it returned {type_name(answer)}; {_HINT}"
    return None


def failure(error: BaseException) -> End:
    """Return the end of a prober that raised."""
    if isinstance(error, Unavailable):
        details: dict[str, object] = {"code": _text(error.code), "fix": _text(error.fix)}
        return "unavailable", clean_text(_text(error.reason) or "no reason given", 1024), details
    if isinstance(error, MemoryError):
        return "resource", "it ran out of memory", {}
    if isinstance(error, SystemExit):
        return "call_error", f"it called sys.exit({_text(repr(error.code))})", {}
    return "call_error", error_text(error), {}


def _text(value: object) -> str | None:
    """Return text as it is, and of anything else the name of its type; None stays None."""
    return value if type(value) is str else None if value is None else type(value).__name__
