"""Samples the GPUs of Windows from its performance counters, where no vendor's library is asked.

Counters name an adapter by its LUID, which is new after each start; DirectX keeps a table of the
adapters that it saw last in the registry.
"""

from __future__ import annotations

from probe_core.api import Unavailable, not_applicable
from probe_windows import adapters, identity
from probe_windows.memory import SIZE
from probe_windows.pdh import Query
from probe_windows.registry import DIRECTX, Registry, number

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from probe_core.api import NotApplicable, RawSample, SampleRequest
    from probe_windows.adapters import Adapter

__all__ = ["Sampler"]

_ENGINES = r"\GPU Engine(*)\Utilization Percentage"
_PROCESSES = r"\GPU Process Memory(*)\Dedicated Usage"
_ADAPTERS = r"\GPU Adapter Memory(*)\Dedicated Usage"

_REASONS = {
    "temperature_c": "Windows' counters have no temperature",
    "power_w": "Windows' counters have no power",
    "clocks_mhz": "Windows' counters have no clock",
}


class Sampler:
    """The adapters of a machine, between two rounds."""

    def __init__(self) -> None:
        try:
            self._gpus = list(_gpus())
        except ImportError as error:
            raise Unavailable(f"the registry cannot be read: {error}", code="no-registry") from None
        try:
            self._query = Query(_ENGINES, _PROCESSES, _ADAPTERS)
        except OSError as error:
            raise Unavailable(f"no performance counter of a GPU: {error}", code="no-pdh") from None
        self._collected = 0

    def sample(self, request: SampleRequest) -> Iterator[RawSample] | NotApplicable:
        """Return the samples of a round."""
        if not self._gpus:
            return not_applicable("DirectX's table has none of the adapters of the registry")
        return self._samples(request)

    def _samples(self, request: SampleRequest) -> Iterator[RawSample]:
        for device, _, _ in self._gpus:
            request.touching(device)
        self._query.collect()
        self._collected += 1
        engines = self._query.values(_ENGINES) if self._collected > 1 else {}
        memory, by_process = self._query.values(_ADAPTERS), self._query.values(_PROCESSES)
        for device, luid, total in self._gpus:
            if request.skip(device):
                continue
            unknown = dict(_REASONS)
            sample: RawSample = {"device": device, "unknown": unknown}
            if self._collected > 1:
                sample["busy"] = _busiest(engines, luid)
            else:
                unknown["busy"] = "a rate needs two readings"
            used = [int(value) for name, value in memory.items() if _luid(name) == luid]
            if used:
                sample["memory"] = {"used": sum(used)}
                if total:
                    sample["memory"]["total"] = total
            else:
                unknown["memory"] = "there is no counter of its memory"
            sample["processes"] = [
                {"pid": pid, "memory": int(size)}
                for pid, size in sorted(_by_process(by_process, luid).items())
            ]
            yield sample


def _busiest(engines: Mapping[str, float], luid: str) -> float:
    """Return the share of time of the busiest engine, summed over processes.

    Engines work side by side: the sum over them reached 118 % (PowerToys#48710).
    """
    by_engine: dict[str, float] = {}
    for name, percent in engines.items():
        if _luid(name) == luid:
            engine = name[name.find("_phys_") :]
            by_engine[engine] = by_engine.get(engine, 0.0) + percent
    return min(1.0, max(by_engine.values(), default=0.0) / 100)


def _by_process(sizes: Mapping[str, float], luid: str) -> dict[int, float]:
    memory: dict[int, float] = {}
    for name, size in sizes.items():
        pid = name.removeprefix("pid_").partition("_")[0]
        if _luid(name) == luid and pid.isdecimal() and int(pid) > 0:
            memory[int(pid)] = memory.get(int(pid), 0.0) + size
    return memory


def _luid(name: str) -> str:
    """Return ``0x00000000_0x0000d0b1`` of an instance such as pid_4_luid_0x…_0x…_phys_0_eng_3."""
    return name.lower().partition("luid_")[2].partition("_phys")[0]


def _gpus() -> Iterator[tuple[str, str, int | None]]:
    """Yield (id, LUID as counters write it, bytes of memory) of each adapter.

    Of two adapters with the same PCI ids the table does not tell which is which: both are left out.
    """
    present = [adapter for adapter in adapters.present(Registry()) if not adapter.basic]
    by_ids: dict[str, list[Adapter]] = {}
    for adapter in present:
        ids = identity.pci(adapter.instance, adapter.device)
        if "id" in ids:
            by_ids.setdefault(ids["id"], []).append(adapter)
    luids = _luids()
    for pci, same in by_ids.items():
        address = identity.address(same[0].device)
        if len(same) == 1 and len(luids.get(pci, ())) == 1 and address:
            bus, slot, function = address
            size = number(same[0].driver.get(SIZE))
            yield f"pci:0000:{bus:02x}:{slot:02x}.{function}", luids[pci][0], size


def _luids() -> dict[str, list[str]]:
    """Return LUIDs by PCI ids from DirectX's table; those of earlier starts have an older date."""
    registry = Registry(DIRECTX)
    latest = number(registry.values("").get("lastseen"))
    luids: dict[str, list[str]] = {}
    for key in registry.keys(""):
        values: dict[str, Any] = dict(registry.values(key))
        vendor, device = number(values.get("vendorid")), number(values.get("deviceid"))
        luid = number(values.get("adapterluid"))
        if None in (vendor, device, luid) or number(values.get("lastseen")) != latest:
            continue
        assert vendor is not None
        assert device is not None
        assert luid is not None
        text = f"0x{luid >> 32 & 0xFFFF_FFFF:08x}_0x{luid & 0xFFFF_FFFF:08x}"
        luids.setdefault(f"{vendor:04x}:{device:04x}", []).append(text)
    return luids
