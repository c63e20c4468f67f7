"""What one node offers to a model, by one declared rule, out of its report.

The rule. Counted are the GPUs and accelerators that their vendor's own runtime surely sees and
whose memory is known. Where one of them has dedicated memory, those with dedicated memory count
and the integrated ones do not; else the integrated ones count and their memory is the system's,
once. Without any, the CPU counts. A GPU that is split into parts (MIG) counts as its visible
parts. NPUs and displays never count unless named. FLOPS and dedicated memory are sums, of a limited
processor over the cores that this process may use. Bandwidth is the memory-weighted harmonic mean:
layers lie on one device each, and are read one after another.

No data class is imported here: a command that runs for 40 ms would pay 10 for it.
"""

from __future__ import annotations

from collections.abc import Mapping

from probe_cluster.shared import ClusterError, amount, rate, sharing, text, verdict

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypedDict

    Device = Mapping[str, Any]

    class Offer(TypedDict):
        """What a node offers; `Capacity` says what each key means."""

        chip: str | None
        kind: str
        vendor: str | None
        devices: tuple[str, ...]
        memory_total: int | None
        memory_available: int | None
        pools: tuple[int, ...]
        ram_total: int | None
        ram_available: int | None
        vram_total: int | None
        vram_available: int | None
        unified: bool
        fp32: float | None
        fp16: float | None
        int8: float | None
        bandwidth: float | None
        reasons: dict[str, str]
        arch: str | None
        cores: int | None
        os: str | None


# No NPU: the engines that are planned for (MLX, CUDA, vLLM, tinygrad) place no layers on one.
_COUNT = ("gpu", "accelerator")


def counted_devices(
    document: Mapping[str, Any], devices: str | tuple[str, ...]
) -> tuple[list[Device], dict[str, str]]:
    """Return the devices of `devices` (see `offer`), and reasons for what was left out."""
    present = [device for device in document.get("devices") or () if _is_device(device)]
    if not isinstance(devices, str):
        return [_named(present, identity) for identity in devices], {}
    if devices == "cpu":
        return _cpus(present), {}
    if devices == "primary":
        primary = [device for device in present if device.get("id") == document.get("primary")]
        return primary or _cpus(present), {}
    if devices != "all":
        return [_named(present, devices)], {}
    return _all(present)


NO_GPU = "no GPU is counted, so the CPU is"
"""The whole reason where there is no GPU to leave out."""


def left_out(reasons: Mapping[str, str]) -> str | None:
    """Return which devices are not counted, and why, by an offer's reasons; None for none.

    Of a computer that is described it is plain which are counted.
    """
    reason = None if "origin" in reasons else reasons.get("devices")
    return None if reason == NO_GPU else reason


def _is_device(device: Any) -> bool:
    return isinstance(device, Mapping) and isinstance(device.get("id"), str)


def _cpus(devices: list[Device]) -> list[Device]:
    return [device for device in devices if device.get("kind") == "cpu"]


def _named(devices: list[Device], identity: str) -> Device:
    from probe_core.model.naming import named_by

    places = named_by(identity, [[device["id"], *(device.get("ids") or ())] for device in devices])
    if len(places) == 1:
        return devices[places[0]]
    ids = ", ".join(str(device["id"]) for device in devices) or "none"
    problem = f"{len(places)} devices are" if places else "the report has no device"
    raise ClusterError(f"{problem} {identity!r}; it has {ids}")


def _all(devices: list[Device]) -> tuple[list[Device], dict[str, str]]:
    left_out: dict[str, str] = {}
    usable = _usable(devices, left_out)
    if any(_dedicated(device) for device in usable):
        for device in usable:
            if not _dedicated(device):
                left_out[str(device["id"])] = "it uses the system's memory, others have their own"
        usable = [device for device in usable if _dedicated(device)]
    notes = [f"{_several(ids)}: {why}" for why, ids in sharing(left_out.items()).items()]
    reason = f"not counted: {'; '.join(notes)}" if notes else ""
    if not usable:
        usable = _cpus(devices)
        reason = f"{NO_GPU}; {reason}" if reason else NO_GPU
    return usable, {"devices": reason} if reason else {}


def _several(ids: list[str]) -> str:
    more = len(ids) - 2
    return ", ".join(ids if more < 2 else [*ids[:2], f"{more} more"])


