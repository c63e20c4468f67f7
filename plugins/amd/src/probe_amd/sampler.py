"""Samples AMD GPUs from amdgpu's files in sysfs; no node is opened.

``pcie_bw`` is never read: the kernel sleeps a second in it (nvtop#208).
"""

from __future__ import annotations

from probe_amd import gfx, kfd, memory, metrics
from probe_core.api import each_card, not_applicable
from probe_core.sysfs import drm, hwmon, pcie, power
from probe_core.sysfs.drm_use import DrmUse
from probe_core.sysfs.live import Live

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from probe_core.api import Machine, NotApplicable, RawSample, SampleRequest
    from probe_core.sysfs.pci import Function

__all__ = ["Sampler"]

_FRESH = 60
"""Rounds after which the paths of sensors are looked up anew, and links read: a minute."""

_TEMPERATURES = ("temp edge", "temp junction", "temp1")
"""Sensors by preference: server cards have no edge sensor."""

_CLOCKS = {"sm": "freq sclk", "memory": "freq mclk"}


class Sampler:
    """The AMD GPUs of a machine, between two rounds."""

    def __init__(self, request: SampleRequest, functions: Sequence[Function]) -> None:
        self._machine = request.machine
        self._functions = [function for function in functions if function.driver == "amdgpu"]
        self._use = DrmUse(request.machine)
        self._cards: dict[str, Card] = {}

    def sample(self, request: SampleRequest) -> Iterator[RawSample] | NotApplicable:
        """Return the samples of a round."""
        if not self._functions:
            return not_applicable("no GPU is driven by amdgpu")
        return self._samples(request)

    def _samples(self, request: SampleRequest) -> Iterator[RawSample]:
        if request.round % _FRESH == 0:
            self._cards.clear()
        self._use.refresh()
        for function, may_ask in each_card(request, self._functions):
            if not may_ask:
                continue
            # Before Linux 6.15 a read resumes a card that has just fallen asleep.
            if power.asleep(power.status(self._machine, function.folder)):
                yield {"device": function.id, "status": "asleep", "reason": "it has fallen asleep"}
                continue
            card = self._cards.get(function.id)
            if card is None:
                card = self._cards[function.id] = Card(self._machine, function)
            yield card.sample(self._use)


