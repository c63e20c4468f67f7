"""The child's side of sampling: one module, asked again and again until nobody asks any more."""

from __future__ import annotations

import gc

from probe_core.api import NotApplicable, SampleRequest
from probe_core.isolation import child, confine
from probe_core.isolation.answers import failure, plain
from probe_core.isolation.hook import SAMPLES, HookError, find_sampler, load_plugin
from probe_core.isolation.start import read_exactly
from probe_core.isolation.wire import MAX_DEVICES, type_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from probe_core.isolation.child import Channel
    from probe_core.isolation.hook import OpenSampler
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
    found = child.load(request["target"], channel, lambda target: (find_sampler(plugin, target),))
    if found is None:
        return
    (opens,) = found
    if opens is None:
        child.end(channel, "not_applicable", f"{request['target']} has no {SAMPLES}")
        return
    channel.send("loaded")
    served = _Served(request, channel, opens)
    message = first
    while not message["close"]:
        served.answer(message)
        confine.unlimited()
        message = _next_message(fd)
        confine.limit_round(message["seconds"])
    served.close()
    child.end(channel, "ok")


def _next_message(fd: int) -> RoundMessage:
    """Wait for what comes next; the process ends when the parent's end of the pipe closes."""
    import marshal

    message: RoundMessage = marshal.loads(read_exactly(fd, int(read_exactly(fd, 8), 16)))
    return message


class _Served:
    """A plugin's sampler, opened in the first round that gets so far, and whom it answers."""

    __slots__ = ("_channel", "_machine", "_opens", "_request", "_sampler")

    def __init__(
        self, request: RequestMessage, channel: Channel, opens: Callable[[SampleRequest], Any]
    ) -> None:
        self._request = request
        self._channel = channel
        self._opens = opens
        self._sampler: OpenSampler | None = None
        self._machine = child.machine_of(request)

    def answer(self, message: RoundMessage) -> None:
        """Ask the sampler once, and send each sample as it is yielded."""
        try:
            status, reason, details = self._take(self._sample(self._request_of(message)))
        except HookError as error:
            status, reason, details = "invalid", str(error), {}
        except BaseException as error:
            status, reason, details = failure(error)
            if status == "call_error":
                child.print_traceback(error)
        number = message["number"]
        self._channel.send("round", number=number, status=status, reason=reason, **details)

    def close(self) -> None:
        """Have the plugin close what it opened."""
        if self._sampler is not None:
            try:
                self._sampler.close()
            except Exception as error:  # the process ends anyway
                child.print_traceback(error)

    def _sample(self, request: SampleRequest) -> object:
        """Return the sampler's answer, or the plugin's that it has none to open."""
        if self._sampler is None:
            opened = self._opens(request)
            if isinstance(opened, NotApplicable):
                return opened
            self._sampler = opened
        return self._sampler.sample(request)

    def _request_of(self, message: RoundMessage) -> SampleRequest:
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