def _usable(devices: list[Device], left_out: dict[str, str]) -> list[Device]:
    """Return the visible accelerators with memory; the others' reasons go into `left_out`."""
    kinds = [device for device in devices if device.get("kind") in _COUNT]
    visible = [device for device in kinds if _visible(device, left_out)]
    # A GPU that is split into parts (MIG) has no memory besides theirs.
    parents = {device.get("parent") for device in visible}
    whole = [device for device in visible if device["id"] not in parents]
    return [device for device in whole if _has_memory(device, left_out)]


def _visible(device: Device, left_out: dict[str, str]) -> bool:
    answer = verdict(device)
    if answer.usable or (answer.usable is None and answer.step != "visible"):
        return True
    left_out[str(device["id"])] = answer.reason or answer.code or "whether it is visible is unknown"
    return False


def _has_memory(device: Device, left_out: dict[str, str]) -> bool:
    """Leave out a GPU that only the bus saw, or that is lost: whether it runs is not known."""
    memory = device.get("memory")
    if isinstance(memory, Mapping) and memory.get("kind") and amount(memory.get("total")):
        return True
    reason = (device.get("unknown") or {}).get("memory.total", "its report does not give")
    left_out[str(device["id"])] = f"its memory is unknown: {reason}"
    return False


def _dedicated(device: Device) -> bool:
    return bool(device["memory"]["kind"] == "dedicated")


def offer(document: Mapping[str, Any], devices: str | tuple[str, ...] = "all") -> Offer:
    """Return what the node of a report's document offers.

    `devices` is ``all`` (the rule above), ``primary``, ``cpu``, or ids that must be in the report.
    Raises `ClusterError` for an id that is not, and never for what a report lacks.
    """
    return offer_of(document, *counted_devices(document, devices))


def offer_of(document: Mapping[str, Any], chosen: list[Device], reasons: dict[str, str]) -> Offer:
    """Return what the devices that `counted_devices` chose offer; `reasons` gets more."""
    node = table(document.get("node"))
    ram_total, ram_available = _system(node)
    total, available, pools, unified = _model_memory(
        chosen, node, (ram_total, ram_available), reasons
    )
    fp32, fp16, int8 = (_flops(chosen, name, reasons) for name in ("fp32", "fp16", "int8"))
    first = chosen[0] if chosen else {}
    return {
        "chip": text(first.get("name")),
        "kind": text(first.get("kind")) or "cpu",
        "vendor": text(first.get("vendor")),
        "devices": tuple(str(device["id"]) for device in chosen),
        "memory_total": total,
        "memory_available": available,
        "pools": pools,
        "ram_total": ram_total,
        "ram_available": ram_available,
        "vram_total": None if unified else total,
        "vram_available": None if unified else available,
        "unified": unified,
        "fp32": fp32,
        "fp16": fp16,
        "int8": int8,
        "bandwidth": _bandwidth(chosen, reasons),
        "reasons": reasons,
        "arch": text(first.get("arch")),
        "cores": amount(first.get("units")) if first.get("kind") == "cpu" else None,
        "os": text(node.get("os")),
    }


def _model_memory(
    chosen: list[Device],
    node: Mapping[str, Any],
    ram: tuple[int | None, int | None],
    reasons: dict[str, str],
) -> tuple[int | None, int | None, tuple[int, ...], bool]:
    """Return the memory for a model: total, available, its pools, and whether it is unified."""
    own = [device for device in chosen if _kind(device) not in ("unified", "shared")]
    own = [device for device in own if device.get("kind") != "cpu"]
    if own:
        total = _sum(own, "total", reasons, "vram_total")
        available = _sum(own, "usable", reasons, "vram_available")
        # Of a card whose memory is not known the system's is not the answer.
        pools = () if available is None else tuple(_takeable(device) or 0 for device in own)
    else:
        total, available = _unified(chosen, node, *ram)
        pools = (available,) if available is not None else ()
    for name, value in (("total", total), ("available", available)):
        if value is None:
            reason = reasons.get(f"vram_{name}", "the report has no memory of this node")
            reasons.setdefault(f"memory_{name}", reason)
    return total, available, pools, not own


def _kind(device: Device) -> str | None:
    return text(table(device.get("memory")).get("kind"))


def _memory(device: Device, name: str) -> int | None:
    return amount(table(device.get("memory")).get(name))


def _takeable(device: Device) -> int | None:
    """What can be taken now; where only the reach or the total is known, that."""
    for name in ("free", "usable", "total"):
        value = _memory(device, name)
        if value is not None:
            return value
    return None


def _sum(devices: list[Device], name: str, reasons: dict[str, str], field_: str) -> int | None:
    values = []
    for device in devices:
        value = _takeable(device) if name == "usable" else _memory(device, name)
        if value is None:
            because = _because(device, "memory.total")
            reasons[field_] = f"the memory of {device['id']} is unknown{because}"
        else:
            values.append(value)
    return sum(values) if values else None


