"""What an endpoint serves: the last report and the last round of samples, in the format asked for.

A scrape waits for nothing: a report that has become old is made anew beside it, and is there for
the next one. So a driver that hangs costs a scrape neither time nor the figures of other devices.
"""

from __future__ import annotations

import os
import signal
import threading
from contextlib import suppress
from time import monotonic, sleep
from typing import Generic, TypeVar

from probe_core.commands import CommandError
from probe_export import ExportError, pods
from probe_export.prometheus import SUFFIXES, facts, figures, identities, labels
from probe_export.rhythm import PIECE_S
from probe_export.serve import Endpoint, NotYet, address

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from typing import Any

    from probe_core.commands import Context
    from probe_core.model.document import ReportDoc, SampleDoc
    from probe_export.prometheus import Family, Labels
    from probe_export.serve import Answer

__all__ = ["Metrics", "Renewed", "answering", "serve_node", "serve_text"]

MAX_AGE_S = 15.0
"""Seconds after which a report is made anew; Prometheus scrapes every 15 s to 1 min."""

_INTERVAL_S = 5.0
"""Seconds between two rounds of `probe export`: three in the shortest usual scrape interval."""


T = TypeVar("T")


class Renewed(Generic[T]):
    """The last value that `make` returned; when it is old, a thread makes the next."""

    def __init__(self, make: Callable[[], T], max_age: float = MAX_AGE_S) -> None:
        self._make = make
        self._max_age = max_age
        self._lock = threading.Lock()
        self._value: T | None = None
        self._failed = False
        self._due = 0.0

    def current(self) -> T | None:
        """Return the last value, None before the first; never waits. Raises after a failure."""
        with self._lock:
            if monotonic() >= self._due:
                # Nobody else begins while this one is at work, however long it takes.
                self._due = float("inf")
                threading.Thread(target=self._renew, daemon=True).start()
            if self._failed:
                raise ExportError("the last attempt failed")
            return self._value

    def _renew(self) -> None:
        value, failed = None, True
        try:
            value, failed = self._make(), False
        except Exception:  # `make` has said so; the next scrape tries again
            pass
        finally:
            with self._lock:
                self._value, self._failed = value if not failed else self._value, failed
                self._due = monotonic() + (0 if failed else self._max_age)


class Metrics:
    """The series of this node.

    `more` returns families beside those of the samples: it gets the labels of each by its id.
    """

    def __init__(
        self,
        report: Callable[[], ReportDoc],
        *,
        with_uuids: bool = False,
        more: Callable[[Mapping[str, Labels]], list[Family]] | None = None,
    ) -> None:
        self._report = Renewed(report)
        self._pods = Renewed(pods.listed) if os.path.exists(pods.SOCKET) else None
        self.with_uuids = with_uuids
        self._more = more
        self._round: tuple[float, Sequence[SampleDoc]] | None = None
        self._encoded: dict[str, tuple[object, bytes]] = {}

    def publish(self, time: float, samples: Sequence[SampleDoc]) -> None:
        """Take a round that began at `time`, in seconds since 1970."""
        if self._round is None:
            self._last_report()  # so that the first scrape may have it
        self._round = time, list(samples)

    def text(self, accept: str) -> tuple[bytes, str]:
        """Return the series in the format of an Accept header, and its content type.

        Raises `NotYet` before the first round.
        """
        from prometheus_client.exposition import choose_encoder

        if self._round is None:
            raise NotYet
        encode, kind = choose_encoder(accept)
        report = self._last_report()
        before = self._encoded.get(kind)
        if report is not None and (before is None or before[0] is not report):
            # Facts are half of the text, and stay as they are from scrape to scrape.
            body = encode(_Families(facts(report, with_uuids=self.with_uuids)))
            before = self._encoded[kind] = report, body.removesuffix(b"# EOF\n")
        head = before[1] if report is not None and before is not None else b""
        return head + encode(_Families(self._live(report))), kind

    def _last_report(self) -> ReportDoc | None:
        try:
            return self._report.current()
        except ExportError:
            return None  # its figures are served without its facts

    def _live(self, report: ReportDoc | None) -> list[Family]:
        assert self._round is not None
        began, samples = self._round
        families = figures(report, samples)
        if samples:
            about = "When these figures were asked for."
            families.append(("probecore_sample_time_seconds", "gauge", about, [({}, began)]))
        if report is not None and self._pods is not None:
            with suppress(ExportError):
                families += pods.families(self._pods.current() or (), identities(report))
        return families + (self._more(labels(report, samples)) if self._more else [])


