"""What follows once the probers have answered: merge, resolve, judge, see, assemble.

Plain data goes in and plain data comes out, so that nothing but the steps themselves is imported:
a node without accelerators pays for no data classes, plugins or libraries. `run` has their order.
"""

from __future__ import annotations

from probe_core.config import BASELINE, MEASURED, state_file
from probe_core.machine.files import has_served_mounts
from probe_core.model.findings import finding
from probe_core.model.ids import ACCELERATORS
from probe_core.pipeline.assemble import (
    assemble,
    by_severity,
    ignored_settings,
    last_findings,
    share_memory,
    vendors_of,
    with_cpu,
)
from probe_core.pipeline.collect import failed
from probe_core.pipeline.merge import merge
from probe_core.registry.select import unknown_names
from probe_core.resolve import load_chips, look_up, resolve
from probe_core.wording import error_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from probe_core.config import Config
    from probe_core.isolation.launch import Waiting
    from probe_core.machine import Machine
    from probe_core.model.document import (
        AnswerDoc,
        DeviceDoc,
        ExpectedDoc,
        FindingDoc,
        NodeDoc,
        OutcomeDoc,
    )
    from probe_core.pipeline.collect import Collected
    from probe_core.pipeline.merge import Observation
    from probe_core.pipeline.settings import Chips
    from probe_core.registry.select import Decision
    from probe_core.visibility import Views

    Load = Callable[[str], object]
    """Imports a part of what a probe needs, see `gate`."""

__all__ = [
    "Readiness",
    "add_measured",
    "ask_runtimes",
    "assemble",
    "by_severity",
    "disagreements",
    "expected",
    "ignored_settings",
    "last_findings",
    "look_up",
    "merge_devices",
    "resolve",
    "see_devices",
    "unknown_names",
    "unresponsive",
    "warm_up",
]


def warm_up(collected: Collected, chips: Chips, os: str, load: Load) -> None:
    """Load what the last steps need for the hardware on the buses, while the children start.

    That is modules, and chipdb's rows of these chips: a fifth of a probe with GPUs, taken from time
    that would be spent waiting. Nothing is judged: no library has answered, and the causes of that
    would be loaded in vain.
    """
    seen = [observation.sighting for observation in collected.observations]
    load_chips(seen, chips.open())
    if any(sighting["kind"] in ACCELERATORS for sighting in seen):
        import probe_core.readiness.library
    vendors = {str(sighting["vendor"]) for sighting in seen if sighting["kind"] == "gpu"}
    if "amd" in vendors:
        load("amd")
    if "nvidia" in vendors:
        import probe_core.readiness.modules  # noqa: F401
    if vendors:
        from probe_core.visibility import load_rules

        load_rules(vendors, os)


def merge_devices(
    collected: Collected, node: NodeDoc, machine: Machine
) -> tuple[list[DeviceDoc], list[FindingDoc]]:
    """Return one device per physical thing, a processor among them, and findings on conflicts."""
    devices, conflicts = _merge(collected.observations)
    devices = with_cpu(devices, machine)
    share_memory(devices, node["memory"])
    return devices, conflicts


def add_measured(
    devices: Sequence[DeviceDoc], node: NodeDoc, machine: Machine, load: Load
) -> Sequence[FindingDoc]:
    """Add what `probe bench` keeps of this computer; a recorded one has no such file."""
    if not machine.live:
        return ()
    from probe_core.pipeline.settings import is_file, read_named

    path = state_file(machine.environ, MEASURED)
    if path is None:
        return ()
    try:
        if not is_file(path):
            return ()
    except OSError:  # its server does not answer, which the reading says
        pass
    load("measured")
    from probe_core.measured.compare import attach

    return attach(devices, node["id"], path, read_named)


def expected(
    devices: Sequence[DeviceDoc],
    node: NodeDoc,
    machine: Machine,
    config: Config,
    chips: Chips,
) -> tuple[ExpectedDoc | None, Sequence[FindingDoc]]:
    """Return how the accelerators compare with what should be here; None where nobody says."""
    if config.expect is None and not (machine.live and _has_baseline(machine)):
        return None, ()
    from probe_core.pipeline.expected import compare
    from probe_core.pipeline.settings import read_named

    return compare(config, machine, node, devices, chips.open, read_named)


def _has_baseline(machine: Machine) -> bool:
    from probe_core.pipeline.settings import is_file

    path = state_file(machine.environ, BASELINE)
    try:
        return path is not None and is_file(path)
    except OSError:  # its server does not answer
        return False


def _merge(observations: Sequence[Observation]) -> tuple[list[DeviceDoc], list[FindingDoc]]:
    """Merge; should that ever raise, leave out the probers whose sightings it cannot take."""
    try:
        return merge(observations)
    except Exception:
        return _merge_without_culprits(observations)


