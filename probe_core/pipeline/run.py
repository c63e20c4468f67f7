"""The way of the data: discover, select, run, merge, resolve, see, report; each step timed.

Plain data goes in and a plain document comes out, so that nothing but the steps themselves is
imported: a node without accelerators pays for no data classes, plugins or libraries.
"""

from __future__ import annotations

from time import monotonic

from probe_core.model.findings import finding
from probe_core.pipeline.assemble import (
    assemble,
    ignored_settings,
    in_severity,
    last_findings,
    share_memory,
    with_cpu,
)
from probe_core.pipeline.merge import merge
from probe_core.pipeline.node import describe
from probe_core.pipeline.run_probers import Cancelled, Gathered
from probe_core.registry.select import unknown_names
from probe_core.resolve import open_chipdb, resolve

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from probe_chipdb import Database
    from probe_core.config import Config
    from probe_core.machine import Machine
    from probe_core.model.document import FindingDoc
    from probe_core.pipeline.identity import Said
    from probe_core.registry.discover import Registered
    from probe_core.registry.host import Host
    from probe_core.visibility import Views

__all__ = ["Cancelled", "run_pipeline"]


class Stopwatch:
    """Milliseconds per step."""

    __slots__ = ("_last", "_start", "taken")

    def __init__(self) -> None:
        self._start = self._last = monotonic()
        self.taken: dict[str, float] = {}

    def lap(self, name: str) -> None:
        """Note the time since the last lap under `name`."""
        now = monotonic()
        self.taken[name] = round((now - self._last) * 1000, 3)
        self._last = now

    def total(self) -> dict[str, float]:
        """Return all laps and their sum."""
        return {**self.taken, "total": round((monotonic() - self._start) * 1000, 3)}


def run_pipeline(
    machine: Machine,
    config: Config,
    ignored: Sequence[str] = (),
    *,
    registered: Mapping[str, Registered] | None = None,
    host: Host | None = None,
    wake_fd: int = -1,
) -> dict[str, Any]:
    """Probe `machine` and return the report's document.

    `ignored` are sentences about settings that could not be used. Raises `Cancelled` when
    `wake_fd` became readable, and nothing else that a prober could cause.
    """
    watch = Stopwatch()
    chips = _Chips(config.chipdb)
    seen = Gathered(machine, config, host)
    seen.builtin(watch.lap)
    seen.others(registered or {}, wake_fd, watch.lap, lambda: _rehearse(seen, chips))
    return _conclude(seen, chips, ignored, watch)


def _conclude(
    seen: Gathered, chips: _Chips, ignored: Sequence[str], watch: Stopwatch
) -> dict[str, Any]:
    """Merge, resolve, see, and put the report together."""
    machine, config, host, collected = seen.machine, seen.config, seen.host, seen.collected
    devices, clashes = _merge(collected.said)
    devices = with_cpu(devices, machine)
    node = describe(machine)
    share_memory(devices, node["memory"])
    watch.lap("merge")
    database = chips.open()
    unresolved = resolve(devices, database, host.resolve_chip if host else None)
    watch.lap("resolve")
    views, hidden = _see(devices, machine)
    asked = _ask_runtimes(views, devices, machine, config)
    watch.lap("see")
    document = assemble(node, devices, seen.decisions, collected, database)
    if asked:
        document["asked"] = asked
    document["findings"] = in_severity(
        [
            *ignored_settings(ignored),
            *unknown_names(config, seen.names),
            *collected.findings,
            *seen.findings,
            *chips.findings,
            *unresolved,
            *hidden,
            *_disagreements(asked),
            *clashes,
            *last_findings(document, node, seen.decisions),
        ]
    )
    if host is not None:
        host.observe("report", {"devices": len(devices)})
        document["findings"] += host.findings
    document["timings_ms"] = watch.total()
    return document


class _Chips:
    """The chip database, opened at most once."""

    __slots__ = ("_database", "_file", "findings")

    def __init__(self, file: str | None) -> None:
        self._file = file
        self._database: Database | None = None
        self.findings: list[FindingDoc] = []

    def open(self) -> Database | None:
        """Return the database, or None with the reason among `findings`."""
        if self._database is None and not self.findings:
            extra = [self._file] if self._file else ()
            self._database, self.findings = open_chipdb(extra)
        return self._database


def _rehearse(seen: Gathered, chips: _Chips) -> None:
    """Do the last steps on what the buses showed, while the children start.

    The result is thrown away. What stays are loaded modules and chipdb's memory of the chips it
    was asked for: a fifth of a probe with GPUs, taken from time that would be spent waiting.
    """
    devices, _ = _merge(seen.collected.said)
    share_memory(devices, {"total": None, "available": None, "limit": None})
    resolve(devices, chips.open())
    _see(devices, seen.machine)


def _merge(said: Sequence[Said]) -> tuple[list[Any], list[FindingDoc]]:
    """Merge; should that ever raise, leave out the probers whose sightings it cannot bear."""
    try:
        return merge(said)
    except Exception:
        return _merge_what_can_be(said)


def _merge_what_can_be(said: Sequence[Said]) -> tuple[list[dict[str, Any]], list[FindingDoc]]:
    kept: list[Said] = []
    left_out: list[FindingDoc] = []
    for prober in dict.fromkeys(one.prober for one in said):
        more = [*kept, *(one for one in said if one.prober == prober)]
        try:
            merge(more)
            kept = more
        except Exception as error:  # whatever a prober said, the node starts
            what, fix = (
                f"the devices of {prober} could not be merged",
                "report this with its output",
            )
            why = f"{type(error).__name__}: {error}"
            left_out.append(finding("prober-failed", what, why, fix, severity="error"))
    devices, clashes = merge(kept)
    return devices, [*left_out, *clashes]


def _see(devices: Sequence[dict[str, Any]], machine: Machine) -> tuple[Views, list[FindingDoc]]:
    from probe_core import visibility

    try:
        views = visibility.see(devices, machine.environ, os=machine.os)
        visibility.annotate(list(devices), views)
        return views, visibility.findings(views)
    except Exception as error:  # a byte string in a variable must not keep the node from starting
        for device in devices:
            device.setdefault("visibility", {})
        what = "visibility could not be worked out"
        why = f"{type(error).__name__}: {error}"
        fix = "report this with the variables that are set"
        return {}, [finding("config-ignored", what, why, fix)]


def _ask_runtimes(
    views: Views, devices: Sequence[dict[str, Any]], machine: Machine, config: Config
) -> dict[str, dict[str, Any]]:
    """Ask CUDA and HIP themselves what they show, where the user allowed it."""
    if not (config.active and machine.live and views):
        return {}
    from probe_core.runtimes import ask

    deadline = {} if config.timeout is None else {"deadline_s": config.timeout}
    return ask(views, devices, machine.environ, **deadline)


def _disagreements(asked: Mapping[str, Mapping[str, Any]]) -> list[FindingDoc]:
    if not asked:
        return []
    from probe_core.runtimes import disagreements

    return disagreements(asked)
