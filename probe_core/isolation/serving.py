"""The child's side of sampling: one module, asked again and again until nobody asks any more.

Imported where a sampler runs: a probe asks none.
"""

from __future__ import annotations

from probe_core.api import NotApplicable, SampleRequest
from probe_core.isolation import MAX_DEVICES, confine
from probe_core.isolation.child import collect, end, load, machine_of, print_traceback
from probe_core.isolation.hook import (
    CLOSE,
    OPEN,
    SAMPLES,
    VARIADIC,
    HookError,
    failure,
    find_hook,
    load_plugin,
    plain,
)
from probe_core.isolation.start import read_exactly
from probe_core.isolation.wire import type_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from probe_core.isolation.child import Channel
    from probe_core.isolation.hook import Hook
    from probe_core.isolation.messages import RequestMessage, RoundMessage

    Answer = tuple[str, str | None, dict[str, object]]


_OBJECT_HINT = "return an object with sample() and close(), or not_applicable(reason)"
_ITEMS_HINT = "yield samples, or return not_applicable(reason)"
_OF_A_ROUND = ("asleep", "avoid", "deadline_s", "round")


def serve(request: RequestMessage, first: RoundMessage, channel: Channel, fd: int) -> None:
    """Answer the first round, then each that comes through the request pipe."""
    plugin = load(request["target"], channel, load_plugin)
    collect()
    if plugin is None:
        return
    found = load(request["target"], channel, lambda target: (find_sampler(plugin, target),))
    if found is None:
        return
    (opens,) = found
    if opens is None:
        end(channel, "not_applicable", f"{request['target']} has no {SAMPLES}")
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
    end(channel, "ok")


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
        self._machine = machine_of(request)

    def answer(self, message: RoundMessage) -> None:
        """Ask the sampler once, and send each sample as it is yielded."""
        try:
            status, reason, details = self._take(self._sample(self._request_of(message)))
        except HookError as error:
            status, reason, details = "invalid", str(error), {}
        except BaseException as error:
            status, reason, details = failure(error)
            if status == "call_error":
                print_traceback(error)
        number = message["number"]
        self._channel.send("round", number=number, status=status, reason=reason, **details)

    def close(self) -> None:
        """Have the plugin close what it opened."""
        if self._sampler is not None:
            try:
                self._sampler.close()
            except Exception as error:  # the process ends anyway
                print_traceback(error)

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
        if isinstance(answer, (str, bytes, dict)) or not hasattr(answer, "__iter__"):
            return "invalid", f"it returned {type_name(answer)}; {_ITEMS_HINT}", {}
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


# The plugin's hook for live figures, in the one form that a round asks.


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
    if isinstance(sampler, NotApplicable):
        return sampler
    sample = getattr(sampler, "sample", None)
    if isinstance(sampler, type) or not callable(sample):
        kind = "the class itself" if isinstance(sampler, type) else type_name(sampler)
        raise HookError(f"{OPEN} returned {kind}; {_OBJECT_HINT}")
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
    return code.co_argcount > bound or bool(code.co_flags & VARIADIC)