class _Families:
    """Families as a collector of prometheus_client."""

    def __init__(self, families: list[Family]) -> None:
        self._families = families

    def collect(self) -> Iterator[Any]:
        from prometheus_client.metrics_core import Metric
        from prometheus_client.samples import Sample

        for name, kind, about, rows in self._families:
            metric = Metric(name, about, kind)
            suffixed = name + SUFFIXES[kind]
            metric.samples = [
                Sample(suffixed, own, float(value)) for own, value in rows if value is not None
            ]
            yield metric


def serve_text(place: str, make: Callable[[], str], kind: str, context: Context) -> None:
    """Serve the text of another format, of content type `kind`, until a signal ends it."""
    with Endpoint(address(place), answering(make, kind)) as endpoint, _Ending():
        _announce(endpoint, context)
        _wait()


def answering(make: Callable[[], str], kind: str) -> Answer:
    """Return what serves the text that `make` returns; the first is begun at once."""
    texts = Renewed(lambda: make().encode())
    texts.current()

    def answer(accept: str) -> tuple[bytes, str]:
        body = texts.current()
        if body is None:
            raise NotYet
        return body, kind

    return answer


def serve_node(args: argparse.Namespace, context: Context) -> None:
    """Serve the facts and figures of this node until a signal ends it."""

    def report() -> ReportDoc:
        try:
            return context.report()
        except CommandError as error:
            context.err(f"probe export: {error}")
            raise

    metrics = Metrics(report)
    with Endpoint(address(args.listen), metrics.text) as endpoint, _Ending():
        metrics.with_uuids = endpoint.on_loopback
        _announce(endpoint, context)
        if args.machine is not None or args.static is not None:
            metrics.publish(0.0, ())  # what stands for another machine does nothing now
            _wait()
        with _rounds(args, context) as rounds:
            listed = rounds.listed()
            metrics.publish(listed.time, listed.samples)
            for current in rounds:
                metrics.publish(current.time, current.samples)


def _rounds(args: argparse.Namespace, context: Context) -> Any:
    import probe_core

    settings = {name: getattr(args, name) for name in ("disable", "timeout", "active", "config")}
    only = args.only
    if args.allow is not None:  # of the distributions; samplers are chosen by prober
        outcomes = context.report()["outcomes"]
        only = [o["prober"] for o in outcomes if o["status"] != "skipped"]
    try:
        return probe_core.samples(_INTERVAL_S, only=only, **settings)
    except probe_core.ConfigError as error:
        raise CommandError(str(error)) from None


def _wait() -> None:
    """Wait for a signal. In pieces: one that comes just before a system call interrupts none."""
    while True:
        sleep(PIECE_S)


def _announce(endpoint: Endpoint, context: Context) -> None:
    context.err(f"probe export: serving {endpoint.url}; Ctrl-C ends it")


class _Ending:
    """SIGTERM and Ctrl-C end the block, quietly; the handlers that were there are put back."""

    def __enter__(self) -> None:
        def end(number: int, frame: object) -> None:
            raise KeyboardInterrupt

        self._before = {n: signal.signal(n, end) for n in (signal.SIGTERM, signal.SIGINT)}

    def __exit__(self, kind: type[BaseException] | None, *exception: object) -> bool:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        return kind is KeyboardInterrupt
