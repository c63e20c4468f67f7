"""Find the hook in a plugin, and say exactly what is wrong when it is not there or malformed.

The check is the one pluggy makes; the common case is made without importing pluggy, whose start
would double a child's. Where something is wrong, pluggy itself provides the sentence.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from probe_core.api import SampleRequest

    Hook = Callable[[object], Any]

__all__ = [
    "HOOK",
    "MARK",
    "SAMPLES",
    "HookError",
    "OpenSampler",
    "find_hook",
    "find_sampler",
    "load_hook",
    "load_plugin",
]

HOOK = "probe_devices"
OPEN, SAMPLES, CLOSE = "open_sampler", "sample_devices", "sample_close"
MARK = "probe_core_impl"
_SAMPLER_HINT = "return an object with sample() and close(), or not_applicable(reason)"
_OF_A_ROUND = ("asleep", "avoid", "deadline_s", "round")
_VARIADIC = 0x04 | 0x08  # CO_VARARGS and CO_VARKEYWORDS of inspect, which takes 14 ms to import


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


def find_sampler(plugin: Any, target: str) -> Callable[[SampleRequest], OpenSampler | Any] | None:
    """Return what opens the plugin's sampler, by whichever hook it has; None where it has none.

    What it returns is an `OpenSampler`, or the plugin's `NotApplicable`. Raises `HookError`, also
    when the plugin returns something else.
    """
    if callable(getattr(plugin, OPEN, None)):
        opens = find_hook(plugin, target, OPEN)
        return lambda request: _opened(opens(request), request)
    if callable(getattr(plugin, SAMPLES, None)):
        sample = find_hook(plugin, target, SAMPLES)
        return lambda request: OpenSampler(sample, getattr(plugin, CLOSE, None))
    return None


class OpenSampler:
    """A sampler between two rounds, in the one form for both hooks: `sample` and `close`."""

    __slots__ = ("_close", "sample")

    def __init__(self, sample: Hook, close: Any) -> None:
        self.sample = sample
        self._close = close

    def close(self) -> None:
        """Have the plugin close what it opened, if it has something for that."""
        if callable(self._close):
            self._close()


def _opened(sampler: Any, request: SampleRequest) -> OpenSampler | Any:
    """Return what `open_sampler` returned, ready for the rounds; raises `HookError`."""
    from probe_core.api import NotApplicable
    from probe_core.isolation.wire import type_name

    if isinstance(sampler, NotApplicable):
        return sampler
    sample = getattr(sampler, "sample", None)
    if isinstance(sampler, type) or not callable(sample):
        kind = "the class itself" if isinstance(sampler, type) else type_name(sampler)
        raise HookError(f"{OPEN} returned {kind}; {_SAMPLER_HINT}")
    takes_request = _takes_argument(sample)

    def sample_round(now: Any) -> Any:
        # One request for all rounds: an author may keep the one that the sampler was opened with.
        for fact in _OF_A_ROUND:
            setattr(request, fact, getattr(now, fact))
        return sample(request) if takes_request else sample()

    return OpenSampler(sample_round, getattr(sampler, "close", None))


def _takes_argument(function: Any) -> bool:
    """Return whether a function or bound method may be called with one argument."""
    code = getattr(function, "__code__", None)
    if code is None:  # no Python function: it is called as specified
        return True
    bound = getattr(function, "__self__", None) is not None
    return code.co_argcount > bound or bool(code.co_flags & _VARIADIC)


def _argument_names(function: Any) -> tuple[str, ...] | None:
    """Return the names of the required arguments of a plain function or method."""
    code = getattr(function, "__code__", None)
    # No Python function; *args or **kwargs, as a decorator's wrapper has; keyword-only arguments.
    if code is None or code.co_flags & _VARIADIC or code.co_kwonlyargcount:
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
