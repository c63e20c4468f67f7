"""What is sampled, and by whom: the same probers as a probe selects, before any of them runs."""

from __future__ import annotations

from probe_core.pipeline.run_probers import ProberRun
from probe_core.probing import registered_probers
from probe_core.registry.prober import Prober
from probe_core.sampling import boards

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from probe_core.config import Config
    from probe_core.machine import Machine
    from probe_core.model.document import FindingDoc
    from probe_core.registry.discover import Registered

__all__ = ["Choice", "choose"]

_PRIORITY = 60
"""That of the bus prober: any installed sampler goes first."""


class Choice:
    """The probers that may sample, in the order of priority, and what the built-in ones saw.

    `devices` are the sightings of the buses and of the processors.
    """

    __slots__ = ("bus", "devices", "findings", "probers")

    def __init__(self, run: ProberRun, probers: Sequence[Prober]) -> None:
        self.probers = probers
        self.bus = run.bus
        self.devices = [observation.sighting for observation in run.collected.observations]
        self.findings: list[FindingDoc] = list(run.findings)


def choose(
    machine: Machine, config: Config, extra: Mapping[str, Registered] | None = None
) -> Choice:
    """Look at the buses, and decide which probers are asked for samples.

    On a recorded machine only those are that read its files: no library knows it.
    """
    run = ProberRun(machine, config, None)
    run.scan_buses(_no_lap)
    run.choose({**registered_probers(), **(extra or {})}, _no_lap)
    selected = [decision.prober for decision in run.decisions if decision.cause is None]
    probers = [prober for prober in selected if prober.answer is None]
    if boards.present(run.bus) and config.sealed is None and _is_allowed(config):
        probers.append(Prober(boards.BOARDS, boards.__name__, "probe-core", priority=_PRIORITY))
    return Choice(run, probers)


def _is_allowed(config: Config) -> bool:
    """Return whether the settings let the core's own sampler of boards run, as the bus prober."""
    return "bus" not in config.disable and (config.only is None or "bus" in config.only)


def _no_lap(_: str) -> None:
    """Time nothing: a round has no timings."""