class Card:
    """Where one card's figures are."""

    def __init__(self, machine: Machine, function: Function) -> None:
        self._machine = machine
        self._id, self._folder = function.id, function.folder
        self._sensors = hwmon.places(machine, function.folder)
        self._nodes = drm.node_names(machine, function.folder)
        self._links = pcie.links(machine, function.folder)
        self._is_shared = _is_shared(machine, function)
        self._ecc = _ecc_errors(machine, function.folder)

    def sample(self, use: DrmUse) -> RawSample:
        """Read all figures."""
        live = Live(self._machine, self._id)
        self._add_memory(live)
        self._add_sensors(live)
        raw = self._metrics(live)
        self._add_use(live, use, raw)
        self._add_counters(live, raw)
        links = [
            {"kind": str(link["kind"]), "generation": link["generation"], "width": link["width"]}
            for link in self._links
            if "generation" in link and "width" in link
        ]
        live.put("links", links or None)
        return live.sample

    def _add_memory(self, live: Live) -> None:
        parts = ("vram", "gtt") if self._is_shared else ("vram",)
        sizes = {
            (part, item): live.number(f"memory.{item}", f"{self._folder}/mem_info_{part}_{item}")
            for part in parts
            for item in ("used", "total")
        }
        totals: dict[str, int] = {}
        for item in ("used", "total"):
            values = [sizes[part, item] for part in parts]
            if None not in values:
                totals[item] = int(sum(filter(None, values)))
        live.put("memory", totals or None, "amdgpu shows no size of the memory")

    def _add_sensors(self, live: Live) -> None:
        sensors = self._sensors
        stem = next((sensors[name] for name in _TEMPERATURES if name in sensors), None)
        if stem is None:
            live.unknown["temperature_c"] = "amdgpu has no temperature sensor of this card"
        else:
            live.put("temperature_c", live.number("temperature_c", f"{stem}_input", 1e-3))
        if "power1" in sensors:
            # A card has one of the two (MangoHud#1620).
            paths = (f"{sensors['power1']}_average", f"{sensors['power1']}_input")
            live.put("power_w", live.first("power_w", *paths, scale=1e-6))
            cap = live.number("power_cap_w", f"{sensors['power1']}_cap", 1e-6)
            live.put("power_cap_w", cap or None, "amdgpu sets no limit on this card")
        else:
            live.unknown["power_w"] = "amdgpu has no power sensor of this card"
        clocks: dict[str, float] = {}
        for name, sensor in _CLOCKS.items():
            if sensor not in sensors:
                live.unknown[f"clocks_mhz.{name}"] = f"amdgpu has no sensor {sensor!r} of this card"
                continue
            path = f"{sensors[sensor]}_input"
            if (hertz := live.number(f"clocks_mhz.{name}", path, 1e-6)) is not None:
                clocks[name] = hertz
        live.put("clocks_mhz", clocks or None, "amdgpu shows no clock of this card")

    def _metrics(self, live: Live) -> bytes:
        """Return the firmware's table; nothing, with the reason, where amdgpu refuses it."""
        path = f"{self._folder}/gpu_metrics"
        try:
            return self._machine.read_bytes(path, metrics.LIMIT)
        except OSError as error:
            live.unknown["throttled"] = f"{path}: {error.strerror or error}"
            return b""

    def _add_counters(self, live: Live, raw: bytes) -> None:
        counters = {**self._ecc, **pcie.errors(self._machine, self._folder)}
        replays = live.number("counters.pcie_replays", f"{self._folder}/pcie_replay_count")
        counters |= {"pcie_replays": replays, "energy_j": metrics.energy(raw)}
        if counters["energy_j"] is None:
            live.unknown["counters.energy_j"] = "this gpu_metrics counts no energy in a known unit"
        live.put("counters", {name: n for name, n in counters.items() if n is not None})

    def _add_use(self, live: Live, use: DrmUse, raw: bytes) -> None:
        """Add busy and processes.

        Where the file refuses (EOPNOTSUPP on some APUs) the firmware's own table may have it.
        amdgpu's fdinfo files cannot: they count the rings of DRM, and not the queues of KFD, on
        which ROCm computes.
        """
        share = live.number("busy", f"{self._folder}/gpu_busy_percent", 1e-2)
        live.put("busy", metrics.busy(raw) if share is None else share)
        live.put("throttled", metrics.throttled(raw), "this gpu_metrics has no reasons")
        here = use.of(self._nodes)
        live.put("processes", here.processes)
        if here.others:
            live.unknown["processes.others"] = here.others


def _ecc_errors(machine: Machine, folder: str) -> dict[str, float | None]:
    """Return the errors of all blocks of the chip: lines "ue: N" and "ce: N" of each file.

    Read when the card is looked up, once a minute: for each the driver asks the firmware.
    """
    names = {"ue": "ecc_uncorrected", "ce": "ecc_corrected"}
    counts: dict[str, float | None] = {}
    for file in machine.listdir(f"{folder}/ras"):
        if not file.endswith("_err_count"):
            continue
        for line in (machine.read(f"{folder}/ras/{file}", 256) or "").splitlines():
            kind, _, number = line.partition(":")
            if kind in names and number.strip().isdecimal():
                counts[names[kind]] = (counts.get(names[kind]) or 0) + int(number)
    return counts


def _is_shared(machine: Machine, function: Function) -> bool | None:
    """Return whether the card lives in the processor's memory: an APU, whose GTT counts, too."""
    nodes = kfd.Topology(machine).of(function.address, frozenset((function.address,)))
    node = nodes[0] if nodes else None
    target = node.get("gfx_target_version") if node else None
    name = gfx.from_target(target) if target else gfx.from_discovery(machine, function.folder)
    if name == "gfx942":
        return False  # MI300A: all memory is VRAM, GTT is the same memory once more
    return memory.is_shared(machine, function, name, node)
