"""What an endpoint serves: the last report and the last round of samples, in the format asked for.

A scrape waits for nothing: a report that has become old is made anew beside it, and is there for
the next one. So a driver that hangs costs a scrape neither time nor the figures of other devices.
"""

from __future__ import annotations

import os
import threading
from contextlib import contextmanager
from time import monotonic
from typing import Generic, TypeVar

from probe_core.commands import CommandError
from probe_export import ExportError, pods
from probe_export.ending import pause, until_signal
from probe_export.prometheus import SUFFIXES, facts, figures, identities, labels
from probe_export.serve import Endpoint, NotYet, address

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from typing import Any

    from probe_core.commands import Context
    from probe_core.model.document import ReportDoc, SampleDoc
    from probe_export.pods import Assignment
    from probe_export.prometheus import Family, Labels
    from probe_export.serve import Answer

    Encoder = Callable[[Any], bytes]

MAX_AGE_S = 15.0
"""Seconds after which a report is made anew; Prometheus scrapes every 15 s to 1 min."""

_MAX_FORMATS = 8

_INTERVAL_S = 5.0
"""Seconds between two rounds of `probe export`: three in the shortest usual scrape interval."""


T = TypeVar("T")


class Renewed(Generic[T]):
    """The last value that `make` returned; when it is old, a thread makes the next.

    `last` is None before the first. `failed` says that the last attempt brought none.
    """

    def __init__(self, make: Callable[[], T], max_age: float = MAX_AGE_S) -> None:
        self._make = make
        self._max_age = max_age
        self._lock = threading.Lock()
        self.last: T | None = None
        self.failed = False
        self._due = 0.0

    def begin(self) -> None:
        """Have the value made anew if it is old; never waits."""
        with self._lock:
            if monotonic() < self._due:
                return
            # Nobody else begins while this one is at work, however long it takes.
            self._due = float("inf")
        threading.Thread(target=self._renew, daemon=True).start()

    def _renew(self) -> None:
        value, failed = None, True
        try:
            value, failed = self._make(), False
        except Exception:  # `make` has said so; the next scrape tries again
            pass
        finally:
            with self._lock:
                self.last, self.failed = value if not failed else self.last, failed
                self._due = monotonic() + (0 if failed else self._max_age)


class Metrics:
    """The series of this node.

    `more` returns families beside those of the samples: it gets the labels of each by its id.
    `note` gets each reason why the pods are not known, once.
    """

    def __init__(
        self,
        report: Callable[[], ReportDoc],
        *,
        with_uuids: bool = False,
        more: Callable[[Mapping[str, Labels]], list[Family]] | None = None,
        note: Callable[[str], object] | None = None,
    ) -> None:
        self._report = Renewed(report)
        self._pods = Renewed(self._listed) if os.path.exists(pods.SOCKET) else None
        self._note, self._noted = note, set[str]()
        self.with_uuids = with_uuids
        self._more = more
        self._round: tuple[float, Sequence[SampleDoc]] | None = None
        self._written: dict[str, tuple[tuple[object, ...], bytes, bytes]] = {}
        """Content type to what its text was written from, its facts and its figures."""

    def _listed(self) -> list[Assignment]:
        try:
            return pods.listed()
        except ExportError as error:
            if self._note is not None and str(error) not in self._noted:
                self._noted.add(str(error))
                self._note(str(error))
            raise

    def publish(self, time: float, samples: Sequence[SampleDoc]) -> None:
        """Take a round that began at `time`, in seconds since 1970."""
        if self._round is None:
            self._report.begin()  # so that the first scrape may have it
        self._round = time, list(samples)

    def text(self, accept: str) -> tuple[bytes, str]:
        """Return the series in the format of an Accept header, and its content type.

        Raises `NotYet` before the first round.
        """
        from prometheus_client.exposition import choose_encoder

        if self._round is None:
            raise NotYet
        encode, kind = choose_encoder(accept)
        if kind not in self._written and len(self._written) >= _MAX_FORMATS:
            encode, kind = choose_encoder("")  # a client chose its version by the dozen
        for renewed in (self._report, self._pods):
            if renewed is not None:
                renewed.begin()
        return self._write(encode, kind), kind

    def _write(self, encode: Encoder, kind: str) -> bytes:
        """Return the text of what is there now, and keep it until there is something newer."""
        report, given = self._report.last, self._pods.last if self._pods else None
        sources = self._round, report, given
        before = self._written.get(kind)
        if before is None or any(a is not b for a, b in zip(before[0], sources, strict=True)):
            # Facts stay as they are from round to round.
            own = before[1] if before is not None and before[0][1] is report else b""
            if report is not None and not own:
                families = facts(report, with_uuids=self.with_uuids)
                own = encode(_Families(families)).removesuffix(b"# EOF\n")
            live = encode(_Families(self._live(report, given or ())))
            before = self._written[kind] = sources, own, live
        return before[1] + before[2]

    def _live(self, report: ReportDoc | None, given: Sequence[Assignment]) -> list[Family]:
        assert self._round is not None
        began, samples = self._round
        families = figures(report, samples)
        if samples:
            about = "When these figures were asked for."
            families.append(("probecore_sample_time_seconds", "gauge", about, [({}, began)]))
        if report is not None and given:
            families += pods.families(given, identities(report))
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
                Sample(suffixed, {k: v for k, v in own.items() if v}, float(value))
                for own, value in rows
                if value is not None
            ]
            yield metric


@contextmanager
def serving(place: str, metrics: Metrics) -> Iterator[Endpoint]:
    """Serve the series while the block runs; raises `ExportError` where the place cannot be."""
    endpoint = Endpoint(address(place), metrics.text)
    metrics.with_uuids = endpoint.on_loopback
    with endpoint:
        yield endpoint


def serve_text(place: str, make: Callable[[], str], kind: str, context: Context) -> None:
    """Serve the text of another format, of content type `kind`, until a signal ends it."""
    with Endpoint(address(place), answering(make, kind)) as endpoint, until_signal():
        _announce(endpoint, context)
        pause()


def answering(make: Callable[[], str], kind: str) -> Answer:
    """Return what serves the text that `make` returns; the first is begun at once."""
    texts = Renewed(lambda: make().encode())
    texts.begin()

    def answer(accept: str) -> tuple[bytes, str]:
        texts.begin()
        if texts.failed:
            raise ExportError("the last attempt failed")
        if texts.last is None:
            raise NotYet
        return texts.last, kind

    return answer


def serve_node(args: argparse.Namespace, context: Context) -> None:
    """Serve the facts and figures of this node until a signal ends it."""

    def report() -> ReportDoc:
        try:
            return context.report()
        except CommandError as error:
            context.err(f"probe export: {error}")
            raise

    metrics = Metrics(report, note=lambda text: context.err(f"probe export: {text}"))
    with serving(args.listen, metrics) as endpoint, until_signal():
        _announce(endpoint, context)
        if args.machine is not None or args.static is not None:
            metrics.publish(0.0, ())  # what stands for another machine does nothing now
            pause()
        with context.samples(_INTERVAL_S) as rounds:
            listed = rounds.listed()
            metrics.publish(listed.time, listed.documents)
            for current in rounds:
                metrics.publish(current.time, current.documents)


def _announce(endpoint: Endpoint, context: Context) -> None:
    context.err(f"probe export: serving {endpoint.url}; Ctrl-C ends it")
