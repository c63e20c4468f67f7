"""The child's side of sampling: one module, asked again and again until nobody asks any more."""

from __future__ import annotations

import gc

from probe_core.api import NotApplicable, SampleRequest
from probe_core.isolation import child, confine
from probe_core.isolation.answers import failure, plain
from probe_core.isolation.hook import CLOSE, SAMPLES, find_hook, load_plugin
from probe_core.isolation.start import read_exactly
from probe_core.isolation.wire import MAX_DEVICES, type_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from probe_core.isolation.child import Channel
    from probe_core.isolation.hook import Hook
    from probe_core.isolation.messages import RequestMessage, RoundMessage

    Answer = tuple[str, str | None, dict[str, object]]

__all__ = ["serve"]

_HINT = "yield samples, or return not_applicable(reason)"


def serve(request: RequestMessage, first: RoundMessage, channel: Channel, fd: int) -> None:
    """Answer the first round, then each that comes through the request pipe."""
    plugin = child.load(request["target"], channel, load_plugin)
    gc.enable()
    if plugin is None:
        return
    if not callable(getattr(plugin, SAMPLES, None)):
        child.end(channel, "not_applicable", f"{request['target']} has no {SAMPLES}")
        return
    function = child.load(request["target"], channel, lambda target: _hook(plugin, target))
    if function is None:
        return
    channel.send("loaded")
    served = _Served(request, channel, function)
    message = first
    while not message["close"]:
        served.answer(message)
        confine.unlimited()
        message = _next_message(fd)
        confine.limit_round(message["seconds"])
    _close(plugin)
    child.end(channel, "ok")


def _hook(plugin: Any, target: str) -> Hook:
    return find_hook(plugin, target, SAMPLES)


def _next_message(fd: int) -> RoundMessage:
    """Wait for what comes next; the process ends when the parent's end of the pipe closes."""
    import marshal

    message: RoundMessage = marshal.loads(read_exactly(fd, int(read_exactly(fd, 8), 16)))
    return message


def _close(plugin: Any) -> None:
    close = getattr(plugin, CLOSE, None)
    if callable(close):
        try:
            close()
        except Exception as error:  # the process ends anyway
            child.print_traceback(error)


class _Served:
    """A loaded sampler and whom it answers."""

    __slots__ = ("_channel", "_function", "_machine", "_request")

    def __init__(self, request: RequestMessage, channel: Channel, function: Hook) -> None:
        self._request = request
        self._channel = channel
        self._function = function
        self._machine = child.machine_of(request)

    def answer(self, message: RoundMessage) -> None:
        """Ask the sampler once, and send each sample as it is yielded."""
        try:
            status, reason, details = self._take(self._function(self._asked(message)))
        except BaseException as error:
            status, reason, details = failure(error)
            if status == "call_error":
                child.print_traceback(error)
        number = message["number"]
        self._channel.send("round", number=number, status=status, reason=reason, **details)

    def _asked(self, message: RoundMessage) -> SampleRequest:
        return SampleRequest(
            self._machine,
            self._request["bus"],
            active=self._request["active"],
            deadline_s=message["seconds"],
            avoid=message["avoid"],
            asleep=message["asleep"],
            number=message["number"],
            announce=self._channel.announce,
        )

    def _take(self, answer: object) -> Answer:
        """Send what the sampler yields; returns (status, reason, details)."""
        if isinstance(answer, NotApplicable):
            return "not_applicable", answer.reason, {}
        if answer is None or isinstance(answer, (str, bytes, dict)):
            return "invalid", f"it returned {type_name(answer)}; {_HINT}", {}
        if not hasattr(answer, "__iter__"):
            return "invalid", f"it returned {type_name(answer)}; {_HINT}", {}
        sent = 0
        iterator = iter(answer)
        while True:
            try:
                item = next(iterator)
            except StopIteration as stop:
                if isinstance(stop.value, NotApplicable) and not sent:
                    return "not_applicable", stop.value.reason, {}
                return "ok", None, {}
            sent += 1
            if sent > MAX_DEVICES:
                return "resource", f"more than {MAX_DEVICES} samples", {}
            self._send(plain(item))

    def _send(self, item: object) -> None:
        if type(item) is dict and "finding" in item:
            self._channel.send("finding", finding=item["finding"])
        else:
            self._channel.send("sample", sample=item)