def _merge_without_culprits(
    observations: Sequence[Observation],
) -> tuple[list[DeviceDoc], list[FindingDoc]]:
    accepted: list[Observation] = []
    findings: list[FindingDoc] = []
    for prober in dict.fromkeys(observation.prober for observation in observations):
        candidates = [*accepted, *(o for o in observations if o.prober == prober)]
        try:
            merge(candidates)
            accepted = candidates
        except Exception as error:  # whatever a prober reported, the node starts
            findings.append(
                finding(
                    "prober-failed",
                    f"the devices of {prober} could not be merged",
                    error_text(error),
                    "report this with its output",
                    severity="error",
                    prober=prober,
                )
            )
    devices, conflicts = merge(accepted)
    return devices, [*findings, *conflicts]


def see_devices(
    devices: Sequence[DeviceDoc], machine: Machine, load: Load
) -> tuple[Views, list[FindingDoc]]:
    """Add to each device what the runtimes show of it; return their views, and findings."""
    vendors = {device["vendor"] for device in devices if device["kind"] == "gpu"}
    if not vendors:
        return {}, []  # no variable hides anything else, and the rules need not be imported
    if "amd" in vendors:
        load("amd")
    from probe_core import visibility

    try:
        views = visibility.see(devices, machine.environ, os=machine.os)
        visibility.annotate(devices, views)
    except Exception as error:  # a byte string in a variable must not keep the node from starting
        return {}, [_unseen(error)]
    if visibility.is_plain(views):
        return views, []
    load("explain")
    try:
        return views, visibility.findings(views)
    except Exception as error:
        return {}, [_unseen(error)]


def _unseen(error: Exception) -> FindingDoc:
    return finding(
        "config-ignored",
        "visibility could not be worked out",
        error_text(error),
        "report this with the variables that are set",
        step="visible",
    )


def ask_runtimes(
    views: Views,
    devices: Sequence[DeviceDoc],
    machine: Machine,
    config: Config,
    waiting: Waiting | None,
) -> dict[str, AnswerDoc]:
    """Ask CUDA and HIP themselves what they show, where the user allowed it."""
    if not (config.active and machine.live and views):
        return {}
    from probe_core.runtimes import ask

    deadline = {} if config.timeout is None else {"deadline_s": config.timeout}
    return ask(views, devices, machine.environ, waiting=waiting, **deadline)


def unresponsive(collected: Collected, devices: Sequence[DeviceDoc]) -> list[FindingDoc]:
    """Return findings about devices over which a prober hung or died, with their names."""
    if not collected.unresponsive:
        return []
    from probe_core.pipeline.failures import unresponsive_findings

    return unresponsive_findings(collected.unresponsive, devices)


def disagreements(asked: Mapping[str, AnswerDoc]) -> list[FindingDoc]:
    """Return findings where a runtime itself shows other devices than its rules say."""
    if not asked:
        return []
    from probe_core import runtimes

    return runtimes.disagreements(asked)


# Whether this process can use each device, judged in the steps in which it becomes known.


class Readiness:
    """The judgement of one probe's devices, in the three steps in which it becomes known."""

    __slots__ = ("_conflicts", "_devices", "_load", "_scene")

    def __init__(
        self,
        devices: Sequence[DeviceDoc],
        machine: Machine,
        decisions: Sequence[Decision] = (),
        outcomes: Sequence[OutcomeDoc] = (),
        load: Load = bool,
    ) -> None:
        """Judge everything that does not depend on visibility.

        `load` is called with the part of `gate` that a broken device needs.
        """
        self._devices = devices
        self._load = load
        self._scene: Scene | None = None
        self._conflicts: list[FindingDoc] = []
        for device in devices:
            if device["kind"] == "cpu":  # it runs this
                device["readiness"] = {"state": "ready", "broken": None, "steps": []}
        if any(device["kind"] in ACCELERATORS for device in devices):
            from probe_core.readiness import Scene, judge

            unavailable = {o["prober"]: o for o in outcomes if o["status"] == "unavailable"}
            failures = _failures(decisions, outcomes)
            self._scene = Scene(machine, failures, unavailable, _looks(machine), load)
            self._conflicts = judge(devices, self._scene)

    def conclude(self) -> None:
        """Add what visibility shows, once it is in the devices."""
        if self._scene is not None:
            from probe_core.readiness import conclude

            conclude(self._devices)

    def findings(self, reported: Sequence[FindingDoc]) -> list[FindingDoc]:
        """Return the findings about broken steps that none of the `reported` is about."""
        if self._scene is None:
            return self._conflicts
        from probe_core.model.verdict import broken_step

        if all(broken_step(device) is None for device in self._devices):
            return self._conflicts
        self._load("broken")
        from probe_core.readiness.findings import findings

        return [*self._conflicts, *findings(self._devices, self._scene, reported)]


def _looks(machine: Machine) -> Callable[[str], bool] | None:
    """Return what says which paths of the machine may be looked at; None: all of them."""
    if not (machine.live and has_served_mounts()):
        return None
    from probe_core.isolation.look import Looks

    return Looks().allow


def _failures(
    decisions: Sequence[Decision], outcomes: Iterable[OutcomeDoc]
) -> dict[str, OutcomeDoc]:
    """Return the PCI vendors whose own prober failed or could not query its hardware."""
    return {
        vendor: outcome
        for outcome in outcomes
        if failed(outcome)
        for vendor in vendors_of(decisions, (outcome["prober"],))
    }
