"""Turn whatever a prober returned into frames and a status, naming each way to get it wrong."""

from __future__ import annotations

from probe_core.api import NotApplicable, Unavailable
from probe_core.isolation.wire import MAX_DEVICES, MAX_FINDINGS, type_name
from probe_core.wording import INVALID, clean_text, error_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    End = tuple[str, str | None, dict[str, object]]

__all__ = ["Answers", "failure", "plain"]

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