def _system(node: Mapping[str, Any]) -> tuple[int | None, int | None]:
    memory = table(node.get("memory"))
    total, limit = amount(memory.get("total")), amount(memory.get("limit"))
    available = amount(memory.get("available"))
    if limit is not None:
        total = limit if total is None else min(total, limit)
    if total is not None and available is not None:
        available = min(available, total)
    return total, available


def _unified(
    chosen: list[Device], node: Mapping[str, Any], ram_total: int | None, ram_available: int | None
) -> tuple[int | None, int | None]:
    """Return (total, available) of memory that CPU and GPU share: once, however many devices.

    What a GPU reaches counts where its prober knows it: an APU's carve-out and GTT, which are not
    the system's total; and a limit binds (macOS wires at most a share, a control group less).
    """
    total, available = ram_total, ram_available
    # All of them share one memory, so the largest reach counts and no sum.
    integrated = [device for device in chosen if device.get("kind") != "cpu"]
    reach = [value for device in integrated if (value := _memory(device, "total")) is not None]
    free = [value for device in integrated if (value := _takeable(device)) is not None]
    if reach:
        total, available = max(reach), max(free)
    limits = [value for device in integrated if (value := _limit(device)) is not None]
    if amount(table(node.get("memory")).get("limit")) is not None:
        limits += [ram_total or 0]
        available = min(filter(None, (available, ram_available)), default=None)
    if total is not None:
        total = min([total, *limits])
        available = total if available is None else min(available, total)
    return total, available


def _limit(device: Device) -> int | None:
    return amount(table(table(device.get("memory")).get("parts")).get("limit"))


def table(value: object) -> Mapping[str, Any]:
    """Return a mapping, or an empty one."""
    return value if isinstance(value, Mapping) else {}


def _flops(chosen: list[Device], name: str, reasons: dict[str, str]) -> float | None:
    values = []
    for device in chosen:
        value = _own_rate(device, name)
        if value is None:
            reasons[name] = f"{name} of {device['id']} is unknown{_because(device, name)}"
        else:
            values.append(value)
    if not chosen:
        reasons[name] = "the report has no device that counts"
    return sum(values) or None if values else None


def _own_rate(device: Device, name: str) -> float | None:
    """Return a figure of a device; 0 of a processor of which this process may use no core."""
    allowed = device.get("allowed")
    uses_none = isinstance(allowed, Mapping) and allowed.get("threads") == 0
    return 0.0 if uses_none else rate(device.get(name))


def read_bandwidth(chosen: list[Device]) -> tuple[float, str] | None:
    """Return the measured bandwidth of devices, and with what it was measured.

    Decoding reads, so by reading; the middle run's, since a plan is for long. None where one of
    them was not measured, or not well.
    """
    size = seconds = 0.0
    sources: dict[str, None] = {}
    for device in chosen:
        figure = _read_figure(device)
        value = rate(figure.get("median"))
        if value is None:
            return None
        own = float(_memory(device, "total") or 1)
        size, seconds = size + own, seconds + own / value
        sources[f"{figure.get('by')} on {str(figure.get('date'))[:10]}"] = None
    return (size / seconds, " and ".join(sources)) if seconds else None


def _read_figure(device: Device) -> Mapping[str, Any]:
    """Return a device's figure of reading; an empty table where none can be planned with."""
    figures = device.get("measured")
    for figure in figures if isinstance(figures, list) else ():
        if not isinstance(figure, Mapping) or figure.get("figure") != "read":
            continue
        if figure.get("stale") is None and figure.get("disturbed") == []:
            return figure
    return {}


def _bandwidth(chosen: list[Device], reasons: dict[str, str]) -> float | None:
    size = seconds = 0.0
    for device in chosen:
        value = rate(device.get("bandwidth"))
        if value is None:
            because = _because(device, "bandwidth")
            reasons["bandwidth"] = f"the memory bandwidth of {device['id']} is unknown{because}"
            return None
        # Weighted by memory, as layers are shared; where no memory is known all weigh the same.
        own = float(_memory(device, "total") or 1)
        size, seconds = size + own, seconds + own / value
    if not chosen:
        reasons["bandwidth"] = "the report has no device that counts"
    return size / seconds if seconds else None


def _because(device: Device, field_: str) -> str:
    reason = text(table(device.get("unknown")).get(field_))
    return f": {reason}" if reason else ""
